"""What every scale mixture of normals shares: given its scales, ``W12`` is normal."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from markovblanket.contracts import Array, ChainState, Hyper, Noise, RowLaw, Scatter, SolveInfo, Solver
from markovblanket.variates import slice

# With a smaller shape, beta and inverse gamma hyperpriors have some of their mass beyond the range of a double.
LEAST_SHAPE = 0.1


@dataclass(frozen=True)
class ScaleMixture:
    """The default conditional of ``W12``, and no learned scale.

    A prior with a conditional of its own (an exact zero, say) overrides :meth:`draw_cross`.
    """

    exact_zeros: ClassVar[bool] = False

    def for_data(self, p: int, q: int, n: int) -> Self:
        """The same prior: nothing in it depends on the size of the data."""
        return self

    def draw_cross(
        self, rng: np.random.Generator, state: ChainState, scatter: Scatter, solver: Solver
    ) -> tuple[Array, SolveInfo]:
        """``W12 | W11, T, S ~ N(-C^-1 S12, C^-1)``."""
        p, q = state.W12.shape
        noise = Noise.draw(rng, p, q, len(scatter.F))
        return solver.draw(np.linalg.inv(state.W11), state.T, scatter, noise)

    def draw_jointly(self, rng: np.random.Generator, state: ChainState, scatter: Scatter) -> ChainState:
        """No move of its own."""
        return state

    def zero_law(self, hyper: Hyper) -> tuple[float, float] | None:
        """No entry is exactly zero."""
        return None

    def draw_factor(
        self, rng: np.random.Generator, hyper: Hyper, linear: float, quadratic: float
    ) -> tuple[float, Hyper]:
        """No learned scale, no move."""
        return 1.0, hyper

    def row_law(self, state: ChainState) -> RowLaw:
        """``-1/2 sum_ij r_i^2 w_ij^2 / t_ij``: the scales held fixed."""
        weighted = np.divide(state.W12, state.T, out=np.zeros_like(state.W12), where=state.T > 0)
        sizes = np.einsum("ij,ij->i", weighted, state.W12)
        p, q = state.W12.shape
        return RowLaw(np.full(p, float(q)), np.zeros(p), sizes)


def draw_common_factor(
    rng: np.random.Generator, log_hyperprior: Callable[[float], float], linear: float, quadratic: float
) -> float:
    """``c`` of the joint move ``(W12, T, scale) -> (c W12, c^2 T, c scale)``.

    The mixture is invariant under it, so the law of ``c`` with respect to ``dc/c`` is
    ``exp(-c linear - c^2/2 quadratic)`` times the hyperprior's factor, given as a function of ``log c`` and
    with its Jacobian. Not always log-concave in ``log c``: one slice step from ``c = 1`` leaves it invariant.
    """

    def log_density(u: float) -> float:
        c = math.exp(u)
        return log_hyperprior(u) - c * linear - 0.5 * c * c * quadratic

    return math.exp(slice.step(rng, 0.0, log_density, width=0.5))
