"""Compiled draws of which entries of a column of the widened block are not zero, their values integrated out.

Let J be the nonzero entries of a column, a regression with precision Q and linear term l
(:mod:`markovblanket.model._column_regression`), and ``D = diag(1/v)`` the precision of their prior. Integrated
over its own value and over those of J, entry k is not zero with odds::

    prior odds  x  (v h)^(-1/2) exp(b^2 / 2h)        h = Q_kk + 1/v_k - Q_kJ C Q_Jk,   b = l_k - Q_kJ beta

with ``C = (Q_JJ + D)^-1`` and ``beta = C l_J``. Given the values, which share the work among themselves as they
happen to stand, an entry would come and go far more seldom. C, beta, ``T = C Q_J.``, h and b are kept up to date
while entries join J and leave it, at O(|J| P) each, as in stepwise regression (the sweep operator).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from markovblanket.contracts import Array, Indices
from markovblanket.model._column_regression import Block, Column, Law, precision_of, prior_of

# A place whose log weight is so much smaller than that of the best is never drawn.
NEGLIGIBLE = 40.0
# So many entries of a column are relocated at most: with one, near-duplicates change places too seldom.
MOST_RELOCATIONS = 4


class Selection(NamedTuple):
    """The nonzero entries J of a column, and the regression given that all others are zero, values integrated out.

    ``place[r]`` is the r-th entry of J, ``row[k]`` its r, -1 for an entry that is zero. Only as many rows as J has
    entries count in ``C``, ``T`` and ``beta``; ``b`` and ``h`` are those of the zeros, ``gain`` is ``b^2/2h`` and
    ``against`` the factor ``sqrt(v h) / odds`` of the odds that an entry stays zero. Of the prior there are
    ``least``, 1/v, and ``prior``, the factor ``sqrt(v) / odds``. ``q`` and ``weight`` are working space.
    """

    place: Indices
    row: Indices
    C: Array
    T: Array
    beta: Array
    b: Array
    h: Array
    gain: Array
    against: Array
    prior: Array
    least: Array
    q: Array
    weight: Array


@njit(cache=True, nogil=True)
def take_up(block: Block, law: Law, column: Column, selection: Selection, i: int) -> int:
    """Set up the selection of column i from its current entries; return how many are not zero."""
    row, b, h, prior, least = selection.row, selection.b, selection.h, selection.prior, selection.least
    w, linear, diagonal, edges = column.w, column.linear, column.diagonal, 0
    prior_of(i, law, prior, least)
    for k in range(len(w)):
        b[k] = linear[k]
        h[k] = diagonal[k] + least[k]
        row[k] = -1
    for k in range(len(w)):
        if w[k] != 0.0:
            join(block, law, column, selection, i, edges, k)
            edges += 1
    return edges


@njit(cache=True, nogil=True)
def join(block: Block, law: Law, column: Column, selection: Selection, i: int, edges: int, k: int) -> None:
    """Let entry k of column i be not zero, too, beside ``edges`` others."""
    place, row, C, T, beta, b, h = selection[:7]
    q, share, P, m = selection.q, selection.weight, len(column.w), edges
    h_k, b_k = max(h[k], selection.least[k]), b[k]
    precision_of(block, law, column, i, k, q)
    for r in range(m):
        share[r] = q[place[r]]
    for r in range(m):
        for a in range(P):
            q[a] -= share[r] * T[r, a]
    for a in range(P):
        T[m, a] = q[a] / h_k
        h[a] -= q[a] * T[m, a]
        b[a] -= b_k * T[m, a]
    for r in range(m):
        share[r] = T[r, k]
        beta[r] -= share[r] * b_k / h_k
        for a in range(P):
            T[r, a] -= share[r] * T[m, a]
    for r in range(m):
        by = share[r] / h_k
        for s in range(m):
            C[r, s] += by * share[s]
        C[m, r] = -share[r] / h_k
        C[r, m] = C[m, r]
    C[m, m], beta[m], place[m], row[k] = 1.0 / h_k, b_k / h_k, k, m


@njit(cache=True, nogil=True)
def leave(selection: Selection, edges: int, k: int) -> None:
    """Let entry k, one of ``edges``, be zero; the last row takes its place."""
    place, row, C, T, beta, b, h = selection[:7]
    old, last, c, P = row[k], edges - 1, C[row[k], row[k]], len(row)
    mean = beta[old] / c
    for a in range(P):
        h[a] += T[old, a] * T[old, a] / c
        b[a] += T[old, a] * mean
    h[k], b[k], row[k] = 1.0 / c, mean, -1
    for r in range(edges):
        if r != old:
            share = C[r, old] / c
            beta[r] -= share * beta[old]
            for a in range(P):
                T[r, a] -= share * T[old, a]
            T[r, k] = -share
            for s in range(edges):
                if s != old:
                    C[r, s] -= share * C[old, s]
    if old != last:
        beta[old], place[old], row[place[last]] = beta[last], place[last], old
        for a in range(P):
            T[old, a] = T[last, a]
        for r in range(last):
            if r != old:
                C[old, r] = C[last, r]
                C[r, old] = C[last, r]
        C[old, old] = C[last, last]


@njit(cache=True, nogil=True)
def weigh(selection: Selection) -> None:
    """Bring ``gain`` and ``against`` of the zeros up to date."""
    b, h, gain, against, prior, least = selection[5:11]
    for k in range(len(b)):
        h_k = h[k] if h[k] > least[k] else least[k]  # by rounding it may be slightly less
        gain[k] = 0.5 * b[k] * b[k] / h_k
        against[k] = math.sqrt(h_k) * prior[k]


@njit(cache=True, nogil=True)
def select(
    rng: np.random.Generator,
    block: Block,
    law: Law,
    column: Column,
    selection: Selection,
    i: int,
    edges: int,
    inclusion: Array,
) -> int:
    """Draw whether each entry of column i is zero, in turn, then relocate some; return the number of changes.

    ``column.w`` is 1 where an entry is not zero; row i of ``inclusion`` has the conditional probabilities.
    """
    row, C, beta, gain, against = selection.row, selection.C, selection.beta, selection.gain, selection.against
    prior, w, changes = selection.prior, column.w, 0
    weigh(selection)
    for k in range(len(w)):
        r = row[k]
        if r >= 0:
            gain[k] = 0.5 * beta[r] * beta[r] / C[r, r]
            against[k] = prior[k] / math.sqrt(C[r, r])
        probability = 1.0 / (1.0 + against[k] * math.exp(-gain[k]))
        inclusion[i, k] = probability
        if k == i or (rng.random() < probability) == (r >= 0):
            continue
        changes += 1
        if r >= 0:
            leave(selection, edges, k)
            edges -= 1
        else:
            join(block, law, column, selection, i, edges, k)
            edges += 1
        weigh(selection)
    relocate(rng, block, law, column, selection, i, edges)
    for k in range(len(w)):
        w[k] = 1.0 if row[k] >= 0 else 0.0
    return changes


@njit(cache=True, nogil=True)
def relocate(
    rng: np.random.Generator, block: Block, law: Law, column: Column, selection: Selection, i: int, edges: int
) -> None:
    """Lift a random nonzero entry and draw its place anew among all zeros of the column, a few times.

    Were all taken in the order of their places, the step would not leave the distribution invariant.
    """
    for _ in range(min(edges, MOST_RELOCATIONS) if edges < len(column.w) - 1 else 0):
        lifted = find(selection.row, int(rng.random() * edges))
        weigh_places(selection, i, lifted)
        k = draw_place(rng, selection, lifted)
        if k != lifted:
            leave(selection, edges, lifted)
            join(block, law, column, selection, i, edges - 1, k)


@njit(cache=True, nogil=True)
def find(row: Indices, number: int) -> int:
    """Return the place of a nonzero entry, by its number from 0 in the order of places."""
    for k in range(len(row)):
        if row[k] >= 0:
            if number == 0:
                return k
            number -= 1
    return -1


@njit(cache=True, nogil=True)
def weigh_places(selection: Selection, i: int, lifted: int) -> None:
    """Write ``b^2/2h`` of every zero, once the entry ``lifted`` is zero, too, to ``weight``; elsewhere -inf.

    ``q`` receives h.
    """
    row, T, b, h, q, weight, least = (
        selection.row,
        selection.T,
        selection.b,
        selection.h,
        selection.q,
        selection.weight,
        selection.least,
    )
    r = row[lifted]
    c, mean = selection.C[r, r], selection.beta[r] / selection.C[r, r]
    for k in range(len(row)):
        b_k, h_k = b[k] + T[r, k] * mean, h[k] + T[r, k] * T[r, k] / c
        q[k] = h_k if h_k > least[k] else least[k]
        weight[k] = 0.5 * b_k * b_k / q[k] if row[k] < 0 else -np.inf
    weight[i], weight[lifted], q[lifted] = -np.inf, 0.5 * mean * mean * c, 1.0 / c


@njit(cache=True, nogil=True)
def draw_place(rng: np.random.Generator, selection: Selection, lifted: int) -> int:
    """Draw the place of one more nonzero entry, in proportion to ``exp(weight) / (sqrt(h) prior)``.

    The old place stands first in the order of places: mostly a bound on all others shows that it is drawn again.
    """
    weight, q, prior, against = selection.weight, selection.q, selection.prior, selection.against
    chance, own = rng.random(), weight[lifted]
    weight[lifted] = -np.inf
    most = max(largest(weight), own)
    stays, others, last = math.exp(own - most) / (math.sqrt(q[lifted]) * prior[lifted]), 0.0, lifted
    for k in range(len(weight)):  # h only grows when the entry is lifted
        others += 1.0 / against[k]
    if chance * (stays + math.exp(largest(weight) - most) * others) < stays:
        return lifted
    total = stays
    for k in range(len(weight)):
        far = weight[k] <= most - NEGLIGIBLE
        weight[k] = 0.0 if far else math.exp(weight[k] - most) / (math.sqrt(q[k]) * prior[k])
        total += weight[k]
    left = chance * total - stays
    for k in range(len(weight)):
        if left < 0.0:
            break
        if weight[k] > 0.0:
            left, last = left - weight[k], k
    return last


@njit(cache=True, nogil=True)
def largest(values: Array) -> float:
    """Return the largest value, of four rows of every fourth one: one comparison need not wait for another."""
    one, two, three, four = -np.inf, -np.inf, -np.inf, -np.inf
    for k in range(3, len(values), 4):
        one = values[k] if values[k] > one else one
        two = values[k - 1] if values[k - 1] > two else two
        three = values[k - 2] if values[k - 2] > three else three
        four = values[k - 3] if values[k - 3] > four else four
    for k in range(len(values) - len(values) % 4, len(values)):
        one = values[k] if values[k] > one else one
    return max(max(one, two), max(three, four))
