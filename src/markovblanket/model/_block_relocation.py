"""An edge of the widened block changes its place, within ``W11``, within ``W12`` or between them.

With the pivot g of a variable i of the query fixed, its column ``w`` of ``W11`` and its row ``s`` of ``W12`` are
one linear regression: with ``c = (1 at i, -Mw elsewhere)`` and ``z = c'W12``, ``z_j`` containing ``s_j`` itself::

    log density  =  -1/2 b_ii w'Mw  -  w'b_i  -  s'S_i  -  z'A z / 2g  +  log prior

So an entry can be lifted from either block and its new place drawn from its exact conditional among all zeros of
both. Where variables are nearly identical, some of them in the block and others not, entries drawn one at a time
hardly ever change places.
"""

from __future__ import annotations

import math

import numpy as np

from markovblanket.contracts import Array, Scatter
from markovblanket.model._column_regression import WITH_QUERY, Block, Law, either


def relocate(
    rng: np.random.Generator, W11: Array, W12: Array, scatter: Scatter, law: Law, outside: Array
) -> tuple[Array, Array, Block]:
    """Move a random edge of a random query variable to a new place, possibly its old one; also return the block.

    The number of edges of the variable stays the same, so that the choice of the edge is symmetric. ``outside``
    are the relative precisions of the variables outside the block. ``W12`` changes in place.
    """
    block = block_of(W11, W12, scatter)
    i = int(rng.integers(law.p))
    w, s = W11[i].copy(), W12[i].copy()
    w[i] = 0.0
    places = np.flatnonzero(np.concatenate([w, s]))
    if not W12.shape[1] or not len(places):
        return W11, W12, block
    old = int(rng.choice(places))
    (w if old < len(w) else s)[old - len(w) if old >= len(w) else old] = 0.0
    b, precision = _regression(i, w, s, block, W12, scatter, law)
    slab = law.slab[WITH_QUERY] * law.precision[i] * np.append(law.precision, outside)
    h = precision + 1.0 / slab
    weight = 0.5 * (b * b / h - np.log(slab * h)) + np.log(_odds(i, law, len(s)))
    weight[np.concatenate([w, s]) != 0.0] = -np.inf
    weight[i] = -np.inf
    new = _draw(rng, weight)
    if new == old:  # its value may stay as well: the place did not depend on it
        return W11, W12, block
    value = b[new] / h[new] + rng.standard_normal() / math.sqrt(h[new])
    (w if new < len(w) else s)[new - len(w) if new >= len(w) else new] = value
    W11, W12[i] = _with_column(W11, i, w, block.U), s
    return W11, W12, block_of(W11, W12, scatter)


def _odds(i: int, law: Law, outside: int) -> Array:
    """Return the prior odds of every entry of a query variable, first within the block, then outside."""
    of_class = law.odds[WITH_QUERY]
    inside = either(either(of_class, law.own_odds[i]), law.own_odds)
    return np.append(inside, np.full(outside, of_class))


def block_of(W11: Array, W12: Array, scatter: Scatter) -> Block:
    """Return the block with ``U``, ``G = W12 A W21`` and ``H = U G U``, in the form of the compiled functions."""
    if not np.any(W12):
        return block_given(W11, np.zeros_like(W11))
    V, nonzero = scatter.times_factor(W12), W12[:, W12.any(axis=0)]
    return block_given(W11, nonzero @ nonzero.T + V @ V.T)


def block_given(W11: Array, G: Array) -> Block:
    """Return the block with ``U`` and ``H = U G U``, in the form of the compiled functions."""
    U = np.linalg.inv(W11)
    U = np.ascontiguousarray((U + U.T) / 2)
    H = U @ G @ U if G.any() else G
    return Block(np.ascontiguousarray(W11), U, G, np.ascontiguousarray((H + H.T) / 2))


def _regression(
    i: int, w: Array, s: Array, block: Block, W12: Array, scatter: Scatter, law: Law
) -> tuple[Array, Array]:
    """Return ``b`` and ``q`` of the likelihood ``exp(b w - q w^2 / 2)`` of every entry of both blocks.

    ``O = E G E`` does not depend on row i of ``W12``, because row and column i of E are zero, so that it may come
    from the block before the edge was lifted.
    """
    columns, u = np.flatnonzero(W12.any(axis=0)), block.U[i]
    others = W12[:, columns]
    others[i] = s[columns]
    t, V = u[i], others @ scatter.F[:, columns].T
    E = block.U - np.outer(u, u) / t
    E[i] = E[:, i] = 0.0
    x = (block.H[i] - 0.5 * block.H[i, i] * u / t) / t
    O = block.H - np.outer(x, u) - np.outer(u, x)  # noqa: E741
    O[i] = O[:, i] = 0.0
    Q = law.B[i, i] * E + t * O
    G_i = others @ others[i] + V @ V[i]
    b11 = t * E @ G_i - law.B[i] - Q @ w + np.diag(Q) * w
    c = -E @ w
    c[i] = 1.0
    a = 1.0 + scatter.column_sizes
    b12 = t * a * s - (scatter.Y[i] + t * (c @ V)) @ scatter.F
    b12[columns] -= t * (c @ others)
    return np.append(b11, b12), np.append(np.diag(Q), t * a)


def _with_column(W11: Array, i: int, w: Array, U: Array) -> Array:
    """Return ``W11`` with new off-diagonal entries in column i, and its pivot as it was."""
    u = U[i]
    E = U - np.outer(u, u) / u[i]
    E[i] = E[:, i] = 0.0
    new = W11.copy()
    new[i] = new[:, i] = w
    new[i, i] = 1.0 / u[i] + w @ E @ w
    return new


def _draw(rng: np.random.Generator, weight: Array) -> int:
    """Draw a position with probability proportional to ``exp(weight)``."""
    ladder = np.cumsum(np.exp(weight - weight.max()))
    return min(int(np.searchsorted(ladder, rng.random() * ladder[-1], side="right")), len(weight) - 1)
