"""Base class of the priors: scale mixtures of normals, under which ``W12`` is normal given its scales."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from markovblanket.contracts import Array, ChainState, Hyper, Noise, RowLaw, Scatter, SolveInfo, Solver
from markovblanket.variates import slice

# With a smaller shape, beta and inverse gamma hyperpriors put some of their mass beyond the range of a double.
LEAST_SHAPE = 0.1


@dataclass(frozen=True)
class ScaleMixture:
    """Defaults for a prior: a normal conditional of ``W12``, and no learned scale.

    A prior with another conditional (one with exact zeros, say) overrides :meth:`draw_cross`.
    """

    exact_zeros: ClassVar[bool] = False

    def for_data(self, p: int, q: int, n: int) -> Self:
        """Return the prior itself: nothing in it depends on the size of the data."""
        return self

    def draw_cross(
        self, rng: np.random.Generator, state: ChainState, scatter: Scatter, solver: Solver
    ) -> tuple[Array, SolveInfo]:
        """Draw ``W12 | W11, T, S ~ N(-C^-1 S12, C^-1)`` by the solver."""
        p, q = state.W12.shape
        noise = Noise.draw(rng, p, q, len(scatter.F))
        return solver.draw(np.linalg.inv(state.W11), state.T, scatter, noise)

    def draw_jointly(self, rng: np.random.Generator, state: ChainState, scatter: Scatter) -> ChainState:
        """Return the state unchanged: the prior has no joint move."""
        return state

    def zero_law(self, hyper: Hyper) -> tuple[float, float] | None:
        """Return None: no entry is exactly zero."""
        return None

    def draw_factor(
        self, rng: np.random.Generator, hyper: Hyper, linear: float, quadratic: float
    ) -> tuple[float, Hyper]:
        """Return the factor 1 and the hyperparameters unchanged: the prior has no learned scale."""
        return 1.0, hyper

    def row_law(self, state: ChainState) -> RowLaw:
        """Return the log density of ``diag(r) W12`` in r, scales fixed: ``-1/2 sum_ij r_i^2 w_ij^2 / t_ij``."""
        weighted = np.divide(state.W12, state.T, out=np.zeros_like(state.W12), where=state.T > 0)
        sizes = np.einsum("ij,ij->i", weighted, state.W12)
        p, q = state.W12.shape
        return RowLaw(np.full(p, float(q)), np.zeros(p), sizes)


def draw_common_factor(
    rng: np.random.Generator, log_hyperprior: Callable[[float], float], linear: float, quadratic: float
) -> float:
    """Draw ``c`` of the joint move ``(W12, T, scale) -> (c W12, c^2 T, c scale)``.

    The mixture is invariant under this move, so the density of ``c`` with respect to ``dc/c`` is
    ``exp(-c linear - c^2/2 quadratic)`` times the factor of the hyperprior, given as a function of ``log c``, with
    its Jacobian. It is not always log-concave in ``log c``; one slice step from ``c = 1`` leaves it invariant.
    """

    def log_density(u: float) -> float:
        c = math.exp(u)
        return log_hyperprior(u) - c * linear - 0.5 * c * c * quadratic

    return math.exp(slice.step(rng, 0.0, log_density, width=0.5))
