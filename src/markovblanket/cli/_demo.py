"""``markovblanket demo``: simulate a clinic, fit it, and print its blanket beside the truth.

The clinic is also a table of all kinds of columns for tests and figures: see :func:`clinic`.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from rich.console import Console
from rich.table import Table

from markovblanket import __version__
from markovblanket.cli import _output_folder, _screen, _simulate
from markovblanket.fitting.estimate import estimate
from markovblanket.posterior.posterior import Posterior
from markovblanket.simulation import Simulated, score, simulate

FILES = ("table.csv", "truth.csv", _output_folder.SETTINGS, *_output_folder.FILES)
TRAITS = ["age", "sex", "stage", "lymph_nodes", "survival"]
STAGES = ["I", "II", "III", "IV"]
# Of the printed table of edges.
COLUMNS = ("query", "variable", "probability", "partial_correlation", "lower")


# The command ------------------------------------------------------------------------------------------------


def run(out: Path) -> int:
    """Fit the clinic, print its blanket beside the truth, write all files, and return the exit code."""
    console = Console()
    with _output_folder.draft(out, FILES, force=True, what="demo") as folder:
        posterior, data = fit_clinic(console)
        write(folder, data)
        _output_folder.write(folder, posterior, posterior.edges(), {})
        made_by = {"command": "markovblanket demo", "version": __version__}
        _output_folder.write_settings(folder, {**made_by, **posterior.settings})
        written = _screen.files(out, folder)
    _screen.screen().print(written)
    return 0


# The clinic -------------------------------------------------------------------------------------------------


def clinic(seed: int = 6) -> Simulated:
    """A simulated clinic: 300 patients with five traits of all kinds and 120 genes; some cells are missing."""
    simulated = simulate(rows=300, query=len(TRAITS), rest=120, density=0.025, hubs=0.05, seed=seed)
    names = dict(zip(simulated.query, TRAITS, strict=True))
    names |= {old: old.replace("V", "gene_") for old in simulated.table.columns if old.startswith("V")}
    latent = simulated.latent.rename(columns=names)
    complete = latent.assign(**traits(latent[TRAITS] / latent[TRAITS].std())).round(3)
    return replace(simulated, table=with_gaps(complete), latent=latent, complete=complete, query=TRAITS)


def traits(z: pd.DataFrame) -> dict[str, Any]:
    """The clinical traits (numbers, categories, ordered levels, a count), each increasing in its normal column."""
    stage = np.array(STAGES)[np.searchsorted([-0.7, 0.2, 1.0], z["stage"])]
    return {
        "age": (58 + 11 * z["age"]).round(1),
        "sex": np.where(z["sex"] > 0, "m", "f"),
        "stage": pd.Categorical(stage, categories=STAGES, ordered=True),
        "lymph_nodes": np.floor(np.exp(0.8 + 0.9 * z["lymph_nodes"])),
        "survival": np.exp(3 + 0.6 * z["survival"]).round(1),
    }


def with_gaps(complete: pd.DataFrame) -> pd.DataFrame:
    """The table with one in twelve cells missing at random, among the traits and every tenth gene."""
    gaps = np.random.default_rng(1).random(complete.shape) < 1 / 12
    holds = [name in TRAITS or name.endswith("0") for name in complete.columns]
    return complete.mask(gaps & np.array(holds))


# What it prints ---------------------------------------------------------------------------------------------


def fit_clinic(console: Console) -> tuple[Posterior, Simulated]:
    """The posterior and the data of the clinic; prints the blanket beside the truth."""
    data = clinic()
    n, p = data.table.shape[0], len(data.query)
    console.print(f"A simulated clinic: {n} patients, {p} traits, {data.table.shape[1] - p} genes; truth known.")
    begin = time.perf_counter()
    posterior = estimate(data.table, data.query, warmup=500, draws=1500, seed=1, n_jobs=2)
    seconds = time.perf_counter() - begin
    edges = posterior.edges()
    console.print(_screen.understood(posterior))
    console.print(blanket_table(edges, _simulate.every_pair(data)))
    console.print(verdict(posterior, edges, data, seconds))
    return posterior, data


def blanket_table(edges: pd.DataFrame, truth: pd.DataFrame) -> Table:
    """The selected edges, the surest first, each with its true partial correlation."""
    titles = _screen.TITLES | {"query": "trait", "variable": "gene or trait"}
    columns = _screen.edge_columns(edges, COLUMNS, titles)
    known = truth.set_index(["query", "variable"])["partial_correlation"]
    true = [known[pair] for pair in zip(edges["query"], edges["variable"], strict=True)]
    texts = [f"{value:+.2f}" if value else "no edge" for value in true]
    return _screen.printed("What is directly connected to the traits?", [*columns, _screen.Column("truth", texts)])


def verdict(posterior: Posterior, edges: pd.DataFrame, data: Simulated, seconds: float) -> str:
    """The number of edges found and missed, the explained variances, predictive checks, and convergence."""
    result = score(_simulate.every_pair(data), edges)
    r2 = ", ".join(f"{name} {value:.2f}" for name, value in posterior.r2()["mean"].items())
    return (
        f"\nFound {result.found} of {result.found + result.missed} true edges, {result.missed} missed, "
        f"{result.false} false.\n"
        f"Share of each trait's variance that the genes explain (Bayesian R2): {r2}.\n"
        f"{checks(posterior)}\n"
        f"{posterior.diagnostics().verdict} {_screen.iterations(posterior)} in {seconds:.0f} s.\n"
    )


def checks(posterior: Posterior) -> str:
    """A sentence that names the predictive checks that fail, if any."""
    found = posterior.check(seed=1)
    odd = found[~found["probability"].between(0.005, 0.995)]
    which = ", ".join(f"{row.check} of {row.query}" for row in odd.itertuples())
    return f"Predictive checks: {which or f'none of {len(found)} speaks against the model'}."


def write(folder: Path, data: Simulated) -> None:
    """Write the table and its truth to the folder."""
    _output_folder.write_table(folder / "table.csv", data.table)
    _output_folder.write_table(folder / "truth.csv", _simulate.every_pair(data))
