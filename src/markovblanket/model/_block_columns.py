"""Compiled draws of the widened block ``W11``, one column at a time, each with its pivot held fixed.

Given its pivot g a column is a linear regression (:mod:`markovblanket.model._column_regression`): which of its
entries are zero is drawn first (:mod:`markovblanket.model._column_selection`), then the values of the others
together. Given the column, the pivot is generalised inverse Gaussian, ``g^(n/2) exp -1/2 (b_ii g + (c'Gc)/g)``.
That ``g > 0`` is all that positive definiteness asks for, so no other constraint is left.

Only the updates of ``U = W11^-1`` and ``H = U G U`` at the end of a column cost O(P^2). The loops are plain on
purpose: array expressions would take many times longer to compile.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from markovblanket.contracts import Array
from markovblanket.model._column_regression import (
    WITH_QUERY,
    WITHOUT_QUERY,
    Block,
    Column,
    Law,
    begin,
    class_of,
    multiply_by_E,
    precision_of,
    slab_of,
)
from markovblanket.model._column_selection import Selection, select, take_up
from markovblanket.variates.generalized_inverse_gaussian import draw_positive_order


@njit(cache=True, nogil=True)
def draw_columns(rng: np.random.Generator, block: Block, law: Law, inclusion: Array) -> int:
    """Draw all columns of the block in turn; return the number of entries that became zero or nonzero.

    The block changes in place. ``inclusion`` receives the conditional probability of each entry not to be zero,
    averaged over the two columns in which its pair is visited.
    """
    P, changes = len(block.W), 0
    v, s = np.empty((8, P)), np.empty((9, P))
    column = Column(v[0], v[1], v[2], v[3], v[4], v[5], v[6], v[7])
    rows, C, T = np.empty((2, P), np.intp), np.empty((P, P)), np.empty((P, P))
    selection = Selection(rows[0], rows[1], C, T, s[0], s[1], s[2], s[3], s[4], s[5], s[6], s[7], s[8])
    for i in range(P):
        begin(block, law, column, i)
        edges = take_up(block, law, column, selection, i)
        changes += select(rng, block, law, column, selection, i, edges, inclusion)
        redraw(rng, block, law, column, i)
        finish(rng, block, law, column, i)
    for i in range(P):
        inclusion[i, i] = 0.0
        for k in range(i):
            mean = 0.5 * (inclusion[i, k] + inclusion[k, i])
            inclusion[i, k] = mean
            inclusion[k, i] = mean
    return changes


@njit(cache=True, nogil=True)
def count(w: Array) -> int:
    """Return the number of entries that are not zero."""
    nonzero = 0
    for k in range(len(w)):
        nonzero += w[k] != 0.0
    return nonzero


@njit(cache=True, nogil=True)
def redraw(rng: np.random.Generator, block: Block, law: Law, column: Column, i: int) -> None:
    """Draw all nonzero entries J of column i together: ``N(L^-1 l_J, L^-1)`` with ``L = Q_JJ + diag(1/v)``."""
    w, q, m = column.w, column.Ew, count(column.w)
    L, value, places = np.empty((m, m)), np.empty(m), np.empty(m, np.intp)
    row = 0
    for k in range(len(w)):
        if w[k] != 0.0:
            places[row] = k
            row += 1
    for row in range(m):
        k = places[row]
        value[row] = column.linear[k]
        precision_of(block, law, column, i, k, q)
        for other in range(row + 1):
            L[row, other] = q[places[other]]
        L[row, row] += 1.0 / slab_of(i, k, law)
    draw_canonical(rng, L, value)
    for row in range(m):
        w[places[row]] = value[row]


@njit(cache=True, nogil=True)
def draw_canonical(rng: np.random.Generator, H: Array, b: Array) -> None:
    """Replace b by a draw from ``N(H^-1 b, H^-1)``; H is overwritten by its Cholesky factor."""
    d = len(b)
    for i in range(d):
        for k in range(i + 1):
            rest = H[i, k]
            for a in range(k):
                rest -= H[i, a] * H[k, a]
            H[i, k] = math.sqrt(rest) if i == k else rest / H[k, k]
        rest = b[i]
        for a in range(i):
            rest -= H[i, a] * b[a]
        b[i] = rest / H[i, i]
    for i in range(d):
        b[i] += rng.standard_normal()
    for i in range(d - 1, -1, -1):
        b[i] /= H[i, i]
        for a in range(i):
            b[a] -= b[i] * H[i, a]


@njit(cache=True, nogil=True)
def finish(rng: np.random.Generator, block: Block, law: Law, column: Column, i: int) -> None:
    """Draw the pivot given the entries of column i, and bring W, U and H up to date."""
    W, U, G, H = block
    u, x, w, Eg, Ew, Ow = column.u, column.x, column.w, column.Eg, column.Ew, column.Ow
    P, t = len(W), u[i]
    multiply_by_E(U, u, w, Ew, i)
    multiply_by_O(H, u, x, w, Ow, i)
    cGc, wEw = G[i, i], 0.0
    for a in range(P):
        cGc += w[a] * (Ow[a] - 2.0 * Eg[a])
        wEw += w[a] * Ew[a]
    cGc = max(cGc, 0.0)  # by rounding it may be slightly less
    g = draw_positive_order(rng, 0.5 * law.n + 1.0, law.B[i, i], cGc)
    for a in range(P):
        W[i, a] = w[a]
        W[a, i] = w[a]
    W[i, i] = g + wEw
    c, z = Ew, Ow  # in place: c = e_i - E w, z = (E G c + c c'Gc / 2g) / g
    for a in range(P):
        c[a] = -Ew[a]
    c[i] = 1.0
    for a in range(P):
        z[a] = (Eg[a] - Ow[a] + 0.5 * c[a] * cGc / g) / g
    update(U, H, u, x, c, z, 1.0 / t, 1.0 / g, i)


@njit(cache=True, nogil=True)
def multiply_by_O(H: Array, u: Array, x: Array, w: Array, product: Array, i: int) -> None:
    """Write ``O w`` to ``product``, O being ``H - x u' - u x'``; zeros of w cost nothing."""
    uw, xw = 0.0, 0.0
    for a in range(len(u)):
        product[a] = 0.0
    for k in range(len(u)):
        if w[k] != 0.0:
            uw += u[k] * w[k]
            xw += x[k] * w[k]
            for a in range(len(u)):
                product[a] += w[k] * H[k, a]
    for a in range(len(u)):
        product[a] -= x[a] * uw + u[a] * xw
    product[i] = 0.0


@njit(cache=True, nogil=True)
def update(U: Array, H: Array, u: Array, x: Array, c: Array, z: Array, per_u: float, per_g: float, i: int) -> None:
    """Set ``U = E + c c'/g`` and ``H = O + z c' + c z'``, row by row; H stays zero while it has been zero."""
    P, rest = len(u), z[i] != 0.0 or x[i] != 0.0
    for a in range(P):
        out, into = -u[a] * per_u, c[a] * per_g
        for k in range(P):
            U[a, k] += out * u[k] + into * c[k]
    for k in range(P):  # exactly, because E has zeros there
        U[i, k] = c[k] * per_g
        U[k, i] = U[i, k]
    if rest:
        for a in range(P):
            xa, ua, za, ca = x[a], u[a], z[a], c[a]
            for k in range(P):
                H[a, k] += za * c[k] + ca * z[k] - xa * u[k] - ua * x[k]


