"""Edges from both ends: the arithmetic by hand, the runs against runs that were asked for directly."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.special import logit

import markovblanket as mb
from markovblanket.fitting import second_look
from markovblanket.fitting.second_look import combined

pytestmark = pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
QUICK = {"chains": 2, "warmup": 100, "draws": 300}


@pytest.fixture(scope="module")
def table():
    """``a`` is a strong neighbour of T, ``c`` a weak one; b is a's copy of sorts; the others are not connected."""
    rng = np.random.default_rng(7)
    X = pd.DataFrame(rng.standard_normal((150, 6)), columns=list("abcdef"))
    X["b"] = X["a"] + 0.7 * rng.standard_normal(150)
    return X.assign(T=X["a"] + 0.25 * X["c"] + rng.standard_normal(150), N=rng.standard_normal(150))


@pytest.fixture(scope="module")
def posterior(table):
    return mb.estimate(table, ["T", "N"], margins="gaussian", seed=1, progress=False, **QUICK)


@pytest.fixture(scope="module")
def looked(posterior):
    return mb.second_look(posterior, least=0.1, seed=2, **QUICK)


def test_log_odds_add_and_the_prior_counts_once():
    p = combined(([0.3], [0.6]), (1000, 1000), 0.05)
    assert logit(p[0]) == pytest.approx(logit(0.3) + logit(0.6) - logit(0.05))


def test_an_end_that_says_no_more_than_the_prior_changes_nothing():
    share = np.array([0.01, 0.4, 0.99])
    np.testing.assert_allclose(combined((share, np.full(3, 0.05)), (1000, 1000), 0.05), share)


def test_shares_of_all_or_none_count_as_half_a_draw_from_it():
    never, always = combined(([0.0, 1.0], [0.5, 0.5]), (400, 7), 0.5)
    assert (never, always) == (pytest.approx(1 / 800), pytest.approx(1 - 1 / 800))


def test_bayes_factors_of_independent_looks_multiply():
    """Two samples of their own about one of two means: the posterior of both is that of each look, combined."""
    rng, prior = np.random.default_rng(1), 0.2
    y = rng.standard_normal((2, 5)) + 0.5
    log_factor = (y * 1.0 - 0.5).sum(axis=1)  # mean 1 against mean 0
    one, other = 1 / (1 + np.exp(-(logit(prior) + log_factor)))
    exact = 1 / (1 + np.exp(-(logit(prior) + log_factor.sum())))
    assert combined(([one], [other]), (10**9, 10**9), prior)[0] == pytest.approx(exact)


def test_a_row_for_each_query_variable_and_candidate_likeliest_first(posterior, looked):
    likely = posterior.inclusion.columns[(posterior.inclusion >= 0.1).any()]
    assert {"a", "c"} <= set(likely) < set("abcdef")
    assert set(zip(looked["query"], looked["variable"], strict=True)) == {(i, j) for i in "TN" for j in likely}
    assert looked["inclusion_both"].is_monotonic_decreasing
    assert (looked["query"][0], looked["variable"][0]) == ("T", "a")


def test_figures_of_the_first_end_are_the_posteriors(posterior, looked):
    edges = posterior.edges(all=True).set_index(["query", "variable"])
    for row in looked.itertuples():
        assert row.inclusion == posterior.inclusion.loc[row.query, row.variable]
        assert row.weight == pytest.approx(edges.loc[(row.query, row.variable), "weight"])
    prior = float(posterior.draws["inclusion"].mean())
    both = combined((looked["inclusion"], looked["inclusion_other"]), (600, 600), prior)
    np.testing.assert_allclose(looked["inclusion_both"], both)


