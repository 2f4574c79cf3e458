"""A run, defined by data, sampler, schedule and seed; and the plan from which it can be resumed."""

from __future__ import annotations

import platform
import tempfile
import warnings
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, is_dataclass, replace
from functools import cache, cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from markovblanket._determinism import one_thread
from markovblanket._files import DamagedError, sha256_of_text, told_as_damage
from markovblanket.chains.run import Schedule, Scouting, run
from markovblanket.contracts import Array, ImpossibleStateError, Problem, Sampler, SparsePrior
from markovblanket.fitting import data
from markovblanket.fitting.candidates import Candidates
from markovblanket.fitting.data import ModelData
from markovblanket.fitting.keep import Keeping
from markovblanket.fitting.run_folder import Plan, RunFolder
from markovblanket.posterior.diagnostics import ConvergenceWarning
from markovblanket.posterior.observed import Observed, edge_name
from markovblanket.posterior.posterior import Posterior
from markovblanket.posterior.summaries import take
from markovblanket.priors import PRIORS
from markovblanket.solvers import SOLVERS
from markovblanket.tables.names import Name

# Entries of a plan that are also settings of the posterior, unchanged.
DESCRIBED = ("data", "margins", "prior", "solver", "versions", "kinds")
# With draws="auto", the probability of a pair differs by at most this between any two chains.
MOST_APART = 0.05


