"""The Gibbs sampler of the model: one sweep and its steps, the initial state, and what is derived from a draw."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from markovblanket.contracts import Array, ChainState, Draw, Hyper, Prior, Problem, Scatter, SweepInfo
from markovblanket.model import _interweaving, _row_scales
from markovblanket.variates import mgig, wishart


def sweep(rng: np.random.Generator, state: ChainState, problem: Problem) -> tuple[ChainState, SweepInfo]:
    """Return the state after one Gibbs sweep, and its cost; comments name the conditional distributions."""
    state, problem = refresh(rng, state, problem)  # X  | W, Y  (constant for complete Gaussian data)
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
    return ChainState(W11, W12, T, hyper, state.columns), SweepInfo(solve.iterations, solve.residual, c)


def refresh(rng: np.random.Generator, state: ChainState, problem: Problem) -> tuple[ChainState, Problem]:
    """Draw the latent columns; return the state with them, and the problem with their scatter."""
    if problem.latent is None:
        return state, problem
    columns = problem.latent.refresh(rng, state)
    return replace(state, columns=columns), replace(problem, scatter=problem.latent.scatter(columns))


def row_products(W12: Array, scatter: Scatter) -> tuple[Array, Array]:
    """Return ``G = W12 A W21`` with ``A = I + F'F``, and ``Q = W12 S21`` with ``S21 = F'Y'``."""
    V = scatter.times_factor(W12)
    return W12 @ W12.T + V @ V.T, V @ scatter.Y.T


def draw_common_scale(
    rng: np.random.Generator, state: ChainState, G: Array, Q: Array, prior: Prior
) -> tuple[float, Hyper]:
    """Draw the factor c of the joint scale move of ``(W12, T, hyper)``, and the new hyperparameters."""
    quadratic = np.vdot(np.linalg.inv(state.W11), G)
    return prior.draw_factor(rng, state.hyper, float(np.trace(Q)), float(quadratic))


def draw_query(rng: np.random.Generator, W11: Array, G: Array, scatter: Scatter) -> Array:
    """Move ``W11`` by a kernel that leaves ``W11 | W12, S ~ MGIG((n+p+1)/2; B, G)`` invariant.

    More than one step would be as exact and reduce the autocorrelation of W11, but the joint move of the rows does
    that better.
    """
    return mgig.step(rng, W11, (scatter.n + len(W11) + 1) / 2, scatter.B, G)


def draw_with_regression(
    rng: np.random.Generator, state: ChainState, G: Array, Q: Array, problem: Problem
) -> tuple[ChainState, Array, Array]:
    """Draw ``W11 | U W12, T, S``, with ``W12`` changed accordingly; also return the new G and Q.

    Nothing is done if entries may be exactly zero. With ``Z = U W12``, ``Z A Z' = U G U`` and ``Z S21 = U Q``
    (:mod:`markovblanket.model._interweaving`). The change of ``W11`` times Z is added to ``W12``, which is not set
    to ``W11 Z``: rounding errors of large rows must not enter small ones.
    """
    if problem.prior.zero_law(state.hyper) or state.T.min() < _interweaving.LEAST_SCALE:
        return state, G, Q
    U, scatter = np.linalg.inv(state.W11), problem.scatter
    UQ, Z = U @ Q, U @ state.W12
    H = _interweaving.curvatures(Z, state.T)
    W11 = _interweaving.draw(rng, state.W11, scatter.n / 2 + problem.q, scatter.B + U @ G @ U + UQ + UQ.T, H)
    R = W11 @ U
    return replace(state, W11=W11, W12=state.W12 + (W11 - state.W11) @ Z), R @ G @ R.T, R @ Q


def draw_row_scales(rng: np.random.Generator, state: ChainState, G: Array, Q: Array, problem: Problem) -> Array:
    """Draw the factors r of the joint move ``W11 -> R^1/2 W11 R^1/2``, ``W12 -> R W12`` with ``R = diag(r)``.

    If the query variables are well explained, ``W11`` given ``W12`` hardly moves, and vice versa: both are tied to
    the regression ``-U W12``. The joint move changes both and nearly keeps the regression. The density of r with
    respect to ``prod_i dr_i/r_i``, with the Jacobian and with ``T`` integrated out, is::

        prod_i r_i^((n+p+1)/2 + q)  exp(-1/2 sqrt(r)' M sqrt(r) - r's)  p(R W12)        M = B * W11 + U * G

    with ``*`` entry by entry and s the diagonal of ``Q = W12 S21``. Slice steps for each ``log r_i`` and for their
    common shift leave it invariant, hence also the posterior (Liu and Sabatti 2000). In the code the factor
    ``r_i^q`` is part of ``p(R W12)``, because under a prior with exact zeros fewer entries are scaled.
    """
    p = len(state.W11)
    power = (problem.scatter.n + p + 1) / 2
    M = problem.scatter.B * state.W11 + np.linalg.inv(state.W11) * G
    return _row_scales.draw(rng, power, M, np.diag(Q).copy(), problem.prior.row_law(state))


