"""New rows whose cells are partly unknown: the rest of each row, given what is known of it.

The query of a new row is unknown, so its remaining cells are ``N(0, W22.1^-1)``. With J the columns that hold
unknown cells and K all others, only the rows J of ``W22.1`` matter, and given the fitted columns X these are::

    W_JJ ~ Wishart_d(degrees, (I + X_J' M X_J)^-1)          M = (I + X_K X_K')^-1
    W_KJ | W_JJ  has columns with covariance A_KK^-1, about -X_K' M X_J W_JJ

so nothing of size q x q is ever formed, unless all columns are in J.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import linalg

from markovblanket.contracts import Array
from markovblanket.variates import truncated_normal, wishart

SWEEPS = 5  # over the unknown cells of a row, for each draw of W; a draw starts where the last one ended


@dataclass(frozen=True, eq=False)
class Rows:
    """Remaining cells of new rows: as they stand, and between which bounds they may move.

    ``lower == upper`` where a cell is known.
    """

    X: Array
    lower: Array
    upper: Array

    @classmethod
    def between(cls, lower: Array, upper: Array, X: Array) -> Rows:
        """Cells X, or as near as their bounds allow; NaN bounds are none."""
        lower, upper = np.where(np.isnan(lower), -np.inf, lower), np.where(np.isnan(upper), np.inf, upper)
        return cls(np.clip(X, lower, upper), lower, upper)

    @cached_property
    def unknown(self) -> npt.NDArray[np.bool_]:
        """Cells that move."""
        return self.lower < self.upper


@dataclass(frozen=True, eq=False)
class Completion:
    """Draws unknown cells of new rows; ``X_K`` are fitted columns that never move, J the places of the others.

    ``degrees`` are those of the Wishart law of ``W22.1``.
    """

    X_K: Array
    K: npt.NDArray[np.intp]
    J: npt.NDArray[np.intp]
    degrees: int

    @cached_property
    def _M(self) -> Array:
        """``(I + X_K X_K')^-1``."""
        gram = self.X_K @ self.X_K.T
        gram[np.diag_indices_from(gram)] += 1
        return np.asarray(linalg.inv(gram))

    def draw(self, rng: np.random.Generator, rows: Rows, X_J: Array) -> Array:
        """The cells, unknown ones drawn anew, given fitted columns ``X_J`` as they stood in a draw."""
        if not rows.unknown.any():
            return rows.X
        W_JJ, W_KJ = self.draw_precision(rng, X_J)
        X, linear = rows.X.copy(), rows.X[:, self.K] @ W_KJ
        for _ in range(SWEEPS):
            for k, j in enumerate(self.J):
                self._draw_column(rng, rows, X, j, linear[:, k] + X[:, self.J] @ W_JJ[:, k], W_JJ[k, k])
        return X

    def _draw_column(
        self, rng: np.random.Generator, rows: Rows, X: Array, j: int, linear: Array, w: float
    ) -> None:
        """``x_j ~ N(-(x_-j w_-j) / w, 1/w)`` between its bounds, in place."""
        cells = np.flatnonzero(rows.unknown[:, j])
        mean, sd = X[cells, j] - linear[cells] / w, w**-0.5
        lower, upper = (rows.lower[cells, j] - mean) / sd, (rows.upper[cells, j] - mean) / sd
        X[cells, j] = mean + sd * truncated_normal.draw(rng, lower, upper)

    def draw_precision(self, rng: np.random.Generator, X_J: Array) -> tuple[Array, Array]:
        """``W22.1_JJ`` (d x d) and ``W22.1_KJ`` (k x d) given the fitted columns."""
        n, d = X_J.shape
        MX = self._M @ X_J
        root = np.linalg.inv(np.linalg.cholesky(np.eye(d) + X_J.T @ MX)).T
        W_JJ = wishart.draw_from_factor(rng, self.degrees, root)
        noise = rng.standard_normal((len(self.K), d)) + self.X_K.T @ rng.standard_normal((n, d))
        E = noise - self.X_K.T @ (self._M @ (self.X_K @ noise))  # A_KK^-1 times noise of covariance A_KK
        return W_JJ, E @ np.linalg.cholesky(W_JJ).T - self.X_K.T @ (MX @ W_JJ)
