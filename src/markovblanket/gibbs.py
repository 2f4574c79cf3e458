"""The sampler: one Gibbs pass, readable on one screen."""

from __future__ import annotations

import math

import numpy as np

from markovblanket.contracts import Array, ChainState, Draw, Problem, Scatter, SweepInfo
from markovblanket.variates import mgig, wishart

# The continued fraction is exact with any number of steps; a few cost little and forget W11 sooner.
QUERY_STEPS = 3


def sweep(rng: np.random.Generator, state: ChainState, problem: Problem) -> tuple[ChainState, SweepInfo]:
    """One Gibbs pass: every line draws from the conditional named beside it."""
    scatter, prior = problem.scatter, problem.prior
    T, hyper = prior.draw_scales(rng, state.W12, state.hyper)  # T, hyper  | W12
    state = ChainState(state.W11, state.W12, T, hyper)
    W12, solve = prior.draw_cross(rng, state, scatter, problem.solver)  # W12  | W11, T, S
    G = query_quadratic(W12, scatter)
    c, hyper = prior.draw_factor(  # joint scale of (W12, T, hyper)  | W11, S
        rng, hyper, float(np.vdot(W12, scatter.S12)), float(np.vdot(np.linalg.inv(state.W11), G))
    )
    W11 = draw_query(rng, state.W11, c * c * G, scatter)  # W11  | W12, S
    return ChainState(W11, c * W12, c * c * T, hyper), SweepInfo(solve.iterations, solve.residual, c)


def draw_query(rng: np.random.Generator, W11: Array, G: Array, scatter: Scatter) -> Array:
    """``W11 | W12, S ~ MGIG((n+p+1)/2; B, G)``: steps of a kernel that leaves this law invariant."""
    order = (scatter.n + len(W11) + 1) / 2
    return mgig.step(rng, W11, order, scatter.B, G, steps=QUERY_STEPS)


def query_quadratic(W12: Array, scatter: Scatter) -> Array:
    """``G = W12 A W21`` with ``A = I + F'F``."""
    V = W12 @ scatter.F.T
    return W12 @ W12.T + V @ V.T


def start(rng: np.random.Generator, problem: Problem) -> ChainState:
    """An over-dispersed first state.

    ``W11`` as if nothing were connected, times a random factor between 1/e and e; ``W12`` from its prior.
    """
    scatter, p, q = problem.scatter, problem.p, problem.q
    W11 = wishart.draw(rng, scatter.n + p + 1, np.linalg.inv(scatter.B)) * math.exp(rng.uniform(-1, 1))
    T, hyper = problem.prior.start(rng, p, q)
    return ChainState(W11, np.sqrt(T) * rng.standard_normal((p, q)), T, hyper)


def derive(rng: np.random.Generator, state: ChainState, info: SweepInfo, scatter: Scatter) -> Draw:
    """What a draw says beyond ``W11`` and ``W12``.

    ``W22_jj = (A^-1)_jj chi2(n+q+1) + (W21 U W12)_jj``; the explained variance of the query variables is
    that of ``-X2 W21 U``, i.e. the diagonal of ``U W12 S22 W21 U / n``.
    """
    UW12 = np.linalg.solve(state.W11, state.W12)
    chi2 = rng.chisquare(scatter.n + UW12.shape[1] + 1, UW12.shape[1])
    W22_diagonal = scatter.inverse_diagonal * chi2 + np.einsum("ij,ij->j", UW12, state.W12)
    fit = UW12 @ scatter.F.T
    explained = np.einsum("ik,ik->i", fit, fit) / scatter.n
    return Draw(state.W11, state.W12, W22_diagonal, explained, state.hyper, info)