@dataclass(frozen=True, kw_only=True)
class Task:
    """A problem, its data and its schedule; ``settings`` record what else is needed to repeat the run."""

    problem: Problem | Sampler[Any]
    data: ModelData
    settings: Mapping[str, Any]
    schedule: Schedule
    keeping: Keeping
    chains: int
    seeds: np.random.SeedSequence
    candidates: Candidates = field(default_factory=Candidates)

    # Running ------------------------------------------------------------------------------------------------

    def run(self, n_jobs: int | None, progress: bool, checkpoint: str | Path | None = None) -> Posterior:
        """The posterior after all iterations of the schedule; warns unless the chains agree."""
        with _held(checkpoint) as folder:
            posterior = self.sampled(n_jobs, progress, folder)
        _warn_unless_converged(posterior)
        return posterior

    def run_until_converged(
        self, budget: int, n_jobs: int | None, progress: bool, checkpoint: str | Path | None = None
    ) -> Posterior:
        """The posterior after doubling the draws until the chains agree or have made ``budget`` iterations.

        They agree if their diagnostics say so, and on the probability of every pair.
        """
        elsewhere = tempfile.TemporaryDirectory(prefix="markovblanket-")
        with elsewhere as temporary, _held(temporary if checkpoint is None else checkpoint) as folder:
            task, posterior = self, self.sampled(n_jobs, progress, folder)
            while not _agreed(posterior) and task._may_double(budget):
                task = replace(task, schedule=task.schedule.doubled)
                posterior = task.sampled(n_jobs, progress, folder)
        _warn_unless_converged(posterior, MOST_APART)
        return posterior

    def sampled(self, n_jobs: int | None, progress: bool, folder: RunFolder | None = None) -> Posterior:
        """The posterior of all chains; snapshots go to the folder, if there is one."""
        saver = None if folder is None else folder.begin(self.plan(folder), self.write_data)
        grown = () if folder is None else folder.grown
        try:
            arrays = run(
                self.sampler,
                self.schedule,
                chains=self.chains,
                seed=self.seeds,
                n_jobs=n_jobs,
                progress=progress,
                keep=self.keeping.keep(self.schedule.draws, saver, grown),
                saver=saver,
            )
        except ImpossibleStateError as error:
            raise ArithmeticError(self._impossible(error.position)) from error
        return self.posterior(arrays)

    def _impossible(self, position: int) -> str:
        """What to tell if a chain has left the possible numbers because of a variable."""
        p = len(self.data.query)
        name = self.data.query[position] if position < p else take(self.data.rest, np.array([position - p]))[0]
        return (
            f"a chain has left the numbers that a computer can hold, because of {name!r}: is it a function of "
            "other columns? Leave it or them out, or try another seed"
        )

    @cached_property
    def sampler(self) -> Sampler[Any] | Scouting:
        """What the chains run: the paper's block, or the widened one, perhaps after scouting."""
        if not isinstance(self.problem, Problem):
            return self.problem
        return self.candidates.sampler(self.problem, self.schedule.warmup)

    def posterior(self, arrays: dict[str, Array]) -> Posterior:
        """The posterior of what the chains have kept, with named axes."""
        latent, draws = arrays.pop("latent", None), arrays["W11"].shape[1]
        chosen = self._names_chosen(arrays.pop("candidates", None))
        empty = np.empty((self.chains, draws, self.data.table.n, 0))
        observed = self._observed(empty if latent is None else latent)
        candidates = {"asked": self.candidates.asked, "chosen": chosen}
        settings = self._settings | {"draws": draws, "candidates": candidates}
        return self.keeping.posterior(arrays, self.data.query, self.data.rest, observed, settings)

    def _names_chosen(self, scouted: Array | None) -> list[Name]:
        """The names of the variables that are in the block beside the query; none in the paper's block."""
        if scouted is None:
            scouted = getattr(self.sampler, "candidates", np.empty(0, dtype=int))
        return take(self.data.rest, np.asarray(scouted, dtype=np.intp))

    def _may_double(self, budget: int) -> bool:
        """Whether twice as many draws are within the budget and can be stored."""
        return self.schedule.doubled.sweeps <= budget and self.keeping.can_double(self.schedule.draws)

    def _observed(self, latent: Array) -> Observed:
        """The table and the draws of its latent columns that were kept, none if no column is latent."""
        made, copula = self.data, self.data.latent
        if copula is None or not latent.size:
            return Observed.of(made.table, made.margins, [], latent[..., :0])
        names = [*(made.query[k] for k in copula.query), *(made.rest[k] for k in copula.rest)]
        every = self.schedule.latent_every(latent[0, 0].size)
        return Observed.of(made.table, made.margins, names, latent, every)

    # The plan: from a task, and back ------------------------------------------------------------------------

    @property
    def _settings(self) -> dict[str, Any]:
        """The settings of the posterior, with schedule, seed and what is kept."""
        run_by = {"chains": self.chains, "seed": str(self.seeds.entropy), "keep": self.keeping.settings}
        return {**self.settings, **asdict(self.schedule), **run_by, "candidates": {"asked": self.candidates.asked}}

    def plan(self, folder: RunFolder) -> Plan:
        """The plan that the folder of the run records: settings and names."""
        names = {"query": self.data.query, "variables": sha256_of_text(repr(self.data.rest))}
        named = None if self.keeping.named is None else self.keeping.named.tolist()
        scouting = self.sampler.sweeps if isinstance(self.sampler, Scouting) else 0
        keep = self.keeping.settings_in(folder.path)
        return {**names, **self._settings, "keep": keep, "named": named, "scouting": scouting, "grown": []}

    def write_data(self, folder: RunFolder, mark: str) -> None:
        """Write the data to the folder of the run, so that it can be resumed without the table."""
        data.write(self.data, folder, mark)

    @classmethod
    def read(cls, folder: RunFolder, keep: Path | None = None) -> Task:
        """The task of the run in a folder, from its plan and its copy of the data.

        ``keep`` is the folder of its draws if that is not inside.
        """
        plan = folder.plan_of_one_run()
        with one_thread:  # as at the beginning of the run
            made = data.read_copy(folder, plan)
        with told_as_damage(folder.plan_file):
            solver, prior = _part(plan["solver"], SOLVERS, "solver"), _part(plan["prior"], PRIORS, "prior")
        named = None if plan["named"] is None else _positions(plan["named"], made)
        return cls(
            problem=Problem(made.scatter, prior, solver, made.latent),
            data=made,
            settings={name: plan[name] for name in DESCRIBED},
            schedule=schedule_in(plan),
            keeping=Keeping.of(plan["keep"], folder.path, named, keep),
            chains=plan["chains"],
            seeds=np.random.SeedSequence(int(plan["seed"])),
            candidates=Candidates(plan["candidates"]["asked"]),
        )


