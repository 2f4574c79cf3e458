"""Function ``estimate``: tables and scatter matrices, edge cases, refusals, invariances."""

from __future__ import annotations

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest

import markovblanket as mb
from markovblanket.simulation import simulate

# Short runs are the point here, so an unconverged one is no news.
pytestmark = pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
QUICK = {"margins": "gaussian", "chains": 2, "warmup": 30, "draws": 40, "seed": 5, "progress": False}


@pytest.fixture(scope="module")
def data():
    return simulate(rows=80, query=3, rest=12, density=0.15, seed=4)


def z_scores(one: mb.Posterior, other: mb.Posterior, W12) -> np.ndarray:
    """Differences of posterior means of ``W12`` in Monte Carlo standard errors, batches of 50 draws."""

    def batches(posterior):
        values = W12(posterior)
        means = values.reshape(values.shape[0] * values.shape[1] // 50, 50, *values.shape[2:]).mean(axis=1)
        return means.mean(axis=0), means.var(axis=0, ddof=1) / len(means)

    (a, va), (b, vb) = batches(one), batches(other)
    return (a - b) / np.sqrt(va + vb)


# Doors ------------------------------------------------------------------------------------------------


def test_pandas_polars_and_arrays_give_the_same_numbers(data):
    pandas = mb.estimate(data.table, data.query, **QUICK)
    polars = mb.estimate(pl.from_pandas(data.table), data.query, **QUICK)
    array = mb.estimate(data.table.to_numpy(), [0, 1, 2], **QUICK)
    np.testing.assert_array_equal(pandas.W12, polars.W12)
    np.testing.assert_array_equal(pandas.W12, array.W12)
    assert pandas.query == polars.query == ["Q1", "Q2", "Q3"]
    assert array.variables == list(range(3, 15))


def test_a_scatter_is_taken_as_given_and_a_table_is_standardised(data):
    """The same standardised scatter through both doors: the same draws, up to rounding.

    The means of a table are unknown, so that its 80 rows are worth 79.
    """
    X = data.table.to_numpy()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    table = mb.estimate(data.table, data.query, **QUICK)
    scatter = mb.estimate(scatter=X.T @ X, n=79, query=data.query, names=list(data.table.columns), **QUICK)
    np.testing.assert_allclose(table.W12, scatter.W12, rtol=1e-4, atol=1e-6)
    assert scatter.variables == table.variables
    raw = data.table.to_numpy()
    unstandardised = mb.estimate(scatter=raw.T @ raw, n=79, query=[0, 1, 2], **QUICK)
    assert np.abs(unstandardised.W12.values - scatter.W12.values).max() > 0.1


def test_query_may_stand_anywhere_in_a_scatter(data):
    """The others keep their order, so the draws are the same to the last bit."""
    X, names = data.table.to_numpy(), list(data.table.columns)
    S, order = X.T @ X, [0, *range(2, 9), 1, *range(9, 15)]
    first = mb.estimate(scatter=S, n=80, query=["Q2"], names=names, **QUICK)
    moved = mb.estimate(
        scatter=S[np.ix_(order, order)], n=80, query=["Q2"], names=[names[k] for k in order], **QUICK
    )
    assert first.query == moved.query == ["Q2"]
    assert first.variables == moved.variables == [name for name in names if name != "Q2"]
    np.testing.assert_array_equal(first.W12, moved.W12)


def test_a_scatter_that_is_a_frame_brings_its_names(data):
    S = data.table.T @ data.table
    posterior = mb.estimate(scatter=S, n=80, query=["Q2"], **QUICK)
    assert posterior.query == ["Q2"]
    assert posterior.variables[:2] == ["Q1", "Q3"]


@pytest.mark.parametrize("names", [[0.5, 1.5, 2.5], [("a", 1), ("a", 2), ("b", 1)], [None, "x", 3]], ids=str)
def test_a_column_may_be_asked_for_by_its_own_name_whatever_it_is(names):
    X = np.random.default_rng(0).standard_normal((20, 3))
    frame = pd.DataFrame(X)
    frame.columns = pd.Index(names, dtype=object, tupleize_cols=False)
    for margins in ("auto", "gaussian"):
        assert mb.estimate(frame, [names[0]], **QUICK | {"margins": margins}).query == [str(names[0])]


def test_names_of_the_package_stay_functions():
    """`estimate` and `simulate` are modules too; importing those must not hide the functions."""
    assert mb.MarkovBlanket.__name__ == "MarkovBlanket"
    assert callable(mb.estimate)
    assert callable(mb.simulate)
    assert set(mb.__all__) == {name for name in dir(mb) if not name.startswith("_")}


# What it finds ----------------------------------------------------------------------------------------


def test_strong_edges_are_found_with_their_sign_and_nothing_is_made_of_noise():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 20))
    y = X[:, 3] - X[:, 7] + rng.standard_normal(400)
    table = pd.DataFrame(np.column_stack([y, X]), columns=["y", *(f"x{k}" for k in range(20))])
    posterior = mb.estimate(table, "y", **QUICK | {"warmup": 200, "draws": 400, "seed": 1})
    edges = posterior.edges(level=0.99, detail=True).set_index("variable")
    assert {"x3", "x7"} <= set(edges.index)
    assert len(edges) <= 3
    assert edges.loc["x3", "precision"] < 0 < edges.loc["x3", "partial_correlation"]
    assert edges.loc["x7", "partial_correlation"] < 0 < edges.loc["x7", "precision"]
    assert posterior.r2().loc["y", "mean"] == pytest.approx(2 / 3, abs=0.1)


