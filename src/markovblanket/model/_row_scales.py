"""Compiled draws of the row factors in the joint scale move of ``(W11, W12)``, by univariate slice steps.

With ``r`` the factors and e(r) the term of the prior (:class:`~markovblanket.contracts.RowLaw`), their density
is::

    prod_i r_i^power_i  exp(-1/2 sqrt(r)' M sqrt(r) - r's)  x  exp(-e(r))    or    (rate + e(r))^-law_power

Along each ``log r_i``, and along their common shift, it is determined by a few coefficients of ``exp(x/2)``,
``exp(x)`` and ``exp(2x)``, which are computed once per direction.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from markovblanket.contracts import Array, RowLaw

# Length of the first interval of a slice step and of every step outwards, and their largest number.
SLICE_WIDTH = 0.2
MOST_SLICE_STEPS = 1000


class Law(NamedTuple):
    """Parameters of the density of the row factors, for compiled code."""

    powers: Array
    M: Array
    s: Array
    linear: Array
    quadratic: Array
    power: float
    rate: float


class Terms(NamedTuple):
    """Coefficients of the log density along a direction x: ``slope x - half exp(x/2) - one exp(x) - prior(e)``.

    The term of the prior depends on ``e = constant + law_one exp(x) + law_two exp(2x)``: it is
    ``power log(rate + e)`` if ``power`` is positive, otherwise e itself.
    """

    slope: float
    half: float
    one: float
    constant: float
    law_one: float
    law_two: float
    power: float
    rate: float


def draw(rng: np.random.Generator, power: float, M: Array, s: Array, law: RowLaw) -> Array:
    """Draw the row factors ``r``, from ``r = 1``, by slice steps (Neal 2003) along each ``log r_i`` and their sum.

    Parameters
    ----------
    rng : numpy.random.Generator
        The source of randomness.
    power : float
        The power of every ``r_i`` in the density, apart from the prior.
    M, s : numpy.ndarray
        p x p and p: the quadratic and the linear term.
    law : RowLaw
        The factor of the prior.

    Returns
    -------
    numpy.ndarray
        The factors, all positive.

    Examples
    --------
    >>> import numpy as np
    >>> law = RowLaw(np.full(2, 3.0), np.ones(2), np.zeros(2))
    >>> r = draw(np.random.default_rng(0), 10.0, 20 * np.eye(2), np.zeros(2), law)
    >>> bool((r > 0).all() and (r != 1).all())
    True
    """
    powers, shape, rate = power + law.counts, float(law.power), float(law.rate)
    return _draw(rng, Law(powers, M, s, law.linear, law.quadratic, shape, rate))


@njit(cache=True)
def _draw(rng: np.random.Generator, law: Law) -> Array:
    r = np.ones(len(law.s))
    for i in range(len(r)):
        r[i] = math.exp(step(rng, along_one(i, r, law)))
    if len(r) > 1:
        r *= math.exp(step(rng, along_all(r, law)))
    return r


@njit(cache=True)
def along_one(i: int, r: Array, law: Law) -> Terms:
    """Return the coefficients of the log density along ``log r_i``, from ``r_i = 1``."""
    others, constant = 0.0, 0.0
    for k in range(len(r)):
        if k != i:
            others += law.M[i, k] * math.sqrt(r[k])
            constant += law.linear[k] * r[k] + 0.5 * law.quadratic[k] * r[k] ** 2
    one = 0.5 * law.M[i, i] + law.s[i]
    return Terms(law.powers[i], others, one, constant, law.linear[i], 0.5 * law.quadratic[i], law.power, law.rate)


@njit(cache=True)
def along_all(r: Array, law: Law) -> Terms:
    """Return the coefficients of the log density along the common shift of all ``log r_i``."""
    root = np.sqrt(r)
    one = 0.5 * np.dot(root, np.dot(law.M, root)) + np.dot(law.s, r)
    law_one, law_two = np.dot(law.linear, r), 0.5 * np.dot(law.quadratic, r * r)
    return Terms(law.powers.sum(), 0.0, one, 0.0, law_one, law_two, law.power, law.rate)


@njit(cache=True)
def log_density(x: float, terms: Terms) -> float:
    """Return the log density along a direction, up to a constant."""
    root = math.exp(0.5 * x)
    r = root * root
    e = terms.constant + terms.law_one * r + terms.law_two * r * r
    prior = terms.power * math.log(terms.rate + e) if terms.power > 0.0 else e
    return terms.slope * x - terms.half * root - terms.one * r - prior


@njit(cache=True)
def step(rng: np.random.Generator, terms: Terms) -> float:
    """Return a slice step from 0, by the algorithm of :func:`markovblanket.variates.slice.step`."""
    height = log_density(0.0, terms) - rng.standard_exponential()
    left = -SLICE_WIDTH * rng.random()
    right = left + SLICE_WIDTH
    leftwards = rng.integers(0, MOST_SLICE_STEPS)
    rightwards = MOST_SLICE_STEPS - 1 - leftwards
    while leftwards > 0 and log_density(left, terms) > height:
        left, leftwards = left - SLICE_WIDTH, leftwards - 1
    while rightwards > 0 and log_density(right, terms) > height:
        right, rightwards = right + SLICE_WIDTH, rightwards - 1
    while True:
        x = left + (right - left) * rng.random()
        if x == 0.0 or log_density(x, terms) > height:
            return x
        if x < 0.0:
            left = x
        else:
            right = x
