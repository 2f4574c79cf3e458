"""Mistakes that are easily made in this sampler, some of them in print. The checks must catch every one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import linalg

from markovblanket.contracts import Array, ChainState, Hyper, Noise, RowLaw, Scatter, SolveInfo
from markovblanket.model import _interweaving, sweep
from markovblanket.priors import Laplace, SpikeSlab
from markovblanket.priors.scale_mixture import draw_common_factor
from markovblanket.solvers import CrossPrecision, Dense
from markovblanket.variates import inverse_gaussian, mgig, wishart
from statistical import entrywise, horseshoes
from statistical.calibration import Case
from statistical.cases import FEW_OTHERS, FEW_ROWS, HORSESHOE, LONG, ONE_QUERY, SPIKE, case

Generator = np.random.Generator
DrawQuery = Callable[[Generator, Array, Array, Scatter], Array]
DrawGivenRegression = Callable[[Generator, Array, float, Array, Array], Array]
GIVEN_REGRESSION = _interweaving.draw


@dataclass(frozen=True)
class Bug:
    """A mistake, the problem that shows it, and, if it is in an update of W11, the wrong update.

    ``replications`` of two sweeps show it.
    """

    name: str
    case: Case
    draw_query: DrawQuery = sweep.draw_query
    draw_given_regression: DrawGivenRegression = _interweaving.draw
    replications: int = 300

    def __str__(self) -> str:
        return self.name


# --------------------------------------------------------------------------------------------- W11 | W12, S


def wrong_degrees_of_freedom(rng: Generator, W11: Array, G: Array, scatter: Scatter) -> Array:
    """``n + 3p - 1`` in the continued fraction, as the printed order suggests, for ``n + p + 1``."""
    order = (scatter.n + 3 * len(W11) - 1) / 2
    return mgig.step(rng, W11, order, scatter.B, G)


def regression_without_jacobian(rng: Generator, W11: Array, power: float, D: Array, H: Array) -> Array:
    """``W11`` given the regression without the powers that ``W12`` brings, here of five other variables."""
    return GIVEN_REGRESSION(rng, W11, power - 5, D, H)


def dropped_half_query(rng: Generator, W11: Array, G: Array, scatter: Scatter) -> Array:
    """``exp -tr(B X + G X^-1)``."""
    order = (scatter.n + len(W11) + 1) / 2
    return mgig.step(rng, W11, order, 2 * scatter.B, 2 * G)


def forgotten_prior(rng: Generator, W11: Array, G: Array, scatter: Scatter) -> Array:
    """``S11`` for ``B = S11 + I``."""
    order = (scatter.n + len(W11) + 1) / 2
    return mgig.step(rng, W11, order, scatter.B - np.eye(len(W11)), G)


def cold_start(rng: Generator, W11: Array, G: Array, scatter: Scatter) -> Array:
    """Three steps of the continued fraction from X = 0, where the first gives Y, for steps from W11."""
    df = scatter.n + len(W11) + 1
    Y = wishart.draw(rng, df, np.linalg.inv(scatter.B))
    return mgig.step(rng, Y, df / 2, scatter.B, G, steps=2)


# ------------------------------------------------------------------------------------------ W12 | W11, T, S


class BlockCholeskyWithoutSchur:
    """Every block of the factor of C as if no block came before: the O(p q^3) shortcut."""

    def draw(self, U: Array, T: Array, scatter: Scatter, noise: Noise) -> tuple[Array, SolveInfo]:
        """``N(-C^-1 S12, C^-1)`` with the wrong factor of C."""
        (p, q), A = T.shape, scatter.F.T @ scatter.F + np.eye(T.shape[1])
        L = np.zeros((p * q, p * q))
        for j in range(p):
            rows = slice(j * q, (j + 1) * q)
            L[rows, rows] = np.linalg.cholesky(U[j, j] * A + np.diag(1 / T[j]))
            below = linalg.solve_triangular(L[rows, rows], A, lower=True).T
            L[(j + 1) * q :, rows] = np.kron(U[j + 1 :, j : j + 1], below)
        white = noise.Z1.ravel() - linalg.solve_triangular(L, scatter.S12.ravel(), lower=True)
        return linalg.solve_triangular(L, white, lower=True, trans="T").reshape(p, q), SolveInfo()


class MeanWithoutScales:
    """The mean ``-W11 S12 A^-1``, which holds for D = 0 only, with the right covariance."""

    def draw(self, U: Array, T: Array, scatter: Scatter, noise: Noise) -> tuple[Array, SolveInfo]:
        """``N(-W11 S12 A^-1, C^-1)``."""
        centred = replace(scatter, S12=np.zeros_like(scatter.S12))
        A = scatter.F.T @ scatter.F + np.eye(T.shape[1])
        spread, info = Dense().draw(U, T, centred, noise)
        return spread - np.linalg.solve(U, scatter.S12) @ np.linalg.inv(A), info


class WrongSign:
    """``N(+C^-1 S12, C^-1)``."""

    def draw(self, U: Array, T: Array, scatter: Scatter, noise: Noise) -> tuple[Array, SolveInfo]:
        """The sign of a regression coefficient for that of a precision."""
        return Dense().draw(U, T, replace(scatter, S12=-scatter.S12), noise)


class ScalesByColumns:
    """``D`` laid out by columns against rows of ``W12``."""

    def draw(self, U: Array, T: Array, scatter: Scatter, noise: Noise) -> tuple[Array, SolveInfo]:
        """The right draw for the wrong scales."""
        return Dense().draw(U, T.ravel(order="F").reshape(T.shape), scatter, noise)


class SwappedKronecker:
    """``A ⊗ U`` for ``U ⊗ A``."""

    def draw(self, U: Array, T: Array, scatter: Scatter, noise: Noise) -> tuple[Array, SolveInfo]:
        """``N(-C^-1 S12, C^-1)`` with the wrong C."""
        A = scatter.F.T @ scatter.F + np.eye(T.shape[1])
        L = np.linalg.cholesky(np.kron(A, U) + np.diag(1 / T.ravel()))
        white = noise.Z1.ravel() - linalg.solve_triangular(L, scatter.S12.ravel(), lower=True)
        return linalg.solve_triangular(L, white, lower=True, trans="T").reshape(T.shape), SolveInfo()


class ForgottenIdentity:
    """``S22`` for ``A = S22 + I``."""

    def draw(self, U: Array, T: Array, scatter: Scatter, noise: Noise) -> tuple[Array, SolveInfo]:
        """``N(-C^-1 S12, C^-1)`` with ``C = U ⊗ S22 + D``."""
        C = CrossPrecision(U, T, scatter).to_dense() - np.kron(U, np.eye(T.shape[1]))
        L = np.linalg.cholesky(C)
        white = noise.Z1.ravel() - linalg.solve_triangular(L, scatter.S12.ravel(), lower=True)
        return linalg.solve_triangular(L, white, lower=True, trans="T").reshape(T.shape), SolveInfo()


# ---------------------------------------------------------------------------- T, gamma | W12, and the scale


class ScalesNotInverted(Laplace):
    """``T`` from the law of ``1/T``."""

    def draw_scales(self, rng: Generator, W12: Array, hyper: Hyper) -> tuple[Array, Hyper]:
        """As the algorithm is printed."""
        T, hyper = super().draw_scales(rng, W12, hyper)
        return 1 / T, hyper


class DroppedHalfScales(Laplace):
    """``t ~ Exponential(gamma^2)`` for ``gamma^2/2``, so ``1/t ~ IG(sqrt(2) gamma/|w|, 2 gamma^2)``."""

    def draw_scales(self, rng: Generator, W12: Array, hyper: Hyper) -> tuple[Array, Hyper]:
        """Twice the rate."""
        gamma = self.gamma or 1.0
        return 1 / inverse_gaussian.draw(rng, math.sqrt(2) * gamma / np.abs(W12), 2 * gamma**2), hyper


class RateGivenScales(Laplace):
    """gamma from its law with T integrated out, but after T was drawn with the old one."""

    def draw_scales(self, rng: Generator, W12: Array, hyper: Hyper) -> tuple[Array, Hyper]:
        """The right laws in the wrong order."""
        gamma = hyper["gamma"]
        T = 1 / inverse_gaussian.draw(rng, gamma / np.abs(W12), gamma**2)
        return T, super().draw_scales(rng, W12, hyper)[1]


@dataclass(frozen=True)
class ScaleMove(Laplace):
    """The joint scale move, with mistakes on demand."""

    jacobian: float = 0.0
    curvature: float = 1.0

    def draw_factor(self, rng: Generator, hyper: Hyper, linear: float, quadratic: float) -> tuple[float, Hyper]:
        """``jacobian`` is added to the exponent of c, ``curvature`` multiplies the 1/2."""
        gamma = hyper["gamma"]

        def log_hyperprior(u: float) -> float:
            return (self.jacobian - self.shape) * u - self.rate * gamma * math.exp(-u)

        c = draw_common_factor(rng, log_hyperprior, linear, self.curvature * quadratic)
        return c, {"gamma": gamma / c}


class RowMoveWithoutJacobian(Laplace):
    """The move of the rows of ``(W11, W12)`` without the q powers of r that the rows of ``W12`` bring."""

    def row_law(self, state: ChainState) -> RowLaw:
        """No counts."""
        return replace(super().row_law(state), counts=np.zeros(len(state.W12)))


class RowMoveWithoutShape(Laplace):
    """gamma integrated out of the rows' move as if its hyperprior were flat."""

    def row_law(self, state: ChainState) -> RowLaw:
        """``-pq log(rate + sum_i r_i |w_i|_1)``."""
        return replace(super().row_law(state), power=state.W12.size)


