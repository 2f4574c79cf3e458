"""Held-out cells of mixed tables, imputed by markovblanket and by gcimpute (Zhao & Udell 2020).

    python benchmarks/imputation.py [--tables 10] [--rows 300 1000] [--peer-env FOLDER] [--out FILE]

The tables are simulated, so what is in their gaps is known; their 5 + 15 columns are continuous, binary, ordinal
and counts. Both packages get the same table and are scored on the same cells. gcimpute, which fits a Gaussian
copula by an approximate EM algorithm, runs with its defaults, told which columns are continuous, in an
environment of its own that is made on first use: it does not run on NumPy 2. Times are process times up to the
point imputation.

Errors are ratios per column, averaged over columns, then over tables: what the imputation misses in the held-out
cells against what a constant misses there. In ``smae``, the measure of gcimpute's authors, these are sums of
absolute errors and the constant is the median of the observed cells; ours imputes the lower median of a cell's
predictive law, a value that the column can take, and gcimpute imputes its own point. In ``srmse`` these are roots
of sums of squares and the constant is the observed mean; both impute the mean of 200 draws. A column
whose constant is right in every held-out cell has no ratio and is left out.

Coverage of central intervals is the share of cells covered, averaged over tables. Of D draws for a cell let b lie
below the truth and e be equal to it; then, with V uniform on (0, 1), the randomised rank::

    u = (b + V (1 + e)) / (D + 1)

is uniform if the truth and the draws have the same law, discrete or not, for any D. The cell is covered at level c
if ``|u - 1/2| <= c/2``. In a continuous cell, where e = 0, that is the central interval of the draws, each end
placed at random between two neighbouring draws; in a discrete one an end may also fall within a value, which is
then covered with the probability that makes the nominal level attainable. Both packages get the same V. gcimpute's
own intervals, analytical ones for continuous cells, are taken as they are.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

# The peer's environment runs this file too, so markovblanket and threadpoolctl are imported where they are used.

OURS, PEER = "markovblanket", "gcimpute"
PINS = ("gcimpute==0.0.4", "numpy<2")  # it calls `numpy.round_`, which NumPy 2 has not
KINDS = ("continuous", "binary", "ordinal", "count", "all")
LEVELS = (50, 80, 95)
DRAWS = 200
TABLE = {"query": 5, "rest": 15, "density": 0.2, "kinds": "mixed", "missing": 0.15}
FIT = {"margins": "auto", "warmup": 500, "draws": 1000, "chains": 2}


@dataclass(frozen=True)
class Imputation:
    """A point for every cell, and draws (draws x rows x columns); the peer's own bounds at every level."""

    point: np.ndarray
    draws: np.ndarray
    seconds: float
    bounds: Any = ()
    converged: bool | None = None


def ours(table: pd.DataFrame, query: list[str], seed: int) -> Imputation:
    """The lower median of each cell, and as many completed tables as the peer draws."""
    import markovblanket as mb

    begin = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        posterior = mb.estimate(table, query, **FIT, seed=seed, progress=False)
    point = median(table, posterior.imputed(draws=FIT["chains"] * FIT["draws"], seed=seed))
    drawn = posterior.imputed(draws=DRAWS, seed=seed)
    draws = np.stack([completed[table.columns].to_numpy(dtype=float) for completed in drawn])
    converged = not any(issubclass(warning.category, mb.ConvergenceWarning) for warning in caught)
    return Imputation(point, draws, time.process_time() - begin, converged=converged)


