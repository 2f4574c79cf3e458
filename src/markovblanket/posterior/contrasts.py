"""What draws say about a statement or a sum of edges, draw by draw."""

from __future__ import annotations

import operator
from collections.abc import Hashable
from functools import reduce
from typing import Any

import numpy as np
import xarray as xr

from markovblanket.contracts import Array
from markovblanket.posterior import edge_statistics
from markovblanket.posterior.statements import Edge, Magnitude, Sum, Term, read_statement, read_sum

RELATIONS: dict[str, Any] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
SCALES = ("weight", "partial_correlation")


def probability(draws: xr.Dataset, statement: str, of: str) -> float:
    """The share of draws in which every comparison of a statement holds."""
    compared = [
        RELATIONS[one.relation](values_of(draws, one.left, of), values_of(draws, one.right, of))
        for one in read_statement(statement, names_of(draws))
    ]
    return float(np.mean(reduce(np.logical_and, compared)))


def contrast(draws: xr.Dataset, expression: str, of: str) -> xr.DataArray:
    """The value of a sum of edges in each draw: (chain, draw)."""
    values = values_of(draws, read_sum(expression, names_of(draws)), of)
    coords = {dim: draws[dim].values for dim in ("chain", "draw")}
    return xr.DataArray(values, coords=coords, dims=("chain", "draw"), name=expression)


def names_of(draws: xr.Dataset) -> list[Hashable]:
    """Query and rest."""
    return [*draws["query"].values.tolist(), *draws["variable"].values.tolist()]


def values_of(draws: xr.Dataset, terms: Sum, of: str) -> Array:
    """A sum in each draw; a number is the same in all."""
    values = np.zeros((draws.sizes["chain"], draws.sizes["draw"]))
    for term in terms:
        values = values + term.factor * value_of(draws, term, of)
    return values


def value_of(draws: xr.Dataset, term: Term, of: str) -> Array | float:
    """What the factor of a term multiplies."""
    if term.of is None:
        return 1.0
    if isinstance(term.of, Magnitude):
        return np.abs(values_of(draws, term.of.inner, of))
    return edge_values(draws, term.of, of)


def edge_values(draws: xr.Dataset, edge: Edge, of: str) -> Array:
    """An edge in each draw, from ``W11`` if both ends are query variables; the ends in either order."""
    if of not in SCALES:
        raise ValueError(f"of={of!r}: known are {', '.join(map(repr, SCALES))}")
    place = {name: k for k, name in enumerate(draws["query"].values.tolist())}
    first, second = edge if edge[0] in place else edge[::-1]
    if first == second or first not in place:
        why = "no variable is connected to itself" if first == second else "neither of them is a query variable"
        raise ValueError(f"{edge[0]}~{edge[1]} is no edge of this posterior: {why}")
    if second in place:
        return among_query(draws["W11"].values, place[first], place[second], of)
    return np.asarray(edge_statistics.draws_of_edge(draws, first, second, of).values, dtype=float)


def among_query(W11: Array, i: int, j: int, of: str) -> Array:
    """``w_ij``, or ``-w_ij / sqrt(w_ii w_jj)``."""
    weight = W11[:, :, i, j]
    return weight if of == "weight" else -weight / np.sqrt(W11[:, :, i, i] * W11[:, :, j, j])
