"""Rung 8: what every prior, solver and store promises, whichever it is."""

from __future__ import annotations

import dataclasses
import inspect
import pickle

import numpy as np
import pytest

from markovblanket import priors, solvers
from markovblanket.chains import stores, zarr_store
from markovblanket.chains.stores import Chain, KeepDraws, KeepSummary, MemoryStore, SummaryStore
from markovblanket.chains.streaming import Moments
from markovblanket.chains.zarr_store import DiskStore, KeepOnDisk
from markovblanket.contracts import ChainState, Noise, Problem, Store
from markovblanket.model import sweep
from markovblanket.model.scatter import from_columns
from markovblanket.priors import Horseshoe, Laplace, Normal, SpikeSlab
from markovblanket.solvers import Dense, Dual

PRIORS = [
    Horseshoe(),
    Horseshoe(slab=0.5),
    Horseshoe(slab=np.inf),
    Laplace(),
    Laplace(gamma=5.0),
    Normal(scale=0.5),
    SpikeSlab(),
    SpikeSlab(inclusion=0.1, slab=0.5),
]
SOLVERS = [Dense(), Dual(tolerance=1e-6)]  # tight: that they are functions is asserted entry by entry
# A keep makes the store of its kind.
KEEPS = {
    MemoryStore: lambda path: KeepDraws(3),
    SummaryStore: lambda path: KeepSummary(3),
    DiskStore: lambda path: KeepOnDisk(path / "draws.zarr", KeepSummary(3)),
}
P, Q, N = 3, 7, 20


@pytest.fixture(scope="module")
def scatter():
    X = np.random.default_rng(0).standard_normal((N, P + Q))
    return from_columns(X[:, :P], X[:, P:])


def test_no_prior_solver_or_store_is_left_out():
    def classes(module, promised):
        return {
            cls
            for _, cls in inspect.getmembers(module, inspect.isclass)
            if all(hasattr(cls, name) for name in promised)
        }

    assert classes(priors, ["start", "draw_scales"]) == {type(prior) for prior in PRIORS}
    assert classes(solvers, ["draw"]) == {type(solver) for solver in SOLVERS}
    found = classes(stores, ["append", "collect"]) | classes(zarr_store, ["append", "collect"])
    assert found - {Store} == set(KEEPS)


# Priors -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_a_prior_is_a_frozen_description_that_travels(prior):
    assert pickle.loads(pickle.dumps(prior)) == prior
    assert type(prior)(**dataclasses.asdict(prior)) == prior
    with pytest.raises(dataclasses.FrozenInstanceError):
        prior.scale = 3.0


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_scales_are_positive_and_hyperparameters_keep_their_names(prior):
    T, hyper = prior.start(np.random.default_rng(1), P, Q)
    W12 = np.random.default_rng(2).standard_normal((P, Q))
    W12[0, 0] = 0.0  # an entry may be exactly zero
    T2, hyper2 = prior.draw_scales(np.random.default_rng(3), W12, hyper)
    for scales in (T, T2):
        assert scales.shape == (P, Q)
        assert ((scales >= 0) & np.isfinite(scales)).all()
    assert (T2[W12 != 0] > 0).all()
    assert hyper.keys() == hyper2.keys()
    assert all(isinstance(value, float) for value in (*hyper.values(), *hyper2.values()))


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_a_prior_draws_from_the_generator_alone_and_changes_nothing(prior):
    W12 = np.random.default_rng(2).standard_normal((P, Q))
    _, hyper = prior.start(np.random.default_rng(1), P, Q)
    before = W12.copy(), dict(hyper)
    one, two = (prior.draw_scales(np.random.default_rng(3), W12, hyper) for _ in range(2))
    np.testing.assert_array_equal(one[0], two[0])
    assert one[1] == two[1]
    np.testing.assert_array_equal(W12, before[0])
    assert hyper == before[1]


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_the_common_factor_moves_only_what_is_learned(prior):
    """``c`` scales ``W12``; a prior without a learned scale leaves all alone."""
    _, hyper = prior.start(np.random.default_rng(1), P, Q)
    c, moved = prior.draw_factor(np.random.default_rng(4), hyper, linear=-3.0, quadratic=5.0)
    assert c > 0
    tied = isinstance(prior, Horseshoe) and prior.slab == 0.5  # to a slab that is given
    assert (c != 1) == bool(hyper and not tied)
    assert moved.keys() == hyper.keys()
    powers = {"gamma": -1, "tau": 1, "slab": 2, "inclusion": 0}
    assert {name: hyper[name] * c ** powers[name] for name in hyper} == pytest.approx(dict(moved))


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_a_move_of_the_priors_own_returns_a_whole_state_and_leaves_the_rest_alone(prior, scatter):
    T, hyper = prior.start(np.random.default_rng(1), P, Q)
    state = ChainState(np.eye(P), np.sqrt(T) * np.random.default_rng(2).standard_normal((P, Q)), T, hyper)
    before = state.W12.copy(), T.copy(), dict(hyper)
    moved = prior.draw_jointly(np.random.default_rng(3), state, scatter)
    np.testing.assert_array_equal(moved.W11, state.W11)
    assert ((moved.W12 == 0) == (state.W12 == 0)).all()
    assert ((moved.T >= 0) & np.isfinite(moved.T) & ((moved.T > 0) == (T > 0))).all()
    assert moved.hyper.keys() == hyper.keys()
    np.testing.assert_array_equal(state.W12, before[0])
    np.testing.assert_array_equal(state.T, before[1])
    assert state.hyper == before[2]


