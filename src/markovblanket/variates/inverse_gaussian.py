"""The inverse Gaussian distribution, for any mean up to and including infinity."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from markovblanket.contracts import Array


def draw(rng: np.random.Generator, mean: npt.ArrayLike, shape: npt.ArrayLike) -> Array:
    r"""Draw from the inverse Gaussian distribution with the given mean and shape.

    Its density is ``∝ x^(-3/2) exp(-shape (x - mean)^2 / (2 mean^2 x))``.
    The square of a standard normal equals ``shape (x - mean)^2 / (mean^2 x)`` at two points x; one of them
    is returned, the smaller with probability ``mean / (mean + small)`` (Michael, Schucany and Haas 1976).
    Written in the reciprocal of the mean the smaller root is a quotient of sums of positive terms, so nothing
    cancels when ``mean`` is much larger than ``shape``, and ``mean = inf`` gives the limit, the Levy
    distribution of ``shape / Z^2``.

    Parameters
    ----------
    rng : numpy.random.Generator
        The source of randomness.
    mean : array_like
        Positive means; ``inf`` is allowed.
    shape : array_like
        Positive shapes, broadcast against ``mean``.

    Returns
    -------
    numpy.ndarray
        Independent draws, of the broadcast shape.

    References
    ----------
    Michael, J. R., Schucany, W. R. and Haas, R. W. (1976). Generating random variates using transformations
    with multiple roots. The American Statistician 30, 88-90.

    Examples
    --------
    >>> import numpy as np
    >>> x = draw(np.random.default_rng(0), mean=2.0, shape=np.full(100_000, 6.0))
    >>> bool(abs(x.mean() - 2.0) < 0.02), bool(abs(x.var() - 2.0**3 / 6.0) < 0.05)
    (True, True)
    """
    mean, shape = _checked(mean, shape)
    size = np.broadcast_shapes(mean.shape, shape.shape)
    # Numbers beyond the range of a double (1/mean, y) become 0 or inf, the limits that the formulas need.
    with np.errstate(over="ignore", divide="ignore"):
        y = np.square(rng.standard_normal(size)) / shape
        rate = 1.0 / mean
        x = np.asarray(1.0 / (rate + y / 2 + np.sqrt(y) * np.sqrt(rate + y / 4)))
        # r <= 1 in exact arithmetic; the other root is mean / r.
        r = x / mean
        other = rng.random(size) * (1.0 + r) > 1.0
        np.divide(mean, r, out=x, where=other)
    return x[()]


def log_density(x: npt.ArrayLike, mean: npt.ArrayLike, shape: npt.ArrayLike) -> Array:
    """Return the normalised log density of the inverse Gaussian distribution; Levy's for ``mean = inf``.

    Parameters
    ----------
    x : array_like
        Where to evaluate; the density is zero for ``x <= 0``.
    mean, shape : array_like
        As in :func:`draw`, broadcast against ``x``.

    Returns
    -------
    numpy.ndarray
        Log densities, ``-inf`` outside the support.

    Examples
    --------
    >>> import numpy as np
    >>> bool(np.isclose(log_density(1.0, mean=1.0, shape=1.0), -0.5 * np.log(2 * np.pi)))
    True
    """
    mean, shape = _checked(mean, shape)
    x = np.asarray(x, dtype=float)
    inside = (x > 0) & (x < np.inf)
    x = np.where(inside, x, 1.0)
    with np.errstate(over="ignore"):
        exponent = 0.5 * np.square(np.sqrt(shape) * (x / mean - 1.0) / np.sqrt(x))
    density = 0.5 * np.log(shape / (2 * np.pi)) - 1.5 * np.log(x) - exponent
    return np.where(inside, density, -np.inf)[()]


def _checked(mean: npt.ArrayLike, shape: npt.ArrayLike) -> tuple[Array, Array]:
    """Return the parameters as float arrays; raise ValueError naming the one that is out of range."""
    mean, shape = np.asarray(mean, dtype=float), np.asarray(shape, dtype=float)
    if not np.all(mean > 0):
        raise ValueError("inverse Gaussian: every mean must be positive (inf is allowed)")
    if not np.all((shape > 0) & (shape < np.inf)):
        raise ValueError("inverse Gaussian: every shape must be positive and finite")
    return mean, shape
