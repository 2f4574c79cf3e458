"""The page of `fscore`: pictures, tables, and what they say about our own claims and about the paper's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib as mpl
import pandas as pd

import fscore
from common import markdown, stamp, written
from methods import METHODS
from pictures import BLUE, GREEN, LOOK, ORANGE, SKY, plt, save

DEFAULT = "spike-slab"
# Contestants of the pictures and of the table of leads: colour and mark.
SHOWN = {
    DEFAULT: (BLUE, "o"),
    "bdgraph-mpl": (ORANGE, "s"),
    "bdgraph": (SKY, "D"),
    "huge-mb": (GREEN, "^"),
    "huge-glasso": ("black", "v"),
}
MEASURES = {"f": "f-score", "average_precision": "average precision"}
RULES = {"default": "`edges()`", "probability90": "`edges(probability=0.9)`", "fdr10": "`edges(fdr=0.1)`"}
FAMILIES = {
    "hubs": "The paper's networks with hubs",
    "bdgraph": "BDgraph's own simulator",
    "real": "A real regulatory network",
    "whole": "Whole networks",
}


def write(folder: Path, records: list[dict[str, Any]]) -> None:
    """Page, pictures and tables, of new records and of the scores that the folder has."""
    scores, before = fscore.scored(records), folder / "fscore_sets.csv"
    if before.exists():
        scores = fscore.together(scores, pd.read_csv(before))
    table, rates = fscore.summary(scores), fscore.error_rates(scores)
    with mpl.rc_context(LOOK):
        save(means(fscore.summary(beside_default(scores))), folder / "fscore.png")
        save(false_rates(rates), folder / "fscore_fdr.png")
    written(folder / "fscore.csv", table.round(4).to_csv(index=False))
    sizes = pd.DataFrame([fscore.size(design) for design in rates["design"]]).rename(columns={"n": "rows"})
    listed = sizes.join(rates).assign(fdr=rates["realised"])
    written(folder / "fscore_fdr.csv", listed.round(4).to_csv(index=False))
    written(folder / "fscore_sets.csv", one_by_one(scores).to_csv(index=False))
    text = page(table, rates, fscore.by_own_rule(scores), [record["source"] for record in records])
    written(folder / "fscore.md", text)


def beside_default(scores: pd.DataFrame, best: str = "spike-slab") -> pd.DataFrame:
    """The scores on data sets that the default was run on, too."""
    data_sets = scores.set_index(["design", "set"]).index
    return scores[data_sets.isin(data_sets[scores["method"] == best])]


def one_by_one(scores: pd.DataFrame) -> pd.DataFrame:
    """Every method on every data set, by every rule."""
    names = [*fscore.KEYS, "rule"]
    counts = ["edges", "claimed", "found", "wrong_sign"]
    shares = ["promised", "average_precision", "log_loss", "seconds"]
    return scores[[*names, *counts, *shares]].round(4).sort_values(names)


# ------------------------------------------------------------------------------------------------- pictures


def means(table: pd.DataFrame) -> Any:
    """Mean f-score and average precision of the main contestants, design by design."""
    designs = list(dict.fromkeys(table["design"]))
    size = (9.2, 1.4 + 0.33 * len(designs))
    figure, axes = plt.subplots(1, 2, figsize=size, sharey=True, layout="constrained")
    for axis, (measure, label) in zip(axes, MEASURES.items(), strict=True):
        for shift, (method, (colour, mark)) in enumerate(SHOWN.items()):
            one = table[table["method"] == method].set_index("design")
            places = [designs.index(name) + 0.13 * (shift - 2) for name in one.index]
            bars = {"xerr": 2 * one[f"{measure}_se"].fillna(0), "elinewidth": 0.8, "markersize": 4}
            axis.errorbar(
                one[f"{measure}_mean"], places, fmt=mark, color=colour, label=METHODS[method].label, **bars
            )
        axis.set(xlabel=f"{label}, mean ± 2 standard errors", xlim=(0, 1.02))
        axis.grid(axis="x", color="#DDDDDD", linewidth=0.6)
        axis.set_axisbelow(True)
    axes[0].set_yticks(range(len(designs)), [titled(name) for name in designs])
    axes[0].invert_yaxis()
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, frameon=False)
    return figure


def false_rates(rates: pd.DataFrame) -> Any:
    """Realised against promised share of false edges: a panel per rule, a mark per design and method."""
    figure, axes = plt.subplots(1, len(RULES), figsize=(9.2, 3.6), sharey=True, layout="constrained")
    for axis, (rule, label) in zip(axes, RULES.items(), strict=True):
        for method in (DEFAULT, "bdgraph-mpl", "bdgraph"):
            one = rates[(rates["rule"] == rule) & (rates["method"] == method)]
            colour, mark = SHOWN[method]
            look = {"fmt": mark, "color": colour, "markersize": 4, "elinewidth": 0.7}
            bars = 2 * one["realised_se"].fillna(0)
            axis.errorbar(one["promised"], one["realised"], yerr=bars, label=METHODS[method].label, **look)
        axis.axline((0, 0), slope=1, color="black", linewidth=0.8, linestyle=":")
        axis.set(
            title=label.strip("`"), xlabel="promised share of false edges", xlim=(-0.01, 0.32), ylim=(-0.02, 0.7)
        )
    axes[0].set_ylabel("realised, ± 2 standard errors")
    figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
    return figure


# ----------------------------------------------------------------------------------------------------- text


def page(table: pd.DataFrame, rates: pd.DataFrame, scores: pd.DataFrame, sources: list[dict[str, Any]]) -> str:
    """Markdown."""
    parts = ["<!-- Written by studies/fscore.py --page. -->", "# How well true blankets are found"]
    parts += [INTRODUCTION, verdict(table), "![Mean f-scores and average precisions](fscore.png)"]
    for measure, label in MEASURES.items():
        parts += [
            f"By how much the default leads in **{label}**, paired, with standard errors [data sets]:",
            leads(table, measure),
        ]
    for family, title in FAMILIES.items():
        chosen = table[table["family"] == family]
        if len(chosen):
            parts += [f"## {title}", ABOUT[family]]
        for design, one in chosen.groupby("design", sort=False):
            parts += [f"### {titled(design)}", figures(one), papers_claim(scores, design)]
    parts += ["## False edges", ABOUT_RATES, promise(rates), "![Realised and promised](fscore_fdr.png)"]
    parts += [
        "*Dotted: realised equals promised. Marks below the line keep their word.*",
        rates_table(rates),
        FILES,
    ]
    return "\n\n".join(part for part in [*parts, stamp(sources, "fscore.py")] if part) + "\n"


def titled(design: str) -> str:
    """A reader's name of a design."""
    known = fscore.BY_NAME[design]
    kinds = {"hubs": "hubs, ", "whole": "whole network with hubs, "}
    return kinds.get(fscore.FAMILY[design], "") + known.title


