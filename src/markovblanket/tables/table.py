"""Tables ready for a model: checked columns, those of the query first, and their standardisation.

A column that cannot be modelled is refused here, by name, before anything runs.
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
from markovblanket.tables._frames import Cells, Source, take_apart
from markovblanket.tables.columns import Column, cleaned, number, refused, shown, spans
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
    """Columns of any kind, perhaps with missing cells: the query first, the rest in the table's order.

    ``order`` has all column names in the order of the table, and ``rows`` the names of its rows.
    """

    columns: tuple[Column, ...]
    query: tuple[Name, ...]
    rest: tuple[Name, ...]
    order: tuple[Name, ...]
    rows: Any

    @property
    def n(self) -> int:
        """Number of rows of the table."""
        return len(self.columns[0].values)

    def describe(self) -> list[dict[str, Any]]:
        """Describe each column by its name, role, kind, number of levels and number of missing cells."""
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


# Columns of any kind ----------------------------------------------------------------------------------


def read_mixed(table: Any, query: Any, kinds: Mapping[Any, Declared] | None = None) -> MixedTable:
    """Read a table of columns of any kind, inferred by the rules of :mod:`markovblanket.tables.kinds` or declared.

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
        Codes and numbers, with NaN for missing cells, and what is needed to restore the cells.

    Raises
    ------
    ValueError
        If the table cannot be modelled; the message names the column and says what to do.

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
    """Read a table of columns of any kind with all columns in the rest; those ``asked`` for must exist."""
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
    """Return a table with other variables as its query."""
    chosen, rest = split(table.order, query)
    column = {column.name: column for column in table.columns}
    return replace(table, columns=tuple(column[name] for name in (*chosen, *rest)), query=chosen, rest=rest)


def row_names(table: Any, rows: int) -> Any:
    """Return the index of a pandas frame, or the positions of the rows of any other table."""
    index = getattr(table, "index", None)
    return np.arange(rows) if index is None or callable(index) else index  # str.index is a method


def _checked_kinds(kinds: Mapping[Any, Declared]) -> dict[Name, Declared]:
    """Check declared kinds, and return declared orders as tuples."""
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
    """Refuse a table that is empty or has one row."""
    if not source.names or not source.rows:
        raise ValueError(f"the table is empty: {source.rows} row(s) and {len(source.names)} column(s)")
    if source.rows < 2:
        raise ValueError("the table has 1 row; at least 2 are needed")


# Tables of numbers ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    """A table of finite numbers: ``X1`` (n x p, the query) and ``X2`` (n x q, the rest), with names."""

    X1: Array
    X2: Array
    query: tuple[Name, ...]
    rest: tuple[Name, ...]
    order: tuple[Name, ...]
    rows: Any
    dtypes: Mapping[Name, str]

    def as_mixed(self) -> MixedTable:
        """Return the table as a `MixedTable` whose columns are all continuous."""
        values = (*self.X1.T, *self.X2.T)
        names = (*self.query, *self.rest)
        columns = tuple(
            Column(name, "continuous", x, dtype=self.dtypes.get(name, "float64"))
            for name, x in zip(names, values, strict=True)
        )
        return MixedTable(columns, self.query, self.rest, self.order, self.rows)


def read(table: Any, query: Any) -> Table:
    """Read a table of finite numbers, split into query and rest.

    Raises
    ------
    ValueError
        If the table cannot be modelled; the message names the column and says what to do.
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
    """Read a table of finite numbers without a query, all columns in the rest; those ``asked`` for must exist."""
    source = take_apart(table, set(asked))
    names = coordinates(source.names)
    _check_size(source)
    require(spelled(asked, names, "query"), (*names, *source.offered), "query")
    refuse_repeated(names)
    found = {name: Column(name, "continuous", x, dtype=dtype) for name, x, dtype in _numbers_in(source, names)}
    return MixedTable(tuple(found[name] for name in names), (), names, names, row_names(table, source.rows))


def _numbers_in(source: Source, names: Sequence[Name]) -> Iterator[tuple[Name, Array, str]]:
    """Yield the name of each column, its finite numbers, and the type that they had."""
    for block in source.blocks:
        for position, column in zip(block.positions, block.numbers.T, strict=True):
            yield names[position], _finite(names[position], column), block.dtype
    for cells in source.cells:
        yield names[cells.position], _numeric(names[cells.position], cells), "float64"


def _numeric(name: Name, cells: Cells) -> Array:
    """Return a column of cells as finite numbers; text is refused, even if it is spelled as numbers."""
    values = [cleaned(name, value, ()) for value in cells.values]
    if words := [value for value in values if isinstance(value, str)]:
        raise refused(name, f"is not numeric (it holds {shown(words[0])})", "leave it out or code it as numbers")
    return _finite(name, np.array([np.nan if value is None else number(value) for value in values], dtype=float))


def _finite(name: Name, column: npt.NDArray[Any]) -> Array:
    """Return a column as floats; refuse missing and infinite cells."""
    numbers = column.astype(float)
    if missing := int(np.isnan(numbers).sum()):
        raise refused(name, f"has {missing} missing cell(s)", "fill them in or leave it out")
    if np.isinf(numbers).any():
        raise refused(name, "has infinite values", "replace them or leave it out")
    return numbers


# Standardisation --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Standardisation:
    """Means and standard deviations of columns: ``(x - mean) / sd`` has mean 0 and mean square 1."""

    mean: Array
    sd: Array

    @classmethod
    def of(cls, X: Array, names: Sequence[Name]) -> Standardisation:
        """Return the standardisation of the columns of ``X``; a constant one is refused by name."""
        if len(X) < 2:
            raise ValueError(f"the table has {len(X)} row(s); standardising its columns takes at least 2")
        if not X.shape[1]:
            return cls(np.empty(0), np.empty(0))
        parts = [_spread(X[:, span]) for span in spans(*X.shape)]
        reach, mean, sd = (np.concatenate(part) for part in zip(*parts, strict=True))
        # Rounding leaves a constant column a spread of about 1e-16 of its values.
        for name, width in zip(names, sd, strict=True):
            if width <= 1e-14:
                raise ValueError(
                    f"column {shown(name)} is constant up to rounding; leave it out or subtract an offset"
                )
        return cls(mean * reach, sd * reach)

    def apply(self, X: Array) -> Array:
        """Return the columns of ``X``, standardised."""
        Z = X - self.mean
        Z /= self.sd
        return Z


def _spread(X: Array) -> tuple[Array, Array, Array]:
    """Return the largest magnitude of each column and, in units of it, mean and standard deviation."""
    reach = np.maximum(np.abs(X).max(axis=0), np.finfo(float).tiny)
    unit = X / reach  # squares of columns near 1e200 would overflow
    return reach, unit.mean(axis=0), unit.std(axis=0)