# -------------------------------------------------------------------------------------------- exact zeros


class GapsNotCounted(SpikeSlab):
    """``inclusion ~ Beta(edges + k, gaps + pq)`` for ``gaps + pq - k``."""

    def draw_scales(self, rng: Generator, W12: Array, hyper: Hyper) -> tuple[Array, Hyper]:
        """Every entry counted as a gap."""
        T, hyper = super().draw_scales(rng, W12, hyper)
        return T, {**hyper, "inclusion": rng.beta(self.edges + np.count_nonzero(W12), self.gaps + W12.size)}


class SlabOfAll(SpikeSlab):
    """The slab's law as if every entry came from it."""

    def draw_scales(self, rng: Generator, W12: Array, hyper: Hyper) -> tuple[Array, Hyper]:
        """``shape + pq/2``."""
        _, hyper = super().draw_scales(rng, W12, hyper)
        slab = (self.rate + 0.5 * (W12**2).sum()) / rng.gamma(self.shape + 0.5 * W12.size)
        return slab * (W12 != 0), {**hyper, "slab": slab}


class RowMoveOfAll(SpikeSlab):
    """The move of the rows with q powers of r, zeros included."""

    def row_law(self, state: ChainState) -> RowLaw:
        """The Jacobian of entries that cannot move."""
        p, q = state.W12.shape
        return replace(super().row_law(state), counts=np.full(p, float(q)))