def rivals(table: pd.DataFrame) -> pd.DataFrame:
    """Other programs, on data sets that the default had as well."""
    others = table["method"].map(lambda name: METHODS[name].family == "peers")
    return table[others & (table["shared"] > 0)]


def verdict(table: pd.DataFrame) -> str:
    """In how many designs the default leads every other program, and which are lost to whom."""
    peers, sentences = rivals(table), []
    for measure, label in MEASURES.items():
        lead, error = peers[f"{measure}_lead"], peers[f"{measure}_lead_se"].fillna(0)
        behind = peers[lead < 0]
        designs = peers["design"].nunique()
        ahead = designs - behind["design"].nunique()
        sentences.append(
            f"In mean {label} the default is at least as good as all others in {ahead} of {designs} designs."
        )
        for row, se in zip(behind.itertuples(), error[lead < 0], strict=True):
            gap = getattr(row, f"{measure}_lead")
            clear = "**Lost**" if gap < -2 * se else "Behind, within two standard errors"
            sentences.append(f"{clear}: {titled(row.design)}, {METHODS[row.method].label}, {gap:+.3f} ({se:.3f}).")
    return " ".join(sentences)


def leads(table: pd.DataFrame, measure: str) -> str:
    """A row per design: the default's mean, and its lead over each of the others."""
    others = [name for name in SHOWN if name != DEFAULT and name in set(table["method"])]
    rows = []
    for design, one in table.groupby("design", sort=False):
        found = one.set_index("method")
        own = f"{found.loc[DEFAULT, f'{measure}_mean']:.3f}" if DEFAULT in found.index else ""
        rows.append((titled(design), own, *(_lead(found, name, measure) for name in others)))
    return markdown(("design", "default", *(METHODS[name].label for name in others)), rows)


