""":func:`estimate`, which fits a table with named query variables and returns their posterior."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from markovblanket._determinism import checked_seed, one_thread
from markovblanket.chains.run import Schedule, require_count, require_jobs
from markovblanket.contracts import Prior, Problem, Solver
from markovblanket.fitting.candidates import Candidates
from markovblanket.fitting.data import EVERY_COLUMN, ModelData, model_data
from markovblanket.fitting.keep import decide
from markovblanket.fitting.run_folder import RunFolder, require_path, seed_in
from markovblanket.fitting.task import Task, described
from markovblanket.posterior.posterior import Posterior
from markovblanket.priors import PRIORS
from markovblanket.solvers import SOLVERS

AUTO = "auto"
# Draws of the first round of ``draws="auto"``.
FIRST_DRAWS = 500


def estimate(
    table: Any = None,
    query: Any = None,
    *,
    scatter: npt.ArrayLike | None = None,
    n: int | None = None,
    names: Sequence[Any] | None = None,
    prior: str | Prior = "spike-slab",
    margins: str = "auto",
    kinds: Mapping[Any, Any] | None = None,
    solver: str | Solver = "dual",
    candidates: int | str = "auto",
    chains: int = 4,
    warmup: int | str = "auto",
    draws: int | str = "auto",
    thin: int = 1,
    budget: int = 10_000,
    seed: int | None = None,
    n_jobs: int | None = None,
    keep: str | Path = "auto",
    named: Sequence[tuple[Any, Any]] | None = None,
    checkpoint: str | Path | None = None,
    progress: bool = True,
) -> Posterior:
    """Estimate which variables are directly connected to the query variables, and with what probability.

    Draws from the posterior of ``W11`` and ``W12``, the rows of the precision matrix that belong to the query
    variables (Kaufmann et al. 2016), at a cost linear in the number of variables. Under the spike-and-slab prior
    the likely neighbours of the query join its block, whose entries may be exactly zero, too, so that every edge
    is seen from both of its ends.

    Parameters
    ----------
    table : pandas or polars frame, numpy.ndarray, or path
        A row per observation; files are csv, tsv, parquet, feather or h5ad. Columns may be continuous, binary,
        ordinal or counts, and cells may be missing.
    query : list of names
        The few variables of interest; positions for an array. If all are named, the answer is the whole network.
    scatter : array_like, optional
        Instead of a table: ``X'X``, a sum over rows, used as given.
    n : int, optional
        With ``scatter``: its number of rows.
    names : sequence, optional
        With ``scatter``: names of its variables; positions by default.
    prior : str or prior
        ``"spike-slab"`` (exact zeros), ``"laplace"`` (rate learned), ``"horseshoe"``, ``"normal"``, or an instance
        such as ``Laplace(gamma=200)`` or ``Horseshoe(edges=20)``.
    margins : str
        ``"auto"``: a Gaussian copula; complete continuous columns as normal scores, all others (with levels or
        missing cells) latent. ``"rank"``: every column latent, known by its order alone, as in the paper.
        ``"gaussian"``: complete numeric columns as they are, standardised.
    kinds : mapping, optional
        With a copula: kinds that were inferred wrongly, ``{"stage": ["I", "II", "III"], "dose": "ordinal"}``.
    solver : str or solver
        ``"dual"``, linear in the number of variables, or ``"dense"``, the slow reference.
    candidates : int or "auto"
        With exact zeros: the largest number of variables that join the query in its block. ``"auto"``: all of a
        table of up to 150 variables; otherwise those that a short scouting stage finds to be a neighbour with a
        probability of 0.05 or more, and their near-duplicates, up to a block of 150 variables. 0: none, the
        paper's block, which sees an edge from the query alone.
    chains, warmup, draws, thin : int
        Independent chains; iterations discarded; draws kept per chain; iterations per kept draw.
        ``warmup="auto"``: 300 for complete numbers in a widened block, which mixes quickly, else 1000.
        ``draws="auto"``: 500, doubled until the chains agree, within 0.05 on the probability of every pair, or the
        budget is used up.
    budget : int
        With ``draws="auto"``: the most iterations per chain. The numbers are those of a run that asks for as many
        draws at once.
    seed : int, optional
        The same seed gives the same numbers, for any ``n_jobs``.
    n_jobs : int, optional
        Chains run at a time, by joblib; any of its backends.
    keep : str or path
        ``"draws"``: every draw, in memory. ``"summary"``: statistics of every edge, in memory that does not grow
        with the draws, and the draws of a few edges. A path: a summary, and every draw in a zarr store in that
        folder (W12 in single precision), which is then also a saved posterior. ``"auto"``: draws if W12 has at
        most 2^28 numbers in all (two gigabytes), else a summary.
    named : list of pairs, optional
        With a summary: the edges (query, variable) whose draws are kept; by default the 200 whose sign is surest
        after warm-up.
    checkpoint : str or path, optional
        A folder for snapshots of the chains, from which a run that was stopped or killed continues bit for bit: by
        the same call, or by :func:`resume`. A finished run is read, and extended if more draws are asked for.
    progress : bool
        Whether to show a bar per chain, on a terminal or in a notebook.

    Returns
    -------
    Posterior
        Draws with named axes, edges, blankets, predictions.

    Warns
    -----
    ConvergenceWarning
        If the chains do not agree yet, or hold too few independent draws.

    Examples
    --------
    >>> import markovblanket as mb
    >>> clinic = mb.simulate(rows=200, query=2, rest=8, seed=1)
    >>> posterior = mb.estimate(clinic.table, clinic.query, warmup=200, draws=500, seed=1)
    >>> posterior
    <Posterior: 2 query and 8 other variables, 4 chains of 500 draws>
    >>> sorted(posterior.blanket())
    ['Q1', 'Q2']
    """
    require_path(checkpoint)
    require_jobs(n_jobs)
    asked = Candidates(candidates)
    seeds = np.random.SeedSequence(seed_in(checkpoint, checked_seed(seed)))
    parts = chosen(prior, PRIORS, "prior", Prior), chosen(solver, SOLVERS, "solver", Solver)
    with one_thread:  # as in the chains: the last bits must not depend on the number of cores
        data = model_data(table, query, margins, kinds, scatter, n, names)
    problem = problem_of(data, *parts)
    asked.require(problem)
    warm = asked.warmup(problem) if warmup == AUTO else warmup
    schedule, most = _schedules(warm, draws, thin, budget, checkpoint)
    keeping = decide(keep, named, (data.query, data.rest), chains, most)
    declared = None if kinds is None else {str(name): _plain(kind) for name, kind in kinds.items()}
    settings = described(data, {"prior": problem.prior, "solver": problem.solver}) | {"kinds": declared}
    task = Task(
        problem=problem,
        data=data,
        settings=settings,
        schedule=schedule,
        keeping=keeping,
        chains=chains,
        seeds=seeds,
        candidates=asked,
    )
    if draws == AUTO:
        return task.run_until_converged(budget, n_jobs, progress, checkpoint)
    return task.run(n_jobs, progress, checkpoint)


def network(
    table: Any = None,
    *,
    scatter: npt.ArrayLike | None = None,
    n: int | None = None,
    names: Sequence[Any] | None = None,
    prior: str | Prior = "spike-slab",
    margins: str = "auto",
    kinds: Mapping[Any, Any] | None = None,
    chains: int = 4,
    warmup: int | str = "auto",
    draws: int | str = "auto",
    thin: int = 1,
    budget: int = 10_000,
    seed: int | None = None,
    n_jobs: int | None = None,
    keep: str | Path = "auto",
    checkpoint: str | Path | None = None,
    progress: bool = True,
) -> Posterior:
    """Estimate the whole network of a table: every variable is a query variable, and none is left outside.

    For up to a few hundred variables; :func:`scan` finds the neighbours of each of thousands.

    Parameters
    ----------
    table, scatter, n, names, margins, kinds
        The data, as for :func:`estimate`.
    prior : str or prior
        ``"spike-slab"`` or an instance of :class:`SpikeSlab`: a network needs exact zeros.
    chains, warmup, draws, thin, budget, seed, n_jobs, keep, checkpoint, progress
        As for :func:`estimate`.

    Returns
    -------
    Posterior
        A posterior like any other, without other variables: ``edges()`` has all pairs.

    Examples
    --------
    >>> import markovblanket as mb
    >>> made = mb.simulate(rows=300, query=1, rest=7, density=0.4, seed=0)
    >>> posterior = mb.network(made.table, seed=1)
    >>> sorted(posterior.blanket()["Q1"]), made.blanket["Q1"]
    (['V2', 'V3', 'V6', 'V7'], ['V2', 'V3', 'V6', 'V7'])
    """
    return estimate(
        table,
        EVERY_COLUMN,
        scatter=scatter,
        n=n,
        names=names,
        prior=prior,
        margins=margins,
        kinds=kinds,
        chains=chains,
        warmup=warmup,
        draws=draws,
        thin=thin,
        budget=budget,
        seed=seed,
        n_jobs=n_jobs,
        keep=keep,
        checkpoint=checkpoint,
        progress=progress,
    )


def _schedules(
    warmup: Any, draws: int | str, thin: int, budget: int, checkpoint: str | Path | None
) -> tuple[Schedule, Schedule]:
    """The schedules of the first round (of a resumed run, the round it had reached) and of the longest one."""
    if draws != AUTO:
        if isinstance(draws, str):
            raise ValueError(f"draws={draws!r}: a whole number, or {AUTO!r}")
        return Schedule(warmup, draws, thin), Schedule(warmup, draws, thin)
    require_count("budget", budget, 1)
    begun = None if checkpoint is None else RunFolder(Path(checkpoint)).plan()
    first = Schedule(warmup, FIRST_DRAWS if begun is None else begun["draws"], thin)
    if first.sweeps > budget:
        raise ValueError(
            f"budget={budget}: {warmup} iterations of warm-up and {first.draws} draws are more than that"
        )
    doublings = int(math.log2((budget - warmup) / (first.draws * thin)))
    return first, replace(first, draws=first.draws * 2**doublings)


def problem_of(data: ModelData, prior: Prior, solver: Solver) -> Problem:
    """The problem to sample: scatter, solver, and the prior adapted to the size of the data."""
    sized = prior.for_data(len(data.query), len(data.rest), data.scatter.n)
    return Problem(data.scatter, sized, solver, data.latent)


def chosen(choice: Any, known: dict[str, Any], role: str, contract: type) -> Any:
    """A prior or a solver, from its name or from an instance."""
    if isinstance(choice, str) and choice in known:
        return known[choice]()
    if isinstance(choice, type) or not isinstance(choice, contract):
        raise ValueError(f"{role}={choice!r}: known are {', '.join(map(repr, known))}, or pass an instance")
    return choice


def _plain(kind: Any) -> Any:
    """A declared kind in the form of JSON: a word, or levels in ascending order."""
    return kind if isinstance(kind, str) else [str(level) for level in kind]
