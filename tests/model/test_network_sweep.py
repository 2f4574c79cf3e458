"""The widened block as a whole: its scatter, what it keeps and in which order, and what it leaves alone."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace

import numpy as np
import pytest

from markovblanket.contracts import ChainState, ImpossibleStateError, Problem, SweepInfo
from markovblanket.model import _pair_classes, network_sweep, scatter
from markovblanket.model._pair_classes import PROPENSITY_DRAWS
from markovblanket.model.block_scatter import widened_scatter
from markovblanket.model.copula._margins import Gaps, Levels
from markovblanket.model.copula.latent import Copula, centred
from markovblanket.model.network_sweep import WidenedBlanket, explained
from markovblanket.priors import SpikeSlab
from markovblanket.solvers import Dual

INFO = SweepInfo(0, 0.0, 1.0)
# Rows, query variables, others, and the positions of the candidates among these, in any order.
TALL, WIDE, WHOLE, NONE = (30, 2, 7, [5, 0, 3]), (5, 2, 9, [8, 1]), (20, 2, 4, [3, 1, 0, 2]), (12, 3, 4, [])
SHAPES = {"tall": TALL, "wide": WIDE, "whole": WHOLE, "none": NONE, "one outside": (6, 1, 5, [4, 2, 1, 0])}


@pytest.fixture(params=SHAPES.values(), ids=SHAPES)
def shape(request):
    return request.param


def table(n, p, q, candidates):
    """Correlated columns: the query, all others, and the candidates' positions."""
    rng = np.random.default_rng([n, p, q])
    X = rng.standard_normal((n, p + q)) + 0.7 * rng.standard_normal((n, 1))
    return X[:, :p], X[:, p:], np.array(candidates, dtype=np.intp)


def sampler_of(shape, prior=None):
    X1, X2, candidates = table(*shape)
    problem = Problem(scatter.from_columns(X1, X2), prior or SpikeSlab(), Dual())
    return WidenedBlanket.of(problem, candidates)


def state_of(sampler, seed=0):
    """A state without zeros, so that every entry can be told from the others."""
    rng, P, q = np.random.default_rng(seed), sampler.problem.p, sampler.problem.q
    Z = rng.standard_normal((P + 5, P))
    hyper = {"inclusion": 0.2, "slab": 0.5, "inclusion_others": 0.4, "slab_others": 0.7}
    inclusion = rng.random((P, P))
    return ChainState(
        Z.T @ Z, rng.standard_normal((P, q)), rng.random((1, P)), hyper, None, (inclusion + inclusion.T) / 2
    )


# The scatter --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("door", ["columns", "matrix"])
def test_the_widened_scatter_is_that_of_the_columns(shape, door):
    X1, X2, candidates = table(*shape)
    X = np.hstack([X1, X2])
    given = (
        scatter.from_columns(X1, X2) if door == "columns" else scatter.from_matrix(X.T @ X, len(X), X1.shape[1])
    )
    found, rest = widened_scatter(given, candidates), np.setdiff1d(np.arange(X2.shape[1]), candidates)
    V, R = np.hstack([X1, X2[:, candidates]]), X2[:, rest]
    assert found.n == len(X)
    np.testing.assert_allclose(found.B, V.T @ V + np.eye(V.shape[1]), atol=1e-9)
    np.testing.assert_allclose(found.F.T @ found.F, R.T @ R, atol=1e-9)
    np.testing.assert_allclose(found.S12, V.T @ R, atol=1e-9)
    np.testing.assert_allclose(found.column_sizes, (R**2).sum(axis=0), atol=1e-9)
    assert len(found.F) <= R.shape[1]
    A = R.T @ R + found.rest_prior.ridge * np.eye(len(rest))
    np.testing.assert_allclose(found.inverse_diagonal, np.diag(np.linalg.inv(A)), rtol=1e-7)


# What is kept -------------------------------------------------------------------------------------------


class FixedChiSquare(np.random.Generator):
    """A generator whose chi-square variates are 1, 2, 3, ..."""

    def chisquare(self, df, size):
        return np.arange(1.0, size + 1)


def in_table(sampler, state):
    """``(W11, W12)`` with columns in the order of the table, query first, by plain loops."""
    p, W = sampler.p, np.hstack([state.W11, state.W12])
    places = [*range(p), *(p + k for k in sampler.candidates), *(p + k for k in sampler.rest)]
    out = np.empty_like(W)
    for column, place in enumerate(places):
        out[:, place] = W[:, column]
    return out


