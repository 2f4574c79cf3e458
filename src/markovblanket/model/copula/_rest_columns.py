"""Draws of moving columns of the rest with ``W22.1`` integrated out, each at a cost of n^2 whatever q is.

Given ``W22.1``, a cell can hardly move if there are about as many columns as rows, or more: that matrix was just
drawn given the current columns, and nearly interpolates them. With ``W22.1`` integrated out,
``p(X2) ∝ |r I + X2 X2'|^(-degrees/2)``. One column given the others is then multivariate t, with
``M = (r I + X_-j X_-j')^-1``::

    p(x | X_-j)  ∝  (1 + x' M x)^(-degrees/2)           g | x ~ chi2(degrees) / (1 + x' M x)
                                                        x | g ~ N(0, (g M)^-1)

The query adds the factor ``exp(-x'b - c/2 x'x)`` with ``b = X1 w_j + X_-j W21_-j U w_j`` and ``c = w_j' U w_j``,
``w_j`` being column j of ``W12``, so that x has the precision ``g M + c I`` and the linear term b. The means of
the columns are integrated out: with ``C = I - 11'/n`` every vector is centred, M is
``C (r I + C X_-j X_-j' C)^-1 C``, and ``c C`` stands for ``c I``.

Missing cells of a column are drawn together, those with levels one at a time between the adjacent levels, and then
with the cut points (:mod:`markovblanket.model.copula._cut_points`). ``(r I + X2 X2')^-1`` is kept up to date by a
step of rank one before and after each column.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy import linalg

from markovblanket.contracts import Array, Columns
from markovblanket.model.copula import _cut_points, _unit_scale
from markovblanket.model.copula._cut_points import Stretch
from markovblanket.model.copula._margins import Moving, length, product
from markovblanket.model.rest_prior import RestPrior
from markovblanket.model.scatter import Factored
from markovblanket.variates import truncated_normal
from markovblanket.variates.factors import canonical_normal

Indices = npt.NDArray[np.intp]
# Missing cells of a column that are drawn together: the cost is cubic in their number.
MOST_DRAWN_TOGETHER = 64


class Rest(NamedTuple):
    """What the columns of the rest depend on: all that changes when one of them does, and ``degrees``.

    ``X2T`` are the columns, q x n; ``inverse`` is ``(r I + X2 X2')^-1`` on the centred vectors, ``fit`` is
    ``X2 W21``, n x P. The inverse changes by ``weights_k steps_k steps_k'``, two for each column that is drawn.
    """

    X2T: Array
    inverse: Array
    fit: Array
    degrees: float
    steps: Array
    weights: Array

    @classmethod
    def of(cls, X2: Array, inverse: Array, fit: Array, degrees: float, drawn: int) -> Rest:
        """Return copies, with room for the steps of so many columns that are to be drawn."""
        room = np.zeros((2 * drawn, len(X2))), np.zeros(2 * drawn)
        return cls(X2.T.copy(order="C"), inverse.copy(), np.array(fit, order="C"), degrees, *room)


class Column(NamedTuple):
    """A column x of normal distribution with precision ``Q = g M + c C`` and linear term b; ``Mx`` is ``M x``."""

    x: Array
    Mx: Array
    M: Array
    g: float
    c: float
    b: Array


@njit(cache=True, nogil=True)
def draw(
    rng: np.random.Generator,
    rest: Rest,
    X1: Array,
    W12: Array,
    U: Array,
    moving: Moving,
    chosen: Indices,
) -> int:
    """Draw the chosen ones of the moving columns in turn, given all other columns, in place.

    Returns -1, or the first column whose cells are not possible, where it ends.

    Parameters
    ----------
    rng : numpy.random.Generator
        The source of randomness.
    rest : Rest
        The columns of the rest and what is kept up to date with them.
    X1, W12, U : numpy.ndarray
        The columns of the block, the cross block, and the inverse of ``W11``.
    moving : Moving
        Margins of the moving columns.
    chosen : numpy.ndarray
        Which of these to draw: any choice that does not depend on the columns leaves the distribution invariant.
    """
    n = len(rest.inverse)
    # Not rows of one array, which the compiler could not tell apart.
    x, Mx, b = np.empty(n), np.empty(n), np.empty(n)
    for k in range(len(chosen)):
        m = chosen[k]
        j = moving.places[m]
        for i in range(len(x)):
            x[i] = rest.X2T[j, i]
        s = take_out(rest.inverse, x, Mx)
        if not s > 0.0:  # not a number, too
            return int(j)
        note(rest, 2 * k, s, Mx)
        c = link(rest, X1, W12, U, j, x, b)
        column = Column(x, Mx, rest.inverse, rng.chisquare(rest.degrees) * s, c, b)
        rows = moving.rows[moving.first_row[m] : moving.first_row[m + 1]]
        edges = moving.edges[moving.first_edge[m] : moving.first_edge[m + 1]]
        draw_column(rng, column, rows, edges, moving.unit[m])
        size = put_back(rest, W12, j, x, Mx)
        note(rest, 2 * k + 1, -1.0 / (1.0 + size), Mx)
    return -1


@njit(cache=True, nogil=True)
def note(rest: Rest, k: int, weight: float, step: Array) -> None:
    """Note a step of rank one of the inverse."""
    rest.weights[k] = weight
    for i in range(len(step)):
        rest.steps[k, i] = step[i]


@njit(cache=True, nogil=True)
def draw_column(rng: np.random.Generator, column: Column, rows: Indices, edges: Indices, unit: bool) -> None:
    """Draw the cells of a column, at mean square 1 if ``unit``; in place."""
    if not unit:
        draw_cells(rng, column, rows, edges)
        return
    n, x, Mx = len(column.x), column.x.copy(), column.Mx.copy()
    A, B, size = along(column)
    r, weight = _unit_scale.release(rng, n, A, B)
    stretch(column, r / size)
    draw_cells(rng, column, rows, edges)
    A, B, r = along(column)
    if _unit_scale.accepted(rng, _unit_scale.log_weight(n, A, B, r) - weight):
        stretch(column, math.sqrt(n) / r)
        return
    column.x[:], column.Mx[:] = x, Mx
    stretch(column, math.sqrt(n) / size)


@njit(cache=True, nogil=True)
def along(column: Column) -> tuple[float, float, float]:
    """Return ``u'Q u``, ``u'b`` and the length of the column, u being its direction; it is centred."""
    size = length(column.x)
    A = column.g * product(column.x, column.Mx) / size**2 + column.c
    return A, product(column.x, column.b) / size, size


@njit(cache=True, nogil=True)
def stretch(column: Column, factor: float) -> None:
    """Multiply the column by a factor."""
    for i in range(len(column.x)):
        column.x[i] *= factor
        column.Mx[i] *= factor


@njit(cache=True, nogil=True)
def draw_cells(rng: np.random.Generator, column: Column, rows: Indices, edges: Indices) -> None:
    """Draw the missing cells; with levels also the others and the cut points, and centre the column.

    In this order or, by chance, in the reverse one, so that the step is reversible.
    """
    missing, upwards = rows[: edges[0]], len(edges) == 1 or rng.random() < 0.5
    if upwards:
        draw_missing(rng, column, missing, True)
    if len(edges) > 1:
        if upwards:
            draw_levels(rng, column, rows, edges, True)
        move_cut_points(rng, column, rows[edges[0] :], edges - edges[0])
        if not upwards:
            draw_levels(rng, column, rows, edges, False)
    if not upwards:
        draw_missing(rng, column, missing, False)
    if len(edges) > 1:
        centre(column)


@njit(cache=True, nogil=True)
def take_out(inverse: Array, x: Array, Mx: Array) -> float:
    """Replace the inverse by M, that without x; write ``M x``, and return ``1 / (1 + x'M x)``."""
    n, size = len(x), 0.0
    multiply(inverse, x, Mx)
    for i in range(n):
        size += x[i] * Mx[i]
    s = 1.0 - size
    add_square(inverse, 1.0 / s, Mx)
    for i in range(n):
        Mx[i] /= s
    return s


@njit(cache=True, nogil=True)
def put_back(rest: Rest, W12: Array, j: int, x: Array, Mx: Array) -> float:
    """Write column j, and bring the inverse and the fit up to date; return ``x'M x``."""
    size = 0.0
    for i in range(len(x)):
        size += x[i] * Mx[i]
    add_square(rest.inverse, -1.0 / (1.0 + size), Mx)
    for k in range(len(W12)):
        if W12[k, j] != 0.0:
            for i in range(len(x)):
                rest.fit[i, k] += W12[k, j] * (x[i] - rest.X2T[j, i])
    for i in range(len(x)):
        rest.X2T[j, i] = x[i]
    return size


@njit(cache=True, nogil=True)
def multiply(M: Array, x: Array, Mx: Array) -> None:
    """Write ``M x``, M symmetric: as a sum of rows, in which no addition waits for the one before."""
    Mx[:] = 0.0
    for i in range(len(x)):
        size = x[i]
        for k in range(len(x)):
            Mx[k] += size * M[i, k]


@njit(cache=True, nogil=True)
def add_square(M: Array, weight: float, v: Array) -> None:
    """Add ``weight v v'`` to M, in place."""
    for i in range(len(v)):
        size = weight * v[i]
        for k in range(len(v)):
            M[i, k] += size * v[k]


@njit(cache=True, nogil=True)
def link(rest: Rest, X1: Array, W12: Array, U: Array, j: int, x: Array, b: Array) -> float:
    """Write the linear term b of column j, centred, and return c: what the block has to say about it."""
    c, mean = 0.0, 0.0
    for i in range(len(x)):
        b[i] = 0.0
    for k in range(len(W12)):
        uw = 0.0
        for other in range(len(W12)):
            if W12[other, j] != 0.0:
                uw += U[k, other] * W12[other, j]
        if uw != 0.0:
            c += W12[k, j] * uw
            for i in range(len(x)):
                b[i] += X1[i, k] * W12[k, j] + rest.fit[i, k] * uw
    for i in range(len(x)):
        b[i] -= c * x[i]
        mean += b[i] / len(x)
    for i in range(len(x)):
        b[i] -= mean
    return c


@njit(cache=True, nogil=True)
def gradient(column: Column, i: int, mean: float) -> float:
    """Return entry i of ``Q x + b``; ``mean`` is that of x."""
    return column.g * column.Mx[i] + column.c * (column.x[i] - mean) + column.b[i]


@njit(cache=True, nogil=True)
def precision(column: Column, i: int, k: int) -> float:
    """Return entry (i, k) of Q."""
    return column.g * column.M[i, k] + column.c * ((1.0 if i == k else 0.0) - 1.0 / len(column.x))


@njit(cache=True, nogil=True)
def change(column: Column, i: int, value: float) -> float:
    """Set a cell of the column, and return by how much the mean of the column changes."""
    step = value - column.x[i]
    column.x[i] = value
    for k in range(len(column.x)):
        column.Mx[k] += step * column.M[i, k]
    return step / len(column.x)


@njit(cache=True, nogil=True)
def mean_of(x: Array) -> float:
    """Return the mean of x."""
    total = 0.0
    for i in range(len(x)):
        total += x[i]
    return total / len(x)


@njit(cache=True, nogil=True)
def draw_missing(rng: np.random.Generator, column: Column, rows: Indices, upwards: bool) -> None:
    """Draw the cells of these rows, in groups, given all others; the first group first, or last."""
    groups = -(-len(rows) // MOST_DRAWN_TOGETHER)
    for step in range(groups):
        first = MOST_DRAWN_TOGETHER * (step if upwards else groups - 1 - step)
        group = rows[first : first + MOST_DRAWN_TOGETHER]
        H, b, mean = np.empty((len(group), len(group))), np.empty(len(group)), mean_of(column.x)
        for k in range(len(group)):
            b[k] = -gradient(column, group[k], mean)
            for other in range(len(group)):
                H[k, other] = precision(column, group[k], group[other])
                b[k] += H[k, other] * column.x[group[other]]
        new = canonical_normal(rng, H, b)
        for k in range(len(group)):
            change(column, group[k], new[k])


@njit(cache=True, nogil=True)
def draw_levels(rng: np.random.Generator, column: Column, rows: Indices, edges: Indices, upwards: bool) -> None:
    """Draw the observed cells one at a time, up or down the levels, between the extremes of the adjacent ones."""
    x, mean, levels = column.x, mean_of(column.x), len(edges) - 1
    for step in range(levels):
        level = step if upwards else levels - 1 - step
        lower, upper = -np.inf, np.inf
        for k in range(edges[level - 1] if level > 0 else edges[level], edges[level]):
            lower = max(lower, x[rows[k]])
        for k in range(edges[level + 1], edges[level + 2] if level + 1 < levels else 0):
            upper = min(upper, x[rows[k]])
        size = edges[level + 1] - edges[level]
        for k in range(size):
            i = rows[edges[level] + (k if upwards else size - 1 - k)]
            own = precision(column, i, i)
            centre, sd = x[i] - gradient(column, i, mean) / own, 1.0 / math.sqrt(own)
            value = centre + sd * truncated_normal.between(rng, (lower - centre) / sd, (upper - centre) / sd)
            mean += change(column, i, min(max(value, lower), upper))  # rounding must not change the order


@njit(cache=True, nogil=True)
def move_cut_points(rng: np.random.Generator, column: Column, rows: Indices, edges: Indices) -> None:
    """Move some cut points with the cells of the adjacent levels, whose distribution is not independent here.

    With two levels that would shift all of them alike, which changes nothing, as the mean is integrated out.
    """
    if len(edges) == 3:
        return
    n = len(column.x)
    cells, t, Mt = np.empty(len(rows)), np.empty(n), np.empty(n)
    for k in range(len(rows)):
        cells[k] = column.x[rows[k]]
    for level in _cut_points.some(rng, len(edges) - 1):
        bounds = _cut_points.bounds(rng, cells, edges, level)
        t[:] = 0.0
        for k in range(edges[level - 1], edges[level + 1]):
            t[rows[k]] = _cut_points.slope(cells[k], bounds.a, bounds.g, bounds.b)
        law = with_terms(column, bounds, rows, edges[level - 1], edges[level + 1], t, Mt)
        step = _cut_points.step(rng, law)
        _cut_points.shift(cells, edges, level, law, step)
        for k in range(edges[level - 1], edges[level + 1]):
            column.x[rows[k]] = cells[k]
        for i in range(n):
            column.Mx[i] += step * Mt[i]


@njit(cache=True, nogil=True)
def with_terms(
    column: Column, bounds: Stretch, rows: Indices, first: int, last: int, t: Array, Mt: Array
) -> Stretch:
    """Write ``M t``, and return the law of a shift of the cells by t per unit: ``t'(Q x + b)`` and ``t'Q t``."""
    Mt[:] = 0.0
    linear, quadratic, total, mean = 0.0, 0.0, 0.0, mean_of(column.x)
    for k in range(first, last):
        i = rows[k]
        for other in range(len(Mt)):
            Mt[other] += t[i] * column.M[i, other]
    for k in range(first, last):
        i = rows[k]
        linear += t[i] * gradient(column, i, mean)
        quadratic += t[i] * (column.g * Mt[i] + column.c * t[i])
        total += t[i]
    quadratic -= column.c * total * total / len(Mt)
    a, g, b = bounds.a, bounds.g, bounds.b
    return Stretch(a, g, b, linear, quadratic, bounds.below, bounds.above, bounds.widening)


@njit(cache=True, nogil=True)
def centre(column: Column) -> None:
    """Centre a column with levels, whose order determines no mean; ``M x`` does not change."""
    mean = mean_of(column.x)
    for i in range(len(column.x)):
        column.x[i] -= mean


def row_inverse(X2: Array, ridge: float) -> Array:
    """Return ``(r I + X2 X2')^-1`` of the centred columns, on the centred vectors, with the ridge r."""
    X = X2 - X2.mean(axis=0)
    K = X @ X.T
    K.flat[:: len(K) + 1] += ridge
    inverse = linalg.cho_solve((linalg.cholesky(K, lower=True, overwrite_a=True), True), np.eye(len(K)))
    return np.ascontiguousarray((inverse + inverse.T) / 2 - 1.0 / (ridge * len(K)))


def leverages(inverse: Array, X2: Array) -> Array:
    """Return ``x' inverse x`` of each column x; the inverse is on the centred vectors."""
    return np.einsum("ij,ij->j", inverse @ X2, X2)


def changed_leverages(before: Array, rest: Rest, drawn: Indices) -> Array:
    """Return the leverages after some columns were drawn: of others by the steps of the inverse, which are few."""
    after = before + rest.weights @ (rest.steps @ rest.X2T.T) ** 2
    after[drawn] = leverages(rest.inverse, rest.X2T[drawn].T)
    return after


@dataclass(frozen=True)
class RowScatter(Factored):
    """Scatter of columns that move, whose factor is the centred columns themselves: rows are not orthogonal.

    ``Y`` is ``X1'``; ``leverages`` are ``x'(r I + X2 X2')^-1 x`` of each column x of the rest.
    """

    Y: Array
    leverages: Array
    rest_prior: RestPrior

    @classmethod
    def of(cls, X1: Array, columns: Columns, prior: RestPrior) -> RowScatter:
        """Return the scatter of the columns of the block, centred, and those of the rest."""
        X2, kept = np.asfortranarray(columns.X2), columns.leverages
        kept = leverages(row_inverse(X2, prior.ridge), X2) if kept is None else kept
        return cls(len(X1) - 1, X1.T @ X1, X2 - X2.mean(axis=0), np.ascontiguousarray(X1.T), kept, prior)

    @cached_property
    def S12(self) -> Array:
        """Cross scatter ``S12 = X1'X2``, p x q."""
        return self.Y @ self.F

    @cached_property
    def inverse_diagonal(self) -> Array:
        """Diagonal of the inverse of ``S22 + r I``: ``(1 - leverage) / r`` of each column."""
        return (1.0 - self.leverages) / self.rest_prior.ridge
