"""Runs that were stopped: go on with them, look at them, add draws."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from markovblanket import _files
from markovblanket._determinism import one_thread
from markovblanket._files import DamagedError, is_running
from markovblanket.chains import snapshots
from markovblanket.chains.run import SAMPLING, WARMUP, Schedule, still_kept
from markovblanket.chains.snapshots import Record, Saver, part
from markovblanket.chains.stores import EFFORT, KeepDraws, MemoryStore
from markovblanket.contracts import Array, Problem
from markovblanket.fitting import run_folder
from markovblanket.fitting.data import Given, as_they_are, from_scatter, in_copula
from markovblanket.fitting.estimate import AUTO, PRIORS, SOLVERS
from markovblanket.fitting.keep import Keeping
from markovblanket.fitting.run_folder import Plan
from markovblanket.fitting.task import Task
from markovblanket.posterior import posterior
from markovblanket.posterior.observed import Observed
from markovblanket.posterior.posterior import Posterior
from markovblanket.posterior.summaries import convergence


def resume(
    folder: str | Path,
    *,
    draws: int | str | None = None,
    budget: int = 20_000,
    n_jobs: int | None = None,
    progress: bool = True,
) -> Posterior:
    """Go on with a run that was stopped, from its folder alone: bit for bit the posterior it would have been.

    Parameters
    ----------
    folder : str or path
        The ``checkpoint`` of :func:`estimate`.
    draws : int or "auto", optional
        Draws per chain, if more than were asked for: a finished run grows. ``"auto"``: twice as many again and
        again, until the chains agree or the budget is used up.
    budget : int
        Of ``draws="auto"``: sweeps of a chain, at most.
    n_jobs : int, optional
        Chains at a time, by joblib.
    progress : bool
        A bar per chain.

    Returns
    -------
    Posterior
        Of the whole run.

    Examples
    --------
    >>> import tempfile
    >>> import markovblanket as mb
    >>> clinic = mb.simulate(rows=200, query=1, rest=5, density=0.4, seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     short = mb.estimate(clinic.table, clinic.query, draws=400, seed=1, checkpoint=folder)
    ...     longer = mb.resume(folder, draws=600)
    >>> bool((longer.W12[:, :400] == short.W12).all()), longer
    (True, <Posterior: 1 query and 5 other variables, 4 chains of 600 draws>)
    """
    folder = run_folder.located(folder)
    task = _task_in(folder)
    if draws == AUTO:
        return task.run_until_converged(budget, n_jobs, progress, folder)
    if isinstance(draws, str):
        raise ValueError(f"draws={draws!r}: a whole number, or {AUTO!r}")
    if draws is not None:
        task = replace(task, schedule=replace(task.schedule, draws=draws))
    return task.run(n_jobs, progress, folder)


def load(path: str | Path) -> Posterior:
    """Read back what :meth:`Posterior.save` wrote; or a run with a checkpoint, as far as it has come.

    Of a run that has not ended, these are the draws that all its chains have in their last snapshots. If it keeps
    a summary, nothing can be read before its end.
    """
    path = run_folder.located(path)
    if run_folder.read(path) is None:
        return posterior.load(path)
    seen, task = status(path), _task_in(path)
    if seen.finished:
        return resume(path, progress=False)
    least = int(seen.chains["draws"].min())
    if task.keeping.kept != "draws" or not least:
        raise ValueError(f"{path} cannot be read yet: {seen.sentence}")
    stores = [_drawn(Path(path), chain, task.schedule) for chain in range(task.chains)]
    return task.posterior(KeepDraws(least).gather([store.first(least) for store in stores]))


def _drawn(folder: Path, chain: int, schedule: Schedule) -> MemoryStore:
    """What a chain has drawn so far; some chains may have grown already, and others not yet."""
    store = MemoryStore(schedule.draws)
    if (record := snapshots.read(Saver(folder).path(chain, SAMPLING))) is not None:
        store.unpack(still_kept(part("store", record), schedule))
    return store


# The task of a folder ---------------------------------------------------------------------------------


def _task_in(folder: str | Path) -> Task:
    """The run that was begun there."""
    plan = run_folder.read(folder)
    if plan is None:
        raise FileNotFoundError(f"{folder} has no checkpoint: there is no {run_folder.PLAN}")
    if told := run_folder.scanned(folder, plan):
        raise ValueError(told)
    with one_thread:  # as when it was begun
        given = _given_in(Path(folder), plan)
    solver, prior = (_known(plan[role], names, role) for role, names in (("solver", SOLVERS), ("prior", PRIORS)))
    named = None if plan["named"] is None else np.array(plan["named"], dtype=np.intp).reshape(-1, 2)
    keeping = Keeping.of(plan["keep"], Path(folder), named)
    settings = {name: plan[name] for name in ("data", "margins", "prior", "solver", "versions", "kinds")}
    schedule = Schedule(*(plan[name] for name in ("warmup", "draws", "thin")))
    seeds = np.random.SeedSequence(int(plan["seed"]))
    problem = Problem(given.scatter, prior, solver, given.latent)
    again = plan["second_look"]["asked"]
    return Task(problem, given, settings, schedule, keeping, plan["chains"], seeds, again)


def _given_in(folder: Path, plan: Plan) -> Given:
    """The data, from their copy."""
    _files.check_seal(folder / run_folder.TABLE)
    whole = xr.open_zarr(folder / run_folder.TABLE, consolidated=True, chunks=None).load()
    table = Observed.from_datasets(whole, xr.Dataset({"latent": ((), 0.0)})).table
    if matrix := snapshots.read(folder / run_folder.MATRIX):
        given = from_scatter(snapshots.entry(matrix, "matrix"), plan["data"]["n"], list(table.query), table.order)
    elif plan["margins"] == "gaussian":
        given = as_they_are(table)
    else:
        given = in_copula(table, plan["margins"])
    if given.fingerprint != plan["data"]["sha256"]:
        raise DamagedError(f"{folder} is damaged: its copy of the data is not what it was")
    return given


def _known(described: Mapping[str, Any], names: Mapping[str, Any], role: str) -> Any:
    """A prior or a solver of this package, made again from its description."""
    kinds = {kind.__name__: kind for kind in names.values()}
    if (name := described["name"]) not in kinds:
        raise ValueError(f"the {role} {name} is not of this package: go on by the same call of estimate")
    return kinds[name](**described["options"])


# How far it is ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Status:
    """How far a run has come.

    Attributes
    ----------
    running : bool
        Whether a process is at work on it.
    chains : pandas.DataFrame
        A row per chain: its phase, sweeps done, draws kept, and the seconds since its last snapshot.
    sweeps, draws : int
        What was asked of each chain.
    rhat : float
        The worst of W11's diagonal, the explained variances and the hyperparameters over the draws that all chains
        have; missing before there are four.
    """

    running: bool
    chains: pd.DataFrame
    sweeps: int
    draws: int
    rhat: float

    @property
    def finished(self) -> bool:
        """Whether all chains have all their draws."""
        return bool((self.chains["sweeps"] == self.sweeps).all())

    @property
    def sentence(self) -> str:
        """In a line."""
        state = "finished" if self.finished else "running" if self.running else "stopped"
        done = self.chains["sweeps"].sum() / (self.sweeps * len(self.chains))
        agree = "" if np.isnan(self.rhat) else f"; worst R-hat so far {self.rhat:.3f}"
        return (
            f"{state}, {done:.0%} of all sweeps done, {self.chains['draws'].min():,} draws in every chain{agree}"
        )


def status(folder: str | Path) -> Status:
    """How far a run with a checkpoint has come, as of its last snapshots; it may be running meanwhile."""
    folder = run_folder.located(folder)
    plan = run_folder.read(folder)
    if plan is None:
        raise FileNotFoundError(f"{folder} has no checkpoint: there is no {run_folder.PLAN}")
    if told := run_folder.scanned(folder, plan):
        raise ValueError(told)
    schedule = Schedule(*(plan[name] for name in ("warmup", "draws", "thin")))
    seen = [_reached(Path(folder), chain, schedule) for chain in range(plan["chains"])]
    chains = pd.DataFrame([row for row, _ in seen]).rename_axis("chain")
    rhat = _agreement([draws for _, draws in seen])
    return Status(is_running(Path(folder)), chains, schedule.sweeps, schedule.draws, rhat)


def _reached(folder: Path, chain: int, schedule: Schedule) -> tuple[dict[str, Any], Array]:
    """Where a chain is, and the draws of what is watched: (draw, quantity)."""
    for phase in (SAMPLING, WARMUP):
        path = Saver(folder).path(chain, phase)
        if record := snapshots.read(path, _is_watched):
            count, age = int(snapshots.entry(record, "count")), time.time() - path.stat().st_mtime
            kept = max(0, count - schedule.warmup) // schedule.thin
            return {"phase": phase, "sweeps": count, "draws": kept, "seconds_ago": round(age, 1)}, _watched(record)
    return {"phase": "waiting", "sweeps": 0, "draws": 0, "seconds_ago": np.nan}, np.empty((0, 0))


def _is_watched(name: str) -> bool:
    """Of the arrays in a snapshot: the count of sweeps; draws of W11, explained variances, hyperparameters."""
    *_, group, quantity = ("", *name.split("."))
    large = ("W12", "W22_diagonal", *EFFORT)
    return name == "count" or (group == "arrays" and quantity not in large and not quantity.startswith("kept_"))


def _watched(record: Record) -> Array:
    """Draws of these, of W11 its diagonal: (draw, quantity)."""
    arrays = [array for name, array in record.items() if name != "count"]
    draws = [array.diagonal(axis1=1, axis2=2) if array.ndim == 3 else array for array in arrays]
    return np.column_stack(draws) if draws else np.empty((0, 0))


def _agreement(chains: list[Array]) -> float:
    """The worst R-hat over the draws that all chains have."""
    least = min(map(len, chains))
    if least < 4:
        return float("nan")
    together = np.stack([draws[:least] for draws in chains])
    return float(convergence({k: together[..., k] for k in range(together.shape[2])})["rhat"].max())
