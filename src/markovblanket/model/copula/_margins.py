"""Margins of the moving columns: how the observed data constrain their latent cells, and draws of these cells.

A :class:`Gaps` column keeps the normal scores of its observed cells; a :class:`Levels` column uses the order of
the data alone, by the extended rank likelihood of Hoff (2007). Columns are drawn one after the other in compiled
code, in which a margin consists of two arrays: ``rows``, first the missing ones and then, level after level, the
observed ones; and ``edges``, the positions in ``rows`` where each level begins and the last one ends. Observed
cells without levels stay fixed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy import special, stats

from markovblanket.contracts import Array
from markovblanket.model.copula import _cut_points, _unit_scale
from markovblanket.variates import truncated_normal

Indices = npt.NDArray[np.intp]


class Margin(Protocol):
    """Constraints on the latent cells of a moving column."""

    @property
    def missing(self) -> Indices:
        """Rows in which the column is missing."""

    @property
    def rows(self) -> Indices:
        """Rows whose cells move: the missing ones, then those of each level in turn."""

    @property
    def edges(self) -> Indices:
        """Positions in ``rows`` where each level begins, and where the last one ends."""

    @property
    def unit(self) -> bool:
        """Whether the column has mean square 1."""


@dataclass(frozen=True)
class Gaps:
    """Margin of a continuous column: observed cells stay fixed, missing ones are normal."""

    missing: Indices

    @property
    def rows(self) -> Indices:
        """Rows whose cells move: the missing ones."""
        return self.missing

    @property
    def edges(self) -> Indices:
        """End of the missing rows; there are no levels."""
        return np.array([len(self.missing)])

    @property
    def unit(self) -> bool:
        """False, because the observed cells determine the scale."""
        return False


@dataclass(frozen=True)
class Levels:
    """Margin of a column known by its order alone: ``codes`` 0, 1, ... from the lowest level up, -1 where missing.

    The order does not determine the scale of the column, which would drift towards what the prior favours; if
    ``unit``, the column has mean square 1 (:mod:`markovblanket.model.copula._unit_scale`).
    """

    codes: Indices
    unit: bool = True

    @cached_property
    def missing(self) -> Indices:
        """Rows in which the column is missing."""
        return np.flatnonzero(self.codes < 0)

    @cached_property
    def rows(self) -> Indices:
        """All rows, in the order of their codes, missing ones first."""
        return np.argsort(self.codes, kind="stable")

    @cached_property
    def edges(self) -> Indices:
        """Positions in ``rows`` where each level begins, and where the last one ends."""
        return np.searchsorted(self.codes[self.rows], np.arange(self.codes.max() + 2))


class Moving(NamedTuple):
    """Margins of several moving columns, concatenated for compiled code.

    Column ``places[k]`` has the rows from ``first_row[k]`` to ``first_row[k + 1]``, and the edges from
    ``first_edge[k]`` to ``first_edge[k + 1]``.
    """

    places: Indices
    rows: Indices
    first_row: Indices
    edges: Indices
    first_edge: Indices
    unit: npt.NDArray[np.bool_]

    @classmethod
    def of(cls, margins: Mapping[int, Margin]) -> Moving:
        """Return the concatenated margins, given by the positions of their columns."""
        rows, edges = [m.rows for m in margins.values()], [m.edges for m in margins.values()]
        unit = np.array([m.unit for m in margins.values()], dtype=bool)
        return cls(np.fromiter(margins, dtype=np.intp), *_end_to_end(rows), *_end_to_end(edges), unit)


def _end_to_end(parts: list[Indices]) -> tuple[Indices, Indices]:
    """Return all parts as one array, and the positions where each begins and the last one ends."""
    return np.concatenate(parts).astype(np.intp), np.cumsum([0, *map(len, parts)], dtype=np.intp)


@njit(cache=True)
def draw(rng: np.random.Generator, X: Array, linear: Array, W: Array, moving: Moving) -> None:
    """Draw the moving columns of X in turn, in place: ``x_k ~ N(a - (linear_k + X_-k w_-k) / w_kk, 1 / w_kk)``.

    Rows of X have precision W and linear terms ``linear``; the margins constrain the cells. The intercept a of a
    column has a flat prior and is drawn before its cells.

    Parameters
    ----------
    rng : numpy.random.Generator
        The source of randomness.
    X, linear : numpy.ndarray
        Columns and their linear terms, n x d.
    W : numpy.ndarray
        Precision of the rows, d x d.
    moving : Moving
        Positions and margins of the columns that move.

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
        residual = (linear[:, k] + np.dot(X, W[k])) / W[k, k]
        intercept = residual.mean() + rng.standard_normal() / math.sqrt(len(X) * W[k, k])
        mean = X[:, k] - residual + intercept
        X[:, k] = draw_column(rng, X[:, k].copy(), mean, W[k, k] ** -0.5, rows, edges, moving.unit[m])


