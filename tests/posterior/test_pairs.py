"""One matrix of pairs: exact zeros in both blocks, averaged probabilities, and whole networks."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
import xarray as xr

import markovblanket as mb
from markovblanket.chains.stores import AVERAGE_PREFIX, STREAM_PREFIX
from markovblanket.posterior.observed import Observed, name_averages, name_axes, name_streams
from markovblanket.posterior.posterior import Posterior
from markovblanket.tables.table import Table
from support.known_draws import streamed

CHAINS, DRAWS = 2, 300
SPIKED = {"name": "SpikeSlab", "exact_zeros": True, "expected_inclusion": {"block": 0.2, "outside": 0.1}}


def matrices(p, q, seed=0, dense=False):
    """Draws of the query's rows of the precision matrix; 60 % of them have pair (0, 1), 90 % have (0, last)."""
    rng, size = np.random.default_rng(seed), (CHAINS, DRAWS)
    W = np.zeros((*size, p, p + q))
    share = np.full((p, p + q), 0.05)
    share[0, 1], share[0, -1] = 0.6, 0.9
    for i in range(p):
        for k in range(i + 1, p + q):
            present = dense | (rng.random(size) < share[i, k])
            W[:, :, i, k] = present * rng.normal(-0.4 if k == 1 else 0.3, 0.1, size)
            if k < p:
                W[:, :, k, i] = W[:, :, i, k]
    W[:, :, range(p), range(p)] = 3 + 0.2 * rng.random((*size, p))
    return W


def values_of(W):
    size, p = W.shape[:2], W.shape[2]
    rng = np.random.default_rng(9)
    return {
        "W11": W[..., :p],
        "W12": W[..., p:],
        "W22_diagonal": 2 + rng.random((*size, W.shape[3] - p)),
        "explained": rng.random((*size, p)),
        **{name: rng.random(size) for name in ("iterations", "residual", "scale_factor", "slab")},
    }


def posterior(p=3, q=4, *, dense=False, average=None, summary=False, prior=SPIKED):
    values = values_of(matrices(p, q, dense=dense))
    query, rest = [f"Q{k}" for k in range(p)], [f"V{k}" for k in range(q)]
    rows = np.random.default_rng(1).standard_normal((20, p + q))
    table = Table(rows[:, :p], rows[:, p:], tuple(query), tuple(rest), (*query, *rest), np.arange(20), {})
    observed = Observed.of(table.as_mixed(), "gaussian", [], np.empty((CHAINS, DRAWS, 20, 0)))
    averages = None
    if average is not None:
        averages = name_averages({f"{AVERAGE_PREFIX}inclusion": average}, query, rest)
    streams = None
    if summary:
        found = streamed({name: values[name] for name in ("W11", "W12", "W22_diagonal")})
        streams = name_streams({STREAM_PREFIX + name: array for name, array in found.items()})
    return Posterior(*name_axes(values, query, rest), observed, {"prior": prior}, streams, averages)


def indexed(edges):
    return edges.set_index(["query", "variable"])


def partial(made, i, k):
    """The partial correlations of a pair in all draws."""
    p = len(made.query)
    W11 = made.W11.values
    if k < p:
        w, w_kk = W11[..., i, k], W11[..., k, k]
    else:
        w, w_kk = made.W12.values[..., i, k - p], made.draws["W22_diagonal"].values[..., k - p]
    return (-w / np.sqrt(W11[..., i, i] * w_kk)).ravel()


# The matrix -------------------------------------------------------------------------------------------


def test_inclusion_is_the_share_of_draws_of_every_pair():
    made = posterior()
    W = matrices(3, 4)
    expected = (W != 0).mean(axis=(0, 1))
    np.fill_diagonal(expected, np.nan)
    np.testing.assert_array_equal(made.inclusion.to_numpy(), expected)
    assert made.inclusion.columns.tolist() == [*made.query, *made.variables]
    np.testing.assert_array_equal(made.inclusion[made.query], made.inclusion[made.query].T)
    assert np.isnan(np.diag(made.sign_probability[made.query])).all()


