"""Drawings of networks: query variables red, the sign of an edge by colour and line style, its size by width.

The size of an edge is the absolute value of its partial correlation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch
from matplotlib.textpath import TextPath

from markovblanket.contracts import Array
from markovblanket.plots import layout
from markovblanket.plots.style import NEGATIVE, POSITIVE, QUERY
from markovblanket.posterior.posterior import Posterior

POINTS_PER_INCH = 72.0
# Space around a name within its box, in inches.
BOX_PADDING = 0.07
# A label shows at most so many characters of a name.
LONGEST_LABEL = 24
# Edges less probable than this are more likely absent than present; they are drawn with this opacity.
TENTATIVE_BELOW, PALE = 0.5, 0.4


def blanket(
    posterior: Posterior,
    probability: float | None = None,
    *,
    fdr: float | None = None,
    level: float | None = None,
    most: int = 500,
    ax: Axes | None = None,
) -> Axes:
    """Draw the selected edges as a network.

    Parameters
    ----------
    posterior : Posterior
        The fitted model.
    probability, fdr, level : float, optional
        The rule that selects edges, as in :meth:`Posterior.edges`.
    most : int
        Draw at most so many edges, the surest; if there are more, the title says so.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a figure as large as the network needs.

    Returns
    -------
    matplotlib.axes.Axes
        The drawing, with a line per edge whose gid is ``"query~variable"``. Query variables are red; in a whole
        network no variable is, and those without an edge are left out.
    """
    edges = posterior.edges(probability, fdr=fdr, level=level)
    draw, red = (network, posterior.query) if posterior.variables else (springs, [])
    return say_how_many(draw(red, edges.head(most), ax=ax), len(edges), most)


def network(query: Sequence[Any], edges: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw edges given by columns ``query``, ``variable`` and ``partial_correlation``.

    Parameters
    ----------
    query : sequence
        The query variables, all of which are drawn.
    edges : pandas.DataFrame
        Edges between query and rest, and among the query variables. Those whose ``probability``, if there is such
        a column, is below 1/2 are drawn paler.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a figure as large as the network needs.

    Returns
    -------
    matplotlib.axes.Axes
        The drawing, with a line per edge whose gid is ``"query~variable"``.
    """
    where, boxes = positions(query, edges)
    return drawn(where, boxes, edges, set(query), ax)


def springs(red: Sequence[Any], edges: pd.DataFrame, *, ax: Axes | None = None) -> Axes:
    """Draw edges between any variables, held together by springs; names in ``red`` are query variables."""
    graph = nx.Graph()
    graph.add_nodes_from(red)
    graph.add_edges_from(zip(edges["query"], edges["variable"], strict=True))
    boxes = {name: box(name, name in red) for name in graph}
    return drawn(layout.whole(graph, boxes), boxes, edges, set(red), ax)


def say_how_many(ax: Axes, count: int, most: int) -> Axes:
    """Say in the title that only the surest edges are drawn, if there are more than that; and return the axes."""
    if count > most:
        ax.set_title(f"the surest {most:,} of {count:,} edges", fontsize=10)
    return ax


def drawn(
    where: dict[Any, Array],
    boxes: dict[Any, tuple[float, float]],
    edges: pd.DataFrame,
    red: set[Any],
    ax: Axes | None,
) -> Axes:
    """Draw nodes at given positions and the edges between them; names in ``red`` are query variables."""
    ax = _axes(where, boxes) if ax is None else ax
    scale, unsure = _fitted(ax, where, boxes), tentative(edges)
    for edge, size, pale in zip(edges.itertuples(), strength(edges), unsure, strict=True):
        _line(ax, where[edge.query], where[edge.variable], f"{edge.query}~{edge.variable}", size, scale, pale)
    for name, centre in where.items():
        _node(ax, name, centre, boxes[name], name in red, scale)
    _legend(ax, scale, bool(red), bool(unsure.any()))
    return ax


def positions(
    query: Sequence[Any], edges: pd.DataFrame
) -> tuple[dict[Any, Array], dict[Any, tuple[float, float]]]:
    """Return the centre and the size of the box of each node, in inches."""
    outside = edges[~edges["variable"].isin(list(query))]
    neighbours = outside.groupby("variable", sort=False)["query"].agg(list).to_dict()
    boxes = {name: box(name, True) for name in query} | {name: box(name, False) for name in neighbours}
    return layout.place(list(query), neighbours, boxes), boxes


def short(name: Any) -> str:
    """Return a name on one line, its middle left out if it is too long."""
    text = " ".join(str(name).split()) or '""'
    return (
        text if len(text) <= LONGEST_LABEL else f"{text[: LONGEST_LABEL // 2]}…{text[-LONGEST_LABEL // 2 + 1 :]}"
    )


def shown(name: Any) -> str:
    """Return a short name for matplotlib, dollar signs escaped: they would begin mathematics."""
    return short(name).replace("$", r"\$")


