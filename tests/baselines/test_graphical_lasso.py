"""The competitor's door: the same posterior, from the same chains."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest

import markovblanket as mb
from markovblanket.baselines import GraphicalLasso, WholeNetwork, graphical_lasso
from markovblanket.chains import run
from markovblanket.contracts import SweepInfo


class Clinic(NamedTuple):
    """A table and whom to ask about."""

    table: pd.DataFrame
    query: list[str]


BRIEF = {"chains": 2, "warmup": 50, "draws": 100, "progress": False}


@pytest.fixture(scope="module")
def clinic():
    """Many rows, so that no prior matters much; two effects on each query variable."""
    rng = np.random.default_rng(3)
    rest = rng.standard_normal((2000, 8)) + 0.5 * rng.standard_normal((2000, 1))
    effects = np.zeros((8, 2))
    effects[:3] = [[0.8, 0.0], [-0.5, 0.7], [0.0, 0.6]]
    table = np.hstack([rest @ effects + rng.standard_normal((2000, 2)), rest])
    return Clinic(pd.DataFrame(table, columns=["A", "B", *"abcdefgh"]), ["A", "B"])


@pytest.fixture(scope="module")
def posterior(clinic):
    return graphical_lasso(clinic.table, clinic.query, warmup=200, draws=800, seed=1, progress=False)


def test_the_answer_is_a_posterior_with_all_that_one_says(clinic, posterior):
    assert posterior.diagnostics().converged
    assert list(posterior.hyperparameters.data_vars) == ["lam"]
    edges = posterior.edges(all=True)
    assert len(edges) == 2 * 8 + 1
    assert np.isfinite(edges[["partial_correlation", "lower", "upper", "rhat", "ess"]].to_numpy()).all()
    assert np.abs(posterior.partial_correlation.values).max() < 1  # W is positive definite as a whole
    assert posterior.r2()["mean"].between(0, 1).all()
    assert posterior.settings["prior"] == {
        "name": "GraphicalLasso",
        "options": {"lam": None, "shape": 1.0, "rate": 0.01},
    }


def test_it_predicts_the_query_as_least_squares_does(clinic, posterior):
    table = clinic.table
    rest = table.drop(columns=clinic.query)
    X, Y = np.column_stack([np.ones(len(rest)), rest]), table[clinic.query].to_numpy()
    least_squares = X @ np.linalg.lstsq(X, Y, rcond=None)[0]
    mean = posterior.predict(rest, draws=50, seed=1).mean.to_numpy()
    assert np.abs(mean - least_squares).max() < 0.05 * Y.std(axis=0).min()


@pytest.mark.slow
def test_it_agrees_with_the_blanket_s_own_sampler_where_data_decide(clinic, posterior):
    given = {"prior": "laplace", "margins": "gaussian", "warmup": 200, "draws": 1500, "seed": 1}
    ours = mb.estimate(clinic.table, clinic.query, progress=False, **given)
    blanket = posterior.blanket()
    assert set(blanket["A"]) >= {"a", "b"}
    assert set(blanket["B"]) >= {"b", "c"}
    theirs, sd = posterior.W12.mean(("chain", "draw")), ours.W12.std(("chain", "draw"))
    assert float(np.abs((theirs - ours.W12.mean(("chain", "draw"))) / sd).max()) < 0.5


def test_it_can_be_saved_and_read_back(posterior, tmp_path):
    posterior.save(tmp_path / "run")
    again = mb.load(tmp_path / "run")
    np.testing.assert_array_equal(again.W12.values, posterior.W12.values)
    assert again.settings == posterior.settings


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
def test_numbers_depend_on_the_seed_alone(clinic):
    one, two = (
        graphical_lasso(clinic.table, clinic.query, seed=5, n_jobs=n_jobs, **BRIEF) for n_jobs in (None, 2)
    )
    for name in one.draws:
        np.testing.assert_array_equal(one.draws[name].values, two.draws[name].values)


@pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
def test_a_given_rate_is_kept_and_shrinks(clinic):
    rates = (1.0, 5000.0)
    loose, tight = (graphical_lasso(clinic.table, clinic.query, lam=lam, seed=5, **BRIEF) for lam in rates)
    assert not loose.hyperparameters.data_vars
    assert np.abs(tight.W12.values).mean() < 0.2 * np.abs(loose.W12.values).mean()


def test_few_draws_are_warned_of(clinic):
    with pytest.warns(mb.ConvergenceWarning, match="not converged") as warned:
        graphical_lasso(clinic.table, clinic.query, seed=5, **(BRIEF | {"draws": 10}))
    assert warned[0].filename == __file__


@pytest.mark.parametrize("lam", [0, -1.0, np.inf, np.nan, "1", True])
def test_what_is_no_rate_is_refused(clinic, lam):
    with pytest.raises(ValueError, match="lam must be a number"):
        graphical_lasso(clinic.table, clinic.query, lam=lam)


def test_missing_cells_are_refused_by_name(clinic):
    table = clinic.table.copy()
    table.iloc[3, 4] = np.nan
    with pytest.raises(ValueError, match=f"'{table.columns[4]}' has 1 missing"):
        graphical_lasso(table, clinic.query)


def test_what_is_kept_of_a_state_are_its_blocks():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 6)) @ rng.standard_normal((6, 6))
    network = WholeNetwork(X.T @ X, 30, 2, GraphicalLasso())
    state, info = network.sweep(rng, network.start(rng))
    draw = network.derive(rng, state, info)
    np.testing.assert_array_equal(np.hstack([draw.W11, draw.W12]), state.W[:2])
    np.testing.assert_array_equal(draw.W22_diagonal, np.diag(state.W)[2:])
    fitted = X[:, 2:] @ np.linalg.solve(draw.W11, draw.W12).T
    np.testing.assert_allclose(draw.explained, (fitted**2).mean(axis=0), rtol=1e-10)
    assert draw.hyper == {"lam": state.lam}
    assert info == SweepInfo(iterations=0, residual=0.0, scale_factor=1.0)


def test_a_sweep_leaves_the_state_it_began_from_alone():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((9, 4))
    network = WholeNetwork(X.T @ X, 9, 1, GraphicalLasso())
    state = network.start(rng)
    W, D = state.W.copy(), state.D.copy()
    network.sweep(rng, state)
    np.testing.assert_array_equal(state.W, W)
    np.testing.assert_array_equal(state.D, D)


def test_starts_are_wider_than_the_posterior():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((60, 5)) + rng.standard_normal((60, 1))
    network = WholeNetwork(X.T @ X, 60, 1, GraphicalLasso())
    starts = [network.start(rng) for _ in range(300)]
    draws = run.run(network, run.Schedule(200, 1000), chains=1, seed=1)
    assert np.std([np.log(s.W[0, 0]) for s in starts]) > 1.5 * np.log(draws["W11"][..., 0, 0]).std()
    assert np.std([np.log(s.lam) for s in starts]) > 1.5 * np.log(draws["lam"]).std()
