"""A run that is ready to go: data, sampler, schedule and seed; and what becomes of it."""

from __future__ import annotations

import platform
import tempfile
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, is_dataclass, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from markovblanket._determinism import one_thread
from markovblanket.chains import snapshots
from markovblanket.chains.run import Schedule, run
from markovblanket.chains.snapshots import Saver
from markovblanket.contracts import Array, Problem, Sampler
from markovblanket.fitting import run_folder
from markovblanket.fitting.data import Given, digest
from markovblanket.fitting.keep import Keeping
from markovblanket.fitting.second_look import other_ends
from markovblanket.posterior.diagnostics import ConvergenceWarning
from markovblanket.posterior.observed import Observed
from markovblanket.posterior.posterior import Posterior

# The branch of the seed's tree on which second looks are; those of the chains are counted from 0.
SECOND = 2**31


@dataclass(frozen=True)
class Task:
    """What is run, and how long; ``settings`` tell all else that is needed to do it again."""

    problem: Problem | Sampler[Any]
    given: Given
    settings: Mapping[str, Any]
    schedule: Schedule
    keeping: Keeping
    chains: int
    seeds: np.random.SeedSequence
    second_look: bool | str = False

    def __post_init__(self) -> None:
        """Refuse unknown wishes."""
        require_wish(self.second_look)

    @property
    def plan(self) -> dict[str, Any]:
        """All settings."""
        run_by = {"chains": self.chains, "seed": str(self.seeds.entropy), "keep": self.keeping.settings}
        return {**self.settings, **asdict(self.schedule), **run_by, "second_look": {"asked": self.second_look}}

    def run(self, n_jobs: int | None, progress: bool, checkpoint: str | Path | None = None) -> Posterior:
        """The posterior, and a warning unless its chains agree."""
        with run_folder.held(checkpoint) as saver:
            posterior = self.looked_at_again(self.sampled(n_jobs, progress, saver), n_jobs)
        _warn_unless_converged(posterior)
        return posterior

    def run_until_converged(
        self, budget: int, n_jobs: int | None, progress: bool, checkpoint: str | Path | None = None
    ) -> Posterior:
        """The same, with twice as many draws again and again until the chains agree, or the sweeps are used up."""
        elsewhere = tempfile.TemporaryDirectory(prefix="markovblanket-")
        with elsewhere as folder, run_folder.held(folder if checkpoint is None else checkpoint) as saver:
            task, posterior = self, self.looked_at_again(self.sampled(n_jobs, progress, saver), n_jobs)
            while not posterior.diagnostics().converged and task.may_double(budget):
                task = replace(task, schedule=task.schedule.doubled)
                posterior = task.looked_at_again(task.sampled(n_jobs, progress, saver), n_jobs)
        _warn_unless_converged(posterior)
        return posterior

    def may_double(self, budget: int) -> bool:
        """Whether twice as many draws are within the budget, and there is room for them."""
        return self.schedule.doubled.sweeps <= budget and self.keeping.can_double(self.schedule.draws)

    def sampled(self, n_jobs: int | None, progress: bool, saver: Saver | None = None) -> Posterior:
        """Run the chains, and name what they drew."""
        if saver is not None:
            run_folder.begin(saver.folder, self.plan_in(saver.folder), self.write_data)
        arrays = run(
            self.problem,
            self.schedule,
            chains=self.chains,
            seed=self.seeds,
            n_jobs=n_jobs,
            progress=progress,
            keep=self.keeping.keep(self.schedule.draws, saver),
            saver=saver,
        )
        return self.posterior(arrays)

    def looked_at_again(self, posterior: Posterior, n_jobs: int | None) -> Posterior:
        """With probabilities of the likely edges from their other ends, if wished."""
        seeds = np.random.SeedSequence(self.seeds.entropy, spawn_key=(SECOND,))
        with one_thread:  # here already: to enter it anew for each candidate takes time
            other, why = other_ends(posterior, self.second_look, seeds, n_jobs)
        settings = {**posterior.settings, "second_look": {"asked": self.second_look, "taken": why}}
        return self.keeping.keep_second_look(replace(posterior, inclusion_other=other, settings=settings))

    def plan_in(self, folder: Path) -> dict[str, Any]:
        """All settings and names, as the checkpoint in that folder has them."""
        names = {"query": self.given.query, "variables": digest(repr(self.given.rest))}
        named = None if self.keeping.named is None else self.keeping.named.tolist()
        return {**names, **self.plan, "keep": self.keeping.told_in(folder), "named": named}

    def write_data(self, folder: Path) -> None:
        """All that is needed to go on without the table itself."""
        table = self.observed(np.empty((1, 1, self.given.table.n, 0))).to_datasets()["table"]
        table.to_zarr(folder / run_folder.TABLE, mode="w", zarr_format=2, consolidated=True)
        if self.given.matrix is not None:
            snapshots.write(folder / run_folder.MATRIX, {"matrix": self.given.matrix})

    def posterior(self, arrays: dict[str, Array]) -> Posterior:
        """What the chains drew, with names."""
        given, latent, draws = self.given, arrays.pop("latent", None), arrays["W11"].shape[1]
        observed = self.observed(np.empty((self.chains, draws, given.table.n, 0)) if latent is None else latent)
        return self.keeping.posterior(arrays, given.query, given.rest, observed, self.plan | {"draws": draws})

    def observed(self, latent: Array) -> Observed:
        """The table with the latent columns that were kept; without any where nothing moves."""
        given = self.given
        if given.latent is None or not latent.size:
            return Observed.of(given.table, given.margins, [], latent[..., :0])
        names = [*(given.query[k] for k in given.latent.query), *(given.rest[k] for k in given.latent.rest)]
        every = self.schedule.latent_every(latent[0, 0].size)
        return Observed.of(given.table, given.margins, names, latent, every)


def described(given: Given, parts: Mapping[str, Any]) -> dict[str, Any]:
    """All that is needed to do it again, but for the schedule and the seed."""
    by_role = {role: _described_part(part) for role, part in parts.items()}
    p, q = given.scatter.S12.shape
    data = {"n": given.scatter.n, "p": p, "q": q, "sha256": given.fingerprint}
    return {"data": data, "margins": given.margins, **by_role, "versions": dict(_versions())}


def _described_part(part: Any) -> dict[str, Any]:
    """A prior or a solver as the settings record it: its name, its options, and whether it has exact zeros."""
    options = asdict(part) if is_dataclass(part) and not isinstance(part, type) else {}
    zeros = {"exact_zeros": part.exact_zeros} if hasattr(part, "exact_zeros") else {}
    return {"name": type(part).__name__, **zeros, "options": options}


@cache
def _versions() -> dict[str, str]:
    """Of what the numbers depend on; looked up once, as that reads a file for each package."""
    packages = ("markovblanket", "numpy", "scipy")
    return {"python": platform.python_version()} | {name: metadata.version(name) for name in packages}


def require_wish(second_look: object) -> None:
    """Refuse what is no wish for a second look."""
    if second_look not in (True, False, "auto"):
        raise ValueError(f"second_look={second_look!r}: True, False or 'auto'")


def _warn_unless_converged(posterior: Posterior) -> None:
    """Say loudly what is wrong with the chains."""
    problems = posterior.diagnostics().problems
    if problems:
        more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
        warnings.warn(
            f"not converged: {'; '.join(problems[:3])}{more}. Ask for more warmup and draws",
            ConvergenceWarning,
            stacklevel=4,
        )
