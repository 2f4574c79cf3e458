"""The picture of a blanket: every edge is there, with its sign, and no two nodes touch."""

from __future__ import annotations

import matplotlib as mpl
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import same_color

mpl.use("Agg")
from matplotlib import pyplot as plt

from markovblanket.fitting.scan import NUMBERS, Scan
from markovblanket.plots import blanket, layout, network, whole
from markovblanket.plots.layout import corners
from markovblanket.plots.network import box, positions, shown
from markovblanket.plots.style import NEGATIVE, POSITIVE, QUERY
from support.reports import whole_network


@pytest.fixture(autouse=True)
def _closed():
    yield
    plt.close("all")


def some_edges(p, q, count, seed=0):
    """So many edges between p query variables and some of q others, of either sign."""
    rng = np.random.default_rng(seed)
    query = [f"trait {i}" for i in range(p)]
    places = rng.choice(p * q, count, replace=False)
    names = ["G" * int(rng.integers(1, 12)) + str(j) for j in range(q)]
    rows = [(query[k // q], names[k % q], rng.standard_normal()) for k in places]
    return query, pd.DataFrame(rows, columns=["query", "variable", "partial_correlation"])


def overlaps(where, boxes):
    """Pairs of nodes whose boxes share a point."""
    names = list(where)
    centre, size = np.array([where[name] for name in names]), np.array([boxes[name] for name in names])
    near = np.abs(centre[:, None] - centre[None]) < (size[:, None] + size[None]) / 2
    i, j = np.nonzero(np.triu(near.all(axis=2), 1))
    return [(names[a], names[b]) for a, b in zip(i, j, strict=True)]


@pytest.mark.parametrize(
    ("p", "q", "count"), [(1, 1, 1), (1, 60, 40), (2, 9, 12), (7, 40, 150), (7, 1500, 500), (20, 200, 300)]
)
def test_no_two_nodes_touch(p, q, count):
    query, edges = some_edges(p, q, count)
    where, boxes = positions(query, edges)
    assert set(where) == {*query, *edges["variable"]}
    assert overlaps(where, boxes) == []
    assert all(np.isfinite(place).all() for place in where.values())


def test_a_query_without_neighbours_is_drawn_too():
    where, boxes = positions(["a", "b", "c"], some_edges(1, 5, 0)[1])
    assert set(where) == {"a", "b", "c"}
    assert overlaps(where, boxes) == []


def test_own_neighbours_are_nearer_to_their_query_than_to_any_other():
    query, edges = some_edges(5, 400, 60, seed=2)
    alone = edges[~edges["variable"].duplicated(keep=False)]
    where, _ = positions(query, edges)
    for edge in alone.itertuples():
        distance = {name: np.linalg.norm(where[name] - where[edge.variable]) for name in query}
        assert min(distance, key=distance.get) == edge.query


def test_a_shared_neighbour_lies_between():
    boxes = dict.fromkeys(("a", "b", "x", "y"), (0.5, 0.2))
    where = layout.place(["a", "b"], {"x": ["a", "b"], "y": ["a"]}, boxes)
    apart = np.linalg.norm(where["a"] - where["b"])
    assert all(np.linalg.norm(where["x"] - where[name]) < 0.7 * apart for name in "ab")


def test_shared_neighbours_leave_the_line_between_their_queries_free():
    query, shared = ["a", "b", "c"], {"x": ["a", "b"], "y": ["a", "b"], "z": ["b", "c"]}
    boxes = dict.fromkeys((*query, *shared), (0.5, 0.2))
    where = layout.place(query, shared, boxes)
    for name, (one, other) in shared.items():
        line = where[one] + np.linspace(0, 1, 200)[:, None] * (where[other] - where[one])
        assert not (np.abs(line - where[name]) <= np.array(boxes[name]) / 2).all(axis=1).any()


def test_every_edge_is_a_line_of_its_sign_and_width():
    query, edges = some_edges(3, 30, 20, seed=1)
    inner = pd.DataFrame({"query": [query[0]], "variable": [query[1]], "partial_correlation": [0.3]})
    every = pd.concat([inner, edges])
    lines = {line.get_gid(): line for line in network(query, every).lines}
    assert set(lines) == {f"{edge.query}~{edge.variable}" for edge in every.itertuples()}
    for edge in every.itertuples():
        line = lines[f"{edge.query}~{edge.variable}"]
        assert same_color(line.get_color(), POSITIVE if edge.partial_correlation > 0 else NEGATIVE)
        assert (line.get_linestyle() == "-") == (edge.partial_correlation > 0)  # and without colours
    widths = [lines[f"{edge.query}~{edge.variable}"].get_linewidth() for edge in every.itertuples()]
    assert np.argsort(widths).tolist() == np.argsort(every["partial_correlation"].abs()).tolist()


def test_edges_that_are_more_likely_absent_are_pale_and_the_legend_says_so():
    query, edges = some_edges(2, 10, 6)
    labels = [text.get_text() for text in network(query, edges).get_legend().get_texts()]
    assert labels == ["query", "positive partial correlation", "negative"]
    ax = network(query, edges.assign(probability=[0.9, 0.5, 0.49, 0.2, 1.0, np.nan]))
    assert [line.get_alpha() is not None for line in ax.lines] == [False, False, True, True, False, False]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [*labels, "below 50 %"]


def test_an_edge_that_no_draw_has_is_drawn_thin():
    query, edges = some_edges(2, 10, 6)
    edges.loc[2, "partial_correlation"] = np.nan
    widths = [line.get_linewidth() for line in network(query, edges).lines]
    assert np.argmin(widths) == 2


def test_nodes_are_named_and_queries_red():
    query, edges = some_edges(2, 10, 6)
    ax = network(query, edges)
    assert {text.get_text() for text in ax.texts} == {*query, *edges["variable"]}
    red = {patch.get_gid() for patch in ax.patches if same_color(patch.get_facecolor(), QUERY)}
    assert red == set(query)


def test_on_axes_of_any_size_everything_is_inside():
    query, edges = some_edges(4, 50, 30)
    ax = network(query, edges, ax=plt.subplots(figsize=(4, 3))[1])
    (x0, x1), (y0, y1) = ax.get_xlim(), ax.get_ylim()
    for patch in ax.patches:
        box = patch.get_extents().transformed(ax.transData.inverted())
        assert x0 <= box.x0
        assert box.x1 <= x1
        assert y0 <= box.y0
        assert box.y1 <= y1


def test_odd_names_are_text():
    names = ["$x^2$", "<script>alert(1)</script>", "two\nlines", "a" * 200, ""]
    edges = pd.DataFrame({"query": "q", "variable": names, "partial_correlation": 0.5})
    network(["q"], edges).figure.canvas.draw()
    assert shown("$x^2$") == r"\$x^2\$"
    assert len(shown("a" * 200)) == 24
    assert shown("two\nlines") == "two lines"


def test_the_same_edges_give_the_same_picture():
    first, second = (positions(*some_edges(5, 80, 60))[0] for _ in range(2))
    assert all((first[name] == second[name]).all() for name in first)


# Whole networks -----------------------------------------------------------------------------------------


def some_scan(nodes, count, asked=None, seed=0):
    """A scan by hand, of variables v0, v1, ...; all asked for, or only some."""
    rng = np.random.default_rng(seed)
    names = tuple(f"v{k}" for k in range(nodes))
    asked = list(names) if asked is None else asked
    pairs = [(a, b) for k, a in enumerate(names) for b in names[k + 1 :] if a in asked or b in asked]
    chosen = [pairs[k] for k in rng.choice(len(pairs), count, replace=False)]
    seen = pd.DataFrame([(*((a, b) if a in asked else (b, a)),) for a, b in chosen], columns=["query", "variable"])
    seen = seen.assign(fit=0, selected=True, **dict.fromkeys(NUMBERS, 0.9))
    seen["partial_correlation"] = rng.uniform(-0.9, 0.9, count)
    seen["direction"] = np.where(seen["partial_correlation"] > 0, "+", "-")
    return Scan(seen, pd.DataFrame({"query": [(name,) for name in asked], "converged": True}), names)


@pytest.mark.parametrize(("nodes", "count"), [(2, 1), (9, 3), (30, 60), (300, 200), (400, 500)])
def test_of_a_whole_network_no_two_nodes_touch(nodes, count):
    graph = some_scan(nodes, count).graph()
    graph.remove_nodes_from([name for name, degree in list(graph.degree) if not degree])
    boxes = {name: box(name, False) for name in graph}
    where = layout.whole(graph, boxes)
    assert set(where) == set(graph)
    assert overlaps(where, boxes) == []
    assert all(np.isfinite(place).all() for place in where.values())


def test_pieces_that_are_not_connected_do_not_cross():
    graph = nx.union(nx.path_graph(["a", "b", "c"]), nx.cycle_graph(["d", "e", "f", "g"]))
    boxes = {name: box(name, False) for name in graph}
    where = layout.whole(graph, boxes)
    lows_highs = [corners({name: where[name] for name in names}, boxes) for names in ("abc", "defg")]
    (low, high), (other_low, other_high) = lows_highs
    assert (high < other_low).any() or (other_high < low).any()


def test_a_whole_network_has_a_line_per_edge_and_those_asked_for_in_red():
    found = some_scan(12, 14, asked=["v0", "v5", "v9"])
    ax = whole(found)
    edges = found.edges()
    pairs = zip(edges["query"], edges["variable"], strict=True)
    assert [line.get_gid() for line in ax.lines] == [f"{a}~{b}" for a, b in pairs]
    red = {patch.get_gid() for patch in ax.patches if same_color(patch.get_facecolor(), QUERY)}
    assert red == {"v0", "v5", "v9"}
    plain = whole(some_scan(12, 14))
    assert not any(same_color(patch.get_facecolor(), QUERY) for patch in plain.patches)
    labels = [text.get_text() for text in plain.get_legend().get_texts()]
    assert labels == ["positive partial correlation", "negative"]


def test_of_many_edges_the_surest_are_drawn_and_of_none_nothing():
    ax = whole(some_scan(40, 60), most=20)
    assert len(ax.lines) == 20
    assert ax.get_title() == "the surest 20 of 60 edges"
    assert not whole(some_scan(4, 0)).patches


def test_a_whole_network_lies_flat_and_is_the_same_every_time():
    graph = nx.path_graph([f"v{k}" for k in range(12)])
    boxes = {name: box(name, False) for name in graph}
    where = layout.whole(graph, boxes)
    low, high = corners(where, boxes)
    assert (high - low)[0] > (high - low)[1]
    again = layout.whole(graph, boxes)
    assert all((where[name] == again[name]).all() for name in graph)


def test_a_posterior_of_every_variable_is_drawn_as_a_whole_network():
    """Sixty variables: a line per edge of the table, no node red, none for a variable without an edge."""
    posterior = whole_network(60, 90)
    edges, ax = posterior.edges(), blanket(posterior)
    assert len(edges) > 50
    pairs = list(zip(edges["query"], edges["variable"], strict=True))
    assert [line.get_gid() for line in ax.lines] == [f"{a}~{b}" for a, b in pairs]
    assert {patch.get_gid() for patch in ax.patches} == {name for pair in pairs for name in pair}
    assert not any(same_color(patch.get_facecolor(), QUERY) for patch in ax.patches)
    for line, size in zip(ax.lines, edges["partial_correlation"], strict=True):
        assert same_color(line.get_color(), POSITIVE if size > 0 else NEGATIVE)
    widths = [line.get_linewidth() for line in ax.lines]
    assert np.argmax(widths) == np.argmax(edges["partial_correlation"].abs())