def _lead(found: pd.DataFrame, method: str, measure: str) -> str:
    """With its standard error, and the number of data sets."""
    if method not in found.index or not found.loc[method, "shared"]:
        return ""
    row = found.loc[method]
    return f"{told(row[f'{measure}_lead'], row[f'{measure}_lead_se'], '+.3f')} [{row['shared']:.0f}]"


def told(mean: float, se: float = float("nan"), form: str = ".3f") -> str:
    """A mean, with its standard error if there is one; nothing if there is no mean."""
    if pd.isna(mean):
        return ""
    return f"{mean:{form}}" if pd.isna(se) else f"{mean:{form}} ({se:.3f})"


def figures(table: pd.DataFrame) -> str:
    """A row per method of one design."""
    head = ("method", "sets", "f", "average precision", "log loss", "precision", "recall", "wrong signs", "CPU s")
    rows = []
    for row in table.itertuples():
        quality = (told(row.f_mean, row.f_se), told(row.average_precision_mean, row.average_precision_se))
        shares = (told(row.precision_mean, form=".2f"), told(row.recall_mean, form=".2f"))
        rest = (told(row.log_loss_mean), *shares, told(row.wrong_signs, form=".2f"), f"{row.seconds_mean:.1f}")
        rows.append((METHODS[row.method].label, row.sets, *quality, *rest))
    return markdown(head, rows)


def papers_claim(scores: pd.DataFrame, design: str) -> str:
    """What holds of "BGL has high recall, many unnecessary edges and a low f-score", on the sets that both had."""
    here, said = scores[scores["design"] == design], []
    for rate in (50, 200):
        pair = [here[here["method"] == f"{name}-{rate}"].set_index("set") for name in ("bgl", "laplace")]
        shared = pair[0].index.intersection(pair[1].index)
        names = {"precision": "precision", "recall": "recall", "f": "f-score"}
        medians = [
            ", ".join(f"{key} {one.loc[shared, name].median():.2f}" for name, key in names.items()) for one in pair
        ]
        if len(shared):
            said.append(
                f"at a rate of {rate} ({len(shared)} data sets) BGL {medians[0]}; the paper's model {medians[1]}"
            )
    return f"{CLAIM} Medians of the data sets that both had: {', and '.join(said)}." if said else ""


def promise(rates: pd.DataFrame) -> str:
    """In how many designs the default's realised share is at most the promised one, within two standard errors."""
    sentences = []
    for rule, label in RULES.items():
        one = rates[(rates["rule"] == rule) & (rates["method"] == DEFAULT)].dropna(subset=["over_se"])
        broken = one[one["over"] > 2 * one["over_se"]]
        if len(one):
            sentences.append(
                f"{label}: kept within two standard errors in {len(one) - len(broken)} of {len(one)}."
            )
        sentences += [
            f"**Not kept**: {titled(row.design)}, {row.realised:.3f} false, {row.promised:.3f} promised."
            for row in broken.itertuples()
        ]
    return " ".join(sentences)


def rates_table(rates: pd.DataFrame) -> str:
    """The default by all rules."""
    rows = [
        (
            titled(row.design),
            RULES[row.rule],
            row.sets,
            f"{row.claimed:.1f}",
            told(row.realised, row.realised_se),
            f"{row.promised:.3f}",
            f"{row.recall:.2f}",
        )
        for row in rates[(rates["method"] == DEFAULT) & rates["rule"].isin(RULES)].itertuples()
    ]
    return markdown(("design", "rule", "sets", "edges", "false (se)", "promised", "recall"), rows)