@pytest.mark.parametrize("prior", PRIORS, ids=str)
def test_larger_rows_are_less_likely_and_equal_rows_are_equally_likely(prior):
    T, hyper = prior.start(np.random.default_rng(1), P, Q)
    W12 = np.tile(np.random.default_rng(2).standard_normal(Q), (P, 1))
    law = prior.row_law(ChainState(np.eye(P), W12, np.full_like(T, 0.3), hyper))

    def density(r):
        return law.log_density(r) - Q * np.log(r).sum()

    assert density(np.array([2.0, 1.0, 1.0])) < density(np.ones(P)) < density(np.array([0.5, 1.0, 1.0]))
    assert density(np.array([2.0, 1.0, 1.0])) == pytest.approx(density(np.array([1.0, 1.0, 2.0])))


# Solvers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_a_solver_is_a_deterministic_function_of_its_arguments(solver, scatter):
    T = np.random.default_rng(1).exponential(1, (P, Q))
    noise = Noise.draw(np.random.default_rng(2), P, Q, len(scatter.F))
    (one, info), (two, _) = (solver.draw(np.eye(P), T, scatter, noise) for _ in range(2))
    np.testing.assert_array_equal(one, two)
    assert info.iterations >= 0
    assert 0 <= info.residual <= 1e-5
    assert pickle.loads(pickle.dumps(solver)) == solver


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_a_draw_is_affine_in_its_noise(solver, scatter):
    """``draw(a + b) - draw(0) = (draw(a) - draw(0)) + (draw(b) - draw(0))``."""
    T = np.random.default_rng(1).exponential(1, (P, Q))
    rng, m = np.random.default_rng(2), len(scatter.F)
    a, b = Noise.draw(rng, P, Q, m), Noise.draw(rng, P, Q, m)
    both = Noise(a.Z1 + b.Z1, a.Z2 + b.Z2, a.Z3 + b.Z3)
    zero = Noise(np.zeros((P, Q)), np.zeros((P, m)), np.zeros((P, Q)))
    A, B, AB, O = (solver.draw(np.eye(P), T, scatter, noise)[0] for noise in (a, b, both, zero))  # noqa: E741
    np.testing.assert_allclose(AB - O, (A - O) + (B - O), atol=1e-5)


@pytest.mark.parametrize("solver", SOLVERS, ids=str)
def test_permuted_variables_give_permuted_draws(solver, scatter):
    rng = np.random.default_rng(3)
    T, order = rng.exponential(1, (P, Q)), rng.permutation(Q)
    noise = Noise.draw(rng, P, Q, len(scatter.F))
    moved = dataclasses.replace(scatter, S12=scatter.S12[:, order], F=scatter.F[:, order])
    W12, _ = solver.draw(np.eye(P), T, scatter, noise)
    permuted, _ = solver.draw(
        np.eye(P), T[:, order], moved, Noise(noise.Z1[:, order], noise.Z2, noise.Z3[:, order])
    )
    np.testing.assert_allclose(permuted, W12[:, order], atol=1e-5)


# Together ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("prior", PRIORS, ids=str)
@pytest.mark.parametrize("solver", SOLVERS, ids=str)
@pytest.mark.parametrize("kind", KEEPS, ids=lambda kind: kind.__name__)
def test_every_combination_sweeps_and_stores(prior, solver, kind, scatter, tmp_path):
    if kind is DiskStore:
        pytest.importorskip("zarr")
    problem, rng, moments = Problem(scatter, prior, solver), np.random.default_rng(5), Moments.empty((P, Q))
    state = sweep.start(rng, problem)
    moments.add(state.W12)
    keep = KEEPS[kind](tmp_path)
    (kept,) = keep.stores([Chain(rng, state, moments)])
    for _ in range(3):
        state, info = sweep.sweep(rng, state, problem)
        kept.append(sweep.derive(rng, state, info, scatter))
    collected = keep.gather([kept.collect()])
    if kind is MemoryStore:
        last = collected["W12"][0, -1]
    else:
        last = np.empty((P, Q))
        last[tuple(collected["stream_kept"].T)] = collected["kept_weight"][0, -1]
    np.testing.assert_array_equal(last, state.W12)
    np.testing.assert_array_equal(collected["W11"][0, -1], state.W11)
    assert all(np.isfinite(array).all() for array in collected.values())
    assert (np.linalg.eigvalsh(state.W11) > 0).all()
    np.testing.assert_array_equal(state.W11, state.W11.T)
