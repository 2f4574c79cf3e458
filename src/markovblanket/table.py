"""Any table plus the names of its query columns in; checked numbers, query first, out.

What cannot be modelled is refused here, by name, before anything runs.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from markovblanket.contracts import Array

Name = Hashable


@dataclass(frozen=True)
class Table:
    """Finite, non-constant numbers: ``X1`` (n x p, the query) and ``X2`` (n x q, the rest), with names."""

    X1: Array
    X2: Array
    query: tuple[Name, ...]
    rest: tuple[Name, ...]


def read(table: Any, query: Any) -> Table:
    """A pandas or polars frame, or a two-dimensional array, split into query and rest.

    Raises
    ------
    ValueError
        If the table cannot be modelled; the message names the column and the way out.
    """
    names, values = named_columns(table)
    query_names, rest = split(names, query)
    columns = {name: numeric(name, column) for name, column in zip(names, values, strict=True)}
    X1, X2 = (np.column_stack([columns[name] for name in part]) for part in (query_names, rest))
    return Table(X1, X2, query_names, rest)


def read_rest(table: Any, rest: Sequence[Name]) -> Array:
    """The columns ``rest`` of a new table, in that order: what prediction needs."""
    names, values = named_columns(table)
    if len(names) == len(rest) and all(isinstance(name, int) for name in names):
        return np.column_stack([numeric(name, column) for name, column in zip(rest, values, strict=True)])
    position = {name: k for k, name in enumerate(names)}
    require(rest, names, "variable")
    return np.column_stack([numeric(name, values[position[name]]) for name in rest])


def named_columns(table: Any) -> tuple[tuple[Name, ...], list[npt.NDArray[Any]]]:
    """Names and columns of a frame; an array's columns are named by position."""
    if isinstance(table, np.ndarray):
        if table.ndim != 2:
            raise ValueError(f"a table has rows and columns; got an array of {table.ndim} dimension(s)")
        return tuple(range(table.shape[1])), list(table.T)
    try:
        frame = nw.from_native(table, eager_only=True)
    except TypeError:
        raise TypeError(
            f"a table is a pandas or polars frame or a NumPy array, not {type(table).__name__}"
        ) from None
    except nw.exceptions.DuplicateError:
        raise ValueError(f"duplicate column names: {repeated(table.columns)}; names must be unique") from None
    return coordinates(frame.columns), [column.to_numpy() for column in frame.iter_columns()]


def coordinates(names: Iterable[Name]) -> tuple[Name, ...]:
    """Names that an axis can carry: all whole numbers, or all text."""
    names = tuple(names)
    return names if all(type(name) is int for name in names) else tuple(str(name) for name in names)


def split(names: Sequence[Name], query: Any) -> tuple[tuple[Name, ...], tuple[Name, ...]]:
    """Query names as asked for, and all other names in the table's order."""
    asked = (query,) if isinstance(query, str | int | np.integer) else tuple(query)
    asked = tuple(int(name) if isinstance(name, np.integer) else name for name in asked)
    if not asked:
        raise ValueError("query is empty: name at least one column to ask about")
    if extra := repeated(asked):
        raise ValueError(f"query names {extra} more than once")
    if extra := repeated(names):
        raise ValueError(f"duplicate column names: {extra}; names must be unique")
    require(asked, names, "query")
    rest = tuple(name for name in names if name not in set(asked))
    if not rest:
        raise ValueError("every column is a query column: no variable is left to connect them to")
    return asked, rest


def require(wanted: Iterable[Name], names: Sequence[Name], role: str) -> None:
    """Refuse names that are not there, with the nearest one that is."""
    present = set(names)
    for name in wanted:
        if name not in present:
            near = difflib.get_close_matches(str(name), [str(other) for other in names], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"{role} {name!r} is not a column of the table{hint}")


def repeated(names: Iterable[Name]) -> str:
    """The names that occur more than once, for a message."""
    return ", ".join(repr(name) for name, count in Counter(names).items() if count > 1)


def numeric(name: Name, column: npt.NDArray[Any]) -> Array:
    """A column of finite numbers, or a ValueError that names it."""
    try:
        numbers = column.astype(float) if is_numeric(column) else None
    except (TypeError, ValueError):
        numbers = None
    if numbers is None:
        raise ValueError(
            f"column {name!r} is not numeric (dtype {column.dtype}); leave it out or code it as numbers"
        )
    if missing := int(np.isnan(numbers).sum()):
        raise ValueError(f"column {name!r} has {missing} missing cell(s); fill them in or leave it out")
    if np.isinf(numbers).any():
        raise ValueError(f"column {name!r} has infinite values; replace them or leave it out")
    return numbers


def is_numeric(column: npt.NDArray[Any]) -> bool:
    """Numbers and booleans, also as objects; text that looks like numbers is text."""
    if column.dtype.kind == "O":
        return not any(isinstance(value, str | bytes | complex) for value in column)
    return column.dtype.kind in "fiub"


@dataclass(frozen=True)
class Standardisation:
    """Where columns were, and how wide: ``(x - mean) / sd`` has mean 0 and mean square 1."""

    mean: Array
    sd: Array

    @classmethod
    def of(cls, X: Array, names: Sequence[Name]) -> Standardisation:
        """Of the columns of ``X``; a constant one is refused by its name."""
        if len(X) < 2:
            raise ValueError(f"the table has {len(X)} row(s); standardising its columns takes at least 2")
        reach = np.maximum(np.abs(X).max(axis=0), np.finfo(float).tiny)
        unit = X / reach  # squares of columns near 1e200 would overflow
        mean, sd = unit.mean(axis=0), unit.std(axis=0)
        # Rounding leaves a constant column a spread of about 1e-16 of its values.
        for name, width in zip(names, sd, strict=True):
            if width <= 1e-14:
                raise ValueError(f"column {name!r} is constant; leave it out")
        return cls(mean * reach, sd * reach)

    def apply(self, X: Array) -> Array:
        """Standardised columns."""
        return (X - self.mean) / self.sd
