"""Draws ``demo.png``: the demo's true network and the blanket that is found in 300 rows of it."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import networkx as nx
import numpy as np
import pandas as pd
from matplotlib.lines import Line2D

mpl.use("Agg")
from matplotlib import pyplot as plt

from markovblanket import estimate
from markovblanket.demo import clinic

RED, BLUE, ORANGE = "#c1272d", "#0b5394", "#e08214"


def graph_of(edges: pd.DataFrame, query: list[str]) -> nx.Graph:
    graph = nx.Graph()
    graph.add_nodes_from(query)
    for edge in edges.itertuples():
        graph.add_edge(edge.query, edge.variable, partial=edge.partial_correlation)
    return graph


def layout(graph: nx.Graph, query: list[str]) -> dict[str, np.ndarray]:
    """Queries on a circle, each in a sector as wide as it has neighbours of its own, those fanned out behind."""
    own = {name: sorted(v for v in graph[name] if graph.degree(v) == 1 and v not in query) for name in query}
    width = np.array([len(own[name]) + 1.5 for name in query])
    ends = 2 * np.pi * np.cumsum(width) / width.sum()
    where = {}
    for name, end, share in zip(query, ends, 2 * np.pi * width / width.sum(), strict=True):
        middle, slots = end - share / 2, np.linspace(end - share, end, len(own[name]) + 2)[1:-1]
        where[name] = 1.1 * np.array([np.cos(middle), np.sin(middle)])
        where |= {
            v: (2.0 + 0.3 * (k % 2)) * np.array([np.cos(a), np.sin(a)])
            for k, (v, a) in enumerate(zip(own[name], slots, strict=True))
        }
    for v in set(graph) - set(where):
        where[v] = 0.35 * np.mean([where[u] for u in graph[v]], axis=0)
    return where


def draw(axes: plt.Axes, graph: nx.Graph, where: dict, query: list[str], truth: nx.Graph, title: str) -> None:
    for u, v, partial in graph.edges(data="partial"):
        style = {"color": BLUE, "ls": "-"} if partial > 0 else {"color": ORANGE, "ls": (0, (4, 1.5))}
        if not truth.has_edge(u, v):
            style = {"color": "0.55", "ls": ":"}
        axes.plot(*np.transpose([where[u], where[v]]), lw=1 + 9 * abs(partial), zorder=1, **style)
    for name in where:
        if name in query or graph.has_node(name):
            face, edge = (RED, RED) if name in query else ("white", "0.2")
            axes.scatter(*where[name], s=330 if name in query else 70, color=face, edgecolor=edge, zorder=2)
            shift = -0.2 if name in query else -0.15
            axes.annotate(
                name.replace("_", " " if name in query else "_"),
                where[name] + [0, shift],
                ha="center",
                va="top",
                fontsize=10 if name in query else 7,
                fontweight="bold" if name in query else None,
                zorder=3,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 0.3},
            )
    axes.set_title(title, fontsize=12)
    axes.set(xlim=(-2.6, 2.6), ylim=(-2.6, 2.5), aspect="equal")
    axes.axis("off")


def main() -> None:
    data = clinic()
    posterior = estimate(data.table, data.query, warmup=500, draws=1000, seed=1, n_jobs=2)
    truth, found = (graph_of(edges, data.query) for edges in (data.truth.query("edge"), posterior.edges()))
    where = layout(nx.compose(truth, found), data.query)
    figure, (left, right) = plt.subplots(1, 2, figsize=(12, 6.6))
    draw(left, truth, where, data.query, truth, f"the truth: {truth.number_of_edges()} edges to 120 genes")
    correct = sum(truth.has_edge(*edge) for edge in found.edges)
    title = f"found in 300 rows: {correct} of them, and {found.number_of_edges() - correct} false"
    draw(right, found, where, data.query, truth, title)
    lines = [("positive", BLUE, "-"), ("negative", ORANGE, "--"), ("false", "0.55", ":")]
    handles = [Line2D([], [], color=color, ls=style, lw=2.5, label=label) for label, color, style in lines]
    handles.append(Line2D([], [], marker="o", ls="", color=RED, markersize=11, label="query variable"))
    figure.legend(handles=handles, loc="lower center", ncols=4, frameon=False, fontsize=10)
    figure.tight_layout(rect=(0, 0.05, 1, 0.98))
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=110)


if __name__ == "__main__":
    main()
