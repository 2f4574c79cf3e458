"""The sampler: one Gibbs pass, readable on one screen."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from markovblanket.contracts import Array, ChainState, Draw, Hyper, Prior, Problem, Scatter, SweepInfo
from markovblanket.model import _interweaving, _row_scales
from markovblanket.variates import mgig, wishart


def sweep(rng: np.random.Generator, state: ChainState, problem: Problem) -> tuple[ChainState, SweepInfo]:
    """One Gibbs pass: every line draws from the conditional named beside it."""
    state, problem, hops = refresh(rng, state, problem)  # X  | W, Y  (constant for complete Gaussian data)
    scatter, prior = problem.scatter, problem.prior
    W12, solve = prior.draw_cross(rng, state, scatter, problem.solver)  # W12  | W11, T, S
    state = prior.draw_jointly(rng, replace(state, W12=W12), scatter)  # (W12, T, hyper)  | W11, S
    G, Q = row_products(state.W12, scatter)
    c, hyper = draw_common_scale(rng, state, G, Q, prior)  # scale of (W12, T, hyper)  | W11, S
    W12, T, G, Q = c * state.W12, c * c * state.T, c * c * G, c * Q
    W11 = draw_query(rng, state.W11, G, scatter)  # W11  | W12, S
    state = replace(state, W11=W11, W12=W12, T=T, hyper=hyper)
    state, G, Q = draw_with_regression(rng, state, G, Q, problem)  # (W11, W12)  | U W12, T, S
    r = draw_row_scales(rng, state, G, Q, problem)  # scales of rows of (W11, W12)  | S
    W11, W12 = state.W11 * np.sqrt(np.outer(r, r)), r[:, None] * state.W12
    T, hyper = prior.draw_scales(rng, W12, hyper)  # T, hyper  | W12
    return ChainState(W11, W12, T, hyper, state.columns), SweepInfo(solve.iterations, solve.residual, c, *hops)


def refresh(
    rng: np.random.Generator, state: ChainState, problem: Problem
) -> tuple[ChainState, Problem, tuple[int, int]]:
    """The moving columns drawn anew, some with an entry of ``W12``, and the problem with their scatter.

    Also how many moves of an entry with its column were proposed, and how many of them rejected.
    """
    if problem.latent is None:
        return state, problem, (0, 0)
    state = replace(state, columns=problem.latent.refresh(rng, state))
    law = problem.prior.zero_law(state.hyper)
    state, hops = problem.latent.hop(rng, state, *law) if law else (state, (0, 0))
    assert state.columns is not None
    return state, replace(problem, scatter=problem.latent.scatter(state.columns)), hops


def row_products(W12: Array, scatter: Scatter) -> tuple[Array, Array]:
    """``G = W12 A W21`` with ``A = I + F'F``, and ``Q = W12 S21`` with ``S21 = F'Y'``."""
    V = scatter.times_factor(W12)
    return W12 @ W12.T + V @ V.T, V @ scatter.Y.T


def draw_common_scale(
    rng: np.random.Generator, state: ChainState, G: Array, Q: Array, prior: Prior
) -> tuple[float, Hyper]:
    """The prior's joint move of ``(W12, T, hyper)``: its factor c, and the new hyperparameters."""
    quadratic = np.vdot(np.linalg.inv(state.W11), G)
    return prior.draw_factor(rng, state.hyper, float(np.trace(Q)), float(quadratic))


def draw_query(rng: np.random.Generator, W11: Array, G: Array, scatter: Scatter) -> Array:
    """``W11 | W12, S ~ MGIG((n+p+1)/2; B, G)``: a step of a kernel that leaves this law invariant.

    More steps would be as exact and forget W11 sooner, but the joint move of the rows does that better.
    """
    return mgig.step(rng, W11, (scatter.n + len(W11) + 1) / 2, scatter.B, G)


def draw_with_regression(
    rng: np.random.Generator, state: ChainState, G: Array, Q: Array, problem: Problem
) -> tuple[ChainState, Array, Array]:
    """``W11 | U W12, T, S``, where ``W12`` follows, and what G and Q become; not where entries are exactly zero.

    With ``Z = U W12``: ``Z A Z' = U G U`` and ``Z S21 = U Q`` (:mod:`markovblanket.model._interweaving`). ``W12`` moves by
    the change of ``W11`` times Z, not to ``W11 Z``: rounding must not add to small rows a part of large ones.
    """
    if problem.prior.zero_law(state.hyper) or state.T.min() < _interweaving.LEAST:
        return state, G, Q
    U, scatter = np.linalg.inv(state.W11), problem.scatter
    UQ, Z = U @ Q, U @ state.W12
    H = _interweaving.curvatures(Z, state.T)
    W11 = _interweaving.draw(rng, state.W11, scatter.n / 2 + problem.q, scatter.B + U @ G @ U + UQ + UQ.T, H)
    R = W11 @ U
    return replace(state, W11=W11, W12=state.W12 + (W11 - state.W11) @ Z), R @ G @ R.T, R @ Q


