"""The page of `fscore`: box plots, tables, and what they say about the paper's claims and about our own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd
from matplotlib.patches import Patch

import fscore
from common import markdown, stamp, written
from methods import METHODS
from pictures import BLUE, GREEN, LOOK, ORANGE, SKY, plt, save

FAMILIES = {
    "ours": ("this package", BLUE, ""),
    "fixed": ("the paper's Laplace prior, γ fixed, 85 % intervals", SKY, "//"),
    "bgl": ("Bayesian graphical lasso, 85 % intervals", ORANGE, "xx"),
    "peers": ("others, by their own defaults", GREEN, ".."),
}
DEFAULT = "spike-slab"
MEASURES = {"precision": "precision", "recall": "recall", "f": "f-score"}


def write(folder: Path, records: list[dict[str, Any]]) -> None:
    """Page, picture and table."""
    scores = fscore.scored(records)
    table, rates = fscore.summary(scores), fscore.error_rates(scores)
    with mpl.rc_context(LOOK):
        save(boxes(fscore.by_own_rule(scores), table), folder / "fscore.png")
        save(false_rates(rates), folder / "fscore_fdr.png")
    written(folder / "fscore.csv", table.round(4).to_csv(index=False))
    written(folder / "fscore_fdr.csv", rates.round(4).to_csv(index=False))
    written(folder / "fscore_sets.csv", one_by_one(scores).to_csv(index=False))
    text = page(table, rates, fscore.by_own_rule(scores), [record["source"] for record in records])
    written(folder / "fscore.md", text)


def one_by_one(scores: pd.DataFrame) -> pd.DataFrame:
    """The counts of every method on every data set, by its own rule and by `edges(fdr=0.1)`."""
    own = scores["method"].map(lambda name: METHODS[name].rule)
    names = {"rows": "n", "density": "density", "method": "method", "set": "set", "rule": "rule"}
    counts = ["found", "false", "missed", "wrong_sign", "seconds"]
    chosen = scores[(scores["rule"] == own) | (scores["rule"] == "fdr10")]
    return chosen[[*names, *counts]].rename(columns=names).round({"seconds": 1}).sort_values(list(names.values()))


# ------------------------------------------------------------------------------------------------- pictures


def boxes(scores: pd.DataFrame, table: pd.DataFrame) -> Any:
    """A panel per design, a box per method, and at its right how many data sets there were."""
    designs, methods = compared(table), [name for name in METHODS if name in set(table["method"])]
    size = (2.6 + 2.7 * len(designs), 1.6 + 0.27 * len(methods))
    figure, axes = plt.subplots(1, len(designs), figsize=size, sharey=True, squeeze=False, layout="constrained")
    for axis, (n, density) in zip(axes[0], designs, strict=True):
        chosen = scores[(scores["rows"] == n) & (scores["density"] == density)]
        _panel(axis, methods, {name: group["f"] for name, group in chosen.groupby("method")})
        axis.set(title=f"n = {n:,}, density {density:g}", xlabel="f-score", xlim=(0, 1))
    axes[0, 0].set_yticks(range(len(methods)), [METHODS[name].label for name in methods])
    axes[0, 0].invert_yaxis()
    keys = [
        Patch(facecolor=colour, hatch=hatch, edgecolor="white", label=name)
        for name, colour, hatch in _used(methods)
    ]
    figure.legend(handles=keys, loc="outside lower center", ncols=min(2, len(designs)), frameon=False)
    return figure


def _used(methods: list[str]) -> list[tuple[str, str, str]]:
    families = {METHODS[name].family for name in methods}
    return [look for family, look in FAMILIES.items() if family in families]


def _panel(axis: Any, methods: list[str], values: dict[str, pd.Series]) -> None:
    """Boxes from quartile to quartile, whiskers to the farthest within 1.5 of that, and the default's median."""
    for place, name in enumerate(methods):
        if name in values:
            _, colour, hatch = FAMILIES[METHODS[name].family]
            look = {"facecolor": colour, "edgecolor": "white", "hatch": hatch}
            lines = {"medianprops": {"color": "black", "linewidth": 2}, "flierprops": {"markersize": 2.5}}
            axis.boxplot(
                values[name],
                positions=[place],
                orientation="horizontal",
                widths=0.65,
                patch_artist=True,
                boxprops=look,
                **lines,
            )
            axis.text(1.02, place, len(values[name]), va="center", fontsize=7)
    axis.text(1.02, -0.75, "sets", fontsize=7)
    if DEFAULT in values:
        axis.axvline(values[DEFAULT].median(), color="black", linewidth=0.8, linestyle=":")
    axis.grid(axis="x", color="#DDDDDD", linewidth=0.6)
    axis.set_axisbelow(True)


