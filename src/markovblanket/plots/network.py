"""The blanket as a picture: query variables red, the sign of an edge by colour and line, its strength by width."""

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

INCH = 72.0
PAD = 0.07
LONGEST = 24


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
        What was found.
    level, fdr, inclusion : float, optional
        The rule, as in :meth:`Posterior.edges`.
    most : int
        Of more edges than this, the surest; the title says so.
    ax : matplotlib.axes.Axes, optional
        Where to draw; by default on a figure as large as the network needs.

    Returns
    -------
    matplotlib.axes.Axes
        With a line per edge, whose gid is ``"query~variable"``.
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
    """Draw any edges: columns ``query``, ``variable``, and ``partial_correlation`` or ``weight`` for the sign.

    Parameters
    ----------
    query : sequence
        The query variables, all of which are drawn.
    edges, inner : pandas.DataFrame
        Edges between query and rest, and among the query variables.
    ax : matplotlib.axes.Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib.axes.Axes
        The picture.
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
    """Lines and boxes where they belong."""
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
    """The place and the size of every node's box, in inches at full size."""
    neighbours = edges.groupby("variable", sort=False)["query"].agg(list).to_dict()
    boxes = {name: box(name, True) for name in query} | {name: box(name, False) for name in neighbours}
    return layout.place(list(query), neighbours, boxes), boxes


def short(name: Any) -> str:
    """A name on one line; too long a one is cut in its middle."""
    text = " ".join(str(name).split()) or '""'
    return text if len(text) <= LONGEST else f"{text[: LONGEST // 2]}…{text[-LONGEST // 2 + 1 :]}"


def shown(name: Any) -> str:
    """A name as matplotlib draws it: short, and dollars are no mathematics."""
    return short(name).replace("$", r"\$")


def _font(is_query: bool, scale: float = 1.0) -> FontProperties:
    return FontProperties(size=(10 if is_query else 8) * scale, weight="bold" if is_query else "normal")


def box(name: Any, is_query: bool) -> tuple[float, float]:
    """Width and height of a name with its padding, in inches."""
    font = _font(is_query)
    width = TextPath((0, 0), shown(name), prop=font).get_extents().width
    return width / INCH + 2 * PAD, font.get_size_in_points() * 1.2 / INCH + PAD


def _strength(edges: pd.DataFrame) -> Array:
    """Signed, the largest 1 in size: the partial correlation's sign, which is minus that of the weight."""
    column = edges["partial_correlation"] if "partial_correlation" in edges else -edges["weight"]
    size = np.abs(edges.get("weight", column)).to_numpy(dtype=float)
    return np.sign(column.to_numpy(dtype=float)) * size / max(size.max(initial=0.0), np.finfo(float).tiny)


def _extent(where: dict[Any, Array], boxes: dict[Any, tuple[float, float]]) -> tuple[Array, Array]:
    """The corners of the picture, with a margin, and room for the legend below."""
    if not where:
        return np.array([-2.5, -1.25]), np.array([2.5, 0.9])
    centre, size = np.array(list(where.values())), np.array([boxes[name] for name in where])
    low, high = (centre - size / 2).min(axis=0), (centre + size / 2).max(axis=0)
    middle, half = (low + high) / 2, np.maximum((high - low) / 2, [2.4, 0.8])
    return middle - half - [0.1, 0.45], middle + half + 0.1


def _axes(where: dict[Any, Array], boxes: dict[Any, tuple[float, float]]) -> Axes:
    """A figure of the network's own size, up to a wall poster."""
    low, high = _extent(where, boxes)
    figure = plt.figure(figsize=tuple((high - low) * min(1.0, 40 / (high - low).max())))
    return figure.add_axes((0.0, 0.0, 1.0, 1.0))


def _fitted(ax: Axes, where: dict[Any, Array], boxes: dict[Any, tuple[float, float]]) -> float:
    """Limits that show everything, and by how much it is scaled: letters shrink with the boxes."""
    low, high = _extent(where, boxes)
    ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), aspect="equal")
    ax.axis("off")
    room = ax.get_window_extent().transformed(ax.figure.dpi_scale_trans.inverted())
    return float(min(room.width / (high[0] - low[0]), room.height / (high[1] - low[1])))


def _style(strength: float) -> dict[str, Any]:
    """Colour, and for those who do not see it, the line."""
    return {"color": POSITIVE, "ls": "-"} if strength > 0 else {"color": NEGATIVE, "ls": (0, (3.5, 1.3))}


def _line(ax: Axes, start: Array, end: Array, name: str, strength: float, scale: float) -> None:
    width = (0.9 + 3.6 * abs(strength)) * scale
    ax.plot(*np.transpose([start, end]), lw=width, gid=name, zorder=1, solid_capstyle="butt", **_style(strength))


def _node(ax: Axes, name: Any, centre: Array, box: tuple[float, float], is_query: bool, scale: float) -> None:
    face, line, letters = (QUERY, QUERY, "white") if is_query else ("white", "0.35", "black")
    corner = (centre[0] - box[0] / 2, centre[1] - box[1] / 2)
    rounded = f"round,pad=0,rounding_size={0.35 * box[1]}"
    ax.add_patch(
        FancyBboxPatch(corner, *box, boxstyle=rounded, fc=face, ec=line, lw=0.7 * scale, zorder=2, gid=str(name))
    )
    place: dict[str, Any] = {"ha": "center", "va": "center_baseline", "zorder": 3}
    ax.text(centre[0], centre[1], shown(name), color=letters, fontproperties=_font(is_query, scale), **place)


def _legend(ax: Axes, scale: float, red: bool) -> None:
    lines = [
        Line2D([], [], lw=2.2 * scale, label=label, **_style(sign))
        for label, sign in (("positive partial correlation", 1.0), ("negative", -1.0))
    ]
    query = [Line2D([], [], marker="s", ls="", color=QUERY, markersize=8 * scale, label="query")] if red else []
    ax.legend(
        handles=[*query, *lines], loc="lower center", ncols=3, frameon=False, fontsize=8 * scale, borderaxespad=0.1
    )
