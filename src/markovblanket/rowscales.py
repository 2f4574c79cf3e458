"""The law of row factors in the joint move of ``(W11, W12)``, compiled: a few slice steps of scalars per sweep.

With ``r`` the factors and e(r) what the prior says (:class:`~markovblanket.contracts.RowLaw`), the law is::

    prod_i r_i^power_i  exp(-1/2 sqrt(r)' M sqrt(r) - r's)  x  exp(-e(r))    or    (rate + e(r))^-law_power

Along ``log r_i``, and along their common shift, that is ``exp`` of a sum of five exponentials, whose coefficients
are worked out once per direction.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from markovblanket.contracts import Array, RowLaw

WIDTH = 0.2
MAX_STEPS = 1000

# slope, and the coefficients of exp(x/2) and exp(x); then those of e(r): 1, exp(x), exp(2x); its power and rate.
Terms = tuple[float, float, float, float, float, float, float, float]


def draw(rng: np.random.Generator, power: float, M: Array, s: Array, law: RowLaw) -> Array:
    """``r``, moved from ``r = 1`` by slice steps (Neal 2003) along each ``log r_i`` and along their sum.

    Parameters
    ----------
    rng : numpy.random.Generator
        The source of randomness.
    power : float
        The power of every ``r_i`` that the prior does not bring.
    M, s : numpy.ndarray
        p x p and p: the quadratic and the linear term.
    law : RowLaw
        The prior's part.

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
    return _draw(rng, power + law.counts, M, s, law.linear, law.quadratic, float(law.power), float(law.rate))


@njit(cache=True)
def _draw(
    rng: np.random.Generator,
    powers: Array,
    M: Array,
    s: Array,
    linear: Array,
    quadratic: Array,
    law_power: float,
    law_rate: float,
) -> Array:
    p = len(s)
    r = np.ones(p)
    for i in range(p):
        r[i] = math.exp(step(rng, along_one(i, r, powers, M, s, linear, quadratic, law_power, law_rate)))
    if p > 1:
        r *= math.exp(step(rng, along_all(r, powers, M, s, linear, quadratic, law_power, law_rate)))
    return r


@njit(cache=True)
def along_one(
    i: int,
    r: Array,
    powers: Array,
    M: Array,
    s: Array,
    linear: Array,
    quadratic: Array,
    law_power: float,
    law_rate: float,
) -> Terms:
    """Along ``log r_i``, from ``r_i = 1``."""
    others, constant = 0.0, 0.0
    for k in range(len(r)):
        if k != i:
            others += M[i, k] * math.sqrt(r[k])
            constant += linear[k] * r[k] + 0.5 * quadratic[k] * r[k] ** 2
    return (
        powers[i],
        others,
        0.5 * M[i, i] + s[i],
        constant,
        linear[i],
        0.5 * quadratic[i],
        law_power,
        law_rate,
    )


@njit(cache=True)
def along_all(
    r: Array,
    powers: Array,
    M: Array,
    s: Array,
    linear: Array,
    quadratic: Array,
    law_power: float,
    law_rate: float,
) -> Terms:
    """Along the common shift of all ``log r_i``."""
    root, squares = np.sqrt(r), r * r
    return (
        powers.sum(),
        0.0,
        0.5 * np.dot(root, np.dot(M, root)) + np.dot(s, r),
        0.0,
        np.dot(linear, r),
        0.5 * np.dot(quadratic, squares),
        law_power,
        law_rate,
    )


@njit(cache=True)
def log_density(x: float, terms: Terms) -> float:
    """The log density along a direction, up to a constant."""
    slope, half, one, constant, law_one, law_two, law_power, law_rate = terms
    root = math.exp(0.5 * x)
    r = root * root
    law = constant + law_one * r + law_two * r * r
    law = law_power * math.log(law_rate + law) if law_power > 0.0 else law
    return slope * x - half * root - one * r - law


@njit(cache=True)
def step(rng: np.random.Generator, terms: Terms) -> float:
    """A slice step from 0, as :func:`markovblanket.variates.slice.step` makes it."""
    height = log_density(0.0, terms) - rng.standard_exponential()
    left = -WIDTH * rng.random()
    right = left + WIDTH
    leftwards = rng.integers(0, MAX_STEPS)
    rightwards = MAX_STEPS - 1 - leftwards
    while leftwards > 0 and log_density(left, terms) > height:
        left, leftwards = left - WIDTH, leftwards - 1
    while rightwards > 0 and log_density(right, terms) > height:
        right, rightwards = right + WIDTH, rightwards - 1
    while True:
        x = left + (right - left) * rng.random()
        if x == 0.0 or log_density(x, terms) > height:
            return x
        if x < 0.0:
            left = x
        else:
            right = x
