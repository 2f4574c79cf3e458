"""What is read off the draws, against draws whose answers are known."""

from __future__ import annotations

import json

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st

import markovblanket as mb
from markovblanket.posterior import selection, summaries
from markovblanket.posterior.observed import Observed, name_axes
from markovblanket.posterior.posterior import Posterior
from markovblanket.tables.table import Table

CHAINS, DRAWS, P, Q = 3, 200, 2, 4
NAMES = ["T", "N"], ["a", "b", "c", "<script>"]


def arrays(seed=0):
    """Independent draws about known centres, so every summary has a plain formula."""
    rng = np.random.default_rng(seed)
    size = (CHAINS, DRAWS)
    L = np.linalg.cholesky([[2.0, -0.8], [-0.8, 1.5]]) + 0.05 * rng.standard_normal((*size, P, P)) * np.tri(P)
    centre = np.array([[1.0, -0.5, 0.0, 0.1], [0.0, 0.02, -2.0, 0.0]])
    return {
        "W11": L @ L.swapaxes(-1, -2),
        "W12": centre + 0.1 * rng.standard_normal((*size, P, Q)),
        "W22_diagonal": 2.0 + rng.random((*size, Q)),
        "explained": rng.random((*size, P)),
        "iterations": np.full(size, 7.0),
        "residual": np.full(size, 1e-6),
        "scale_factor": np.ones(size),
        "gamma": 20 + rng.standard_normal(size),
    }


def posterior(values=None, names=NAMES):
    values = values or arrays()
    return Posterior(*name_axes(values, *names), observed(names), {"seed": "1", "prior": {"name": "Laplace"}})


def observed(names, rows=2):
    """Two rows, one sd below and above the mean; or none, as from a scatter matrix."""
    mean, sd = np.array([10.0, -5.0, 1.0, 2.0, 3.0, 4.0]), np.array([2.0, 3.0, 1.0, 0.5, 2.0, 4.0])
    X = np.stack([mean - sd, mean + sd])[:rows]
    query, rest = map(tuple, names)
    table = Table(X[:, :P], X[:, P:], query, rest, (*query, *rest), np.arange(rows), {}).as_mixed()
    size = arrays()["gamma"].shape
    return Observed.of(table, "gaussian", [], np.empty((*size, rows, 0)))


def pooled(name):
    values = arrays()[name]
    return values.reshape(-1, *values.shape[2:])


# Edges ------------------------------------------------------------------------------------------------


TEN = [
    "query",
    "variable",
    "probability",
    "partial_correlation",
    "lower",
    "upper",
    "direction",
    "bayes_factor",
    "rhat",
    "ess",
]
MORE = ["sign_probability", "coefficient", "precision", "partial_correlation_averaged", "ess_tail"]


def test_every_pair_with_the_promised_columns():
    edges = posterior().edges(all=True)
    assert edges.columns.tolist() == [*TEN, "sign_probability"]
    assert posterior().edges(all=True, detail=True).columns.tolist() == [*TEN, *MORE]
    assert len(edges) == P * Q + 1
    assert edges[["probability", "bayes_factor"]].isna().all(axis=None)


def test_each_figure_of_an_edge_is_that_of_its_draws():
    edge = posterior().edges(level=0.8, detail=True).set_index(["query", "variable"]).loc[("T", "b")]
    w, w_ii = pooled("W12")[:, 0, 1], pooled("W11")[:, 0, 0]
    partial = -w / np.sqrt(w_ii * pooled("W22_diagonal")[:, 1])
    expected = {
        "partial_correlation": partial.mean(),
        "lower": np.quantile(partial, 0.025),
        "upper": np.quantile(partial, 0.975),
        "sign_probability": (w < 0).mean(),
        "coefficient": -(w / w_ii).mean(),
        "precision": w.mean(),
        "partial_correlation_averaged": partial.mean(),
    }
    for name, value in expected.items():
        assert edge[name] == pytest.approx(value), name
    assert edge["direction"] == "+"
    assert 0.99 < edge["rhat"] < 1.02
    assert edge["ess"] == pytest.approx(CHAINS * DRAWS, rel=0.3)


@pytest.mark.parametrize("level", [0.5, 0.85, 0.99])
def test_a_level_selects_where_the_interval_excludes_zero(level):
    result, tail = posterior(), (1 - level) / 2
    lower, upper = np.quantile(pooled("W12"), [tail, 1 - tail], axis=0)
    expected = {
        (q, v)
        for i, q in enumerate(NAMES[0])
        for j, v in enumerate(NAMES[1])
        if lower[i, j] > 0 or upper[i, j] < 0
    } | {("T", "N")}
    edges = result.edges(level=level)
    assert set(zip(edges["query"], edges["variable"], strict=True)) == expected
    assert edges["sign_probability"].min() > (1 + level) / 2


