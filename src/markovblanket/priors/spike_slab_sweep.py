"""Compiled draws of ``W12`` under a spike-and-slab prior, one entry at a time, with one pass over the data.

An entry is zero, or normal with variance ``v_i s_j``; ``odds_i`` is the prior log-odds that it is not zero. With
``w_ij`` integrated out, given all else (``a_j = 1 + |f_j|^2``, ``R = Y + U W12 F'``, ``S12 = YF``), v short for
``v_i s_j``::

    h = u_ii a_j + 1/v        b = -( R_i . f_j + (U W12)_ij - u_ii a_j w_ij )
    log-odds = odds_i - 1/2 log(v h) + 1/2 b^2 / h      if it becomes nonzero: w_ij ~ N(b/h, 1/h)

An entry that was not zero and remains so keeps its value: the decision did not depend on it, so its conditional
distribution is unchanged; it is drawn again with the others of its row (:func:`redraw`).

``R`` is kept up to date, which costs p m when an entry changes; most stay zero. Products with the columns of ``F``
are computed for a block of columns at a time, and corrected within the block.

Nearly all entries are zero and almost certain to stay so. Separate decisions would take more time than the
products, so they are made together: where ``b`` shows, by one comparison, that the probability is below ``rare``,
entries are skipped up to the next success of a sequence of Bernoulli trials with probability ``rare``, and the
entry found there becomes nonzero with its own probability divided by ``rare`` (thinning).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit

from markovblanket.contracts import Array
from markovblanket.variates.factors import canonical_normal

Indices = npt.NDArray[np.intp]

# Columns per product: enough for BLAS to be fast, few enough that a correction within the block is cheap.
BLOCK_COLUMNS = 32
# Inclusion probability below which entries are decided together.
RARE_PROBABILITY = 0.02
# Entries of a row that are drawn together: the cost is cubic in their number.
MOST_DRAWN_TOGETHER = 150


@njit(cache=True)
def sweep(
    rng: np.random.Generator,
    W12: Array,
    U: Array,
    R: Array,
    FT: Array,
    a: Array,
    odds: Array,
    v: Array,
    s: Array,
    rows: Indices,
    passes: int,
    rare: float = RARE_PROBABILITY,
) -> int:
    """Update ``W12`` by ``passes`` passes: visit the entries of ``rows``, relocate one, redraw all nonzero ones.

    In one compiled function, because passing a generator to it takes as long as a pass over a small problem.
    ``W12`` and ``R`` change in place. Returns the number of entries that the visits changed. Any choice of rows
    that does not depend on the state leaves the distribution invariant.
    """
    changes, degree = 0, degrees(W12)
    for _ in range(passes):
        changes += visit(rng, W12, degree, U, R, FT, a, odds, v, s, rows, rare)
        edges = degree.sum()
        if edges:
            i, j = find(W12, int(rng.integers(0, edges)))
            relocate(rng, W12, degree, U, R, FT, a, v[i], s, i, j)
            redraw(rng, W12, U, R, FT, v, s)
    return changes


@njit(cache=True)
def degrees(W12: Array) -> Indices:
    """Return the number of entries of each column that are not zero."""
    degree = np.zeros(W12.shape[1], np.intp)
    for i in range(len(W12)):
        for j in range(len(degree)):
            degree[j] += W12[i, j] != 0.0
    return degree


@njit(cache=True)
def find(W12: Array, k: int) -> tuple[int, int]:
    """Return the indices (i, j) of the k-th nonzero entry, counted from 0."""
    for i in range(len(W12)):
        for j in range(W12.shape[1]):
            if W12[i, j] != 0.0:
                if k == 0:
                    return i, j
                k -= 1
    return -1, -1


@njit(cache=True)
def visit(
    rng: np.random.Generator,
    W12: Array,
    degree: Indices,
    U: Array,
    R: Array,
    FT: Array,
    a: Array,
    odds: Array,
    v: Array,
    s: Array,
    rows: Indices,
    rare: float = RARE_PROBABILITY,
) -> int:
    """Draw whether each entry of ``rows`` is zero, in turn, given all others; return the number of changes.

    ``W12``, the ``degree`` of its columns, and ``R`` (p x m) change in place. ``FT`` is ``F'``, q x m, with
    contiguous rows.
    """
    (p, q), limits = W12.shape, rare_below(U, a.min(), odds, v, s, rare)
    uw, changes, gathered, wait = np.zeros(p), 0, -1, waiting_time(rng, rare)
    RT, u = np.empty((FT.shape[1], len(rows))), np.empty(len(rows))
    for first in range(0, q, BLOCK_COLUMNS):
        block = FT[first : first + BLOCK_COLUMNS]
        if gathered != changes:
            gather(R, rows, RT)
            gathered = changes
        products = np.dot(block, RT)
        for k in range(len(block)):
            j, before = first + k, changes
            if wait >= len(rows) and degree[j] == 0 and calm(products[k], rows, limits):
                wait -= len(rows)
                continue
            multiply(uw, U, W12, j, degree[j])
            for row, i in enumerate(rows):
                c, slab, w = U[i, i] * a[j], v[i] * s[j], W12[i, j]
                b, h, new = c * w - products[k, row] - uw[i], c + 1.0 / slab, 0.0
                if b * b >= limits[i]:
                    new = draw_entry(rng, w, b, h, odds[i], slab, 1.0)
                elif wait > 0:
                    wait -= 1
                else:
                    wait = waiting_time(rng, rare)
                    new = draw_entry(rng, w, b, h, odds[i], slab, rare)
                if new != w:
                    if changes == before:
                        gram = np.dot(block[k:], block[k])  # earlier columns are not needed any more
                    shift(R, new - w, U[i], block[k])
                    for other in range(len(rows)):
                        u[other] = U[i, rows[other]]
                    shift(products[k:], new - w, gram, u)
                    uw += (new - w) * U[i]
                    W12[i, j] = new
                    degree[j] += 1 if new != 0.0 else -1
                    changes += 1
    return changes


@njit(cache=True)
def gather(R: Array, rows: Indices, RT: Array) -> None:
    """Write some rows of R to the columns of RT."""
    for row in range(len(rows)):
        for k in range(R.shape[1]):
            RT[k, row] = R[rows[row], k]


@njit(cache=True)
def calm(product: Array, rows: Indices, limits: Array) -> bool:
    """Return whether a variable without any edge is almost certain to stay without one."""
    for row in range(len(rows)):  # noqa: SIM110 (compiled: a loop)
        if product[row] * product[row] >= limits[rows[row]]:
            return False
    return True


@njit(cache=True)
def rare_below(U: Array, a: float, odds: Array, v: Array, s: Array, rare: float) -> Array:
    """Return, per row, a ``b^2`` below which the probability of every entry is below ``rare``.

    ``a`` is the least ``a_j``. The bound is ``2h (logit(rare) - odds + 1/2 log(v h))``, where
    ``v h = u_ii a v + 1`` is least for the narrowest slab, and h for the widest.
    """
    limits, narrowest, widest = np.zeros(len(U)), s.min(), s.max()
    for i in range(len(U) if rare > 0.0 else 0):
        h, vh = U[i, i] * a + 1.0 / (v[i] * widest), U[i, i] * a * v[i] * narrowest + 1.0
        limits[i] = 2 * h * max(math.log(rare / (1 - rare)) - odds[i] + 0.5 * math.log(vh), 0.0)
    return limits


@njit(cache=True)
def waiting_time(rng: np.random.Generator, rare: float) -> int:
    """Draw the number of failures before the first success, with success probability ``rare``."""
    return int(math.log1p(-rng.random()) / math.log1p(-rare)) if rare > 0.0 else 0


@njit(cache=True)
def multiply(uw: Array, U: Array, W12: Array, j: int, degree: int) -> None:
    """Write ``U w`` to ``uw``, with w a column of ``W12`` that has so many nonzero entries."""
    uw[:] = 0.0
    for i in range(len(W12) if degree else 0):
        if W12[i, j] != 0.0:
            uw += W12[i, j] * U[i]


@njit(cache=True)
def inner(u: Array, W12: Array, j: int) -> float:
    """Return the product of a row of U with a column of ``W12``."""
    total = 0.0
    for i in range(len(u)):
        total += u[i] * W12[i, j]
    return total


@njit(cache=True)
def relocate(
    rng: np.random.Generator,
    W12: Array,
    degree: Indices,
    U: Array,
    R: Array,
    FT: Array,
    a: Array,
    v: float,
    s: Array,
    i: int,
    j: int,
) -> int:
    """Move the entry ``(i, j)`` to a column where its row is zero, possibly j itself; return the new column.

    The column is drawn from its exact conditional given all other entries, and given that the row has one more
    neighbour; the value is then drawn there. This mixes well among nearly identical variables, where entries drawn
    one at a time hardly ever change places.
    """
    shift(R, -W12[i, j], U[i], FT[j])
    W12[i, j] = 0.0
    degree[j] -= 1
    products, weight = np.dot(FT, R[i]), np.full(len(degree), -np.inf)
    for k in range(len(degree)):
        if W12[i, k] == 0.0:
            products[k] += inner(U[i], W12, k) if degree[k] else 0.0
            weight[k] = log_evidence(-products[k], U[i, i] * a[k] + 1.0 / (v * s[k]), v * s[k])
    ladder = np.cumsum(np.exp(weight - weight.max()))
    k = min(np.searchsorted(ladder, rng.random() * ladder[-1], side="right"), len(degree) - 1)
    h = U[i, i] * a[k] + 1.0 / (v * s[k])
    W12[i, k] = -products[k] / h + rng.standard_normal() / math.sqrt(h)
    degree[k] += 1
    shift(R, W12[i, k], U[i], FT[k])
    return k


@njit(cache=True)
def redraw(rng: np.random.Generator, W12: Array, U: Array, R: Array, FT: Array, v: Array, s: Array) -> None:
    """Draw the nonzero entries J of each row from ``N(H^-1 b, H^-1)``, ``H = u_ii (I + F_J'F_J) + diag(1/v s_J)``.

    Zeros stay zero. Drawn one at a time, entries of correlated variables would move slowly.
    """
    for i in range(len(U)):
        row = np.flatnonzero(W12[i])
        for first in range(0, len(row), MOST_DRAWN_TOGETHER):
            redraw_together(rng, W12, U, R, FT, v[i], s, i, row[first : first + MOST_DRAWN_TOGETHER])


@njit(cache=True)
def redraw_together(
    rng: np.random.Generator,
    W12: Array,
    U: Array,
    R: Array,
    FT: Array,
    v: float,
    s: Array,
    i: int,
    places: Indices,
) -> None:
    """Draw the entries of row i in the columns ``places`` jointly, given all others."""
    F, w = np.empty((len(places), FT.shape[1])), np.empty(len(places))
    for k in range(len(places)):
        F[k], w[k] = FT[places[k]], W12[i, places[k]]
    before = np.dot(w, F)
    b = -np.dot(F, R[i] - U[i, i] * before)
    for k in range(len(places)):
        b[k] -= inner(U[i], W12, places[k]) - U[i, i] * w[k]
    H = U[i, i] * np.dot(F, F.T)
    for k in range(len(places)):
        H[k, k] += U[i, i] + 1.0 / (v * s[places[k]])
    new = canonical_normal(rng, H, b)
    for k in range(len(places)):
        W12[i, places[k]] = new[k]
    shift(R, 1.0, U[i], np.dot(new, F) - before)


@njit(cache=True)
def shift(M: Array, step: float, left: Array, right: Array) -> None:
    """Add ``step left right'`` to ``M``, in place."""
    for row in range(len(left)):
        size = step * left[row]
        for k in range(len(right)):
            M[row, k] += size * right[k]


@njit(cache=True)
def draw_entry(
    rng: np.random.Generator, w: float, b: float, h: float, odds: float, v: float, rare: float
) -> float:
    """Draw an entry: zero, its old value if that is not zero, or normal; nonzero with probability / ``rare``."""
    if rng.random() * rare * (1.0 + math.exp(-odds - log_evidence(b, h, v))) >= 1.0:
        return 0.0
    return w if w != 0.0 else b / h + rng.standard_normal() / math.sqrt(h)


@njit(cache=True)
def log_evidence(b: float, h: float, v: float) -> float:
    """Return the log Bayes factor of an entry being normal against being zero."""
    return 0.5 * (b * b / h - math.log(v * h))
