"""The sweep as a whole: what it hands from one draw to the next, what it leaves alone, what is derived from it."""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from markovblanket.contracts import ChainState, Prior, Problem, Solver, SweepInfo
from markovblanket.model import scatter, sweep
from markovblanket.priors import Normal, laplace, scale_mixture
from markovblanket.solvers import Dense, Dual
from statistical.reference import Array
from statistical.settings import (
    GIVEN,
    LEARNED,
    SIZES,
    Listener,
    Setting,
    make_setting,
    random_state,
    rescaled,
)


@pytest.fixture(params=SIZES, ids=str)
def setting(request: pytest.FixtureRequest) -> Setting:
    return make_setting(request.param)


@pytest.mark.parametrize("prior", [Normal(0.7), GIVEN], ids=["normal", "laplace"])
def test_a_prior_without_a_learned_scale_does_not_move_it(prior: Prior) -> None:
    assert prior.draw_factor(np.random.default_rng(0), {}, 1.0, 2.0) == (1.0, {})


def problem_of(setting: Setting, prior: Prior = LEARNED, solver: Solver | None = None) -> Problem:
    return Problem(setting.scatter, prior, solver or Dual())


def test_a_sweep_hands_on_what_it_drew(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """W11 given the scaled W12, both then scaled by rows, and the scales T given the W12 that came out."""
    p, q = setting.one.W12.shape
    moves = np.linspace(0.5, -0.3, p)
    query, scales, rows = Listener(setting.other.W11), Listener(1 / setting.other.T), Listener(np.exp(moves))
    monkeypatch.setattr(scale_mixture.slice, "step", Listener(np.log(1.7)))
    monkeypatch.setattr(sweep._row_scales, "draw", rows)
    monkeypatch.setattr(sweep, "draw_query", query)
    monkeypatch.setattr(sweep, "draw_with_regression", lambda rng, state, G, Q, problem: (state, G, Q))
    monkeypatch.setattr(laplace.inverse_gaussian, "draw", scales)
    problem = problem_of(setting)
    drawn, _ = LEARNED.draw_cross(np.random.default_rng(0), setting.one, problem.scatter, problem.solver)
    state, info = sweep.sweep(np.random.default_rng(0), setting.one, problem)
    assert info.scale_factor == pytest.approx(1.7)
    [(_, W11, G, _)] = query.calls
    assert W11 is setting.one.W11
    np.testing.assert_allclose(G, 1.7**2 * drawn @ (setting.X2.T @ setting.X2 + np.eye(q)) @ drawn.T)
    [(_, _, M, s, _)] = rows.calls
    np.testing.assert_allclose(s, 1.7 * np.einsum("ij,ij->i", drawn, setting.X1.T @ setting.X2), atol=1e-10)
    B = setting.X1.T @ setting.X1 + np.eye(p)
    np.testing.assert_allclose(M, B * setting.other.W11 + np.linalg.inv(setting.other.W11) * G)
    expected = rescaled(replace(setting.other, W12=1.7 * drawn), moves)
    np.testing.assert_allclose(state.W11, expected.W11)
    np.testing.assert_allclose(state.W12, expected.W12)
    [(_, mean, _)] = scales.calls
    np.testing.assert_allclose(mean, state.hyper["gamma"] / np.abs(state.W12))
    np.testing.assert_allclose(state.T, setting.other.T)


@pytest.mark.parametrize("prior", [Normal(0.7), GIVEN, LEARNED], ids=["normal", "given", "learned"])
def test_a_sweep_leaves_its_input_alone_and_is_reproducible(setting: Setting, prior: Prior) -> None:
    problem = problem_of(setting, prior)
    before, data = copy.deepcopy(setting.one), copy.deepcopy(problem.scatter)
    results = [sweep.sweep(np.random.default_rng(seed), setting.one, problem)[0] for seed in (3, 3, 4)]
    assert same(setting.one, before)
    assert all(np.array_equal(getattr(problem.scatter, x), getattr(data, x)) for x in ("S11", "S12", "F", "B"))
    assert same(results[0], results[1])
    assert not same(results[0], results[2])


def same(one: ChainState, other: ChainState) -> bool:
    arrays = all(np.array_equal(getattr(one, x), getattr(other, x)) for x in ("W11", "W12", "T"))
    return arrays and one.hyper == other.hyper


def test_both_solvers_make_the_same_chain(setting: Setting) -> None:
    def end(solver: Solver) -> ChainState:
        rng, problem = np.random.default_rng(5), problem_of(setting, GIVEN, solver)
        state = sweep.start(rng, problem)
        for _ in range(5):
            state, _ = sweep.sweep(rng, state, problem)
        return state

    np.testing.assert_allclose(end(Dual(tolerance=1e-12)).W12, end(Dense()).W12, rtol=1e-6, atol=1e-8)


class FixedChiSquare(np.random.Generator):
    """A generator whose chi-square variates are 1, 2, 3, ..., and that tells their degrees of freedom."""

    heard: float

    def chisquare(self, df: float, size: int) -> Array:
        self.heard = df
        return np.arange(1.0, size + 1)


def test_derived_quantities_are_those_of_the_full_matrices(setting: Setting) -> None:
    one, (n, q) = setting.one, setting.X2.shape
    rng = FixedChiSquare(np.random.PCG64(0))
    draw = sweep.derive(rng, one, SweepInfo(0, 0.0, 1.0), setting.scatter)
    prior = setting.scatter.rest_prior
    assert rng.heard == prior.degrees + n
    U, A = np.linalg.inv(one.W11), setting.X2.T @ setting.X2 + prior.ridge * np.eye(q)
    chi2_part = np.diag(np.linalg.inv(A)) * np.arange(1.0, q + 1)
    np.testing.assert_allclose(draw.W22_diagonal, chi2_part + np.diag(one.W12.T @ U @ one.W12))
    fitted = -setting.X2 @ one.W12.T @ U
    np.testing.assert_allclose(draw.explained, (fitted**2).mean(axis=0))
    assert same(ChainState(draw.W11, draw.W12, one.T, draw.hyper), one)


def test_partial_correlations_take_the_diagonal_of_W22_at_its_mean(setting: Setting) -> None:
    one, (n, q) = setting.one, setting.X2.shape
    prior = setting.scatter.rest_prior
    A = setting.X2.T @ setting.X2 + prior.ridge * np.eye(q)
    W22 = np.linalg.inv(A) * (prior.degrees + n) + one.W12.T @ np.linalg.solve(one.W11, one.W12)
    expected = -one.W12 / np.sqrt(np.outer(np.diag(one.W11), np.diag(W22)))
    found = sweep.Blanket(problem_of(setting)).partial_correlations(one)
    np.testing.assert_allclose(found, expected)


def test_diagonal_of_W22_follows_the_law_of_the_whole_block() -> None:
    """Against ``W22 = W22.1 + W21 U W12`` with ``W22.1`` drawn whole."""
    rng, (p, q, n) = np.random.default_rng(8), (2, 3, 6)
    X1, X2 = rng.standard_normal((n, p)), rng.standard_normal((n, q))
    state, data = random_state(rng, p, q), scatter.from_columns(X1, X2)
    derived = np.stack([sweep.derive(rng, state, SweepInfo(0, 0.0, 1.0), data).W22_diagonal for _ in range(4000)])
    A = X2.T @ X2 + data.rest_prior.ridge * np.eye(q)
    whole = stats.wishart(data.rest_prior.degrees + n, np.linalg.inv(A)).rvs(4000, random_state=rng)
    whole = whole + state.W12.T @ np.linalg.solve(state.W11, state.W12)
    for j in range(q):  # 1e-7: the suite's false alarm rate shared out
        assert stats.ks_2samp(derived[:, j], whole[:, j, j]).pvalue > 1e-7


@pytest.mark.parametrize("prior", [Normal(0.7), GIVEN, LEARNED], ids=["normal", "given", "learned"])
def test_starts_differ_and_are_valid_states(setting: Setting, prior: Prior) -> None:
    problem = problem_of(setting, prior)
    starts = [sweep.start(np.random.default_rng(seed), problem) for seed in range(50)]
    assert all(np.linalg.eigvalsh(state.W11)[0] > 0 and (state.T > 0).all() for state in starts)
    log_size = [np.linalg.slogdet(state.W11)[1] for state in starts]
    assert np.std(log_size) > expected_spread(setting)
    assert starts[0].hyper.keys() == sweep.sweep(np.random.default_rng(0), starts[0], problem)[0].hyper.keys()


def expected_spread(setting: Setting) -> float:
    """Standard deviation of ``log|W11|`` if nothing were connected: the start is wider than that."""
    n, p = setting.X1.shape
    variances = [stats.loggamma((n + p + 1 - i) / 2).var() for i in range(p)]
    return float(np.sqrt(sum(variances)))
