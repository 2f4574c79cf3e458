"""The front door: a table and the names of its query variables in, a posterior out."""

from __future__ import annotations

import hashlib
import platform
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits

from markovblanket.chains import Schedule, run
from markovblanket.contracts import Array, Prior, Problem, Sampler, Scatter, Solver
from markovblanket.copula import Copula
from markovblanket.diagnosis import ConvergenceWarning
from markovblanket.keeping import Keeping, decide
from markovblanket.levels import Column
from markovblanket.observed import Observed
from markovblanket.posterior import Posterior
from markovblanket.priors import Horseshoe, Laplace, Normal, SpikeSlab
from markovblanket.scatter import checked, from_columns, from_matrix
from markovblanket.solvers import Dense, Dual
from markovblanket.table import MixedTable, Name, Standardisation, coordinates, read, read_mixed, split

PRIORS = {"horseshoe": Horseshoe, "laplace": Laplace, "normal": Normal, "spike-slab": SpikeSlab}
SOLVERS = {"dual": Dual, "dense": Dense}


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
    chains: int = 4,
    warmup: int = 1000,
    draws: int = 1000,
    thin: int = 1,
    seed: int | None = None,
    n_jobs: int | None = None,
    keep: str | Path = "auto",
    named: Sequence[tuple[Any, Any]] | None = None,
    progress: bool = True,
) -> Posterior:
    """Estimate which variables are directly connected to the query variables, and how surely.

    Draws from the posterior of ``W11`` and ``W12``, the rows of the precision matrix that belong to the query
    variables (Kaufmann et al. 2016), at a cost linear in the number of variables.

    Parameters
    ----------
    table : pandas or polars frame, numpy.ndarray, or path
        A row per observation; files are csv, tsv, parquet, feather or h5ad. Columns may be continuous, binary,
        ordinal or counts, and cells may be missing.
    query : list of names
        The few variables of interest; positions for an array.
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
    chains, warmup, draws, thin : int
        Independent chains; sweeps discarded; draws kept per chain; sweeps per kept draw.
    seed : int, optional
        The numbers depend on it alone, for any ``n_jobs``.
    n_jobs : int, optional
        Chains at a time, by joblib; any of its backends.
    keep : str or path
        ``"draws"``: every draw, in memory. ``"summary"``: statistics of every edge, in memory that does not grow
        with the draws, and the draws of a few edges. A path: the same, and every draw in a zarr store in that
        folder (W12 in single precision), which is then also a saved posterior. ``"auto"``: draws if W12 has at
        most 2^28 numbers in all (two gigabytes), else a summary.
    named : list of pairs, optional
        With a summary: the edges (query, variable) whose draws are kept; by default the 200 whose sign is surest
        after warm-up.
    progress : bool
        A bar per chain, on a terminal or in a notebook.

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
    schedule, seeds = Schedule(warmup, draws, thin), np.random.SeedSequence(seed)
    parts = _named(prior, PRIORS, "prior", Prior), _named(solver, SOLVERS, "solver", Solver)
    with threadpool_limits(limits=1):  # as in the chains: the last bits must not depend on the number of cores
        given = _given(table, query, margins, kinds, scatter, n, names)
    problem = _problem(given, *parts)
    keeping = decide(keep, named, (given.query, given.rest), chains, schedule)
    declared = None if kinds is None else {str(name): _plain(kind) for name, kind in kinds.items()}
    settings = described(given, {"prior": problem.prior, "solver": problem.solver}) | {"kinds": declared}
    return sampled(problem, given, settings, schedule, keeping, chains, seeds, n_jobs, progress)


def _problem(given: Given, prior: Prior, solver: Solver) -> Problem:
    """The data with a prior that knows their size, if it asks for it."""
    if isinstance(prior, Horseshoe):
        prior = prior.for_data(len(given.query), len(given.rest), given.scatter.n)
    return Problem(given.scatter, prior, solver, given.latent)


def sampled(
    problem: Problem | Sampler[Any],
    given: Given,
    settings: dict[str, Any],
    schedule: Schedule,
    keeping: Keeping,
    chains: int,
    seeds: np.random.SeedSequence,
    n_jobs: int | None,
    progress: bool,
) -> Posterior:
    """Run the chains, name what they drew, and warn unless they agree."""
    kept = keeping.keep(schedule.draws)
    arrays = run(problem, schedule, chains=chains, seed=seeds, n_jobs=n_jobs, progress=progress, keep=kept)
    latent = arrays.pop("latent", None)
    observed = _observed(given, latent, chains, schedule)
    run_by = {"chains": chains, "seed": str(seeds.entropy), "keep": keeping.settings}
    settings = settings | asdict(schedule) | run_by
    posterior = keeping.posterior(arrays, given.query, given.rest, observed, settings)
    _warn_unless_converged(posterior)
    return posterior


@dataclass(frozen=True)
class Given:
    """The data as the model takes them, whatever door they came through."""

    scatter: Scatter
    query: tuple[Name, ...]
    rest: tuple[Name, ...]
    fingerprint: str
    table: MixedTable
    latent: Copula | None = None
    margins: str = "gaussian"


def _given(
    table: Any,
    query: Any,
    margins: str,
    kinds: Mapping[Any, Any] | None,
    scatter: npt.ArrayLike | None,
    n: int | None,
    names: Sequence[Any] | None,
) -> Given:
    """Either a table, or a scatter matrix with its number of rows."""
    if query is None:
        raise ValueError("query is missing: name the variables to ask about")
    if (table is None) == (scatter is None):
        raise ValueError("give either a table or scatter=..., n=..., and not both")
    if scatter is not None and (margins not in ("auto", "gaussian") or kinds is not None):
        raise ValueError("margins and kinds are about tables; a scatter matrix is taken as given")
    if scatter is not None:
        return from_scatter(scatter, n, query, names)
    if n is not None or names is not None:
        raise ValueError("n and names belong to scatter=...; a table brings its own")
    if margins in ("auto", "rank"):
        return from_mixed(table, query, kinds, margins)
    if margins != "gaussian":
        raise ValueError(f"margins={margins!r}: known are 'auto', 'rank' and 'gaussian'")
    if kinds is not None:
        raise ValueError("kinds belong to a copula: pass margins='auto' or 'rank'")
    return from_table(table, query)


def from_table(table: Any, query: Any) -> Given:
    """Columns standardised to mean 0 and mean square 1."""
    data = read(table, query)
    X1, X2 = (Standardisation.of(X, names).apply(X) for X, names in ((data.X1, data.query), (data.X2, data.rest)))
    return Given(from_columns(X1, X2), data.query, data.rest, _fingerprint(data.X1, data.X2), data.as_mixed())


def from_mixed(table: Any, query: Any, kinds: Mapping[Any, Any] | None, margins: str) -> Given:
    """A Gaussian copula of columns of any kind, with gaps."""
    return in_copula(read_mixed(table, query, kinds), margins)


def in_copula(data: MixedTable, margins: str) -> Given:
    """The same, of a table whose kinds are known."""
    copula = Copula.of(data.columns, len(data.query), by_rank=margins == "rank")
    latent = copula if copula.moves else None
    scatter = copula.scatter(copula.start()) if copula.moves else from_columns(copula.X1, copula.X2)
    fingerprint = _fingerprint(*(column.values for column in data.columns))
    return Given(scatter, data.query, data.rest, fingerprint, data, latent, margins)


def from_scatter(matrix: Any, n: int | None, query: Any, names: Sequence[Any] | None) -> Given:
    """A scatter matrix as given, query first; a frame brings its names."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or not 1 <= n < 2**53:
        raise ValueError(f"n={n!r}: a scatter matrix needs its number of rows, a whole number of at least 1")
    names = getattr(matrix, "columns", None) if names is None else names
    S = checked(matrix)
    labels = coordinates(range(len(S)) if names is None else names)
    if len(labels) != len(S):
        raise ValueError(f"{len(labels)} names for a scatter matrix of {len(S)} variables")
    chosen, rest = split(labels, query)
    place = {name: k for k, name in enumerate(labels)}
    order = [place[name] for name in (*chosen, *rest)]
    scatter = from_matrix(S[np.ix_(order, order)], int(n), len(chosen))
    rowless = tuple(Column(name, "continuous", np.empty(0)) for name in (*chosen, *rest))
    return Given(scatter, chosen, rest, _fingerprint(S), MixedTable(rowless, chosen, rest, labels, np.arange(0)))


