"""The standard normal distribution truncated to an interval, exact in both tails."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.special import erfcx, ndtr

from markovblanket.contracts import Array

# Gauss-Legendre nodes and weights on [0, 1]: enough for exp of a quadratic that varies by a factor e.
_NODES, _WEIGHTS = (
    part * 0.5 + shift for part, shift in zip(np.polynomial.legendre.leggauss(16), (0.5, 0.0), strict=True)
)


def draw(rng: np.random.Generator, lower: npt.ArrayLike, upper: npt.ArrayLike) -> Array:
    """Draw from the standard normal distribution truncated to ``[lower, upper]``.

    Every draw is made by :func:`between`. To shift and scale, pass ``(bounds - mean)/sd`` and return
    ``mean + sd x``.

    Parameters
    ----------
    rng : numpy.random.Generator
        The source of randomness.
    lower, upper : array_like
        Bounds with ``lower <= upper``, broadcast against each other; infinite ones are allowed.

    Returns
    -------
    numpy.ndarray
        Independent draws of the broadcast shape, each inside its closed interval.

    Examples
    --------
    >>> import numpy as np
    >>> x = draw(np.random.default_rng(0), [-np.inf, 3.0, 1e8, 0.25], [-40.0, 3.5, np.inf, 0.25])
    >>> bool(x[0] <= -40), bool(3 <= x[1] <= 3.5), bool(x[2] >= 1e8), float(x[3])
    (True, True, True, 0.25)
    """
    lower, upper = _checked(lower, upper)
    return _each(rng, np.stack([lower, upper]).reshape(2, -1)).reshape(lower.shape)[()]


@njit(cache=True)
def between(rng: np.random.Generator, lower: float, upper: float) -> float:
    """Return one draw from the standard normal distribution truncated to ``[lower, upper]``, for compiled callers.

    By rejection (Robert 1995), on the interval or its mirror image, whichever lies farther to the right. Proposals
    are uniform where the density varies little, normal where the interval holds most of the mass, and otherwise
    exponential, starting at the lower end. Wherever the bounds are, more than half of the proposals are accepted.

    Parameters
    ----------
    rng : numpy.random.Generator
        The source of randomness.
    lower, upper : float
        Bounds with ``lower <= upper``; infinite ones are allowed.

    Returns
    -------
    float
        The draw, inside the closed interval.

    References
    ----------
    Robert, C. P. (1995). Simulation of truncated normal variables. Statistics and Computing 5, 121-125.

    Examples
    --------
    >>> import numpy as np
    >>> 40.0 <= between(np.random.default_rng(0), 40.0, np.inf) < 41.0
    True
    """
    if not (lower <= upper and lower < np.inf and upper > -np.inf):
        raise ValueError("truncated normal: lower <= upper must hold, with a real number between them")
    flip = -lower > upper
    low, high = (-upper, -lower) if flip else (lower, upper)
    x = _to_the_right(rng, low, high)
    return -x if flip else x


@njit(cache=True)
def _each(rng: np.random.Generator, ends: Array) -> Array:
    """Return one truncated normal draw per column of ``ends``, whose rows are the lower and upper bounds."""
    x = np.empty(ends.shape[1])
    for i in range(len(x)):
        x[i] = between(rng, ends[0, i], ends[1, i])
    return x


# Inlined by the compiler, because a function call would take as long as the draw itself.


@njit(cache=True, inline="always")
def _to_the_right(rng: np.random.Generator, low: float, high: float) -> float:
    """Return one standard normal draw truncated to ``[low, high]``, where ``high >= |low|``."""
    narrow = high - low < 2.4 if low < 0.0 else (high - low) * (0.5 * high + 0.5 * low) < 1.0
    if narrow:
        return _from_uniform(rng, low, high)
    return _from_normal(rng, low, high) if low < -0.5 else _from_exponential(rng, low, high)


@njit(cache=True, inline="always")
def _from_normal(rng: np.random.Generator, low: float, high: float) -> float:
    """Return the first of standard normal proposals that lies in ``[low, high]``."""
    while True:
        x = rng.standard_normal()
        if low <= x <= high:
            return x


@njit(cache=True, inline="always")
def _from_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    """Return a draw by uniform proposals, accepted with their density relative to its maximum on the interval."""
    peak = max(low, 0.0)
    while True:
        x = min(low + (high - low) * rng.random(), high)
        if (x - peak) * (0.5 * x + 0.5 * peak) <= rng.standard_exponential():
            return x


@njit(cache=True, inline="always")
def _from_exponential(rng: np.random.Generator, low: float, high: float) -> float:
    """Return a draw by shifted exponential proposals ``low + d``, d with mean s.

    They are accepted with probability ``exp(-(d - s)^2 / 2)``. The acceptance rate is largest for
    ``s = 2 / (low + sqrt(low^2 + 4))``, which satisfies ``1/s - s = low``.
    """
    spread = 2.0 / (low + math.sqrt(low * low + 4.0))
    while True:
        d = spread * rng.standard_exponential()
        if d <= high - low and 0.5 * (d - spread) ** 2 <= rng.standard_exponential():
            return min(low + d, high)


def log_density(x: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike) -> Array:
    """Return the normalised log density of the standard normal distribution truncated to ``[lower, upper]``.

    All terms are relative to the largest density on the interval, so the result keeps its relative accuracy where
    the normal density itself underflows.

    Parameters
    ----------
    x : array_like
        Where to evaluate.
    lower, upper : array_like
        Bounds with ``lower < upper``, broadcast against ``x``.

    Returns
    -------
    numpy.ndarray
        Log densities, ``-inf`` outside the interval.

    Examples
    --------
    >>> import numpy as np
    >>> bool(np.isclose(log_density(0.0, -np.inf, np.inf), -0.5 * np.log(2 * np.pi)))
    True
    >>> bool(np.isclose(log_density(1e8, 1e8, np.inf), np.log(1e8)))
    True
    """
    lower, upper = _checked(lower, upper)
    if np.any(lower == upper):
        raise ValueError("truncated normal: an interval of length zero has no density")
    low, high, flip = _reflect(lower, upper)
    x = np.asarray(x, dtype=float)
    inside = (lower <= x) & (x <= upper)
    peak = np.maximum(low, 0.0)
    y = np.where(inside, np.where(flip, -x, x), peak)
    with np.errstate(over="ignore"):
        exponent = -0.5 * (y - peak) * (y + peak)
    return np.where(inside, exponent - np.log(_relative_mass(low, high)), -np.inf)[()]


def _checked(lower: npt.ArrayLike, upper: npt.ArrayLike) -> tuple[Array, Array]:
    """Return the bounds as float arrays of one shape; raise ValueError if an interval contains no real number."""
    lower, upper = np.broadcast_arrays(np.asarray(lower, dtype=float), np.asarray(upper, dtype=float))
    if not np.all((lower <= upper) & (lower < np.inf) & (upper > -np.inf)):
        raise ValueError("truncated normal: lower <= upper must hold, with a real number between them")
    return lower, upper


def _reflect(lower: Array, upper: Array) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
    """Return ``(low, high, flip)``: the interval, or its mirror image where that lies farther to the right."""
    flip = np.asarray(-lower > upper)
    return np.where(flip, -upper, lower), np.where(flip, -lower, upper), flip


def _relative_mass(low: Array, high: Array) -> Array:
    """Return the integral of ``exp(-(y^2 - peak^2)/2)`` over ``[low, high]``, with ``peak = max(low, 0)``."""
    with np.errstate(over="ignore"):
        width = high - low
        drop = width * (np.abs(low) + 0.5 * width)
    narrow = drop < 1.0
    mass = np.sqrt(np.pi / 2) * (
        erfcx(np.maximum(low, 0.0) / np.sqrt(2)) - np.exp(-drop) * erfcx(high / np.sqrt(2))
    )
    mass = np.where(low < 0, np.sqrt(2 * np.pi) * (ndtr(high) - ndtr(low)), mass)
    return np.where(narrow, _quadrature(low, np.where(narrow, width, 0.0)), mass)


def _quadrature(low: Array, width: Array) -> Array:
    """Return the integral of ``exp(-(y^2 - peak^2)/2)`` over ``[low, low + width]`` by Gauss-Legendre quadrature.

    For narrow intervals, where a difference of distribution functions would suffer from cancellation.
    """
    peak = np.maximum(low, 0.0)[..., None]
    near = np.where(width > 0, low, 0.0)[..., None]
    distance = width[..., None] * _NODES
    exponent = -0.5 * (near - peak + distance) * (near + peak + distance)
    result: Array = width * (np.exp(np.where(width[..., None] > 0, exponent, 0.0)) @ _WEIGHTS)
    return result
