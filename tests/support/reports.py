"""Posteriors to report on, and a reader of what a page holds."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
import xarray as xr

import markovblanket as mb

ALERT = "<script>alert(1)</script>"
# Names that would break out of a tag, an attribute, a script, a line of JSON, or a font.
HARMFUL = [ALERT, '"><img src=x onerror=alert(1)>', "</script><b>"]
NASTY = [*HARMFUL, "a & b", "line\u2028end", "日本語", "{{ 7 * 7 }}", "$x$"]


def nasty_table(rows: int = 600) -> tuple[Any, list[str]]:
    """A simulated table of 3 query and 12 other variables, some of them with names that mean harm."""
    made = mb.simulate(rows=rows, query=3, rest=12, density=0.4, seed=4)
    others = [name for name in made.table.columns if name not in made.query]
    names = dict(zip(others, NASTY, strict=False)) | {made.query[0]: "<b>T</b>"}
    return made.table.rename(columns=names), [names.get(name, name) for name in made.query]


def fitted(**options: Any) -> mb.Posterior:
    """A short run on that table; its chains are not meant to agree."""
    table, query = nasty_table()
    schedule = {"warmup": 60, "draws": 60, "chains": 2, "seed": 1, "progress": False}
    with pytest.warns(mb.ConvergenceWarning):
        return mb.estimate(table, query, **(schedule | options))


def crowded(edges: int = 2000, p: int = 5, q: int = 700) -> mb.Posterior:
    """A posterior of which so many edges are sure, of either sign; made up, from a scatter matrix."""
    rng = np.random.default_rng(0)
    names = [f"trait_{k}" for k in range(p)] + [f"gene_{k:04d}" for k in range(q)]
    S, schedule = 1000.0 * np.eye(p + q), {"chains": 2, "warmup": 2, "draws": 20}
    with pytest.warns(mb.ConvergenceWarning):
        start = mb.estimate(scatter=S, n=1000, names=names, query=names[:p], seed=1, progress=False, **schedule)
    weight = np.zeros(p * q)
    weight[rng.choice(p * q, edges, replace=False)] = rng.choice([-1, 1], edges) * rng.gamma(2.0, 0.3, edges)
    noise = rng.uniform(0.5, 1.5, (2, 20, p, q))
    W12 = xr.DataArray(noise * weight.reshape(p, q), dims=start.W12.dims, coords=start.W12.coords)
    return mb.Posterior(start.draws.assign(W12=W12), start.effort, start.observed, start.settings)


def whole_network(variables: int = 60, edges: int = 90) -> mb.Posterior:
    """A posterior of a whole network, made up: some edges sure, others doubtful, most pairs never connected."""
    rng = np.random.default_rng(5)
    names = [f"item_{k:02d}" for k in range(variables)]
    S, schedule = 1000.0 * np.eye(variables + 1), {"chains": 2, "warmup": 2, "draws": 50}
    with pytest.warns(mb.ConvergenceWarning):
        start = mb.estimate(
            scatter=S, n=1000, names=[*names, "x"], query=names, seed=1, progress=False, **schedule
        )
    i, j = np.triu_indices(variables, 1)
    places = rng.choice(len(i), edges, replace=False)
    size = rng.choice([-1, 1], edges) * rng.uniform(0.05, 0.4, edges)
    present = rng.random((2, 50, edges)) < rng.beta(2.0, 0.5, edges)
    W11 = np.zeros((2, 50, variables, variables))
    W11[..., i[places], j[places]] = -1.0 * present * size * rng.uniform(0.8, 1.2, present.shape)
    W11 += np.swapaxes(W11, -1, -2)
    W11[..., range(variables), range(variables)] = rng.uniform(2.9, 3.1, (2, 50, variables))
    draws = start.draws.isel(variable=slice(0, 0)).assign(W11=start.W11.copy(data=W11))
    return mb.Posterior(draws, start.effort, start.observed, start.settings)


class Page(HTMLParser):
    """What a page holds: its elements with their attributes, its text, and the cells of the rows of edges."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.within, self.in_edges = "", False
        self.rows: dict[int, list[str]] = {}
        self.titles: list[str] = []
        self.shown_rows: list[int] = []
        self.shown_lines: list[int] = []
        self.inline: dict[str, list[str]] = {"script": [], "style": []}
        self.text = ""
        self.feed(text)
        self.scripts, self.styles = self.inline["script"], self.inline["style"]
        self.data = json.loads(self.scripts[0])

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        known = dict(attributes)
        self.tags.append((tag, known))
        if tag in self.inline:
            self.within = tag
            self.inline[tag].append("")
        if "data-edge" in known:
            self.begin_edge(tag, int(known["data-edge"] or ""), (known.get("class") or "").split())
        if tag in ("td", "th") and self.rows:
            next(reversed(self.rows.values())).append("")
        if tag == "table":
            self.in_edges = known.get("id") == "edges"
        if tag == "th" and self.in_edges and known.get("scope") == "col":
            self.titles.append("" if "bars" in (known.get("class") or "") else "?")

    def begin_edge(self, tag: str, k: int, classes: list[str]) -> None:
        """A row of a table, or a line of the picture."""
        if tag == "tr":
            self.rows[k] = []
        if "out" not in classes:
            (self.shown_rows if tag == "tr" else self.shown_lines).append(k)

    def handle_endtag(self, tag: str) -> None:
        self.within = "" if tag in self.inline else self.within

    def handle_data(self, data: str) -> None:
        if self.within:
            self.inline[self.within][-1] += data
            return
        self.text += data
        if self.titles[-1:] == ["?"] and data.strip():
            self.titles[-1] = data.strip()
        if self.rows and (cells := next(reversed(self.rows.values()))):
            cells[-1] += data

    def edge(self, k: int) -> tuple[str, str]:
        """The names of an edge's ends."""
        a, b = self.data["ends"][k]
        return self.data["names"][a], self.data["names"][b]


class Card(HTMLParser):
    """What a notebook is given: tags, the names of attributes, the cells of its rows, and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[str] = []
        self.rows: list[list[str]] = []
        self.text = ""
        self.in_cell = False
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [name for name, _ in attributes]
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self.in_cell = True

    def handle_endtag(self, tag: str) -> None:
        self.in_cell = self.in_cell and tag not in ("td", "th")

    def handle_data(self, data: str) -> None:
        self.text += data
        if self.in_cell:
            self.rows[-1][-1] += data
