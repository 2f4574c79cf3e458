"""Joint moves of the scale of a row of the precision matrix with the latent cells of its column.

Given its cells, a column with levels tells how well the others explain it almost as exactly as an observed one
would, and given that, the cells can hardly move: drawn in turn, both change slowly if a few levels leave it open.
So the row of a variable i of the block, ``w`` in ``W11`` and ``s`` in ``W12``, is multiplied by a factor c, and
its pivot g replaced, with the cells integrated out between cut points; then the cells are drawn anew. With M the
inverse of ``W11`` without i, and ``w_ii = g + c^2 w'Mw``, a cell of row r is ``N(a + c m_r / w_ii, 1 / w_ii)``,
``m = -(X_-i w + X2 s)``, where the intercept a has been drawn before; and with ``z = s - W21 M w``::

    log density  =  (n-1)/2 log(g / w_ii) - w_ii / 2 - c^2 (z'A z / g + sum w^2/v) / 2 + c^2 m'm / 2 w_ii
                    + k log c  +  sum_r log P(cell r lies between its cut points)

in ``log c``, with k nonzero entries in the row, whose slabs are v. The other columns are in it by the terms with m
and z; the cells of column i themselves have dropped out. Cut points are drawn uniformly between the cells of
adjacent levels; since the density of these depends on the cells, the move is accepted with the ratio of the gaps.
What is done between cut points must be reversible for that; then it leaves the distribution exactly invariant.

Levels are given as in :mod:`markovblanket.model.copula._cut_points`.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

from markovblanket.contracts import Array
from markovblanket.model._column_regression import WITH_QUERY, WITHOUT_QUERY, Law, slab_of
from markovblanket.model.copula import _unit_scale
from markovblanket.model.copula._margins import Moving, length, product
from markovblanket.variates import truncated_normal

Indices = npt.NDArray[np.intp]
# The more levels, the more a column tells of its cells, and the smaller is the chance that a move is accepted.
MOST_LEVELS = 6
# Columns are moved in so many rounds in a sweep, but at most so many times in all.
ROUNDS, MOST_MOVES = 4, 6
# First interval of a slice step, in log c and in log g, and the largest number of intervals.
WIDTH, MOST_STEPS = 0.7, 16
# From there on the tail of the normal distribution is computed by its asymptotic series.
FAR = 25.0


class Rows(NamedTuple):
    """Columns of the block, and the rows of the precision matrix that belong to them; all change in place.

    ``X1`` are the columns, ``linear`` is ``X2 W21``, both n x P; ``U`` is the inverse of ``W11``, and ``V`` is
    ``W12 F'``, with ``F'F`` the scatter of X2. Columns of ``W12`` without a nonzero entry may be left out.
    """

    X1: Array
    linear: Array
    W11: Array
    U: Array
    W12: Array
    V: Array


class Row(NamedTuple):
    """What the density depends on besides the cells: see the formula of this module.

    ``explained`` is ``w'Mw``, ``outside`` ``z'A z``, ``penalty`` the sum of ``w^2/v``, ``signal`` ``m'm``.
    """

    n: float
    pivot: float
    entries: float
    explained: float
    outside: float
    penalty: float
    signal: float


@njit(cache=True, nogil=True)
def move_some(rng: np.random.Generator, rows: Rows, moving: Moving, law: Law, outside: Array) -> None:
    """Move the scales of some columns with few levels, in place, in rounds of random order.

    ``moving`` are the margins of the columns that move; ``outside`` are the relative precisions of the variables
    outside the block, as in :class:`Law`.
    """
    few = with_few_levels(moving)
    for moved in range(0, min(ROUNDS * len(few), MOST_MOVES), max(len(few), 1)):
        rng.shuffle(few)
        for m in few[: MOST_MOVES - moved]:
            cells = moving.rows[moving.first_row[m] : moving.first_row[m + 1]]
            edges = moving.edges[moving.first_edge[m] : moving.first_edge[m + 1]]
            move_row(rng, rows, moving.places[m], cells, edges, moving.unit[m], law, outside)


@njit(cache=True, nogil=True)
def with_few_levels(moving: Moving) -> Indices:
    """Return which of the margins have at least two levels, and at most :data:`MOST_LEVELS`."""
    few, count = np.empty(len(moving.places), np.intp), 0
    for m in range(len(moving.places)):
        if 2 <= moving.first_edge[m + 1] - moving.first_edge[m] - 1 <= MOST_LEVELS:
            few[count] = m
            count += 1
    return few[:count]


@njit(cache=True, nogil=True)
def move_row(
    rng: np.random.Generator,
    rows: Rows,
    i: int,
    cells: Indices,
    edges: Indices,
    unit: bool,
    law: Law,
    outside: Array,
) -> None:
    """Move the scale of row i and the cells of its column, in place."""
    x, m = rows.X1[:, i].copy(), linear_term(rows, i)
    row = row_of(rows, i, m, law, outside)
    n, size, weight = len(x), length(x), 0.0
    if unit:
        r, weight = _unit_scale.release(rng, n, rows.W11[i, i], -product(x, m) / size)
        x *= r / size
    c, pivot, x = move(rng, x, m, cells, edges, row)
    x, A = x - x.mean(), pivot + c * c * row.explained
    if unit:
        r = length(x)
        if not _unit_scale.accepted(rng, _unit_scale.log_weight(n, A, -c * product(x, m) / r, r) - weight):
            return
        x *= math.sqrt(n) / r
    put_row(rows, i, c, pivot, row.explained)
    rows.X1[:, i] = x


@njit(cache=True, nogil=True)
def linear_term(rows: Rows, i: int) -> Array:
    """Return ``m = -(X_-i w + X2 s)`` of row i, centred."""
    m = -rows.linear[:, i]
    for k in range(len(rows.W11)):
        if k != i and rows.W11[i, k] != 0.0:
            for r in range(len(m)):
                m[r] -= rows.W11[i, k] * rows.X1[r, k]
    return m - m.mean()


@njit(cache=True, nogil=True)
def row_of(rows: Rows, i: int, m: Array, law: Law, outside: Array) -> Row:
    """Return what the density of the scale of row i depends on."""
    entries, penalty, pivot, signal = 0.0, 0.0, 1.0 / rows.U[i, i], 0.0
    for k in range(len(rows.W11)):
        if k != i and rows.W11[i, k] != 0.0:
            entries += 1.0
            penalty += rows.W11[i, k] ** 2 / slab_of(i, k, law)
    slab = law.slab[WITH_QUERY if i < law.p else WITHOUT_QUERY] * law.precision[i]
    for k in range(rows.W12.shape[1]):
        if rows.W12[i, k] != 0.0:
            entries += 1.0
            penalty += rows.W12[i, k] ** 2 / (slab * outside[k])
    for r in range(len(m)):
        signal += m[r] * m[r]
    beyond = square_of_combination(rows, i, rows.W12) + square_of_combination(rows, i, rows.V)
    return Row(law.n, pivot, entries, max(rows.W11[i, i] - pivot, 0.0), beyond, penalty, signal)


@njit(cache=True, nogil=True)
def square_of_combination(rows: Rows, i: int, M: Array) -> float:
    """Return ``|c'M|^2`` with ``c = U e_i / u_ii``, which is 1 at i and ``-Mw`` elsewhere."""
    z, total = np.zeros(M.shape[1]), 0.0
    for a in range(len(M)):
        size = rows.U[i, a] / rows.U[i, i]
        for k in range(len(z)):
            z[k] += size * M[a, k]
    for k in range(len(z)):
        total += z[k] * z[k]
    return total


