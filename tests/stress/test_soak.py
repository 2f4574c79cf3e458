"""A short form of the long run: what the sampler keeps up to date stays true, and what is broken is noticed."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import markovblanket as mb
from markovblanket.contracts import Columns
from markovblanket.model import sweep

FOLDER = Path(__file__).parents[2] / "benchmarks"
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason="the benchmarks are part of the repository only")


@pytest.fixture(scope="module")
def soak():
    sys.path.insert(0, str(FOLDER))
    try:
        import soak
    finally:
        sys.path.remove(str(FOLDER))
    return soak


def table(rows):
    """Of all kinds, with gaps; few rows have ``W22.1`` integrated out for missing cells."""
    data = mb.simulate(rows, 3, 20, kinds="mixed", missing=0.1, seed=2)
    return data.table, data.query


@pytest.mark.slow
@pytest.mark.parametrize("rows", [100, 30])
def test_nothing_drifts(soak, rows):
    if not soak.STATUS.exists():
        pytest.skip("memory is read from /proc")
    seen = soak.soak(soak.problem_of(*table(rows)), sweeps=500, every=25, draws=50)
    assert len(seen) == 20
    assert not soak.broken(seen)
    assert soak.growth(seen) < 0.1  # a short run has not touched all of its memory yet


def moved(X, row, column, by):
    X = X.copy()
    X[row, column] += by
    return X


def test_broken_invariants_are_noticed(soak):
    """By states that break them; a sound state breaks none."""
    problem, rng = soak.problem_of(*table(60)), np.random.default_rng(1)
    state = sweep.start(rng, problem)
    for _ in range(3):
        state, _ = sweep.sweep(rng, state, problem)
    found = soak.invariants(problem, state)
    assert found.keys() == soak.LIMITS.keys()
    assert not soak.broken([{"sweep": 1, **found}])
    X1, X2, latent = state.columns.X1, state.columns.X2, problem.latent
    levels = next(j for j, margin in latent.rest.items() if isinstance(margin, soak.Levels))
    gaps = next(j for j, margin in latent.rest.items() if not isinstance(margin, soak.Levels))
    lowest = int(np.flatnonzero(latent.rest[levels].codes == 0)[0])
    observed = int(np.setdiff1d(np.arange(60), latent.rest[gaps].missing)[0])
    spoiled = {
        "cells out of order": replace(state, columns=Columns(X1, moved(X2, lowest, levels, 50.0))),
        "unit columns": replace(state, columns=Columns(X1, moved(X2, lowest, levels, -1e-3))),
        "cells changed": replace(state, columns=Columns(X1, moved(X2, observed, gaps, 1e-9))),
        "scales amiss": replace(state, T=state.T + 1e-9),
    }
    for name, bad in spoiled.items():
        said = soak.broken([{"sweep": 1, **soak.invariants(problem, bad)}])
        assert any(one.startswith(name) for one in said), name
    drifted = replace(problem, latent=Drifted(latent))
    assert any(
        said.startswith("scatter") for said in soak.broken([{"sweep": 1, **soak.invariants(drifted, state)}])
    )


class Drifted:
    """A latent layer whose scatter is off by a little."""

    def __init__(self, latent):
        self.latent = latent

    def __getattr__(self, name):
        return getattr(self.latent, name)

    def scatter(self, columns):
        scatter = self.latent.scatter(columns)
        return replace(scatter, S11=scatter.S11 * (1 + 1e-9))


def test_memory_that_grows_is_noticed(soak):
    seen = [{"sweep": k, "megabytes": 100.0 + (k >= 5) * k} for k in range(1, 11)]
    assert soak.growth(seen) == pytest.approx(0.1)