# Edge cases: exactness is proved by the statistical rungs; here, that the doors let them through --------

SHAPES = {
    "p = 1": (40, 1, 6),
    "q = 1": (40, 2, 1),
    "p = q = 1": (10, 1, 1),
    "q < p": (40, 5, 2),
    "n < p": (3, 5, 4),
    "n = q": (8, 2, 8),
    "n < q": (6, 2, 30),
    "two rows": (2, 2, 3),
}


@pytest.mark.parametrize(("n", "p", "q"), SHAPES.values(), ids=SHAPES)
def test_every_shape_gives_finite_answers(n, p, q):
    X = np.random.default_rng(n * p + q).standard_normal((n, p + q))
    posterior = mb.estimate(X, list(range(p)), **QUICK)
    for name, array in posterior.draws.data_vars.items():
        assert np.isfinite(array).all(), name
    assert (np.linalg.eigvalsh(posterior.W11.values) > 0).all()
    assert len(posterior.edges(all=True)) == p * q + p * (p - 1) // 2
    assert ((posterior.r2()["mean"] > 0) & (posterior.r2()["mean"] < 1)).all()


def test_one_row_as_a_scatter_is_fitted_and_as_a_table_is_refused():
    x = np.random.default_rng(1).standard_normal((1, 6))
    posterior = mb.estimate(scatter=x.T @ x, n=1, query=[0, 1], **QUICK)
    assert np.isfinite(posterior.W12).all()
    with pytest.raises(ValueError, match=r"1 row; at least 2 are needed"):
        mb.estimate(x, [0, 1], **QUICK)


def test_collinear_copies_share_the_edge():
    """Three copies of one cause: finite, one of them has the edge, and none of them much likelier than another.

    Chains stay with one copy for hundreds of iterations now and then: over six seeds the probabilities, 1/3 each,
    were at most 0.17 apart.
    """
    rng = np.random.default_rng(2)
    cause, other = rng.standard_normal((2, 200))
    table = np.column_stack([cause + rng.standard_normal(200), cause, cause, cause, other])
    posterior = mb.estimate(table, 0, chains=4, warmup=200, draws=1500, seed=1, margins="gaussian", progress=False)
    edges = posterior.edges(all=True).set_index("variable").loc[[1, 2, 3]]
    probability = edges["probability"]
    assert np.ptp(probability) < 0.25
    assert abs(probability.sum() - 1) < 0.05
    means = posterior.W12.values.mean(axis=(0, 1))[0]
    assert abs(means[:3].sum()) > 5 * abs(means[3])
    assert (posterior.W12.values[..., :3].sum(axis=-1) < 0).mean() > 0.999


def test_a_query_that_is_an_exact_function_of_others_is_handled():
    """No noise at all: the prior keeps the posterior proper, R2 comes close to 1, and nothing overflows."""
    X = np.random.default_rng(3).standard_normal((100, 6))
    table = np.column_stack([X[:, 0] - 2 * X[:, 1], X])
    posterior = mb.estimate(table, 0, chains=4, warmup=500, draws=500, seed=1, margins="gaussian", progress=False)
    assert posterior.r2()["mean"].iloc[0] > 0.95
    assert posterior.edges().head(2)["variable"].tolist() == [2, 1]
    prediction = posterior.predict(X).mean.to_numpy()[:, 0]
    assert np.corrcoef(prediction, table[:, 0])[0, 1] > 0.999


def test_query_variables_that_copy_each_other_are_handled():
    X = np.random.default_rng(4).standard_normal((60, 5))
    posterior = mb.estimate(np.column_stack([X[:, 0], X]), [0, 1], **QUICK)
    edge = posterior.edges().set_index(["query", "variable"]).loc[(0, 1)]
    assert edge["partial_correlation"] > 0.8