def test_averaged_probabilities_are_used_where_there_are_some():
    average = np.random.default_rng(2).random((CHAINS, 3, 7))
    made = posterior(average=average)
    expected = average.mean(axis=0)
    off = ~np.eye(3, 7, dtype=bool)
    np.testing.assert_array_equal(made.inclusion.to_numpy()[off], expected[off])
    edges = indexed(made.edges(all=True))
    assert edges.loc[("Q0", "Q1"), "probability"] == expected[0, 1]
    assert edges.loc[("Q1", "V2"), "probability"] == expected[1, 5]
    odds = expected[1, 5] / (1 - expected[1, 5])
    assert edges.loc[("Q1", "V2"), "bayes_factor"] == pytest.approx(9 * odds)


def test_a_block_without_zeros_has_no_probabilities_and_is_selected_by_intervals():
    W = matrices(3, 4)
    W[..., :3] = matrices(3, 4, dense=True)[..., :3]
    W[..., 1, 2] = W[..., 2, 1] = np.random.default_rng(1).normal(0, 0.1, (CHAINS, DRAWS))
    made = posterior()
    made = Posterior(
        made.draws.assign(W11=made.W11.copy(data=W[..., :3])), made.effort, made.observed, made.settings
    )
    assert made.inclusion[made.query].isna().all(axis=None)
    assert made.inclusion[made.variables].notna().all(axis=None)
    for rule in ({}, {"probability": 0.9}, {"fdr": 0.2}):
        edges = indexed(made.edges(**rule))
        assert ("Q0", "Q1") in edges.index
        assert ("Q1", "Q2") not in edges.index
        assert np.isnan(edges.loc[("Q0", "Q1"), "bayes_factor"])
    assert "sign_probability" not in made.edges()


def test_without_exact_zeros_nothing_has_a_probability():
    made = posterior(dense=True, prior={"name": "Laplace"})
    assert made.inclusion.isna().all(axis=None)
    assert made.edges(all=True)[["probability", "bayes_factor"]].isna().all(axis=None)


# The table --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("summary", [False, True])
def test_sizes_are_those_of_the_draws_in_which_an_edge_is_present(summary):
    made = posterior(summary=summary)
    edges = indexed(made.edges(all=True, detail=True))
    assert len(edges) == 3 * 4 + 3
    for (one, other), edge in edges.iterrows():
        i, k = made.query.index(one), made.names.index(other)
        whole = partial(made, i, k)
        seen = whole[whole != 0]
        assert edge["partial_correlation"] == pytest.approx(seen.mean())
        assert edge["partial_correlation_averaged"] == pytest.approx(whole.mean())
        assert edge["probability"] == pytest.approx(len(seen) / len(whole))
        assert edge["direction"] == ("+" if seen.mean() > 0 else "-")
        ends = np.quantile(seen, [0.025, 0.975])
        if k < 3 or not summary:
            np.testing.assert_allclose(edge[["lower", "upper"]].to_numpy(float), ends)
        elif len(seen) > 100:
            np.testing.assert_allclose(edge[["lower", "upper"]].to_numpy(float), ends, atol=0.15 * seen.std())
    assert (edges.loc[("Q0", "Q1"), "direction"], edges.loc[("Q0", "V3"), "direction"]) == ("+", "-")


def test_a_pair_that_is_never_present_has_a_probability_and_no_size():
    made = posterior()
    W12 = made.W12.copy()
    W12[:, :, 1, 1] = 0.0
    made = Posterior(made.draws.assign(W12=W12), made.effort, made.observed, made.settings)
    edge = indexed(made.edges(all=True)).loc[("Q1", "V1")]
    assert edge["probability"] == 0
    assert edge["direction"] == ""
    assert edge[["partial_correlation", "lower", "upper", "rhat", "ess"]].isna().all()
    half = 0.5 / (CHAINS * DRAWS)
    assert edge["bayes_factor"] == pytest.approx(9 * half / (1 - half))
    assert made.diagnostics(all=True).table.loc["edges", "quantities"] == 14


