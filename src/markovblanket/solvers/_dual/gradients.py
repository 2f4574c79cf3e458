"""Preconditioned conjugate gradients for the operator ``K`` of the dual solver, compiled as one loop."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from markovblanket.contracts import Array
from markovblanket.solvers._dual import blocks, products
from markovblanket.solvers._dual.products import add_multiple, inner


class Operator(NamedTuple):
    """Operator ``K = I + sum_j G_j ⊗ f_j f_j'``: the packed blocks ``G``, and ``Ft = F'``, q x m."""

    G: Array
    Ft: Array


class Preconditioner(NamedTuple):
    """Preconditioner ``P = M + sum_k z_k z_k'``: a mean M, and s rank-one corrections.

    M is diagonal in the coordinates given by Q, ``Q' M^-1 Q = shrink`` (p x m), where ``Q' z_k = v_k ⊗ f_k``.
    ``V`` is p x s with columns ``v_k``, ``Ft`` is s x m with rows ``f_k``, and R is lower triangular with
    ``R R' = I + Z' M^-1 Z``; s may be 0.
    """

    Q: Array
    Qt: Array
    shrink: Array
    V: Array
    Ft: Array
    R: Array


@njit(cache=True, error_model="numpy")
def conjugate_gradients(
    K: Operator, P: Preconditioner, b: Array, tolerance: float, max_iterations: int
) -> tuple[Array, int, float]:
    """Return ``K^-1 b``, the number of iterations, and the norm of the residual.

    The number of iterations is ``max_iterations + 1`` if the tolerance was not reached. The residual of the
    recursion drifts away from the true one, so the true one is computed before the result is returned; if it is
    above the tolerance, the recursion restarts from there. ``rz`` is infinite at a start, which drops the old
    direction. Outside the operators, matrices are handled as vectors.
    """
    shape, b, rz, believed = b.shape, b.copy().ravel(), np.inf, True
    x, r, d = np.zeros_like(b), b.copy(), np.zeros_like(b)
    for iteration in range(max_iterations + 1):
        residual = np.sqrt(inner(r, r))
        if residual <= tolerance:
            if believed:
                return x.reshape(shape), iteration, residual
            r, believed, rz = b.copy(), True, np.inf
            add_multiple(r, -1.0, times(K, x.reshape(shape)).ravel())
            continue
        z = solve(P, r.reshape(shape)).ravel()
        rz, last = inner(r, z), rz
        add_multiple(z, rz / last, d)
        d, Kd = z, times(K, z.reshape(shape)).ravel()
        step = rz / inner(d, Kd)
        add_multiple(x, step, d)
        add_multiple(r, -step, Kd)
        believed = False
    add_multiple(b, -1.0, times(K, x.reshape(shape)).ravel())
    return x.reshape(shape), max_iterations + 1, np.sqrt(inner(b, b))


@njit(cache=True)
def times(K: Operator, s: Array) -> Array:
    """Return ``K s``, a chunk of variables at a time, whose data are used twice while they are in the cache."""
    (p, q), product = (len(s), len(K.Ft)), s.copy()
    chunk = min(
        q, blocks.VARIABLES_AT_A_TIME if p < products.LEAST_ROWS_FOR_BLAS else 4 * blocks.VARIABLES_AT_A_TIME
    )
    for first in range(0, q, chunk):
        Ft = K.Ft[first : first + chunk]
        y, h = np.empty((p, len(Ft))), np.zeros((p, len(Ft)))
        products.times(s, Ft, y)
        blocks.add_multiply(K.G, first, y, h)
        products.add_times(h, Ft, product)
    return product


@njit(cache=True)
def solve(P: Preconditioner, r: Array) -> Array:
    """Return ``P^-1 r`` by Woodbury's identity."""
    y, z = np.zeros(r.shape), np.zeros(r.shape)
    products.add_times(P.Qt, r, y)
    for a in range(len(y)):
        for k in range(len(y[a])):
            y[a, k] *= P.shrink[a, k]
    if len(P.Ft):
        correct(P, y)
    products.add_times(P.Q, y, z)
    return z


@njit(cache=True)
def correct(P: Preconditioner, y: Array) -> None:
    """Subtract ``M^-1 Z (R R')^-1 Z' y`` from ``y`` in place, in the coordinates in which M is diagonal."""
    c, x, total = np.empty(P.V.shape), np.zeros(len(P.Ft)), np.zeros(y.shape)
    products.times(y, P.Ft, c)
    for a in range(len(c)):
        blocks.add(x, P.V[a], c[a])
    solve_triangles(P.R, x)
    for a in range(len(c)):
        for k in range(len(x)):
            c[a, k] = P.V[a, k] * x[k]
    products.add_times(c, P.Ft, total)
    for a in range(len(y)):
        blocks.subtract(y[a], P.shrink[a], total[a])


@njit(cache=True, error_model="numpy")
def solve_triangles(R: Array, b: Array) -> None:
    """Replace ``b`` by ``(R R')^-1 b`` for a lower triangle R, read by rows in both passes."""
    for a in range(len(R)):
        b[a] = (b[a] - inner(R[a, :a], b[:a])) / R[a, a]
    for a in range(len(R) - 1, -1, -1):
        b[a] /= R[a, a]
        add_multiple(b[:a], -b[a], R[a, :a])
