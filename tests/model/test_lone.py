"""A query variable alone: its compiled sweep has the law of the general one, and the checks can tell."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import numpy as np
import pytest

from markovblanket.contracts import ChainState, Problem, SweepInfo
from markovblanket.model import lone, scatter
from markovblanket.model import sweep as gibbs
from markovblanket.priors import SpikeSlab
from markovblanket.solvers import Dual
from statistical.calibration import CHECKS, FALSE_ALARM, Case, assert_calibrated, joint_test, overall, rank_test
from statistical.reference import SpikeScales

NOTHING = np.empty(0)
GIVEN, LEARNED = {"inclusion": 0.4, "slab": 0.6}, {"inclusion": 0.4, "shape": 4.0, "rate": 2.0}
SIZES = {"few rows": (1, 6, 4), "many rows": (1, 4, 20), "one row": (1, 3, 1)}


def case(law: dict[str, float], size: tuple[int, int, int], spread: float = 1.0) -> Case:
    return Case(f"lone, {law}, {size}", SpikeSlab(**law), SpikeScales(**law), Dual(), size, spread)


# Data that hardly speak show best what the prior gets wrong.
FAINT = case(LEARNED, (1, 8, 2), 0.3)


def data_of(problem: Problem) -> lone.Lone:
    """What the general sampler is given, for this one."""
    given = problem.scatter
    return lone.Lone(given.F.T.copy(), given.Y[0].copy(), 1.0 + given.column_sizes, float(given.B[0, 0]), given.n)


def sweep_of(module):
    """The compiled sweep, as the checks want it."""

    def sweep(rng, state, problem):
        prior, W21 = problem.prior, state.W12.T.copy()
        begin = float(state.W11[0, 0]), prior.slab or state.hyper["slab"]
        x, v = module.run(rng, W21, *begin, data_of(problem), prior, 1, NOTHING)
        hyper = {} if prior.slab else {"slab": v}
        return ChainState(np.array([[x]]), W21.T.copy(), v * (W21.T != 0), hyper), SweepInfo(0, 0.0, 1.0)

    return sweep


@pytest.fixture
def compiled(monkeypatch):
    monkeypatch.setattr(gibbs, "sweep", sweep_of(lone))


@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("law", [GIVEN, LEARNED], ids=["given", "learned"])
def test_a_sweep_leaves_the_joint_law_alone(law, size):
    assert_calibrated(joint_test(np.random.default_rng(1), case(law, SIZES[size]), 1000, sweeps=2))


@pytest.mark.slow
@pytest.mark.usefixtures("compiled")
@pytest.mark.parametrize("size", ["few rows", "many rows"])
def test_the_truth_ranks_uniformly(size):
    assert_calibrated(rank_test(np.random.default_rng(2), case(LEARNED, SIZES[size]), replications=400))


BUGS = {
    "a degree of freedom too few": "rng.chisquare(lone.n + 2.0) / lone.B => rng.chisquare(lone.n + 1.0) / lone.B",
    "the prior's identity lost": "G, Q = size + np.dot(V, V), => G, Q = np.dot(V, V),",
    "the sign of S12": "np.dot(V, lone.y) => -np.dot(V, lone.y)",
    "the scale without the Jacobian of w": "(lone.n + 2.0) + edges => (lone.n + 2.0)",
    "a dropped 1/2 in the scale": "0.5 * (lone.B * x + G / x) + Q => (lone.B * x + G / x) + Q",
    "a dropped 1/2 in the slab": "prior.rate + 0.5 * size) => prior.rate + size)",
    "the slab's shape without edges": "gamma(prior.shape + 0.5 * edges) => gamma(prior.shape)",
    "the fit at the wrong scale": "fit(W21, lone.FT) / x => fit(W21, lone.FT) * x",
}


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_caught(bug, monkeypatch):
    old, new = BUGS[bug].split(" => ")
    source = Path(lone.__file__).read_text(encoding="utf-8")
    assert source.count(old) == 1
    spoiled = types.ModuleType("spoiled")
    monkeypatch.setitem(sys.modules, "spoiled", spoiled)
    exec(source.replace(old, new).replace("@njit(cache=True)\n", ""), vars(spoiled))  # to compile it takes long
    monkeypatch.setattr(gibbs, "sweep", sweep_of(spoiled))
    p, _ = overall(joint_test(np.random.default_rng(3), FAINT, 4000, sweeps=2))
    assert p < 1e-3 * FALSE_ALARM / CHECKS


def test_any_factor_of_the_scatter_will_do():
    """A rotation of the coordinates changes no draw, to rounding; nor does their number."""
    rng = np.random.default_rng(4)
    X, prior = rng.standard_normal((40, 6)) @ rng.standard_normal((6, 6)), SpikeSlab(inclusion=0.3)
    whole, short = X.T.copy(), np.linalg.qr(X, mode="r").T.copy()
    ends = []
    for factor in (whole, short):
        walk, alone = np.random.default_rng(5), lone.one_of(factor, 2, 40)
        W21, x, v = lone.start(walk, alone, prior)
        ends.append((*lone.run(walk, W21, x, v, alone, prior, 5, NOTHING), *W21[:, 0]))
    np.testing.assert_allclose(*ends, rtol=1e-8)


def test_shares_are_those_of_the_general_sampler():
    """An edge that hangs in the balance, and what is kept in mind of the slab, within Monte Carlo error."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((60, 5))
    X[:, 2] += 0.35 * X[:, 0] + 0.8 * X[:, 4]
    prior, batches, size = SpikeSlab(inclusion=0.2), 40, 250
    alone = lone.one_of(X.T.copy(), 2, 60)
    W21, x, v = lone.start(rng, alone, prior)
    x, v = lone.run(rng, W21, x, v, alone, prior, 200, NOTHING)
    seen = np.zeros((2, batches, 4))
    for batch in range(batches):
        x, v = lone.run(rng, W21, x, v, alone, prior, size, seen[0, batch])
    problem = Problem(scatter.from_columns(X[:, [2]], np.delete(X, 2, axis=1)), prior, Dual())
    state = gibbs.start(rng, problem)
    for count in range(200 + batches * size):
        state, _ = gibbs.sweep(rng, state, problem)
        if count >= 200:
            seen[1, (count - 200) // size] += state.W12[0] != 0
    mean, error = seen.mean(axis=1) / size, seen.std(axis=1, ddof=1) / size / np.sqrt(batches)
    assert (mean[:, 0] > 0.05).all()
    assert (mean[:, 0] < 0.95).all()
    assert (abs(mean[0] - mean[1]) < 5 * np.hypot(*error) + 1e-9).all()
