"""Which edges are on the page, where its slider starts and ends, and the picture of the network at its places.

The slider moves in whole per cent and has two meanings, between which a reader chooses. It is the least
probability of inclusion (the credibility level if the prior has no exact zeros), or the largest expected false
discovery rate. At every place the page shows the rows of ``edges(inclusion=...)`` or ``edges(level=...)``, or else
of ``edges(fdr=...)``.

The picture has nodes, lines, and a layout for each stage: a place of the slider at which nodes are moved, because
many edges appear or disappear between two stages.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from markovblanket.contracts import Array
from markovblanket.plots import layout
from markovblanket.plots.network import short
from markovblanket.posterior import selection
from markovblanket.posterior.posterior import Posterior

# More edges would make the page slow; the slider ends where there would be more.
MOST_EDGES_ON_PAGE = 2000
# The last place of the slider for the probability of inclusion or the credibility level, in per cent.
LAST_PLACE = 99
# The last place and the start of the slider for the false discovery rate, in per cent.
LAST_RATE, START_RATE = 50, 10
PIXELS_PER_INCH = 96.0
# Of names in the picture, by whether they are those of query variables.
FONT_PIXELS = {True: 14.0, False: 12.0}
# Width and height: smaller pictures are not enlarged, so that names keep about the size of the text around them.
SMALLEST_VIEW = (760.0, 400.0)
VIEW_MARGIN = 14.0
# Of a page on a desktop screen: in wider pictures, which are shrunk to it, names of the query are enlarged.
PAGE_WIDTH = 1100.0


# The slider -------------------------------------------------------------------------------------------------


def usual(posterior: Posterior, rule: str) -> float:
    """The threshold of the default rule, at which the slider starts, not always a whole number of per cent."""
    if rule == "level":
        return selection.DEFAULT_LEVEL
    return selection.least_inclusion(posterior.inclusion.to_numpy())


@dataclass(frozen=True, eq=False)
class Slider:
    """The slider for the probability of inclusion or the credibility level of single edges.

    ``sure`` (query by variable) is what the rule compares with the threshold. ``usual`` is the threshold of the
    default rule; it replaces the whole per cent nearest to it.
    """

    rule: str
    sure: Array
    least: int
    start: int
    usual: float

    @classmethod
    def of(cls, posterior: Posterior) -> Slider:
        """The slider of a posterior: by inclusion if the prior has exact zeros, else by credibility level."""
        included = posterior.inclusion.to_numpy()
        if np.isnan(included).any():
            rule, sure, floor = "level", posterior.sign_probability.to_numpy(), 50
        else:
            rule, sure, floor = "inclusion", included, 1
        whole = cls(rule, sure, floor, floor, usual(posterior, rule))
        least = next((k for k in range(floor, LAST_PLACE) if whole.at(k).sum() <= MOST_EDGES_ON_PAGE), LAST_PLACE)
        return cls(rule, sure, least, max(least, whole.usual_place), whole.usual)

    @property
    def usual_place(self) -> int:
        """The place of the default rule, in per cent."""
        return round(100 * self.usual)

    def threshold(self, percent: int) -> float:
        """The threshold at a place of the slider."""
        return self.usual if percent == self.usual_place else percent / 100

    def at(self, percent: int) -> selection.Mask:
        """Which pairs pass at a place of the slider (query by variable)."""
        return self.passing(self.sure, percent)

    def shown(self, edges: pd.DataFrame, percent: int) -> selection.Mask:
        """Which rows of a table of edges pass at a place of the slider."""
        return self.passing(edges["sure"].to_numpy(), percent)

    def passing(self, sure: Array, percent: int) -> selection.Mask:
        """Which of these values pass the rule at a place of the slider."""
        by = selection.by_inclusion if self.rule == "inclusion" else selection.by_level
        return by(sure, self.threshold(percent))

    def on_page(self) -> selection.Mask:
        """The pairs that pass at the least place of the slider; only the surest if those are too many."""
        mask = self.at(self.least)
        return mask if mask.sum() <= MOST_EDGES_ON_PAGE else surest(self.sure, MOST_EDGES_ON_PAGE)

    def stages(self) -> list[int]:
        """Places at which the picture is laid out anew, ascending."""
        return thinning(range(self.least, LAST_PLACE + 1), lambda k: int(self.at(k).sum()), self.start)


@dataclass(frozen=True, eq=False)
class Share:
    """The slider for the expected false discovery rate of all edges shown.

    ``enters`` (query by variable) is the place from which on a pair is selected.
    """

    enters: npt.NDArray[np.intp]
    last: int
    start: int

    @classmethod
    def of(cls, posterior: Posterior, others: selection.Mask) -> Share | None:
        """The slider up to where the page holds its edges and the ``others``; None if one per cent is too many."""
        enters = entries(posterior.sign_probability.to_numpy())
        fits = [k for k in range(1, LAST_RATE + 1) if np.sum(others | (enters <= k)) <= MOST_EDGES_ON_PAGE]
        return cls(enters, fits[-1], min(fits[-1], START_RATE)) if fits else None

    def on_page(self) -> selection.Mask:
        """The pairs that are selected at the last place of the slider."""
        return self.enters <= self.last

    def shown(self, edges: pd.DataFrame, percent: int) -> selection.Mask:
        """Which rows of a table of edges are selected at a place of the slider."""
        return np.asarray(edges["enters"].to_numpy() <= percent)

    def stages(self) -> list[int]:
        """Places at which the picture is laid out anew, ascending."""
        places = range(self.last, 0, -1)
        return thinning(places, lambda k: int(np.sum(self.enters <= k)), self.start)[::-1]


def entries(probability: Array) -> npt.NDArray[np.intp]:
    """The least whole per cent at which ``edges(fdr=...)`` selects a pair; beyond the slider if it never does.

    The rule takes pairs in one order, the surest first, so only as many as a page holds are examined.
    """
    found = np.full(probability.shape, LAST_RATE + 1)
    near = surest(probability, MOST_EDGES_ON_PAGE + 1)
    for percent in range(LAST_RATE, 0, -1):
        chosen = selection.by_false_sign_rate(probability[near], percent / 100)
        found[near] = np.where(chosen, percent, found[near])
    return found


def surest(sure: Array, most: int) -> selection.Mask:
    """A mask of the surest pairs, at most so many; among equals, those that come first."""
    mask = np.zeros(sure.size, dtype=bool)
    mask[np.argsort(1.0 - sure, axis=None, kind="stable")[:most]] = True
    return mask.reshape(sure.shape)


def thinning(places: Iterable[int], count: Callable[[int], int], start: int) -> list[int]:
    """The first place, each later one with at most half the edges of the one found before it, and the start."""
    first, *others = places
    found = [first]
    for k in others:
        if k == start or 6 <= count(k) <= count(found[-1]) / 2:
            found.append(k)
    return found


def edges_on_page(posterior: Posterior, slider: Slider, share: Share | None) -> pd.DataFrame:
    """The table of edges, surest first, with ``sure`` and ``enters``, which the sliders compare."""
    inside = slider.on_page()
    i, j = np.nonzero(inside if share is None else inside | share.on_page())
    edges = posterior.edges_at(i, j)
    where = positions(posterior, edges)
    enters = LAST_RATE + 1 if share is None else share.enters[where]
    likely = {"inclusion": slider.sure[where]} if slider.rule == "inclusion" else {}
    return edges.assign(sure=slider.sure[where], enters=enters, **likely)


def positions(posterior: Posterior, edges: pd.DataFrame) -> tuple[npt.NDArray[np.intp], ...]:
    """The rows and columns of edges in a matrix (query by variable) like ``W12``."""
    ends = (posterior.query, edges["query"]), (posterior.variables, edges["variable"])
    places = (({name: k for k, name in enumerate(names)}, end) for names, end in ends)
    return tuple(np.array([place[name] for name in end], dtype=np.intp) for place, end in places)


# The picture ------------------------------------------------------------------------------------------------


def draw(
    posterior: Posterior, slider: Slider, share: Share | None, edges: pd.DataFrame, inner: pd.DataFrame
) -> dict[str, Any]:
    """The picture: nodes (query first), lines (edges, then those among the query), and a layout per stage."""
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
        "grow": round(max(1.0, start["view"][2] / PAGE_WIDTH), 2),
    }


def stage(
    query: list[Any],
    seen: pd.DataFrame,
    percent: int,
    boxes: dict[Any, tuple[float, float]],
    place: dict[Any, int],
) -> dict[str, Any]:
    """The layout at a place of the slider: positions of the nodes, and the view around them."""
    neighbours = seen.groupby("variable", sort=False)["query"].agg(list).to_dict()
    where = layout.place(query, neighbours, boxes)
    centre = {place[name]: PIXELS_PER_INCH * np.array([x, -y]) for name, (x, y) in where.items()}
    size = PIXELS_PER_INCH * np.array([boxes[name] for name in where])
    at = {str(k): [round(float(x), 1), round(float(y), 1)] for k, (x, y) in centre.items()}
    return {"place": percent, "at": at, "view": view(np.array(list(centre.values())), size)}


def view(centre: Array, size: Array) -> list[float]:
    """Left, top, width and height of a view that holds all boxes."""
    low, high = (centre - size / 2).min(axis=0) - VIEW_MARGIN, (centre + size / 2).max(axis=0) + VIEW_MARGIN
    whole = np.maximum(high - low, SMALLEST_VIEW)
    corner = (low + high - whole) / 2
    return [round(float(value), 1) for value in (*corner, *whole)]


def nodes(
    names: list[Any],
    boxes: dict[Any, tuple[float, float]],
    p: int,
    stages: list[dict[str, Any]],
    visible: set[int],
) -> list[dict[str, Any]]:
    """The nodes, each at its position in the first of the stages that has it; the first stage is the start."""
    found = []
    for k, name in enumerate(names):
        x, y = next(one["at"][str(k)] for one in stages if str(k) in one["at"])
        w, h = (round(PIXELS_PER_INCH * side, 1) for side in boxes[name])
        known = {"number": k, "name": str(name), "short": short(name), "query": k < p}
        found.append(known | {"out": k >= p and k not in visible, "x": x, "y": y, "w": w, "h": h})
    return found


def line(ends: tuple[int, int], strength: float, shown: bool) -> dict[str, Any]:
    """A line between two nodes; its sign is that of the partial correlation."""
    return {"ends": ends, "positive": strength > 0, "width": round(1.2 + 4.5 * abs(strength), 2), "out": not shown}


def strength(edges: pd.DataFrame) -> Array:
    """The weights relative to the largest, with the sign of the partial correlation."""
    weight = edges["weight"].to_numpy(dtype=float)
    return -weight / max(float(np.abs(weight).max(initial=0.0)), np.finfo(float).tiny)


def box(text: str, is_query: bool) -> tuple[float, float]:
    """Width and height of a name in inches, estimated from its letters, as the fonts of readers are unknown."""
    wide = sum(1.7 if unicodedata.east_asian_width(letter) in "WF" else 1.0 for letter in text)
    em = FONT_PIXELS[is_query] / PIXELS_PER_INCH
    return (0.7 if is_query else 0.61) * em * wide + 14 / PIXELS_PER_INCH, 1.65 * em