def _font(is_query: bool, scale: float = 1.0) -> FontProperties:
    """Return the font of a node's label; larger and bold for a query variable."""
    return FontProperties(size=(10 if is_query else 8) * scale, weight="bold" if is_query else "normal")


def box(name: Any, is_query: bool) -> tuple[float, float]:
    """Return width and height of the box around a name, in inches."""
    font = _font(is_query)
    width = TextPath((0, 0), shown(name), prop=font).get_extents().width
    return (
        width / POINTS_PER_INCH + 2 * BOX_PADDING,
        font.get_size_in_points() * 1.2 / POINTS_PER_INCH + BOX_PADDING,
    )


def strength(edges: pd.DataFrame) -> Array:
    """Return the partial correlations relative to the largest, between -1 and 1."""
    partial = np.nan_to_num(edges["partial_correlation"].to_numpy(dtype=float))
    return partial / max(float(np.abs(partial).max(initial=0.0)), np.finfo(float).tiny)


def tentative(edges: pd.DataFrame) -> npt.NDArray[np.bool_]:
    """Return which edges are more likely absent than present; none where the probability is not known."""
    known = edges.get("probability", pd.Series(np.nan, index=edges.index))
    return np.asarray(known.to_numpy(dtype=float) < TENTATIVE_BELOW)


def _extent(where: dict[Any, Array], boxes: dict[Any, tuple[float, float]]) -> tuple[Array, Array]:
    """Return lower left and upper right corners of the drawing, with a margin and space for the legend."""
    if not where:
        return np.array([-2.5, -1.25]), np.array([2.5, 0.9])
    centre, size = np.array(list(where.values())), np.array([boxes[name] for name in where])
    low, high = (centre - size / 2).min(axis=0), (centre + size / 2).max(axis=0)
    middle, half = (low + high) / 2, np.maximum((high - low) / 2, [2.4, 0.8])
    return middle - half - [0.1, 0.45], middle + half + 0.1


def _axes(where: dict[Any, Array], boxes: dict[Any, tuple[float, float]]) -> Axes:
    """Make a figure as large as the network needs, at most 40 inches wide and high."""
    low, high = _extent(where, boxes)
    figure = plt.figure(figsize=tuple((high - low) * min(1.0, 40 / (high - low).max())))
    return figure.add_axes((0.0, 0.0, 1.0, 1.0))


def _fitted(ax: Axes, where: dict[Any, Array], boxes: dict[Any, tuple[float, float]]) -> float:
    """Set limits that show all nodes; return the factor by which boxes, and so letters, are scaled."""
    low, high = _extent(where, boxes)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    ax.axis("off")
    space = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    return float(min(space.width / (high[0] - low[0]), space.height / (high[1] - low[1])))


def _style(strength: float) -> dict[str, Any]:
    """Return colour and line style of a sign; the style tells it without colours."""
    return {"color": POSITIVE, "ls": "-"} if strength > 0 else {"color": NEGATIVE, "ls": (0, (3.5, 1.3))}


def _line(ax: Axes, start: Array, end: Array, name: str, strength: float, scale: float, pale: bool) -> None:
    """Draw one edge, its width in proportion to its strength."""
    style = {"lw": (0.9 + 3.6 * abs(strength)) * scale, "alpha": PALE if pale else None, **_style(strength)}
    ax.plot(*np.transpose([start, end]), gid=name, zorder=1, solid_capstyle="butt", **style)


def _node(ax: Axes, name: Any, centre: Array, box: tuple[float, float], is_query: bool, scale: float) -> None:
    """Draw one node: a rounded box with its name."""
    face, line, letters = (QUERY, QUERY, "white") if is_query else ("white", "0.35", "black")
    corner = (centre[0] - box[0] / 2, centre[1] - box[1] / 2)
    rounded = f"round,pad=0,rounding_size={0.35 * box[1]}"
    ax.add_patch(
        FancyBboxPatch(corner, *box, boxstyle=rounded, fc=face, ec=line, lw=0.7 * scale, zorder=2, gid=str(name))
    )
    place: dict[str, Any] = {"ha": "center", "va": "center_baseline", "zorder": 3}
    ax.text(centre[0], centre[1], shown(name), color=letters, fontproperties=_font(is_query, scale), **place)


def _legend(ax: Axes, scale: float, red: bool, pale: bool) -> None:
    """Draw the legend of the signs and, if there are some, of the query variables and of pale lines."""
    lines = [
        Line2D([], [], lw=2.2 * scale, label=label, **_style(sign))
        for label, sign in (("positive partial correlation", 1.0), ("negative", -1.0))
    ]
    query = [Line2D([], [], marker="s", ls="", color=QUERY, markersize=8 * scale, label="query")] if red else []
    unsure = [Line2D([], [], lw=2.2 * scale, label="below 50 %", **_style(1.0), alpha=PALE)] if pale else []
    place: dict[str, Any] = {"loc": "lower center", "ncols": 4, "borderaxespad": 0.1, "columnspacing": 1.2}
    ax.legend(handles=[*query, *lines, *unsure], frameon=False, fontsize=8 * scale, **place)
