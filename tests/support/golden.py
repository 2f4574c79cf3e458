"""Small seeded results and their hashes: what a change that only moves or renames code must leave as it was.

``python tests/support/golden.py`` prints the hash of every case; ``--write`` records them.
Only the public API is used, so the cases need no edit when modules move.
"""

from __future__ import annotations

import hashlib
import json
import platform
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import threadpoolctl

import markovblanket as mb

RECORDED = Path(__file__).resolve().parents[1] / "known_answers" / "golden.json"
SHORT = {"chains": 2, "warmup": 30, "draws": 24, "seed": 3, "progress": False}
PRIORS = ("spike-slab", "laplace", "horseshoe", "normal")
Numbers = Mapping[str, Any]


def numbers_table() -> Any:
    """Complete continuous columns."""
    return mb.simulate(rows=60, query=2, rest=9, density=0.3, seed=1)


def wide_table() -> Any:
    """More columns than a block takes as a whole, so that candidates are scouted."""
    return mb.simulate(rows=50, query=2, rest=160, density=0.03, seed=5)


def mixed_table() -> Any:
    """Columns of every kind, with missing cells."""
    return mb.simulate(rows=60, query=3, rest=9, kinds="mixed", missing=0.1, seed=2)


def of_posterior(posterior: mb.Posterior) -> dict[str, Any]:
    """All arrays of a posterior, and the tables that users read."""
    groups = {
        f"{group}.{name}": values.to_numpy()
        for group, data in posterior.datasets().items()
        for name, values in data.variables.items()
    }
    chosen = {"candidates": np.array(posterior.settings["candidates"]["chosen"], dtype=object)}
    edges = of_frame("edges", posterior.edges(all=True, detail=True))
    return groups | chosen | edges | of_frame("summary", posterior.summary())


def of_frame(name: str, frame: pd.DataFrame) -> dict[str, Any]:
    """The columns of a table."""
    return {f"{name}.{column}": frame[column].to_numpy() for column in frame.columns}


def fitted(made: Any, **options: Any) -> dict[str, Any]:
    """What a short fit of a simulated table gives."""
    return of_posterior(mb.estimate(made.table, made.query, **SHORT | options))


def network(made: Any, **options: Any) -> dict[str, Any]:
    """What a short fit of the whole network of a simulated table gives."""
    return of_posterior(mb.network(made.table, **SHORT | options))


def scanned() -> dict[str, Any]:
    """What a scan of every variable gives."""
    found = mb.scan(mixed_table().table, chains=2, warmup=20, draws=24, seed=4, progress=False)
    return of_frame("seen", found.seen) | of_frame("fits", found.fits.drop(columns=["query", "seed"]))


def kept_on_disk() -> dict[str, Any]:
    """Draws that were written to disk, as a later process reads them."""
    made = mixed_table()
    with tempfile.TemporaryDirectory() as folder:
        mb.estimate(made.table, made.query, keep=Path(folder, "kept"), **SHORT)
        return of_posterior(mb.load(Path(folder, "kept")))


def grown() -> dict[str, Any]:
    """A finished run that is asked for more draws."""
    made = mixed_table()
    with tempfile.TemporaryDirectory() as folder:
        mb.estimate(made.table, made.query, checkpoint=folder, **SHORT)
        return of_posterior(mb.resume(folder, draws=48, progress=False))


KILLED = """
import sys, warnings
sys.path.insert(0, sys.argv[1])
import golden
warnings.simplefilter("ignore")
golden.fitted(golden.mixed_table(), candidates=5, warmup=200, draws=1000, checkpoint=sys.argv[2])
"""


