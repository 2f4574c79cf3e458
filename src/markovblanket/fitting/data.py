"""What is given: a table, or a scatter matrix, as the model takes it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from markovblanket.contracts import Array, Scatter
from markovblanket.model.copula.latent import Copula
from markovblanket.model.scatter import checked, from_columns, from_matrix
from markovblanket.tables.columns import Column
from markovblanket.tables.names import Name, coordinates, split
from markovblanket.tables.table import MixedTable, Standardisation, read, read_mixed


@dataclass(frozen=True)
class Given:
    """The data as the model takes them, whatever door they came through; a scatter ``matrix`` also as it was."""

    scatter: Scatter
    query: tuple[Name, ...]
    rest: tuple[Name, ...]
    fingerprint: str
    table: MixedTable
    latent: Copula | None = None
    margins: str = "gaussian"
    matrix: Array | None = None


def understood(
    table: Any,
    query: Any,
    margins: str,
    kinds: Mapping[Any, Any] | None,
    scatter: npt.ArrayLike | None,
    n: int | None,
    names: Sequence[Any] | None,
) -> Given:
    """Either a table, or a scatter matrix with its number of rows."""
    if query is None:
        raise ValueError("query is missing: name the variables to ask about")
    if (table is None) == (scatter is None):
        raise ValueError("give either a table or scatter=..., n=..., and not both")
    if scatter is not None and (margins not in ("auto", "gaussian") or kinds is not None):
        raise ValueError("margins and kinds are about tables; a scatter matrix is taken as given")
    if scatter is not None:
        return from_scatter(scatter, n, query, names)
    if n is not None or names is not None:
        raise ValueError("n and names belong to scatter=...; a table brings its own")
    if margins in ("auto", "rank"):
        return _from_mixed(table, query, kinds, margins)
    if margins != "gaussian":
        raise ValueError(f"margins={margins!r}: known are 'auto', 'rank' and 'gaussian'")
    if kinds is not None:
        raise ValueError("kinds belong to a copula: pass margins='auto' or 'rank'")
    return from_table(table, query)


def from_table(table: Any, query: Any) -> Given:
    """Columns standardised to mean 0 and mean square 1."""
    data = read(table, query)
    X1, X2 = (Standardisation.of(X, names).apply(X) for X, names in ((data.X1, data.query), (data.X2, data.rest)))
    return Given(from_columns(X1, X2), data.query, data.rest, fingerprint_of(data.X1, data.X2), data.as_mixed())


def as_they_are(table: MixedTable) -> Given:
    """The same, of a table that was read before."""
    given = from_table(np.column_stack([column.values for column in table.columns]), list(range(len(table.query))))
    return replace(given, query=table.query, rest=table.rest, table=table)


def _from_mixed(table: Any, query: Any, kinds: Mapping[Any, Any] | None, margins: str) -> Given:
    """A Gaussian copula of columns of any kind, with gaps."""
    return in_copula(read_mixed(table, query, kinds), margins)


def in_copula(data: MixedTable, margins: str) -> Given:
    """The same, of a table whose kinds are known."""
    copula = Copula.of(data.columns, len(data.query), by_rank=margins == "rank")
    latent = copula if copula.moves else None
    scatter = copula.scatter(copula.start()) if copula.moves else from_columns(copula.X1, copula.X2)
    fingerprint = fingerprint_of(*(column.values for column in data.columns))
    return Given(scatter, data.query, data.rest, fingerprint, data, latent, margins)


def from_scatter(matrix: Any, n: int | None, query: Any, names: Sequence[Any] | None) -> Given:
    """A scatter matrix as given, query first; a frame brings its names."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 1 <= n < 2**53:
        raise ValueError(
            f"n={n!r}: a scatter matrix needs its number of rows, a whole number, at least 1 and below 2^53"
        )
    _refuse_other_order(matrix)
    names = getattr(matrix, "columns", None) if names is None else names
    S = checked(matrix)
    labels = coordinates(range(len(S)) if names is None else names)
    if len(labels) != len(S):
        raise ValueError(f"{len(labels)} names for a scatter matrix of {len(S)} variables")
    chosen, rest = split(labels, query)
    place = {name: k for k, name in enumerate(labels)}
    order = [place[name] for name in (*chosen, *rest)]
    scatter = from_matrix(S[np.ix_(order, order)], int(n), len(chosen))
    rowless = tuple(Column(name, "continuous", np.empty(0)) for name in (*chosen, *rest))
    table = MixedTable(rowless, chosen, rest, labels, np.arange(0))
    return Given(scatter, chosen, rest, fingerprint_of(S), table, matrix=S)


def _refuse_other_order(matrix: Any) -> None:
    """A frame whose rows have the names of its columns has them in the same order."""
    if not hasattr(matrix, "index") or not hasattr(matrix, "columns"):
        return
    rows, columns = list(matrix.index), list(matrix.columns)
    if rows != columns and set(rows) == set(columns):
        raise ValueError("the scatter matrix has its rows in another order than its columns; give both the same")


def fingerprint_of(*arrays: Array) -> str:
    """A hash by which the same data are known again."""
    found = hashlib.sha256()
    for array in arrays:
        found.update(str(array.shape).encode())
        found.update(np.ascontiguousarray(array).reshape(-1).data)
    return found.hexdigest()


def digest(text: str) -> str:
    """The same of words."""
    return hashlib.sha256(text.encode()).hexdigest()