def draw_row_scales(rng: np.random.Generator, state: ChainState, G: Array, Q: Array, problem: Problem) -> Array:
    """Factors r of the joint move ``W11 -> R^1/2 W11 R^1/2``, ``W12 -> R W12`` with ``R = diag(r)``.

    Given ``W12``, ``W11`` hardly moves when the query variables are well explained, and the other way round: the
    regression ``-U W12`` ties them. The move changes both and nearly keeps the regression. Its law with respect
    to ``prod_i dr_i/r_i``, the Jacobian included and ``T`` integrated out, is::

        prod_i r_i^((n+p+1)/2 + q)  exp(-1/2 sqrt(r)' M sqrt(r) - r's)  p(R W12)        M = B * W11 + U * G

    with ``*`` entry by entry and s the diagonal of ``Q = W12 S21``. Slice steps for each
    ``log r_i`` and for their common shift leave it invariant, hence the posterior too (Liu and Sabatti 2000). The
    factor ``r_i^q`` belongs to ``p(R W12)`` in the code: a prior with exact zeros has fewer dimensions.
    """
    p = len(state.W11)
    power = (problem.scatter.n + p + 1) / 2
    M = problem.scatter.B * state.W11 + np.linalg.inv(state.W11) * G
    return _row_scales.draw(rng, power, M, np.diag(Q).copy(), problem.prior.row_law(state))


def start(rng: np.random.Generator, problem: Problem) -> ChainState:
    """An over-dispersed first state.

    ``W11`` as if nothing were connected, times a random factor between 1/e and e; ``W12`` from its prior.
    """
    scatter, p, q = problem.scatter, problem.p, problem.q
    root = np.linalg.inv(np.linalg.cholesky(scatter.B)).T  # root root' = B^-1
    W11 = wishart.draw_from_factor(rng, scatter.n + p + 1, root) * math.exp(rng.uniform(-1, 1))
    T, hyper = problem.prior.start(rng, p, q)
    columns = None if problem.latent is None else problem.latent.start()
    return ChainState(W11, np.sqrt(T) * rng.standard_normal((p, q)), T, hyper, columns)


def current_scatter(state: ChainState, problem: Problem) -> Scatter:
    """The scatter of the columns that the state holds."""
    if problem.latent is None or state.columns is None:
        return problem.scatter
    return problem.latent.scatter(state.columns)


def derive(rng: np.random.Generator, state: ChainState, info: SweepInfo, scatter: Scatter) -> Draw:
    """What a draw says beyond ``W11`` and ``W12``.

    ``W22_jj = (S22 + r I)^-1_jj chi2(rest_degrees) + (W21 U W12)_jj``; the explained variance of the query
    variables is that of ``-X2 W21 U``, i.e. the diagonal of ``U W12 S22 W21 U / n``.
    """
    UW12 = np.linalg.solve(state.W11, state.W12)
    chi2 = rng.chisquare(scatter.rest_degrees, UW12.shape[1])
    W22_diagonal = scatter.inverse_diagonal * chi2 + np.einsum("ij,ij->j", UW12, state.W12)
    fit = scatter.times_factor(UW12)
    explained = np.einsum("ik,ik->i", fit, fit) / scatter.n
    return Draw(state.W11, state.W12, W22_diagonal, explained, state.hyper, info)


@dataclass(frozen=True, slots=True)
class Blanket:
    """The sampler of a problem, as :mod:`markovblanket.chains.run` runs it."""

    problem: Problem

    def start(self, rng: np.random.Generator) -> ChainState:
        """As :func:`start`."""
        return start(rng, self.problem)

    def sweep(self, rng: np.random.Generator, state: ChainState) -> tuple[ChainState, SweepInfo]:
        """As :func:`sweep`."""
        return sweep(rng, state, self.problem)

    def derive(self, rng: np.random.Generator, state: ChainState, info: SweepInfo) -> Draw:
        """As :func:`derive`, with the columns that move."""
        draw, latent = derive(rng, state, info, current_scatter(state, self.problem)), self.problem.latent
        if latent is None or state.columns is None:
            return draw
        return replace(draw, latent=latent.moving(state.columns))

    def cross(self, state: ChainState) -> Array:
        """``W12``."""
        return state.W12