def median(table: pd.DataFrame, tables: Any) -> np.ndarray:
    """Of all kept draws of a number, and by the probabilities of levels; the lower one where there are two.

    The peer's point is a formula. The median of a few hundred drawn levels would be judged by its Monte Carlo
    error as well, which the probabilities have little of.
    """
    point = table.to_numpy(dtype=float, copy=True)
    for name, rows in tables.gaps.items():
        if name in tables.probabilities:
            chances = tables.probabilities[name]
            below = (chances.to_numpy().cumsum(axis=1)[:, :-1] < 0.5).sum(axis=1)
            values = chances.columns.to_numpy(dtype=float)[below]
        else:
            values = np.sort(tables.draws[name], axis=0)[(len(tables) - 1) // 2]
        point[rows, table.columns.get_loc(name)] = values
    return point


def theirs(python: Path, table: pd.DataFrame, continuous: np.ndarray, seed: int) -> Imputation:
    """The peer's answer, by a process in its environment that reads from a folder and writes to it."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        table.to_csv(folder / "table.csv", index=False)
        (folder / "settings.json").write_text(json.dumps({"continuous": continuous.tolist(), "seed": seed}))
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        subprocess.run([python, __file__, "--as-peer", folder], check=True, env={**os.environ, **threads})
        point = pd.read_csv(folder / "completed.csv").to_numpy()
        with np.load(folder / "uncertainty.npz") as kept:
            return Imputation(point, kept["draws"], float(kept["seconds"]), kept["bounds"])


def as_peer(folder: Path) -> None:
    """What runs in the peer's environment: completes ``table.csv``, and saves draws and bounds beside it."""
    from gcimpute.gaussian_copula import GaussianCopula

    table = pd.read_csv(folder / "table.csv")
    settings = json.loads((folder / "settings.json").read_text())
    continuous = np.array(settings["continuous"])
    kinds = {"continuous": np.flatnonzero(continuous).tolist(), "ordinal": np.flatnonzero(~continuous).tolist()}
    begin = time.process_time()
    model = GaussianCopula(random_state=settings["seed"])
    # It refuses to be told of a kind that no column has.
    completed = model.fit_transform(table.to_numpy(), **{name: where for name, where in kinds.items() if where})
    seconds = time.process_time() - begin
    draws = np.moveaxis(model.sample_imputation(num=DRAWS), 2, 0)
    intervals = [model.get_confidence_interval(alpha=level / 100) for level in LEVELS]
    bounds = [[interval["lower"], interval["upper"]] for interval in intervals]
    pd.DataFrame(completed, columns=table.columns).to_csv(folder / "completed.csv", index=False)
    np.savez(folder / "uncertainty.npz", draws=draws, bounds=bounds, seconds=seconds)


def peer_python(folder: Path) -> Path:
    """The interpreter of the peer's environment, which is made unless it is there and whole."""
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    trial = [python, "-c", "import gcimpute.gaussian_copula"]
    if not python.exists() or subprocess.run(trial, capture_output=True, check=False).returncode:
        print(f"making an environment with {' and '.join(PINS)} in {folder}", flush=True)
        base = shutil.which("python3.11") or sys.executable  # NumPy 1 has no wheels beyond Python 3.12
        subprocess.run([base, "-m", "venv", "--clear", folder], check=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PINS], check=True)
    return python


def versions(python: Path) -> dict[str, dict[str, str]]:
    """Of all that the answers may depend on, in this environment and in the peer's."""
    code = "import json, platform; from importlib.metadata import version; print(json.dumps({'python':"
    code += " platform.python_version(), **{k: version(k) for k in ('gcimpute', 'numpy', 'scipy', 'pandas')}}))"
    peer = json.loads(subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout)
    here = {name: metadata.version(name) for name in ("markovblanket", "numpy", "scipy", "pandas")}
    return {OURS: {"python": platform.python_version(), **here}, PEER: peer}


def error_ratio(imputed: np.ndarray, truth: np.ndarray, table: np.ndarray, power: int) -> np.ndarray:
    """``(sum |imputed - truth|^r / sum |constant - truth|^r)^(1/r)`` per column, over the gaps of the table."""
    constant = np.nanmedian(table, axis=0) if power == 1 else np.nanmean(table, axis=0)
    misses = (np.where(np.isnan(table), np.abs(x - truth) ** power, 0) for x in (imputed, constant))
    missed, baseline = (miss.sum(axis=0) for miss in misses)
    return np.divide(missed, baseline, out=np.full(len(missed), np.nan), where=baseline > 0) ** (1 / power)


def randomised_rank(draws: np.ndarray, truth: np.ndarray, V: np.ndarray) -> np.ndarray:
    """``u = (b + V (1 + e)) / (D + 1)``, cell by cell."""
    below, equal = (draws < truth).sum(axis=0), (draws == truth).sum(axis=0)
    return (below + V * (1 + equal)) / (len(draws) + 1)


def by_kind(values: np.ndarray, kinds: np.ndarray) -> pd.Series:
    """Means over the values of each kind and over all of them, NaN left out."""
    series = pd.Series(values)
    return pd.concat([series.groupby(kinds).mean(), pd.Series({"all": series.mean()})]).reindex(list(KINDS))


def score(imputation: Imputation, simulated: Any, kinds: np.ndarray, V: np.ndarray) -> pd.DataFrame:
    """Every measure (columns) by kind (rows), of one package on one table."""
    table, truth = (frame.to_numpy(dtype=float) for frame in (simulated.table, simulated.complete))
    gaps = np.isnan(table)
    cells = np.broadcast_to(kinds, gaps.shape)[gaps]
    u = randomised_rank(imputation.draws, truth, V)[gaps]
    measures = {
        "smae": by_kind(error_ratio(imputation.point, truth, table, 1), kinds),
        "srmse": by_kind(error_ratio(imputation.draws.mean(axis=0), truth, table, 2), kinds),
    }
    for level in LEVELS:
        measures[f"coverage_{level}"] = by_kind(np.abs(u - 0.5) <= level / 200, cells)
    for level, (lower, upper) in zip(LEVELS, imputation.bounds, strict=False):
        within = (lower <= truth) & (truth <= upper)
        measures[f"own_interval_{level}"] = by_kind(within[gaps], cells)[["continuous"]]
    converged = np.nan if imputation.converged is None else float(imputation.converged)
    return pd.DataFrame(measures).assign(seconds=imputation.seconds, converged=converged)