def test_the_false_discovery_rule_is_the_largest_set_below_its_bound():
    result = posterior()
    rates = (1 - result.edges(all=True)["sign_probability"]).to_numpy()
    assert (np.diff(rates) >= 0).all()
    for fdr in (0.001, 0.05, 0.2):
        edges = result.edges(fdr=fdr)
        count = len(edges)
        assert (1 - edges["sign_probability"]).mean() <= fdr
        assert count == len(rates) or rates[: count + 1].mean() > fdr


def test_surest_first_then_strongest():
    edges = posterior().edges(all=True)
    values = {(q, v): pooled("W12")[:, i, j] for i, q in enumerate("TN") for j, v in enumerate(NAMES[1])}
    values |= {("T", "N"): pooled("W11")[:, 0, 1]}
    keys = []
    for edge in edges.itertuples():
        w = values[edge.query, edge.variable]
        i = "TN".index(edge.query)
        w_jj = (
            pooled("W11")[:, 1, 1]
            if edge.variable == "N"
            else pooled("W22_diagonal")[:, NAMES[1].index(edge.variable)]
        )
        partial = -w / np.sqrt(pooled("W11")[:, i, i] * w_jj)
        keys.append((-max((w > 0).mean(), (w < 0).mean()), -abs(partial.mean() / partial.std(ddof=1))))
    assert keys == sorted(keys)


def test_the_blanket_names_every_query_even_without_neighbours():
    values = arrays()
    values["W12"][:, :, 1] = np.random.default_rng(1).standard_normal((CHAINS, DRAWS, Q))
    assert posterior(values).blanket(level=0.9) == {"T": ["N", "a", "b"], "N": ["T"]}
    values["W11"][:, :, 0, 1] = values["W11"][:, :, 1, 0] = 0.1 * values["W12"][:, :, 1, 0]
    assert posterior(values).blanket(level=0.9) == {"T": ["a", "b"], "N": []}


def test_nothing_selected_is_an_empty_table_and_not_an_error():
    values = arrays()
    values["W12"] = np.random.default_rng(1).standard_normal((CHAINS, DRAWS, P, Q))
    values["W11"] = np.tile(np.eye(P), (CHAINS, DRAWS, 1, 1))
    values["W11"][:, :, 0, 1] = values["W11"][:, :, 1, 0] = 0.1 * values["W12"][:, :, 0, 0]
    result = posterior(values)
    assert result.edges().empty
    assert result.edges().columns.tolist() == posterior().edges().columns.tolist()
    assert list(result.graph().edges) == []
    assert set(result.graph().nodes) == {"T", "N"}


def test_edges_among_the_query_come_from_w11():
    edges = posterior().edges(all=True, detail=True).set_index(["query", "variable"])
    assert ("N", "T") not in edges.index
    edge, W11 = edges.loc[("T", "N")], pooled("W11")
    partial = -W11[:, 0, 1] / np.sqrt(W11[:, 0, 0] * W11[:, 1, 1])
    assert edge["precision"] == pytest.approx(W11[:, 0, 1].mean())
    assert edge["partial_correlation"] == pytest.approx(partial.mean())
    assert edge["upper"] == pytest.approx(np.quantile(partial, 0.975))
    assert edge["coefficient"] == pytest.approx(-(W11[:, 0, 1] / W11[:, 0, 0]).mean())
    assert edge["sign_probability"] == 1


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ({"level": 1.0}, "level=1.0"),
        ({"level": 0}, "level=0"),
        ({"level": -1}, "level=-1"),
        ({"probability": 1.5}, "probability=1.5"),
        ({"fdr": 0.0}, "fdr=0.0"),
        ({"level": 0.9, "fdr": 0.1}, "one of them"),
        ({"probability": 0.5}, "without exact zeros"),
    ],
)
def test_impossible_rules_are_refused(rule, message):
    with pytest.raises(ValueError, match=message):
        posterior().edges(**rule)


# Graph ------------------------------------------------------------------------------------------------


