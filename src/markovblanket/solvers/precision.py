"""The one definition of ``C``, the precision of the rows of ``W12`` given ``W11``, ``T`` and the data."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from markovblanket.contracts import Array, Noise, Scatter


@dataclass(frozen=True)
class CrossPrecision:
    """``C = U ⊗ A + diag(1/T)`` with ``A = I + F'F``; the rows of ``W12 ~ N(-C^-1 S12, C^-1)``.

    Everything is solved in the whitened unknown ``W12 / sqrt(T)``, whose precision
    ``I + sqrt(T) (U ⊗ A) sqrt(T)`` is at least the identity: scales may then underflow to an exact zero.
    """

    U: Array
    T: Array
    scatter: Scatter

    @cached_property
    def root_T(self) -> Array:
        """``sqrt(T)``, p x q."""
        return np.sqrt(self.T)

    @cached_property
    def root_U(self) -> Array:
        """``Lu`` with ``U = Lu Lu'``."""
        return np.linalg.cholesky(self.U)

    def to_dense(self) -> Array:
        """``C``, pq x pq, rows of ``W12`` one after the other."""
        return np.kron(self.U, self._A()) + np.diag(1.0 / self.T.ravel())

    def whitened_to_dense(self) -> Array:
        """``sqrt(T) C sqrt(T)``, finite also where ``T`` is zero."""
        s = self.root_T.ravel()
        return s[:, None] * np.kron(self.U, self._A()) * s + np.eye(s.size)

    def right_hand_side(self, noise: Noise) -> Array:
        """``sqrt(T) (eta - S12)`` where ``eta = Lu (Z1 + Z2 F) + Z3 / sqrt(T) ~ N(0, C)``."""
        coupled = self.root_U @ (noise.Z1 + noise.Z2 @ self.scatter.F)
        return self.root_T * (coupled - self.scatter.S12) + noise.Z3

    def _A(self) -> Array:
        F = self.scatter.F
        return F.T @ F + np.eye(F.shape[1])