@njit(cache=True, nogil=True)
def put_row(rows: Rows, i: int, c: float, pivot: float, explained: float) -> None:
    """Multiply row i by c, with the new pivot, and bring the inverse up to date: ``U = [M] + c c'/g``."""
    _, linear, W11, U, W12, V = rows
    old, per_u = U[i].copy(), 1.0 / U[i, i]
    for a in range(len(U)):
        into = (1.0 if a == i else c * old[a] * per_u) / pivot
        for k in range(len(U)):
            U[a, k] += into * (1.0 if k == i else c * old[k] * per_u) - old[a] * old[k] * per_u
        if a != i:
            W11[i, a] *= c
            W11[a, i] = W11[i, a]
    for a in range(len(U)):  # exactly, because M has zeros there
        U[i, a] = (1.0 if a == i else c * old[a] * per_u) / pivot
        U[a, i] = U[i, a]
    W11[i, i] = pivot + c * c * explained
    W12[i] *= c
    V[i] *= c
    linear[:, i] *= c


@njit(cache=True, nogil=True)
def move(
    rng: np.random.Generator, x: Array, m: Array, rows: Indices, edges: Indices, row: Row
) -> tuple[float, float, Array]:
    """Return the factor c, the new pivot and the new column; 1, the old pivot and the column if it stays.

    Parameters
    ----------
    rng : numpy.random.Generator
        The source of randomness.
    x, m : numpy.ndarray
        The column and its linear term ``-(X_-i w + X2 s)``, both centred.
    rows, edges : numpy.ndarray
        Rows of missing cells, then of the cells of each level; where each level begins, and the last one ends.
    row : Row
        The rest of what the density depends on.

    Returns
    -------
    tuple
        The factor, the pivot and the column.
    """
    observed, begins = rows[edges[0] :], edges - edges[0]
    precision = row.pivot + row.explained
    intercept = np.mean(x) - np.mean(m) / precision + rng.standard_normal() / math.sqrt(len(x) * precision)
    cells, slopes = x[observed] - intercept, m[observed]
    lower, upper, gaps = cut_points(rng, cells, begins)
    log_c, log_g, factor_first = 0.0, math.log(row.pivot), rng.random() < 0.5
    for step in range(2):  # in random order, so that both together are reversible
        if (step == 0) != factor_first:
            log_g = slice_step(rng, log_c, log_g, False, row, slopes, lower, upper)
        elif row.entries:
            log_c = slice_step(rng, log_c, log_g, True, row, slopes, lower, upper)
    c, g = math.exp(log_c), math.exp(log_g)
    precision = g + c * c * row.explained
    new = draw_cells(rng, c * m / precision, 1.0 / math.sqrt(precision), rows, edges, lower, upper)
    if not math.log(rng.random()) < gaps - log_gaps(new[observed], begins):
        return 1.0, row.pivot, x
    return c, g, intercept + new


