"""Draws ``demo.png``, the truth of the demo and what it finds: ``make demo``, then this with ``demo``."""

from __future__ import annotations

import sys
from pathlib import Path

import matplotlib as mpl
import pandas as pd

mpl.use("Agg")
from matplotlib import pyplot as plt

from markovblanket import load, plots
from markovblanket.cli._demo import clinic

ROOM = {"left": 0.005, "right": 0.995, "bottom": 0.0, "top": 0.93, "wspace": 0.03}
MISSED = {"color": "0.75", "linestyle": ":", "linewidth": 1.2}
FALSE = {"color": "black", "linestyle": ":", "linewidth": 2.0}


def lines(edges: pd.DataFrame) -> set[str]:
    """By which names the picture knows them."""
    return set(edges["query"] + "~" + edges["variable"])


def draw(axes: plt.Axes, query: list[str], shown: pd.DataFrame, other: pd.DataFrame, true: set[str]) -> None:
    """The edges that are shown, and pale those of the other picture: all have the same places in both."""
    every = pd.concat([shown, other]).drop_duplicates(["query", "variable"]).sort_values(["query", "variable"])
    plots.network(query, every, ax=axes)
    for line in axes.lines:
        if line.get_gid() not in lines(shown):
            line.set(**MISSED)
        elif line.get_gid() not in true:
            line.set(**FALSE)
    alone = set(other["variable"]) - set(shown["variable"])
    for box in (box for box in axes.patches if box.get_gid() in alone):
        box.set_edgecolor("0.8")
    for text in (text for text in axes.texts if text.get_text() in alone):
        text.set_color("0.65")


def main(folder: Path) -> None:
    """Both pictures side by side, from the folder that the demo has written."""
    data = clinic()
    truth = pd.concat([data.query_edges, data.truth], ignore_index=True).query("edge").drop(columns="weight")
    found = load(folder / "posterior").edges()
    right = len(lines(found) & lines(truth))
    _, axes = plt.subplots(1, 2, figsize=(13, 5.2), gridspec_kw=ROOM)
    draw(axes[0], data.query, truth, found, lines(truth))
    draw(axes[1], data.query, found, truth, lines(truth))
    axes[0].set_title(f"the truth: {len(truth)} edges among and with 5 traits", fontsize=12)
    axes[1].set_title(f"found in 300 rows: {right} of them, and {len(found) - right} false", fontsize=12)
    plt.savefig(Path(__file__).with_suffix(".png"), dpi=110)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
