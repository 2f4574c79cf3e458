"""The standard normal law between two bounds, exact in both tails."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from scipy.special import erfcx, ndtr, ndtri

from markovblanket.contracts import Array

# Gauss-Legendre nodes and weights on [0, 1]: enough for exp of a quadratic that varies by a factor e.
_NODES, _WEIGHTS = (
    part * 0.5 + shift for part, shift in zip(np.polynomial.legendre.leggauss(16), (0.5, 0.0), strict=True)
)


def draw(rng: np.random.Generator, lower: npt.ArrayLike, upper: npt.ArrayLike) -> Array:
    """Draw from the standard normal law restricted to ``[lower, upper]``.

    The interval is reflected so that it lies to the right as far as possible. Unless it begins beyond 5 or is
    narrower than 1e-5, where digits would be lost, the normal distribution function is inverted. Otherwise x is
    drawn from the exponential ``exp(-lower (x - lower))`` on the interval, by inversion, and accepted with
    probability ``exp(-(x - lower)^2 / 2)``, which is near 1 (Robert 1995).
    To shift and scale, pass ``(bounds - mean)/sd`` and return ``mean + sd x``.

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

    References
    ----------
    Robert, C. P. (1995). Simulation of truncated normal variables. Statistics and Computing 5, 121-125.

    Examples
    --------
    >>> import numpy as np
    >>> x = draw(np.random.default_rng(0), [-np.inf, 3.0, 1e8, 0.25], [-40.0, 3.5, np.inf, 0.25])
    >>> bool(x[0] <= -40), bool(3 <= x[1] <= 3.5), bool(x[2] >= 1e8), float(x[3])
    (True, True, True, 0.25)
    """
    lower, upper = _checked(lower, upper)
    low, high, flip = _reflect(lower, upper)
    with np.errstate(over="ignore"):
        tail = (low >= 5.0) | (high - low < 1e-5)
    if tail.any():
        x, body = np.empty(low.shape), ~tail
        x[body] = _invert(rng, low[body], high[body])
        x[tail] = _tilt(rng, low[tail], high[tail])
    else:
        x = np.asarray(_invert(rng, low, high))
    np.clip(x, low, high, out=x)
    return np.negative(x, out=x, where=flip)[()]


def log_density(x: npt.ArrayLike, lower: npt.ArrayLike, upper: npt.ArrayLike) -> Array:
    """Log density of the standard normal law restricted to ``[lower, upper]``, normalised.

    Everything is measured against the density's largest value on the interval, so the result keeps its
    relative accuracy where the normal density itself underflows.

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
    """The bounds as float arrays of one shape, or an error for an interval without real numbers."""
    lower, upper = np.broadcast_arrays(np.asarray(lower, dtype=float), np.asarray(upper, dtype=float))
    if not np.all((lower <= upper) & (lower < np.inf) & (upper > -np.inf)):
        raise ValueError("truncated normal: lower <= upper must hold, with a real number between them")
    return lower, upper


def _reflect(lower: Array, upper: Array) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
    """``(low, high, flip)``: the interval, or its mirror image where that lies farther to the right."""
    flip = np.asarray(-lower > upper)
    return np.where(flip, -upper, lower), np.where(flip, -lower, upper), flip


def _invert(rng: np.random.Generator, low: Array, high: Array) -> Array:
    """Inverse upper-tail probability, for intervals that hold enough of the law."""
    far, near = ndtr(-high), ndtr(-low)
    # random() can return 0, whose quantile is infinite when the interval is.
    u = np.maximum(rng.random(low.shape), 2.0**-54)
    x: Array = -ndtri(far + u * (near - far))
    return x


def _tilt(rng: np.random.Generator, low: Array, high: Array) -> Array:
    """Rejection from the exponential that touches the normal density at ``low``."""
    x = np.empty(low.shape)
    pending = np.arange(low.size)
    while pending.size:
        near = low[pending]
        distance = _truncated_exponential(rng, near, high[pending] - near)
        x[pending] = near + distance
        refused = np.square(distance) > 2.0 * rng.standard_exponential(pending.size)
        pending = pending[refused]
    return x


def _truncated_exponential(rng: np.random.Generator, rate: Array, width: Array) -> Array:
    """Density ``∝ exp(-rate d)`` on ``[0, width]`` by inversion; the rate may be negative or zero."""
    u = rng.random(rate.shape)
    with np.errstate(over="ignore", invalid="ignore"):
        decay = rate * width
        flat = np.abs(decay) < 1e-290  # the quotient below would lose its digits to underflow
        distance: Array = -np.log1p(u * np.expm1(-decay)) / np.where(flat, 1.0, rate)
        return np.where(flat, u * width, distance)


def _relative_mass(low: Array, high: Array) -> Array:
    """Integral of ``exp(-(y^2 - peak^2)/2)`` over ``[low, high]``, with ``peak = max(low, 0)``."""
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
    """The same integral by Gauss-Legendre, where a difference of distribution functions would cancel."""
    peak = np.maximum(low, 0.0)[..., None]
    near = np.where(width > 0, low, 0.0)[..., None]
    distance = width[..., None] * _NODES
    exponent = -0.5 * (near - peak + distance) * (near + peak + distance)
    result: Array = width * (np.exp(np.where(width[..., None] > 0, exponent, 0.0)) @ _WEIGHTS)
    return result