def start(rng: np.random.Generator, problem: Problem) -> ChainState:
    """Draw an over-dispersed initial state of a chain.

    ``W11`` is drawn as if there were no edges, times a random factor between 1/e and e; ``W12`` from its prior.
    """
    scatter, p, q = problem.scatter, problem.p, problem.q
    root = np.linalg.inv(np.linalg.cholesky(scatter.B)).T  # root root' = B^-1
    W11 = wishart.draw_from_factor(rng, scatter.n + p + 1, root) * math.exp(rng.uniform(-1, 1))
    T, hyper = problem.prior.start(rng, p, q)
    columns = None if problem.latent is None else problem.latent.start()
    return ChainState(W11, np.sqrt(T) * rng.standard_normal((p, q)), T, hyper, columns)


def current_scatter(state: ChainState, problem: Problem) -> Scatter:
    """Return the scatter of the columns in the state; that of the problem if no columns are latent."""
    if problem.latent is None or state.columns is None:
        return problem.scatter
    return problem.latent.scatter(state.columns)


def derive(rng: np.random.Generator, state: ChainState, info: SweepInfo, scatter: Scatter) -> Draw:
    """Return the draw of a state, with the diagonal of ``W22`` and the explained variances.

    ``W22_jj = (S22 + r I)^-1_jj chi2(rest_degrees) + (W21 U W12)_jj``; the explained variance of the query
    variables is that of ``-X2 W21 U``, i.e. the diagonal of ``U W12 S22 W21 U / n``.
    """
    UW12 = np.linalg.solve(state.W11, state.W12)
    chi2 = rng.chisquare(scatter.rest_degrees, UW12.shape[1])
    W22_diagonal = scatter.inverse_diagonal * chi2 + np.einsum("ij,ij->j", UW12, state.W12)
    fit = scatter.times_factor(UW12)
    explained = np.einsum("ik,ik->i", fit, fit) / scatter.n
    return Draw(state.W11, state.W12, W22_diagonal, explained, state.hyper, info)


def partial_correlations(state: ChainState, scatter: Scatter) -> Array:
    """Return ``-w_ij / sqrt(w_ii w_jj)``, p x q, with the diagonal of ``W22`` at its conditional mean.

    That mean is ``(S22 + r I)^-1_jj rest_degrees + (W21 U W12)_jj``; see :func:`derive`.
    """
    UW12 = np.linalg.solve(state.W11, state.W12)
    W22_diagonal = scatter.inverse_diagonal * scatter.rest_degrees + np.einsum("ij,ij->j", UW12, state.W12)
    return -state.W12 / np.sqrt(np.outer(np.diagonal(state.W11), W22_diagonal))


@dataclass(frozen=True, slots=True)
class Blanket:
    """Sampler of the Markov blanket model for a problem, to be run by :mod:`markovblanket.chains.run`."""

    problem: Problem

    def start(self, rng: np.random.Generator) -> ChainState:
        """Draw an initial state by the function :func:`start`."""
        return start(rng, self.problem)

    def sweep(self, rng: np.random.Generator, state: ChainState) -> tuple[ChainState, SweepInfo]:
        """Draw the next state by the function :func:`sweep`."""
        return sweep(rng, state, self.problem)

    def derive(self, rng: np.random.Generator, state: ChainState, info: SweepInfo) -> Draw:
        """Return the draw by the function :func:`derive`, with the latent columns."""
        draw, latent = derive(rng, state, info, current_scatter(state, self.problem)), self.problem.latent
        if latent is None or state.columns is None:
            return draw
        return replace(draw, latent=latent.moving(state.columns))

    def partial_correlations(self, state: ChainState) -> Array:
        """Return the partial correlations by the function :func:`partial_correlations`."""
        return partial_correlations(state, current_scatter(state, self.problem))
