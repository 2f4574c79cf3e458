"""Which edges to select? Rules on the probabilities of the default, where the truth is known.

    python studies/rules.py [--designs hubs bdgraph real] [--sets 10] [--first 1000] [--jobs 1] [--out rules/]
    python studies/rules.py --page [--out rules/]

Designs as in `fscore`, but other data sets, so that the rule is not chosen on those by which it is judged. Kept
are the probabilities of all pairs, so a new rule needs no new fit; `--page` makes docs/studies/rules.md of all
that is in the folder.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import fscore
from common import DOCS, markdown, one_thread, stamp, written
from designs import DESIGNS
from markovblanket.posterior.selection import least_inclusion
from methods import within_rate

MEASURES = ("f", "precision", "recall", "realised", "promised")

Rule = Callable[[np.ndarray], np.ndarray]


def expected_f(most_false: float) -> Rule:
    """The largest expected f-score with at most this expected share of false edges."""
    return lambda p: p >= least_inclusion(p, most_false=most_false)


RULES: dict[str, Rule] = {
    "at least 1/2": lambda p: p >= 0.5,
    "at least 0.9": lambda p: p >= 0.9,
    "expected share of false edges at most 0.1": lambda p: within_rate(p, 0.1),
    "expected f": expected_f(1.0),
    "expected f, at most 50 % false": expected_f(0.5),
    "expected f, at most 30 % false": expected_f(0.3),
    "expected f, at most 20 % false": expected_f(0.2),
}


def judged(record: dict[str, Any], rule: str) -> dict[str, float]:
    """Scores as in `fscore`, of what a rule selects by the probabilities of a result."""
    chosen = np.flatnonzero(RULES[rule](np.array(record["score"])))
    return fscore.of_a_rule(record | {"chosen": {rule: chosen.tolist()}}, rule)


def table(records: list[dict[str, Any]]) -> pd.DataFrame:
    """A row per family of designs, number of rows and rule: means over data sets."""
    rows = [
        {"family": fscore.FAMILY[record["design"]], "n": record["options"]["rows"], "rule": rule}
        | judged(record, rule)
        for record in records
        for rule in RULES
    ]
    grouped = pd.DataFrame(rows).groupby(["family", "n", "rule"], sort=False)
    return grouped[list(MEASURES)].mean().assign(sets=grouped.size()).reset_index()


def page(records: list[dict[str, Any]]) -> str:
    """Markdown."""
    parts = ["<!-- Written by studies/rules.py --page. -->", "# Which edges to select", ABOUT]
    for (family, n), one in table(records).groupby(["family", "n"], sort=False):
        lines = [(row.rule, *(f"{getattr(row, name):.2f}" for name in MEASURES)) for row in one.itertuples()]
        title = f"## {TITLES[family]}, n = {n:,} ({one['sets'].iloc[0]} sets)"
        parts += [title, markdown(("rule", "f", "precision", "recall", "false", "promised"), lines)]
    return "\n\n".join([*parts, stamp([record["source"] for record in records], "rules.py")]) + "\n"


TITLES = {"hubs": "Hubs", "bdgraph": "BDgraph's simulator", "real": "ecoli70"}
ABOUT = """Means over data sets of the same designs as those of [the comparison](fscore.md), but not the same
ones. *Expected f* is the set with the largest expected f-score, which is twice the sum of p over the set,
divided by its size plus the sum of all p, where p is the probability of an edge. *False* is the realised share
of selected edges that are not there; *promised* is what the probabilities say it is.

The default of `edges()` is *expected f, at most 30 % false*. Where rows are few it finds more than the rule *at
least 1/2*; the limit keeps it from selecting edges where there is nothing to find."""


def main() -> None:
    """Fit what is not there yet; or write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [*DESIGNS, *fscore.BY_NAME]
    parser.add_argument("--designs", nargs="+", default=list(DESIGNS), choices=names, metavar="DESIGN")
    parser.add_argument("--sets", type=int, default=10)
    parser.add_argument("--first", type=int, default=1000, help="number of the first set; fscore uses 0 to 99")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--page", action="store_true", help="run nothing, write the page")
    parser.add_argument("--out", type=Path, default=Path("rules"))
    parser.add_argument("--docs", type=Path, default=DOCS, help="where --page writes")
    given = parser.parse_args()
    one_thread()
    if not given.page:
        sets = range(given.first, given.first + given.sets)
        fscore.run(given.out, fscore.asked(given.designs), ["spike-slab"], sets, given.jobs)
    records = fscore.read(given.out)
    if given.page:
        written(given.docs / "rules.md", page(records))
    print(table(records).round(3).to_string(index=False))


if __name__ == "__main__":
    main()
