"""Resume a run that was stopped, add draws to it, read it, or show its progress."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from markovblanket._files import DamagedError, told_as_damage
from markovblanket.chains import snapshots
from markovblanket.chains.run import SAMPLING, SCOUTING, WARMUP, Schedule, Scouting, still_kept
from markovblanket.chains.snapshots import Record, Saver, part
from markovblanket.chains.stores import EFFORT, Chain, KeepDraws, MemoryStore
from markovblanket.contracts import Array
from markovblanket.fitting.candidates import scouted
from markovblanket.fitting.estimate import AUTO
from markovblanket.fitting.run_folder import RunFolder
from markovblanket.fitting.task import Task, schedule_in
from markovblanket.posterior import posterior, storage
from markovblanket.posterior.posterior import Posterior
from markovblanket.posterior.summaries import convergence


def resume(
    folder: str | Path,
    *,
    draws: int | str | None = None,
    budget: int = 10_000,
    n_jobs: int | None = None,
    keep: str | Path | None = None,
    progress: bool = True,
) -> Posterior:
    """Continue a run that was stopped, from its folder alone, bit for bit as if it had not been stopped.

    Parameters
    ----------
    folder : str or path
        The ``checkpoint`` of :func:`estimate`.
    draws : int or "auto", optional
        Draws per chain, if more than before: a finished run is extended. ``"auto"``: doubled until the chains
        agree or the budget is used up.
    budget : int
        With ``draws="auto"``: the most iterations per chain.
    n_jobs : int, optional
        Chains run at the same time, by joblib.
    keep : str or path, optional
        The folder of the draws on disk, if it is not inside ``folder``: what is read there is not followed out of
        it.
    progress : bool
        Whether to show a bar per chain.

    Returns
    -------
    Posterior
        The posterior of the whole run.

    Examples
    --------
    >>> import tempfile
    >>> import markovblanket as mb
    >>> clinic = mb.simulate(rows=200, query=1, rest=5, density=0.4, seed=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     short = mb.estimate(clinic.table, clinic.query, draws=1500, seed=1, checkpoint=folder)
    ...     longer = mb.resume(folder, draws=2000)
    >>> bool((longer.W12[:, :1500] == short.W12).all()), longer
    (True, <Posterior: 1 query and 5 other variables, 4 chains of 2000 draws>)
    """
    run = RunFolder.at(folder)
    task = Task.read(run, None if keep is None else Path(keep))
    if draws == AUTO:
        return task.run_until_converged(budget, n_jobs, progress, run.path)
    if isinstance(draws, str):
        raise ValueError(f"draws={draws!r}: a whole number, or {AUTO!r}")
    if draws is not None:
        task = replace(task, schedule=replace(task.schedule, draws=draws))
    return task.run(n_jobs, progress, run.path)


def load(path: str | Path) -> Posterior:
    """Read a posterior that :meth:`Posterior.save` wrote, or the draws so far of a run with a checkpoint.

    Nothing is written. Of an unfinished run, these are the draws that all its chains have in their last snapshots.
    If it keeps a summary, nothing can be read before its end.
    """
    run = RunFolder.at(path)
    if run.plan() is None:
        return posterior.load(path)
    seen, task = status(run.path), Task.read(run)
    if task.keeping.kept == "disk":
        return _on_disk(run, task, seen)
    least = int(seen.chains["draws"].min())
    if not seen.finished and (task.keeping.kept != "draws" or not least):
        raise ValueError(f"{run.path} cannot be read yet: {seen.sentence}")
    with told_as_damage(run.path):
        saver = run.saver(run.plan_of_one_run())
        arrays: dict[str, Any] = (
            _summarised(run, task, saver) if task.keeping.kept == "summary" else _drawn(task, saver, least)
        )
        if isinstance(task.sampler, Scouting):
            chosen = scouted(task.sampler, saver, task.chains)
            arrays |= {} if chosen is None else {"candidates": chosen}
        return task.posterior(arrays)


def _on_disk(run: RunFolder, task: Task, seen: Status) -> Posterior:
    """The saved posterior of a run that keeps its draws on disk, which must be that of this run."""
    folder = Path(task.keeping.asked)
    if not seen.finished or not (folder / storage.SETTINGS).is_file():
        raise ValueError(f"{run.path} cannot be read yet: {seen.sentence}; resume it")
    found, plan = posterior.load(folder), run.plan_of_one_run()
    same = ("data", "prior", "solver", "margins", "warmup", "draws", "thin", "chains", "seed")
    if any(found.settings.get(name) != plan[name] for name in same):
        raise DamagedError(f"{folder} is damaged: it holds the posterior of another run")
    return found


def _summarised(run: RunFolder, task: Task, saver: Saver) -> dict[str, Array]:
    """The arrays of a finished run that keeps a summary."""
    warm = [Chain.unpack(_required(saver, chain, WARMUP)) for chain in range(task.chains)]
    keep = task.keeping.keep(task.schedule.draws, saver, run.grown)
    stores = keep.stores(warm)
    for chain, store in enumerate(stores):
        store.unpack(still_kept(part("store", _required(saver, chain, SAMPLING)), task.schedule))
    return keep.gather([store.collect() for store in stores])


def _drawn(task: Task, saver: Saver, least: int) -> dict[str, Array]:
    """The first draws of all chains, as some may have been extended already and others not yet."""
    stores = []
    for chain in range(task.chains):
        record = part("store", _required(saver, chain, SAMPLING))
        stores.append(MemoryStore(int(snapshots.entry(record, "filled"))))
        stores[-1].unpack(still_kept(record, task.schedule))
    return KeepDraws(least).gather([store.first(least) for store in stores])


def _required(saver: Saver, chain: int, phase: str) -> Record:
    """The snapshot of a chain in a phase, which must be there."""
    if (record := saver.read(chain, phase)) is None:
        raise DamagedError(f"{saver.path(chain, phase)} is damaged: it is not there")
    return record


# Progress --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Status:
    """The progress of a run.

    Attributes
    ----------
    running : bool
        Whether a process is running it.
    chains : pandas.DataFrame
        A row per chain: its phase, iterations done (``sweeps``, scouting included), draws kept, and seconds since
        its last snapshot.
    sweeps, draws : int
        The iterations and draws of each chain when it is finished.
    rhat : float
        The worst R-hat of W11's diagonal, the explained variances and the hyperparameters, over the draws that all
        chains have; NaN with fewer than four.
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
        """The progress of the run in one sentence."""
        state = "finished" if self.finished else "running" if self.running else "stopped"
        done = self.chains["sweeps"].sum() / (self.sweeps * len(self.chains))
        agree = "" if np.isnan(self.rhat) else f"; worst R-hat so far {self.rhat:.3f}"
        draws = self.chains["draws"].min()
        return f"{state}, {done:.0%} of all iterations done, {draws:,} draws in every chain{agree}"


def status(folder: str | Path) -> Status:
    """The progress of a run with a checkpoint, as of its last snapshots; it may be running."""
    run = RunFolder.at(folder)
    plan = run.plan_of_one_run()
    with told_as_damage(run.path):
        schedule, saver, scouting = schedule_in(plan), run.saver(plan), plan["scouting"]
        seen = [_reached(saver, chain, schedule, scouting) for chain in range(plan["chains"])]
        chains = pd.DataFrame([row for row, _ in seen]).rename_axis("chain")
        rhat = _agreement([draws for _, draws in seen])
    return Status(run.is_running, chains, scouting + schedule.sweeps, schedule.draws, rhat)


def _reached(saver: Saver, chain: int, schedule: Schedule, scouting: int) -> tuple[dict[str, Any], Array]:
    """The progress of a chain, and its draws of the quantities for R-hat: (draw, quantity)."""
    for phase in (SAMPLING, WARMUP, SCOUTING):
        if record := saver.read(chain, phase, _is_watched):
            age = time.time() - saver.path(chain, phase).stat().st_mtime
            count = int(snapshots.entry(record, "count"))
            sweeps, kept = count + scouting * (phase != SCOUTING), max(0, count - schedule.warmup) // schedule.thin
            row = {"phase": phase, "sweeps": sweeps, "draws": kept * (phase == SAMPLING)}
            return row | {"seconds_ago": round(age, 1)}, _watched(record)
    return {"phase": "waiting", "sweeps": 0, "draws": 0, "seconds_ago": np.nan}, np.empty((0, 0))


def _is_watched(name: str) -> bool:
    """Whether an array of a snapshot is the count of iterations, or draws of a quantity for R-hat.

    Those quantities are W11, the explained variances and the hyperparameters.
    """
    *_, group, quantity = ("", *name.split("."))
    large = ("W12", "W22_diagonal", *EFFORT)
    return name == "count" or (group == "arrays" and quantity not in large and not quantity.startswith("kept_"))


def _watched(record: Record) -> Array:
    """The draws of the quantities for R-hat, of W11 its diagonal: (draw, quantity)."""
    arrays = [array for name, array in record.items() if name != "count"]
    draws = [array.diagonal(axis1=1, axis2=2) if array.ndim == 3 else array for array in arrays]
    return np.column_stack(draws) if draws else np.empty((0, 0))


def _agreement(chains: list[Array]) -> float:
    """The worst R-hat over the draws that all chains have; NaN with fewer than four."""
    least = min(map(len, chains))
    if least < 4:
        return float("nan")
    together = np.stack([draws[:least] for draws in chains])
    return float(convergence({k: together[..., k] for k in range(together.shape[2])})["rhat"].max())
