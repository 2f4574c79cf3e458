"""The network as plain SVG, drawn by the template: places and sizes of nodes, at every stage of the slider.

The picture is part of the page, not made by a script, so it is there without one and prints sharp. A script only
hides, shows and moves what is there.
"""

from __future__ import annotations

import unicodedata
from typing import Any

import numpy as np
import pandas as pd

from markovblanket.contracts import Array
from markovblanket.plots import layout
from markovblanket.plots.network import short
from markovblanket.posterior.posterior import Posterior
from markovblanket.report._slider import Share, Slider

INCH = 96.0
FONT = {True: 14.0, False: 12.0}
# Smaller pictures are not blown up: names keep about the size of the text around them.
SMALLEST = (760.0, 400.0)
MARGIN = 14.0
# Of a page at a desk; in a picture that is shrunk to it, names of the query stay legible.
WIDTH = 1100.0


def draw(
    posterior: Posterior, slider: Slider, share: Share | None, edges: pd.DataFrame, inner: pd.DataFrame
) -> dict[str, Any]:
    """Nodes (query first), lines (edges, then those among the query), and where nodes are at every stage."""
    names = [*posterior.query, *dict.fromkeys(edges["variable"])]
    boxes = {name: box(short(name), k < len(posterior.query)) for k, name in enumerate(names)}
    place = {name: k for k, name in enumerate(names)}
    stages, share_stages = (
        [stage(posterior.query, edges[by.shown(edges, at)], at, boxes, place) for at in by.stages()] if by else []
        for by in (slider, share)
    )
    start = max((one for one in stages if one["place"] <= slider.start), key=lambda one: one["place"])
    shown = slider.shown(edges, slider.start)
    lines = pd.concat([edges, inner.rename(columns={"other": "variable"})], ignore_index=True)
    ends = [(place[edge.query], place[edge.variable]) for edge in lines.itertuples()]
    visible = {node for (pair, seen) in zip(ends, shown, strict=False) if seen for node in pair}
    return {
        "nodes": nodes(names, boxes, len(posterior.query), [start, *stages[::-1], *share_stages], visible),
        "lines": [line(*row) for row in zip(ends, strength(lines), [*shown, *[True] * len(inner)], strict=True)],
        "stages": stages,
        "share_stages": share_stages,
        "view": start["view"],
        "grow": round(max(1.0, start["view"][2] / WIDTH), 2),
    }


def stage(
    query: list[Any],
    seen: pd.DataFrame,
    percent: int,
    boxes: dict[Any, tuple[float, float]],
    place: dict[Any, int],
) -> dict[str, Any]:
    """The layout for the edges seen at a place of the slider: where nodes are, and the view around them."""
    neighbours = seen.groupby("variable", sort=False)["query"].agg(list).to_dict()
    where = layout.place(query, neighbours, boxes)
    centre = {place[name]: INCH * np.array([x, -y]) for name, (x, y) in where.items()}
    size = INCH * np.array([boxes[name] for name in where])
    at = {str(k): [round(float(x), 1), round(float(y), 1)] for k, (x, y) in centre.items()}
    return {"place": percent, "at": at, "view": view(np.array(list(centre.values())), size)}


def view(centre: Array, size: Array) -> list[float]:
    """Left, top, width and height of what holds all boxes."""
    low, high = (centre - size / 2).min(axis=0) - MARGIN, (centre + size / 2).max(axis=0) + MARGIN
    whole = np.maximum(high - low, SMALLEST)
    corner = (low + high - whole) / 2
    return [round(float(value), 1) for value in (*corner, *whole)]


def nodes(
    names: list[Any],
    boxes: dict[Any, tuple[float, float]],
    p: int,
    stages: list[dict[str, Any]],
    visible: set[int],
) -> list[dict[str, Any]]:
    """Where each stands at the first stage, that of the start; those that come later, where they first will."""
    found = []
    for k, name in enumerate(names):
        x, y = next(one["at"][str(k)] for one in stages if str(k) in one["at"])
        w, h = (round(INCH * side, 1) for side in boxes[name])
        known = {"number": k, "name": str(name), "short": short(name), "query": k < p}
        found.append(known | {"out": k >= p and k not in visible, "x": x, "y": y, "w": w, "h": h})
    return found


def line(ends: tuple[int, int], strength: float, shown: bool) -> dict[str, Any]:
    """From node to node; the sign is that of the partial correlation."""
    return {"ends": ends, "positive": strength > 0, "width": round(1.2 + 4.5 * abs(strength), 2), "out": not shown}


def strength(edges: pd.DataFrame) -> Array:
    """The size of weights against the largest, with the sign of the partial correlation."""
    weight = edges["weight"].to_numpy(dtype=float)
    return -weight / max(float(np.abs(weight).max(initial=0.0)), np.finfo(float).tiny)


def box(text: str, is_query: bool) -> tuple[float, float]:
    """Width and height in inches; readers have fonts of their own, so letters are counted, wide ones twice."""
    wide = sum(1.7 if unicodedata.east_asian_width(letter) in "WF" else 1.0 for letter in text)
    em = FONT[is_query] / INCH
    return (0.7 if is_query else 0.61) * em * wide + 14 / INCH, 1.65 * em
