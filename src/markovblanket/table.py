"""Any table plus the names of its query columns in; checked columns, query first, out.

What cannot be modelled is refused here, by name, before anything runs.
"""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from markovblanket.contracts import Array
from markovblanket.kinds import KINDS, Declared, columns
from markovblanket.levels import Column
from markovblanket.reading import NUMBERS, Source, frame_of, repeated, take_apart
from markovblanket.spans import spans

Name = Hashable


@dataclass(frozen=True, eq=False)
class MixedTable:
    """Columns of several kinds, some cells missing: those of the query first, the rest in the table's order.

    ``order`` has all names as the table had them, and ``rows`` the names of its rows.
    """

    columns: tuple[Column, ...]
    query: tuple[Name, ...]
    rest: tuple[Name, ...]
    order: tuple[Name, ...]
    rows: Any

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.columns[0].values)

    def describe(self) -> list[dict[str, Any]]:
        """A row per column, as understood: name, role, kind, number of levels, number of missing cells."""
        roles = ("query",) * len(self.query) + ("rest",) * len(self.rest)
        return [
            {
                "name": column.name,
                "role": role,
                "kind": column.kind,
                "levels": len(column.levels),
                "missing": int(column.missing.sum()),
            }
            for column, role in zip(self.columns, roles, strict=True)
        ]


def read_mixed(table: Any, query: Any, kinds: Mapping[Any, Declared] | None = None) -> MixedTable:
    """Any table with its columns' kinds, inferred by the rules of :mod:`markovblanket.kinds` or declared.

    Parameters
    ----------
    table : pandas or polars frame, numpy.ndarray, str or pathlib.Path
        A row per observation; a path ends in .csv, .tsv (also .gz), .parquet, .feather or .h5ad, where columns of
        ``obs`` take part if ``query`` or ``kinds`` names them.
    query : list of names
        The few variables of interest; positions for an array.
    kinds : dict, optional
        By name: ``"continuous"``, ``"binary"``, ``"ordinal"``, ``"count"``, or the list of levels in order.

    Returns
    -------
    MixedTable
        Codes and numbers with NaN for missing cells, and what it takes to give the cells back.

    Raises
    ------
    ValueError
        If the table cannot be modelled; the message names the column and the way out.

    Examples
    --------
    >>> cells = np.array([["II", 61, "f"], ["I", None, "m"], ["III", 48, "f"]], dtype=object)
    >>> table = read_mixed(cells, query=0, kinds={0: ["I", "II", "III"]})
    >>> [column.kind for column in table.columns]
    ['ordinal', 'binary', 'binary']
    >>> table.columns[0].values, table.columns[1].levels
    (array([1., 0., 2.]), (48, 61))
    """
    asked = names_asked(query)
    return about(read_whole(table, asked, kinds), asked)


def read_whole(table: Any, asked: Sequence[Name], kinds: Mapping[Any, Declared] | None = None) -> MixedTable:
    """The same with all columns in the rest; those ``asked`` for must be there."""
    declared = checked_kinds(kinds or {})
    words = {str(level) for order in declared.values() if not isinstance(order, str) for level in order}
    source = take_apart(table, {*asked, *declared}, words)
    names = coordinates(source.names)
    check_size(source)
    require(asked, (*names, *source.offered), "query")
    refuse_repeated(names)
    require(declared, (*names, *source.offered), "kinds:")
    return MixedTable(tuple(columns(source, names, declared)), (), names, names, row_names(table, source.rows))


def about(table: MixedTable, query: Any) -> MixedTable:
    """The same table with these variables as its query."""
    chosen, rest = split(table.order, query)
    column = {column.name: column for column in table.columns}
    return replace(table, columns=tuple(column[name] for name in (*chosen, *rest)), query=chosen, rest=rest)


def row_names(table: Any, rows: int) -> Any:
    """The index of a pandas frame, as it is; positions otherwise."""
    index = getattr(table, "index", None)
    return np.arange(rows) if index is None or callable(index) else index  # a text's index is a method


def checked_kinds(kinds: Mapping[Any, Declared]) -> dict[Name, Declared]:
    """Declared kinds that exist, and declared orders as tuples."""
    for name, kind in kinds.items():
        if kind not in KINDS if isinstance(kind, str) else not isinstance(kind, Sequence | np.ndarray):
            raise ValueError(
                f"kinds={{{name!r}: {kind!r}}}: a kind is one of {KINDS}, or a list of levels in order"
            )
    return {
        int(name) if isinstance(name, np.integer) else name: kind if isinstance(kind, str) else tuple(kind)
        for name, kind in kinds.items()
    }


def check_size(source: Source) -> None:
    """Refuse tables too small to hold variation."""
    if not source.names or not source.rows:
        raise ValueError(f"the table is empty: {source.rows} row(s) and {len(source.names)} column(s)")
    if source.rows < 2:
        raise ValueError("the table has 1 row; columns that vary take at least 2")


