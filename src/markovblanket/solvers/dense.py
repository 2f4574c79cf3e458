"""The dense solver: a Cholesky factor of all of ``C``, O((pq)^3), for small problems and as a reference."""

from __future__ import annotations

from dataclasses import dataclass

from scipy import linalg

from markovblanket.contracts import Array, Noise, Scatter, SolveInfo
from markovblanket.solvers.precision import CrossPrecision


@dataclass(frozen=True)
class Dense:
    """Solver by the Cholesky factor of the whole pq x pq matrix ``C``."""

    def draw(self, U: Array, T: Array, scatter: Scatter, noise: Noise) -> tuple[Array, SolveInfo]:
        """Return the draw ``W12 = C^-1 (eta - S12)``, with ``eta ~ N(0, C)`` computed from ``noise``."""
        C = CrossPrecision(U, T, scatter)
        factor = linalg.cho_factor(C.whitened_to_dense(), lower=True, overwrite_a=True)
        whitened = linalg.cho_solve(factor, C.right_hand_side(noise).ravel())
        return C.root_T * whitened.reshape(T.shape), SolveInfo()
