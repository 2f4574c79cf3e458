"""Margins: how the cells of a column that moves are drawn, given that they are normal.

A :class:`Gaps` column keeps the scores of what was observed; a :class:`Levels` column is known by its order alone,
the extended rank likelihood of Hoff (2007). Columns are drawn one after the other in compiled code, to which a
margin is two arrays: ``rows``, first the missing ones and then, level after level, the observed ones; and
``edges``, where in ``rows`` each level begins and the last one ends. Observed cells without levels stay.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy import special, stats

from markovblanket.contracts import Array
from markovblanket.model.copula import _cut_points
from markovblanket.variates import truncated_normal

Indices = npt.NDArray[np.intp]


class Margin(Protocol):
    """How the cells of a moving column are drawn."""

    @property
    def missing(self) -> Indices:
        """Rows without an observation."""

    @property
    def rows(self) -> Indices:
        """Rows that move: the missing ones, then level after level."""

    @property
    def edges(self) -> Indices:
        """Where the levels begin and end in ``rows``."""

    @property
    def unit(self) -> bool:
        """Whether the column is brought to mean square 1 after it was drawn."""


@dataclass(frozen=True)
class Gaps:
    """Observed cells stay; the missing ones are normal."""

    missing: Indices

    @property
    def rows(self) -> Indices:
        """The missing ones."""
        return self.missing

    @property
    def edges(self) -> Indices:
        """No levels."""
        return np.array([len(self.missing)])

    @property
    def unit(self) -> bool:
        """The observed cells have a scale."""
        return False


@dataclass(frozen=True)
class Levels:
    """A column known by its order alone: ``codes`` 0, 1, ... from the lowest level up, -1 where missing.

    Ranks say nothing about its scale, but the prior does; it drifts unless brought to mean square 1, ``unit``.
    """

    codes: Indices
    unit: bool = True

    @cached_property
    def missing(self) -> Indices:
        """Rows without an observation."""
        return np.flatnonzero(self.codes < 0)

    @cached_property
    def rows(self) -> Indices:
        """All, in the order of their codes."""
        return np.argsort(self.codes, kind="stable")

    @cached_property
    def edges(self) -> Indices:
        """Where each code begins."""
        return np.searchsorted(self.codes[self.rows], np.arange(self.codes.max() + 2))


class Moving(NamedTuple):
    """The moving ones of some columns, for compiled code: margins laid end to end.

    Column ``places[k]`` has the rows from ``first_row[k]`` to ``first_row[k + 1]``, and its edges likewise.
    """

    places: Indices
    rows: Indices
    first_row: Indices
    edges: Indices
    first_edge: Indices
    unit: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, margins: Mapping[int, Margin]) -> Moving:
        """Margins by the positions of their columns."""
        rows, edges = [m.rows for m in margins.values()], [m.edges for m in margins.values()]
        unit = np.array([m.unit for m in margins.values()], dtype=bool)
        return cls(np.fromiter(margins, dtype=np.intp), *_end_to_end(rows), *_end_to_end(edges), unit)


def _end_to_end(parts: list[Indices]) -> tuple[Indices, Indices]:
    """All parts as one array, and where each begins and the last one ends."""
    return np.concatenate(parts).astype(np.intp), np.cumsum([0, *map(len, parts)], dtype=np.intp)


@njit(cache=True)
def draw(rng: np.random.Generator, X: Array, linear: Array, W: Array, moving: Moving) -> None:
    """Moving columns of X in turn, in place: ``x_k ~ N(-(linear_k + X_-k w_-k) / w_kk, 1 / w_kk)``.

    Rows of X have precision W and linear terms ``linear``; margins say where cells are allowed to be.

    Parameters
    ----------
    rng : numpy.random.Generator
        The source of randomness.
    X, linear : numpy.ndarray
        n x d.
    W : numpy.ndarray
        d x d.
    moving : Moving
        Which columns move, and their margins.

    Examples
    --------
    >>> X, moving = np.array([[-1.0, 0.3], [1.0, 0.2]]), Moving.of({0: Levels(np.array([0, 1]))})
    >>> draw(np.random.default_rng(0), X, np.zeros((2, 2)), np.eye(2), moving)
    >>> bool(X[0, 0] < X[1, 0] and (X[:, 1] == [0.3, 0.2]).all())
    True
    """
    for m, k in enumerate(moving.places):
        rows = moving.rows[moving.first_row[m] : moving.first_row[m + 1]]
        edges = moving.edges[moving.first_edge[m] : moving.first_edge[m + 1]]
        mean = X[:, k] - (linear[:, k] + np.dot(X, W[k])) / W[k, k]
        X[:, k] = draw_column(rng, X[:, k].copy(), mean, W[k, k] ** -0.5, rows, edges, moving.unit[m])


@njit(cache=True)
def draw_column(
    rng: np.random.Generator, x: Array, mean: Array, sd: float, rows: Indices, edges: Indices, unit: bool
) -> Array:
    """The missing cells; and if there are levels their cells, then their cut points, then, if asked, the scale."""
    x = x.copy()
    for i in rows[: edges[0]]:
        x[i] = mean[i] + sd * rng.standard_normal()
    if len(edges) == 1:
        return x
    observed, begins, mean = rows[edges[0] :], edges - edges[0], mean[rows[edges[0] :]]
    cells = draw_ordered(rng, x[observed], mean, sd, begins)
    cells = _cut_points.move(rng, cells, mean, sd, begins)
    for k, i in enumerate(observed):
        x[i] = cells[k]
    return x / np.sqrt(np.mean(x * x)) if unit else x


@njit(cache=True)
def draw_ordered(rng: np.random.Generator, x: Array, mean: Array, sd: float, edges: Indices) -> Array:
    """Cells level after level, ``x_i ~ N(mean_i, sd^2)``, between the extremes of the levels next to their own."""
    x, lower = x.copy(), -np.inf
    for k in range(len(edges) - 1):
        upper = x[edges[k + 1] : edges[k + 2]].min() if k + 2 < len(edges) else np.inf
        for i in range(edges[k], edges[k + 1]):
            x[i] = mean[i] + sd * truncated_normal.between(rng, (lower - mean[i]) / sd, (upper - mean[i]) / sd)
            x[i] = min(max(x[i], lower), upper)  # rounding must not change the order
        lower = x[edges[k] : edges[k + 1]].max()
    return x


def normal_scores(values: Array) -> Array:
    """``Phi^-1(rank / (n + 1))`` of every column, ties shared, then to mean 0 and mean square 1.

    Examples
    --------
    >>> import numpy as np
    >>> normal_scores(np.array([[10.0], [300.0], [20.0]])).ravel().round(2)
    array([-1.22,  1.22,  0.  ])
    """
    z = special.ndtri(stats.rankdata(values, axis=0) / (len(values) + 1))
    z = z - z.mean(axis=0)
    return z / np.sqrt(np.mean(z**2, axis=0))


def moving_column(values: Array, continuous: bool) -> tuple[Array, Margin]:
    """First values and margin of a column that moves: numbers or codes of levels, NaN where missing."""
    observed = ~np.isnan(values)
    x = np.zeros(len(values))
    x[observed] = normal_scores(values[observed, None])[:, 0]
    if continuous:
        return x, Gaps(np.flatnonzero(~observed))
    codes = np.full(len(values), -1)
    codes[observed] = np.unique(values[observed], return_inverse=True)[1]
    return x, Levels(codes)
