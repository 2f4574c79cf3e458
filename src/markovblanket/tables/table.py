"""Any table plus the names of its query columns in; checked columns, query first, out.

What cannot be modelled is refused here, by name, before anything runs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from markovblanket.contracts import Array
from markovblanket.tables._frames import Cells, Source, shown, take_apart
from markovblanket.tables.columns import Column, cleaned, number, refused, spans
from markovblanket.tables.kinds import KINDS, Declared, columns
from markovblanket.tables.names import (
    Name,
    coordinates,
    names_asked,
    refuse_repeated,
    require,
    spelled,
    split,
)


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
    """Any table with its columns' kinds, inferred by the rules of :mod:`markovblanket.tables.kinds` or declared.

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
    declared = _checked_kinds({} if kinds is None else kinds)
    words = {str(level) for order in declared.values() if not isinstance(order, str) for level in order}
    source = take_apart(table, {*asked, *declared}, words)
    names = coordinates(source.names)
    _check_size(source)
    declared = dict(zip(spelled(declared, names, "kinds:"), declared.values(), strict=True))
    require(spelled(asked, names, "query"), (*names, *source.offered), "query")
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


def _checked_kinds(kinds: Mapping[Any, Declared]) -> dict[Name, Declared]:
    """Declared kinds that exist, and declared orders as tuples."""
    if not isinstance(kinds, Mapping):
        raise TypeError(f"kinds={shown(kinds)}: must be a dict, such as {{'stage': 'ordinal'}}")
    for name, kind in kinds.items():
        if kind not in KINDS if isinstance(kind, str) else not isinstance(kind, Sequence | np.ndarray):
            raise ValueError(
                f"kinds={{{shown(name)}: {shown(kind)}}}: a kind is one of {KINDS}, or a list of levels in order"
            )
        if nested := [level for level in kind if not isinstance(level, str | Real | Decimal | np.bool_)]:
            raise ValueError(
                f"kinds={{{shown(name)}: [...]}}: a level is text or a number, not {shown(nested[0])}"
            )
    return {
        int(name) if isinstance(name, np.integer) else name: kind if isinstance(kind, str) else tuple(kind)
        for name, kind in kinds.items()
    }


def _check_size(source: Source) -> None:
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
    """Any table of numbers, split into query and rest.

    Raises
    ------
    ValueError
        If the table cannot be modelled; the message names the column and the way out.
    """
    asked = names_asked(query)
    source = take_apart(table, set(asked))
    names = coordinates(source.names)
    _check_size(source)
    query_names, rest = split(names, asked)
    X1, X2 = (np.empty((source.rows, len(part))) for part in (query_names, rest))
    place = dict(zip((*query_names, *rest), (*X1.T, *X2.T), strict=True))
    dtypes: dict[Name, str] = {}
    for name, numbers, dtype in _numbers_in(source, names):
        place[name][:], dtypes[name] = numbers, dtype
    return Table(X1, X2, query_names, rest, names, row_names(table, len(X1)), dtypes)


def read_numbers(table: Any, asked: Sequence[Name]) -> MixedTable:
    """The same, with all columns in the rest; those ``asked`` for must be there."""
    source = take_apart(table, set(asked))
    names = coordinates(source.names)
    _check_size(source)
    require(spelled(asked, names, "query"), (*names, *source.offered), "query")
    refuse_repeated(names)
    found = {name: Column(name, "continuous", x, dtype=dtype) for name, x, dtype in _numbers_in(source, names)}
    return MixedTable(tuple(found[name] for name in names), (), names, names, row_names(table, source.rows))


def _numbers_in(source: Source, names: Sequence[Name]) -> Iterator[tuple[Name, Array, str]]:
    """Every column as finite numbers: its name, they, and what type they had."""
    for block in source.blocks:
        for position, column in zip(block.positions, block.numbers.T, strict=True):
            yield names[position], _finite(names[position], column), block.dtype
    for cells in source.cells:
        yield names[cells.position], _numeric(names[cells.position], cells), "float64"


def _numeric(name: Name, cells: Cells) -> Array:
    """A column of anything as finite numbers; text that looks like numbers is text."""
    values = [cleaned(name, value, ()) for value in cells.values]
    if words := [value for value in values if isinstance(value, str)]:
        raise refused(name, f"is not numeric (it holds {shown(words[0])})", "leave it out or code it as numbers")
    return _finite(name, np.array([np.nan if value is None else number(value) for value in values], dtype=float))


def _finite(name: Name, column: npt.NDArray[Any]) -> Array:
    """A column of finite numbers, or a ValueError that names it."""
    numbers = column.astype(float)
    if missing := int(np.isnan(numbers).sum()):
        raise refused(name, f"has {missing} missing cell(s)", "fill them in or leave it out")
    if np.isinf(numbers).any():
        raise refused(name, "has infinite values", "replace them or leave it out")
    return numbers


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
                raise ValueError(
                    f"column {shown(name)} is constant, to rounding; leave it out or subtract an offset"
                )
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
