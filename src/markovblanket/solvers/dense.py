"""The oracle: Cholesky of the whole of ``C``. O((pq)^3); for small problems and for proving other solvers."""

from __future__ import annotations

from dataclasses import dataclass

from scipy import linalg

from markovblanket.contracts import Array, Noise, Scatter, SolveInfo
from markovblanket.solvers.precision import CrossPrecision


@dataclass(frozen=True)
class Dense:
    """Solve with ``C`` by its Cholesky factor."""

    def draw(self, U: Array, T: Array, scatter: Scatter, noise: Noise) -> tuple[Array, SolveInfo]:
        """``C^-1 (eta - S12)``."""
        C = CrossPrecision(U, T, scatter)
        factor = linalg.cho_factor(C.whitened_to_dense(), lower=True, overwrite_a=True)
        whitened = linalg.cho_solve(factor, C.right_hand_side(noise).ravel())
        return C.root_T * whitened.reshape(T.shape), SolveInfo()