@dataclass(frozen=True)
class Table:
    """Finite, non-constant numbers: ``X1`` (n x p, the query) and ``X2`` (n x q, the rest), with names."""

    X1: Array
    X2: Array
    query: tuple[Name, ...]
    rest: tuple[Name, ...]
    order: tuple[Name, ...]
    rows: Any
    dtypes: Mapping[Name, str]

    def as_mixed(self) -> MixedTable:
        """The same, every column continuous."""
        values = (*self.X1.T, *self.X2.T)
        names = (*self.query, *self.rest)
        columns = tuple(
            Column(name, "continuous", x, dtype=self.dtypes.get(name, "float64"))
            for name, x in zip(names, values, strict=True)
        )
        return MixedTable(columns, self.query, self.rest, self.order, self.rows)


def read(table: Any, query: Any) -> Table:
    """A pandas or polars frame, or a two-dimensional array, split into query and rest.

    Raises
    ------
    ValueError
        If the table cannot be modelled; the message names the column and the way out.
    """
    names, values = named_columns(table)
    query_names, rest = split(names, query)
    X1, X2 = (np.empty((len(values[0]), len(part))) for part in (query_names, rest))
    place = dict(zip((*query_names, *rest), (*X1.T, *X2.T), strict=True))
    for name, column in zip(names, values, strict=True):
        place[name][:] = numeric(name, column)
    dtypes = {name: column.dtype.name for name, column in zip(names, values, strict=True)}
    plain = {name: dtype for name, dtype in dtypes.items() if dtype in NUMBERS}
    return Table(X1, X2, query_names, rest, names, row_names(table, len(X1)), plain)


def named_columns(table: Any) -> tuple[tuple[Name, ...], list[npt.NDArray[Any]]]:
    """Names and columns of a frame; an array's columns are named by position."""
    if isinstance(table, np.ma.MaskedArray):
        table = np.ma.filled(table.astype(float), np.nan)
    if isinstance(table, np.ndarray):
        table = np.asarray(table)
        if table.ndim != 2:
            raise ValueError(f"a table has rows and columns; got an array of {table.ndim} dimension(s)")
        return tuple(range(table.shape[1])), list(table.T)
    frame = frame_of(table)
    return coordinates(frame.columns), [column.to_numpy() for column in frame.iter_columns()]


def coordinates(names: Iterable[Name]) -> tuple[Name, ...]:
    """Names that an axis can carry: all whole numbers, or all text."""
    names = tuple(int(name) if isinstance(name, np.integer) else name for name in names)
    return names if all(type(name) is int for name in names) else tuple(str(name) for name in names)


def split(names: Sequence[Name], query: Any) -> tuple[tuple[Name, ...], tuple[Name, ...]]:
    """Query names as asked for, and all other names in the table's order."""
    asked = names_asked(query)
    if not all(isinstance(name, int) for name in names):
        asked = tuple(str(name) for name in asked)  # as the columns' own names were turned to text
    if not asked:
        raise ValueError("query is empty: name at least one column to ask about")
    if extra := repeated(asked):
        raise ValueError(f"query names {extra} more than once")
    refuse_repeated(names)
    require(asked, names, "query")
    chosen = set(asked)
    rest = tuple(name for name in names if name not in chosen)
    if not rest:
        raise ValueError("every column is a query column: no variable is left to connect them to")
    return asked, rest


def refuse_repeated(names: Iterable[Name]) -> None:
    """Refuse a table whose columns cannot be told apart."""
    if extra := repeated(names):
        raise ValueError(f"duplicate column names: {extra}; names must be unique")


def names_asked(query: Any) -> tuple[Name, ...]:
    """One name or several: text, or whole numbers."""
    several = isinstance(query, Iterable) and not isinstance(query, str)
    asked = tuple(int(name) if isinstance(name, np.integer) else name for name in (query if several else (query,)))
    for name in asked:
        if isinstance(name, bool | np.bool_ | float) or not isinstance(name, Hashable):
            raise ValueError(f"query {name!r}: name columns by their names, or by position in an array")
    return asked


def require(wanted: Iterable[Name], names: Sequence[Name], role: str) -> None:
    """Refuse names that are not there, with the nearest one that is."""
    present = set(names)
    for name in wanted:
        if name not in present:
            near = difflib.get_close_matches(str(name), [str(other) for other in names], n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            raise ValueError(f"{role} {name!r} is not a column of the table{hint}")


def numeric(name: Name, column: npt.NDArray[Any]) -> Array:
    """A column of finite numbers, or a ValueError that names it."""
    try:
        numbers = column.astype(float) if is_numeric(column) else None
    except (TypeError, ValueError, OverflowError):
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
        parts = [_spread(X[:, span]) for span in spans(*X.shape)]
        reach, mean, sd = (np.concatenate(part) for part in zip(*parts, strict=True))
        # Rounding leaves a constant column a spread of about 1e-16 of its values.
        for name, width in zip(names, sd, strict=True):
            if width <= 1e-14:
                raise ValueError(f"column {name!r} is constant, to rounding; leave it out or subtract an offset")
        return cls(mean * reach, sd * reach)

    def apply(self, X: Array) -> Array:
        """Standardised columns."""
        Z = X - self.mean
        Z /= self.sd
        return Z


def _spread(X: Array) -> tuple[Array, Array, Array]:
    """The largest size in each column; and in units of it, mean and standard deviation."""
    reach = np.maximum(np.abs(X).max(axis=0), np.finfo(float).tiny)
    unit = X / reach  # squares of columns near 1e200 would overflow
    return reach, unit.mean(axis=0), unit.std(axis=0)
