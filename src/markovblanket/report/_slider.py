"""Which edges are on the page, and where its slider starts and ends.

The slider moves in whole per cent and has two meanings, between which a reader chooses. It is the least
probability of inclusion (the least credibility level if the prior has no exact zeros), or the largest expected
share of wrong ones. At every place the page has the rows of ``edges(inclusion=...)`` or ``edges(level=...)``, or
else of ``edges(fdr=...)``.
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

# So many edges at most, lest the page grow heavy; the slider ends where there would be more.
MOST = 2000
LAST = 99
# Of the share of wrong calls: where it ends, and where it starts.
LAST_SHARE, FIRST_SHARE = 50, 10


def usual(posterior: Posterior, rule: str) -> float:
    """The threshold of the default rule, at which the slider starts; it need not be a whole number of per cent."""
    if rule == "level":
        return selection.DEFAULT_LEVEL
    return selection.least_inclusion(posterior.inclusion_either.to_numpy())


@dataclass(frozen=True, eq=False)
class Slider:
    """How sure an edge must be: the rule, what it looks at (query by variable), and the ends of the slider.

    ``usual`` is the threshold of the default rule, which takes the place of the whole number nearest to it.
    """

    rule: str
    sure: Array
    least: int
    start: int
    usual: float

    @classmethod
    def of(cls, posterior: Posterior) -> Slider:
        """By inclusion where the prior has exact zeros, by credibility else; it starts at the default rule."""
        included = posterior.inclusion_either.to_numpy()
        if np.isnan(included).any():
            rule, sure, floor = "level", posterior.sign_probability.to_numpy(), 50
        else:
            rule, sure, floor = "inclusion", included, 1
        whole = cls(rule, sure, floor, floor, usual(posterior, rule))
        least = next((k for k in range(floor, LAST) if whole.at(k).sum() <= MOST), LAST)
        return cls(rule, sure, least, max(least, whole.usual_place), whole.usual)

    @property
    def usual_place(self) -> int:
        """Where the default rule is."""
        return round(100 * self.usual)

    def threshold(self, percent: int) -> float:
        """That of a place of the slider."""
        return self.usual if percent == self.usual_place else percent / 100

    def at(self, percent: int) -> selection.Mask:
        """Which pairs pass."""
        return self.passing(self.sure, percent)

    def shown(self, edges: pd.DataFrame, percent: int) -> selection.Mask:
        """Which rows of the table pass."""
        return self.passing(edges["sure"].to_numpy(), percent)

    def passing(self, sure: Array, percent: int) -> selection.Mask:
        """What the rule selects."""
        by = selection.by_inclusion if self.rule == "inclusion" else selection.by_level
        return by(sure, self.threshold(percent))

    def on_page(self) -> selection.Mask:
        """The pairs that pass at the least place; if those are too many still, the surest of them."""
        mask = self.at(self.least)
        return mask if mask.sum() <= MOST else surest(self.sure, MOST)

    def stages(self) -> list[int]:
        """Places at which the picture is laid out anew, ascending."""
        return thinning(range(self.least, LAST + 1), lambda k: int(self.at(k).sum()), self.start)


@dataclass(frozen=True, eq=False)
class Share:
    """The largest expected share of wrong calls: from which place on each pair is selected (query by variable)."""

    enters: npt.NDArray[np.intp]
    last: int
    start: int

    @classmethod
    def of(cls, posterior: Posterior, others: selection.Mask) -> Share | None:
        """As far as the page holds its edges beside the ``others``; None if it does not even hold the surest."""
        enters = entries(posterior.sign_probability.to_numpy())
        fits = [k for k in range(1, LAST_SHARE + 1) if np.sum(others | (enters <= k)) <= MOST]
        return cls(enters, fits[-1], min(fits[-1], FIRST_SHARE)) if fits else None

    def on_page(self) -> selection.Mask:
        """The pairs that are selected at the last place."""
        return self.enters <= self.last

    def shown(self, edges: pd.DataFrame, percent: int) -> selection.Mask:
        """Which rows of the table are selected."""
        return np.asarray(edges["enters"].to_numpy() <= percent)

    def stages(self) -> list[int]:
        """Places at which the picture is laid out anew, ascending."""
        places = range(self.last, 0, -1)
        return thinning(places, lambda k: int(np.sum(self.enters <= k)), self.start)[::-1]


def entries(probability: Array) -> npt.NDArray[np.intp]:
    """The least whole per cent at which ``edges(fdr=...)`` selects a pair; beyond the slider if it never does.

    A rule of its kind takes pairs in one order, so those that a page cannot hold need not be looked at.
    """
    found = np.full(probability.shape, LAST_SHARE + 1)
    near = surest(probability, MOST + 1)
    for percent in range(LAST_SHARE, 0, -1):
        chosen = selection.by_false_sign_rate(probability[near], percent / 100)
        found[near] = np.where(chosen, percent, found[near])
    return found


def surest(sure: Array, most: int) -> selection.Mask:
    """So many pairs, those that come first among equals."""
    mask = np.zeros(sure.size, dtype=bool)
    mask[np.argsort(1.0 - sure, axis=None, kind="stable")[:most]] = True
    return mask.reshape(sure.shape)


def thinning(places: Iterable[int], count: Callable[[int], int], start: int) -> list[int]:
    """The first place, those where half of the edges of the last one found are gone, and the start."""
    first, *others = places
    found = [first]
    for k in others:
        if k == start or 6 <= count(k) <= count(found[-1]) / 2:
            found.append(k)
    return found


def edges_on_page(posterior: Posterior, slider: Slider, share: Share | None) -> pd.DataFrame:
    """The table of edges, surest first, with ``sure`` and ``enters``, what the slider looks at."""
    inside = slider.on_page()
    i, j = np.nonzero(inside if share is None else inside | share.on_page())
    edges = posterior.edges_at(i, j)
    where = positions(posterior, edges)
    enters = LAST_SHARE + 1 if share is None else share.enters[where]
    likely = {"inclusion": slider.sure[where]} if slider.rule == "inclusion" else {}
    return edges.assign(sure=slider.sure[where], enters=enters, **likely)


def positions(posterior: Posterior, edges: pd.DataFrame) -> tuple[npt.NDArray[np.intp], ...]:
    """Of the edges of a table: rows and columns in a matrix like ``W12``."""
    ends = (posterior.query, edges["query"]), (posterior.variables, edges["variable"])
    places = (({name: k for k, name in enumerate(names)}, end) for names, end in ends)
    return tuple(np.array([place[name] for name in end], dtype=np.intp) for place, end in places)


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
