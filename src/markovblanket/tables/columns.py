"""A column as the model takes it; cells as levels and numbers; wide tables, some columns at a time."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from numbers import Complex, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from markovblanket.contracts import Array

# Words that mean "missing" in text.
MISSING_WORDS = frozenset(
    ["", "NA", "N/A", "na", "n/a", "nan", "NaN", "NAN", "null", "NULL", "None", "<NA>", "#N/A", ".", "?"]
)
# NumPy's names of the numeric types.
NUMERIC_TYPES = frozenset(
    ["bool", "float16", "float32", "float64", *(f"{u}int{b}" for u in ("", "u") for b in (8, 16, 32, 64))]
)
# A message shows at most so many characters of a name.
LONGEST_NAME = 60

# What is wrong with a column of dates, and what to do about it.
HOLDS_DATES, COUNT_DAYS = "holds dates or times", "count the days or hours from some point, or leave it out"
DATE_TYPES = (date, time, timedelta, np.datetime64, np.timedelta64)
# Numbers of a wide table that are processed at a time: half a megabyte, which fits into a cache.
NUMBERS_PER_CHUNK = 2**16


@dataclass(frozen=True, eq=False, slots=True)
class Column:
    """One variable: its numbers for the model, and what is needed to restore its cells from such numbers.

    ``values`` has NaN where a cell is missing; elsewhere the number if ``kind`` is continuous, otherwise the code
    ``0 .. L-1`` of the cell's level. ``dtype`` is NumPy's name for numbers and booleans, or "text", "category",
    "ordered category", "object" (text among numbers); ``categories`` has all of its categories, observed or not.
    """

    name: Hashable
    kind: str
    values: Array
    levels: tuple[Any, ...] = ()
    dtype: str = "float64"
    categories: tuple[Any, ...] = ()

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        """A mask of the missing cells."""
        return np.isnan(self.values)

    @property
    def complete(self) -> bool:
        """Whether no cell is missing."""
        return not self.missing.any()

    def restore(self, values: Array) -> npt.NDArray[Any]:
        """Return cells on the scale of the data, from numbers or codes like ``self.values``.

        Missing cells become NaN among numbers, and None among anything else.

        Examples
        --------
        >>> dose = Column("dose", "ordinal", np.array([0.0, 1.0]), levels=(5, 10), dtype="int64")
        >>> dose.restore(np.array([1.0, 1.0, 0.0]))
        array([10, 10,  5])
        """
        gaps = np.isnan(values)
        lookup = np.array([*self.levels, None], dtype=object)
        cells = values if self.kind == "continuous" else lookup[np.where(gaps, -1, values).astype(int)]
        if self.dtype not in NUMERIC_TYPES or (self.dtype == "bool" and gaps.any()):
            return cells
        if self.dtype.startswith("float") or gaps.any():
            return cells.astype(self.dtype if self.dtype.startswith("float") else float)
        return np.rint(cells.astype(float)).astype(self.dtype)


@dataclass(frozen=True, eq=False, slots=True)
class Factor:
    """The distinct observed values of a column, and each cell's position among them (-1 if missing)."""

    values: list[Any]
    codes: npt.NDArray[np.int64]

    @classmethod
    def of_numbers(cls, x: Array, dtype: str) -> Factor:
        """Return the factor of a numeric column, its values ascending, as Python objects of type ``dtype``."""
        seen = ~np.isnan(x)
        values, inverse = np.unique(x[seen], return_inverse=True)
        codes = np.full(len(x), -1)
        codes[seen] = inverse
        return cls(values.astype(dtype if dtype in NUMERIC_TYPES else float).tolist(), codes)

    @classmethod
    def of_cells(cls, values: Sequence[Any], clean: Callable[[Any], Any]) -> Factor:
        """Return the factor of hashable cells, in order of appearance; each distinct cell is cleaned once."""
        raw: dict[Any, int] = {}
        codes = np.fromiter((raw.setdefault(value, len(raw)) for value in values), np.int64, len(values))
        merged: dict[Any, int] = {}
        cleaned = (clean(value) for value in raw)
        places = [-1 if value is None else merged.setdefault(value, len(merged)) for value in cleaned]
        return cls(list(merged), np.array(places, dtype=np.int64)[codes])

    def column(
        self, name: Hashable, rank: Sequence[int], kind: str | None, dtype: str, categories: tuple[Any, ...] = ()
    ) -> Column:
        """Return the column whose levels have the order ``rank``, one per value; equal ranks are one level."""
        _, first, dense = np.unique(np.asarray(rank, dtype=np.int64), return_index=True, return_inverse=True)
        levels = tuple(self.values[k] for k in first)
        if len(levels) < 2:
            raise refused(name, "is constant" if levels else "has no observed cell", "leave it out")
        if kind == "binary" and len(levels) > 2:
            raise refused(
                name, f"has {len(levels)} levels, so it is not binary", "declare it 'ordinal' or in order"
            )
        codes = np.append(dense.astype(float), np.nan)[self.codes]
        codes.flags.writeable = False
        return Column(
            name, kind or ("binary" if len(levels) == 2 else "ordinal"), codes, levels, dtype, categories
        )