def compare(python: Path, rows: int, seed: int) -> pd.DataFrame:
    """One table, both packages: measures by package and kind."""
    import markovblanket as mb

    simulated = mb.simulate(rows=rows, **TABLE, seed=seed)
    kinds = np.array([simulated.kinds[name] for name in simulated.table])
    V = np.random.default_rng([rows, seed]).random(simulated.table.shape)
    imputations = {
        OURS: ours(simulated.table, simulated.query, seed),
        PEER: theirs(python, simulated.table, kinds == "continuous", seed),
    }
    scores = {name: score(imputation, simulated, kinds, V) for name, imputation in imputations.items()}
    totals = {name: frame.loc["all"] for name, frame in scores.items()}
    said = ", ".join(f"{name} {total['smae']:.3f} in {total['seconds']:.0f} s" for name, total in totals.items())
    print(f"  table {seed}: {said}" + ", not converged" * (not imputations[OURS].converged), flush=True)
    return pd.concat(scores, names=["package", "kind"])


def summarise(scores: pd.DataFrame) -> pd.DataFrame:
    """Means over tables with standard errors, of each package and of the paired differences, ours minus theirs."""
    difference = scores.xs(OURS, level="package") - scores.xs(PEER, level="package")
    difference = pd.concat({"difference": difference}, names=["package"]).reorder_levels(scores.index.names)
    tables = pd.concat([scores, difference]).groupby(["rows", "kind", "package"], sort=False)
    return tables.mean().join(tables.sem().add_suffix("_se"))


def show(summary: pd.DataFrame) -> None:
    """Errors, then coverage, of the tables of one size; eighty columns wide."""
    print(f"\n{'':12}{'scaled mean absolute error':34}scaled root mean square error")
    print(f"{'':12}{'ours':8}{'theirs':8}{'difference (se)':18}{'ours':8}{'theirs':8}difference (se)")
    for name in KINDS:
        parts = (errors(summary.loc[name], measure) for measure in ("smae", "srmse"))
        print(f"{name:12}{''.join(parts)}".rstrip())
    print(f"\n{'covered at':12}" + "".join(f"{f'{level} %':22}" for level in LEVELS).rstrip())
    print(f"{'':12}" + (f"{'ours':7}{'theirs':8}{'own':7}" * len(LEVELS)).rstrip())
    for name in KINDS:
        print(f"{name:12}{''.join(coverage(summary.loc[name], level) for level in LEVELS)}".rstrip())
    print("(theirs: by gcimpute's draws; own: its analytical intervals)\n")


def errors(row: pd.DataFrame, measure: str) -> str:
    """Both packages, and ours minus theirs with its standard error."""
    difference = f"{row.at['difference', measure]:+.3f} ({row.at['difference', f'{measure}_se']:.3f})"
    return f"{row.at[OURS, measure]:<8.3f}{row.at[PEER, measure]:<8.3f}{difference:18}"


def coverage(row: pd.DataFrame, level: int) -> str:
    """Both packages' draws, and the peer's own intervals where it has them, in percent."""
    a, b, own = (
        100 * row.at[name, f"{what}_{level}"]
        for name, what in ((OURS, "coverage"), (PEER, "coverage"), (PEER, "own_interval"))
    )
    return f"{a:<7.1f}{b:<8.1f}{'' if np.isnan(own) else f'{own:.1f}':7}"


def records(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows as they go into JSON: four digits, nothing where a figure does not exist."""
    return [
        {name: value for name, value in row.items() if value is not None}
        for row in json.loads(frame.reset_index().to_json(orient="records", double_precision=4))
    ]


def main() -> None:
    """Compare, print, write."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=10, help="tables of each size, seeds 0, 1, ...")
    parser.add_argument("--rows", type=int, nargs="+", default=[300, 1000])
    parser.add_argument("--peer-env", type=Path, default=Path.home() / ".cache/markovblanket-bench/gcimpute")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("imputation.json"))
    parser.add_argument("--as-peer", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.as_peer:
        as_peer(options.as_peer)
    else:
        run(options)


def run(options: argparse.Namespace) -> None:
    """All tables of every size, a page for each size, and a file for all."""
    from threadpoolctl import threadpool_limits

    python, scores = peer_python(options.peer_env), {}
    with threadpool_limits(limits=1):
        for rows in options.rows:
            print(f"{rows} rows, {TABLE['query']} + {TABLE['rest']} columns: scaled mean absolute error, and time")
            for seed in range(options.tables):
                scores[rows, seed] = compare(python, rows, seed)
            show(summarise(pd.concat(scores, names=["rows", "seed"])).loc[rows])
    frame = pd.concat(scores, names=["rows", "seed"])
    results = {"date": time.strftime("%Y-%m-%d"), "machine": platform.machine(), "versions": versions(python)}
    results |= {"table": TABLE, "fit": FIT, "imputation_draws": DRAWS, "tables": options.tables}
    results |= {"summary": records(summarise(frame)), "by_table": records(frame.xs("all", level="kind"))}
    options.out.write_text(json.dumps(results, indent=2) + "\n")
    print(f"written to {options.out}")


if __name__ == "__main__":
    main()