def killed() -> dict[str, Any]:
    """A run that is killed while it samples, and goes on by ``resume``."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-c", KILLED, str(Path(__file__).parent), folder]
        with subprocess.Popen(command) as process:
            while process.poll() is None and not list(Path(folder).rglob("*warmup.npz")):
                time.sleep(0.02)
            time.sleep(0.3)
            process.send_signal(signal.SIGKILL)
        return of_posterior(mb.resume(folder, progress=False))


def answers() -> dict[str, Any]:
    """Predictions, predictive checks, completed tables, groups and differences of a mixed table."""
    made = mixed_table()
    posterior, other = (mb.estimate(made.table, made.query, **SHORT | {"seed": seed}) for seed in (3, 4))
    predicted = posterior.predict(made.table.drop(columns=made.query), draws=5, seed=1)
    frames = {
        "check": posterior.check(draws=5, seed=1),
        "r2": posterior.r2(),
        "completed": next(iter(posterior.imputed(2, seed=1))),
        "predicted": predicted.mean,
        "difference": mb.difference(posterior, other),
        "groups": posterior.groups(similar=0.1),
        "diagnostics": posterior.diagnostics(all=True).table,
    }
    told = {"statement": np.array([posterior.probability(f"{made.query[0]}~V1 > {made.query[1]}~V2")])}
    return told | {name: values for key, frame in frames.items() for name, values in of_frame(key, frame).items()}


def from_scatter() -> dict[str, Any]:
    """A fit of a scatter matrix."""
    table = numbers_table().table
    X = (table - table.mean()) / table.std(ddof=0)
    S = (X.T @ X).to_numpy()
    return of_posterior(
        mb.estimate(scatter=S, n=len(X), names=list(X.columns), query=list(X.columns[:2]), **SHORT)
    )


CASES: dict[str, Callable[[], Numbers]] = {
    **{f"numbers, {prior}": lambda prior=prior: fitted(numbers_table(), prior=prior) for prior in PRIORS},
    "numbers, candidates=0": lambda: fitted(numbers_table(), candidates=0),
    "numbers, candidates=5": lambda: fitted(numbers_table(), candidates=5),
    "numbers, scouted": lambda: fitted(wide_table()),
    "numbers, a network": lambda: network(numbers_table()),
    "numbers as they are": lambda: fitted(numbers_table(), margins="gaussian"),
    **{f"mixed with gaps, {prior}": lambda prior=prior: fitted(mixed_table(), prior=prior) for prior in PRIORS},
    "mixed with gaps, candidates=0": lambda: fitted(mixed_table(), candidates=0),
    "mixed with gaps, candidates=5": lambda: fitted(mixed_table(), candidates=5),
    "mixed with gaps, a network": lambda: network(mixed_table()),
    "mixed with gaps, by rank": lambda: fitted(mixed_table(), margins="rank"),
    "a scatter matrix": from_scatter,
    "until converged": lambda: fitted(numbers_table(), draws="auto", warmup=100, budget=2100),
    "answers": answers,
    "summary": lambda: fitted(mixed_table(), keep="summary"),
    "disk": kept_on_disk,
    "scan": scanned,
    "grown": grown,
    "killed and resumed": killed,
}


def digest(numbers: Numbers) -> str:
    """SHA-256 of names, shapes and bits."""
    found = hashlib.sha256()
    for name in sorted(numbers):
        values = np.asarray(numbers[name])
        plain = values if values.dtype.kind in "biufc" else np.array([str(value) for value in values.ravel()])
        found.update(f"{name} {values.shape}".encode())
        found.update(np.ascontiguousarray(plain).tobytes())
    return found.hexdigest()


# Functions of ranks, which the last bit of two equal numbers decides, shares of a few draws, and rounding errors.
BY_LAST_BITS = ("rhat", "ess", "ess_bulk", "ess_tail", "probability", "lower", "upper", "residual")
# Where a last bit differs these chains soon go ways of their own, so that other processors cannot compare.
DIVERGING = ("numbers, scouted", "mixed with gaps, horseshoe", "until converged", "killed and resumed")


def means(numbers: Numbers) -> dict[str, float]:
    """The mean size of every array of numbers, by which machines of other processors compare."""
    floats = {name: np.asarray(values) for name, values in numbers.items()}
    return {
        name: float(np.nanmean(np.abs(values)))
        for name, values in sorted(floats.items())
        if values.dtype.kind == "f" and np.isfinite(values).any() and "histogram" not in name
        if name.split(".")[-1] not in BY_LAST_BITS
    }


def environment() -> str:
    """What the last bits depend on."""
    packages = " ".join(f"{name} {metadata.version(name)}" for name in ("numpy", "scipy", "numba", "arviz"))
    blas = " ".join(sorted({info.get("architecture", "") for info in threadpoolctl.threadpool_info()}))
    return f"{platform.machine()} {platform.python_version()} {packages} {blas}"


def run(name: str) -> dict[str, Any]:
    """The hash and the means of a case."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        numbers = CASES[name]()
        return {"sha256": digest(numbers), "means": means(numbers)}


def main() -> None:
    """Print the hashes, or record them."""
    results = {}
    for name in CASES:
        results[name] = run(name)
        sys.stdout.write(f"{results[name]['sha256'][:16]}  {name}\n")
    recorded = {"environment": environment(), "public": sorted(mb.__all__), "cases": results}
    if "--write" in sys.argv:
        RECORDED.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
    elif RECORDED.is_file():
        known = json.loads(RECORDED.read_text(encoding="utf-8"))["cases"]
        differ = [name for name in CASES if known.get(name, {}).get("sha256") != results[name]["sha256"]]
        sys.stdout.write("all as recorded\n" if not differ else f"NOT as recorded: {', '.join(differ)}\n")
        sys.exit(bool(differ))


if __name__ == "__main__":
    main()
