"""Compiled draws of the widened block ``W11``, one column at a time, each with its pivot held fixed.

With ``w`` the off-diagonal entries of column i, ``M = (W11_{-i,-i})^-1``, the pivot ``g = w_ii - w'Mw`` and
``c = (1 at i, -Mw elsewhere)``, the inverse is ``U = [M] + c c'/g``. Off the diagonal an entry is zero, or normal
with variance v; a pair has prior odds of not being zero. Given g, the column is a linear regression::

    precision  Q = b_ii M + M G M / g        linear term  l = -(b_i - M g_i / g)

and given w, the pivot is generalised inverse Gaussian, ``g^(n/2) exp -1/2 (b_ii g + (c'Gc)/g)``. That ``g > 0`` is
all that positive definiteness asks for, so no other constraint is left.

``E`` is M with zeros in row and column i. Neither E nor ``O = E G E`` is formed: with ``u = U e_i``, ``H = U G U``
and ``x = (H e_i - h_ii u / 2u_ii) / u_ii``::

    E = U - u u'/u_ii        O = H - x u' - u x'        g = 1/u_ii at the start

so a column of Q costs O(P), and only the updates of U and H at the end of a column cost O(P^2). The loops are
plain on purpose: array expressions would take many times longer to compile.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numba import njit

from markovblanket.contracts import Array
from markovblanket.variates.generalized_inverse_gaussian import draw_positive_order

# Classes of pairs, with odds and slab of their own: pairs with a query variable, and pairs of other variables.
WITH_QUERY, WITHOUT_QUERY = 0, 1
# A place whose log weight is so much smaller than that of the best is never drawn.
NEGLIGIBLE = 40.0


class Block(NamedTuple):
    """The widened block and what is kept up to date with it: ``U = W^-1`` and ``H = U G U``; all P x P.

    ``G = W12 A W21`` is zero if no variable is left outside the block.
    """

    W: Array
    U: Array
    G: Array
    H: Array


class Law(NamedTuple):
    """What the entries depend on besides the block: ``B = S11 + I``, n, and the prior of each pair.

    The first ``p`` variables of the block are the query. An entry of the block is zero if its class of pairs and
    both of its variables decline it, each with prior odds of its own: ``odds`` by class, ``own_odds`` by variable.
    The slab of the entry (i, k) is that of its class times ``s_i s_k``, with ``s`` the relative ``precision`` of
    each variable.
    """

    B: Array
    n: float
    p: int
    odds: Array
    slab: Array
    own_odds: Array
    precision: Array


class Column(NamedTuple):
    """One column as a regression: its entries ``w`` (zero at i), ``diag(Q)``, and the ``gradient`` ``l - Q w``.

    ``variance`` is 1/h with ``h = q_kk + 1/v``, that of an entry which is not zero given all others, and
    ``against`` the factor ``sqrt(v h) / odds`` of the odds that it is zero. ``Eg`` is ``E G e_i``. The last
    three vectors are working space.
    """

    u: Array
    x: Array
    w: Array
    linear: Array
    diagonal: Array
    gradient: Array
    variance: Array
    against: Array
    Eg: Array
    Ew: Array
    Ow: Array
    weight: Array


def either(a: Any, b: Any) -> Any:
    """Return the odds that at least one of two independent causes is there, given their odds; also of arrays."""
    return a + b + a * b


_either = njit(cache=True, nogil=True)(either)


@njit(cache=True, nogil=True)
def draw_columns(rng: np.random.Generator, block: Block, law: Law, inclusion: Array) -> int:
    """Draw all columns of the block in turn; return the number of entries that became zero or nonzero.

    The block changes in place. ``inclusion`` receives the conditional probability of each entry not to be zero,
    averaged over the two columns in which its pair is visited.
    """
    P, changes = len(block.W), 0
    space = np.empty((12, P))
    column = Column(
        space[0],
        space[1],
        space[2],
        space[3],
        space[4],
        space[5],
        space[6],
        space[7],
        space[8],
        space[9],
        space[10],
        space[11],
    )
    for i in range(P):
        begin(block, law, column, i)
        changes += visit(rng, block, law, column, i, inclusion)
        relocate_all(rng, block, law, column, i)
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
def class_of(i: int, k: int, p: int) -> int:
    """Return the class of a pair; the first p variables are the query."""
    return WITH_QUERY if i < p or k < p else WITHOUT_QUERY


@njit(cache=True, nogil=True)
def odds_of(i: int, k: int, law: Law) -> float:
    """Return the prior odds that the entry (i, k) is not zero."""
    return _either(_either(law.odds[class_of(i, k, law.p)], law.own_odds[i]), law.own_odds[k])


@njit(cache=True, nogil=True)
def slab_of(i: int, k: int, law: Law) -> float:
    """Return the variance of the entry (i, k) if it is not zero."""
    return law.slab[class_of(i, k, law.p)] * law.precision[i] * law.precision[k]


@njit(cache=True, nogil=True)
def begin(block: Block, law: Law, column: Column, i: int) -> None:
    """Set up the regression of column i: its entries, ``diag(Q)``, the linear term and the gradient."""
    W, U, G, H = block
    u, x, w, linear, diagonal, gradient = column[:6]
    P, t, b = len(W), U[i, i], law.B[i, i]
    for a in range(P):
        u[a] = U[i, a]
        w[a] = W[i, a]
        x[a] = (H[i, a] - 0.5 * H[i, i] * u[a] / t) / t
    w[i] = 0.0
    multiply_by_E(U, u, G[i], column.Eg, i)
    for a in range(P):
        diagonal[a] = b * (U[a, a] - u[a] * u[a] / t) + t * (H[a, a] - 2.0 * x[a] * u[a])
        linear[a] = t * column.Eg[a] - law.B[i, a]
        gradient[a] = linear[a]
    for a in range(P):
        slab = slab_of(i, a, law)
        h = diagonal[a] + 1.0 / slab
        column.variance[a] = 1.0 / h
        column.against[a] = math.sqrt(slab * h) / odds_of(i, a, law)
    for k in range(P):
        if w[k] != 0.0:
            shift(block, law, column, i, k, w[k])


@njit(cache=True, nogil=True)
def multiply_by_E(U: Array, u: Array, vector: Array, product: Array, i: int) -> None:
    """Write ``E vector`` to ``product``, E being ``U - u u'/u_ii``; zero entries of the vector cost nothing."""
    inner = 0.0
    for a in range(len(u)):
        product[a] = 0.0
    for k in range(len(u)):
        if vector[k] != 0.0:
            inner += u[k] * vector[k]
            for a in range(len(u)):
                product[a] += vector[k] * U[k, a]
    for a in range(len(u)):
        product[a] -= u[a] * inner / u[i]
    product[i] = 0.0


