"""A posterior is frozen: what it says does not depend on when, or how often, it was asked."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, fields

import pytest

import markovblanket as mb

pytestmark = pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
SHORT = {"chains": 2, "warmup": 100, "n_jobs": 1, "progress": False}


def diagnosed(posterior: mb.Posterior) -> int:
    """How many edges the diagnostics looked at."""
    table = posterior.diagnostics().table
    return int(table.loc["edges", "quantities"]) if "edges" in table.index else 0


@pytest.mark.parametrize("seed", range(4))
def test_a_fit_with_automatic_draws_diagnoses_the_edges_it_selects(seed, tmp_path):
    made = mb.simulate(rows=60, query=2, rest=12, density=0.3, seed=seed)
    posterior = mb.estimate(made.table, made.query, draws="auto", budget=2100, seed=seed, **SHORT)
    assert diagnosed(posterior) == len(posterior.edges())
    posterior.save(tmp_path / "run")
    loaded = mb.load(tmp_path / "run")
    assert diagnosed(loaded) == diagnosed(posterior)
    assert loaded.diagnostics().converged == posterior.diagnostics().converged
    assert loaded.diagnostics().problems == posterior.diagnostics().problems


def test_automatic_draws_go_on_until_the_edges_that_are_selected_agree():
    made = mb.simulate(rows=60, query=2, rest=12, density=0.3, seed=1)
    posterior = mb.estimate(made.table, made.query, draws="auto", budget=8100, seed=1, **SHORT)
    spent = SHORT["warmup"] + posterior.settings["draws"]
    assert posterior.diagnostics().converged or 2 * posterior.settings["draws"] + SHORT["warmup"] > 8100 >= spent


@pytest.mark.parametrize("name", [field.name for field in fields(mb.Posterior)] + ["anything"])
def test_no_attribute_can_be_set(name):
    made = mb.simulate(rows=30, query=1, rest=3, seed=1)
    posterior = mb.estimate(made.table, made.query, draws=20, seed=1, **SHORT)
    with pytest.raises(FrozenInstanceError):
        setattr(posterior, name, None)
    with pytest.raises(FrozenInstanceError):
        delattr(posterior, name)
