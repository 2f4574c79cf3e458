"""A drawing of a whole network: the edges of a scan, one connected component beside the other."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import networkx as nx
import numpy as np
from matplotlib.axes import Axes

from markovblanket.contracts import Array
from markovblanket.fitting.scan import Scan
from markovblanket.plots import layout
from markovblanket.plots.network import box, drawn

# Median length of an edge, and distance between connected components, in inches.
EDGE_LENGTH = 1.1
COMPONENT_SPACING = 0.4


def whole(scan: Scan, rule: str = "or", *, most: int = 500, ax: Axes | None = None) -> Axes:
    """Draw the edges of a scan as one network.

    Parameters
    ----------
    scan : Scan
        The fits of a scan.
    rule : str
        Which edges to draw, as in :meth:`Scan.edges`.
    most : int
        Draw at most so many edges, the surest; if there are more, the title says so.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a figure as large as the network needs.

    Returns
    -------
    matplotlib.axes.Axes
        The drawing, with a line per edge whose gid is ``"query~variable"``. Query variables are red, unless all
        variables were queries; other variables without an edge are left out.
    """
    every = scan.edges(rule)
    edges = every.head(most)
    asked = {name for query in scan.fits["query"] for name in query}
    red = set() if asked >= set(scan.variables) else asked
    graph = nx.Graph()
    graph.add_nodes_from(name for name in scan.variables if name in red)
    graph.add_edges_from(zip(edges["query"], edges["variable"], strict=True))
    boxes = {name: box(name, name in red) for name in graph}
    ax = drawn(placed(graph, boxes), boxes, edges, red, ax)
    if len(every) > most:
        ax.set_title(f"the surest {most:,} of {len(every):,} edges", fontsize=10)
    return ax


def placed(graph: nx.Graph, boxes: Mapping[Any, tuple[float, float]]) -> dict[Any, Array]:
    """Return the centre of the box of each node: connected components in rows, the largest first."""
    components = sorted(nx.connected_components(graph), key=len, reverse=True)
    found = [component(graph.subgraph(sorted(names, key=list(graph).index)), boxes) for names in components]
    sizes = np.array([extent(where, boxes) for where in found]).reshape(-1, 2) + COMPONENT_SPACING
    width = max(sizes[:, 0].max(initial=0.0), 1.6 * math.sqrt(sizes.prod(axis=1).sum()))
    corner, height = np.zeros(2), 0.0
    out: dict[Any, Array] = {}
    for where, size in zip(found, sizes, strict=True):
        if corner[0] and corner[0] + size[0] > width:
            corner, height = np.array([0.0, corner[1] - height]), 0.0
        middle = corner + np.array([size[0], -size[1]]) / 2
        out |= {name: centre + middle for name, centre in where.items()}
        corner, height = corner + np.array([size[0], 0.0]), max(height, size[1])
    return out


def component(graph: nx.Graph, boxes: Mapping[Any, tuple[float, float]]) -> dict[Any, Array]:
    """Return centres of the nodes of a connected component: springs from a circle, so nothing is random."""
    if len(graph) == 1:
        return {name: np.zeros(2) for name in graph}
    start = nx.circular_layout(graph)
    springs = nx.spring_layout(graph, pos=start, iterations=200, scale=None, k=1 / math.sqrt(len(graph)))
    centre = np.array([springs[name] for name in graph])
    steps = np.array([springs[a] - springs[b] for a, b in graph.edges])
    centre *= EDGE_LENGTH / np.median(np.linalg.norm(steps, axis=1))
    where = layout.apart(dict(zip(graph, centre, strict=True)), boxes)
    low, high = corners(where, boxes)
    return {name: here - (low + high) / 2 for name, here in where.items()}


def corners(where: Mapping[Any, Array], boxes: Mapping[Any, tuple[float, float]]) -> tuple[Array, Array]:
    """Return the lower left and upper right corners of the smallest rectangle that holds all boxes."""
    centre, size = np.array(list(where.values())), np.array([boxes[name] for name in where])
    return (centre - size / 2).min(axis=0), (centre + size / 2).max(axis=0)


def extent(where: Mapping[Any, Array], boxes: Mapping[Any, tuple[float, float]]) -> Array:
    """Return width and height of the smallest rectangle that holds all boxes."""
    low, high = corners(where, boxes)
    return high - low
