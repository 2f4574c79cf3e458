"""Contributions of the fixed columns of the rest to the scatter and to ``W22``, computed once.

J are the moving columns, K the fixed ones; ``A = S22 + r I`` here, with the ridge r of ``W22.1``, and the columns
of ``Q`` are an orthonormal basis of the span of those of ``X_K``. All columns are centred.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import linalg

from markovblanket.contracts import Array
from markovblanket.model.rest_prior import RestPrior
from markovblanket.model.scatter import Factored, inverse_diagonal
from markovblanket.tables.columns import spans

Indices = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Fixed:
    """Initial columns ``X2``, the positions J of those that move, and the prior of ``W22.1``."""

    X2: Array
    J: Indices
    prior: RestPrior

    @property
    def r(self) -> float:
        """The ridge of the prior of ``W22.1``."""
        return self.prior.ridge

    def inverse_diagonal(self, X_J: Array) -> Array:
        """Return ``diag(A^-1)``, by blocks: with ``P = A_KK^-1 A_KJ`` and the Schur complement of ``A_KK``."""
        out = self._inverse_diagonal_K.copy()
        if len(self.J):
            QX = self.basis.T @ X_J
            inverse = np.linalg.inv(self.schur(X_J, QX))
            P = self.F_K.T @ (QX / (self.r + self._sizes)[:, None])
            out += np.einsum("jk,jk->j", P @ inverse, P)
            out[self.J] = np.diag(inverse)
        return out

    def schur(self, X_J: Array, QX: Array) -> Array:
        """Return ``A_JJ - A_JK A_KK^-1 A_KJ = r I + X_J' (I - H) X_J``, given ``QX = Q'X_J``."""
        _, weight = self.hat
        return self.r * np.eye(X_J.shape[1]) + X_J.T @ X_J - QX.T @ (weight[:, None] * QX)

    @cached_property
    def _inverse_diagonal_K(self) -> Array:
        """Diagonal of ``A_KK^-1`` at the positions K, in a vector of length q."""
        return inverse_diagonal(self.F_K, self.r)

    @cached_property
    def K(self) -> Indices:
        """Positions K of the fixed columns."""
        return np.setdiff1d(np.arange(self.X2.shape[1]), self.J)

    @cached_property
    def basis(self) -> Array:
        """Orthonormal basis ``Q`` of the span of the columns of ``X_K``."""
        X_K = self.X2.T[self.K].T  # a copy, its columns contiguous
        Q, values, _ = linalg.svd(X_K, full_matrices=False, overwrite_a=True)
        return Q[:, values > 1e-12 * values.max(initial=0.0)]

    @cached_property
    def complement(self) -> Array:
        """Orthonormal basis of the complement of the span of ``X_K``."""
        Q, _ = linalg.qr(self.basis) if self.basis.size else (np.eye(len(self.X2)), None)
        return Q[:, self.basis.shape[1] :]

    @property
    def F_K(self) -> Array:
        """Factor ``Q' X_K`` of the fixed columns, with orthogonal rows, and zeros in the moving columns."""
        return self.frame[: self.basis.shape[1]]

    @cached_property
    def _sizes(self) -> Array:
        """Squared norms of the rows of ``F_K``."""
        return np.einsum("kj,kj->k", self.F_K, self.F_K)

    @cached_property
    def hat(self) -> tuple[Array, Array]:
        """Basis ``Q`` and the eigenvalues ``l / (r + l)`` of ``H = X_K A_KK^-1 X_K'``."""
        return self.basis, self._sizes / (self.r + self._sizes)

    def factor(self, X_J: Array) -> tuple[Array, Array]:
        """Return ``F = [[Q'X_K, Q'X_J], [0, R]]``, R the part of ``X_J`` outside the span of Q, and its basis."""
        if not len(self.J):
            return self.frame, self.basis
        inside, outside = self.basis.T @ X_J, self.complement.T @ X_J
        more, R = self.complement, outside
        if len(outside) > X_J.shape[1]:
            Q, R = linalg.qr(outside, mode="economic")
            more = more @ Q
        F = self.frame.copy(order="K")
        F[:, self.J] = np.vstack([inside, R])
        return F, np.hstack([self.basis, more])

    @cached_property
    def frame(self) -> Array:
        """Factor ``F`` with zeros in place of the moving columns."""
        (_, q), m = self.X2.shape, self.basis.shape[1]
        F = np.zeros((m + min(len(self.J), self.complement.shape[1]), q), order="F")
        for span in spans(*F.shape):
            F[:m, span] = self.basis.T @ self.X2[:, span]
        F[:, self.J] = 0.0
        return F

    @cached_property
    def row_sizes(self) -> Array:
        """Squared norms ``diag(F F')`` of the rows, without the moving columns."""
        return np.einsum("kj,kj->k", self.frame, self.frame)

    @cached_property
    def column_sizes(self) -> Array:
        """Diagonal of ``S22``, zero for the moving columns."""
        return np.einsum("kj,kj->j", self.frame, self.frame)


@dataclass(frozen=True)
class MovingScatter(Factored):
    """Scatter of columns of which some move; the part of the fixed columns is not computed again.

    ``Y`` is ``X1'`` in the basis of the factor, whose rows need not be orthogonal here.
    """

    Y: Array
    fixed: Fixed
    X_J: Array

    @property
    def rest_prior(self) -> RestPrior:
        """Prior of ``W22.1``, which does not change when columns move."""
        return self.fixed.prior

    @cached_property
    def S12(self) -> Array:
        """Cross scatter ``S12 = Y F``, p x q."""
        return self.Y @ self.F

    @cached_property
    def row_sizes(self) -> Array:
        """Squared norms of the rows of the factor, ``diag(F F')``."""
        return self.fixed.row_sizes + np.einsum("kj,kj->k", self._F_J, self._F_J)

    @cached_property
    def column_sizes(self) -> Array:
        """Diagonal of ``S22``, of length q."""
        sizes = self.fixed.column_sizes.copy()
        sizes[self.fixed.J] = np.einsum("kj,kj->j", self._F_J, self._F_J)
        return sizes

    @cached_property
    def inverse_diagonal(self) -> Array:
        """Diagonal of the inverse of ``A = S22 + r I``."""
        return self.fixed.inverse_diagonal(self.X_J)

    @cached_property
    def _F_J(self) -> Array:
        return self.F[:, self.fixed.J]
