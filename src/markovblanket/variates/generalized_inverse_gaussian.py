"""The generalised inverse Gaussian distribution and its limits, gamma and inverse gamma."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.special import gammaln, kve

from markovblanket.contracts import Array

# Coefficients of U_1, ..., U_4 in powers of t^2 (DLMF 10.41.10), each without its leading t^k.
_DEBYE = (
    (np.array([3.0, -5.0]), 24.0),
    (np.array([81.0, -462.0, 385.0]), 1152.0),
    (np.array([30375.0, -369603.0, 765765.0, -425425.0]), 414720.0),
    (np.array([4465125.0, -94121676.0, 349922430.0, -446185740.0, 185910725.0]), 39813120.0),
)


def draw(
    rng: np.random.Generator, order: float, a: float, b: float, size: int | tuple[int, ...] | None = None
) -> Array:
    """Draw from the generalised inverse Gaussian distribution, density ``∝ x^(order-1) exp(-(a x + b/x)/2)``.

    ``log x`` has a log-concave density; it is drawn by rejection from a flat top with exponential tails,
    whose acceptance rate is bounded below over all parameters (Devroye 2014). ``b = 0`` gives the gamma
    distribution with shape ``order`` and rate ``a/2``, ``a = 0`` its reciprocal.

    Parameters
    ----------
    rng : numpy.random.Generator
        The source of randomness.
    order : float
        Any real number; positive if ``b = 0``, negative if ``a = 0``.
    a, b : float
        Non-negative, not both zero.
    size : int or tuple of int, optional
        Shape of the result; a single number by default.

    Returns
    -------
    numpy.ndarray
        Independent draws.

    References
    ----------
    Devroye, L. (2014). Random variate generation for the generalized inverse Gaussian distribution.
    Statistics and Computing 24, 239-246.

    Examples
    --------
    >>> import numpy as np
    >>> x = draw(np.random.default_rng(0), order=-0.5, a=6.0, b=6.0, size=100_000)
    >>> bool(abs(x.mean() - 1.0) < 0.01)
    True
    """
    _check(order, a, b)
    if order < 0:
        with np.errstate(over="ignore", divide="ignore"):  # draws beyond the largest double are inf
            return 1.0 / draw(rng, -order, b, a, size)
    omega = math.sqrt(a) * math.sqrt(b)
    norm = math.hypot(order, omega)
    alpha = omega * (omega / (norm + order))
    if alpha == 0:
        return np.asarray(rng.gamma(order, size=size) / (a / 2))[()]
    offsets = _draw_log(rng, _Envelope.of(alpha, order), math.prod(np.atleast_1d(1 if size is None else size)))
    x = np.exp(offsets) * ((order + norm) / a)
    return x[0] if size is None else x.reshape(size)


@njit(cache=True, nogil=True)
def draw_positive_order(rng: np.random.Generator, order: float, a: float, b: float) -> float:
    """Draw one number as :func:`draw` does, in compiled code, for ``order > 0``, ``a > 0`` and ``b >= 0``.

    The logarithm is drawn by rejection from a flat top with tangents as tails, which lie above a log-concave
    density wherever they touch it; here 1.3 standard deviations, by its curvature, from the mode. Parameters that
    are not finite give NaN.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> x = [draw_positive_order(rng, 50.0, 100.0, 0.0) for _ in range(10_000)]  # a gamma distribution, mean 1
    >>> bool(abs(np.mean(x) - 1.0) < 0.01)
    True
    """
    mode = math.log((order + math.sqrt(order * order + a * b)) / a)
    up, down = 0.5 * a * math.exp(mode), 0.5 * b * math.exp(-mode)
    reach = 1.3 / math.sqrt(up + down)
    grow, shrink = math.exp(reach), math.exp(-reach)
    rise = order - up * shrink + down * grow  # slopes of the log density, left and right of the mode
    fall = -(order - up * grow + down * shrink)
    left = reach + (up * (1.0 - shrink) + down * (1.0 - grow) - order * reach) / rise
    right = reach + (up * (1.0 - grow) + down * (1.0 - shrink) + order * reach) / fall
    while True:
        place, height = rng.random() * (left + right + 1.0 / rise + 1.0 / fall) - left, 0.0
        if place > right:
            inside = rng.standard_exponential()
            if place > right + 1.0 / fall:
                place, height = -left - inside / rise, -inside
            else:
                place, height = right + inside / fall, -inside
        lower = order * place + up * (1.0 - math.exp(place)) + down * (1.0 - math.exp(-place))
        if not -rng.standard_exponential() >= lower - height:  # also if that is NaN, or the loop would never end
            return math.exp(mode + place)


def log_density(x: npt.ArrayLike, order: float, a: float, b: float) -> Array:
    """Return the normalised log density of the generalised inverse Gaussian distribution.

    Parameters
    ----------
    x : array_like
        Where to evaluate; the density is zero for ``x <= 0``.
    order, a, b : float
        As in :func:`draw`.

    Returns
    -------
    numpy.ndarray
        Log densities, ``-inf`` outside the support.

    Examples
    --------
    >>> import numpy as np
    >>> bool(np.isclose(log_density(3.0, order=1.0, a=2.0, b=0.0), -3.0))
    True
    """
    _check(order, a, b)
    x = np.asarray(x, dtype=float)
    inside = (x > 0) & (x < np.inf)
    x = np.where(inside, x, 1.0)
    with np.errstate(over="ignore"):
        exponent = (order - 1.0) * np.log(x) - 0.5 * (a * x + b / x)
    return np.where(inside, exponent - _log_normalizer(order, a, b), -np.inf)[()]


def log_bessel_k(order: float, z: float) -> float:
    """Return the logarithm of the modified Bessel function ``K_order(z)``, also where the function overflows.

    Three regimes: the uniform expansion for large ``order^2 + z^2`` (DLMF 10.41.4, written in
    ``h = sqrt(order^2 + z^2)`` so that it holds down to order zero; its error is below 1e-11 for h > 150),
    SciPy's scaled function, and the ascending series where that overflows.

    Parameters
    ----------
    order : float
        Any real number; the function is even in it.
    z : float
        Positive argument.

    Returns
    -------
    float
        The logarithm.

    Examples
    --------
    >>> import numpy as np
    >>> bool(np.isclose(log_bessel_k(0.5, 2.0), 0.5 * np.log(np.pi / 4) - 2.0))
    True
    """
    order = abs(order)
    if math.hypot(order, z) > 150.0:
        return _log_bessel_k_uniform(order, z)
    scaled = float(kve(order, z))
    return math.log(scaled) - z if scaled < math.inf else _log_bessel_k_small(order, z)


def _log_bessel_k_uniform(order: float, z: float) -> float:
    """Return the log of the uniform expansion of ``K_order(z)`` for large ``h = sqrt(order^2 + z^2)``.

    ``sqrt(pi/2h) exp(-order eta) sum_k (-1)^k U_k(t)/order^k`` with ``t = order/h``.
    """
    h = math.hypot(order, z)
    t2 = (order / h) ** 2
    series = sum(
        (-1) ** k * float(np.polynomial.polynomial.polyval(t2, c)) / divisor * (1.0 / h) ** k
        for k, (c, divisor) in enumerate(_DEBYE, start=1)
    )
    return 0.5 * math.log(math.pi / 2 / h) - h + order * math.log((order + h) / z) + math.log1p(series)


def _log_bessel_k_small(order: float, z: float) -> float:
    """Return the log of the ascending series ``Gamma(order)/2 (2/z)^order (1 - (z/2)^2/(order-1) + ...)``."""
    total = term = 1.0
    for k in range(1, 7):
        # K overflows at an order below 7 only for z < 1e-40, where no correction matters: hence the bound.
        term *= -((z / 2) ** 2) / (k * max(order - k, 1.0))
        total += term
    return float(gammaln(order)) - math.log(2) + order * (math.log(2) - math.log(z)) + math.log(total)


def _log_normalizer(order: float, a: float, b: float) -> float:
    """Return the log of the integral of ``x^(order-1) exp(-(a x + b/x)/2)`` over the positive half-line."""
    if b == 0 or a == 0:
        return float(gammaln(abs(order))) - abs(order) * math.log((a + b) / 2)
    omega = math.sqrt(a) * math.sqrt(b)
    return math.log(2) + log_bessel_k(order, omega) + 0.5 * order * (math.log(b) - math.log(a))


def _check(order: float, a: float, b: float) -> None:
    """Raise ValueError unless the density is integrable."""
    if not (0 <= a < math.inf and 0 <= b < math.inf and abs(order) < math.inf):
        raise ValueError(f"generalised inverse Gaussian: need finite order and a, b >= 0, got {order}, {a}, {b}")
    if (b == 0 and order <= 0) or (a == 0 and order >= 0):
        raise ValueError(f"generalised inverse Gaussian: not defined for order {order}, a = {a}, b = {b}")


@dataclass(frozen=True, slots=True)
class _Envelope:
    """Upper bound of the density ``exp(psi(y))`` of ``y = log(x / mode)``, with ``psi(0) = 0``.

    Constant between ``-left`` and ``right``; outside, exponential and tangent to the density, with rate ``rise``
    on the left and ``fall`` on the right.
    """

    alpha: float
    order: float
    left: float
    right: float
    fall: float
    rise: float

    @classmethod
    def of(cls, alpha: float, order: float) -> _Envelope:
        """Return the envelope by the tangents of psi where it has dropped by about one."""
        s, t = _touching_points(alpha, order)
        rise = alpha * math.sinh(s) - order * math.expm1(-s)
        fall = alpha * math.sinh(t) + order * math.expm1(t)
        left = s + float(_psi(np.float64(-s), alpha, order)) / rise
        right = t + float(_psi(np.float64(t), alpha, order)) / fall
        return cls(alpha, order, left, right, fall, rise)


def _psi(y: Array | np.float64, alpha: float, order: float) -> Array:
    """Return the log density ``psi(y) = -alpha (cosh y - 1) - order (e^y - 1 - y)``."""
    growth = np.expm1(np.minimum(y, 700.0)) - y  # finite, because 0 * inf would be nan for order zero
    return np.asarray(-2.0 * alpha * np.square(np.sinh(0.5 * y)) - order * growth)


def _touching_points(alpha: float, order: float) -> tuple[float, float]:
    """Return the distances left and right of the mode at which psi is about minus one."""
    drop = -float(_psi(np.float64(-1.0), alpha, order))
    s = 1.0
    if drop > 2.0:
        s = math.sqrt(4.0 / (alpha * math.cosh(1.0) + order))
    elif drop < 0.5:
        s = math.log(alpha + 2.0) - math.log(alpha)
        s = min(s, 1.0 / order) if order > 0 else s
    drop = -float(_psi(np.float64(1.0), alpha, order))
    t = 1.0
    if drop > 2.0:
        t = math.sqrt(2.0 / (alpha + order))
    elif drop < 0.5:
        t = math.log(4.0) - math.log(alpha + 2.0 * order)
    return min(s, 700.0), min(t, 700.0)  # any two points are valid; sinh must not overflow


def _draw_log(rng: np.random.Generator, shape: _Envelope, count: int) -> Array:
    """Draw ``count`` offsets from the mode on the log scale, by rejection."""
    y = np.empty(count)
    pending = np.arange(count)
    while pending.size:
        candidate, log_bound = _propose(rng, shape, pending.size)
        with np.errstate(over="ignore"):
            accepted = _psi(candidate, shape.alpha, shape.order) - log_bound > -rng.standard_exponential(
                pending.size
            )
        y[pending[accepted]] = candidate[accepted]
        pending = pending[~accepted]
    return y


def _propose(rng: np.random.Generator, shape: _Envelope, count: int) -> tuple[Array, Array]:
    """Draw candidates from the envelope; also return the log of its height at each."""
    top = shape.left + shape.right
    place = rng.random(count) * (top + 1.0 / shape.fall + 1.0 / shape.rise)
    tail = rng.standard_exponential(count)
    in_top, in_right = place < top, (place >= top) & (place < top + 1.0 / shape.fall)
    outside = np.where(in_right, shape.right + tail / shape.fall, -shape.left - tail / shape.rise)
    return np.where(in_top, place - shape.left, outside), np.where(in_top, 0.0, -tail)