def rank_in(name: Hashable, values: Sequence[Any], order: Sequence[Any]) -> list[int]:
    """Return the position of each value in a declared order; 1, 1.0 and ``"1"`` are the same level."""
    place = {key(level): k for k, level in enumerate(order)}
    if len(place) < len(order):
        raise refused(name, f"has an order that names a level twice: {listing(order)}", "name every level once")
    if outside := [value for value in values if key(value) not in place]:
        raise refused(
            name,
            f"has {listing(outside)} outside its declared order",
            f"add the level to kinds={{{shown(name)}: [...]}}, or correct the cells",
        )
    return [place[key(value)] for value in values]


def key(value: Any) -> Any:
    """Return what all spellings of a level have in common: its number, or else its text without outer blanks."""
    x = number(value)
    return str(value).strip() if x is None else x


def number(value: Any) -> float | int | None:
    """Return a value as a number, also if it is spelled as text; None for other text."""
    if not isinstance(value, str):
        return _within_floats(value) if isinstance(value, int) else float(value)
    for parse in (int, float):
        try:
            x = parse(value)
        except ValueError:
            continue
        return None if "_" in value or x != x else _within_floats(x)  # Python would read 1_000 as a thousand
    return None


def _within_floats(x: float) -> float:
    """Return x, or infinity for a whole number beyond the range of floats."""
    return math.inf if isinstance(x, int) and abs(x) >= 2**1000 else x


def cleaned(name: Hashable, value: Any, said: Collection[str]) -> Any:
    """Return a cell as text or number, or None if it is missing; the words in ``said`` are never missing."""
    if isinstance(value, DATE_TYPES):
        raise refused(name, HOLDS_DATES, COUNT_DAYS)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | bytes):
        text = (value if isinstance(value, str) else value.decode(errors="replace")).strip()
        return None if text in MISSING_WORDS and text not in said else text
    if value is None or type(value).__name__ == "NAType":  # pandas.NA, recognised without importing pandas
        return None
    if isinstance(value, Real | Decimal):
        return None if value != value else value
    what = "complex numbers" if isinstance(value, Complex) else f"objects of type {type(value).__name__}"
    raise refused(name, f"holds {what}", "leave it out or code it as numbers")


def is_date(text: str) -> bool:
    """Whether text begins like 2024-12-31."""
    try:
        date.fromisoformat(text[:10])
    except ValueError:
        return False
    return True


def refused(name: Hashable, what: str, way: str) -> ValueError:
    """Return the error that names a column, says what is wrong with it and what to do."""
    return ValueError(f"column {shown(name)} {what}; {way}")


def spans(rows: int, columns: int) -> Iterator[slice]:
    """Return slices of columns, of at most :data:`NUMBERS_PER_CHUNK` numbers each but at least one column.

    Examples
    --------
    >>> [(span.start, span.stop) for span in spans(NUMBERS_PER_CHUNK // 2, 5)]
    [(0, 2), (2, 4), (4, 5)]
    """
    width = max(1, NUMBERS_PER_CHUNK // max(rows, 1))
    return (slice(first, min(first + width, columns)) for first in range(0, columns, width))


# Names in messages ----------------------------------------------------------------------------------------


def repeated(names: Iterable[Hashable]) -> str:
    """List the names that occur more than once, for a message."""
    return listing([name for name, count in Counter(names).items() if count > 1])


def listing(names: Sequence[Any]) -> str:
    """List the first five names, and say how many more there are."""
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    return ", ".join(shown(name) for name in names[:5]) + more


def shown(name: Any) -> str:
    """Represent a name in a message, shortened if it is long."""
    text = repr(name)
    return text if len(text) <= LONGEST_NAME else f"{text[: LONGEST_NAME - 2]}…{text[-1]}"
