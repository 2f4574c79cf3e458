"""The files of a fit."""

from __future__ import annotations

import re
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import networkx as nx
import pandas as pd

from markovblanket.posterior.posterior import Posterior

EDGES, GRAPH, PICTURE, POSTERIOR = "edges.csv", "network.graphml", "network.svg", "posterior"
REPORT = "report.html"
FILES = (EDGES, GRAPH, PICTURE, POSTERIOR, REPORT)
# What some files need that is not always installed, and the extra that brings it.
NEEDS: dict[str, tuple[tuple[str, ...], str]] = {
    PICTURE: (("matplotlib",), "plots"),
    REPORT: (("jinja2", "matplotlib"), "report"),
}
# Characters that no XML file may hold.
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# What a spreadsheet takes for a formula; and the mark before it, by which it is text.
FORMULA, MARK = ("=", "+", "-", "@", "\t", "\r", "\n"), "'"


def write(folder: Path, posterior: Posterior, edges: pd.DataFrame, rule: dict[str, Any]) -> None:
    """The selected edges, the network as a graph and as a picture, the report, and the posterior itself.

    It is there already if its draws were written as they came.
    """
    if not (folder / POSTERIOR).exists():
        posterior.save(folder / POSTERIOR)
    inert(edges).to_csv(folder / EDGES, index=False)
    nx.write_graphml(printable(posterior.graph(**rule)), folder / GRAPH)
    if possible(PICTURE):
        draw(folder / PICTURE, posterior, rule)
    if possible(REPORT):
        posterior.report(folder / REPORT)


def possible(file: str) -> bool:
    """Whether what a file needs is installed."""
    return all(find_spec(package) is not None for package in NEEDS[file][0])


def left_out() -> list[str]:
    """The files that cannot be written, with the way to have them."""
    return [
        f"{file} is left out: it needs {' and '.join(packages)}, pip install 'markovblanket[{extra}]'"
        for file, (packages, extra) in NEEDS.items()
        if not possible(file)
    ]


def draw(file: Path, posterior: Posterior, rule: dict[str, Any]) -> None:
    """The network."""
    from markovblanket.plots import blanket

    draw_by(file, lambda: blanket(posterior, **rule))


def draw_by(file: Path, picture: Callable[[], Any]) -> None:
    """With text as text, so that names can be searched; the same edges, the same file."""
    import matplotlib as mpl

    with mpl.rc_context({"backend": "svg", "svg.fonttype": "none", "svg.hashsalt": "markovblanket"}):
        figure: Any = picture().figure
        figure.savefig(file, format="svg", metadata={"Date": None})
        mpl.pyplot.close(figure)


def printable(graph: nx.Graph) -> nx.Graph:
    """With a mark in place of control characters: after a long run is no time to refuse a name."""
    return nx.relabel_nodes(graph, {name: FORBIDDEN.sub("\ufffd", str(name)) for name in graph})


def inert(edges: pd.DataFrame) -> pd.DataFrame:
    """With a mark before the names that a spreadsheet would run, and before those that have one: take one off, and
    every name is again what it was.
    """

    def marked(name: Any) -> Any:
        return f"{MARK}{name}" if isinstance(name, str) and name.startswith((*FORMULA, MARK)) else name

    return edges.assign(**{role: edges[role].map(marked) for role in ("query", "variable") if role in edges})


def formulas(edges: pd.DataFrame) -> list[str]:
    """The names that a spreadsheet would take for formulas."""
    names = dict.fromkeys([*edges["query"], *edges["variable"]])
    return [name for name in names if isinstance(name, str) and name.startswith(FORMULA)]
