"""The solver that is linear in q: conjugate gradients in the dual space of p x m matrices.

With ``E = U ⊗ I + diag(1/T)``, which consists of q separate p x p blocks, ``C = E + (Lu ⊗ F') (Lu' ⊗ F)``. By
Woodbury's identity, with ``S12 = Y F`` and ``e = Lu Z1 + Z3 / sqrt(T) ~ N(0, E)``::

    W12 = E^-1 (e + Lu s F)        K s = Z2 - Lu^-1 Y - Lu' (E^-1 e) F'        K = I + sum_j G_j ⊗ f_j f_j'

with ``G_j = Lu' E_j^-1 Lu``. (The textbook form, ``E^-1 (r - Lu s F)`` with the whole right-hand side r, subtracts
two matrices as large as the data to get one as small as a coefficient.)

Averaged over many variables, ``K`` is close to its Kronecker mean. The preconditioner is this mean, with exact
corrections for the few large entries (:mod:`markovblanket.solvers._dual.preconditioner`). The number of iterations
*decreases* as q grows. Cost: ``4 k p m q`` flops for k iterations; memory: two p x p triangles per variable.

Stopping rule: if ``s`` has the error ``e``, with residual ``r = K e``, then ``W12`` has the error
``delta = -E^-1 (Lu ⊗ F') e`` and::

    delta' C delta  =  e' (K - I) K e  =  r' (I - K^-1) r  <=  |r|^2

so by Cauchy-Schwarz the error of any linear functional of the draw is at most ``|r|`` times its conditional
standard deviation: the Euclidean norm of the residual bounds the error in the unit that matters.
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
    """Solver by conjugate gradients in the dual space, at a cost of O(p m q) per iteration.

    Parameters
    ----------
    tolerance : float
        Bound on the error of a draw, in conditional standard deviations of any linear functional of ``W12``. Even
        if it always had the same sign, such an error would shift the mean of N draws by at most
        ``tolerance sqrt(N)`` of its Monte Carlo standard error: 6 % for 4,000 draws by default.
    max_iterations : int
        A :class:`~markovblanket.contracts.SolverError` is raised after this number of iterations.
    """

    tolerance: float = 1e-3
    max_iterations: int = 2000

    def __post_init__(self) -> None:
        """Raise ValueError if the tolerance or the number of iterations is out of range."""
        if not 0 < self.tolerance <= 0.1:
            raise ValueError(f"Dual(tolerance={self.tolerance!r}): must be positive and at most 0.1")
        if not self.max_iterations >= 1:
            raise ValueError(f"Dual(max_iterations={self.max_iterations!r}): must be at least 1")

    def draw(self, U: Array, T: Array, scatter: Scatter, noise: Noise) -> tuple[Array, SolveInfo]:
        """Return the draw ``W12 = C^-1 (eta - S12)``, with ``eta ~ N(0, C)`` computed from ``noise``."""
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
    """Return ``K^-1 b`` up to a residual of norm ``tolerance``; raise SolverError if that is not reached."""
    x, iterations, residual = gradients.conjugate_gradients(K, P, b, tolerance, max_iterations)
    if iterations <= max_iterations:
        return x, SolveInfo(iterations, residual)
    raise SolverError(
        f"conjugate gradients did not converge: after {max_iterations} iterations the error is {residual:.1e} "
        f"conditional standard deviations, above the tolerance {tolerance:.0e}. The columns are nearly collinear, "
        "or the units of a given scatter matrix or the scales of W12 differ by too many orders of magnitude. "
        "Standardise the columns, raise Dual(max_iterations=...), or use Dense()"
    )
