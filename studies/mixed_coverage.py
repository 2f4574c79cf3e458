"""Do credible intervals keep their promise when the columns are mixed and cells are missing?

    python studies/mixed_coverage.py --tables 60 --rows 300 1000 --out coverage/

Tables are simulated from a Gaussian copula with continuous, binary, ordinal and count columns, 15 % of the cells
missing. Each is fitted twice: as an analyst would get it, and by the same sampler given the true latent Gaussian
columns, all of them. Counted is how often the central credible intervals of the partial
correlations between query and rest hold the true value. The network of every table is its own.

One file per table is kept in the folder, so a run that was stopped goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path

import joblib
import numpy as np
import pandas as pd

import markovblanket as mb

LEVELS = (0.5, 0.8, 0.95)
FITS = ("mixed", "latent")


def fit(simulated, which, sweeps, seed):
    """The posterior of a table as it is, or of the Gaussian columns behind it."""
    table, margins = (simulated.table, "auto") if which == "mixed" else (simulated.latent, "gaussian")
    warmup, draws = sweeps
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.ConvergenceWarning)
        return mb.estimate(
            table,
            simulated.query,
            margins=margins,
            chains=1,
            warmup=warmup,
            draws=draws,
            seed=seed,
            progress=False,
        )


def one_table(rows, number, sweeps):
    """A row per pair and fit: truth, point estimate, and whether each interval covers."""
    simulated = mb.simulate(rows=rows, query=4, rest=16, density=0.2, kinds="mixed", missing=0.15, seed=number)
    truth, parts = simulated.truth, []
    for which in FITS:
        draws = fit(simulated, which, sweeps, number).partial_correlation
        draws = (
            draws.stack(sample=("chain", "draw"), pair=("query", "variable")).transpose("sample", "pair").values
        )
        found = truth.assign(rows=rows, table=number, fit=which, mean=draws.mean(axis=0), sd=draws.std(axis=0))
        for level in LEVELS:
            lower, upper = np.quantile(draws, [(1 - level) / 2, (1 + level) / 2], axis=0)
            found[f"in_{level}"] = (lower <= truth["partial_correlation"]) & (
                truth["partial_correlation"] <= upper
            )
        parts.append(found)
    kinds = simulated.kinds
    return pd.concat(parts).assign(
        query_kind=lambda f: f["query"].map(kinds), variable_kind=lambda f: f["variable"].map(kinds)
    )


def kept(folder, rows, number, sweeps):
    """The result of one table, from its file or made now."""
    path = folder / f"rows{rows}-table{number}.csv"
    if not path.exists():
        draft = path.with_suffix(".part")
        one_table(rows, number, sweeps).to_csv(draft, index=False)
        draft.rename(path)
    return pd.read_csv(path)


def summarise(results):
    """Coverage of both fits and their difference, with the difference's standard error over tables."""
    covers = [f"in_{level}" for level in LEVELS]
    by_table = results.groupby(["rows", "table", "fit"])[covers].mean()
    mixed, latent = (by_table.xs(which, level="fit") for which in FITS)
    difference = mixed - latent
    rows = []
    for size, group in difference.groupby("rows"):
        for level, name in zip(LEVELS, covers, strict=True):
            rows.append(
                {
                    "rows": int(size),
                    "level": level,
                    "tables": len(group),
                    "mixed": mixed.loc[size, name].mean(),
                    "latent": latent.loc[size, name].mean(),
                    "difference": group[name].mean(),
                    "se": group[name].std() / np.sqrt(len(group)),
                }
            )
    return pd.DataFrame(rows)


def error(results):
    """Root mean square error of the posterior means, and their ratio of sd to that error."""
    off = (results["mean"] - results["partial_correlation"]) ** 2
    grouped = results.assign(off=off, var=results["sd"] ** 2).groupby(["rows", "fit"])[["off", "var"]].mean()
    return np.sqrt(grouped).rename(columns={"off": "rmse", "var": "posterior_sd"})


def main():
    """Fit all tables, print and write the summary."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", type=int, default=60)
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 1000])
    parser.add_argument("--sweeps", type=int, nargs=2, default=[500, 1500], metavar=("WARMUP", "DRAWS"))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("coverage"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    tasks = [(rows, number) for rows in given.rows for number in range(given.tables)]
    parts = joblib.Parallel(n_jobs=given.jobs, verbose=1)(
        joblib.delayed(kept)(given.out, rows, number, tuple(given.sweeps)) for rows, number in tasks
    )
    results = pd.concat(parts)
    summary = summarise(results)
    print(summary.round(3).to_string(index=False))
    print(error(results).round(4).to_string())
    kinds = results.groupby(["fit", "query_kind"])[[f"in_{level}" for level in LEVELS]].mean()
    print(kinds.round(3).to_string())
    (given.out / "summary.json").write_text(json.dumps(summary.to_dict("records"), indent=2) + "\n")


if __name__ == "__main__":
    main()