def test_a_draw_has_the_query_s_entries_in_the_order_of_the_table(shape):
    sampler = sampler_of(shape)
    state, p = state_of(sampler), sampler.p
    draw = sampler.derive(FixedChiSquare(np.random.PCG64(0)), state, INFO)
    W = in_table(sampler, state)
    np.testing.assert_array_equal(draw.W11, W[:p, :p])
    np.testing.assert_array_equal(draw.W12, W[:p, p:])
    np.testing.assert_array_equal(draw.W22_diagonal[sampler.candidates], np.diag(state.W11)[p:])
    own = sampler.problem.scatter.inverse_diagonal * np.arange(1.0, sampler.problem.q + 1)
    outside = own + np.diag(state.W12.T @ np.linalg.inv(state.W11) @ state.W12)
    np.testing.assert_allclose(draw.W22_diagonal[sampler.rest], outside)
    np.testing.assert_array_equal(draw.inclusion[:, :p], state.inclusion[:p, :p])
    np.testing.assert_array_equal(draw.inclusion[:, p + sampler.candidates], state.inclusion[:p, p:])
    assert (draw.inclusion[:, p + sampler.rest] == 1).all()


def test_partial_correlations_within_the_block_come_from_the_block_alone(shape):
    sampler = sampler_of(shape)
    state, p = state_of(sampler), sampler.p
    d = np.sqrt(np.diag(state.W11))
    expected = -(state.W11 / np.outer(d, d))[:p, p:]
    np.testing.assert_allclose(sampler.partial_correlations(state)[:, sampler.candidates], expected)


def test_explained_variance_is_that_of_the_fit_by_all_others(shape):
    _, X2, _ = table(*shape)
    sampler = sampler_of(shape)
    state, p = state_of(sampler), sampler.p
    W = in_table(sampler, state)[:p]
    fitted = X2 @ np.linalg.solve(W[:, :p], W[:, p:]).T
    found = explained(state.W11, state.W12, sampler.problem.scatter, p)
    np.testing.assert_allclose(found, (fitted**2).mean(axis=0))


def test_without_others_the_query_explains_itself():
    sampler = sampler_of((9, 3, 0, []))
    W11 = state_of(sampler).W11
    found = explained(W11, np.empty((3, 0)), sampler.problem.scatter, 3)
    np.testing.assert_allclose(found, np.diag(np.linalg.inv(W11)) - 1 / np.diag(W11))


