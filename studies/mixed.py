"""Mixed and incomplete tables: are blankets found there, and does the default keep its word?

    python studies/mixed.py [--sets 20] [--rows 300 1000] [--jobs 1] [--out mixed/]
    python studies/mixed.py --page [--out mixed/]

Networks of 5 query and 60 other variables, columns continuous, binary, ordinal and counts, 2 % of the cells
missing; one chain of 300 + 700 sweeps. Edges are selected by the default rule, and with an expected share of false
ones of at most 0.1. A wrong sign counts as false; edges among the query count, too.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd

import markovblanket as mb
from common import DOCS, kept, markdown, one_thread, quietly, source, stamp, written
from markovblanket.simulation import score

DESIGN: dict[str, Any] = {"query": 5, "rest": 60, "density": 0.05, "kinds": "mixed", "missing": 0.02}
SCHEDULE: dict[str, Any] = {"chains": 1, "warmup": 300, "draws": 700, "keep": "summary"}
RULES: dict[str, dict[str, float]] = {"default": {}, "expected false at most 0.1": {"fdr": 0.1}}


def measured(rows: int, number: int) -> dict[str, Any]:
    """Counts of one data set, by rule."""
    data = mb.simulate(rows=rows, seed=number, **DESIGN)
    posterior = quietly(mb.estimate, data.table, data.query, seed=number, **SCHEDULE)
    found = {name: counts(data, posterior, rule) for name, rule in RULES.items()}
    return {"rows": rows, "set": number, "found": found, "source": source()}


def counts(data: Any, posterior: mb.Posterior, rule: dict[str, float]) -> dict[str, float]:
    """How the selected edges compare with the truth, and how many false ones were expected."""
    edges = posterior.edges(**rule)
    truth = pd.concat([data.query_edges, data.truth])
    signed = edges[["query", "variable"]].assign(weight=-edges["partial_correlation"])
    result = score(truth, signed)
    expected = float(np.sum(1 - edges["probability"]))
    names = ("f1", "precision", "recall", "found", "false", "wrong_sign")
    return {name: getattr(result, name) for name in names} | {"selected": len(edges), "expected_false": expected}


def result(folder: Path, rows: int, number: int) -> dict[str, Any]:
    """From its file, or measured now."""
    return kept(folder / str(rows) / f"{number}.json", lambda: measured(rows, number))


def table(records: list[dict[str, Any]]) -> pd.DataFrame:
    """A row per number of rows and rule: means over data sets, and false edges of all sets, expected and real."""
    flat = [{"rows": one["rows"], "edges": rule, **c} for one in records for rule, c in one["found"].items()]
    grouped = pd.DataFrame(flat).groupby(["rows", "edges"], sort=False)
    shown = grouped[["f1", "precision", "recall"]].mean()
    sums = grouped[["selected", "expected_false", "false", "wrong_sign"]].sum()
    shown.insert(0, "sets", grouped.size())
    shown.insert(2, "se", grouped["f1"].sem())
    shown["expected share false"] = sums["expected_false"] / sums["selected"]
    shown["share false"] = (sums["false"] + sums["wrong_sign"]) / sums["selected"]
    return shown.reset_index()


def write_page(folder: Path, records: list[dict[str, Any]]) -> None:
    """The table of these results, and how it was made; what it says is for the page of the selection rules."""
    shown = table(records)
    shown.to_csv(folder / "mixed.csv", index=False)
    _, _, setting, *_ = (__doc__ or "").split("\n\n")
    rows = markdown(shown.columns, shown.itertuples(index=False))
    text = ["# Mixed and incomplete tables", setting, rows, stamp([one["source"] for one in records], "mixed.py")]
    written(folder / "mixed.md", "\n\n".join(part.strip() for part in text) + "\n")


def main() -> None:
    """Run what is asked for and print it, or make the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 1000])
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("mixed"))
    parser.add_argument("--page", action="store_true", help="run nothing, write page and table")
    parser.add_argument("--docs", type=Path, default=DOCS, help="where --page writes")
    given = parser.parse_args()
    if not given.page:
        one_thread()
        work = (joblib.delayed(result)(given.out, rows, k) for k in range(given.sets) for rows in given.rows)
        joblib.Parallel(n_jobs=given.jobs, verbose=1)(work)
    records = [json.loads(path.read_text()) for path in sorted(given.out.glob("*/*.json"))]
    if given.page:
        write_page(given.docs, records)
    print(table(records).round(3).to_string(index=False))


if __name__ == "__main__":
    main()