def test_the_other_end_is_what_an_estimate_of_the_candidate_says(table, posterior, looked):
    """The same distribution by ``estimate``: the candidate as the query, the learned probability of an edge."""
    prior = mb.SpikeSlab(inclusion=float(posterior.draws["inclusion"].mean()))
    long = {"chains": 2, "warmup": 100, "draws": 1000}
    candidate = mb.estimate(table, ["c"], prior=prior, margins="gaussian", seed=3, progress=False, **long)
    more = mb.second_look(posterior, least=0.5, seed=4, **long)
    for query in "TN":
        (row,) = more[(more["query"] == query) & (more["variable"] == "c")].itertuples()
        edge = candidate.edges(all=True).set_index("variable").loc[query]
        error = np.sqrt(
            0.25 * 2 / 800
        )  # of the difference of two shares of at least 800 independent draws, at most
        assert row.inclusion_other == pytest.approx(edge["inclusion"], abs=5.5 * error)
        assert row.weight_other == pytest.approx(edge["weight"], abs=5.5 * edge["sd"] * np.sqrt(2 / 800) + 1e-3)


def test_a_second_look_finds_more(looked):
    """From both ends the weak neighbour is likelier, and no other variable is likely."""
    both = looked.set_index(["query", "variable"])["inclusion_both"]
    assert both["T", "a"] > 0.99
    weak = looked.set_index(["query", "variable"]).loc[("T", "c")]
    assert weak["inclusion_both"] > max(weak["inclusion"], weak["inclusion_other"])
    assert (both.drop([("T", "a"), ("T", "c")]) < 0.5).all()


def test_the_seed_decides_and_not_the_number_of_jobs_nor_saving(posterior, tmp_path):
    posterior.save(tmp_path / "run")
    short = {"least": 0.1, "seed": 2, "chains": 2, "warmup": 5, "draws": 20}
    again = mb.second_look(mb.load(tmp_path / "run"), n_jobs=2, **short)
    pd.testing.assert_frame_equal(again, mb.second_look(posterior, **short))


def test_candidates_are_those_that_are_likely_enough(posterior):
    few = mb.second_look(posterior, least=0.99, seed=1, chains=1, warmup=10, draws=20)
    assert few["variable"].unique().tolist() == ["a"]


def test_without_candidates_the_table_is_empty(table):
    noise = table[["N", "d", "e", "f"]]
    posterior = mb.estimate(noise, ["N"], seed=1, progress=False, **QUICK)
    empty = mb.second_look(posterior, least=0.9, **QUICK)
    assert empty.empty
    assert empty.columns.tolist()[-4:] == ["inclusion", "inclusion_other", "inclusion_both", "rhat_other"]


def test_tables_of_all_kinds_with_gaps_and_every_way_of_keeping(table):
    mixed = table.assign(T=pd.cut(table["T"], 3, labels=False), c=(table["c"] > 0).astype(int))
    mixed.loc[:9, "a"] = np.nan
    short = {"chains": 2, "warmup": 50, "draws": 100}
    full, summary = (
        mb.second_look(
            mb.estimate(mixed, ["T"], keep=keep, seed=1, progress=False, **short), seed=2, least=0.5, **short
        )
        for keep in ("draws", "summary")
    )
    pd.testing.assert_frame_equal(full, summary)
    assert full.set_index(["query", "variable"]).loc[("T", "a"), "inclusion_both"] > 0.9


def test_what_has_no_second_end_is_refused(table, posterior):
    short = {"seed": 1, "progress": False, "chains": 1, "warmup": 5, "draws": 5}
    with pytest.raises(ValueError, match='estimate with prior="spike-slab"'):
        mb.second_look(mb.estimate(table, ["T"], prior="laplace", **short))
    X = table.to_numpy() - table.to_numpy().mean(axis=0)
    with pytest.raises(ValueError, match="a second look needs the rows of a table"):
        mb.second_look(mb.estimate(scatter=X.T @ X, n=150, query=[6], **short))
    with pytest.raises(ValueError, match="least=0"):
        mb.second_look(posterior, least=0)


@pytest.mark.filterwarnings("default::markovblanket.ConvergenceWarning")
def test_chains_that_disagree_are_told_of(posterior):
    with pytest.warns(mb.ConvergenceWarning, match="seen from their other ends"):
        mb.second_look(posterior, seed=1, chains=4, warmup=0, draws=5)


# The one that a fit takes by itself ---------------------------------------------------------------------


