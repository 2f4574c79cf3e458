"""Draws ``demo.png``: the demo's true network and the blanket that is found in 300 rows of it."""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import pandas as pd

mpl.use("Agg")
from matplotlib import pyplot as plt

from markovblanket import estimate, plots
from markovblanket.demo import clinic

PALE = {"color": "0.8", "linestyle": ":", "linewidth": 1.2}
FALSE = {"color": "black", "linestyle": ":", "linewidth": 2.0}


def names(edges: pd.DataFrame) -> set[str]:
    """Of the lines in the picture."""
    return set(edges["query"] + "~" + edges["variable"])


def draw(
    axes: plt.Axes, query: list[str], every: pd.DataFrame, shown: set[str], true: set[str], title: str
) -> None:
    """All edges at their places, so that both pictures agree; what is not shown here is pale."""
    plots.network(query, every, ax=axes)
    for line in axes.lines:
        if line.get_gid() not in shown:
            line.set(**PALE)
        elif line.get_gid() not in true:
            line.set(**FALSE)
    axes.set_title(title, fontsize=12)


def main() -> None:
    data = clinic()
    posterior = estimate(data.table, data.query, warmup=500, draws=1000, seed=1, n_jobs=2)
    found, truth = posterior.edges(), data.truth.query("edge")
    columns = ["query", "variable", "partial_correlation"]
    every = pd.concat([truth[columns], found[columns]]).drop_duplicates(["query", "variable"])
    right = len(names(found) & names(truth))
    figure, axes = plt.subplots(1, 2, figsize=(13, 6.4), layout="constrained")
    title = f"the truth: {len(truth)} edges to 120 genes"
    draw(axes[0], data.query, every, names(truth), names(truth), title)
    title = f"found in 300 rows: {right} of them, and {len(found) - right} false"
    draw(axes[1], data.query, every, names(found), names(truth), title)
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=110)


if __name__ == "__main__":
    main()
