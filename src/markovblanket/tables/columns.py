"""A column as the model takes it, and the cells of the table as levels and numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date, time, timedelta
from decimal import Decimal
from numbers import Complex, Real
from typing import Any

import numpy as np
import numpy.typing as npt

from markovblanket.contracts import Array
from markovblanket.tables._frames import MISSING, NUMBERS, listing, shown

HOLDS_DATES, COUNT_DAYS = "holds dates or times", "count the days or hours from some point, or leave it out"
DATES = (date, time, timedelta, np.datetime64, np.timedelta64)


@dataclass(frozen=True, eq=False, slots=True)
class Column:
    """One variable: numbers for the model, and what it takes to give its cells back.

    ``values`` has NaN where a cell is missing; elsewhere the number if ``kind`` is continuous, otherwise the code
    ``0 .. L-1`` of the cell's level. ``dtype`` is NumPy's name for numbers and booleans, or "text", "category",
    "ordered category", "object" (text among numbers); ``categories`` are all it has, observed or not.
    """

    name: Hashable
    kind: str
    values: Array
    levels: tuple[Any, ...] = ()
    dtype: str = "float64"
    categories: tuple[Any, ...] = ()

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        """Where cells are missing."""
        return np.isnan(self.values)

    @property
    def complete(self) -> bool:
        """Whether no cell is missing."""
        return not self.missing.any()

    def restore(self, values: Array) -> npt.NDArray[Any]:
        """Cells on the scale of the data from numbers or codes like ``self.values``.

        Gaps come back as NaN among numbers, as None among anything else.

        Examples
        --------
        >>> dose = Column("dose", "ordinal", np.array([0.0, 1.0]), levels=(5, 10), dtype="int64")
        >>> dose.restore(np.array([1.0, 1.0, 0.0]))
        array([10, 10,  5])
        """
        gaps = np.isnan(values)
        lookup = np.array([*self.levels, None], dtype=object)
        cells = values if self.kind == "continuous" else lookup[np.where(gaps, -1, values).astype(int)]
        if self.dtype not in NUMBERS or (self.dtype == "bool" and gaps.any()):
            return cells
        if self.dtype.startswith("float") or gaps.any():
            return cells.astype(self.dtype if self.dtype.startswith("float") else float)
        return np.rint(cells.astype(float)).astype(self.dtype)


@dataclass(frozen=True, eq=False, slots=True)
class Factor:
    """The different observed cells of a column, and which of them each cell is: -1 where missing."""

    values: list[Any]
    codes: npt.NDArray[np.int64]

    @classmethod
    def of_numbers(cls, x: Array, dtype: str) -> Factor:
        """Of numbers in ascending order, as Python's own in their type."""
        seen = ~np.isnan(x)
        values, inverse = np.unique(x[seen], return_inverse=True)
        codes = np.full(len(x), -1)
        codes[seen] = inverse
        return cls(values.astype(dtype if dtype in NUMBERS else float).tolist(), codes)

    @classmethod
    def of_cells(cls, values: Sequence[Any], clean: Callable[[Any], Any]) -> Factor:
        """Of anything hashable, in order of appearance; each different cell is cleaned once."""
        raw: dict[Any, int] = {}
        codes = np.fromiter((raw.setdefault(value, len(raw)) for value in values), np.int64, len(values))
        merged: dict[Any, int] = {}
        cleaned = (clean(value) for value in raw)
        places = [-1 if value is None else merged.setdefault(value, len(merged)) for value in cleaned]
        return cls(list(merged), np.array(places, dtype=np.int64)[codes])

    def column(
        self, name: Hashable, rank: Sequence[int], kind: str | None, dtype: str, categories: tuple[Any, ...] = ()
    ) -> Column:
        """The column whose levels are in the order of ``rank``, one per value; equal ranks are one level."""
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
    """The place of each value in a declared order; 1, 1.0 and ``"1"`` are the same level."""
    place = {key(level): k for k, level in enumerate(order)}
    if len(place) < len(order):
        raise refused(name, f"has an order that names a level twice: {listing(order)}", "name every level once")
    if outside := [value for value in values if key(value) not in place]:
        raise refused(
            name,
            f"has {listing(outside)} outside its declared order",
            f"add to kinds={{{shown(name)}: [...]}} what is meant",
        )
    return [place[key(value)] for value in values]


def key(value: Any) -> Any:
    """What two spellings of a level have in common."""
    x = number(value)
    return str(value).strip() if x is None else x


def number(value: Any) -> float | int | None:
    """A number, also from text; None for other text."""
    if not isinstance(value, str):
        return _within_floats(value) if isinstance(value, int) else float(value)
    for parse in (int, float):
        try:
            x = parse(value)
        except ValueError:
            continue
        return None if "_" in value or x != x else _within_floats(x)  # Python reads 1_000 as a thousand
    return None


def _within_floats(x: float) -> float:
    """Whole numbers that no float reaches are infinite."""
    return math.inf if isinstance(x, int) and abs(x) >= 2**1000 else x


def cleaned(name: Hashable, value: Any, said: Collection[str]) -> Any:
    """A cell as text or number, None if it is missing; the words in ``said`` never are."""
    if isinstance(value, DATES):
        raise refused(name, HOLDS_DATES, COUNT_DAYS)
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str | bytes):
        text = (value if isinstance(value, str) else value.decode(errors="replace")).strip()
        return None if text in MISSING and text not in said else text
    if value is None or type(value).__name__ == "NAType":  # pandas.NA, without importing pandas
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
    """What is wrong with a column, and the way out."""
    return ValueError(f"column {shown(name)} {what}; {way}")


# Numbers looked at together: half a megabyte, which a cache holds.
CHUNK = 2**16


def spans(rows: int, columns: int) -> Iterator[slice]:
    """All columns, from left to right, as many at a time as hold :data:`CHUNK`, but at least one.

    Examples
    --------
    >>> [(span.start, span.stop) for span in spans(CHUNK // 2, 5)]
    [(0, 2), (2, 4), (4, 5)]
    """
    width = max(1, CHUNK // max(rows, 1))
    return (slice(first, min(first + width, columns)) for first in range(0, columns, width))