# ------------------------------------------------------------------------------------------------ the table

LAPLACE, UNEQUAL = case("laplace", "dense", LONG), case("unequal", "dense", LONG)
SHORT, WEAK = case("laplace", "dense", FEW_OTHERS), case("laplace", "dense", LONG, spread=0.1)
LEARNED, LEARNED_FEW = case("learned", "dense", FEW_OTHERS), case("learned", "dense", FEW_ROWS, spread=0.3)
LEARNED_ONE = case("learned", "dense", ONE_QUERY, spread=0.3)
SPIKED, SPIKED_FEW = case("spike learned", "dual", LONG), case("spike learned", "dual", FEW_ROWS)
SPIKED_WIDE = case("spike learned", "dual", LONG, spread=3.0)
HORSESHOES, HORSESHOES_ONE = (
    case("horseshoe learned", "dense", LONG),
    case("horseshoe learned", "dense", ONE_QUERY),
)
HORSESHOES_MANY = case("horseshoe learned", "dense", (3, 8, 30))
HORSESHOES_FEW = case("horseshoe learned", "dense", FEW_ROWS)
HYPERPRIOR = {"shape": 4.0, "rate": 1.0}

SHORTCUT, NO_SLAB = "block Cholesky without Schur complements", "lambda as if there were no slab"
PLAIN = [
    Bug("n+3p-1 degrees of freedom", SHORT, wrong_degrees_of_freedom),
    Bug("dropped 1/2 in the law of W11", LAPLACE, dropped_half_query),
    Bug("S11 for S11 + I", SHORT, forgotten_prior),
    Bug("three steps from a cold start", LAPLACE, cold_start),
    Bug("regression held without a Jacobian", LAPLACE, draw_given_regression=regression_without_jacobian),
    Bug(SHORTCUT, replace(LAPLACE, solver=BlockCholeskyWithoutSchur()), replications=1000),
    Bug("mean without the scales", replace(LAPLACE, solver=MeanWithoutScales())),
    Bug("wrong sign of S12", replace(LAPLACE, solver=WrongSign())),
    Bug("scales by columns", replace(UNEQUAL, solver=ScalesByColumns())),
    Bug("A kron U for U kron A", replace(LAPLACE, solver=SwappedKronecker())),
    Bug("T for 1/T", replace(LAPLACE, prior=ScalesNotInverted(gamma=2.0))),
    Bug("dropped 1/2 in the law of T", replace(LAPLACE, prior=DroppedHalfScales(gamma=2.0))),
    Bug("T before gamma", replace(LEARNED_FEW, prior=RateGivenScales(**HYPERPRIOR))),
    Bug("row move without a Jacobian", replace(LAPLACE, prior=RowMoveWithoutJacobian(gamma=2.0))),
    Bug("row move without the shape", replace(LEARNED_FEW, prior=RowMoveWithoutShape(**HYPERPRIOR))),
    Bug("scale move with a dropped 1/2", replace(LEARNED, prior=ScaleMove(**HYPERPRIOR, curvature=2.0))),
    Bug("without the slab", replace(HORSESHOES_MANY, prior=horseshoes.WithoutSlab(**HORSESHOE))),
    Bug(NO_SLAB, replace(HORSESHOES, prior=horseshoes.PlainLocalScales(**HORSESHOE)), replications=900),
    Bug("lambda for lambda squared", replace(HORSESHOES_MANY, prior=horseshoes.RootOfLambda(**HORSESHOE))),
    Bug("one power of tau too many", replace(HORSESHOES_ONE, prior=horseshoes.OffByOne(**HORSESHOE))),
    Bug("own part left in", replace(SPIKED, prior=entrywise.WithoutOwnPart(**SPIKE))),
    Bug("Bayes factor without volume", replace(SPIKED, prior=entrywise.WithoutVolume(**SPIKE))),
    Bug("a row redrawn as if uncorrelated", replace(SPIKED_WIDE, prior=entrywise.RedrawnApart(**SPIKE))),
    Bug("relocated to any place", replace(SPIKED_WIDE, prior=entrywise.AnyPlace(**SPIKE))),
    Bug("gaps not counted", replace(SPIKED, prior=GapsNotCounted(**SPIKE))),
    Bug("slab of all entries", replace(SPIKED, prior=SlabOfAll(**SPIKE))),
    Bug("row move of all entries", replace(SPIKED_FEW, prior=RowMoveOfAll(**SPIKE))),
]
SUBTLE = [
    Bug("free entries as if by rule", replace(HORSESHOES_FEW, prior=horseshoes.ChosenByRule(**HORSESHOE))),
    Bug("S22 for S22 + I", replace(WEAK, solver=ForgottenIdentity())),
    Bug("scale move without a Jacobian", replace(LEARNED_ONE, prior=ScaleMove(**HYPERPRIOR, jacobian=1.0))),
]
