"""Imputation of unknown cells of the rest in new rows, and conditional means of single cells.

The query of a new row is unknown, so the cells of the rest are ``N(0, W22.1^-1)``. With J the columns that have
unknown cells and K all others, only the rows J of ``W22.1`` are needed. Given the fitted columns X::

    W_JJ ~ Wishart_d(degrees, (A_JJ - A_JK A_KK^-1 A_KJ)^-1)        A = r I + X'X
    W_KJ | W_JJ  has mean -A_KK^-1 A_KJ W_JJ, row covariance A_KK^-1 and column covariance W_JJ

so no q x q matrix is formed, unless all columns are in J.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import linalg

from markovblanket.contracts import Array, Columns
from markovblanket.model.rest_prior import RestPrior
from markovblanket.variates import truncated_normal, wishart

# Gibbs sweeps over the cells of new rows for each draw of W; all but the first draw start where the last one
# ended.
SWEEPS_PER_DRAW, SWEEPS_OF_FIRST_DRAW = 5, 50


@dataclass(frozen=True, eq=False)
class Rows:
    """Cells of the rest in new rows: their current values, and the bounds between which they lie.

    ``lower == upper`` where a cell is known.
    """

    X: Array
    lower: Array
    upper: Array

    @classmethod
    def between(cls, lower: Array, upper: Array, X: Array) -> Rows:
        """Return rows with the cells X, moved inside their bounds; a NaN bound means no bound."""
        lower, upper = np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), np.inf, upper)
        return cls(np.clip(X, lower, upper), lower, upper)

    @cached_property
    def unknown(self) -> npt.NDArray[np.bool_]:
        """Mask of the cells that are not known exactly."""
        return self.lower < self.upper


@dataclass(frozen=True, eq=False)
class Completion:
    """Sampler of the unknown cells of new rows.

    ``X_K`` are the fitted columns without unknown cells, K and J the positions of these and of the other columns;
    ``degrees`` and ``ridge`` are the parameters of the Wishart distribution of ``W22.1``.
    """

    X_K: Array
    K: npt.NDArray[np.intp]
    J: npt.NDArray[np.intp]
    degrees: float
    ridge: float = 1.0

    def draw(self, rng: np.random.Generator, rows: Rows, X_J: Array, sweeps: int = SWEEPS_PER_DRAW) -> Array:
        """Return the cells, with unknown ones drawn given the fitted columns ``X_J`` of one posterior draw."""
        if not rows.unknown.any():
            return rows.X
        W_JJ, W_KJ = self.draw_precision(rng, X_J)
        X, linear = rows.X[:, self.J], rows.X[:, self.K] @ W_KJ
        lower, upper = rows.lower[:, self.J], rows.upper[:, self.J]
        free = np.isinf(lower) & np.isinf(upper)
        for _ in range(sweeps):
            _draw_free(rng, X, free, linear, W_JJ)
            _draw_bounded(rng, X, (lower < upper) & ~free, (lower, upper), linear, W_JJ)
        out = rows.X.copy()
        out[:, self.J] = X
        return out

    def draw_precision(self, rng: np.random.Generator, X_J: Array) -> tuple[Array, Array]:
        """Draw ``W22.1_JJ`` (d x d) and ``W22.1_KJ`` (k x d) given the fitted columns."""
        n, d = X_J.shape
        cross = self.X_K.T @ X_J
        P = self._solve(cross)
        root = np.linalg.inv(np.linalg.cholesky(self.ridge * np.eye(d) + X_J.T @ X_J - cross.T @ P)).T
        W_JJ = wishart.draw_from_factor(rng, self.degrees, root)
        noise = self.ridge**0.5 * rng.standard_normal((len(self.K), d)) + self.X_K.T @ rng.standard_normal((n, d))
        return W_JJ, self._solve(noise) @ np.linalg.cholesky(W_JJ).T - P @ W_JJ  # noise has covariance A_KK

    def _solve(self, R: Array) -> Array:
        """Return ``A_KK^-1 R``, by a factor of the size of the smaller side of ``X_K``."""
        if self.X_K.shape[1] <= len(self.X_K):
            return np.asarray(linalg.cho_solve(self._factor, R))
        return (R - self.X_K.T @ linalg.cho_solve(self._factor, self.X_K @ R)) / self.ridge

    @cached_property
    def _factor(self) -> tuple[Array, bool]:
        """Cholesky factor of ``r I + X_K'X_K`` or of ``r I + X_K X_K'``, whichever is smaller."""
        X = self.X_K if self.X_K.shape[1] <= len(self.X_K) else self.X_K.T
        factor, lower = linalg.cho_factor(self.ridge * np.eye(X.shape[1]) + X.T @ X)
        return factor, bool(lower)


def _draw_free(rng: np.random.Generator, X: Array, free: npt.NDArray[np.bool_], linear: Array, W: Array) -> None:
    """Draw the unbounded cells u of each row jointly, in place: ``N(-W_uu^-1 (W_uv x_v + linear_u), W_uu^-1)``."""
    patterns, which = np.unique(free, axis=0, return_inverse=True)
    for k, pattern in enumerate(patterns):
        rows, u = np.flatnonzero(which.ravel() == k), np.flatnonzero(pattern)
        if len(u):
            L = np.linalg.cholesky(W[np.ix_(u, u)])
            known = linear[np.ix_(rows, u)] + X[np.ix_(rows, ~pattern)] @ W[np.ix_(~pattern, u)]
            z = rng.standard_normal((len(u), len(rows))) - linalg.solve_triangular(L, known.T, lower=True)
            X[np.ix_(rows, u)] = linalg.solve_triangular(L.T, z).T


def _draw_bounded(
    rng: np.random.Generator,
    X: Array,
    bounded: npt.NDArray[np.bool_],
    bounds: tuple[Array, Array],
    linear: Array,
    W: Array,
) -> None:
    """Draw bounded cells by columns, in place: truncated ``x_j ~ N(-(x_-j w_-j + linear_j) / w_jj, 1/w_jj)``."""
    for j in np.flatnonzero(bounded.any(axis=0)):
        cells, sd = np.flatnonzero(bounded[:, j]), W[j, j] ** -0.5
        mean = X[cells, j] - (linear[cells, j] + X[cells] @ W[:, j]) / W[j, j]
        lower, upper = ((bound[cells, j] - mean) / sd for bound in bounds)
        X[cells, j] = mean + sd * truncated_normal.draw(rng, lower, upper)


Indices = npt.NDArray[np.intp]


def of_query(W11: Array, W12: Array, columns: Columns) -> tuple[Array, Array]:
    """Return the conditional means of the query cells, n x p, and the standard deviation of each column."""
    w = np.diag(W11)
    return columns.X1 - _centred((columns.X1 @ W11 + columns.X2 @ W12.T) / w), w**-0.5


def of_rest(
    rng: np.random.Generator, W11: Array, W12: Array, columns: Columns, J: Indices, prior: RestPrior
) -> tuple[Array, Array]:
    """Return the conditional means of cells in columns J of the rest, n x d, and the sd of each column.

    ``W22.1`` is drawn given the columns, whose means are integrated out.
    """
    X1, X2 = columns.X1, _centred(columns.X2)
    K = np.setdiff1d(np.arange(X2.shape[1]), J)
    law = Completion(X2[:, K], K, J, prior.degrees + len(X2) - 1, prior.ridge)
    W_JJ, W_KJ = law.draw_precision(rng, X2[:, J])
    UW12 = np.linalg.solve(W11, W12[:, J])
    w = np.diag(W_JJ) + np.einsum("ij,ij->j", W12[:, J], UW12)
    Xw = X1 @ W12[:, J] + X2[:, J] @ W_JJ + X2[:, K] @ W_KJ + (X2 @ W12.T) @ UW12
    return columns.X2[:, J] - _centred(Xw / w), w**-0.5


def _centred(X: Array) -> Array:
    """Return columns, or residuals, less their means, which are unknown."""
    return X - X.mean(axis=0)