def test_the_graph_holds_the_edge_table_and_survives_graphml(tmp_path):
    result = posterior()
    nx.write_graphml(result.graph(level=0.9), tmp_path / "network.graphml")
    graph, edges = nx.read_graphml(tmp_path / "network.graphml"), result.edges(level=0.9)
    for edge in edges.itertuples():
        kept = graph.edges[edge.query, edge.variable]
        assert kept["weight"] == kept["partial_correlation"] == pytest.approx(edge.partial_correlation)
        assert (kept["lower"], kept["upper"]) == pytest.approx((edge.lower, edge.upper))
        assert kept["sign"] == edge.direction == ("+" if edge.partial_correlation > 0 else "-")
    assert graph.number_of_edges() == len(edges)
    assert {name for name, query in graph.nodes(data="query") if query} == {"T", "N"}


# Summaries --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [{}, {"level": 0.9}, {"fdr": 0.1}])
def test_one_query_variable_has_edges_and_none_among_the_query(rule):
    full = posterior()
    alone = Posterior(full.draws.isel(query=[0], query_other=[0]), full.effort, full.observed, full.settings)
    assert set(alone.graph(**rule).edges) == {("T", variable) for variable in alone.edges(**rule)["variable"]}


def test_r2_is_explained_over_total_variance():
    residual = np.stack([np.diag(np.linalg.inv(W)) for W in pooled("W11")])
    expected = pooled("explained") / (pooled("explained") + residual)
    np.testing.assert_allclose(posterior().r2()["mean"], expected.mean(axis=0))
    np.testing.assert_allclose(posterior().r2(level=0.5)["upper"], np.quantile(expected, 0.75, axis=0))


def test_the_summary_has_each_entry_of_w11_once_and_the_hyperparameters():
    summary = posterior().summary()
    assert summary.index.tolist() == ["gamma", "W11[T, T]", "W11[T, N]", "W11[N, N]", "r2[T]", "r2[N]"]
    assert summary.loc["gamma", "mean"] == pytest.approx(arrays()["gamma"].mean())
    assert summary.loc["W11[T, N]", "sd"] == pytest.approx(pooled("W11")[:, 0, 1].std(ddof=1))
    assert (summary["ess_bulk"] > 200).all()


def test_agreeing_chains_converge_and_a_stray_one_is_named():
    assert posterior().diagnostics(all=True).converged
    values = arrays()
    values["W12"][2, :, 1, 2] += 1.0
    verdict = posterior(values).diagnostics()
    assert not verdict.converged
    assert any("R-hat of edges" in problem and "N~c" in problem for problem in verdict.problems)
    assert "NOT CONVERGED" in str(verdict)
    assert tuple(map(str, posterior(values).warnings)) == verdict.problems
    assert all(isinstance(one, mb.ConvergenceWarning) for one in posterior(values).warnings)
    assert posterior().warnings == ()


def test_sticky_chains_are_found_out_by_their_effective_sample_size():
    values = arrays()
    values["gamma"] = np.repeat(values["gamma"][:, ::20], 20, axis=1)
    assert any("effective sample size of gamma" in problem for problem in posterior(values).diagnostics().problems)


def test_three_draws_say_nothing_about_convergence():
    values = {name: array[:, :3] for name, array in arrays().items()}
    assert "fewer than 4 draws" in posterior(values).diagnostics().problems[0]
    assert posterior(values).edges(all=True)["rhat"].isna().all()