@njit(cache=True)
def draw_column(
    rng: np.random.Generator, x: Array, mean: Array, sd: float, rows: Indices, edges: Indices, unit: bool
) -> Array:
    """Return the column with its cells drawn, at mean square 1 if ``unit``."""
    if not unit:
        return draw_cells(rng, x, mean, sd, rows, edges)
    n, A, size = len(x), 1.0 / sd**2, length(x)
    r, weight = _unit_scale.release(rng, n, A, -A * product(x, mean) / size)
    new = draw_cells(rng, (r / size) * x, mean, sd, rows, edges)
    r = length(new)
    if _unit_scale.accepted(rng, _unit_scale.log_weight(n, A, -A * product(new, mean) / r, r) - weight):
        return (math.sqrt(n) / r) * new
    return (math.sqrt(n) / size) * x


@njit(cache=True)
def draw_cells(rng: np.random.Generator, x: Array, mean: Array, sd: float, rows: Indices, edges: Indices) -> Array:
    """Return the column with its missing cells drawn; with levels also the others and the cut points, centred.

    Up or down the levels, by chance, and the cut points last or first, so that the step is reversible.
    """
    x = x.copy()
    for i in rows[: edges[0]]:
        x[i] = mean[i] + sd * rng.standard_normal()
    if len(edges) == 1:
        return x
    observed, begins, upwards = rows[edges[0] :], edges - edges[0], rng.random() < 0.5
    cells, mean = x[observed], mean[observed]
    if upwards:
        cells = draw_ordered(rng, cells, mean, sd, begins, True)
    cells = _cut_points.move(rng, cells, mean, sd, begins)
    if not upwards:
        cells = draw_ordered(rng, cells, mean, sd, begins, False)
    for k, i in enumerate(observed):
        x[i] = cells[k]
    return x - np.mean(x)


@njit(cache=True)
def draw_ordered(
    rng: np.random.Generator, x: Array, mean: Array, sd: float, edges: Indices, upwards: bool = True
) -> Array:
    """Draw cells level by level, ``x_i ~ N(mean_i, sd^2)`` truncated to the extremes of the adjacent levels."""
    x, levels = x.copy(), len(edges) - 1
    for step in range(levels):
        k = step if upwards else levels - 1 - step
        lower = x[edges[k - 1] : edges[k]].max() if k > 0 else -np.inf
        upper = x[edges[k + 1] : edges[k + 2]].min() if k + 1 < levels else np.inf
        for i in range(edges[k], edges[k + 1]):
            x[i] = mean[i] + sd * truncated_normal.between(rng, (lower - mean[i]) / sd, (upper - mean[i]) / sd)
            x[i] = min(max(x[i], lower), upper)  # rounding must not change the order
    return x


@njit(cache=True)
def product(x: Array, y: Array) -> float:
    """Return ``x'y``."""
    total = 0.0
    for i in range(len(x)):
        total += x[i] * y[i]
    return total


@njit(cache=True)
def length(x: Array) -> float:
    """Return the Euclidean length of x."""
    return math.sqrt(product(x, x))


def normal_scores(values: Array) -> Array:
    """Return ``Phi^-1(rank / (n + 1))`` of every column, mean ranks for ties, scaled to mean 0 and mean square 1.

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
    """Return initial latent values and the margin of a moving column; ``values`` are NaN where missing."""
    observed = ~np.isnan(values)
    x = np.zeros(len(values))
    x[observed] = normal_scores(values[observed, None])[:, 0]
    if continuous:
        return x, Gaps(np.flatnonzero(~observed))
    codes = np.full(len(values), -1)
    codes[observed] = np.unique(values[observed], return_inverse=True)[1]
    return x, Levels(codes)
