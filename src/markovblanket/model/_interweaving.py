"""``W11`` given the regression: a second step for it, beside the one given ``W12``.

Given ``W12``, ``W11`` moves little where the query is well explained, and the other way round: the regression of
the query on the rest, ``-U W12``, ties them. Here ``Z = U W12`` is held instead, and ``W12 = W11 Z`` follows
``W11``; steps of both kinds in turn forget more than either (Yu and Meng 2011). With scales T the law of ``W11``,
the Jacobian ``|W11|^q`` of ``W12 = W11 Z`` included, is log-concave::

    |W11|^(n/2 + q) exp -1/2 ( tr(D W11) + sum_a w_a' H_a w_a )        w_a row a of W11, H_a = Z diag(1/T_a) Z'

with ``D = B + Z A Z' + Z S21 + S12 Z'``. It is p x p, whatever q is, once the ``H_a`` are known. Entries are drawn
in turn by slice steps: to add x to the entries (a, b) and (b, a) of ``W11`` multiplies its determinant by
``(1 + x u_ab)^2 - x^2 u_aa u_bb``.

References
----------
Yu, Y. and Meng, X.-L. (2011). To center or not to center: that is not the question. An ancillarity-sufficiency
interweaving strategy (ASIS) for boosting MCMC efficiency. Journal of Computational and Graphical Statistics 20.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from markovblanket.contracts import Array

# A scale below this holds its entry at zero, to rounding, and ``W11`` where it is.
LEAST = 1e-290
# So many steps outwards are of the same length; later ones, which hardly any law asks for, grow.
EVEN = 100
ROUNDING = 2.0**-52


def curvatures(Z: Array, T: Array) -> Array:
    """``H_a`` for every row a: p x p x p."""
    return np.stack([(Z / scales) @ Z.T for scales in T])


@njit(cache=True)
def draw(rng: np.random.Generator, W11: Array, power: float, D: Array, H: Array) -> Array:
    """Every entry of ``W11`` in turn, given the others and the regression; ``power`` is ``n/2 + q``.

    Examples
    --------
    >>> import numpy as np
    >>> rng, W, kept = np.random.default_rng(0), np.eye(1), []
    >>> for _ in range(4000):
    ...     W = draw(rng, W, 5.0, np.eye(1), np.zeros((1, 1, 1)))
    ...     kept.append(W[0, 0])
    >>> bool(abs(np.mean(kept) - 12) < 0.5)  # w^5 exp(-w/2): a gamma law of shape 6 and rate 1/2
    True
    """
    W, U = W11.copy(), np.linalg.inv(W11)
    for a in range(len(W)):
        for b in range(a + 1):
            linear, quadratic, u, v = 0.5 * D[a, a] + np.dot(H[a, a], W[a]), H[a, a, a], U[a, a], 0.0
            if a != b:
                linear = D[a, b] + np.dot(H[a, b], W[a]) + np.dot(H[b, a], W[b])
                quadratic, u, v = H[a, b, b] + H[b, a, a], U[a, b], U[a, a] * U[b, b]
            half = power if a != b else 0.5 * power
            if expected_width(half, quadratic, u, v) < ROUNDING * math.sqrt(W[a, a] * W[b, b]):
                continue  # scales so small hold the entry where it is, and the slope is all rounding
            x = step(rng, half, linear, quadratic, u, v)
            W[a, b] += x
            W[b, a] = W[a, b]
            follow(U, a, b, x)
    return W


@njit(cache=True)
def step(rng: np.random.Generator, power: float, linear: float, quadratic: float, u: float, v: float) -> float:
    """A slice step from x = 0 under ``((1 + x u)^2 - x^2 v)^power exp(-linear x - quadratic x^2 / 2)``.

    The law is log-concave: a slice is an interval, and of any that holds it, cut down to it, the draw is uniform.
    """
    level, width = -rng.standard_exponential(), expected_width(power, quadratic, u, v)
    left = -width * rng.random()
    right = left + width
    left = outside(left, -width, level, power, linear, quadratic, u, v)
    right = outside(right, width, level, power, linear, quadratic, u, v)
    while True:
        x = left + rng.random() * (right - left)
        if x == 0.0 or log_density(x, power, linear, quadratic, u, v) >= level:
            return x
        left, right = (x, right) if x < 0.0 else (left, x)


@njit(cache=True)
def expected_width(power: float, quadratic: float, u: float, v: float) -> float:
    """Three standard deviations, by the curvature at x = 0."""
    return 3.0 / math.sqrt(quadratic + 2.0 * power * (u * u + v))


@njit(cache=True)
def outside(
    end: float, width: float, level: float, power: float, linear: float, quadratic: float, u: float, v: float
) -> float:
    """The end of the interval, moved outwards until it is not in the slice."""
    steps = 0
    while log_density(end, power, linear, quadratic, u, v) > level:
        end, steps = end + width, steps + 1
        if steps > EVEN:
            width *= 2.0
    return end


@njit(cache=True)
def log_density(x: float, power: float, linear: float, quadratic: float, u: float, v: float) -> float:
    """Minus infinity where ``W11`` is not positive definite."""
    if 1.0 + x * u <= abs(x) * math.sqrt(v):
        return -np.inf
    return power * math.log((1.0 + x * u) ** 2 - x * x * v) - (linear + 0.5 * quadratic * x) * x


@njit(cache=True)
def follow(U: Array, a: int, b: int, x: float) -> None:
    """The inverse, in place, after x was added to the entries (a, b) and (b, a)."""
    first, second = U[a].copy(), U[b].copy()
    if a == b:
        U -= x / (1.0 + x * first[a]) * np.outer(first, first)
        return
    cross, aa, bb = 1.0 + x * first[b], first[a], second[b]
    share = x / (cross * cross - x * x * aa * bb)
    mixed = np.outer(first, second)
    U += share * (x * bb * np.outer(first, first) + x * aa * np.outer(second, second) - cross * (mixed + mixed.T))
