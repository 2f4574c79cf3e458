"""Mistakes that are easily made in the graphical lasso's sampler. The checks must catch every one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from baselines.calibration import Case
from markovblanket.baselines import GraphicalLasso, WholeNetwork
from markovblanket.baselines._sampler import NetworkState
from statistical.reference import Array, Generator

GIVEN, LEARNED = {"lam": 1.5}, {"shape": 4.0, "rate": 2.0}


class WholeRateOnTheDiagonal(WholeNetwork):
    """``w_ii ~ Exponential(lam)`` for ``lam/2``: ``s_jj + 2 lam`` for ``s_jj + lam``."""

    def draw_matrix(self, rng: Generator, state: NetworkState) -> Array:
        """As if there were ``lam`` more scatter."""
        more = self.S + state.lam * np.eye(len(self.S))
        return WholeNetwork(more, self.n, self.p, self.prior).draw_matrix(rng, state)


class DroppedHalf(WholeNetwork):
    """``v ~ Gamma(n/2 + 1, rate s_jj + lam)``."""

    def draw_conditional_precisions(self, rng: Generator, lam: float) -> Array:
        """Half of what it should be."""
        return super().draw_conditional_precisions(rng, lam) / 2


class DroppedOne(WholeNetwork):
    """``v ~ Gamma(n/2, rate (s_jj + lam)/2)``: the power of the determinant for the shape."""

    def draw_conditional_precisions(self, rng: Generator, lam: float) -> Array:
        """Two rows too few."""
        fewer = WholeNetwork(self.S, self.n - 2, self.p, self.prior)
        return fewer.draw_conditional_precisions(rng, lam)


class ForgottenRate(WholeNetwork):
    """``v ~ Gamma(n/2 + 1, rate s_jj/2)``."""

    def draw_conditional_precisions(self, rng: Generator, lam: float) -> Array:
        """Without the prior of the diagonal."""
        return super().draw_conditional_precisions(rng, 0.0)


class WrongSign(WholeNetwork):
    """``N(+C s, C)``."""

    def draw_matrix(self, rng: Generator, state: NetworkState) -> Array:
        """The sign of a regression coefficient for that of a precision."""
        S = 2 * np.diag(np.diag(self.S)) - self.S
        return WholeNetwork(S, self.n, self.p, self.prior).draw_matrix(rng, state)


class ScalesOfAnotherColumn(WholeNetwork):
    """``D_j`` of the next column."""

    def draw_matrix(self, rng: Generator, state: NetworkState) -> Array:
        """The right draw for the wrong scales."""
        return super().draw_matrix(rng, replace(state, D=np.roll(state.D, 1, axis=0) + np.eye(len(state.D))))


class ScalesNotInverted(GraphicalLasso):
    """``T`` from the law of ``1/T``."""

    def draw_reciprocal_scales(self, rng: Generator, W: Array, lam: float) -> Array:
        """T for 1/T."""
        eye = np.eye(len(W))
        return 1 / (super().draw_reciprocal_scales(rng, W, lam) + eye)


class DroppedHalfScales(GraphicalLasso):
    """``t ~ Exponential(lam^2)`` for ``lam^2 / 2``."""

    def draw_reciprocal_scales(self, rng: Generator, W: Array, lam: float) -> Array:
        """Twice the rate."""
        return super().draw_reciprocal_scales(rng, W, np.sqrt(2) * lam)


class PairsOnly(GraphicalLasso):
    """``lam`` counts the pairs and forgets the diagonal."""

    def draw_rate(self, rng: Generator, W: Array) -> float:
        """``Gamma(shape + d(d-1)/2, rate + sum_{i<j} |w_ij|)``."""
        pairs = np.abs(np.tril(W, -1))
        return float(rng.gamma(self.shape + len(W) * (len(W) - 1) / 2) / (self.rate + pairs.sum()))


class WholeDiagonal(GraphicalLasso):
    """``lam`` takes the diagonal at full weight."""

    def draw_rate(self, rng: Generator, W: Array) -> float:
        """``rate + sum_{i<=j} |w_ij|``."""
        d = len(W)
        return float(rng.gamma(self.shape + d * (d + 1) / 2) / (self.rate + np.abs(np.tril(W)).sum()))


class ScalesBeforeRate(WholeNetwork):
    """The right laws in the wrong order: T with the old lam, then lam with T integrated out."""

    def sweep(self, rng: Generator, state: NetworkState):
        """T does not know of the new lam."""
        new, info = super().sweep(rng, state)
        return replace(new, D=self.prior.draw_reciprocal_scales(rng, new.W, state.lam)), info


@dataclass(frozen=True)
class Bug:
    """A mistake and the problem that shows it."""

    name: str
    case: Case

    def __str__(self) -> str:
        return self.name


def in_sampler(name: str, make: type[WholeNetwork], learned: bool = False) -> Bug:
    return Bug(name, Case(3, 5, GraphicalLasso(**(LEARNED if learned else GIVEN)), make))


def in_prior(name: str, make: type[GraphicalLasso], learned: bool = False) -> Bug:
    return Bug(name, Case(3, 5, make(**(LEARNED if learned else GIVEN))))


BUGS = [
    in_sampler("lam for lam/2 on the diagonal", WholeRateOnTheDiagonal),
    in_sampler("dropped 1/2 in the law of v", DroppedHalf),
    in_sampler("n/2 for n/2 + 1 in the law of v", DroppedOne),
    in_sampler("s_jj for s_jj + lam in the law of v", ForgottenRate),
    in_sampler("wrong sign of s", WrongSign),
    in_sampler("scales of another column", ScalesOfAnotherColumn),
    in_prior("T for 1/T", ScalesNotInverted),
    in_prior("dropped 1/2 in the law of T", DroppedHalfScales),
    in_prior("lam from pairs only", PairsOnly, learned=True),
    in_prior("lam with the whole diagonal", WholeDiagonal, learned=True),
    in_sampler("T before lam", ScalesBeforeRate, learned=True),
]