def test_one_chain_is_judged_by_its_halves():
    values = {name: array[:1].copy() for name, array in arrays().items()}
    assert posterior(values).edges()["rhat"].between(0.99, 1.05).all()
    values["W12"][0, DRAWS // 2 :, 1, 2] += 1.0
    assert posterior(values).edges().set_index(["query", "variable"]).loc[("N", "c"), "rhat"] > 1.5


def test_arviz_takes_the_draws_as_they_are():
    result, az = posterior(), summaries.arviz()
    data = result.to_inference_data()
    np.testing.assert_array_equal(data["posterior"]["W12"].values, arrays()["W12"])
    summary = az.summary(data, var_names=["gamma"])
    assert float(summary["mean"].iloc[0]) == pytest.approx(arrays()["gamma"].mean(), abs=0.1)
    np.testing.assert_array_equal(data["sample_stats"]["iterations"].values, arrays()["iterations"])


# Prediction -------------------------------------------------------------------------------------------


def test_predictions_are_the_regression_on_the_scale_of_the_data():
    new = pd.DataFrame(np.random.default_rng(3).standard_normal((5, Q)) * 3, columns=NAMES[1])
    result = posterior()
    X2 = (new.to_numpy() - [1, 2, 3, 4]) / [1, 0.5, 2, 4]
    U = np.linalg.inv(pooled("W11"))
    fits = -np.einsum("rj,kij,kil->krl", X2, pooled("W12"), U)
    expected = [10, -5] + np.array([2, 3]) * fits.mean(axis=0)
    prediction = result.predict(new, seed=1)
    np.testing.assert_allclose(prediction.mean, expected, rtol=1e-10)
    # The predictive variance is that of the fits plus the mean of the residual covariances' diagonals.
    variance = np.array([4, 9]) * (fits.var(axis=0) + np.einsum("kii->i", U) / len(U))
    draws = np.stack([prediction.draws[name].values for name in NAMES[0]], axis=2)
    z = (draws.mean(axis=0) - expected) / np.sqrt(variance / len(draws))
    assert np.abs(z).max() < 5
    np.testing.assert_allclose(draws.var(axis=0), variance, rtol=6 * np.sqrt(2 / len(draws)))


def test_predictions_do_not_need_the_columns_in_order():
    new = pd.DataFrame(np.eye(Q), columns=NAMES[1])
    result = posterior()
    shuffled = new.assign(extra=1.0)[["c", "extra", "a", "<script>", "b"]]
    pd.testing.assert_frame_equal(result.predict(new).mean, result.predict(shuffled).mean)
    pd.testing.assert_frame_equal(result.predict(new).mean, result.predict(new.to_numpy()).mean)


def test_predictions_keep_the_rows_names():
    new = pd.DataFrame(np.eye(Q), columns=NAMES[1], index=[100, 7, 3, 9])
    prediction = posterior().predict(new)
    assert prediction.mean.index.tolist() == prediction.draws["T"]["row"].values.tolist() == [100, 7, 3, 9]


def test_columns_numbered_in_another_order_are_found_by_their_numbers():
    result = posterior(names=([0, 3], [1, 2, 4, 5]))
    new = pd.DataFrame(np.random.default_rng(0).standard_normal((3, 4)), columns=[1, 2, 4, 5])
    pd.testing.assert_frame_equal(result.predict(new).mean, result.predict(new[[5, 1, 4, 2]]).mean)
    with pytest.raises(ValueError, match="variable 1 is not a column"):
        result.predict(new.set_axis([10, 11, 12, 13], axis=1))
    with pytest.raises(ValueError, match="an array of 3 columns for 4 variables"):
        result.predict(np.zeros((2, 3)))


def test_chains_that_never_move_have_not_converged():
    values = arrays()
    values["gamma"][:] = 3.0
    assert any("R-hat of gamma is inf" in problem for problem in posterior(values).diagnostics().problems)


def test_predictive_intervals_are_those_of_the_draws():
    prediction = posterior().predict(np.eye(Q), seed=2)
    summary = prediction.summary(level=0.8)
    assert summary.index.names == ["row", "query"]
    cell = prediction.draws["N"].sel(row=1).values
    assert summary.loc[(1, "N"), "lower"] == pytest.approx(np.quantile(cell, 0.1))
    assert summary.loc[(1, "N"), "sd"] == pytest.approx(cell.std(ddof=1))


# Saving -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("names", [NAMES, ([0, 3], [1, 2, 4, 5]), (["Größe", "N"], ["a b", "c/d", "", "é"])])
def test_what_is_saved_is_what_is_loaded(tmp_path, names):
    made = posterior(names=names)
    made.save(tmp_path / "run")
    again = mb.load(tmp_path / "run")
    for group in ("draws", "effort"):
        xr.testing.assert_identical(getattr(made, group), getattr(again, group))
    pd.testing.assert_frame_equal(
        again.predict(np.eye(Q), seed=1).summary(), made.predict(np.eye(Q), seed=1).summary()
    )
    assert again.settings == made.settings
    assert again.query == made.query
    pd.testing.assert_frame_equal(again.edges(all=True), made.edges(all=True))


def test_a_fit_from_a_scatter_predicts_in_its_own_units_and_completes_nothing(tmp_path):
    made = Posterior(*name_axes(arrays(), *NAMES), observed(NAMES, rows=0), {})
    made.save(tmp_path / "run")
    again = mb.load(tmp_path / "run")
    np.testing.assert_allclose(again.predict(np.zeros((1, Q))).mean, 0)
    np.testing.assert_allclose(again.predict(np.eye(Q)).mean, made.coefficients.T)
    with pytest.raises(ValueError, match="imputation needs the rows of a table"):
        again.imputed()
    with pytest.raises(ValueError, match="missing cells needs the rows of a table"):
        again.predict(np.full((1, Q), np.nan))


def test_saving_again_replaces_and_leaves_no_draft(tmp_path):
    posterior().save(tmp_path / "run")
    other = posterior(arrays(seed=5))
    other.save(tmp_path / "run")
    xr.testing.assert_identical(mb.load(tmp_path / "run").draws, other.draws)
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_a_folder_of_something_else_is_never_overwritten(tmp_path):
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("precious")
    with pytest.raises(FileExistsError, match="not a saved posterior"):
        posterior().save(tmp_path / "thesis")
    assert (tmp_path / "thesis" / "chapter.txt").read_text() == "precious"


@pytest.mark.parametrize("lure", ["settings.json", "draws.zarr"])
def test_nor_is_one_that_only_looks_like_a_posterior(tmp_path, lure):
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / lure).write_text("{}")
    (tmp_path / "project" / "thesis.tex").write_text("precious")
    with pytest.raises(FileExistsError, match="not a saved posterior"):
        posterior().save(tmp_path / "project")
    assert (tmp_path / "project" / "thesis.tex").read_text() == "precious"