def schedule_in(plan: Plan) -> Schedule:
    """The schedule that a plan records."""
    return Schedule(plan["warmup"], plan["draws"], plan["thin"])


def _part(description: Mapping[str, Any], known: Mapping[str, Any], role: str) -> Any:
    """A prior or a solver of this package, from its description in a plan."""
    kinds = {kind.__name__: kind for kind in known.values()}
    if (name := description["name"]) not in kinds:
        raise DamagedError(f"the {role} {name:.60} is not of this package: resume by the same call of estimate")
    return kinds[name](**description["options"])


def _positions(named: list[list[int]], made: ModelData) -> npt.NDArray[np.intp]:
    """The positions in ``W12`` of the named edges in a plan, k x 2."""
    pairs = np.array(named, dtype=np.intp).reshape(-1, 2)
    if (pairs >= (len(made.query), len(made.rest))).any():
        raise DamagedError("the plan of the run is damaged: it names an edge that the table does not have")
    return pairs


def _held(checkpoint: str | Path | None) -> AbstractContextManager[RunFolder | None]:
    """Hold the lock of the folder for checkpoints, if one is named."""
    return nullcontext() if checkpoint is None else RunFolder(Path(checkpoint)).held()


# Settings -----------------------------------------------------------------------------------------------


def described(made: ModelData, parts: Mapping[str, Any]) -> dict[str, Any]:
    """Settings from which a fit can be repeated, except for its schedule and seed."""
    p, q = made.scatter.S12.shape
    size = {"n": made.table.n or made.scatter.n, "p": p, "q": q, "sha256": made.fingerprint}
    by_role = {role: _described_part(part) for role, part in parts.items()}
    if isinstance(parts["prior"], SparsePrior):
        by_role["prior"]["expected_inclusion"] = {
            "block": parts["prior"].expected_inclusion(p + q, causes=3),
            "outside": parts["prior"].expected_inclusion(p + q),
        }
    return {"data": size, "margins": made.margins, **by_role, "versions": dict(_versions())}


def _described_part(part: Any) -> dict[str, Any]:
    """A prior or a solver as the settings record it: its name, its options, and whether it has exact zeros."""
    options = asdict(part) if is_dataclass(part) and not isinstance(part, type) else {}
    zeros = {"exact_zeros": part.exact_zeros} if hasattr(part, "exact_zeros") else {}
    return {"name": type(part).__name__, **zeros, "options": options}


@cache
def _versions() -> dict[str, str]:
    """Versions of what the numbers depend on; looked up once, as that reads a file for each package."""
    packages = ("markovblanket", "numpy", "scipy")
    return {"python": platform.python_version()} | {name: metadata.version(name) for name in packages}


def _agreed(posterior: Posterior) -> bool:
    """Whether the chains have converged, and tell nearly the same probability of every pair."""
    return _furthest_apart(posterior)[0] <= MOST_APART and posterior.diagnostics().converged


def _furthest_apart(posterior: Posterior) -> tuple[float, str]:
    """By how much chains differ at most in the probability of a pair, and which pair; 0 without exact zeros."""
    if posterior.averages is None:
        return 0.0, ""
    between = np.ptp(posterior.averages["inclusion"].to_numpy(), axis=0)
    i, k = np.unravel_index(int(between.argmax()), between.shape)
    return float(between[i, k]), edge_name(posterior.names[i], posterior.names[k])


def _warn_unless_converged(posterior: Posterior, most_apart: float = np.inf) -> None:
    """Warn of the first three problems if the chains do not agree, on the probability of a pair or otherwise."""
    problems, (apart, pair) = list(posterior.diagnostics().problems), _furthest_apart(posterior)
    if apart > most_apart:
        problems.append(
            f"chains differ by {apart:.2f} in the probability of {pair} (should be at most {most_apart})"
        )
    if problems:
        more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
        warnings.warn(
            f"not converged: {'; '.join(problems[:3])}{more}. Ask for more warmup and draws",
            ConvergenceWarning,
            stacklevel=4,
        )
