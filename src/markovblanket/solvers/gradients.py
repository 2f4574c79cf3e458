"""Preconditioned conjugate gradients for the dual solver's ``K``, compiled as one loop."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from markovblanket.contracts import Array
from markovblanket.solvers import blocks, products
from markovblanket.solvers.products import add_multiple, inner


class Operator(NamedTuple):
    """``K = I + sum_j G_j ⊗ f_j f_j'``: packed blocks, and ``F'``, q x m."""

    G: Array
    Ft: Array


class Preconditioner(NamedTuple):
    """``P = M + sum_k z_k z_k'``: a mean, ``Q' M^-1 Q = shrink``, and corrections ``Q' z_k = v_k ⊗ f_k``.

    ``V`` is p x s, ``Ft`` s x m, and ``R R' = I + Z' M^-1 Z``, lower triangular; s may be 0.
    """

    Q: Array
    Qt: Array
    shrink: Array
    V: Array
    Ft: Array
    R: Array


@njit(cache=True)
def conjugate_gradients(
    K: Operator, P: Preconditioner, b: Array, tolerance: float, max_iterations: int
) -> tuple[Array, int, float]:
    """``K^-1 b``, the iterations, one more than allowed if they did not suffice, and the residual's norm.

    The residual that the recursion carries drifts from the true one, so it is computed anew before it is believed,
    and the recursion started again from there if it was not: ``rz`` is infinite where it starts.
    """
    x, r, d, believed, rz, residual = np.zeros_like(b), b.copy(), np.zeros_like(b), True, np.inf, np.inf
    for iteration in range(max_iterations + 1):
        residual = np.sqrt(inner(r.ravel(), r.ravel()))
        if residual <= tolerance:
            if believed:
                return x, iteration, residual
            r, believed, rz = b - times(K, x), True, np.inf
            continue
        z = solve(P, r)
        rz, last = inner(r.ravel(), z.ravel()), rz
        add_multiple(z.ravel(), rz / last, d.ravel())
        d, Kd = z, times(K, z)
        step = rz / inner(d.ravel(), Kd.ravel())
        add_multiple(x.ravel(), step, d.ravel())
        add_multiple(r.ravel(), -step, Kd.ravel())
        believed = False
    return x, max_iterations + 1, residual


@njit(cache=True)
def times(K: Operator, s: Array) -> Array:
    """``K s``, a few variables at a time: their data are read once, and used twice while they are near."""
    (p, q), product = (len(s), len(K.Ft)), s.copy()
    chunk = min(q, blocks.CHUNK if p < products.MANY else 4 * blocks.CHUNK)
    Y, H = np.empty(p * chunk), np.empty(p * chunk)
    for first in range(0, q, chunk):
        Ft = K.Ft[first : first + chunk]
        y, h = Y[: p * len(Ft)].reshape(p, len(Ft)), H[: p * len(Ft)].reshape(p, len(Ft))
        products.times(s, Ft, y)
        blocks.multiply(K.G, first, y, h)
        products.add_times(h, Ft, product)
    return product


@njit(cache=True)
def solve(P: Preconditioner, r: Array) -> Array:
    """``P^-1 r`` by Woodbury's identity."""
    y, z = np.zeros_like(r), np.zeros_like(r)
    products.add_times(P.Qt, r, y)
    y *= P.shrink
    if len(P.Ft):
        c, correction = np.empty_like(P.V), np.zeros_like(r)
        products.times(y, P.Ft, c)
        c *= P.V
        products.add_times(P.V * solve_triangles(P.R, c.sum(axis=0)), P.Ft, correction)
        y -= P.shrink * correction
    products.add_times(P.Q, y, z)
    return z


@njit(cache=True)
def solve_triangles(R: Array, b: Array) -> Array:
    """``(R R')^-1 b`` for a lower triangle; rows, which are contiguous, both ways. Overwrites ``b``."""
    for a in range(len(R)):
        b[a] = (b[a] - inner(R[a, :a], b[:a])) / R[a, a]
    for a in range(len(R) - 1, -1, -1):
        b[a] /= R[a, a]
        add_multiple(b[:a], -b[a], R[a, :a])
    return b
