"""Exact zeros, one entry of ``W12`` at a time: compiled, with one pass over the data per sweep.

An entry is zero, or normal with variance v; ``odds`` is the prior log-odds that it is not zero. With ``w_ij`` left
out and integrated out, given all else (``a_j = 1 + |f_j|^2``, ``R = Y + U W12 F'`` and ``S12 = Y F``)::

    h = u_ii a_j + 1/v        b = -( R_i . f_j + (U W12)_ij - u_ii a_j w_ij )
    log-odds = odds - 1/2 log(v h) + 1/2 b^2 / h        if not zero: w_ij ~ N(b/h, 1/h)

``R`` is kept up to date, which costs p m when an entry changes; most stay zero. Products with the columns of ``F``
are taken a block of columns at a time, and corrected within the block.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from markovblanket.contracts import Array

# Columns per product: enough for BLAS to be fast, few enough that a correction within the block is cheap.
BLOCK = 32


@njit(cache=True)
def visit(
    rng: np.random.Generator, W21: Array, U: Array, R: Array, FT: Array, a: Array, odds: float, v: float
) -> int:
    """Draw every entry in turn, given all others; ``W21`` (q x p) and ``R`` (p x m) change in place.

    ``FT`` is ``F'``, q x m, its rows contiguous. Returns how many entries were changed.
    """
    q, p = W21.shape
    uw, changes = np.zeros(p), 0
    for first in range(0, q, BLOCK):
        block = FT[first : first + BLOCK]
        products = np.dot(R, block.T)
        for k in range(len(block)):
            w, aj, before = W21[first + k], a[first + k], changes
            uw[:] = 0.0
            for i in range(p):
                if w[i] != 0.0:
                    uw += w[i] * U[i]
            for i in range(p):
                c = U[i, i] * aj
                new = draw_entry(rng, -(products[i, k] + uw[i] - c * w[i]), c + 1.0 / v, odds, v)
                if new != w[i]:
                    if changes == before:
                        gram = np.dot(block, block[k])
                    shift(R, U, i, new - w[i], block[k])
                    shift(products, U, i, new - w[i], gram)
                    uw += (new - w[i]) * U[i]
                    w[i] = new
                    changes += 1
    return changes


@njit(cache=True)
def relocate(
    rng: np.random.Generator, W21: Array, U: Array, R: Array, FT: Array, a: Array, v: float, i: int, j: int
) -> int:
    """Move the entry ``(i, j)`` to any place of its row that is zero, its own included, and draw it there.

    The place is drawn from its exact conditional given all other entries: that the row has one more neighbour, but
    not which. Among near-duplicates, where entries drawn one at a time stay where they are, this hops freely.
    Returns the new place.
    """
    shift(R, U, i, -W21[j, i], FT[j])
    W21[j, i] = 0.0
    products, weight = np.dot(FT, R[i]), np.full(len(W21), -np.inf)
    for k in range(len(W21)):
        if W21[k, i] == 0.0:
            products[k] += np.dot(U[i], W21[k])
            weight[k] = log_evidence(-products[k], U[i, i] * a[k] + 1.0 / v, v)
    ladder = np.cumsum(np.exp(weight - weight.max()))
    k = min(np.searchsorted(ladder, rng.random() * ladder[-1], side="right"), len(W21) - 1)
    h = U[i, i] * a[k] + 1.0 / v
    W21[k, i] = -products[k] / h + rng.standard_normal() / math.sqrt(h)
    shift(R, U, i, W21[k, i], FT[k])
    return k


@njit(cache=True)
def shift(R: Array, U: Array, i: int, step: float, f: Array) -> None:
    """``R + step U e_i f'``, in place: ``U W12 F'`` after ``w_ij`` has grown by ``step``."""
    for row in range(len(R)):
        size = step * U[row, i]
        for k in range(len(f)):
            R[row, k] += size * f[k]


@njit(cache=True)
def draw_entry(rng: np.random.Generator, b: float, h: float, odds: float, v: float) -> float:
    """Zero, or normal: an entry given all others."""
    if rng.random() * (1.0 + math.exp(-odds - log_evidence(b, h, v))) >= 1.0:
        return 0.0
    return b / h + rng.standard_normal() / math.sqrt(h)


@njit(cache=True)
def log_evidence(b: float, h: float, v: float) -> float:
    """Log Bayes factor of an entry being normal against its being zero."""
    return 0.5 * (b * b / h - math.log(v * h))
