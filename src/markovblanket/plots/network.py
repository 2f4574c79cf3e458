"""Drawings of networks: query variables red, the sign of an edge by colour and line style, its size by width."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
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


def blanket(
    posterior: Posterior,
    level: float | None = None,
    *,
    fdr: float | None = None,
    inclusion: float | None = None,
    most: int = 500,
    ax: Axes | None = None,
) -> Axes:
    """Draw the selected edges as a network.

    Parameters
    ----------
    posterior : Posterior
        The fitted model.
    level, fdr, inclusion : float, optional
        The rule that selects edges, as in :meth:`Posterior.edges`.
    most : int
        Draw at most so many edges, the surest; if there are more, the title says so.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a figure as large as the network needs.

    Returns
    -------
    matplotlib.axes.Axes
        The drawing, with a line per edge whose gid is ``"query~variable"``.
    """
    edges = posterior.edges(level, fdr=fdr, inclusion=inclusion)
    inner = posterior.query_edges(level, fdr=fdr).rename(columns={"other": "variable"})
    ax = network(posterior.query, edges.head(most), inner, ax=ax)
    if len(edges) > most:
        ax.set_title(f"the surest {most:,} of {len(edges):,} edges", fontsize=10)
    return ax


def network(
    query: Sequence[Any], edges: pd.DataFrame, inner: pd.DataFrame | None = None, *, ax: Axes | None = None
) -> Axes:
    """Draw edges given by columns ``query``, ``variable``, and ``partial_correlation`` or ``weight``.

    Parameters
    ----------
    query : sequence
        The query variables, all of which are drawn.
    edges, inner : pandas.DataFrame
        Edges between query and rest, and among the query variables.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a figure as large as the network needs.

    Returns
    -------
    matplotlib.axes.Axes
        The drawing, with a line per edge whose gid is ``"query~variable"``.
    """
    where, boxes = positions(query, edges)
    every = pd.concat([edges, inner]) if inner is not None and len(inner) else edges
    return drawn(where, boxes, every, set(query), ax)


def drawn(
    where: dict[Any, Array],
    boxes: dict[Any, tuple[float, float]],
    edges: pd.DataFrame,
    red: set[Any],
    ax: Axes | None,
) -> Axes:
    """Draw nodes at given positions and the edges between them; names in ``red`` are query variables."""
    ax = _axes(where, boxes) if ax is None else ax
    scale = _fitted(ax, where, boxes)
    for edge, size in zip(edges.itertuples(), _strength(edges), strict=True):
        _line(ax, where[edge.query], where[edge.variable], f"{edge.query}~{edge.variable}", size, scale)
    for name, centre in where.items():
        _node(ax, name, centre, boxes[name], name in red, scale)
    _legend(ax, scale, bool(red))
    return ax


def positions(
    query: Sequence[Any], edges: pd.DataFrame
) -> tuple[dict[Any, Array], dict[Any, tuple[float, float]]]:
    """Return the centre and the size of the box of each node, in inches."""
    neighbours = edges.groupby("variable", sort=False)["query"].agg(list).to_dict()
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


def _strength(edges: pd.DataFrame) -> Array:
    """Return the relative sizes of the weights, at most 1, with the signs of the partial correlations."""
    column = edges["partial_correlation"] if "partial_correlation" in edges else -edges["weight"]
    size = np.abs(edges.get("weight", column)).to_numpy(dtype=float)
    return np.sign(column.to_numpy(dtype=float)) * size / max(size.max(initial=0.0), np.finfo(float).tiny)


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


def _line(ax: Axes, start: Array, end: Array, name: str, strength: float, scale: float) -> None:
    """Draw one edge, its width in proportion to its strength."""
    width = (0.9 + 3.6 * abs(strength)) * scale
    ax.plot(*np.transpose([start, end]), lw=width, gid=name, zorder=1, solid_capstyle="butt", **_style(strength))


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


def _legend(ax: Axes, scale: float, red: bool) -> None:
    """Draw the legend of the signs and, if some nodes are red, of the query variables."""
    lines = [
        Line2D([], [], lw=2.2 * scale, label=label, **_style(sign))
        for label, sign in (("positive partial correlation", 1.0), ("negative", -1.0))
    ]
    query = [Line2D([], [], marker="s", ls="", color=QUERY, markersize=8 * scale, label="query")] if red else []
    ax.legend(
        handles=[*query, *lines], loc="lower center", ncols=3, frameon=False, fontsize=8 * scale, borderaxespad=0.1
    )
