"""Which edges to select? Rules on probabilities from one end or both, where the truth is known.

    python studies/rules.py [--rows 200 1000] [--densities 0.02 0.05 0.15] [--sets 10]
        [--first 1000] [--jobs 1] [--out rules/]
    python studies/rules.py --page [--out rules/]

Data as in `fscore`; the default prior, one chain of 300 + 700 sweeps, and a second look of 150 + 500 sweeps for
every candidate. Kept are the probabilities of all pairs, so that a new rule needs no new fit; `--page` makes
docs/studies/rules.md of all that is in the folder.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from scipy.special import expit, logit

import markovblanket as mb
from common import DOCS, kept, markdown, one_thread, quietly, source, stamp, unwarned, written
from fscore import Design
from markovblanket.posterior.selection import least_inclusion

KEYS = ["query", "variable"]
MEASURES = ("f", "precision", "recall", "false", "promised")


def measured(design: Design, number: int) -> dict[str, Any]:
    """The truth and the probabilities of all pairs, of one data set."""
    data = design.data(number)
    options = {"warmup": design.warmup, "draws": design.draws, "seed": number, "n_jobs": 1}
    posterior = quietly(
        mb.estimate, data.table, data.query, margins="gaussian", chains=1, second_look=False, **options
    )
    looked = unwarned(mb.second_look, posterior, chains=1, warmup=150, draws=500, seed=number).set_index(KEYS)
    pairs = data.truth.set_index(KEYS)[["weight"]].rename(columns={"weight": "true"})
    pairs = pairs.join(posterior.edges(all=True).set_index(KEYS)[["weight", "inclusion", "sign_probability"]])
    pairs["other"], pairs["both"] = looked["inclusion_other"], looked["inclusion_both"]
    columns = {name: [None if np.isnan(x) else round(x, 4) for x in pairs[name]] for name in pairs}
    return {"n": design.rows, "density": design.density, "set": number, "pairs": columns, "source": source()}


def once(folder: Path, design: Design, number: int) -> None:
    """Unless it is there."""
    kept(folder / design.name / f"{number}.json", lambda: measured(design, number))


# Ends and rules ----------------------------------------------------------------------------------------

Ends = Callable[[pd.DataFrame], pd.Series]
ENDS: dict[str, Ends] = {
    "query's end": lambda pairs: pairs["inclusion"],
    "likelier end": lambda pairs: pairs[["inclusion", "other"]].max(axis=1),
    "mean of ends": lambda pairs: pairs[["inclusion", "other"]].mean(axis=1),
    "mean of log-odds": lambda pairs: mean_of_odds(pairs["inclusion"], pairs["other"]),
    "product of odds": lambda pairs: pairs["both"].fillna(pairs["inclusion"]),
}


def mean_of_odds(one: pd.Series, other: pd.Series) -> pd.Series:
    """The geometric mean of the odds, as a probability; 0 and 1 count as half of 500 draws away."""
    odds = [logit(share.clip(0.001, 0.999)) for share in (one, other.fillna(one))]
    return pd.Series(expit(sum(odds) / 2), index=one.index)


RULES: dict[str, Callable[[pd.Series], float]] = {
    "at least 1/2": lambda p: 0.5,
    "expected f": lambda p: least_inclusion(p.to_numpy(), most_false=1.0),
    "expected f, at most 50 % false": lambda p: least_inclusion(p.to_numpy(), most_false=0.5),
    "expected f, at most 30 % false": lambda p: least_inclusion(p.to_numpy(), most_false=0.3),
}


def judged(pairs: pd.DataFrame, ends: str, rule: str) -> dict[str, float]:
    """F-score as in `fscore`, and the share of false edges beside the promised one."""
    probability = ENDS[ends](pairs)
    chosen = probability >= RULES[rule](probability)
    right = chosen & (np.sign(pairs["true"]) == np.sign(pairs["weight"])) & (pairs["true"] != 0)
    absent = int((chosen & (pairs["true"] == 0)).sum())
    found, true = int(right.sum()), int((pairs["true"] != 0).sum())
    return {
        "f": 2 * found / max(found + absent + true, 1),
        "precision": found / (found + absent) if found + absent else 1.0,
        "recall": found / max(true, 1),
        "false": 1 - found / max(int(chosen.sum()), 1) if chosen.any() else 0.0,
        "promised": float(1 - probability[chosen].mean()) if chosen.any() else 0.0,
    }


def page(records: list[dict[str, Any]]) -> str:
    """Markdown."""
    rows = [
        {"n": record["n"], "density": record["density"], "ends": ends, "rule": rule} | judged(pairs, ends, rule)
        for record in records
        for pairs in [pd.DataFrame(record["pairs"], dtype=float)]
        for ends in ENDS
        for rule in RULES
    ]
    parts = ["<!-- Written by studies/rules.py --page. -->", "# Which edges to select", ABOUT]
    for (n, density), table in pd.DataFrame(rows).groupby(["n", "density"]):
        means = table.groupby(["ends", "rule"], sort=False).mean().reset_index()
        sets = sum(record["n"] == n and record["density"] == density for record in records)
        lines = [
            (row.ends, row.rule, *(f"{getattr(row, name):.2f}" for name in MEASURES)) for row in means.itertuples()
        ]
        head = ("probability", "rule", *MEASURES)
        parts += [f"## n = {n:,}, density {density:g} ({sets} sets)", markdown(head, lines)]
    return "\n\n".join([*parts, stamp([record["source"] for record in records], "rules.py")]) + "\n"


ABOUT = """Means over simulated data sets of the same kind as those of [the comparison](fscore.md), but not the
same ones. The probability of an edge is seen from the query's end, which is the model's own view; or also from
the other end ([a second look](../questions.md#a-second-look)), and then the likelier end counts, or the mean of
both, or the product of the odds. *Expected f* is the set with the largest expected f-score, which is twice the
sum of p over the set, divided by its size plus the sum of all p. *False* is the realised share of selected
edges that are not there or have the other sign; *promised* is what the probabilities say it is.

The default of `edges()` is the *likelier end* with *expected f, at most 30 % false*. Where rows are few it
finds more than the rule *at least 1/2*, and in every design the realised share of false edges stayed below the
promised one, which does not hold for the product of odds. The limit of 30 % keeps the rule from selecting edges
where there is nothing to find."""


def main() -> None:
    """Fit what is not there yet; or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 1000])
    parser.add_argument("--densities", type=float, nargs="+", default=[0.02, 0.05, 0.15])
    parser.add_argument("--sets", type=int, default=10)
    parser.add_argument("--first", type=int, default=1000, help="number of the first set; fscore uses 0 to 99")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--out", type=Path, default=Path("rules"))
    given = parser.parse_args()
    one_thread()
    designs = [Design(rows, density) for rows in given.rows for density in given.densities]
    tasks = (
        []
        if given.page
        else [(design, number) for number in range(given.first, given.first + given.sets) for design in designs]
    )
    joblib.Parallel(n_jobs=given.jobs)(joblib.delayed(once)(given.out, *task) for task in tasks)
    records = [json.loads(path.read_text()) for path in sorted(given.out.glob("*/*.json"))]
    written(DOCS / "rules.md", page(records))


if __name__ == "__main__":
    main()
