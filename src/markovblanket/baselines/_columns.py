"""Compiled Gibbs updates of the columns of W in the whole-network sampler, with its inverse kept up to date.

The functions are deterministic, like the solvers: the caller draws ``Z`` and ``v``. No submatrices are formed: for
an index ``-j`` in a formula, row and column j are set to zero, so that every matrix stays d x d and contiguous.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from markovblanket.contracts import Array


@njit(cache=True)
def draw_columns(W: Array, Sigma: Array, S: Array, D: Array, lam: float, Z: Array, v: Array) -> None:
    """Draw ``w_j | W_-j-j, D, S`` for j = 0, ..., d - 1, in place; ``Sigma = W^-1`` before and after.

    With ``M = W_-j-j^-1`` and ``c = s_jj + lam`` the off-diagonal part of a column is
    ``u ~ N(-P^-1 s_j, P^-1)``, ``P = c M + diag(D_j)``, computed from row j of the standard normals ``Z``; its
    diagonal is ``w_jj = v_j + u'M u``, where the caller draws ``v_j ~ Gamma(n/2 + 1, rate c/2)``.

    ``M = Sigma - sigma_j sigma_j' / sigma_jj`` removes column j, and ``Sigma = M + b b'/v_j`` with
    ``b = M u - e_j`` restores it: O(d^2) each, for two columns in one pass over the matrix. The largest cost is
    the Cholesky factor of P, O(d^3).
    """
    d = len(W)
    M, P, b, weight = Sigma, np.empty((d, d)), np.zeros(d), 1.0
    for j in range(d):
        replace_column(M, b, weight, j)
        precision(P, M, D, S[j, j] + lam, j)
        u = normal(P, S[j], Z[j], j)
        b = np.dot(M, u)
        W[j], W[:, j] = u, u
        W[j, j] = v[j] + np.dot(u, b)
        b[j], weight = -1.0, v[j]
    M += np.outer(b, b / weight)


@njit(cache=True)
def replace_column(M: Array, b: Array, weight: float, j: int) -> None:
    """Replace M by ``W_-j-j^-1``, in place, where ``M + b b'/weight`` is the inverse of all of W."""
    sigma = M[j] + b[j] / weight * b
    scaled_b, scaled_sigma = b / weight, sigma / sigma[j]
    for i in range(len(M)):
        for k in range(len(M)):
            M[i, k] += scaled_b[i] * b[k] - scaled_sigma[i] * sigma[k]
    M[j], M[:, j] = 0.0, 0.0


@njit(cache=True)
def precision(P: Array, M: Array, D: Array, c: float, j: int) -> None:
    """Write ``c M + diag(D_j)`` to P, with ``P_jj = 1`` to keep it positive definite."""
    for i in range(len(P)):
        for k in range(len(P)):
            P[i, k] = c * M[i, k]
        P[i, i] += D[j, i]
    P[j, j] = 1.0


@njit(cache=True)
def normal(P: Array, s: Array, z: Array, j: int) -> Array:
    """Return a draw from ``N(-P^-1 s, P^-1)``, ``L'^-1 (z - L^-1 s)`` with ``P = L L'``, and zero at j."""
    L, u = np.linalg.cholesky(P), -s
    u[j] = 0.0
    for i in range(len(u)):
        u[i] = (u[i] - np.dot(L[i, :i], u[:i])) / L[i, i]
    u += z
    u[j] = 0.0
    for i in range(len(u) - 1, -1, -1):
        u[i] /= L[i, i]
        for k in range(i):  # by rows of L, which are contiguous
            u[k] -= u[i] * L[i, k]
    return u
