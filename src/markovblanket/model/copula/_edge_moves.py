"""Joint Metropolis-Hastings moves of an edge and its latent query column: add, remove or relocate the edge.

Latent cells are drawn given the current edges, so given the cells another edge fits badly and is hardly ever
accepted, however likely it is given the observed data. Therefore the cells are proposed together with the edge.
Cut points are drawn, uniformly, between adjacent levels of column i; then an edge is proposed to move from j to k,
to appear or to disappear, and all cells of the column are drawn again between the same cut points. Without the
edge the column has means ``mu``; with an entry w at k they are ``mu - w f_k / w_ii``. With the cells integrated
out::

    log L(k, w) = log M(mu - w f_k / w_ii)                            every cell between its cut points
                - w f_k.e - w^2/2 |f_k|^2 (u_ii - 1/w_ii)             p(x_-i | X2)
                - w (U W12)_ik - w^2/2 (u_ii + 1/v)                   the prior of an entry that is not zero

where e is column i of ``X1 + X2 W21 U`` with ``x_i`` at its means. The first two derivatives at w = 0, for all k
at once, cost one product with the data. They approximate the evidence of every position k, from which k is drawn;
then, for this k alone, w is drawn about the mode of L. Both proposals depend only on the state without the edge,
which is the same for the reverse move, so the acceptance ratio is::

    L(k, w) / q(k, w)  over  L(j, w') / q(j, w')    x    prod gap / gap'

where gap and gap' are the distances between adjacent levels before and after the move. For an edge that appears or
disappears, the side without it is ``M(mu)`` times the number of edges that could have been chosen to disappear.
Every sweep makes a few cheap moves of each column among the positions that correlate most with its initial scores,
and one move, of one column, among all positions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numba import njit

from markovblanket.contracts import Array, ChainState
from markovblanket.model.copula._margins import Indices, Levels
from markovblanket.model.scatter import times_transpose
from markovblanket.variates import truncated_normal

# Positions near a column: those that correlate most with its initial scores.
MOST_NEAR_POSITIONS = 400
# Moves of a column among its near positions per sweep: as many as draw at most so many cells, but at least one.
MOST_MOVES, MOST_CELLS_DRAWN = 4, 1000
# Columns with more levels are not moved: the small distances between levels would have nearly all moves rejected.
MOST_LEVELS = 10
# Factor by which the variance of a proposed entry exceeds that of its normal approximation.
PROPOSAL_VARIANCE_FACTOR = 1.3


class Row(NamedTuple):
    """Row i of ``W12`` at some positions, and the distribution of its latent column x; arrays change in place.

    ``F`` holds the data of the positions, one per row, and ``product`` is ``(U W12)_i`` there. Given all else, x
    is normal with means ``mean`` and variance ``1/w_ii``; ``e`` is as in the module's docstring.
    """

    w: Array
    product: Array
    F: Array
    x: Array
    mean: Array
    e: Array
    codes: Indices
    variance: float
    u: float
    slab: float
    odds: float


@dataclass(frozen=True)
class Hopping:
    """Query columns with levels, by position, and the positions of the rest that are near each."""

    levels: Mapping[int, Levels]
    near: Mapping[int, Indices]

    @classmethod
    def of(cls, levels: Mapping[int, Levels], X1: Array, X2: Array) -> Hopping:
        """Return the moves of columns with few levels; near positions correlate most with the initial scores."""
        few = {i: margin for i, margin in levels.items() if margin.codes.max() < MOST_LEVELS}
        order = {i: np.argsort(-np.abs(X1[:, i] @ X2), kind="stable") for i in few}
        return cls(few, {i: np.sort(places[:MOST_NEAR_POSITIONS]) for i, places in order.items()})

    def move(
        self, rng: np.random.Generator, state: ChainState, odds: float, slab: float
    ) -> tuple[ChainState, tuple[int, int]]:
        """Make some moves of every column among its near positions, and one of one column among all positions.

        Parameters
        ----------
        rng : numpy.random.Generator
            The source of randomness.
        state : ChainState
            The current state, with its columns.
        odds, slab : float
            Prior log-odds that an entry is not zero, and its variance if so.

        Returns
        -------
        tuple
            The new state; and the numbers of proposed and of rejected moves.
        """
        state, proposals, rejections = own(state), 0, 0
        assert state.columns is not None
        U, M = np.linalg.inv(state.W11), times_transpose(state.W12, state.columns.X2).T
        anywhere, times = rng.choice(list(self.levels)), min(max(MOST_CELLS_DRAWN // len(M), 1), MOST_MOVES)
        for i, margin in self.levels.items():
            where: list[tuple[Indices | slice, int]] = [(self.near[i], times), (slice(None), 1)]
            for places, many in where[: 1 + (i == anywhere)]:
                row = row_at(state, U, M, i, places, margin.codes, odds, slab)
                before = row.mean.copy()
                tried, refused = moves(rng, row, many)
                proposals, rejections = proposals + tried, rejections + refused
                state.W12[i, places], state.columns.X1[:, i] = row.w, row.x
                M[:, i] += state.W11[i, i] * (before - row.mean)
        return replace(state, T=slab * (state.W12 != 0)), (proposals, rejections)


def own(state: ChainState) -> ChainState:
    """Return the state with copies of the arrays that the moves change in place."""
    assert state.columns is not None
    return replace(state, W12=state.W12.copy(), columns=replace(state.columns, X1=state.columns.X1.copy()))


def row_at(
    state: ChainState,
    U: Array,
    M: Array,
    i: int,
    places: Indices | slice,
    codes: Indices,
    odds: float,
    slab: float,
) -> Row:
    """Return row i of ``W12`` at the given positions, with ``M = X2 W21``."""
    assert state.columns is not None
    X1, W11, w = state.columns.X1, state.W11, state.W12[:, places]
    F = np.ascontiguousarray(state.columns.X2.T[places])
    mean = X1[:, i] - (X1 @ W11[:, i] + M[:, i]) / W11[i, i]
    laws = 1 / W11[i, i], U[i, i], slab, odds
    return Row(w[i].copy(), U[i] @ w, F, X1[:, i].copy(), mean, mean + M @ U[:, i], codes, *laws)


@njit(cache=True)
def moves(rng: np.random.Generator, row: Row, times: int) -> tuple[int, int]:
    """Make ``times`` moves in place: half relocate an edge, a quarter remove one, a quarter add one.

    Returns the numbers of proposed and of rejected moves; a move without an edge or a free position is not
    proposed.
    """
    proposals, rejections = 0, 0
    for _ in range(times):
        edges, coin = np.flatnonzero(row.w), rng.random()
        if (len(edges) == 0 and coin < 0.75) or (len(edges) == len(row.w) and coin >= 0.75):
            continue
        j = -1 if coin >= 0.75 else edges[int(rng.random() * len(edges))]
        proposals += 1
        rejections += not step(rng, row, j, coin >= 0.5 and coin < 0.75)
    return proposals, rejections


@njit(cache=True)
def step(rng: np.random.Generator, row: Row, j: int, vanish: bool) -> bool:
    """Propose to relocate, remove or (j = -1) add an edge; return whether the proposal was accepted."""
    cuts, gaps = lay_cuts(rng, row.x, row.codes)
    old = row.w[j] if j >= 0 else 0.0
    if j >= 0:
        put(row, j, 0.0)
    b, h = slopes(row, cuts)
    weights = evidence(row, b, h)
    k, new = -1 if vanish else draw_place(rng, weights), 0.0
    at_k, at_j = summit(row, cuts, k, b, h), summit(row, cuts, j, b, h)
    if k >= 0:
        new = at_k[0] + rng.standard_normal() / math.sqrt(at_k[1])
    ratio = worth(row, cuts, k, new, at_k, weights) - worth(row, cuts, j, old, at_j, weights)
    if k >= 0:
        put(row, k, new)
    x = draw_between(rng, row.mean, row.variance, row.codes, cuts)
    if -rng.standard_exponential() <= ratio + gaps - log_gaps(x, row.codes):
        row.x[:] = x
        return True
    if k >= 0:
        put(row, k, 0.0)
    if j >= 0:
        put(row, j, old)
    return False


@njit(cache=True)
def put(row: Row, k: int, w: float) -> None:
    """Set the entry at position k to w, in place, with everything that depends on it."""
    change, f = w - row.w[k], row.F[k]
    row.w[k] = w
    row.product[k] += row.u * change
    for r in range(len(f)):
        row.mean[r] -= change * row.variance * f[r]
        row.e[r] += change * (row.u - row.variance) * f[r]


@njit(cache=True)
def slopes(row: Row, cuts: Array) -> tuple[Array, float]:
    """Return ``d log L / dw`` at w = 0 for all positions, and one approximation of ``-d^2 log L / dw^2`` for all.

    The latter assumes columns of unit scale.
    """
    pull, tight = -row.e, 0.0
    for r in range(len(pull)):
        if row.codes[r] >= 0:
            _, mean, narrowing = moments(row.mean[r], row.variance, cuts[row.codes[r]], cuts[row.codes[r] + 1])
            pull[r] -= mean
            tight += narrowing
    curvature = len(pull) * (row.u - row.variance) + row.variance * tight + row.u + 1.0 / row.slab
    return np.dot(row.F, pull) - row.product, curvature


@njit(cache=True)
def evidence(row: Row, b: Array, h: float) -> Array:
    """Return approximate log probabilities of the positions without an edge."""
    weights = 0.5 * b * b / h
    for k in range(len(weights)):
        if row.w[k] != 0.0:
            weights[k] = -np.inf
    largest = weights.max()
    return weights - largest - math.log(np.exp(weights - largest).sum())


@njit(cache=True)
def draw_place(rng: np.random.Generator, weights: Array) -> int:
    """Draw a position from its log probabilities."""
    left, last = rng.random(), 0
    for k in range(len(weights)):
        if weights[k] > -np.inf:
            last, left = k, left - math.exp(weights[k])
            if left < 0.0:
                return k
    return last


@njit(cache=True)
def summit(row: Row, cuts: Array, k: int, b: Array, h: float) -> tuple[float, float]:
    """Return the approximate mode of ``L(k, .)`` after two Newton steps, and the precision of the proposal."""
    if k < 0:
        return 0.0, 1.0
    _, slope, curvature = ascent(row, cuts, k, b[k] / h)
    return b[k] / h + slope / curvature, curvature / PROPOSAL_VARIANCE_FACTOR


@njit(cache=True)
def worth(row: Row, cuts: Array, k: int, w: float, at: tuple[float, float], weights: Array) -> float:
    """Return one side of the log acceptance ratio: ``log L(k, w) / q(k, w)`` with the prior odds of the edge.

    Without an edge (k = -1), ``log M`` plus the log number of edges that could be chosen to disappear.
    """
    if k < 0:
        return ascent(row, cuts, 0, 0.0)[0] + math.log(np.count_nonzero(row.w) + 1.0)
    mode, precision = at
    log_q = weights[k] + 0.5 * math.log(precision) - 0.5 * precision * (w - mode) ** 2
    return ascent(row, cuts, k, w)[0] + row.odds - 0.5 * math.log(row.slab) - log_q


@njit(cache=True)
def ascent(row: Row, cuts: Array, k: int, w: float) -> tuple[float, float, float]:
    """Return ``log L(k, w)``, its derivative in w, and minus its second derivative."""
    spread, f = row.u - row.variance, row.F[k]
    curvature = np.dot(f, f) * spread + row.u + 1.0 / row.slab
    linear = np.dot(f, row.e) + row.product[k]
    value, slope = -w * linear - 0.5 * w * w * curvature, -linear - w * curvature
    for r in range(len(f)):
        if row.codes[r] >= 0:
            mean = row.mean[r] - w * row.variance * f[r]
            code = row.codes[r]
            log_mass, pull, tight = moments(mean, row.variance, cuts[code], cuts[code + 1])
            value += log_mass
            slope -= pull * f[r]
            curvature += tight * row.variance * f[r] * f[r]
    return value, slope, curvature


LOG_ROOT_2PI = 0.5 * math.log(2 * math.pi)


@njit(cache=True)
def moments(mean: float, variance: float, lower: float, upper: float) -> tuple[float, float, float]:
    """Return the log probability, ``E x - mean`` and the relative loss of variance of a truncated normal cell.

    Computed on the interval or its mirror image, whichever lies farther to the right, where ``erfc`` of the tails
    is accurate.
    """
    sd = math.sqrt(variance)
    low, high, sign = (lower - mean) / sd, (upper - mean) / sd, 1.0
    if -low > high:
        low, high, sign = -high, -low, -1.0
    mass = 0.5 * (math.erfc(low * math.sqrt(0.5)) - math.erfc(high * math.sqrt(0.5)))
    if mass < 1e-290:  # beyond 36 standard deviations: nearly exponential, except on narrow intervals
        series = math.log1p(-(1.0 - 3.0 / low**2) / low**2) if low > 1.0 else 0.0
        return series - 0.5 * low * low - math.log(abs(low)) - LOG_ROOT_2PI, sign * sd * (low + 1.0 / low), 1.0
    at_low = math.exp(-0.5 * low * low - LOG_ROOT_2PI) / mass
    at_high = math.exp(-0.5 * high * high - LOG_ROOT_2PI) / mass
    mean = at_low - at_high
    edges = (low * at_low if low > -np.inf else 0.0) - (high * at_high if high < np.inf else 0.0)
    return math.log(mass), sign * sd * mean, min(max(mean * mean - edges, 0.0), 1.0)


@njit(cache=True)
def lay_cuts(rng: np.random.Generator, x: Array, codes: Indices) -> tuple[Array, float]:
    """Draw a cut point between each two adjacent levels; also return the sum of the logs of their distances.

    The first and the last cut point are infinite.
    """
    low, high = edges_of_gaps(x, codes)
    cuts = np.full(len(low) + 2, np.inf)
    cuts[0] = -np.inf
    for k in range(len(low)):
        cuts[k + 1] = low[k] + rng.random() * (high[k] - low[k])
    return cuts, np.log(high - low).sum()


@njit(cache=True)
def log_gaps(x: Array, codes: Indices) -> float:
    """Return the sum of the logarithms of the distances between adjacent levels."""
    low, high = edges_of_gaps(x, codes)
    return np.log(high - low).sum()


@njit(cache=True)
def edges_of_gaps(x: Array, codes: Indices) -> tuple[Array, Array]:
    """Return the largest cell of every level but the last, and the smallest of every level but the first."""
    bottom, top = np.full(codes.max() + 1, np.inf), np.full(codes.max() + 1, -np.inf)
    for r in range(len(x)):
        if codes[r] >= 0:
            bottom[codes[r]] = min(bottom[codes[r]], x[r])
            top[codes[r]] = max(top[codes[r]], x[r])
    return top[:-1], bottom[1:]


@njit(cache=True)
def draw_between(rng: np.random.Generator, mean: Array, variance: float, codes: Indices, cuts: Array) -> Array:
    """Draw a normal column, with every observed cell between the cut points of its level."""
    x, sd = mean.copy(), math.sqrt(variance)
    for r in range(len(x)):
        code, t = codes[r], 0.0
        if code < 0:
            t = rng.standard_normal()
        else:
            t = truncated_normal.between(rng, (cuts[code] - x[r]) / sd, (cuts[code + 1] - x[r]) / sd)
        x[r] += sd * t
    return x
