"""The pictures: cost per sweep against q, n and p; ours against peers; effective draws per second.

Colours are those of Okabe and Ito, which colour-blind readers tell apart; markers and lines differ as well, and
everything is labelled where it stands.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

STYLES = {
    "Laplace": {"color": "#0072B2", "marker": "o", "linestyle": "-"},
    "Horseshoe": {"color": "#D55E00", "marker": "s", "linestyle": "--"},
    "SpikeSlab": {"color": "#009E73", "marker": "^", "linestyle": "-."},
    "one bare product": {"color": "#555555", "marker": "", "linestyle": ":"},
}
AXES = {
    "q": "q, other variables (p = 7, n = 260)",
    "n": "n, rows (p = 7, q = 13,400)",
    "p": "p, query variables (q = 2,000, n = 260)",
}
LOOK = {"axes.spines.top": False, "axes.spines.right": False, "font.size": 9, "lines.markersize": 5}


def draw(book: Mapping[str, Any], folder: Path) -> None:
    """Every picture that there are results for."""
    results = {name: section["results"] for name, section in book["sections"].items()}
    with mpl.rc_context(LOOK):
        if any(name in results for name in AXES):
            _save(sweeps(results), folder / "benchmark_sweeps.png")
        if "block" in results:
            _save(block(results["block"]), folder / "benchmark_block.png")
        if peers(results):
            _save(against_peers(peers(results)), folder / "benchmark_peers.png")
        if "mixing" in results:
            _save(mixing(results), folder / "benchmark_mixing.png")


def _save(figure: Any, path: Path) -> None:
    figure.savefig(path, dpi=160, metadata={"Software": None})
    plt.close(figure)


def sweeps(results: Mapping[str, Any]) -> Any:
    """Milliseconds per sweep, a panel for each size that varies."""
    there = [name for name in AXES if name in results]
    figure, axes = plt.subplots(1, len(there), figsize=(4 * len(there), 3.4), layout="constrained", squeeze=False)
    for axis, name in zip(axes[0], there, strict=True):
        _lines(axis, results[name])
        axis.set_xlabel(AXES[name])
        axis.set_ylabel("ms per sweep; beside names: log-log slope" if name == there[0] else "")
    return figure


def block(result: Mapping[str, Any]) -> Any:
    """Milliseconds per sweep of the widened block: everything inside, and with variables outside."""
    figure, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="constrained")
    for axis, letter in zip(axes, "Pq", strict=True):
        rows = [row for row in result["rows"] if bool(row["q"]) == (letter == "q")]
        axis.plot([row[letter] for row in rows], [row["ms"] for row in rows], **STYLES["SpikeSlab"])
        axis.set(xscale="log", yscale="log", title=f"log-log slope {result['slopes'][letter]:.2f}")
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=20))
        axis.set_xticks([row[letter] for row in rows])
        for scale in (axis.xaxis, axis.yaxis):
            scale.set_major_formatter(FuncFormatter(_plain))
            scale.set_minor_locator(NullLocator())
    axes[0].set(xlabel="P, variables in the block; none outside", ylabel="ms per sweep")
    axes[1].set(xlabel=f"q, variables outside a block of {result['rows'][-1]['P']}")
    return figure


def _lines(axis: Axes, result: Mapping[str, Any]) -> None:
    """A line for each prior, with its slope, and one for a bare product."""
    letter, rows = result["axis"], result["rows"]
    x = sorted({row[letter] for row in rows})
    lines = {prior: [row["ms"] for row in rows if row["prior"] == prior] for prior in result["slopes"]}
    own = [row for row in rows if row["prior"] == next(iter(lines))]
    lines["one bare product"] = [row["ms"] / row["over_product"] for row in own]
    for name, y in lines.items():
        axis.plot(x, y, **STYLES[name])
    axis.set(xscale="log", yscale="log", xlim=(x[0] / 1.15, x[-1] * (x[-1] / x[0]) ** 0.45))
    for scale, steps in ((axis.xaxis, (1, 3)), (axis.yaxis, (1,))):
        scale.set_major_locator(LogLocator(subs=steps, numticks=20))
        scale.set_major_formatter(FuncFormatter(_plain))
        scale.set_minor_locator(NullLocator())
    axis.set_xticks([tick for tick in axis.get_xticks() if x[0] <= tick <= x[-1]])
    axis.tick_params(axis="x", labelsize=8)
    _name_lines(axis, x[-1], {name: y[-1] for name, y in lines.items()}, result["slopes"])


def _name_lines(axis: Axes, x: float, ends: Mapping[str, float], slopes: Mapping[str, float]) -> None:
    """At their right ends, from the lowest up, each name a little above the last."""
    low, high = axis.get_ylim()
    least, last = (high / low) ** 0.06, 0.0
    for name, y in sorted(ends.items(), key=lambda end: end[1]):
        label = f"{name}, {slopes[name]:.2f}" if name in slopes else name
        last = max(y, last * least)
        look = {"va": "center", "fontsize": 8, "color": STYLES[name]["color"]}
        axis.annotate(label, (x, last), (7, 0), textcoords="offset points", **look)


def _plain(value: float, _: int) -> str:
    return f"{value:,.0f}" if value >= 1 else f"{value:g}"


def peers(results: Mapping[str, Any]) -> list[tuple[str, float, float | None]]:
    """What we are compared with, how many times as fast we are, and how many were aimed at."""
    bars: list[tuple[str, float, float | None]] = []
    for name, label, figure, aim in (
        ("dense", "sweeps: dense solver", "sweep", {312: 25}),
        ("network", "sweeps: Bayesian graphical lasso", "ratio", {312: 60}),
        ("nuts", "effective draws: NUTS", "ratio", {312: 20, 90: 10}),
        ("bdgraph", "sweeps with a latent query: BDgraph", "ratio", {312: 50}),
    ):
        for row in results.get(name, {"rows": []})["rows"]:
            more = f" {row['algorithm']}, {row['prior']}" if name == "bdgraph" else ""
            more += f", {row['table']}" if "table" in row else ""
            wanted = aim.get(row["q"]) if row.get("algorithm") != "rjmcmc" else None
            bars.append((f"{label}{more}\n({row['p']}, {row['q']}, {row['n']})", row[figure], wanted))
    return bars


def against_peers(bars: list[tuple[str, float, float | None]]) -> Any:
    """Dots on a logarithmic axis; a tick where the target is."""
    figure, axis = plt.subplots(figsize=(7.5, 0.8 + 0.42 * len(bars)), layout="constrained")
    for place, (_, value, aim) in enumerate(reversed(bars)):
        axis.plot([1, value], [place, place], color="#0072B2", linewidth=1.5)
        axis.plot(value, place, "o", color="#0072B2")
        beside = aim if aim and value < aim < 3 * value else value  # the number must not hide the target
        figure_text = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
        axis.annotate(figure_text, (beside, place), (8, 0), textcoords="offset points", va="center")
        if aim:
            axis.plot(aim, place, "|", color="black", markersize=13, markeredgewidth=1.5)
    axis.margins(y=0.08)
    axis.axvline(1, color="#555555", linewidth=0.8)
    axis.set(
        xscale="log", yticks=range(len(bars)), xlabel="times as fast as theirs, one core;  | marks the target"
    )
    axis.set_yticklabels([label for label, _, _ in reversed(bars)])
    axis.set_xlim(right=4 * max(value for _, value, _ in bars))
    axis.xaxis.set_major_formatter(FuncFormatter(_plain))
    return figure


def mixing(results: Mapping[str, Any]) -> Any:
    """Effective draws per second of the worst entries, bulk and tail, for every table and prior."""
    rows = [row for name in ("mixing", "tumours") for row in results.get(name, {"rows": []})["rows"]]
    pairs = list(dict.fromkeys((row["table"], row["prior"]) for row in rows))
    figure, axes = plt.subplots(
        1, 3, figsize=(11, 1 + 0.3 * len(pairs)), sharey=True, sharex=True, layout="constrained"
    )
    titles = {"worst entry of W12": ("W12",), "worst entry of W11": ("W11",), "worst hyperparameter": ()}
    for axis, (title, names) in zip(axes, titles.items(), strict=True):
        for place, pair in enumerate(reversed(pairs)):
            own = [
                row for row in rows if (row["table"], row["prior"]) == pair and _belongs(row["quantity"], names)
            ]
            _dots(axis, place, pair[1], own)
        axis.set(title=title, xscale="log")
        axis.grid(axis="x", color="#dddddd")
        axis.xaxis.set_major_formatter(FuncFormatter(_plain))
    axes[0].set_yticks(range(len(pairs)), [f"{table}:  {prior}" for table, prior in reversed(pairs)])
    figure.supxlabel("effective draws per second, one core; filled: bulk, open: tail", fontsize=9)
    return figure


def _belongs(quantity: str, names: tuple[str, ...]) -> bool:
    return quantity in names if names else quantity not in ("W11", "W12", "inclusion of an edge")


def _dots(axis: Axes, place: int, prior: str, rows: list[Mapping[str, Any]]) -> None:
    look = STYLES[prior]
    bulk, tail = (min(row[f"{kind}_per_second"] for row in rows) for kind in ("bulk", "tail"))
    axis.plot([bulk, tail], [place, place], color=look["color"], linewidth=1)
    axis.plot(tail, place, look["marker"], color=look["color"], markerfacecolor="white", markersize=7)
    axis.plot(bulk, place, look["marker"], color=look["color"])
