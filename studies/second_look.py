"""What a second look at the likely edges, from their other ends, is worth: error rates where the truth is known.

    python studies/second_look.py [--rows 200 300 1000] [--sets 8] [--query 10] [--rest 90] [--n_jobs 1] [--out O]

For each number of rows and each simulated set: F score, precision and recall (signs count) of the edges that are
likelier there than not, from one end, from the likelier end (`either`) and from both, and of those that have a
probability of 0.9 from both; and calibration: the sum of all probabilities beside the
number of true edges; the expected number of false edges among the selected, the sum of 1 - P, beside the real one;
and the realised share of true edges where the probability lies between bounds.
"""

from __future__ import annotations

import argparse
import time
import warnings

import numpy as np
import pandas as pd

import markovblanket as mb
from markovblanket.simulation import score

BOUNDS = [0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 1]
KEYS = ["query", "variable"]
RULES = [("one", 0.5), ("either", 0.5), ("both", 0.5), ("both", 0.9)]


def looks(clinic, given, seed):
    """Every pair with its truth, weights and probabilities from one end and from both; seconds; candidates."""
    schedule = {name: given[name] for name in ("chains", "warmup", "draws", "n_jobs")}
    begin = time.perf_counter()
    posterior = mb.estimate(clinic.table, clinic.query, margins="gaussian", seed=seed, progress=False, **schedule)
    first = time.perf_counter() - begin
    looked = mb.second_look(posterior, seed=seed, **schedule).set_index(KEYS)
    pairs = clinic.truth.set_index(KEYS)[["weight", "edge"]].rename(columns={"weight": "true_weight"})
    pairs = pairs.join(posterior.edges(all=True).set_index(KEYS)[["weight", "inclusion"]])
    again = looked[["inclusion_other", "inclusion_both", "weight_other"]].reindex(pairs.index)
    pairs["one"], pairs["both"] = pairs["inclusion"], again["inclusion_both"].fillna(pairs["inclusion"])
    pairs["either"] = np.fmax(pairs["one"], again["inclusion_other"])
    pairs["weight_both"] = pairs["weight"] + again["weight_other"].fillna(0)
    seconds = first, time.perf_counter() - begin
    return pairs, seconds, looked.index.get_level_values("variable").nunique()


def figures(pairs, end, least):
    """How the edges with at least this probability compare with the truth, and the probabilities with both."""
    weight = pairs["weight" if end == "one" else "weight_both"]
    chosen = pairs[end] >= least
    truth = pairs[["true_weight"]].rename(columns={"true_weight": "weight"}).reset_index()
    found = score(truth, weight[chosen].rename("weight").reset_index())
    false = int((chosen & ~pairs["edge"]).sum())
    return {
        "f1": found.f1,
        "precision": found.precision,
        "recall": found.recall,
        "true": int(pairs["edge"].sum()),
        "sum_p": pairs[end].sum(),
        "selected": int(chosen.sum()),
        "false": false,
        "expected_false": (1 - pairs[end])[chosen].sum(),
        "brier": ((pairs[end] - pairs["edge"]) ** 2).sum(),
    }


def calibration(pairs, end):
    """The realised share of true edges, by probability."""
    grouped = pairs.groupby(pd.cut(pairs[end], BOUNDS, include_lowest=True), observed=False)
    return grouped.agg(pairs=("edge", "size"), said=(end, "mean"), true=("edge", "mean")).round(3)


def study(rows, given):
    """All sets of so many rows."""
    results, every = [], []
    for k in range(given["sets"]):
        clinic = mb.simulate(rows=rows, query=given["query"], rest=given["rest"], seed=given["seed"] + k)
        pairs, seconds, candidates = looks(clinic, given, k)
        for end, least in RULES:
            found = figures(pairs, end, least) | {"candidates": candidates, "seconds": seconds[end != "one"]}
            results.append({"set": k, "ends": f"{end} {least}"} | found)
            print(
                f"n={rows} set {k} {end} {least}:",
                {name: round(float(x), 3) for name, x in found.items()},
                flush=True,
            )
        every.append(pairs.assign(rows=rows, set=k))
        if given["out"]:
            pd.concat(every).to_csv(f"{given['out']}_{rows}.csv")
    table = pd.DataFrame(results).drop(columns="set").groupby("ends", sort=False)
    print(f"\nn={rows}, means of {given['sets']} sets:\n{table.mean().round(3).to_string()}")
    print(f"medians of f1: {table['f1'].median().round(3).to_dict()}")
    total = table[["false", "selected", "expected_false"]].sum()
    print(f"realised FDR {(total['false'] / total['selected']).round(3).to_dict()}", end="; ")
    print(f"expected {(total['expected_false'] / total['selected']).round(3).to_dict()}")
    for end in ("one", "either", "both"):
        print(f"calibration, {end}:\n{calibration(pd.concat(every), end).to_string()}\n", flush=True)


def main():
    """For each number of rows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[200, 300, 1000])
    defaults = {"sets": 8, "query": 10, "rest": 90, "chains": 2, "warmup": 200, "draws": 500, "seed": 1000}
    for name, value in {**defaults, "n_jobs": 1}.items():
        parser.add_argument(f"--{name}", type=int, default=value)
    parser.add_argument("--out", help="also write every pair to this name with _ROWS.csv added")
    given = vars(parser.parse_args())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.ConvergenceWarning)
        for rows in given["rows"]:
            study(rows, given)


if __name__ == "__main__":
    main()