def test_latent_columns_are_kept_in_the_order_of_the_table():
    """Moving columns of the query, of candidates in any order, and of the rest."""
    X1, X2, candidates = table(10, 2, 6, [4, 0, 2])
    X1, X2, gaps = centred(X1), centred(X2), Gaps(np.array([1, 5]))
    levels = Levels(np.argsort(np.argsort(X2[:, 2])) * 3 // 10)
    latent = Copula(X1, X2, {1: gaps}, {1: gaps, 2: levels, 4: gaps, 5: gaps})
    problem = Problem(latent.scatter(latent.start()), SpikeSlab(), Dual(), latent)
    sampler = WidenedBlanket.of(problem, candidates)
    state = sampler.start(np.random.default_rng(0))
    expected = np.hstack([X1[:, [1]], X2[:, [1, 2, 4, 5]]])
    np.testing.assert_array_equal(sampler._latent(state.columns), expected)
    for seed in range(3):
        rng = np.random.default_rng(seed)
        state, info = sampler.sweep(rng, state)
        kept = sampler.derive(rng, state, info).latent
        still = np.setdiff1d(np.arange(10), gaps.missing)
        np.testing.assert_array_equal(kept[still][:, [0, 1, 3, 4]], expected[still][:, [0, 1, 3, 4]])
        assert (np.argsort(np.argsort(kept[:, 2])) * 3 // 10 == levels.codes).all()
        assert (kept[gaps.missing][:, [0, 1, 3, 4]] != expected[gaps.missing][:, [0, 1, 3, 4]]).all()


# Hyperparameters, starts, sweeps ------------------------------------------------------------------------


@dataclass(frozen=True)
class Listening(SpikeSlab):
    """Keeps what its slabs are drawn from."""

    heard: tuple[list, ...] = ([],)

    def draw_slab(self, rng, edges, squares):
        self.heard[0].append((edges, squares))
        return 0.5


def test_hyperparameters_are_drawn_from_each_pair_once_and_by_class(shape, monkeypatch):
    prior, counted, right = Listening(heard=([],)), [], _pair_classes.draw_rates
    monkeypatch.setattr(_pair_classes, "draw_rates", lambda *given: (counted.append(given), right(*given)))
    sampler = sampler_of(shape, prior)
    state, p = state_of(sampler), sampler.p
    (P, q), rng = state.W12.shape, np.random.default_rng(1)
    W11, W12 = state.W11 * (rng.random((P, P)) < 2), state.W12 * (rng.random((P, q)) < 0.5)
    W11[0, P - 1] = W11[P - 1, 0] = 0.0
    hyper, propensities = sampler._draw_hyper(rng, replace(state, W11=W11, W12=W12))
    pairs, slabs, unit, classes = [], [], np.sqrt(sampler.precisions), sampler.pairs.classes
    for kind in (0, 1)[: len(classes)]:
        inside = [W11[i, k] / unit[i] / unit[k] for i in range(P) for k in range(i) if (min(i, k) >= p) == kind]
        outside = [W12[i, j] / unit[i] / unit[P + j] for i in range(P) for j in range(q) if (i >= p) == kind]
        values = np.array(inside + outside)
        pairs.append((len(values), np.count_nonzero(outside)))
        slabs.append((np.count_nonzero(values), pytest.approx(values @ values)))
    assert prior.heard[0] == slabs
    ((_, edges, counts, *_, laws, rounds),) = counted
    assert list(zip(counts.pairs, counts.outside, strict=True))[: len(pairs)] == pairs
    assert len(edges.first) == np.count_nonzero(np.triu(W11, 1))
    assert laws == ((1.0, sampler.variables), (0.2, 0.2 * sampler.variables))
    assert rounds == PROPENSITY_DRAWS
    assert len(hyper) == 2 * len(classes)
    assert [value for name, value in hyper.items() if name.startswith("slab")] == [0.5] * len(classes)
    assert propensities.shape == (1, P)
    assert ((propensities > 0) & (propensities < 1)).all()


@pytest.mark.parametrize("prior", [SpikeSlab(), SpikeSlab(inclusion=0.3, slab=0.5)], ids=["learned", "given"])
def test_starts_differ_and_are_valid_states(shape, prior):
    sampler = sampler_of(shape, prior)
    starts = [sampler.start(np.random.default_rng(seed)) for seed in range(30)]
    assert all(np.linalg.eigvalsh(state.W11)[0] > 0 for state in starts)
    assert np.std([np.linalg.slogdet(state.W11)[1] for state in starts]) > 0.3
    after, _ = sampler.sweep(np.random.default_rng(0), starts[0])
    assert after.hyper.keys() == starts[0].hyper.keys()
    assert len(after.hyper) == (0 if prior.slab else 2 * len(sampler.pairs.classes))


def test_a_sweep_leaves_its_input_alone_and_is_reproducible(shape):
    sampler = sampler_of(shape)
    state = sampler.start(np.random.default_rng(2))
    before, data = copy.deepcopy(state), copy.deepcopy(sampler.problem.scatter)
    one, two, other = (sampler.sweep(np.random.default_rng(seed), state)[0] for seed in (3, 3, 4))
    for name in ("W11", "W12"):
        np.testing.assert_array_equal(getattr(state, name), getattr(before, name))
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert state.hyper == before.hyper
    assert not np.array_equal(one.W11, other.W11)
    for name in ("B", "F", "Y"):
        np.testing.assert_array_equal(getattr(sampler.problem.scatter, name), getattr(data, name))


def test_the_query_s_rows_are_visited_in_every_sweep_and_the_others_in_turn(monkeypatch):
    sampler = sampler_of((30, 2, 9, [0, 1, 2, 3, 4]))
    assert sampler._visited(np.random.default_rng(0)).tolist() == list(range(7))
    monkeypatch.setattr(network_sweep, "MOST_MULTIPLICATIONS", 0)
    visited = [sampler._visited(np.random.default_rng(seed)).tolist() for seed in range(200)]
    assert all(rows[:2] == [0, 1] and len(set(rows)) == len(rows) == 4 for rows in visited)
    counts = np.bincount(np.concatenate(visited), minlength=7)[2:]
    assert counts.min() > 40  # of 80 expected


def test_a_chain_stays_finite_where_variables_determine_each_other():
    """Columns that are equal up to one part in a million."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6))
    X[:, 1] = X[:, 0] + 1e-6 * X[:, 1]
    X[:, 3] = X[:, 0] + 1e-6 * X[:, 3]
    sampler = WidenedBlanket.of(
        Problem(scatter.from_columns(X[:, :1], X[:, 1:]), SpikeSlab(), Dual()), np.array([0, 1])
    )
    state = sampler.start(rng)
    for _ in range(300):
        state, info = sampler.sweep(rng, state)
        draw = sampler.derive(rng, state, info)
        assert np.isfinite(state.W11).all()
        assert np.isfinite(draw.W22_diagonal).all()
        assert np.linalg.eigvalsh(state.W11)[0] > 0
    assert replace(state, W12=state.W12).inclusion.max() <= 1


def test_state_that_is_not_possible_is_refused_by_its_variable(shape):
    sampler = sampler_of(shape)
    state = sampler.start(np.random.default_rng(0))
    last = sampler.problem.p - 1
    expected = last if last < sampler.p else sampler.p + sampler.candidates[last - sampler.p]
    for value in (np.nan, np.inf, 0.0, -1.0):
        W11 = state.W11.copy()
        W11[last, last] = value
        with pytest.raises(ImpossibleStateError) as told:
            sampler._require_possible(W11)
        assert told.value.position == expected


def test_a_table_that_is_not_finite_ends_with_an_error_and_not_with_an_endless_loop():
    sampler = sampler_of(TALL)
    state = sampler.start(np.random.default_rng(0))
    state.W11[1, 1] = np.nan
    with pytest.raises(ArithmeticError), np.errstate(all="ignore"):
        sampler.sweep(np.random.default_rng(0), state)
