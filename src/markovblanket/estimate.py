"""The front door: a table and the names of its query variables in, a posterior out."""

from __future__ import annotations

import hashlib
import platform
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib import metadata
from typing import Any

import numpy as np
import numpy.typing as npt
import xarray as xr

from markovblanket.chains import Schedule, run
from markovblanket.contracts import Array, Prior, Problem, Scatter, Solver
from markovblanket.diagnosis import ConvergenceWarning
from markovblanket.posterior import Posterior, name_axes
from markovblanket.priors import Laplace, Normal
from markovblanket.scatter import from_columns, from_matrix
from markovblanket.solvers import Dense, Dual
from markovblanket.table import Name, Standardisation, coordinates, read, split

PRIORS = {"laplace": Laplace, "normal": Normal}
SOLVERS = {"dual": Dual, "dense": Dense}


def estimate(
    table: Any = None,
    query: Any = None,
    *,
    scatter: npt.ArrayLike | None = None,
    n: int | None = None,
    names: Sequence[Any] | None = None,
    prior: str | Prior = "laplace",
    margins: str = "gaussian",
    solver: str | Solver = "dual",
    chains: int = 4,
    warmup: int = 1000,
    draws: int = 1000,
    thin: int = 1,
    seed: int | None = None,
    n_jobs: int | None = None,
    progress: bool = True,
) -> Posterior:
    """Estimate which variables are directly connected to the query variables, and how surely.

    Draws from the posterior of ``W11`` and ``W12``, the rows of the precision matrix that belong to the query
    variables (Kaufmann et al. 2016), at a cost linear in the number of variables.

    Parameters
    ----------
    table : pandas or polars frame, or numpy.ndarray
        Complete and numeric, a row per observation. Columns are standardised.
    query : list of names
        The few variables of interest; positions for an array.
    scatter : array_like, optional
        Instead of a table: ``X'X``, a sum over rows, used as given.
    n : int, optional
        With ``scatter``: its number of rows.
    names : sequence, optional
        With ``scatter``: names of its variables; positions by default.
    prior : str or prior
        ``"laplace"`` (rate learned), ``"normal"``, or an instance such as ``Laplace(gamma=200)``.
    margins : str
        ``"gaussian"``: columns as they are, standardised.
    solver : str or solver
        ``"dual"``, linear in the number of variables, or ``"dense"``, the slow reference.
    chains, warmup, draws, thin : int
        Independent chains; sweeps discarded; draws kept per chain; sweeps per kept draw.
    seed : int, optional
        The numbers depend on it alone, for any ``n_jobs``.
    n_jobs : int, optional
        Chains at a time, by joblib; any of its backends.
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
    given = _given(table, query, margins, scatter, n, names)
    schedule = Schedule(warmup, draws, thin)
    problem = Problem(given.scatter, _named(prior, PRIORS, "prior"), _named(solver, SOLVERS, "solver"))
    seeds = np.random.SeedSequence(seed)
    arrays = run(problem, schedule, chains=chains, seed=seeds, n_jobs=n_jobs, progress=progress)
    settings = _settings(given, problem, schedule) | {"chains": chains, "seed": str(seeds.entropy)}
    posterior = Posterior(*name_axes(arrays, given.query, given.rest), given.fixed, settings)
    _warn_unless_converged(posterior)
    return posterior


@dataclass(frozen=True)
class Given:
    """The data as the model takes them, whatever door they came through."""

    scatter: Scatter
    query: tuple[Name, ...]
    rest: tuple[Name, ...]
    fixed: xr.Dataset
    fingerprint: str


def _given(
    table: Any,
    query: Any,
    margins: str,
    scatter: npt.ArrayLike | None,
    n: int | None,
    names: Sequence[Any] | None,
) -> Given:
    """Either a table, or a scatter matrix with its number of rows."""
    if query is None:
        raise ValueError("query is missing: name the variables to ask about")
    if (table is None) == (scatter is None):
        raise ValueError("give either a table or scatter=..., n=..., and not both")
    if scatter is not None:
        return from_scatter(np.asarray(scatter, dtype=float), n, query, names)
    if n is not None or names is not None:
        raise ValueError("n and names belong to scatter=...; a table brings its own")
    if margins != "gaussian":
        raise ValueError(f"margins={margins!r}: only 'gaussian' is available")
    return from_table(table, query)


def from_table(table: Any, query: Any) -> Given:
    """Columns standardised to mean 0 and mean square 1."""
    data = read(table, query)
    whole = {
        "query": Standardisation.of(data.X1, data.query),
        "variable": Standardisation.of(data.X2, data.rest),
    }
    scatter = from_columns(whole["query"].apply(data.X1), whole["variable"].apply(data.X2))
    fixed = xr.Dataset(
        {
            "query_mean": ("query", whole["query"].mean),
            "query_sd": ("query", whole["query"].sd),
            "mean": ("variable", whole["variable"].mean),
            "sd": ("variable", whole["variable"].sd),
        },
        coords={"query": list(data.query), "variable": list(data.rest)},
    )
    return Given(scatter, data.query, data.rest, fixed, _fingerprint(data.X1, data.X2))


def from_scatter(S: Array, n: int | None, query: Any, names: Sequence[Any] | None) -> Given:
    """A scatter matrix as given, query first."""
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n={n!r}: a scatter matrix needs its number of rows, a whole number of at least 1")
    if S.ndim != 2 or S.shape[0] != S.shape[1]:
        raise ValueError(f"a scatter matrix is square; got shape {S.shape}")
    labels = coordinates(range(len(S)) if names is None else names)
    if len(labels) != len(S):
        raise ValueError(f"{len(labels)} names for a scatter matrix of {len(S)} variables")
    chosen, rest = split(labels, query)
    order = [labels.index(name) for name in (*chosen, *rest)]
    scatter = from_matrix(S[np.ix_(order, order)], int(n), len(chosen))
    return Given(scatter, chosen, rest, xr.Dataset(), _fingerprint(S))


def _named(choice: Any, known: dict[str, Any], role: str) -> Any:
    """An instance, from itself or from its name."""
    if not isinstance(choice, str):
        return choice
    if choice not in known:
        raise ValueError(f"{role}={choice!r}: known are {', '.join(map(repr, known))}, or pass an instance")
    return known[choice]()


def _settings(given: Given, problem: Problem, schedule: Schedule) -> dict[str, Any]:
    """All that is needed to do it again."""
    parts: dict[str, Any] = {"prior": problem.prior, "solver": problem.solver}
    described = {role: {"name": type(part).__name__, **asdict(part)} for role, part in parts.items()}
    packages = ("markovblanket", "numpy", "scipy")
    versions = {"python": platform.python_version()} | {name: metadata.version(name) for name in packages}
    data = {"n": given.scatter.n, "p": problem.p, "q": problem.q, "sha256": given.fingerprint}
    return {"data": data, **described, **asdict(schedule), "versions": versions}


def _fingerprint(*arrays: Array) -> str:
    """A hash by which the same data are known again."""
    digest = hashlib.sha256()
    for array in arrays:
        digest.update(str(array.shape).encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def _warn_unless_converged(posterior: Posterior) -> None:
    """Say loudly what is wrong with the chains."""
    problems = posterior.diagnostics().problems
    if problems:
        more = f"; and {len(problems) - 3} more" if len(problems) > 3 else ""
        warnings.warn(
            f"not converged: {'; '.join(problems[:3])}{more}. Ask for more warmup and draws",
            ConvergenceWarning,
            stacklevel=3,
        )
