"""Products of matrices that have few rows with the data, compiled.

Libraries for linear algebra repack both factors of a product, which pays from some 16 rows on. With fewer, these
loops take four variables at a time, so that each number of the smaller factor serves four products.
The data come with a row per variable, ``F'``, q x m; all arrays are contiguous.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from markovblanket.contracts import Array

# From so many rows on the library's product is faster.
MANY = 16


@njit(cache=True)
def times(s: Array, Ft: Array, product: Array) -> None:
    """``product = s F``."""
    if len(s) < MANY:
        dots(s, Ft, product)
    else:
        np.dot(s, Ft.T, product)


@njit(cache=True)
def add_times(h: Array, Ft: Array, total: Array) -> None:
    """``total = total + h F'``."""
    if len(h) < MANY:
        add_rows(h, Ft, total)
    else:
        total += np.dot(h, Ft)


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def dots(s: Array, Ft: Array, product: Array) -> None:
    """Products of rows with rows."""
    q = len(Ft)
    for j in range(0, q - 3, 4):
        f0, f1, f2, f3 = Ft[j], Ft[j + 1], Ft[j + 2], Ft[j + 3]
        for a in range(len(s)):
            x, t0, t1, t2, t3 = s[a], 0.0, 0.0, 0.0, 0.0
            for k in range(len(x)):
                t0 += x[k] * f0[k]
                t1 += x[k] * f1[k]
                t2 += x[k] * f2[k]
                t3 += x[k] * f3[k]
            product[a, j], product[a, j + 1], product[a, j + 2], product[a, j + 3] = t0, t1, t2, t3
    for j in range(q - q % 4, q):
        for a in range(len(s)):
            product[a, j] = inner(s[a], Ft[j])


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def add_rows(h: Array, Ft: Array, total: Array) -> None:
    """Sums of rows, times numbers."""
    q = len(Ft)
    for j in range(0, q - 3, 4):
        f0, f1, f2, f3 = Ft[j], Ft[j + 1], Ft[j + 2], Ft[j + 3]
        for a in range(len(h)):
            x, h0, h1, h2, h3 = total[a], h[a, j], h[a, j + 1], h[a, j + 2], h[a, j + 3]
            for k in range(len(x)):
                x[k] += h0 * f0[k] + h1 * f1[k] + h2 * f2[k] + h3 * f3[k]
    for j in range(q - q % 4, q):
        for a in range(len(h)):
            add_multiple(total[a], h[a, j], Ft[j])


@njit(cache=True, fastmath={"reassoc", "contract", "nsz"})
def inner(x: Array, y: Array) -> float:
    """``x' y`` of vectors."""
    total = 0.0
    for k in range(len(x)):
        total += x[k] * y[k]
    return total


@njit(cache=True)
def add_multiple(x: Array, step: float, y: Array) -> None:
    """``x = x + step y`` of vectors."""
    for k in range(len(x)):
        x[k] += step * y[k]