def false_rates(rates: pd.DataFrame) -> Any:
    """Realised false discovery rate of `edges(fdr=0.1)`, method by method, designs side by side."""
    chosen = rates[rates["rule"] == "fdr10"]
    methods = [name for name in METHODS if name in set(chosen["method"])]
    designs = list(chosen[["rows", "density"]].drop_duplicates().itertuples(index=False))
    figure, axis = plt.subplots(figsize=(6.4, 3.2), layout="constrained")
    marks = dict(zip(designs, "osD^vPX<>", strict=False))
    for shift, (n, density) in enumerate(designs):
        one = chosen[(chosen["rows"] == n) & (chosen["density"] == density)].set_index("method").reindex(methods)
        places = [place + 0.7 * (shift + 0.5) / len(designs) - 0.35 for place in range(len(methods))]
        colour = plt.colormaps["cividis"](0.85 * shift / max(1, len(designs) - 1))
        axis.errorbar(
            one["fdr"],
            places,
            xerr=2 * one["se"],
            fmt=marks[n, density],
            color=colour,
            markersize=5,
            label=f"n = {n:,}, density {density:g}",
        )
    axis.axvline(0.1, color="black", linewidth=1, linestyle=":")
    axis.set_yticks(range(len(methods)), [METHODS[name].label for name in methods])
    axis.invert_yaxis()
    axis.set(xlabel="false discoveries among edges(fdr=0.1), mean ± 2 standard errors", xlim=(0, 1))
    axis.legend(frameon=False, fontsize=8)
    return figure


# ----------------------------------------------------------------------------------------------------- text


def page(table: pd.DataFrame, rates: pd.DataFrame, scores: pd.DataFrame, sources: list[dict[str, Any]]) -> str:
    """Markdown."""
    parts = ["<!-- Written by studies/fscore.py --page. -->", "# How well true blankets are found"]
    parts += [INTRODUCTION, "![Box plots of f-scores](fscore.png)", CAPTION]
    for n, density in compared(table):
        one = table[(table["n"] == n) & (table["density"] == density)]
        parts += [
            f"## n = {n:,}, density {density:g}",
            verdict(one),
            figures(one),
            papers_claim(scores, n, density),
        ]
    parts += ["## False discoveries", ABOUT_RATES, "![Realised false discovery rates](fscore_fdr.png)"]
    parts += ["*The dotted line is the promise.*"]
    parts += [promise(rates), rates_table(rates)]
    parts += [FILES]
    return "\n\n".join(part for part in [*parts, stamp(sources, "fscore.py")] if part) + "\n"


def compared(table: pd.DataFrame) -> list[tuple[int, float]]:
    """The designs with more than one method: number of rows, and density."""
    counts = table.groupby(["n", "density"], sort=False)["method"].nunique()
    return list(counts.index[counts > 1])


def figures(table: pd.DataFrame) -> str:
    """A row per method."""
    head = ("method", "sets", "median f", "quartiles", "precision", "recall", "CPU s", "default leads by")
    rows = []
    for row in table.itertuples():
        lead = "" if row.method == DEFAULT else f"{row.default_leads_by:+.3f} ({row.lead_se:.3f})"
        quality = (f"{row.f:.3f}", f"{row.f_lower:.2f} to {row.f_upper:.2f}")
        quality += (f"{row.precision:.2f}", f"{row.recall:.2f}")
        rows.append((METHODS[row.method].label, row.sets, *quality, f"{row.seconds:.1f}", lead))
    return markdown(head, rows)


def verdict(table: pd.DataFrame) -> str:
    """Does the default's median reach the best other's, and every fixed rate's? On the sets that both had."""
    sentences = []
    for family, whom in (("peers", "the best of the others"), ("fixed", "the best fixed γ")):
        rivals = table[table["method"].map(lambda name, of=family: METHODS[name].family == of)]
        if len(rivals) and DEFAULT in set(table["method"]):
            best = rivals.loc[rivals["f"].idxmax()]
            holds = "is at least" if best["default_f"] >= best["f"] else "is **below**"
            sentences.append(
                f"The default's median f-score, {best['default_f']:.3f}, {holds} that of {whom}, "
                f"{METHODS[best['method']].label} with {best['f']:.3f} (on the same {best['sets']} data sets)."
            )
    return " ".join(sentences)


