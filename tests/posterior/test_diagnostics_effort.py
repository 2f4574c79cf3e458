"""What sweeps cost, and what is said where a solver did not keep its promise."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
import pytest

import markovblanket as mb
from markovblanket.contracts import SolveInfo
from markovblanket.posterior.diagnostics import _summed_up
from markovblanket.solvers import Dense

ROWS = ["iterations", "residual", "scale_factor"]


def fit(prior, kinds="continuous", **schedule):
    data = mb.simulate(60, 2, 6, kinds=kinds, seed=1)
    given = {"chains": 2, "warmup": 10, "draws": 30, "seed": 1, "progress": False}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.ConvergenceWarning)
        return mb.estimate(data.table, data.query, prior=prior, **(given | schedule))


def test_effort_is_that_of_the_kept_sweeps():
    posterior = fit("laplace")
    effort, kept = posterior.diagnostics().effort, posterior.effort["iterations"]
    assert list(effort.index) == ROWS
    assert effort.loc["iterations", "mean"] == kept.to_numpy().mean()
    assert effort.loc["iterations", "max"] == kept.to_numpy().max()
    where = int(effort.loc["iterations", "chain"])
    assert kept.to_numpy()[where].max() == kept.to_numpy().max()
    assert 0 < effort.loc["residual", "max"] <= 1e-3


@pytest.mark.parametrize("kinds", ["continuous", "binary"])
def test_a_widened_block_counts_the_entries_that_change_and_solves_nothing(kinds):
    """An entry of 8 variables may change in each of two visits of a sweep: there are at most 56 changes."""
    effort = fit("spike-slab", kinds=kinds, draws=200).effort
    assert 0 < effort["iterations"].mean() < effort["iterations"].max() <= 8 * 7
    assert not effort["residual"].any()
    assert (effort["scale_factor"] == 1.0).all()


def test_effort_is_shown_wherever_diagnostics_are():
    found = fit("laplace").diagnostics()
    assert "per sweep" in str(found)
    for name in ROWS:
        assert name in str(found)
        assert f">{name}</td>" in found._repr_html_()


@dataclass(frozen=True)
class Careless:
    """Solves exactly, and says that it did not."""

    residual: float
    iterations: int
    tolerance: float = 1e-3
    max_iterations: int = 100

    def draw(self, U, T, scatter, noise):
        return Dense().draw(U, T, scatter, noise)[0], SolveInfo(self.iterations, self.residual)


@pytest.mark.parametrize(
    ("solver", "said"),
    [
        (Careless(0.02, 5), "residual of the solver came to 0.02 in chain 0 (should be at most 0.001)"),
        (Careless(np.nan, 5), "residual of the solver came to"),
        (Careless(1e-4, 101), "iterations of the solver came to 101 in chain 0 (should be at most 100)"),
        (Careless(1e-4, 100), None),
    ],
)
def test_a_solver_that_did_not_keep_its_promise_is_told(solver, said):
    problems = fit("laplace", solver=solver).diagnostics().problems
    about = [problem for problem in problems if "of the solver" in problem]
    assert [problem[: len(said or "")] for problem in about] == ([said] if said else [])
    assert any(
        "of the solver" in p for p in fit("laplace", solver=solver, draws=3).diagnostics().problems
    ) == bool(said)


def test_sweeps_without_a_solver_have_no_limit_of_iterations():
    """Entries changed by a spike and slab are no iterations of the solver that it does not use."""
    solver = Careless(0.0, 0, max_iterations=1)
    posterior = fit("spike-slab", solver=solver)
    assert posterior.effort["iterations"].max() > 1
    assert not [problem for problem in posterior.diagnostics().problems if "of the solver" in problem]


def test_a_posterior_saved_before_there_were_counters_is_summed_up():
    effort = fit("laplace").effort.drop_vars(["scale_factor"])
    assert list(_summed_up(effort).index) == ROWS[:2]


def test_counters_that_are_no_more_are_still_summed_up():
    """As a posterior of version 0.1 has them."""
    effort = fit("laplace").effort
    assert list(_summed_up(effort.assign(proposals=effort["iterations"])).index) == [*ROWS, "proposals"]