def test_a_damaged_folder_is_refused_with_what_is_wrong(tmp_path):
    posterior().save(tmp_path / "run")
    (tmp_path / "run" / "settings.json").write_text("{")
    with pytest.raises(ValueError, match="damaged"):
        mb.load(tmp_path / "run")
    posterior().save(tmp_path / "run")
    (tmp_path / "run" / "effort.zarr").rename(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="not a whole saved posterior: effort"):
        mb.load(tmp_path / "run")


def test_numpy_numbers_in_the_settings_are_no_obstacle(tmp_path):
    made = Posterior(
        *name_axes(arrays(), *NAMES), observed(NAMES), {"warmup": np.int64(5), "gamma": np.float32(2)}
    )
    made.save(tmp_path / "run")
    assert mb.load(tmp_path / "run").settings == {"warmup": 5, "gamma": 2.0}


def test_what_is_no_posterior_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"no settings\.json"):
        mb.load(tmp_path)
    posterior().save(tmp_path / "run")
    settings = json.loads((tmp_path / "run" / "settings.json").read_text())
    (tmp_path / "run" / "settings.json").write_text(json.dumps(settings | {"format": 99}))
    with pytest.raises(ValueError, match="another version of markovblanket"):
        mb.load(tmp_path / "run")


# Rules ------------------------------------------------------------------------------------------------


def test_exact_zeros_are_selected_by_inclusion_unless_another_rule_is_asked_for():
    included, sign = np.array([[0.5, 0.3, 0.99]]), np.array([[0.45, 0.28, 0.98]])
    assert selection.select(sign, included).tolist() == [[True, False, True]]
    assert selection.select(sign, included, probability=0.6).tolist() == [[False, False, True]]
    assert selection.select(sign, included, level=0.95).tolist() == [[False, False, True]]
    assert selection.select(sign, included, level=0.98).tolist() == [[False, False, False]]
    assert selection.select(sign, included, fdr=0.26).tolist() == [[True, False, True]]
    assert selection.select(sign, included, fdr=0.25).tolist() == [[False, False, True]]


@given(st.lists(st.floats(0, 1), max_size=30))
def test_the_default_cut_has_the_largest_expected_f_score(numbers):
    """Against all cuts, one by one; below 1/2 at most 30 % of the edges are expected to be false."""
    p = np.array(numbers)
    cut = selection.least_inclusion(p)

    def expected(least):
        return 2 * p[p >= least].sum() / max((p >= least).sum() + p.sum(), 1e-300)

    def true(least):
        return p[p >= least].mean() if (p >= least).any() else 0.0

    assert cut == 0.5 or true(cut) >= 0.7 - 1e-12
    others = [k / 100 for k in range(1, 51) if k == 50 or true(k / 100) >= 0.7 + 1e-12]
    assert expected(cut) >= max(map(expected, others)) - 1e-12


def test_the_default_cut_is_half_of_the_f_score_that_it_has():
    """Lipton et al. (2014), if nothing bounds the share of false edges."""
    p = np.random.default_rng(1).beta(0.3, 0.9, size=20_000)
    cut = selection.least_inclusion(p, most_false=1.0)
    assert cut == pytest.approx(p[p >= cut].sum() / ((p >= cut).sum() + p.sum()), abs=0.01)


def test_of_noise_the_default_finds_nothing():
    p = np.random.default_rng(1).beta(0.3, 30, size=20_000)
    assert p.max() < 0.5
    assert not selection.select(p, p).any()