@njit(cache=True, nogil=True)
def draw_cells(
    rng: np.random.Generator, mean: Array, sd: float, rows: Indices, edges: Indices, lower: Array, upper: Array
) -> Array:
    """Draw a column: observed cells between their bounds, missing ones from their normal distribution."""
    new = np.empty(len(mean))
    for k, i in enumerate(rows[edges[0] :]):
        cell = mean[i] + sd * truncated_normal.between(rng, (lower[k] - mean[i]) / sd, (upper[k] - mean[i]) / sd)
        new[i] = min(max(cell, lower[k]), upper[k])  # rounding must not change the order
    for i in rows[: edges[0]]:
        new[i] = mean[i] + sd * rng.standard_normal()
    return new


@njit(cache=True, nogil=True)
def cut_points(rng: np.random.Generator, cells: Array, begins: Indices) -> tuple[Array, Array, float]:
    """Draw a cut point between adjacent levels; return the bounds of each cell, and the log of the gaps."""
    lower, upper = np.full(len(cells), -np.inf), np.full(len(cells), np.inf)
    for level in range(1, len(begins) - 1):
        below, above = extremes(cells, begins, level)
        cut = below + rng.random() * (above - below)
        upper[begins[level - 1] : begins[level]] = cut
        lower[begins[level] : begins[level + 1]] = cut
    return lower, upper, log_gaps(cells, begins)


