"""The definition of ``C``, the precision matrix of the stacked rows of ``W12`` given ``W11``, ``T`` and S."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from markovblanket.contracts import Array, Noise, Scatter


@dataclass(frozen=True)
class CrossPrecision:
    """Conditional precision ``C = U ⊗ A + diag(1/T)`` of ``W12 ~ N(-C^-1 S12, C^-1)``, with ``A = I + F'F``.

    Systems are solved for the whitened unknown ``W12 / sqrt(T)``, whose precision
    ``I + sqrt(T) (U ⊗ A) sqrt(T)`` is at least the identity, also where scales underflow to an exact zero.
    """

    U: Array
    T: Array
    scatter: Scatter

    @cached_property
    def root_T(self) -> Array:
        """Standard deviations ``sqrt(T)`` of the entries, p x q."""
        return np.sqrt(self.T)

    @cached_property
    def root_U(self) -> Array:
        """Cholesky factor ``Lu`` with ``U = Lu Lu'``, p x p."""
        return np.linalg.cholesky(self.U)

    def to_dense(self) -> Array:
        """Return ``C`` as a pq x pq matrix, for the rows of ``W12`` one after the other."""
        return np.kron(self.U, self._A()) + np.diag(1.0 / self.T.ravel())

    def whitened_to_dense(self) -> Array:
        """Return the whitened precision ``sqrt(T) C sqrt(T)``, pq x pq, finite also where ``T`` is zero."""
        s = self.root_T.ravel()
        return s[:, None] * np.kron(self.U, self._A()) * s + np.eye(s.size)

    def right_hand_side(self, noise: Noise) -> Array:
        """Return ``sqrt(T) (eta - S12)``, where ``eta = Lu (Z1 + Z2 F) + Z3 / sqrt(T) ~ N(0, C)``."""
        coupled = self.root_U @ (noise.Z1 + noise.Z2 @ self.scatter.F)
        return self.root_T * (coupled - self.scatter.S12) + noise.Z3

    def _A(self) -> Array:
        F = self.scatter.F
        return F.T @ F + np.eye(F.shape[1])