INTRODUCTION = """Wanted are all edges that touch one of the query variables, those among the query included, in
Gaussian tables whose network is known. *F-score*: the harmonic mean of precision and recall of what a method
selects by its own rule. *Average precision*: how well it orders all pairs, whatever is selected. *Log loss*:
the mean negative logarithm of the probability given to what is true, an edge or none, for methods that have
probabilities (0 and 1 count as 0.001 and 0.999). Who claims no edge has precision 1 and f-score 0. Signs do not
enter any score, unlike in the paper: two of the contestants have none. Wrong signs are counted beside, per data
set, among the edges claimed that are there.

The default is `estimate` as it is, told only that the columns are Gaussian; its rule is `edges()`. The others
select by their own defaults: BDgraph edges of probability above 1/2, after 5,000 iterations (mpl) or 3,000
(bdmcmc), half of them burn-in (version 2.72); huge (1.3.5) by its rotation criterion (ric) or the extended BIC,
its pairs ordered by the penalty at which they enter a path of 100; scikit-learn's `GraphicalLassoCV` what is
not zero. All get standardised columns. Times are CPU seconds on one core, of fit and selection, taken beside
other work. Slow methods were run on fewer data sets than fast ones; every line says on how many, and
differences are taken on the data sets that both had, with standard errors in parentheses. The picture has means
over the data sets that the default was run on.

The constants of the default's prior were chosen on the first sets: up to set 15 of the hubs at density 0.05 with
200 rows, and up to set 5 of the other designs. Here are sets from 20 on alone; but for the hubs at density 0.05
with 1,000 rows, where slow methods were run on the first ones, all sets are."""

ABOUT = {
    "hubs": """The experiment of the paper's section on artificial data: a network of 100 variables with hubs
(weights uniform in [0.3, 1] with random signs, the diagonal large enough for positive definiteness), 10 of them
the query. Where they are shown, the paper's priors and BGL run one chain of 300 + 700 sweeps, the paper's
schedule; with a fixed rate they select by 85 % credible intervals, as the paper does. The paper's model is
sparse between query and rest only, so it finds too many
edges among the query. *Own units* is the
Laplace prior on the scatter as it is. The paper's rate is 200, chosen to make precision and recall of its model
about equal; which rate does so depends on the data and on their units. How strong the paper's hubs are and how
large its diagonal is, the paper does not say, so its numbers cannot be set beside these one by one.""",
    "bdgraph": """`bdgraph.sim` with its defaults: 60 variables, a graph that is random (a fifth of all pairs),
clustered, scale-free or with hubs, weights of a G-Wishart law, which is the prior of BDgraph's bdmcmc; 8 variables
drawn at random are the query. Many true edges are too weak to be found by anyone.""",
    "real": """ecoli70, a Gaussian Bayesian network of 46 genes of *E. coli* (Schäfer and Strimmer 2005, from the
bnlearn repository), with coefficients and variances as pgmpy ships them. The truth is its moral graph. Some
genes are nearly determined by others (98.7 % of the variance at most); 8 drawn at random are the query.""",
    "whole": """The paper's networks of 100 variables once more, and all of their edges are wanted: every column is
a query column, so that nothing is left outside the block.""",
}

CLAIM = """The paper finds that BGL has a high recall, but many unnecessary edges and so a low f-score, at the same
rate as its own model."""

FILES = """The tables as files: `docs/studies/fscore.csv`, `docs/studies/fscore_fdr.csv`; and what they were made
of, every method on every data set, the results of earlier dates among them: `docs/studies/fscore_sets.csv`. The
line below tells of the newest."""

ABOUT_RATES = """The probabilities promise a share of false edges: the mean of one minus the probability over
what is selected. `edges(fdr=0.1)` keeps this mean at or below 0.1, and `edges(probability=0.9)` every single
one. Measured is the share of selected edges that are not there, data set by data set; none selected is none
false."""
