"""The q small p x p systems of the dual solver, in compiled code whose inner loops run over the variables.

Lower triangles and symmetric matrices are packed: entry (a, b), b <= a, of all q blocks is row ``a (a+1)/2 + b``
of an array with q columns. The innermost loops then read contiguous memory and can be vectorised, however small p
is.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from markovblanket.contracts import Array

# Variables processed at a time: the packed rows of so many variables stay in the fastest cache.
VARIABLES_AT_A_TIME = 128


@njit(cache=True)
def factorise(root_T: Array, U: Array, L: Array) -> tuple[Array, Array]:
    """Return packed ``R_j`` and ``G_j``: ``R_j R_j' = I + sqrt(T_j) U sqrt(T_j)`` and ``G_j = L' E_j^-1 L``.

    ``E_j^-1 = sqrt(T_j) (R_j R_j')^-1 sqrt(T_j)``, so ``G_j = N_j' N_j`` with ``N_j = R_j^-1 sqrt(T_j) L``, lower
    triangular. The eigenvalues of ``G_j`` are in [0, 1).
    """
    p, q = root_T.shape
    size = p * (p + 1) // 2
    R, G, N = np.empty((size, q)), np.empty((size, q)), np.empty((size, VARIABLES_AT_A_TIME))
    for first in range(0, q, VARIABLES_AT_A_TIME):
        part = slice(first, min(first + VARIABLES_AT_A_TIME, q))
        few = N[:, : part.stop - first]
        roots(R[:, part], root_T[:, part], U)
        whiten(few, R[:, part], root_T[:, part], L)
        squares(G[:, part], few, p)
    return R, G


@njit(cache=True)
def roots(R: Array, root_T: Array, U: Array) -> None:
    """Write the packed Cholesky factors of ``I + sqrt(T_j) U sqrt(T_j)`` to ``R``."""
    for a in range(len(U)):
        for b in range(a + 1):
            x = R[a * (a + 1) // 2 + b]
            for k in range(len(x)):
                x[k] = root_T[a, k] * U[a, b] * root_T[b, k] + (1.0 if a == b else 0.0)
            for c in range(b):
                subtract(x, R[a * (a + 1) // 2 + c], R[b * (b + 1) // 2 + c])
            if a == b:
                for k in range(len(x)):
                    x[k] = np.sqrt(x[k])
            else:
                divide(x, R[b * (b + 1) // 2 + b])


@njit(cache=True)
def whiten(N: Array, R: Array, root_T: Array, L: Array) -> None:
    """Write the packed triangles ``N_j = R_j^-1 sqrt(T_j) L`` to ``N``."""
    for a in range(len(L)):
        for b in range(a + 1):
            x = N[a * (a + 1) // 2 + b]
            for k in range(len(x)):
                x[k] = root_T[a, k] * L[a, b]
            for c in range(b, a):
                subtract(x, R[a * (a + 1) // 2 + c], N[c * (c + 1) // 2 + b])
            divide(x, R[a * (a + 1) // 2 + a])


@njit(cache=True)
def squares(G: Array, N: Array, p: int) -> None:
    """Write the packed products ``G_j = N_j' N_j`` to ``G``."""
    G[:] = 0.0
    for a in range(p):
        for b in range(a + 1):
            for c in range(a, p):
                add(G[a * (a + 1) // 2 + b], N[c * (c + 1) // 2 + a], N[c * (c + 1) // 2 + b])


@njit(cache=True)
def add_multiply(G: Array, first: int, Y: Array, total: Array) -> None:
    """Add to ``total`` the columns of ``Y`` (p x c), each multiplied by its block ``G_j``, j from ``first`` on."""
    p, c = Y.shape
    for start in range(0, c, VARIABLES_AT_A_TIME):
        stop = min(start + VARIABLES_AT_A_TIME, c)
        for a in range(p):
            for b in range(a + 1):
                g = G[a * (a + 1) // 2 + b, first + start : first + stop]
                add(total[a, start:stop], g, Y[b, start:stop])
                if b < a:
                    add(total[b, start:stop], g, Y[a, start:stop])


@njit(cache=True)
def solve(R: Array, Y: Array) -> Array:
    """Return the p x q matrix with columns ``(R_j R_j')^-1 y_j``, ``y_j`` being those of ``Y``."""
    p, q = Y.shape
    X = Y.copy()
    for first in range(0, q, VARIABLES_AT_A_TIME):
        part = slice(first, min(first + VARIABLES_AT_A_TIME, q))
        for a in range(p):
            for c in range(a):
                subtract(X[a, part], R[a * (a + 1) // 2 + c, part], X[c, part])
            divide(X[a, part], R[a * (a + 1) // 2 + a, part])
        for a in range(p - 1, -1, -1):
            for c in range(a + 1, p):
                subtract(X[a, part], R[c * (c + 1) // 2 + a, part], X[c, part])
            divide(X[a, part], R[a * (a + 1) // 2 + a, part])
    return X


def unpacked(G: Array) -> Array:
    """Return the symmetric p x p matrix with this packed triangle."""
    p = round(np.sqrt(2 * len(G) + 0.25) - 0.5)
    a, b = np.tril_indices(p)
    full = np.empty((p, p))
    full[a, b] = full[b, a] = G
    return full


@njit(cache=True)
def add(x: Array, y: Array, z: Array) -> None:
    """Add ``y z``, entry by entry, to ``x`` in place."""
    for k in range(len(x)):
        x[k] += y[k] * z[k]


@njit(cache=True)
def subtract(x: Array, y: Array, z: Array) -> None:
    """Subtract ``y z``, entry by entry, from ``x`` in place."""
    for k in range(len(x)):
        x[k] -= y[k] * z[k]


@njit(cache=True)
def divide(x: Array, y: Array) -> None:
    """Divide ``x`` by ``y``, entry by entry, in place."""
    for k in range(len(x)):
        x[k] /= y[k]