# Refusals ---------------------------------------------------------------------------------------------

TABLE = pd.DataFrame(np.random.default_rng(9).standard_normal((20, 4)), columns=list("abcd"))
IDENTITY = np.eye(3)
REFUSED = {
    "no data": ({"query": ["a"]}, "either a table or scatter"),
    "both doors": ({"table": TABLE, "query": ["a"], "scatter": IDENTITY, "n": 5}, "not both"),
    "no query": ({"table": TABLE}, "query is missing"),
    "unknown query": ({"table": TABLE, "query": ["z"]}, "query 'z'"),
    "constant": ({"table": TABLE.assign(d=1.0), "query": ["a"]}, "column 'd' is constant"),
    "constant query": ({"table": TABLE.assign(a=1.0), "query": ["a"]}, "column 'a' is constant"),
    "unknown prior": ({"table": TABLE, "query": ["a"], "prior": "lasso"}, "prior='lasso': known are .*'laplace'"),
    "unknown solver": ({"table": TABLE, "query": ["a"], "solver": "fast"}, "solver='fast'"),
    "unknown margins": ({"table": TABLE, "query": ["a"], "margins": "normal"}, "margins='normal'"),
    "n with a table": ({"table": TABLE, "query": ["a"], "n": 20}, "belong to scatter"),
    "no n": ({"scatter": IDENTITY, "query": [0]}, "number of rows"),
    "n = 0": ({"scatter": IDENTITY, "n": 0, "query": [0]}, "at least 1"),
    "n not whole": ({"scatter": IDENTITY, "n": 2.5, "query": [0]}, "whole number"),
    "names of another length": (
        {"scatter": IDENTITY, "n": 5, "query": [0], "names": ["a"]},
        "1 names for a scatter",
    ),
    "duplicate names": (
        {"scatter": IDENTITY, "n": 5, "query": ["a"], "names": list("aba")},
        "duplicate column names",
    ),
    "not symmetric": ({"scatter": np.triu(np.ones((3, 3))), "n": 5, "query": [0]}, "not symmetric"),
    "indefinite": ({"scatter": np.ones((3, 3)) - np.eye(3), "n": 5, "query": [0]}, "semi-definite"),
    "a class for a prior": ({"table": TABLE, "query": ["a"], "prior": mb.Laplace}, "prior=.*pass an instance"),
    "no solver": ({"table": TABLE, "query": ["a"], "solver": None}, "solver=None"),
    "kinds for a scatter": ({"scatter": IDENTITY, "n": 5, "query": [0], "margins": "rank"}, "about tables"),
    "complex scatter": ({"scatter": IDENTITY * 1j, "n": 5, "query": [0]}, "real numbers"),
    "huge scatter": ({"scatter": IDENTITY * 1e200, "n": 5, "query": [0]}, "larger units"),
    "huge n": ({"scatter": IDENTITY, "n": 10**30, "query": [0]}, "number of rows"),
    "a query of truth values": ({"table": TABLE.to_numpy(), "query": [True, False]}, "query True: name columns"),
    "a query between columns": ({"table": TABLE.to_numpy(), "query": 1.5}, "query 1.5: name columns"),
    "masked cells": ({"table": np.ma.masked_less(TABLE.to_numpy(), -1), "query": [0]}, "missing cell"),
    "no chains": ({"table": TABLE, "query": ["a"], "chains": 0}, "chains=0"),
    "no draws": ({"table": TABLE, "query": ["a"], "draws": 0}, "draws=0"),
    "negative warm-up": ({"table": TABLE, "query": ["a"], "warmup": -1}, "warmup=-1"),
}


@pytest.mark.parametrize(("arguments", "message"), REFUSED.values(), ids=REFUSED)
def test_refusals_say_what_is_wrong(arguments, message):
    with pytest.raises(ValueError, match=message):
        mb.estimate(**(QUICK | arguments))


# Invariances (rung 7) ---------------------------------------------------------------------------------


def test_units_of_measurement_do_not_matter(data):
    """Powers of two, so that standardising is exact: bit for bit."""
    scaled = data.table * 2.0 ** np.arange(-7, 8)
    one, other = (mb.estimate(table, data.query, **QUICK) for table in (data.table, scaled))
    np.testing.assert_array_equal(one.W12, other.W12)


def test_shifts_and_extreme_units_do_not_matter(data):
    moved = data.table * np.logspace(-200, 200, 15) + np.logspace(-200, 200, 15)
    one, other = (mb.estimate(table, data.query, **QUICK) for table in (data.table, moved))
    np.testing.assert_allclose(one.W12, other.W12, rtol=1e-4, atol=1e-6)


