"""The scales of a regularised horseshoe, compiled: one exact draw per entry, and the sum its hyperparameters need.

With ``lambda`` half-Cauchy, ``s = tau^2 lambda^2`` and a slab of variance v, an entry is ``N(0, t)`` with
``1/t = 1/s + 1/v``. Given ``w``, ``eta = 1/lambda^2 = tau^2/s`` has the density::

    sqrt(1 + a/eta) / (1 + eta)  exp(-m eta)        a = tau^2/v        m = w^2 / (2 tau^2)

which is at most ``(1 + sqrt(a/eta)) / (1 + eta) exp(-m eta)``, and at least that over sqrt(2). The two terms
of the bound are bounded in turn by laws that are drawn in a line each, so ``eta`` is drawn by rejection: two or
three tries per entry, however large or small ``w`` is. No earlier scale is needed.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from markovblanket.contracts import Array

# An entry of exactly zero has s = 0 almost surely, where it would stay for ever; below this it is as good as zero.
LEAST = 1e-290


@njit(cache=True)
def draw(rng: np.random.Generator, W12: Array, tau: float, slab: float) -> Array:
    """``s`` of every entry, given ``w``, ``tau`` and the slab's variance, which may be infinite."""
    s, a = np.empty_like(W12), tau * tau / slab
    for i in range(W12.shape[0]):
        for j in range(W12.shape[1]):
            m = max(0.5 * (W12[i, j] / tau) ** 2, LEAST)
            s[i, j] = tau * tau / draw_inverse(rng, m, a)
    return s


@njit(cache=True)
def draw_inverse(rng: np.random.Generator, m: float, a: float) -> float:
    """``eta``, density ``sqrt(1 + a/eta) / (1 + eta) exp(-m eta)``."""
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
    """``eta^-1/2 / (1 + eta) exp(-m eta)`` from the law of one of its factors, and the acceptance."""
    if m < 0.3:
        eta = math.tan(0.5 * math.pi * (1.0 - rng.random())) ** 2
        return eta, math.exp(-m * eta)
    eta = rng.standard_normal() ** 2 / (2.0 * m)
    return eta, 1.0 / (1.0 + eta)


@njit(cache=True)
def propose_far(rng: np.random.Generator, m: float) -> tuple[float, float]:
    """``exp(-m eta) / (1 + eta)`` by the exponential law, beyond ``1/m`` if m is below 1, and its acceptance."""
    if m < 1.0:
        eta = (1.0 + rng.standard_exponential()) / m
        return eta, 1.0 / ((1.0 + eta) * m)
    eta = rng.standard_exponential() / m
    return eta, 1.0 / (1.0 + eta)


@njit(cache=True)
def sum_log(s: Array, x: float) -> float:
    """``sum log(1 + s/x)``, with a logarithm only now and then."""
    total, product = 0.0, 1.0
    flat = s.ravel()
    for k in range(len(flat)):
        product *= 1.0 + flat[k] / x
        if product > 1e100:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


def regularised(s: Array, slab: float) -> Array:
    """``1 / (1/s + 1/slab)``."""
    return s / (1.0 + s / slab)
