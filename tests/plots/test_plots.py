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
    edges, inner = posterior.edges(), posterior.query_edges()
    assert len(edges) > 2
    lines = {line.get_gid(): line for line in plots.blanket(posterior).lines}
    pairs = [
        *zip(edges["query"], edges["variable"], strict=True),
        *zip(inner["query"], inner["other"], strict=True),
    ]
    assert set(lines) == {f"{a}~{b}" for a, b in pairs}
    for edge in edges.itertuples():
        positive = same_color(lines[f"{edge.query}~{edge.variable}"].get_color(), POSITIVE)
        assert positive == (edge.partial_correlation > 0)


def test_of_many_edges_the_surest_are_drawn_and_the_title_says_so(posterior):
    ax, edges = plots.blanket(posterior, most=2), posterior.edges()
    drawn = {line.get_gid() for line in ax.lines}
    assert drawn >= {f"{edge.query}~{edge.variable}" for edge in edges.head(2).itertuples()}
    assert f"of {len(edges)}" in ax.get_title()


def test_the_forest_has_a_row_per_edge_with_its_interval(posterior):
    edges, ax = posterior.edges(0.8), plots.forest(posterior, 0.8)
    drawn = {line.get_gid(): line for line in ax.lines if "~" in str(line.get_gid())}
    assert len(drawn) == len(edges)
    for edge in edges.itertuples():
        line = drawn[f"{edge.query}~{edge.variable}"]
        np.testing.assert_array_equal(line.get_xdata(), [edge.lower, edge.upper])
        assert same_color(line.get_color(), POSITIVE if edge.weight < 0 else NEGATIVE)
    heights = [drawn[f"{edge.query}~{edge.variable}"].get_ydata()[0] for edge in edges.itertuples()]
    assert heights == sorted(heights, reverse=True)  # the surest on top


def test_the_curve_falls_and_its_filled_part_is_the_selection(posterior):
    chosen, others = plots.sign_curve(posterior).lines
    assert len(chosen.get_xdata()) == len(posterior.edges())
    assert len(chosen.get_xdata()) + len(others.get_xdata()) == 36
    points = sorted([*zip(*chosen.get_data(), strict=True), *zip(*others.get_data(), strict=True)])
    assert (np.diff([probability for _, probability in points]) <= 0).all()


def test_the_heat_map_shows_mean_weights_and_marks_the_selected(posterior):
    ax = plots.heatmap(posterior, most=5)
    names = [label.get_text() for label in ax.get_xticklabels()]
    every = posterior.edges(all=True).pivot(index="query", columns="variable", values="weight")
    np.testing.assert_array_equal(ax.images[0].get_array(), every.loc[posterior.query, names].to_numpy())
    x, y = ax.lines[0].get_data()
    marked = {(posterior.query[int(i)], names[int(j)]) for i, j in zip(y, x, strict=True)}
    edges = posterior.edges()
    assert marked == {pair for pair in zip(edges["query"], edges["variable"], strict=True) if pair[1] in names}


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
    draws = posterior.edge_draws(edge["query"], edge["variable"]).values
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