def test_prior_odds_that_nobody_knows_give_no_bayes_factor():
    assert posterior(prior={"exact_zeros": True}).edges(all=True)["bayes_factor"].isna().all()


# Rules ------------------------------------------------------------------------------------------------


def probabilities(*upper):
    """The same averages in both chains: pairs (0, 1), (0, 2), (0, 3), (1, 2), (1, 3) of two query variables."""
    matrix = np.zeros((2, 4))
    matrix[0, 1:], matrix[1, 0], matrix[1, 2:] = upper[:3], upper[0], upper[3:]
    return np.stack([matrix, matrix])


def chosen(edges):
    return set(zip(edges["query"], edges["variable"], strict=True))


def test_rules_go_by_the_probability_of_each_pair_once():
    made = posterior(2, 2, average=probabilities(0.99, 0.9, 0.7, 0.2, 0.01))
    assert chosen(made.edges(0.9)) == {("Q0", "Q1"), ("Q0", "V0")}
    assert chosen(made.edges(probability=0.95)) == {("Q0", "Q1")}
    # 0.01, 0.1, 0.3 and 0.8 have the means 0.01, 0.055, 0.137 and 0.3025.
    assert len(made.edges(fdr=0.05)) == 1
    assert len(made.edges(fdr=0.06)) == len(made.edges(fdr=0.13)) == 2
    assert len(made.edges(fdr=0.14)) == len(made.edges(fdr=0.30)) == 3
    assert len(made.edges(fdr=0.31)) == 4
    assert made.edges()["probability"].tolist() == [0.99, 0.9, 0.7]
    mask = made.selected()
    assert mask.loc["Q1", "Q0"]
    assert not mask.loc["Q0", "Q0"]
    assert mask.to_numpy().sum() == 4


def test_a_pair_within_the_query_counts_once_in_the_default_rule():
    """Counted twice, its 0.45 would make the expected share of false edges larger than 30 %."""
    made = posterior(2, 2, average=probabilities(0.45, 0.9, 0.9, 0.0, 0.0))
    assert len(made.edges()) == 3


def test_neighbours_are_listed_from_both_ends_and_the_graph_has_sizes(tmp_path):
    made = posterior()
    assert made.blanket(0.5) == {"Q0": ["V3", "Q1"], "Q1": ["Q0"], "Q2": []}
    nx.write_graphml(made.graph(0.5), tmp_path / "graph.graphml")
    graph = nx.read_graphml(tmp_path / "graph.graphml")
    edge, row = graph.edges["Q0", "Q1"], indexed(made.edges()).loc[("Q0", "Q1")]
    for name in ("probability", "partial_correlation", "lower", "upper"):
        assert edge[name] == pytest.approx(row[name])
    assert edge["weight"] == edge["partial_correlation"] > 0
    assert edge["sign"] == "+"
    assert dict(graph.nodes(data="query")) == {"Q0": True, "Q1": True, "Q2": True, "V3": False}


# Diagnostics ------------------------------------------------------------------------------------------


def test_off_the_diagonal_of_the_query_block_are_edges():
    made = posterior()
    assert [name for name in made.summary().index if name.startswith("W11")] == [
        "W11[Q0, Q0]",
        "W11[Q1, Q1]",
        "W11[Q2, Q2]",
    ]
    table = made.diagnostics().table
    assert table.loc["W11", "quantities"] == 3
    assert table.loc["edges", "quantities"] == len(made.edges()) == 2
    moved = made.W11.copy()
    moved[0, :, 0, 1] *= 3
    stray = Posterior(made.draws.assign(W11=moved), made.effort, made.observed, made.settings)
    assert any("R-hat of edges" in problem and "Q0~Q1" in problem for problem in stray.diagnostics().problems)


