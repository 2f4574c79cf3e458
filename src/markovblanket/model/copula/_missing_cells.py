"""Draws of the missing cells of the rest with ``W22.1`` integrated out.

Given ``W22.1``, a missing cell can hardly move if there are about as many columns as rows, or more: that matrix
was just drawn given the current columns, and nearly interpolates them. With ``W22.1`` integrated out,
``p(X2) ∝ |r I + X2'X2|^(-degrees/2)``. One column given the others is then multivariate t, with
``M = (r I + X_-j X_-j')^-1``::

    p(x | X_-j)  ∝  (1 + x' M x)^(-degrees/2)           w | x ~ chi2(degrees) / (1 + x' M x)
                                                        x | w ~ N(0, (w M)^-1)

The query adds the factor ``exp(-x'b - c/2 x'x)`` with ``b = X1 w_j + X_-j W21_-j U w_j`` and ``c = w_j' U w_j``,
``w_j`` being column j of ``W12``. The missing cells of a column are drawn together. The means of the columns are
integrated out, so that every vector here is centred: with ``C = I - 11'/n``, M is
``C (r I + C X_-j X_-j' C)^-1 C``, and the factor of the query is ``exp(-x'C b - c/2 x'C x)``.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from scipy import linalg

from markovblanket.contracts import Array, ChainState

Indices = npt.NDArray[np.intp]


def fill(
    rng: np.random.Generator,
    X1: Array,
    X2: Array,
    fit: Array,
    state: ChainState,
    missing: Mapping[int, Indices],
    inverse: Array,
    degrees: float,
) -> Array:
    """Draw the missing cells of ``X2``, column by column, in place; return the updated ``fit = X2 W21``.

    ``inverse`` is ``(r I + X2 X2')^-1`` on the centred vectors, at the start.
    """
    fit = fit.copy()
    for j, rows in missing.items():
        x, w_j = X2[:, j].copy(), state.W12[:, j]
        U_w = np.linalg.solve(state.W11, w_j)
        u = inverse @ x
        s = 1 - x @ u  # 1 / (1 + x' M x)
        M = inverse + np.outer(u, u) / s
        b = X1 @ w_j + (fit - np.outer(x, w_j)) @ U_w
        b -= b.mean()
        x_new = draw_column(rng, x, rows, rng.chisquare(degrees) * s * M, b, float(w_j @ U_w))
        fit += np.outer(x_new - x, w_j)
        v = M @ x_new
        inverse = M - np.outer(v, v) / (1 + x_new @ v)
        X2[:, j] = x_new
    return fit


def draw_column(rng: np.random.Generator, x: Array, rows: Indices, P: Array, b: Array, c: float) -> Array:
    """Draw the missing ``rows`` of x given the others, under the precision ``P + c C`` and linear term b."""
    x = x.copy()
    x[rows] = 0.0
    linear = P[rows] @ x - c * x.mean() + b[rows]
    L = np.linalg.cholesky(P[np.ix_(rows, rows)] + c * (np.eye(len(rows)) - 1.0 / len(x)))
    z = rng.standard_normal(len(rows)) - linalg.solve_triangular(L, linear, lower=True)
    x[rows] = linalg.solve_triangular(L.T, z)
    return x
