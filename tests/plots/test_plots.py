"""Figures say what the tables say."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import same_color

mpl.use("Agg")
from matplotlib import pyplot as plt

import markovblanket as mb
from markovblanket import plots
from markovblanket.plots.chains import autocorrelations
from markovblanket.plots.style import NEGATIVE, POSITIVE
from support.reports import whole_network


@pytest.fixture(scope="module")
def posterior():
    made = mb.simulate(rows=600, query=3, rest=12, density=0.4, seed=4)
    with pytest.warns(mb.ConvergenceWarning):
        return mb.estimate(made.table, made.query, warmup=60, draws=60, chains=2, seed=1, progress=False)


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def test_the_blanket_has_the_edges_of_the_table(posterior):
    edges = posterior.edges()
    assert 0 < edges["variable"].isin(posterior.query).sum() < len(edges)  # of both kinds
    lines = {line.get_gid(): line for line in plots.blanket(posterior).lines}
    assert set(lines) == {f"{edge.query}~{edge.variable}" for edge in edges.itertuples()}
    for edge in edges.itertuples():
        positive = same_color(lines[f"{edge.query}~{edge.variable}"].get_color(), POSITIVE)
        assert positive == (edge.partial_correlation > 0)


def test_of_many_edges_the_surest_are_drawn_and_the_title_says_so(posterior):
    ax, edges = plots.blanket(posterior, most=2), posterior.edges()
    drawn = {line.get_gid() for line in ax.lines}
    assert drawn >= {f"{edge.query}~{edge.variable}" for edge in edges.head(2).itertuples()}
    assert f"of {len(edges)}" in ax.get_title()


def test_the_forest_has_a_row_per_edge_with_its_interval(posterior):
    edges, ax = posterior.edges(0.3), plots.forest(posterior, 0.3)
    drawn = {line.get_gid(): line for line in ax.lines if "~" in str(line.get_gid())}
    assert len(drawn) == len(edges)
    for edge in edges.itertuples():
        line = drawn[f"{edge.query}~{edge.variable}"]
        np.testing.assert_array_equal(line.get_xdata(), [edge.lower, edge.upper])
        assert same_color(line.get_color(), POSITIVE if edge.partial_correlation > 0 else NEGATIVE)
    dots = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"]
    assert dots == edges["partial_correlation"].tolist()  # positive ones to the right
    heights = [drawn[f"{edge.query}~{edge.variable}"].get_ydata()[0] for edge in edges.itertuples()]
    assert heights == sorted(heights, reverse=True)  # the surest on top


def test_the_curve_falls_and_its_filled_part_is_the_selection(posterior):
    chosen, others = plots.sign_curve(posterior).lines
    assert len(chosen.get_xdata()) == len(posterior.edges())
    assert len(chosen.get_xdata()) + len(others.get_xdata()) == 36 + 3
    points = sorted([*zip(*chosen.get_data(), strict=True), *zip(*others.get_data(), strict=True)])
    assert (np.diff([probability for _, probability in points]) <= 0).all()


def marked(ax, rows, columns):
    """Pairs with a dot in a heat map."""
    x, y = ax.lines[0].get_data()
    return {(rows[int(i)], columns[int(k)]) for i, k in zip(y, x, strict=True)}


def test_the_heat_map_shows_mean_partial_correlations_and_marks_the_selected(posterior):
    ax = plots.heatmap(posterior, most=7)
    names = [label.get_text() for label in ax.get_xticklabels()]
    every = posterior.edges(all=True, detail=True).set_index(["query", "variable"])["partial_correlation_averaged"]
    shown = ax.images[0].get_array().filled(np.nan)
    for i, query in enumerate(posterior.query):
        for k, name in enumerate(names):
            pair = (query, name) if (query, name) in every.index else (name, query)
            assert shown[i, k] == every[pair] if query != name else np.isnan(shown[i, k])
    chosen = posterior.selected()[names].stack()
    assert marked(ax, posterior.query, names) == set(chosen.index[chosen])
    assert len(names) == 7


def test_the_heat_map_of_a_whole_network_is_symmetric():
    posterior = whole_network(12, 20)
    ax = plots.heatmap(posterior, most=8)
    names = [label.get_text() for label in ax.get_xticklabels()]
    assert names == [label.get_text() for label in ax.get_yticklabels()]
    assert len(names) == 8
    shown = ax.images[0].get_array().filled(np.nan)
    np.testing.assert_array_equal(shown, shown.T)
    pairs = {frozenset(pair) for pair in marked(ax, names, names)}
    edges = posterior.edges()
    ends = [frozenset(pair) for pair in zip(edges["query"], edges["variable"], strict=True)]
    assert pairs == {pair for pair in ends if pair <= set(names)}


def test_all_figures_of_a_whole_network_are_drawn():
    posterior = whole_network(12, 20)
    edges = posterior.edges()
    intervals = [line for line in plots.forest(posterior, most=5).lines if "~" in str(line.get_gid())]
    assert [line.get_gid() for line in intervals] == [
        f"{e.query}~{e.variable}" for e in edges.head(5).itertuples()
    ]
    assert sum(len(line.get_xdata()) for line in plots.sign_curve(posterior).lines) == 12 * 11 / 2
    assert len(plots.explained(posterior).lines[0].get_xdata()) == 12
    plots.edge(posterior, *edges.loc[0, ["query", "variable"]])
    plots.convergence(posterior)


def test_explained_variances_are_those_of_the_table(posterior):
    table, ax = posterior.r2(0.9), plots.explained(posterior, 0.9)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), table["mean"])
    ends = np.array([segment[:, 0] for segment in ax.collections[0].get_segments()])
    np.testing.assert_allclose(ends, table[["lower", "upper"]])


def test_checks_outside_the_band_are_crossed():
    rows = [("a", "spread", 1.0, 0.5, 1.5), ("a", "tails", 9.0, 2.0, 4.0), ("b", "tails", 1.9, 2.0, 4.0)]
    table = pd.DataFrame(rows, columns=["query", "check", "observed", "lower", "upper"])
    inside, outside = plots.checks(table).lines
    assert inside.get_ydata().tolist() == [2]
    assert outside.get_ydata().tolist() == [1, 0]
    assert outside.get_xdata().tolist() == pytest.approx([3.0, -1.1])


def test_an_edge_is_shown_by_density_trace_and_autocorrelation(posterior):
    edge = posterior.edges().iloc[0]
    first, second, third = plots.edge(posterior, edge["query"], edge["variable"])
    name = f"{edge['query']}~{edge['variable']}"
    draws = posterior.contrast(name, of="partial_correlation").values
    assert draws[draws != 0].mean() == pytest.approx(edge["partial_correlation"])
    x, y = first.lines[0].get_data()
    assert np.trapezoid(y, x) == pytest.approx(np.mean(draws != 0), abs=0.06)
    for line, chain in zip(second.lines, draws, strict=True):
        np.testing.assert_array_equal(line.get_ydata(), chain)
    assert all(line.get_ydata()[0] == pytest.approx(1.0) for line in third.lines)


def test_a_density_says_how_much_is_exactly_zero():
    ax = plots.density(np.array([[0.0, 0.0, 1.0, 2.0]]))
    assert [text.get_text() for text in ax.texts] == ["50% exactly 0"]
    ax = plots.density(np.zeros((2, 5)))
    assert [text.get_text() for text in ax.texts] == ["100% exactly 0"]


def test_autocorrelations_of_known_series():
    rng = np.random.default_rng(0)
    x = np.zeros(20_000)
    for k in range(1, len(x)):
        x[k] = 0.7 * x[k - 1] + rng.standard_normal()
    np.testing.assert_allclose(autocorrelations(x, 5), 0.7 ** np.arange(5), atol=0.05)
    assert autocorrelations(np.ones(10), 4).tolist() == [1.0, 0.0, 0.0, 0.0]


def test_what_has_not_converged_is_crossed(posterior):
    table, (rhat, _) = posterior.diagnostics().table, plots.convergence(posterior)
    line, good, bad = rhat.lines
    assert line.get_xdata()[0] == 1.01
    assert len(good.get_xdata()) == (table["rhat"] <= 1.01).sum()
    assert len(bad.get_xdata()) == (table["rhat"] > 1.01).sum() > 0