def _observed(given: Given, latent: Array | None, chains: int, schedule: Schedule) -> Observed:
    """The table with the latent columns that were kept; without any where nothing moves."""
    if given.latent is None or latent is None:
        return Observed.of(given.table, given.margins, [], np.empty((chains, schedule.draws, given.table.n, 0)))
    names = [*(given.query[k] for k in given.latent.query), *(given.rest[k] for k in given.latent.rest)]
    every = schedule.latent_every(latent[0, 0].size)
    return Observed.of(given.table, given.margins, names, latent, every)


def _named(choice: Any, known: dict[str, Any], role: str, contract: type) -> Any:
    """An instance, from itself or from its name."""
    if isinstance(choice, str) and choice in known:
        return known[choice]()
    if isinstance(choice, type) or not isinstance(choice, contract):
        raise ValueError(f"{role}={choice!r}: known are {', '.join(map(repr, known))}, or pass an instance")
    return choice


def described(given: Given, parts: Mapping[str, Any]) -> dict[str, Any]:
    """All that is needed to do it again, but for the schedule and the seed."""
    by_role = {
        role: {"name": type(part).__name__, **(asdict(part) if hasattr(part, "__dataclass_fields__") else {})}
        for role, part in parts.items()
    }
    packages = ("markovblanket", "numpy", "scipy")
    versions = {"python": platform.python_version()} | {name: metadata.version(name) for name in packages}
    p, q = given.scatter.S12.shape
    data = {"n": given.scatter.n, "p": p, "q": q, "sha256": given.fingerprint}
    return {"data": data, "margins": given.margins, **by_role, "versions": versions}


def _plain(kind: Any) -> Any:
    """A declared kind as JSON knows it: a word, or levels in order."""
    return kind if isinstance(kind, str) else [str(level) for level in kind]


def _fingerprint(*arrays: Array) -> str:
    """A hash by which the same data are known again."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(str(array.shape).encode())
        digest.update(np.ascontiguousarray(array).reshape(-1).data)
    return digest.hexdigest()


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
