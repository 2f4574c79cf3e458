"""An edge of a latent query column that hops to another variable, together with the column.

Latent cells are drawn to suit the edges there are. Given the cells, an edge to a near-duplicate would fit badly,
so it is hardly ever taken, however likely it is given what was observed. So the cells move along: an entry ``w``
of row i at j is proposed to sit at k instead, with the sign of the correlation between j and k, and all cells of
the column are drawn anew for it, between cuts that were laid, uniformly, into the gaps between the levels. With
``mu`` the means of the column given its row, and M(mu) the probability that every cell lies between its cuts,
the acceptance ratio holds no cell of the column but in its gaps::

    M(mu') / M(mu)  x  prod gap / gap'  x  p(x_-i | X2, W') / p(x_-i | X2, W)  x  q(j | k) / q(k | j)
                    x  exp -( w' (U W12)_ik - w (U W12)_ij )        both without the entry itself

The last factor is the prior's ``exp -1/2 tr(U W12 W21)``; entries are exchangeable otherwise. Proposals go with
the eighth power of the correlation: near-duplicates stand out from thousands that correlate by chance.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from scipy import special

from markovblanket.contracts import Array, ChainState, Columns
from markovblanket.margins import Levels
from markovblanket.scatter import times_transpose
from markovblanket.variates import truncated_normal

POWER = 8


def hop(rng: np.random.Generator, state: ChainState, levels: dict[int, Levels]) -> ChainState:
    """The state after one proposal, for an entry of the rows in ``levels`` that is not zero.

    Parameters
    ----------
    rng : numpy.random.Generator
        The source of randomness.
    state : ChainState
        With the columns as they stand; ``T`` goes with the entry.
    levels : dict
        Query columns known by their order alone, by position.
    """
    assert state.columns is not None
    rows = np.array(list(levels), dtype=np.intp)
    queries, places = np.nonzero(state.W12[rows])
    if not len(queries) or np.count_nonzero(state.W12) == state.W12.size:
        return state
    chosen = rng.integers(len(queries))
    i, j = int(rows[queries[chosen]]), int(places[chosen])
    proposal = propose(rng, state.W12[i], state.columns.X2, j)
    return state if proposal is None else decide(rng, state, levels[i], i, j, *proposal)


def propose(rng: np.random.Generator, w: Array, X2: Array, j: int) -> tuple[int, float, float] | None:
    """Where the entry at j might go, the sign it would take, and ``log q(j | k) / q(k | j)``."""
    forth = weights(w, X2, j)
    total = forth.sum()
    if not total > 0:
        return None
    k = int(rng.choice(len(w), p=forth / total))
    back = w.copy()
    back[j], back[k] = 0.0, w[j]
    reverse = weights(back, X2, k)
    return k, float(np.sign(X2[:, j] @ X2[:, k])), float(np.log(total) - np.log(reverse.sum()))


def weights(w: Array, X2: Array, j: int) -> Array:
    """How likely the places of a row are proposed to the entry at j, up to a constant that is common to all."""
    products = X2[:, j] @ X2
    products[w != 0] = 0.0
    return (products / len(X2)) ** POWER


def decide(
    rng: np.random.Generator,
    state: ChainState,
    margin: Levels,
    i: int,
    j: int,
    k: int,
    sign: float,
    log_proposal: float,
) -> ChainState:
    """The state with the entry at k and a column to suit it, or the state as it was."""
    assert state.columns is not None
    X1, X2, w = state.columns.X1, state.columns.X2, state.W12[i, j]
    d = w * (sign * X2[:, k] - X2[:, j])
    mean, sd, others = conditional(state, i, d)
    cuts, gaps = lay_cuts(rng, X1[:, i], margin)
    x = draw_between(rng, mean - d * sd**2, sd, cuts, margin)
    masses = (log_mass(centre, sd, cuts, margin) for centre in (mean - d * sd**2, mean))
    log_ratio = next(masses) - next(masses) + np.log(gaps / gaps_between(x, margin)).sum() + others
    if -rng.standard_exponential() > log_ratio + log_prior(state, i, j, k, sign) + log_proposal:
        return state
    return accepted(state, x, i, j, k, sign)


def conditional(state: ChainState, i: int, d: Array) -> tuple[Array, float, float]:
    """Mean and sd of column i given its row; the log ratio of ``p(x_-i | X2)`` when ``X2 w_i`` grows by d.

    With ``E = X1 + X2 W21 U`` that is ``-d'(E_i - (x_i - mean)) - 1/2 d'd (u_ii - 1/w_ii)``.
    """
    assert state.columns is not None
    X1, U = state.columns.X1, np.linalg.inv(state.W11)
    M = times_transpose(state.W12, state.columns.X2).T
    x, w = X1[:, i], state.W11[i, i]
    residual = (X1 @ state.W11[:, i] + M[:, i]) / w  # x_i - mean
    others = -d @ (x + M @ U[:, i] - residual) - 0.5 * (d @ d) * (U[i, i] - 1 / w)
    return x - residual, float(w**-0.5), float(others)


def log_prior(state: ChainState, i: int, j: int, k: int, sign: float) -> float:
    """Log ratio of ``exp -1/2 tr(U W12 W21)``."""
    U, w = np.linalg.inv(state.W11), state.W12[i, j]
    at_j, at_k = U[i] @ state.W12[:, [j, k]]
    return float(w * (at_j - U[i, i] * w) - sign * w * at_k)


def accepted(state: ChainState, x: Array, i: int, j: int, k: int, sign: float) -> ChainState:
    """The state with the entry at k, its scale with it, and column i."""
    assert state.columns is not None
    W12, T, X1 = state.W12.copy(), state.T.copy(), state.columns.X1.copy()
    W12[i, j], W12[i, k] = 0.0, sign * W12[i, j]
    T[i, j], T[i, k] = T[i, k], T[i, j]
    X1[:, i] = x
    return replace(state, W12=W12, T=T, columns=Columns(X1, state.columns.X2))


# Cuts and cells ---------------------------------------------------------------------------------------


def lay_cuts(rng: np.random.Generator, x: Array, margin: Levels) -> tuple[Array, Array]:
    """A cut in every gap between levels, with infinity at both ends; and the gaps."""
    low, high = edges_of_gaps(x, margin)
    inner = low + rng.random(len(low)) * (high - low)
    return np.concatenate([[-np.inf], inner, [np.inf]]), high - low


def gaps_between(x: Array, margin: Levels) -> Array:
    """How wide the gaps between levels are."""
    low, high = edges_of_gaps(x, margin)
    return high - low


def edges_of_gaps(x: Array, margin: Levels) -> tuple[Array, Array]:
    """The largest cell of every level but the last, the smallest of every level but the first."""
    levels = margin.codes.max() + 1
    bottom, top = np.full(levels, np.inf), np.full(levels, -np.inf)
    seen = margin.codes >= 0
    np.minimum.at(bottom, margin.codes[seen], x[seen])
    np.maximum.at(top, margin.codes[seen], x[seen])
    return top[:-1], bottom[1:]


def draw_between(rng: np.random.Generator, mean: Array, sd: float, cuts: Array, margin: Levels) -> Array:
    """``N(mean, sd^2)``, every observed cell between the cuts of its level."""
    x, seen = mean + sd * rng.standard_normal(len(mean)), margin.codes >= 0
    x[seen] = mean[seen] + sd * truncated_normal.draw(rng, *bounds(mean, sd, cuts, margin))
    return x


def log_mass(mean: Array, sd: float, cuts: Array, margin: Levels) -> float:
    """Log probability that every observed cell lies between the cuts of its level."""
    lower, upper = bounds(mean, sd, cuts, margin)
    flip = lower > 0  # the lower tail keeps its digits
    lower, upper = np.where(flip, -upper, lower), np.where(flip, -lower, upper)
    small, large = special.log_ndtr(lower), special.log_ndtr(upper)
    with np.errstate(divide="ignore"):  # an interval without mass: never accepted
        return float((large + np.log1p(-np.exp(small - large))).sum())


def bounds(mean: Array, sd: float, cuts: Array, margin: Levels) -> tuple[Array, Array]:
    """The cuts beside every observed cell, in standard deviations from its mean."""
    seen = margin.codes >= 0
    codes, centre = margin.codes[seen], mean[seen]
    return (cuts[codes] - centre) / sd, (cuts[codes + 1] - centre) / sd