@njit(cache=True, nogil=True)
def shift(block: Block, law: Law, column: Column, i: int, k: int, step: float) -> None:
    """Subtract ``step`` times column k of Q from the gradient, because entry k grew by ``step``."""
    U, H, u, x, gradient = block.U, block.H, column.u, column.x, column.gradient
    t, b = u[i], law.B[i, i]
    by_u, by_x = step * (b * u[k] / t + t * x[k]), step * t * u[k]
    for a in range(len(u)):
        gradient[a] += by_u * u[a] + by_x * x[a] - step * (b * U[k, a] + t * H[k, a])


@njit(cache=True, nogil=True)
def without(column: Column, k: int) -> float:
    """Return the gradient at entry k if that were zero, the b of its conditional ``N(b/h, 1/h)``."""
    return column.gradient[k] + column.diagonal[k] * column.w[k]


@njit(cache=True, nogil=True)
def inclusion_probability(column: Column, k: int) -> float:
    """Return the conditional probability that entry k is not zero: its odds are ``e^(b^2/2h) / against``."""
    b = without(column, k)
    return 1.0 / (1.0 + column.against[k] * math.exp(-0.5 * b * b * column.variance[k]))


@njit(cache=True, nogil=True)
def draw_value(rng: np.random.Generator, column: Column, k: int) -> float:
    """Draw entry k from its conditional distribution, given that it is not zero."""
    return without(column, k) * column.variance[k] + rng.standard_normal() * math.sqrt(column.variance[k])


@njit(cache=True, nogil=True)
def set_entry(block: Block, law: Law, column: Column, i: int, k: int, value: float) -> None:
    """Give entry k a new value, and keep the gradient up to date."""
    shift(block, law, column, i, k, value - column.w[k])
    column.w[k] = value


@njit(cache=True, nogil=True)
def visit(rng: np.random.Generator, block: Block, law: Law, column: Column, i: int, inclusion: Array) -> int:
    """Draw whether each entry of column i is zero, in turn, with its value integrated out; count the changes.

    An entry that was not zero and stays so keeps its value: the decision did not depend on it.
    """
    changes = 0
    for k in range(len(column.w)):
        if k == i:
            continue
        probability = inclusion_probability(column, k)
        inclusion[i, k] = probability
        nonzero = rng.random() < probability
        if nonzero != (column.w[k] != 0.0):
            set_entry(block, law, column, i, k, draw_value(rng, column, k) if nonzero else 0.0)
            changes += 1
    return changes