class Counts(NamedTuple):
    """By class of pair: entries that are not zero, those outside the block, the sum of squares, all pairs."""

    edges: Array
    outside: Array
    squares: Array
    pairs: Array


@njit(cache=True, nogil=True)
def count_pairs(W11: Array, W12: Array, p: int, inside: Array, outside: Array) -> Counts:
    """Return what the hyperparameters depend on, by class of pair, of both blocks.

    Squares are in units of ``s_i s_k``, with s the relative precisions ``inside`` and ``outside`` the block.
    """
    edges, outer, squares, pairs = np.zeros(2), np.zeros(2), np.zeros(2), np.zeros(2)
    for i in range(len(W11)):
        for k in range(i):
            of = class_of(i, k, p)
            pairs[of] += 1.0
            edges[of] += W11[i, k] != 0.0
            squares[of] += W11[i, k] * W11[i, k] / (inside[i] * inside[k])
        of = WITH_QUERY if i < p else WITHOUT_QUERY
        pairs[of] += W12.shape[1]
        for j in range(W12.shape[1]):
            if W12[i, j] != 0.0:
                edges[of] += 1.0
                outer[of] += 1.0
                squares[of] += W12[i, j] * W12[i, j] / (inside[i] * outside[j])
    return Counts(edges, outer, squares, pairs)
