"""Compiled products of the data with matrices of few rows.

Linear algebra libraries repack both factors of a product, which is worth the effort from about 16 rows on. With
fewer rows, the loops here process four variables at a time, so that each number of the smaller factor is read once
for four products. The data are given as ``F'``, q x m, one row per variable; all arrays are contiguous.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from markovblanket.contracts import Array

# From this number of rows on, the product of the linear algebra library is faster.
LEAST_ROWS_FOR_BLAS = 16
# Compiler flags that allow sums to be taken in any order, which lets them be vectorised.
ANY_ORDER = {"reassoc", "contract", "nsz"}


@njit(cache=True, fastmath=ANY_ORDER)
def times(s: Array, Ft: Array, product: Array) -> None:
    """Write the product ``s F`` to ``product``."""
    q, m = Ft.shape
    if len(s) >= LEAST_ROWS_FOR_BLAS:
        np.dot(s, Ft.T, product)
        return
    for j in range(0, q - 3, 4):
        for a in range(len(s)):
            t0, t1, t2, t3 = 0.0, 0.0, 0.0, 0.0
            for k in range(m):
                t0 += s[a, k] * Ft[j, k]
                t1 += s[a, k] * Ft[j + 1, k]
                t2 += s[a, k] * Ft[j + 2, k]
                t3 += s[a, k] * Ft[j + 3, k]
            product[a, j], product[a, j + 1], product[a, j + 2], product[a, j + 3] = t0, t1, t2, t3
    for j in range(q - q % 4, q):
        for a in range(len(s)):
            product[a, j] = inner(s[a], Ft[j])


@njit(cache=True, fastmath=ANY_ORDER)
def add_times(h: Array, Ft: Array, total: Array) -> None:
    """Add the product ``h F'`` to ``total``, in place."""
    q, m = Ft.shape
    if len(h) >= LEAST_ROWS_FOR_BLAS:
        product = np.dot(h, Ft)
        for a in range(len(h)):
            add_multiple(total[a], 1.0, product[a])
        return
    for j in range(0, q - 3, 4):
        for a in range(len(h)):
            h0, h1, h2, h3 = h[a, j], h[a, j + 1], h[a, j + 2], h[a, j + 3]
            for k in range(m):
                total[a, k] += h0 * Ft[j, k] + h1 * Ft[j + 1, k] + h2 * Ft[j + 2, k] + h3 * Ft[j + 3, k]
    for j in range(q - q % 4, q):
        for a in range(len(h)):
            add_multiple(total[a], h[a, j], Ft[j])


@njit(cache=True, fastmath=ANY_ORDER)
def inner(x: Array, y: Array) -> float:
    """Return the inner product ``x' y`` of two vectors."""
    total = 0.0
    for k in range(len(x)):
        total += x[k] * y[k]
    return total


@njit(cache=True)
def add_multiple(x: Array, step: float, y: Array) -> None:
    """Add ``step y`` to the vector ``x``, in place."""
    for k in range(len(x)):
        x[k] += step * y[k]
