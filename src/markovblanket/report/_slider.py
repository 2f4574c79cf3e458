"""Which edges are on the page, where its slider starts and ends, and the picture of the network at its places.

The slider moves in whole per cent and has two meanings, between which a reader chooses. It is the least
probability of an edge (the credibility level if the prior has no exact zeros), or the largest expected false
discovery rate. At every place the page shows the rows of ``edges(probability=...)`` or ``edges(level=...)``, or
else of ``edges(fdr=...)``.

The picture has nodes, lines, and stages: places of the slider at which the view changes, because many edges appear
or disappear between two of them. In a blanket nodes move too; in a whole network each keeps its position.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
import numpy.typing as npt
import pandas as pd

from markovblanket.contracts import Array
from markovblanket.plots import layout
from markovblanket.plots.network import short, strength, tentative
from markovblanket.posterior import selection
from markovblanket.posterior.edges import Positions, once
from markovblanket.posterior.posterior import Posterior

# More edges would make the page slow; the slider ends where there would be more.
MOST_EDGES_ON_PAGE = 2000
# The last place of the slider for the probability or the credibility level, in per cent.
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


def usual(sure: Array, rule: str) -> float:
    """The threshold of the default rule, at which the slider starts, not always a whole number of per cent."""
    return selection.DEFAULT_LEVEL if rule == "level" else selection.least_inclusion(sure)


@dataclass(frozen=True, eq=False)
class Slider:
    """The slider for the probability or the credibility level of single edges.

    ``sure``, by pair, is what the rule compares with the threshold. ``usual`` is the threshold of the default
    rule; it replaces the whole per cent nearest to it.
    """

    rule: str
    sure: Array
    least: int
    start: int
    usual: float

    @classmethod
    def of(cls, posterior: Posterior) -> Slider:
        """The slider of a posterior: by probability if the prior has exact zeros, else by credibility level."""
        frames = posterior.inclusion, posterior.sign_probability
        known, sign = (frame.to_numpy()[pairs(posterior)] for frame in frames)
        if np.isnan(known).all():
            rule, sure, floor = "level", sign, 50
        else:  # edges without a probability are selected by their signs, wherever the slider is
            certain = selection.by_level(sign, selection.DEFAULT_LEVEL)
            rule, sure, floor = "probability", np.where(np.isnan(known), certain, known), 1
        whole = cls(rule, sure, floor, floor, usual(sign if rule == "level" else known, rule))
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
        """Which pairs pass at a place of the slider."""
        return self.passing(self.sure, percent)

    def shown(self, edges: pd.DataFrame, percent: int) -> selection.Mask:
        """Which rows of a table of edges pass at a place of the slider."""
        return self.passing(edges["sure"].to_numpy(), percent)

    def passing(self, sure: Array, percent: int) -> selection.Mask:
        """Which of these values pass the rule at a place of the slider."""
        least = self.threshold(percent)
        return sure >= least if self.rule == "probability" else selection.by_level(sure, least)

    def on_page(self) -> selection.Mask:
        """The pairs that pass at the least place of the slider; only the surest if those are too many."""
        mask = self.at(self.least)
        return mask if mask.sum() <= MOST_EDGES_ON_PAGE else surest(self.sure, MOST_EDGES_ON_PAGE)

    def stages(self) -> list[int]:
        """Places at which the view of the picture changes, ascending."""
        return thinning(range(self.least, LAST_PLACE + 1), lambda k: int(self.at(k).sum()), self.start)


@dataclass(frozen=True, eq=False)
class Share:
    """The slider for the expected false discovery rate of all edges shown.

    ``enters``, by pair, is the place from which on a pair is selected; beyond the slider if it never is.
    """

    enters: npt.NDArray[np.intp]
    last: int
    start: int

    @classmethod
    def of(cls, posterior: Posterior, others: selection.Mask) -> Share | None:
        """The slider up to where the page holds its edges and the ``others``; None if one per cent is too many."""
        every, last = pairs(posterior), 0
        enters = np.full(others.shape, LAST_RATE + 1)
        for percent in range(1, LAST_RATE + 1):
            chosen = posterior.selected(fdr=percent / 100).to_numpy()[every]
            if np.sum(others | chosen) > MOST_EDGES_ON_PAGE:
                break
            enters[chosen & (enters > percent)] = percent
            last = percent
        return cls(enters, last, min(last, START_RATE)) if last else None

    def on_page(self) -> selection.Mask:
        """The pairs that are selected at the last place of the slider."""
        return self.enters <= self.last

    def shown(self, edges: pd.DataFrame, percent: int) -> selection.Mask:
        """Which rows of a table of edges are selected at a place of the slider."""
        return np.asarray(edges["enters"].to_numpy() <= percent)

    def stages(self) -> list[int]:
        """Places at which the view of the picture changes, ascending."""
        places = range(self.last, 0, -1)
        return thinning(places, lambda k: int(np.sum(self.enters <= k)), self.start)[::-1]


def surest(sure: Array, most: int) -> selection.Mask:
    """A mask of the surest pairs, at most so many; among equals, those that come first."""
    mask = np.zeros(sure.size, dtype=bool)
    mask[np.argsort(1.0 - sure, kind="stable")[:most]] = True
    return mask


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
    inside = slider.on_page() if share is None else slider.on_page() | share.on_page()
    i, k = (part[inside] for part in pairs(posterior))
    edges = posterior.edges_at(i, k)
    where = numbers_of_pairs(posterior, edges)
    enters = LAST_RATE + 1 if share is None else share.enters[where]
    return edges.assign(sure=slider.sure[where], enters=enters)


def pairs(posterior: Posterior) -> tuple[Positions, Positions]:
    """The positions of every pair once, in matrices of the query by all variables."""
    return once(np.ones(posterior.inclusion.shape))


def numbers_of_pairs(posterior: Posterior, edges: pd.DataFrame) -> Positions:
    """The number of each edge among all pairs."""
    numbers = np.zeros(posterior.inclusion.shape, dtype=np.intp)
    numbers[pairs(posterior)] = np.arange(len(pairs(posterior)[0]))
    place = {name: k for k, name in enumerate(posterior.names)}
    ends = ([place[name] for name in edges[end]] for end in ("query", "variable"))
    return numbers[tuple(np.array(end, dtype=np.intp) for end in ends)]


# The picture ------------------------------------------------------------------------------------------------


def draw(posterior: Posterior, slider: Slider, share: Share | None, edges: pd.DataFrame) -> dict[str, Any]:
    """The picture: nodes (query first), lines, and the stages of both sliders."""
    red = posterior.query if posterior.variables else []
    names = list(dict.fromkeys([*red, *edges[["query", "variable"]].to_numpy().ravel()]))
    boxes = {name: box(short(name), k < len(red)) for k, name in enumerate(names)}
    shown = slider.shown(edges, slider.start)
    scene = Scene(names, len(red), boxes, None if red else fixed(names, edges[shown], boxes))
    stages, share_stages = (
        [scene.stage(edges[by.shown(edges, at)], at) for at in by.stages()] if by else [] for by in (slider, share)
    )
    start = max((one for one in stages if one["place"] <= slider.start), key=lambda one: one["place"])
    ends = scene.ends(edges)
    visible = {node for (pair, seen) in zip(ends, shown, strict=True) if seen for node in pair}
    drawn = zip(ends, strength(edges), tentative(edges), shown, strict=True)
    return {
        "nodes": scene.nodes([start, *stages[::-1], *share_stages], visible),
        "lines": [line(*row) for row in drawn],
        "stages": stages,
        "share_stages": share_stages,
        "view": start["view"],
        "grow": round(max(1.0, start["view"][2] / PAGE_WIDTH), 2),
    }


def fixed(names: list[Any], edges: pd.DataFrame, boxes: dict[Any, tuple[float, float]]) -> dict[Any, Array]:
    """Positions of all nodes of a whole network, by the edges that are shown first."""
    graph = nx.Graph()
    graph.add_nodes_from(names)
    graph.add_edges_from(zip(edges["query"], edges["variable"], strict=True))
    return layout.whole(graph, boxes)


@dataclass(frozen=True, eq=False)
class Scene:
    """The nodes of the picture, the first ``red`` of them query variables.

    ``where`` has their positions in a whole network; it is None for a blanket, whose layout depends on the edges.
    """

    names: list[Any]
    red: int
    boxes: dict[Any, tuple[float, float]]
    where: dict[Any, Array] | None

    @property
    def number(self) -> dict[Any, int]:
        """The number of each node."""
        return {name: k for k, name in enumerate(self.names)}

    def ends(self, edges: pd.DataFrame) -> list[tuple[int, int]]:
        """The numbers of the nodes at both ends of each edge."""
        number = self.number
        return [(number[a], number[b]) for a, b in zip(edges["query"], edges["variable"], strict=True)]

    def stage(self, seen: pd.DataFrame, percent: int) -> dict[str, Any]:
        """The positions of nodes at a place of the slider, and the view around those that are seen."""
        where = self._around_query(seen) if self.where is None else self.where
        number = self.number
        centre = {name: PIXELS_PER_INCH * np.array([x, -y]) for name, (x, y) in where.items()}
        ends = {*seen["query"], *seen["variable"]}
        inside = [name for name in where if self.where is None or name in ends]
        at = {str(number[name]): [round(float(x), 1), round(float(y), 1)] for name, (x, y) in centre.items()}
        return {"place": percent, "at": at, "view": view([(centre[name], self.boxes[name]) for name in inside])}

    def _around_query(self, seen: pd.DataFrame) -> dict[Any, Array]:
        """The layout of a blanket with these edges."""
        query = self.names[: self.red]
        outside = seen[~seen["variable"].isin(query)]
        neighbours = outside.groupby("variable", sort=False)["query"].agg(list).to_dict()
        return layout.place(query, neighbours, self.boxes)

    def nodes(self, stages: list[dict[str, Any]], visible: set[int]) -> list[dict[str, Any]]:
        """The nodes, each at its position in the first of the stages that has it; the first stage is the start."""
        found = []
        for k, name in enumerate(self.names):
            x, y = next(one["at"][str(k)] for one in stages if str(k) in one["at"])
            w, h = (round(PIXELS_PER_INCH * side, 1) for side in self.boxes[name])
            known = {"number": k, "name": str(name), "short": short(name), "query": k < self.red}
            found.append(known | {"out": k >= self.red and k not in visible, "x": x, "y": y, "w": w, "h": h})
        return found


def view(seen: list[tuple[Array, tuple[float, float]]]) -> list[float]:
    """Left, top, width and height of a view that holds all boxes, given by their centres and sizes."""
    centre = np.array([where for where, _ in seen]).reshape(-1, 2)
    size = PIXELS_PER_INCH * np.array([box for _, box in seen]).reshape(-1, 2)
    low = (centre - size / 2).min(axis=0, initial=np.inf if len(seen) else 0.0) - VIEW_MARGIN
    high = (centre + size / 2).max(axis=0, initial=-np.inf if len(seen) else 0.0) + VIEW_MARGIN
    whole = np.maximum(high - low, SMALLEST_VIEW)
    corner = (low + high - whole) / 2
    return [round(float(value), 1) for value in (*corner, *whole)]


def line(ends: tuple[int, int], strength: float, tentative: bool, shown: bool) -> dict[str, Any]:
    """A line between two nodes; its sign is that of the partial correlation."""
    width = round(1.2 + 4.5 * abs(strength), 2)
    return {"ends": ends, "positive": strength > 0, "width": width, "tentative": tentative, "out": not shown}


def box(text: str, is_query: bool) -> tuple[float, float]:
    """Width and height of a name in inches, estimated from its letters, as the fonts of readers are unknown."""
    wide = sum(1.7 if unicodedata.east_asian_width(letter) in "WF" else 1.0 for letter in text)
    em = FONT_PIXELS[is_query] / PIXELS_PER_INCH
    return (0.7 if is_query else 0.61) * em * wide + 14 / PIXELS_PER_INCH, 1.65 * em