def papers_claim(scores: pd.DataFrame, n: int, density: float) -> str:
    """What holds of "BGL has high recall, many unnecessary edges and a low f-score", on the sets that both had."""
    here = scores[(scores["rows"] == n) & (scores["density"] == density)]
    said = []
    for rate in (50, 200):
        pair = [here[here["method"] == f"{name}-{rate}"].set_index("set") for name in ("bgl", "laplace")]
        shared = pair[0].index.intersection(pair[1].index)
        told = [
            ", ".join(f"{key} {one.loc[shared, name].median():.2f}" for name, key in MEASURES.items())
            for one in pair
        ]
        if len(shared):
            said.append(
                f"at a rate of {rate} ({len(shared)} data sets) BGL {told[0]}; the paper's model {told[1]}"
            )
    if not said:
        return ""
    return f"{CLAIM} Medians of the data sets that both had: {', and '.join(said)}."


def promise(rates: pd.DataFrame) -> str:
    """Which priors keep the rate within two standard errors, in every design with more than one data set."""
    chosen = rates[rates["rule"] == "fdr10"].dropna(subset=["se"])
    kept = (chosen["fdr"] <= 0.1 + 2 * chosen["se"]).groupby(chosen["method"]).all()
    said = {True: "Kept within two standard errors in every design", False: "Not kept in at least one design"}
    names = {flag: [METHODS[name].label for name in kept.index[kept == flag]] for flag in said}
    return " ".join(f"{said[flag]}: {'; '.join(found)}." for flag, found in names.items() if found)


def rates_table(rates: pd.DataFrame) -> str:
    """Both rules."""
    names = {"fdr10": "`edges(fdr=0.1)`", "default": "`edges()`"}
    rows = [
        (
            names[row.rule],
            METHODS[row.method].label,
            row.rows,
            f"{row.density:g}",
            row.sets,
            f"{row.fdr:.3f} ({row.se:.3f})",
            f"{row.recall:.2f}",
        )
        for row in rates.itertuples()
    ]
    return markdown(("rule", "prior", "n", "density", "sets", "false discoveries (se)", "recall"), rows)


INTRODUCTION = """The experiment of the paper's section on artificial data, repeated with more contestants. A
network of 100 variables with hubs is drawn (weights uniform in [0.3, 1] with random signs, the diagonal large
enough for positive definiteness), 10 variables are the query and 90 the rest, and n rows are drawn from it.
Wanted are the edges between query and rest. The *f-score* is the harmonic mean of precision and recall; an edge
found with the wrong sign counts as missing, as in the paper, which lowers recall and leaves precision alone.
Who claims no edge at all has precision 1, recall 0 and f-score 0.

Slow methods were run on fewer data sets than fast ones; every box and every line says on how many, and
differences to the default are taken on the data sets that both had, with their standard errors in parentheses.

Our samplers and BGL run one chain of 300 + 700 sweeps, the paper's schedule. The Laplace prior with a fixed
rate γ and BGL select by 85 % credible intervals, as the paper does; the other priors of this package by its
default rule (`edges()`: for spike and slab the set of largest expected f-score, see [the rules](rules.md), else
95 % intervals). The default looks at likely edges from both ends; *one end* does not. The others select by
their own defaults: BDgraph edges of probability at least 1/2 after 5,000 iterations; huge by its rotation
criterion (ric) or the extended BIC; scikit-learn's `GraphicalLassoCV` what is not zero. All get standardised
columns, but for one line: *own units* is the Laplace prior on the scatter as it is. The paper's rate is 200,
chosen to make precision and recall of its model about equal; which rate does so depends on the data and on
their units, so BGL is shown at 50, too. *Normal scores* is what `estimate` does when it is told nothing about
the columns; all other fits are told that they are Gaussian, as are the others' methods. Estimators without
weights (mpl, mb) get their signs from the inverse sample covariance. The quality of the paper's networks cannot
be set beside these numbers one by one: how strong its hubs are and how large its diagonal is, the paper does
not say."""

CAPTION = """*Boxes go from quartile to quartile, their black line is the median; the dotted line is the default's
median. At the right, the number of data sets.*"""

CLAIM = """The paper finds that BGL has a high recall, but many unnecessary edges and so a low f-score, at the same
rate as its own model."""

FILES = """The tables as files: `docs/studies/fscore.csv`, `docs/studies/fscore_fdr.csv`; and what they were made
of, every method on every data set: `docs/studies/fscore_sets.csv`."""

ABOUT_RATES = """`edges(fdr=0.1)` promises that the expected share of wrong calls among the edges is at most
0.1, if the prior is right. Measured is that share, where an edge of the wrong sign is a false discovery too.
The promise speaks of signs: a prior without exact zeros knows no "no edge", it takes every true zero for a
small weight whose sign can be guessed, so it has no reason to keep the promise in the sense that is measured
here."""
