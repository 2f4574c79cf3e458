"""The Wishart distribution with real degrees of freedom."""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from scipy.special import multigammaln

from markovblanket.contracts import Array
from markovblanket.variates.factors import cholesky, solve_lower


def draw(rng: np.random.Generator, df: float, scale: Array) -> Array:
    """Draw from ``Wishart_p(df, scale)``, density ``∝ |X|^((df-p-1)/2) exp(-tr(scale^-1 X)/2)``.

    The mean is ``df * scale``.

    Parameters
    ----------
    rng : numpy.random.Generator
        The source of randomness.
    df : float
        Degrees of freedom, any real number above ``p - 1``.
    scale : numpy.ndarray
        Positive definite p x p matrix.

    Returns
    -------
    numpy.ndarray
        A symmetric positive definite p x p matrix.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> mean = sum(draw(rng, 5.5, np.diag([1.0, 4.0])) for _ in range(2000)) / 2000
    >>> np.round(np.diag(mean) / [5.5, 22.0], 1)
    array([1., 1.])
    """
    return draw_from_factor(rng, df, cholesky(scale, "the scale of a Wishart distribution"))


def draw_from_factor(rng: np.random.Generator, df: float, factor: Array) -> Array:
    """Draw from ``Wishart_p(df, factor factor')``, for callers that factor a fixed scale once.

    Uses Bartlett's decomposition: ``X = factor T T' factor'`` with T lower triangular, standard normals below the
    diagonal and the root of a chi-square with ``df - i`` degrees of freedom, i = 0, 1, ..., on it.

    Parameters
    ----------
    rng : numpy.random.Generator
        The source of randomness.
    df : float
        Degrees of freedom, any real number above ``p - 1``.
    factor : numpy.ndarray
        Any p x p matrix whose product with its own transpose is the scale; it need not be triangular.

    Returns
    -------
    numpy.ndarray
        A symmetric p x p matrix, positive definite if the factor is regular.

    References
    ----------
    Bartlett, M. S. (1933). On the theory of statistical regression. Proceedings of the Royal Society of
    Edinburgh 53, 260-283.

    Examples
    --------
    >>> import numpy as np
    >>> X = draw_from_factor(np.random.default_rng(0), 3.0, np.array([[1.0, 2.0], [0.0, 1.0]]))
    >>> bool(np.all(np.linalg.eigvalsh(X) > 0))
    True
    """
    root = factor @ draw_root(rng, df, factor.shape[0])
    X: Array = root @ root.T
    return X


def draw_root(rng: np.random.Generator, df: float, p: int) -> Array:
    """Draw the lower triangular T of Bartlett's decomposition, with ``T T' ~ Wishart_p(df, I)``.

    Parameters
    ----------
    rng : numpy.random.Generator
        The source of randomness.
    df : float
        Degrees of freedom, any real number above ``p - 1``.
    p : int
        Number of rows.

    Returns
    -------
    numpy.ndarray
        The p x p root.

    Examples
    --------
    >>> import numpy as np
    >>> T = draw_root(np.random.default_rng(0), 3.0, 2)
    >>> float(T[0, 1])
    0.0
    """
    if not p - 1 < df < np.inf:
        raise ValueError(f"Wishart on {p} x {p} matrices: needs more than {p - 1} degrees of freedom, got {df}")
    T: Array = bartlett(rng, float(df), p)
    return T


@njit(cache=True)
def bartlett(rng: np.random.Generator, df: float, p: int) -> Array:
    """Draw a lower triangle T, ``T T' ~ Wishart_p(df, I)``, in compiled code, without a check of ``df``."""
    T = rng.standard_normal((p, p))
    for i in range(p):
        T[i, i] = math.sqrt(rng.chisquare(df - i))
        T[i, i + 1 :] = 0.0
    return T


def log_density(X: Array, df: float, scale: Array) -> float:
    """Return the normalised log density of ``Wishart_p(df, scale)`` at X.

    Parameters
    ----------
    X : numpy.ndarray
        Symmetric p x p matrix.
    df : float
        Degrees of freedom, above ``p - 1``.
    scale : numpy.ndarray
        Positive definite p x p matrix.

    Returns
    -------
    float
        The log density; ``-inf`` where X is not positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> bool(np.isclose(log_density(np.eye(1), 2.0, np.eye(1)), np.log(0.5) - 0.5))
    True
    """
    p = X.shape[0]
    if not df > p - 1:
        raise ValueError(f"Wishart on {p} x {p} matrices: needs more than {p - 1} degrees of freedom, got {df}")
    L = cholesky(scale, "the scale of a Wishart distribution")
    try:
        root = np.asarray(np.linalg.cholesky(X), dtype=float)
    except np.linalg.LinAlgError:
        return -np.inf
    trace = np.sum(np.square(solve_lower(L, root)))
    constant = 0.5 * df * (p * np.log(2.0) + _log_det(L)) + multigammaln(0.5 * df, p)
    return float(0.5 * (df - p - 1) * _log_det(root) - 0.5 * trace - constant)


def _log_det(L: Array) -> float:
    """Return the log determinant of ``L L'`` for a triangular L."""
    return 2.0 * float(np.sum(np.log(np.diag(L))))
