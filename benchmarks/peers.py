"""Ours against others: a whole-network sampler, NumPyro's NUTS on the same posterior, BDgraph's copula sampler."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from markovblanket.baselines import GraphicalLasso, WholeNetwork
from markovblanket.baselines._graphical_lasso import whole
from markovblanket.contracts import Array, Problem
from markovblanket.priors import Laplace
from mixing import Run, sampled
from settings import HERE, AbsentError, Settings, one_thread
from tables import PRIORS, TABLES, Size, factor_table, gaussian, label, levels, network_table, with_levels
from timing import Chain, in_turn, milliseconds, ratio


def graphical_lasso(settings: Settings) -> dict[str, Any]:
    """Our own Bayesian graphical lasso, compiled, on the same tables."""
    size = (3, 30, 60) if settings.quick else (7, 312, 260)
    return {"rows": [_against_network(size, table, settings) for table in TABLES]}


def _against_network(size: Size, table: str, settings: Settings) -> dict[str, Any]:
    ours = Chain(gaussian(TABLES[table](size), size[0], Laplace()), 100)
    scatter, rng = ours.problem.scatter, np.random.default_rng(1)
    network = WholeNetwork(whole(scatter), scatter.n, size[0], GraphicalLasso())
    state = network.start(rng)
    for _ in range(5):
        state, _ = network.sweep(rng, state)
    times = in_turn({"ours": ours.step, "network": lambda: network.sweep(rng, state)}, settings.repeats)
    row = {**dict(zip("pqn", size, strict=True)), "table": table, "ratio": ratio(times["network"], times["ours"])}
    row |= {"ms": milliseconds(times["ours"]), "network_ms": milliseconds(times["network"])}
    print(f"  p, q, n = {label(size)}, {table}: {row['ratio']:.1f} sweeps in the time of one of the whole network")
    return row


def nuts(settings: Settings) -> dict[str, Any]:
    """Effective draws per second, the smallest among the entries of W11 and W12, of ours over that of NUTS."""
    python = numpyro_python(settings)
    sizes = [(2, 10, 50)] if settings.quick else [(10, 90, 1000), (7, 312, 260)]
    return {"rows": [_against_nuts(size, python, settings.quick) for size in sizes]}


def numpyro_python(settings: Settings) -> Path:
    """The Python asked for, or this one if it has NumPyro."""
    if settings.numpyro is not None and settings.numpyro.exists():
        return settings.numpyro
    if importlib.util.find_spec("numpyro") is None:
        raise AbsentError("NumPyro is not installed here; name a Python that has it with --numpyro")
    return Path(sys.executable)


def _against_nuts(size: Size, python: Path, quick: bool) -> dict[str, Any]:
    """A few minutes of NUTS in each of two parametrisations, of which the better one counts; then ours."""
    problem = gaussian(network_table(size), size[0], Laplace())
    forms = ("scaled",) if quick else ("centred", "scaled")
    theirs = {form: _nuts_run(problem, python, form, *((100, 1) if quick else (400, 60))) for form in forms}
    ours = sampled(problem, *((100, 200) if quick else (1000, 8000)), chains=1)
    speeds = {form: effective(run)[0] / run.seconds for form, (run, _) in theirs.items()}
    best = max(speeds, key=speeds.__getitem__)
    run, told = theirs[best]
    row = {**dict(zip("pqn", size, strict=True)), **told, "parametrisation": best, "nuts_per_second": speeds}
    row |= {"per_second": effective(ours)[0] / ours.seconds, **agreement(ours, run), **ratios(ours, run)}
    print(
        f"  p, q, n = {label(size)}: {row['per_second']:.1f} a second against {speeds[best]:.2f} of NUTS, {best}:"
    )
    print(f"    {row['ratio']:.1f} x, warm-up included {row['ratio_with_warmup']:.1f} x, {told}")
    print(f"    means differ by {row['mean_z']:.2f} standard errors in the root mean square")
    return row


def effective(run: Run) -> tuple[float, float]:
    """Bulk effective sizes of the entries of W11 and W12: the smallest, and the median."""
    sizes = np.concatenate([run.sizes("W11"), run.sizes("W12")])
    return float(sizes.min()), float(np.median(sizes))


def ratios(ours: Run, theirs: Run) -> dict[str, float]:
    """Effective draws per second of the worst entry, with warm-up too, and of the median entry."""
    (worst, median), (worst0, median0) = effective(ours), effective(theirs)
    clock = theirs.seconds / ours.seconds
    with_warmup = worst / worst0 * theirs.with_warmup / ours.with_warmup
    return {
        "ratio": worst / worst0 * clock,
        "ratio_of_medians": median / median0 * clock,
        "ratio_with_warmup": with_warmup,
    }


def _nuts_run(
    problem: Problem, python: Path, form: str, warmup: int, seconds: float
) -> tuple[Run, dict[str, Any]]:
    """One chain on one core, and what it tells of itself."""
    scatter, prior = problem.scatter, problem.prior
    assert isinstance(prior, Laplace)
    with tempfile.TemporaryDirectory() as folder:
        given, drawn = Path(folder, "given.npz"), Path(folder, "drawn.npz")
        data = {"F": scatter.F, "Y": scatter.Y, "B": scatter.B, "n": scatter.n}
        np.savez(given, **data, shape=prior.shape, rate=prior.rate)
        command = [python, HERE / "nuts.py", given, drawn, str(warmup), str(seconds), form]
        subprocess.run(on_one_core(command), env=one_thread(), check=True, stderr=subprocess.DEVNULL)
        draws = dict(np.load(drawn))
    steps = draws["steps"]
    told = {"draws": len(steps), "steps": float(np.mean(steps)), "saturated": float(np.mean(steps >= 2**10 - 1))}
    told |= {"diverging": float(np.mean(draws["diverging"])), "versions": str(draws["versions"])}
    triangle = np.triu_indices(problem.p)
    kept = {
        "W11": draws["W11"][:, *triangle][None],
        "W12": draws["W12"].reshape(1, len(steps), -1),
        "gamma": draws["gamma"][None, :, None],
    }
    taken = float(draws["seconds"])
    return Run(kept, taken, taken + float(draws["warmup_seconds"])), told


def on_one_core(command: list[Any]) -> list[Any]:
    """The command bound to the last of our cores, where that can be done."""
    if shutil.which("taskset") is None or not hasattr(os, "sched_getaffinity"):
        return command
    return ["taskset", "--cpu-list", str(max(os.sched_getaffinity(0))), *command]


def agreement(ours: Run, theirs: Run) -> dict[str, float]:
    """Of all posterior means: root mean square difference in standard errors, and the largest in posterior sds."""
    z, shift = [], []
    for name in ("W11", "W12", "gamma"):
        (m, v, s), (m0, v0, _) = _moments(ours.draws[name]), _moments(theirs.draws[name])
        z.append(np.abs(m - m0) / np.sqrt(v + v0))
        shift.append(np.abs(m - m0) / s)
    every = np.concatenate(z)
    return {"mean_z": float(np.sqrt(np.mean(every**2))), "largest_shift": float(np.concatenate(shift).max())}


def _moments(x: Array) -> tuple[Array, Array, Array]:
    """Mean, its variance by 20 batch means, and standard deviation of every entry of one chain."""
    draws = x[0]
    batches = np.array([part.mean(axis=0) for part in np.array_split(draws, 20)])
    return draws.mean(axis=0), batches.var(axis=0, ddof=1) / 20, draws.std(axis=0)


def bdgraph(settings: Settings) -> dict[str, Any]:
    """Seven latent query columns of four levels: sweeps of ours against iterations of BDgraph, whole network."""
    if (
        shutil.which("Rscript") is None
        or subprocess.run(["Rscript", "-e", "library(BDgraph)"], capture_output=True).returncode
    ):
        raise AbsentError("Rscript with the package BDgraph is not installed")
    size = (3, 20, 60) if settings.quick else (7, 312, 260)
    X, p, rows = factor_table(size), size[0], []
    chains = {
        prior: Chain(with_levels(X, p, range(p), PRIORS[prior]()), 100) for prior in ("Laplace", "SpikeSlab")
    }
    before = in_turn({prior: chain.step for prior, chain in chains.items()}, settings.repeats)
    runs = {"bdmcmc": _bdgraph_seconds(X, p, "bdmcmc", 2, 4), "rjmcmc": _bdgraph_seconds(X, p, "rjmcmc", 20, 120)}
    after = in_turn({prior: chain.step for prior, chain in chains.items()}, settings.repeats)
    for prior in chains:
        own = float(np.median(np.concatenate([before[prior], after[prior]])))
        for algorithm, (theirs, _) in runs.items():
            row = {"prior": prior, "algorithm": algorithm, "ms": 1e3 * own, "bdgraph_ms": 1e3 * theirs}
            rows.append({**dict(zip("pqn", size, strict=True)), **row, "ratio": theirs / own})
            print(f"  {prior} {1e3 * own:.2f} ms, {algorithm} {1e3 * theirs:.0f} ms: {theirs / own:.0f} x")
    return {"rows": rows, "versions": runs["bdmcmc"][1]}


def _bdgraph_seconds(X: Array, p: int, algorithm: str, few: int, many: int) -> tuple[float, str]:
    """CPU seconds per iteration, and the versions of BDgraph, R and its BLAS."""
    table = np.column_stack([*(levels(x) for x in X[:, :p].T), X[:, p:]])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "table.csv")
        names = ",".join(f"V{k}" for k in range(table.shape[1]))
        np.savetxt(path, table, delimiter=",", header=names, comments="")
        command = ["Rscript", HERE / "bdgraph.R", path, p, algorithm, few, many]
        run = subprocess.run(
            [str(word) for word in command], env=one_thread(), capture_output=True, text=True, check=True
        )
    seconds, versions = run.stdout.strip().split("\n")
    return float(seconds), versions
