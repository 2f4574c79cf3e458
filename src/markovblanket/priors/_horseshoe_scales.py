"""Compiled exact draws of the scales of a regularised horseshoe, and a sum for its hyperparameters.

With ``lambda`` half-Cauchy, ``s = tau^2 lambda^2`` and a slab of variance v, an entry is ``N(0, t)`` with
``1/t = 1/s + 1/v``. Given ``w``, ``eta = 1/lambda^2 = tau^2/s`` has the density::

    sqrt(1 + a/eta) / (1 + eta)  exp(-m eta)        a = tau^2/v        m = w^2 / (2 tau^2)

which is at most ``(1 + sqrt(a/eta)) / (1 + eta) exp(-m eta)``, and at least that divided by sqrt(2). The two terms
of this bound are in turn bounded by densities that are easy to draw from, so ``eta`` is drawn by rejection: two or
three proposals per entry, however large or small ``w`` is. The draw does not depend on the previous scale.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from markovblanket.contracts import Array

# Lower bound of w^2 / (2 tau^2): an entry that is exactly zero would have s = 0, and would stay zero for ever.
LEAST_RATE = 1e-290


@njit(cache=True)
def draw(rng: np.random.Generator, W12: Array, tau: float, slab: float) -> Array:
    """Draw ``s`` of every entry given ``w``, ``tau`` and the variance of the slab, which may be infinite."""
    s, a = np.empty_like(W12), tau * tau / slab
    for i in range(W12.shape[0]):
        for j in range(W12.shape[1]):
            m = max(0.5 * (W12[i, j] / tau) ** 2, LEAST_RATE)
            s[i, j] = tau * tau / draw_inverse(rng, m, a)
    return s


@njit(cache=True)
def draw_inverse(rng: np.random.Generator, m: float, a: float) -> float:
    """Draw ``eta`` from the density ``∝ sqrt(1 + a/eta) / (1 + eta) exp(-m eta)``."""
    pole = math.sqrt(a) * (math.pi if m < 0.3 else math.sqrt(math.pi / m))
    near = math.log1p(1.0 / m) if m < 1.0 else 0.0
    far = math.exp(-1.0) if m < 1.0 else 1.0 / m
    while True:
        place = rng.random() * (pole + near + far)
        if place < pole:
            eta, accepted = propose_pole(rng, m)
        elif place < pole + near:
            eta = math.expm1(near * (1.0 - rng.random()))  # 1/(1 + eta) up to 1/m
            accepted = math.exp(-m * eta)
        else:
            eta, accepted = propose_far(rng, m)
        ratio = math.sqrt(a / eta)
        if rng.random() * (1.0 + ratio) < accepted * math.sqrt(1.0 + ratio * ratio):
            return eta


@njit(cache=True)
def propose_pole(rng: np.random.Generator, m: float) -> tuple[float, float]:
    """Propose from a bound of ``eta^-1/2 / (1 + eta) exp(-m eta)``; also return the acceptance probability."""
    if m < 0.3:
        eta = math.tan(0.5 * math.pi * (1.0 - rng.random())) ** 2
        return eta, math.exp(-m * eta)
    eta = rng.standard_normal() ** 2 / (2.0 * m)
    return eta, 1.0 / (1.0 + eta)


@njit(cache=True)
def propose_far(rng: np.random.Generator, m: float) -> tuple[float, float]:
    """Propose ``exp(-m eta) / (1 + eta)`` by an exponential; also return the acceptance probability.

    If m is below 1, only values beyond ``1/m`` are proposed.
    """
    if m < 1.0:
        eta = (1.0 + rng.standard_exponential()) / m
        return eta, 1.0 / ((1.0 + eta) * m)
    eta = rng.standard_exponential() / m
    return eta, 1.0 / (1.0 + eta)


@njit(cache=True)
def sum_log(s: Array, x: float) -> float:
    """Return ``sum log(1 + s/x)``, computing a logarithm only when the running product gets large."""
    total, product = 0.0, 1.0
    flat = s.ravel()
    for k in range(len(flat)):
        product *= 1.0 + flat[k] / x
        if product > 1e100:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


def regularised(s: Array, slab: float) -> Array:
    """Return the variances ``t = 1 / (1/s + 1/slab)``."""
    return s / (1.0 + s / slab)
