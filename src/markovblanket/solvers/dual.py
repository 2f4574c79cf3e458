"""The solver that is linear in q: conjugate gradients in the dual space of p x m matrices.

With ``E = U ⊗ I + diag(1/T)``, which is q separate p x p blocks, ``C = E + (Lu ⊗ F') (Lu' ⊗ F)`` and by
Woodbury, with ``S12 = Y F`` and ``e = Lu Z1 + Z3 / sqrt(T)`` the part of the noise that E makes::

    W12 = E^-1 (e + Lu s F)        K s = Z2 - Lu^-1 Y - Lu' (E^-1 e) F'        K = I + sum_j G_j ⊗ f_j f_j'

with ``G_j = Lu' E_j^-1 Lu``. (The textbook form, ``E^-1 (r - Lu s F)`` with the whole right-hand side r, subtracts
two matrices as large as the data to get one as small as a coefficient.)

Averaged over many variables ``K`` is close to its Kronecker mean, which with exact corrections for the few that
stand out serves as preconditioner (:mod:`markovblanket.solvers._dual.preconditioner`). The count of iterations *falls*
as q grows. Cost: ``4 k p m q`` flops for k iterations; memory: two p x p triangles per variable.

When to stop. If ``s`` is off by ``e``, with residual ``r = K e``, then ``W12`` is off by
``delta = -E^-1 (Lu ⊗ F') e`` and::

    delta' C delta  =  e' (K - I) K e  =  r' (I - K^-1) r  <=  |r|^2

so by Cauchy-Schwarz no linear functional of the draw is off by more than ``|r|`` of its own conditional standard
deviation: the residual's plain norm *is* the error, in the only unit that matters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from markovblanket.contracts import Array, Noise, Scatter, SolveInfo, SolverError
from markovblanket.solvers._dual import blocks, gradients, preconditioner
from markovblanket.solvers._dual.gradients import Operator, Preconditioner
from markovblanket.solvers.precision import CrossPrecision


@dataclass(frozen=True)
class Dual:
    """Solve with ``C`` in O(p m q) per iteration.

    Parameters
    ----------
    tolerance : float
        Bound on the error of a draw, in conditional standard deviations of whatever linear functional of
        ``W12`` one looks at. Even if it always were to one side, such an error would move the means of N draws by
        at most ``tolerance sqrt(N)`` of their Monte Carlo standard errors: 6 % in 4,000 draws by default.
    max_iterations : int
        Give up, with a :class:`~markovblanket.contracts.SolverError`, after so many.
    """

    tolerance: float = 1e-3
    max_iterations: int = 2000

    def __post_init__(self) -> None:
        """Refuse what cannot end."""
        if not 0 < self.tolerance <= 0.1:
            raise ValueError(f"Dual(tolerance={self.tolerance!r}): must be positive and at most 0.1")
        if not self.max_iterations >= 1:
            raise ValueError(f"Dual(max_iterations={self.max_iterations!r}): must be at least 1")

    def draw(self, U: Array, T: Array, scatter: Scatter, noise: Noise) -> tuple[Array, SolveInfo]:
        """``C^-1 (eta - S12)``."""
        C, F = CrossPrecision(U, T, scatter), scatter.F
        L, root_T = C.root_U, C.root_T
        R, G = blocks.factorise(root_T, U, L)
        e = root_T * (L @ noise.Z1) + noise.Z3
        rhs = noise.Z2 - np.linalg.solve(L, scatter.Y) - L.T @ (root_T * blocks.solve(R, e)) @ F.T
        K = Operator(G, np.ascontiguousarray(F.T))
        s, info = conjugate_gradients(K, preconditioner.of(C, G), rhs, self.tolerance, self.max_iterations)
        return root_T * blocks.solve(R, e + root_T * (L @ s @ F)), info


def conjugate_gradients(
    K: Operator, P: Preconditioner, b: Array, tolerance: float, max_iterations: int
) -> tuple[Array, SolveInfo]:
    """``K^-1 b`` to a residual of norm ``tolerance``, or an error."""
    x, iterations, residual = gradients.conjugate_gradients(K, P, b, tolerance, max_iterations)
    if iterations <= max_iterations:
        return x, SolveInfo(iterations, residual)
    raise SolverError(
        f"conjugate gradients ended {residual:.1e} conditional standard deviations from the draw after "
        f"{max_iterations} iterations, short of {tolerance:.0e}: the columns are too nearly collinear, or their "
        "units, if a scatter was given, or the scales of W12 differ too wildly. Measure in units of the columns' "
        "standard deviations, raise Dual(max_iterations=...), or use Dense()"
    )
