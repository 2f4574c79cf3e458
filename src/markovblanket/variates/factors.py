"""Factors of symmetric matrices and triangular solves, with error messages that name the matrix.

LAPACK is called directly in functions that the sampler calls in every sweep: on matrices this small the input
checks of the higher-level functions would cost several times the work itself.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.linalg.lapack import dtrtrs

from markovblanket.contracts import Array

# Rounding of a product such as W12 A W21 moves zero eigenvalues to either side of zero. An eigenvalue below this,
# relative to the largest, is more than rounding: the matrix is not positive semi-definite.
LEAST_EIGENVALUE = -1e-8

Places = npt.NDArray[np.intp]


def cholesky(matrix: Array, name: str) -> Array:
    """Return the lower Cholesky factor of a positive definite matrix; raise ValueError with its name otherwise.

    Parameters
    ----------
    matrix : numpy.ndarray
        A symmetric p x p matrix.
    name : str
        What the matrix is, for the message.

    Returns
    -------
    numpy.ndarray
        Lower triangular L with ``L L' = matrix``.

    Examples
    --------
    >>> import numpy as np
    >>> cholesky(-np.eye(2), "the scale")
    Traceback (most recent call last):
    ...
    ValueError: the scale must be positive definite and finite
    """
    try:
        L = np.asarray(np.linalg.cholesky(matrix), dtype=float)
    except np.linalg.LinAlgError as error:
        raise ValueError(f"{name} must be positive definite and finite") from error
    if not np.isfinite(L).all():
        raise ValueError(f"{name} must be positive definite and finite")
    return L


def solve_lower(L: Array, M: Array) -> Array:
    """Return ``L^-1 M`` for a lower triangular L with a non-zero diagonal.

    Parameters
    ----------
    L : numpy.ndarray
        Lower triangular p x p matrix.
    M : numpy.ndarray
        p x k matrix.

    Returns
    -------
    numpy.ndarray
        The solution, p x k.

    Examples
    --------
    >>> import numpy as np
    >>> solve_lower(np.array([[2.0, 0.0], [1.0, 1.0]]), np.array([[2.0], [3.0]])).tolist()
    [[1.0], [2.0]]
    """
    # The transpose of a row-major matrix is column-major, which saves a copy.
    solution, singular = dtrtrs(L.T, M, lower=0, trans=1)
    if singular:
        raise np.linalg.LinAlgError(f"a triangular matrix has a zero in row {singular}")
    return np.asarray(solution, dtype=float)


def semidefinite_factor(G: Array) -> Array:
    """Return a square H with ``H H' = G`` for a positive semi-definite G.

    G is first scaled to unit diagonal, so rows of very different size all keep their relative accuracy, and
    rows that are exactly zero stay exactly zero. H is rotated to be lower triangular once the rows are
    sorted by decreasing size: then no column mixes large rows into small ones, and any bad scaling of ``H' M H``
    is on its diagonal, where it does not harm a triangular factorisation.

    Parameters
    ----------
    G : numpy.ndarray
        Symmetric p x p matrix, positive semi-definite up to rounding.

    Returns
    -------
    numpy.ndarray
        The p x p factor; if G is singular, some of its columns are zero or negligible.

    Examples
    --------
    >>> import numpy as np
    >>> G = np.array([[4.0, 0.0, 2e-8], [0.0, 0.0, 0.0], [2e-8, 0.0, 1e-16]])
    >>> H = semidefinite_factor(G)
    >>> bool(np.allclose(H @ H.T, G, rtol=1e-12, atol=0))
    True
    """
    diagonal = np.diag(G)
    if not (np.isfinite(G).all() and (diagonal >= 0).all() and not G[diagonal == 0].any()):
        raise ValueError("G must be finite and positive semi-definite; its diagonal rules that out")
    H, least = factor_and_least(np.ascontiguousarray(G, dtype=float))
    if least < LEAST_EIGENVALUE:
        raise ValueError(
            f"G must be positive semi-definite; scaled to unit diagonal it has eigenvalue {least:.3g}"
        )
    return H


@njit(cache=True)
def factor_and_least(G: Array) -> tuple[Array, float]:
    """Return H with ``H H' = G``, and the least eigenvalue of G at unit diagonal, relative to the largest.

    (Relative to 1, if the largest eigenvalue is smaller than that.) It is minus infinity if the diagonal of G has
    a negative entry. Written entry by entry, because expressions with whole matrices take ten times as long to
    compile.
    """
    p = len(G)
    size, unit, stack, H = np.empty(p), np.empty(p), np.empty((p, p)), np.empty((p, p))
    for i in range(p):
        if G[i, i] < 0:
            return H, -np.inf
        size[i] = math.sqrt(G[i, i])
        unit[i] = size[i] if size[i] > 0 else 1.0
    for i in range(p):
        for j in range(p):
            stack[i, j] = G[i, j] / (unit[i] * unit[j])
    values, vectors = np.linalg.eigh(stack)
    falling = places_by_falling(size)
    for i in range(p):
        for j in range(p):
            stack[j, i] = vectors[falling[i], j] * (size[falling[i]] * math.sqrt(max(values[j], 0.0)))
    root = triangular_root(stack)
    for i in range(p):
        for j in range(p):  # H must not depend on the signs that eigh chose
            H[falling[i], j] = -root[i, j] if root[j, j] < 0 else root[i, j]
    return H, values[0] / max(values[-1], 1.0)


@njit(cache=True)
def places_by_falling(size: Array) -> Places:
    """Return the indices that sort ``size`` in decreasing order; a stable insertion sort."""
    places = np.empty(len(size), np.intp)
    for i in range(len(size)):
        k = i
        while k > 0 and size[places[k - 1]] < size[i]:
            places[k] = places[k - 1]
            k -= 1
        places[k] = i
    return places


@njit(cache=True)
def triangular_root(stack: Array) -> Array:
    """Return a lower triangular L with ``L L' = stack' stack``, whose diagonal may have negative entries.

    By a QR factorisation, which loses half as many digits as a Cholesky factor of the product.
    """
    return np.linalg.qr(stack)[1].T.copy()


@njit(cache=True)
def forward(L: Array, M: Array) -> Array:
    """Return ``L^-1 M`` for a lower triangular L, in compiled code, which does not check its diagonal."""
    X = M.copy()
    for i in range(len(L)):
        for k in range(i):
            X[i] -= L[i, k] * X[k]
        X[i] /= L[i, i]
    return X


@njit(cache=True)
def canonical_normal(rng: np.random.Generator, H: Array, b: Array) -> Array:
    """Draw from ``N(H^-1 b, H^-1)`` for a symmetric positive definite H, which is overwritten.

    With ``H = L L'`` the draw is ``L'^-1 (L^-1 b + z)``, z standard normal.
    """
    d, x = len(b), b.copy()
    for i in range(d):
        for k in range(i + 1):
            rest = H[i, k] - np.dot(H[i, :k], H[k, :k])
            H[i, k] = math.sqrt(rest) if i == k else rest / H[k, k]
        x[i] = (x[i] - np.dot(H[i, :i], x[:i])) / H[i, i]
    for i in range(d):
        x[i] += rng.standard_normal()
    for i in range(d - 1, -1, -1):
        x[i] /= H[i, i]
        x[:i] -= x[i] * H[i, :i]
    return x