@njit(cache=True, nogil=True)
def relocate_all(rng: np.random.Generator, block: Block, law: Law, column: Column, i: int) -> None:
    """Lift a nonzero entry, draw its place anew among all zeros of the column, as often as there are such entries.

    The entry is chosen at random each time. Taken in the order of their places, the step would not leave the
    distribution invariant. An entry that falls back to its place keeps its value: the place did not depend on it.
    """
    edges = count(column.w)
    for _ in range(edges if edges < len(column.w) - 1 else 0):
        lifted = find(column.w, int(rng.random() * edges))
        weigh_places(block, law, column, i, lifted)
        k = draw_place(rng, column, lifted)
        if k != lifted:
            set_entry(block, law, column, i, lifted, 0.0)
            set_entry(block, law, column, i, k, draw_value(rng, column, k))


@njit(cache=True, nogil=True)
def weigh_places(block: Block, law: Law, column: Column, i: int, lifted: int) -> None:
    """Write ``b^2/2h`` of every zero, once the entry ``lifted`` is zero, too, to ``weight``; elsewhere -inf."""
    U, H, u, x, w, weight = block.U, block.H, column.u, column.x, column.w, column.weight
    t, b, step, k = u[i], law.B[i, i], w[lifted], lifted
    by_u, by_x = step * (b * u[k] / t + t * x[k]), step * t * u[k]
    for a in range(len(u)):
        gradient = column.gradient[a] + step * (b * U[k, a] + t * H[k, a]) - by_u * u[a] - by_x * x[a]
        weight[a] = 0.5 * gradient * gradient * column.variance[a] if w[a] == 0.0 else -np.inf
    gradient = column.gradient[k] + step * column.diagonal[k]
    weight[k] = 0.5 * gradient * gradient * column.variance[k]
    weight[i] = -np.inf


@njit(cache=True, nogil=True)
def draw_place(rng: np.random.Generator, column: Column, lifted: int) -> int:
    """Draw the place of one more nonzero entry, with probability proportional to ``exp(weight) / against``.

    Places with less than e^-40 of the weight of the best vanish in the sum; mostly one or a few are left.
    """
    weight, most, chance, total = column.weight, largest(column.weight), rng.random(), 0.0
    if weight[lifted] > most - NEGLIGIBLE and count_above(weight, most - NEGLIGIBLE) == 1:
        return lifted
    for k in range(len(weight)):
        weight[k] = math.exp(weight[k] - most) / column.against[k] if weight[k] > most - NEGLIGIBLE else 0.0
        total += weight[k]
    rest = chance * total
    for k in range(len(weight)):
        rest -= weight[k]
        if rest < 0.0:
            return k
    return lifted


@njit(cache=True, nogil=True, fastmath={"nnan", "nsz", "reassoc"})
def largest(values: Array) -> float:
    """Return the largest of some values, none of which is NaN."""
    most = values[0]
    for k in range(1, len(values)):
        most = values[k] if values[k] > most else most
    return most


@njit(cache=True, nogil=True)
def count_above(values: Array, bound: float) -> int:
    """Return the number of values above a bound."""
    above = 0
    for k in range(len(values)):
        above += values[k] > bound
    return above


@njit(cache=True, nogil=True)
def count(w: Array) -> int:
    """Return the number of entries that are not zero."""
    nonzero = 0
    for k in range(len(w)):
        nonzero += w[k] != 0.0
    return nonzero


@njit(cache=True, nogil=True)
def find(w: Array, number: int) -> int:
    """Return the place of a nonzero entry, by its number from 0."""
    for k in range(len(w)):
        if w[k] != 0.0:
            if number == 0:
                return k
            number -= 1
    return -1


@njit(cache=True, nogil=True)
def redraw(rng: np.random.Generator, block: Block, law: Law, column: Column, i: int) -> None:
    """Draw all nonzero entries J of column i together: ``N(L^-1 l_J, L^-1)`` with ``L = Q_JJ + diag(1/v)``."""
    U, H, u, x, w = block.U, block.H, column.u, column.x, column.w
    m, t, b = count(w), u[i], law.B[i, i]
    L, value, places = np.empty((m, m)), np.empty(m), np.empty(m, np.intp)
    row = 0
    for k in range(len(w)):
        if w[k] != 0.0:
            places[row] = k
            row += 1
    for row in range(m):
        k = places[row]
        value[row] = column.linear[k]
        for other in range(row + 1):
            a = places[other]
            L[row, other] = b * (U[k, a] - u[k] * u[a] / t) + t * (H[k, a] - x[k] * u[a] - u[k] * x[a])
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