def test_a_fit_looks_at_likely_edges_from_their_other_ends(table, posterior, looked):
    """As often as the long way finds them, within four standard errors of 70 and 60 independent draws."""
    other, long = (
        posterior.inclusion_other,
        looked.pivot(index="query", columns="variable", values="inclusion_other"),
    )
    likely = (posterior.inclusion >= 0.05).any()
    assert other.loc[:, likely].notna().all(axis=None)
    assert other.loc[:, ~likely].isna().all(axis=None)
    assert posterior.settings["second_look"] == {"asked": "auto", "taken": f"at {likely.sum()} variables"}
    short = other.loc[long.index, long.columns]
    pooled = ((short + long) / 2).clip(0.01, 0.99)
    assert (abs(short - long) < 4 * np.sqrt(pooled * (1 - pooled) * (1 / 70 + 1 / 60))).all(axis=None)


def test_the_likelier_end_is_selected_by_and_shown(table, posterior):
    either = np.fmax(posterior.inclusion, posterior.inclusion_other)
    assert ((either > posterior.inclusion).sum() > 0).any()
    pd.testing.assert_frame_equal(posterior.inclusion_either, either)
    pd.testing.assert_frame_equal(posterior.selected(inclusion=0.3), either >= 0.3)
    edges = posterior.edges(all=True).set_index(["query", "variable"])
    assert edges.loc[("T", "a"), "inclusion_other"] == posterior.inclusion_other.loc["T", "a"]
    plain = mb.estimate(table, ["T", "N"], margins="gaussian", second_look=False, seed=1, progress=False, **QUICK)
    assert plain.inclusion_other is None
    assert "inclusion_other" not in plain.edges(all=True)
    np.testing.assert_array_equal(plain.W12, posterior.W12)


@pytest.mark.parametrize("keep", ["draws", "summary", "disk"])
def test_it_is_kept_and_does_not_depend_on_the_number_of_jobs(keep, table, tmp_path):
    mixed = table.assign(T=pd.cut(table["T"], 3, labels=False))
    mixed.loc[:9, "a"] = np.nan
    folder = tmp_path / "run"
    one, two = (
        mb.estimate(
            mixed, ["T"], keep=folder if keep == "disk" else keep, seed=1, progress=False, n_jobs=n_jobs, **QUICK
        )
        for n_jobs in (None, 2)
    )
    pd.testing.assert_frame_equal(one.inclusion_other, two.inclusion_other)
    assert one.inclusion_other.loc["T", "a"] > 0.9
    two.save(tmp_path / "saved")
    for place in (tmp_path / "saved", *([folder] if keep == "disk" else [])):
        again = mb.load(place)
        pd.testing.assert_frame_equal(again.inclusion_other, one.inclusion_other)
        pd.testing.assert_frame_equal(again.edges(), two.edges())


def test_it_is_not_taken_where_it_cannot_be_or_would_take_long(table, monkeypatch):
    short = {"seed": 1, "progress": False, "chains": 1, "warmup": 5, "draws": 5}
    X = table.to_numpy() - table.to_numpy().mean(axis=0)
    laplace, scatter = ({"prior": "laplace"}, {"scatter": X.T @ X, "n": 150, "query": [6]})
    for asked, why in ((laplace, "the prior has no exact zeros"), (scatter, "a scatter matrix has no rows")):
        given = {} if "scatter" in asked else {"table": table, "query": ["T"]}
        posterior = mb.estimate(**given, **asked, **short)
        assert (posterior.inclusion_other, posterior.settings["second_look"]["taken"]) == (None, why)
        with pytest.raises(ValueError, match=r"spike-slab|rows of a table"):
            mb.estimate(**given, **asked, **short, second_look=True)
    monkeypatch.setattr(second_look, "MOST_WORK", 10)
    posterior = mb.estimate(table, ["T"], **short)
    assert "would take long" in posterior.settings["second_look"]["taken"]
    with pytest.raises(ValueError, match="second_look='twice'"):
        mb.estimate(table, ["T"], second_look="twice", **short)
