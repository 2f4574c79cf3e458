"""A column of the widened block as a linear regression, its pivot held fixed.

With ``w`` the off-diagonal entries of column i, ``M = (W11_{-i,-i})^-1``, the pivot ``g = w_ii - w'Mw`` and
``c = (1 at i, -Mw elsewhere)``, the inverse is ``U = [M] + c c'/g``. Off the diagonal an entry is zero, or normal
with variance v; a pair has prior odds of not being zero. Given g, the column is a linear regression::

    precision  Q = b_ii M + M G M / g        linear term  l = -(b_i - M g_i / g)

``E`` is M with zeros in row and column i. Neither E nor ``O = E G E`` is formed: with ``u = U e_i``, ``H = U G U``
and ``x = (H e_i - h_ii u / 2u_ii) / u_ii``::

    E = U - u u'/u_ii        O = H - x u' - u x'        g = 1/u_ii

so a column of Q costs O(P).
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from numba import njit

from markovblanket.contracts import Array

# Classes of pairs, with odds and slab of their own: pairs with a query variable, and pairs of other variables.
WITH_QUERY, WITHOUT_QUERY = 0, 1


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
    """One column as a regression: its entries ``w`` (zero at i), the linear term, and ``diag(Q)``.

    ``Eg`` is ``E G e_i``; the last two vectors are working space.
    """

    u: Array
    x: Array
    w: Array
    linear: Array
    diagonal: Array
    Eg: Array
    Ew: Array
    Ow: Array


def either(a: Any, b: Any) -> Any:
    """Return the odds that at least one of two independent causes is there, given their odds; also of arrays."""
    return a + b + a * b


_either = njit(cache=True, nogil=True)(either)


@njit(cache=True, nogil=True)
def class_of(i: int, k: int, p: int) -> int:
    """Return the class of a pair; the first p variables are the query."""
    return WITH_QUERY if i < p or k < p else WITHOUT_QUERY


@njit(cache=True, nogil=True)
def prior_of(i: int, law: Law, prior: Array, least: Array) -> None:
    """Write ``sqrt(v) / odds`` and ``1/v`` of each entry of column i, with its prior odds of not being zero."""
    p, of_class, of_variable, slab, precision = law.p, law.odds, law.own_odds, law.slab, law.precision
    for k in range(len(prior)):
        kind = class_of(i, k, p)
        v = slab[kind] * precision[i] * precision[k]
        prior[k] = math.sqrt(v) / _either(_either(of_class[kind], of_variable[i]), of_variable[k])
        least[k] = 1.0 / v


@njit(cache=True, nogil=True)
def slab_of(i: int, k: int, law: Law) -> float:
    """Return the variance of the entry (i, k) if it is not zero."""
    return law.slab[class_of(i, k, law.p)] * law.precision[i] * law.precision[k]


@njit(cache=True, nogil=True)
def begin(block: Block, law: Law, column: Column, i: int) -> None:
    """Set up the regression of column i: its entries, ``diag(Q)`` and the linear term."""
    W, U, G, H = block
    u, x, w, linear, diagonal = column[:5]
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
def precision_of(block: Block, law: Law, column: Column, i: int, k: int, q: Array) -> None:
    """Write column k of the precision Q of column i to ``q``."""
    U, H, u, x = block.U, block.H, column.u, column.x
    t, b = u[i], law.B[i, i]
    by_u, by_x = b * u[k] / t + t * x[k], t * u[k]
    for a in range(len(u)):
        q[a] = b * U[k, a] + t * H[k, a] - by_u * u[a] - by_x * x[a]
