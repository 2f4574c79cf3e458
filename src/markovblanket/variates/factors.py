"""Square roots of symmetric matrices, with errors that name the matrix.

LAPACK is called directly where a sampler's loop passes: on matrices this small the checks of the friendlier
functions cost several times the work.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy.linalg.lapack import dtrtrs

from markovblanket.contracts import Array

# Rounding of a product such as W12 A W21 leaves eigenvalues of a few epsilon either side of zero.
ROUNDING = -1e-8

Places = npt.NDArray[np.intp]


def cholesky(matrix: Array, name: str) -> Array:
    """Lower Cholesky factor of a positive definite matrix; the error names what was not.

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
    """``L^-1 M`` for a lower triangular L with a non-zero diagonal.

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
    # The transpose of a row-major matrix is column-major, which spares a copy.
    solution, singular = dtrtrs(L.T, M, lower=0, trans=1)
    if singular:
        raise np.linalg.LinAlgError(f"a triangular matrix has a zero in row {singular}")
    return np.asarray(solution, dtype=float)


def semidefinite_factor(G: Array) -> Array:
    """Square H with ``H H' = G`` for a positive semi-definite G.

    G is first scaled to unit diagonal, so rows of very different size all keep their relative accuracy, and
    rows that are exactly zero stay exactly zero. H is rotated to be lower triangular once the rows are
    sorted by falling size: then no column mixes large rows into small ones, and ``H' M H`` is a matrix whose
    bad scaling, if any, is on its diagonal, where a triangular factorisation does not mind it.

    Parameters
    ----------
    G : numpy.ndarray
        Symmetric p x p matrix, positive semi-definite up to rounding.

    Returns
    -------
    numpy.ndarray
        The p x p factor; zero or negligible columns go with a singular G.

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
    if least < ROUNDING:
        raise ValueError(
            f"G must be positive semi-definite; scaled to unit diagonal it has eigenvalue {least:.3g}"
        )
    return H


@njit(cache=True)
def factor_and_least(G: Array) -> tuple[Array, float]:
    """The factor, and the least eigenvalue at unit diagonal, over the largest if that exceeds 1.

    Minus infinity if the diagonal has a negative entry. Entry by entry: expressions with whole matrices take ten
    times as long to compile.
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
        for j in range(p):  # one H for one G, whatever signs eigh chose
            H[falling[i], j] = -root[i, j] if root[j, j] < 0 else root[i, j]
    return H, values[0] / max(values[-1], 1.0)


@njit(cache=True)
def places_by_falling(size: Array) -> Places:
    """The places of the largest, the second largest, and so on; the first among equals first."""
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
    """Lower triangular L with ``L L' = stack' stack``, without forming the product; its diagonal may be negative.

    A QR factorisation: half the digits that a Cholesky factor of the product would lose.
    """
    return np.linalg.qr(stack)[1].T.copy()


@njit(cache=True)
def forward(L: Array, M: Array) -> Array:
    """:func:`solve_lower` for compiled callers, which know that the diagonal of L is not zero."""
    X = M.copy()
    for i in range(len(L)):
        for k in range(i):
            X[i] -= L[i, k] * X[k]
        X[i] /= L[i, i]
    return X


@njit(cache=True)
def canonical_normal(rng: np.random.Generator, H: Array, b: Array) -> Array:
    """A draw from ``N(H^-1 b, H^-1)``, for compiled callers; H, symmetric and positive definite, is overwritten.

    With ``H = L L'`` it is ``L'^-1 (L^-1 b + z)``, z standard normal.
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