def test_the_order_of_rows_does_not_matter(data):
    shuffled = data.table.sample(frac=1, random_state=0)
    one, other = (mb.estimate(table, data.query, **QUICK) for table in (data.table, shuffled))
    np.testing.assert_allclose(one.W12, other.W12, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("prior", ["laplace", "normal", mb.Laplace(gamma=20)], ids=str)
def test_permuting_variables_permutes_the_answer(data, prior):
    """In law: posterior means agree within Monte Carlo error (36 z-scores; false alarm rate below 1e-6)."""
    long = {"margins": "gaussian", "chains": 2, "warmup": 100, "draws": 1000, "progress": False, "prior": prior}
    order = np.random.default_rng(1).permutation(data.table.columns)
    one = mb.estimate(data.table, data.query, seed=1, **long)
    other = mb.estimate(data.table[order], data.query[::-1], seed=2, **long)
    z = z_scores(one, other, lambda posterior: posterior.W12.sel(query=one.query, variable=one.variables).values)
    assert np.abs(z).max() < 6.5  # t with about 40 batches each


def test_a_reflected_variable_reflects_its_weights(data):
    long = {"margins": "gaussian", "chains": 2, "warmup": 100, "draws": 1000, "progress": False}
    one = mb.estimate(data.table, data.query, seed=1, **long)
    other = mb.estimate(data.table.assign(V05=-data.table["V05"]), data.query, seed=2, **long)
    sign = np.where(np.array(one.variables) == "V05", -1, 1)
    z = z_scores(one, other, lambda posterior: posterior.W12.values * (sign if posterior is other else 1))
    assert np.abs(z).max() < 6.5


def test_same_seed_same_numbers_another_seed_others(data):
    one, two, three = (mb.estimate(data.table, data.query, **QUICK | {"seed": s}) for s in (1, 1, 2))
    np.testing.assert_array_equal(one.W12, two.W12)
    assert not np.array_equal(one.W12, three.W12)


# Honesty ----------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("error")
def test_a_run_that_did_not_converge_says_so(data):
    with pytest.warns(mb.ConvergenceWarning, match=r"not converged: .*more warmup and draws"):
        posterior = mb.estimate(
            data.table, data.query, chains=2, warmup=0, draws=10, seed=1, margins="gaussian", progress=False
        )
    assert not posterior.diagnostics().converged


@pytest.mark.filterwarnings("error")
def test_a_long_run_converges_without_a_word(data):
    posterior = mb.estimate(data.table, data.query, draws=2000, seed=1, margins="gaussian", progress=False)
    assert posterior.diagnostics().converged, posterior.diagnostics().problems


def test_the_settings_are_enough_to_do_it_again(data):
    one = mb.estimate(data.table, data.query, prior=mb.Laplace(gamma=30), **QUICK | {"seed": None})
    made = one.settings
    options = {"gamma": 30, "shape": 1.0, "rate": 0.01}
    assert made["prior"] == {"name": "Laplace", "exact_zeros": False, "options": options}
    assert made["data"] | {"sha256": ""} == {"n": 80, "p": 3, "q": 12, "sha256": ""}
    again = mb.estimate(
        data.table,
        data.query,
        prior=mb.Laplace(gamma=made["prior"]["options"]["gamma"]),
        seed=int(made["seed"]),
        progress=False,
        **{name: made[name] for name in ("margins", "kinds", "chains", "warmup", "draws", "thin")},
    )
    np.testing.assert_array_equal(one.W12, again.W12)
    assert again.settings == made


@pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")  # the runs are short
def test_estimate_knows_the_horseshoe_and_tells_it_the_size_of_the_data():
    clinic = mb.simulate(rows=300, query=2, rest=15, seed=3)
    given = {"warmup": 20, "draws": 20, "chains": 2, "seed": 1, "progress": False}
    posterior = mb.estimate(clinic.table, clinic.query, prior=mb.Horseshoe(edges=4), **given)
    assert posterior.settings["prior"]["options"]["scale"] == pytest.approx(4 / 26 / 299**0.5)
    assert posterior.settings["prior"]["name"] == "Horseshoe"
    assert (
        mb.estimate(clinic.table, clinic.query, prior="horseshoe", **given).settings["prior"]["options"]["scale"]
        is None
    )


def test_functions_that_use_the_package_travel_to_other_processes():
    """As those of a script or notebook do with joblib."""
    task = joblib.delayed(lambda gamma: mb.Laplace(gamma=gamma))
    assert joblib.Parallel(n_jobs=2)(task(gamma) for gamma in (1.0, 2.0)) == [mb.Laplace(1.0), mb.Laplace(2.0)]