# The whole network ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def network():
    return posterior(5, 0, average=(matrices(5, 0) != 0).mean(axis=1))


def test_a_network_has_edges_blankets_and_a_graph(network):
    assert network.variables == []
    assert len(network.edges(all=True)) == 10
    assert network.blanket(0.5) == {"Q0": ["Q4", "Q1"], "Q1": ["Q0"], "Q2": [], "Q3": [], "Q4": ["Q0"]}
    assert {frozenset(edge) for edge in network.graph(0.5).edges} == {
        frozenset(("Q0", "Q1")),
        frozenset(("Q0", "Q4")),
    }
    assert network.diagnostics().table.loc["edges", "quantities"] == 2
    assert "10 possible edges" in network._repr_html_()
    assert "Network of 5 variables" in network._repr_html_()
    assert network.probability("Q1~Q0 > 0") == pytest.approx((matrices(5, 0)[..., 0, 1] < 0).mean())


def test_r2_of_a_network_is_given_all_other_variables(network):
    W = network.W11.values.reshape(-1, 5, 5)
    expected = 1 - 1 / (np.einsum("kii->ki", W) * np.einsum("kii->ki", np.linalg.inv(W)))
    np.testing.assert_allclose(network.r2()["mean"], expected.mean(axis=0))
    np.testing.assert_allclose(network.r2(0.5)["upper"], np.quantile(expected, 0.75, axis=0))
    assert network.summary().loc["r2[Q0]", "mean"] == pytest.approx(expected[:, 0].mean())


def test_a_network_is_saved_and_read_and_given_to_arviz(network, tmp_path):
    network.save(tmp_path / "net")
    again = mb.load(tmp_path / "net")
    xr.testing.assert_identical(again.averages, network.averages)
    assert again.variables == []
    assert again.edges(all=True, detail=True).equals(network.edges(all=True, detail=True))
    data = again.to_inference_data()
    assert data["posterior"]["W11"].shape == (CHAINS, DRAWS, 5, 5)
    assert "W12" not in data["posterior"]


def test_a_network_predicts_nothing_but_is_checked_against_its_own_rows(network):
    for ask in (lambda: network.predict(np.zeros((2, 0))), lambda: network.coefficients):
        with pytest.raises(ValueError, match=r"^there are no other variables"):
            ask()
    assert set(network.check(draws=20, seed=1)["query"]) == set(network.query)
    assert len(network.imputed(3, seed=1)[0]) == 20


def test_a_summary_of_a_network_says_the_same(network):
    summary = posterior(5, 0, average=(matrices(5, 0) != 0).mean(axis=1), summary=True)
    assert summary.edges(all=True, detail=True).equals(network.edges(all=True, detail=True))


def test_two_networks_can_be_compared(network):
    table = mb.difference(network, network, all=True)
    assert len(table) == 10
    np.testing.assert_allclose(table["difference"], 0)


def test_near_duplicates_may_be_query_variables(network):
    assert network.groups().columns.tolist() == ["query", "variables", "probability", "likeliest"]


def test_a_hundred_variables_are_diagnosed_in_seconds():
    made = posterior(100, 0)
    assert len(made.edges()) == made.diagnostics().table.loc["edges", "quantities"]
    assert len(made.summary()) == 201


def test_prior_odds_are_those_of_the_block_or_outside():
    """In the paper's block there is no inside."""
    average = np.full((CHAINS, 3, 7), 0.5)
    paper = posterior(average=average)
    settings = {"prior": SPIKED, "candidates": {"asked": "auto", "chosen": ["V1"]}}
    widened = indexed(replace(paper, settings=settings).edges(all=True))["bayes_factor"]
    assert indexed(paper.edges(all=True))["bayes_factor"].to_numpy() == pytest.approx(9.0)
    assert widened[("Q0", "Q1")] == widened[("Q0", "V1")] == pytest.approx(4.0)
    assert widened[("Q0", "V2")] == pytest.approx(9.0)