@njit(cache=True, nogil=True)
def extremes(cells: Array, begins: Indices, level: int) -> tuple[float, float]:
    """Return the largest cell below the cut point of a level, and the smallest above."""
    return cells[begins[level - 1] : begins[level]].max(), cells[begins[level] : begins[level + 1]].min()


@njit(cache=True, nogil=True)
def log_gaps(cells: Array, begins: Indices) -> float:
    """Return the sum of the logarithms of the gaps between adjacent levels."""
    total = 0.0
    for level in range(1, len(begins) - 1):
        below, above = extremes(cells, begins, level)
        total += math.log(above - below) if above > below else -np.inf
    return total


@njit(cache=True, nogil=True)
def log_density(log_c: float, log_g: float, row: Row, m: Array, lower: Array, upper: Array) -> float:
    """Return the log density of ``(log c, log g)``, cells integrated out; bounds are less the intercept."""
    c, g = math.exp(log_c), math.exp(log_g)
    precision = g + c * c * row.explained
    total = 0.5 * row.n * (log_g - math.log(precision)) - 0.5 * precision + row.entries * log_c + log_g
    total -= 0.5 * c * c * (row.outside / g + row.penalty - row.signal / precision)
    root = math.sqrt(precision)
    for k in range(len(m)):
        mean = c * m[k] / precision
        total += log_mass((lower[k] - mean) * root, (upper[k] - mean) * root)
    return total


@njit(cache=True, nogil=True)
def log_mass(low: float, high: float) -> float:
    """Return the log probability that a standard normal variate lies between two numbers."""
    if low + high < 0.0:
        low, high = -high, -low
    if low > FAR:
        tail = log_tail(low)
        return tail + math.log1p(-math.exp(min(log_tail(high) - tail, -1e-300)))
    mass = 0.5 * (math.erfc(low / math.sqrt(2.0)) - math.erfc(high / math.sqrt(2.0)))
    return math.log(mass) if mass > 0.0 else -np.inf


@njit(cache=True, nogil=True)
def log_tail(x: float) -> float:
    """Return ``log P(Z > x)`` for a large x."""
    if x == np.inf:
        return -np.inf
    y = 1.0 / (x * x)
    return -0.5 * x * x - math.log(x * math.sqrt(2.0 * math.pi)) + math.log1p(-y * (1.0 - y * (3.0 - 15.0 * y)))


@njit(cache=True, nogil=True)
def slice_step(
    rng: np.random.Generator,
    log_c: float,
    log_g: float,
    of_factor: bool,
    row: Row,
    m: Array,
    lower: Array,
    upper: Array,
) -> float:
    """Return a slice step (Neal 2003) of ``log c``, or of ``log g``, given the other one."""
    at = log_c if of_factor else log_g
    height = log_density(log_c, log_g, row, m, lower, upper) - rng.standard_exponential()
    left = at - WIDTH * rng.random()
    right, steps = left + WIDTH, int(rng.random() * MOST_STEPS)
    for _ in range(steps):
        if not _density_at(left, log_c, log_g, of_factor, row, m, lower, upper) > height:
            break
        left -= WIDTH
    for _ in range(MOST_STEPS - 1 - steps):
        if not _density_at(right, log_c, log_g, of_factor, row, m, lower, upper) > height:
            break
        right += WIDTH
    while True:
        new = left + (right - left) * rng.random()
        if new == at or _density_at(new, log_c, log_g, of_factor, row, m, lower, upper) > height:
            return new
        if new < at:
            left = new
        else:
            right = new


@njit(cache=True, nogil=True)
def _density_at(
    value: float,
    log_c: float,
    log_g: float,
    of_factor: bool,
    row: Row,
    m: Array,
    lower: Array,
    upper: Array,
) -> float:
    """Return the log density with one of its two arguments replaced."""
    if of_factor:
        return log_density(value, log_g, row, m, lower, upper)
    return log_density(log_c, value, row, m, lower, upper)
