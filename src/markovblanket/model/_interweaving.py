"""Compiled draws of ``W11`` given the regression coefficients, in addition to those given ``W12`` (interweaving).

Where the query is well explained, ``W11`` given ``W12`` moves little, and vice versa: both are tied to the
regression of the query on the rest, ``-U W12``. Here ``Z = U W12`` is held fixed instead, and ``W12 = W11 Z``
changes with ``W11``; alternating both kinds of steps mixes better than either (Yu and Meng 2011). Given the scales
T, the conditional density of ``W11``, with the Jacobian ``|W11|^q`` of ``W12 = W11 Z``, is log-concave::

    |W11|^(n/2 + q) exp -1/2 ( tr(D W11) + sum_a w_a' H_a w_a )        w_a row a of W11, H_a = Z diag(1/T_a) Z'

with ``D = B + Z A Z' + Z S21 + S12 Z'``. Once the ``H_a`` are known, its cost does not depend on q. Entries are
drawn in turn by slice steps: adding x to the entries (a, b) and (b, a) of ``W11`` multiplies its determinant by
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

# With a scale below this, the entry is zero up to rounding and ``W11`` cannot move.
LEAST_SCALE = 1e-290
# Steps outwards before their length starts to double: hardly any density needs more, but every search must end.
MOST_EQUAL_STEPS = 100
MACHINE_EPSILON = 2.0**-52


def curvatures(Z: Array, T: Array) -> Array:
    """Return the p x p matrices ``H_a = Z diag(1/T_a) Z'`` of all rows a, p x p x p."""
    return np.stack([(Z / scales) @ Z.T for scales in T])


@njit(cache=True)
def draw(rng: np.random.Generator, W11: Array, power: float, D: Array, H: Array) -> Array:
    """Draw every entry of ``W11`` in turn, given the others and the regression; ``power`` is ``n/2 + q``.

    Examples
    --------
    >>> import numpy as np
    >>> rng, W, kept = np.random.default_rng(0), np.eye(1), []
    >>> for _ in range(4000):
    ...     W = draw(rng, W, 5.0, np.eye(1), np.zeros((1, 1, 1)))
    ...     kept.append(W[0, 0])
    >>> bool(abs(np.mean(kept) - 12) < 0.5)  # w^5 exp(-w/2): a gamma distribution of shape 6 and rate 1/2
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
            if expected_width(half, quadratic, u, v) < MACHINE_EPSILON * math.sqrt(W[a, a] * W[b, b]):
                continue  # the entry cannot move with such small scales, and its slope is mere rounding
            x = step(rng, half, linear, quadratic, u, v)
            W[a, b] += x
            W[b, a] = W[a, b]
            follow(U, a, b, x)
    return W


@njit(cache=True)
def step(rng: np.random.Generator, power: float, linear: float, quadratic: float, u: float, v: float) -> float:
    """Return a slice step from x = 0 for ``((1 + x u)^2 - x^2 v)^power exp(-linear x - quadratic x^2 / 2)``.

    The density is log-concave, so a slice is an interval: a draw from any larger interval, shrunk after each point
    outside the slice, is uniform on the slice.
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
    """Return three standard deviations, estimated by the curvature at x = 0."""
    return 3.0 / math.sqrt(quadratic + 2.0 * power * (u * u + v))


@njit(cache=True)
def outside(
    end: float, width: float, level: float, power: float, linear: float, quadratic: float, u: float, v: float
) -> float:
    """Return the end of the interval, moved outwards until it lies outside the slice."""
    steps = 0
    while log_density(end, power, linear, quadratic, u, v) > level:
        end, steps = end + width, steps + 1
        if steps > MOST_EQUAL_STEPS:
            width *= 2.0
    return end


@njit(cache=True)
def log_density(x: float, power: float, linear: float, quadratic: float, u: float, v: float) -> float:
    """Return the log density at x, relative to x = 0; minus infinity where ``W11`` is not positive definite."""
    if 1.0 + x * u <= abs(x) * math.sqrt(v):
        return -np.inf
    return power * math.log((1.0 + x * u) ** 2 - x * x * v) - (linear + 0.5 * quadratic * x) * x


@njit(cache=True)
def follow(U: Array, a: int, b: int, x: float) -> None:
    """Update the inverse ``U``, in place, after x was added to the entries (a, b) and (b, a) of ``W11``."""
    first, second = U[a].copy(), U[b].copy()
    if a == b:
        U -= x / (1.0 + x * first[a]) * np.outer(first, first)
        return
    cross, aa, bb = 1.0 + x * first[b], first[a], second[b]
    share = x / (cross * cross - x * x * aa * bb)
    mixed = np.outer(first, second)
    U += share * (x * bb * np.outer(first, first) + x * aa * np.outer(second, second) - cross * (mixed + mixed.T))
