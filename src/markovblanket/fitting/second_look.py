"""Edges seen from both ends: variables that may be neighbours of the query become the query themselves.

The blanket's model sees an edge from the query's end alone; a model of the whole network also sees it from the
other. For a few candidates that second look costs a small run each, not the network.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import joblib
import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy.special import expit, logit

from markovblanket._determinism import checked_seed, one_thread
from markovblanket.chains.processes import all_done, between_sweeps, shipped
from markovblanket.chains.run import Schedule, require_count, run
from markovblanket.chains.snapshots import Record
from markovblanket.chains.stores import Chain, KeepDraws, MemoryStore
from markovblanket.contracts import Array, Draw, Problem
from markovblanket.fitting.data import from_mixed_table
from markovblanket.model import lone
from markovblanket.posterior import edges
from markovblanket.posterior.diagnostics import MAX_RHAT, ConvergenceWarning
from markovblanket.posterior.observed import edge_name
from markovblanket.posterior.posterior import Posterior
from markovblanket.posterior.selection import DEFAULT_LEVEL
from markovblanket.posterior.summaries import convergence, take
from markovblanket.priors import SpikeSlab
from markovblanket.solvers import Dual
from markovblanket.tables.names import Name
from markovblanket.tables.table import MixedTable, about


def second_look(
    posterior: Posterior,
    *,
    least: float = 0.05,
    chains: int = 2,
    warmup: int = 500,
    draws: int = 1000,
    thin: int = 1,
    seed: int | None = None,
    n_jobs: int | None = None,
) -> pd.DataFrame:
    """Look at the likely edges from their other ends, too, and put both looks together.

    Each candidate, a variable that may be a neighbour of some query variable, becomes the only query variable of a
    run of its own, on the posterior's own table, in which all others are the rest. With ``prior`` the probability
    of an edge that the posterior learned, which these runs take as given::

        logit(inclusion_both) = logit(inclusion) + logit(inclusion_other) - logit(prior)

    that is, the prior odds times the Bayes factors of both ends.

    Parameters
    ----------
    posterior : Posterior
        Of a table, with a spike-and-slab prior; also one that was loaded.
    least : float
        Candidates are neighbours of some query variable with at least this probability.
    chains, warmup, draws, thin : int
        Of each candidate's run.
    seed : int, optional
        The numbers depend on it alone, for any ``n_jobs``.
    n_jobs : int, optional
        Candidates at a time, by joblib; any of its backends.

    Returns
    -------
    pandas.DataFrame
        A row per pair of a query variable and a candidate, likeliest first: query, variable; the mean ``weight``
        from the query's end and ``weight_other`` from the candidate's; ``inclusion``, ``inclusion_other`` and
        ``inclusion_both``; ``rhat_other`` of the candidate's chains, missing where it never included the edge.
        Other pairs were not looked at again; for them ``posterior.inclusion`` stands.

    Warns
    -----
    ConvergenceWarning
        If the chains of candidates disagree about edges that are likelier there than not.

    Notes
    -----
    The two looks are at the same rows, and the product of their evidence is a pseudo-likelihood, not the
    likelihood of a model: ``inclusion_both`` finds more edges and ranks them, but on simulated networks two to
    three times as many of those above 1/2 were false as it promised. Above 0.9 about as many were false as from
    one end above 1/2; and the larger of ``inclusion`` and ``inclusion_other`` roughly kept its promise. Figures
    are on the page on more questions to ask. A share of N draws that is 0 or 1 counts as half a draw away from it.

    References
    ----------
    Besag, J. (1975). Statistical analysis of non-lattice data. The Statistician 24, 179-195. (Pseudo-likelihood.)

    Examples
    --------
    >>> import markovblanket as mb
    >>> clinic = mb.simulate(rows=200, query=1, rest=5, density=0.4, seed=0)
    >>> posterior = mb.estimate(clinic.table, clinic.query, warmup=200, draws=500, seed=1)
    >>> looked = mb.second_look(posterior, least=0.3, warmup=100, draws=500, seed=1)
    >>> sorted(looked["variable"][looked["inclusion_both"] > 0.5]), clinic.blanket
    (['V3', 'V4'], {'Q1': ['V3', 'V4']})
    """
    require_count("chains", chains, 1)
    look, names = Look.of(posterior, Schedule(warmup, draws, thin), chains), candidates(posterior, least)
    weights = look.all_weights(np.random.SeedSequence(checked_seed(seed)), names, n_jobs)
    table = from_both_ends(posterior, names, weights, look.inclusion)
    warn_unless_converged(table)
    return table


def candidates(posterior: Posterior, least: float) -> list[Name]:
    """Variables that are a neighbour of some query variable with at least this probability; none without zeros."""
    if not 0 < least < 1:
        raise ValueError(f"least={least!r}: a probability of inclusion lies between 0 and 1")
    likely = (posterior.inclusion.to_numpy() >= least).any(axis=0)
    return take(posterior.variables, np.flatnonzero(likely))


def prior_of(posterior: Posterior) -> SpikeSlab:
    """The prior, with the probability of an edge that was learned; refused where there can be no second look."""
    posterior.observed.require_rows("a second look")
    if not posterior.settings["prior"]["exact_zeros"]:
        raise ValueError('a second look needs probabilities of inclusion: estimate with prior="spike-slab"')
    asked = posterior.settings["prior"]["options"]
    inclusion = asked["inclusion"] or float(posterior.draws["inclusion"].mean())
    return SpikeSlab(**{**asked, "inclusion": inclusion})


# A look ------------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Look:
    """What every candidate's run has in common."""

    table: MixedTable
    margins: str
    prior: SpikeSlab
    schedule: Schedule
    chains: int

    @classmethod
    def of(cls, posterior: Posterior, schedule: Schedule, chains: int) -> Look:
        """On the posterior's table, with the probability of an edge that it learned."""
        observed, prior = posterior.observed, prior_of(posterior)
        return cls(observed.table, observed.margins, prior, schedule, chains)

    @property
    def inclusion(self) -> float:
        """Its prior probability of an edge."""
        assert self.prior.inclusion is not None
        return self.prior.inclusion

    def all_weights(self, seeds: np.random.SeedSequence, names: Sequence[Name], n_jobs: int | None) -> Array:
        """Of all candidates: (candidate, chain, draw, query)."""
        asked = list(zip(seeds.spawn(len(names)), names, strict=True))
        with shipped(self):
            seen = all_done(lambda: [joblib.delayed(Look.weights)(self, *one) for one in asked], n_jobs)
        return np.array(seen).reshape(len(names), self.chains, self.schedule.draws, len(self.table.query))

    def weights(self, seed: np.random.SeedSequence, name: Name) -> Array:
        """Draws of the weights of a candidate's edges with the posterior's query: (chain, draw, query)."""
        table = about(self.table, name)
        place = {other: k for k, other in enumerate(table.rest)}
        keep = KeepEntries(self.schedule.draws, np.array([place[other] for other in self.table.query]))
        with one_thread:  # as in the chains: the last bits must not depend on the number of cores
            problem = self.problem(table)
        return run(problem, self.schedule, chains=self.chains, seed=seed, keep=keep)["weight"]

    def problem(self, table: MixedTable) -> Problem:
        """The columns enter as they did before."""
        data = from_mixed_table(table, self.margins)
        return Problem(data.scatter, self.prior, Dual(), data.latent)


@dataclass
class EntryStore(MemoryStore):
    """Some entries of the only row of ``W12``, and nothing else."""

    columns: npt.NDArray[np.intp]

    def append(self, draw: Draw) -> None:
        """Take the chosen entries of the next draw."""
        self.take({"weight": draw.W12[0, self.columns]}, None)


@dataclass(frozen=True, eq=False)
class KeepEntries:
    """The same of all chains."""

    draws: int
    columns: npt.NDArray[np.intp]
    watches: bool = field(default=False, init=False)

    def stores(self, chains: Sequence[Chain]) -> list[EntryStore]:
        """A store of the chosen entries for each chain."""
        return [EntryStore(self.draws, self.columns) for _ in chains]

    def gather(self, records: list[Record]) -> Record:
        """Chains along the first axis."""
        return KeepDraws(self.draws).gather(records)


# Both looks together -------------------------------------------------------------------------------------


def from_both_ends(posterior: Posterior, names: Sequence[Name], weights: Array, prior: float) -> pd.DataFrame:
    """A row per query variable and candidate, from what candidates saw: (candidate, chain, draw, query)."""
    k, i = np.indices((len(names), len(posterior.query))).reshape(2, -1)
    place = {name: j for j, name in enumerate(posterior.variables)}
    j = np.array([place[name] for name in names], dtype=np.intp)[k]
    first = edges.edge_statistics(posterior.draws, posterior.streams).table(i, j, DEFAULT_LEVEL)
    one, other = posterior.inclusion.to_numpy()[i, j], (weights != 0).mean(axis=(1, 2))[k, i]
    sizes = (
        posterior.draws.sizes["chain"] * posterior.draws.sizes["draw"],
        weights[0, ..., 0].size if len(k) else 1,
    )
    columns = {
        "query": take(posterior.query, i),
        "variable": take(names, k),
        "weight": first["weight"],
        "weight_other": weights.mean(axis=(1, 2))[k, i],
        "inclusion": one,
        "inclusion_other": other,
        "inclusion_both": combined((one, other), sizes, prior),
        "rhat_other": convergence({(a, b): weights[a, :, :, b] for a, b in zip(k, i, strict=True)})[
            "rhat"
        ].to_numpy(),
    }
    return pd.DataFrame(columns).sort_values("inclusion_both", ascending=False, kind="stable", ignore_index=True)


def combined(shares: Sequence[Array], draws: Sequence[int], prior: float) -> Array:
    """Prior odds times the Bayes factor of each end, as a probability; each share is one of so many draws.

    Examples
    --------
    >>> combined(([0.5, 0.0], [0.9, 0.5]), (100, 100), 0.1).round(3)
    array([0.988, 0.043])
    """
    log_odds = [logit(np.clip(share, 0.5 / n, 1 - 0.5 / n)) for share, n in zip(shares, draws, strict=True)]
    return np.asarray(expit(sum(log_odds) - (len(log_odds) - 1) * logit(prior)))


def warn_unless_converged(table: pd.DataFrame) -> None:
    """Say loudly where the chains of candidates disagree about edges that are likelier there than not."""
    likely = table[(table["inclusion_both"] >= 0.5) & (table["rhat_other"] > MAX_RHAT)]
    if len(likely):
        worst = likely.loc[likely["rhat_other"].idxmax()]
        edge = edge_name(worst["query"], worst["variable"])
        warnings.warn(
            f"not converged: R-hat of {len(likely)} edge(s) seen from their other ends is above {MAX_RHAT}, "
            f"{worst['rhat_other']:.3f} at {edge}. Ask for more warmup and draws",
            ConvergenceWarning,
            stacklevel=3,
        )


# Candidates, multiplications at most.
LEAST = 0.05
MOST_WORK = 1e10
# Looks, and the sweeps of each: few and longer ones if nothing moves, else more tables, since one table alone is
# surer of an edge than all are together.
STILL = 2, Schedule(warmup=150, draws=350)
MOVING = 8, Schedule(warmup=75, draws=50)
# Sweeps between two moments at which Ctrl-C is heard.
TOGETHER = 25


def other_ends(
    posterior: Posterior, wish: bool | str, seeds: np.random.SeedSequence, n_jobs: int | None
) -> tuple[pd.DataFrame | None, str]:
    """The likely edges' probabilities from their other ends, query by variable, if that is wished; and why (not).

    ``"auto"``: where it can be had in about the time of the fit itself, by the number of multiplications.
    """
    names = candidates(posterior, LEAST) if wish else []
    if wish == "auto" and (reason := obstacle(posterior, names)):
        return None, reason
    if not wish:
        return None, "not asked for"
    other = pd.DataFrame(np.nan, index=posterior.query, columns=posterior.variables)
    prior_of(posterior)  # refuses what has none
    if not names:
        return other, "at none: no edge is likely"
    look, place = BriefLook.of(posterior), {name: j for j, name in enumerate(posterior.variables)}
    asked = list(zip(seeds.spawn(len(names)), map(place.__getitem__, names), strict=True))
    with shipped(look):
        shares = all_done(lambda: [joblib.delayed(BriefLook.shares)(look, *one) for one in asked], n_jobs)
    other[names] = np.array(shares).reshape(len(names), len(other)).T
    return other, f"at {len(names)} variables"


def obstacle(posterior: Posterior, names: Sequence[Name]) -> str | None:
    """What speaks against a second look that nobody has insisted on."""
    if not posterior.settings["prior"]["exact_zeros"]:
        return "the prior has no exact zeros"
    if not posterior.observed.table.n:
        return "a scatter matrix has no rows"
    q, (looks, schedule) = len(posterior.variables), STILL  # the others have as many sweeps
    work = len(names) * looks * schedule.sweeps * q * min(q, posterior.observed.table.n)
    return f"at {len(names)} variables it would take long" if work > MOST_WORK else None


@dataclass(frozen=True, eq=False)
class BriefLook:
    """The same with cells that are latent or missing as some draws have them: factors of tables, to average over.

    To draw them anew for every candidate would take most of the time, and they are those of the first look. A
    factor has a row per variable, those of the first look's query first.
    """

    factors: tuple[Array, ...]
    n: int
    p: int
    prior: SpikeSlab
    schedule: Schedule

    @classmethod
    def of(cls, posterior: Posterior) -> BriefLook:
        """Tables from draws far apart; one table, looked at as often, if nothing moves."""
        prior, observed, asked = prior_of(posterior), posterior.observed, posterior.settings
        looks, brief = MOVING if observed.moving else STILL
        schedule = Schedule(min(brief.warmup, asked["warmup"]), min(brief.draws, asked["draws"]))
        samples = observed.samples(looks) if observed.moving else []
        completed = [observed.columns_at(sample) for sample in samples] or [observed.start]
        factors = [factor(np.hstack([one.X1, one.X2])) for one in completed]
        return cls(tuple(factors * (looks // len(factors))), observed.table.n, observed.p, prior, schedule)

    def shares(self, seed: np.random.SeedSequence, j: int) -> Array:
        """How often variable j of the rest, as the query, has an edge with each of those that were."""
        generators = [np.random.default_rng(child) for child in seed.spawn(len(self.factors))]
        with one_thread, between_sweeps() as act_on_signals:  # as in the chains
            pairs = zip(generators, self.factors, strict=True)
            return np.asarray(np.mean([self.share(rng, one, j, act_on_signals) for rng, one in pairs], axis=0))

    def share(self, rng: np.random.Generator, factor: Array, j: int, act_on_signals: Callable[[], None]) -> Array:
        """The same with one of the tables."""
        alone, counts = lone.one_of(factor, self.p + j, self.n), np.zeros(self.p)
        W21, x, v = lone.start(rng, alone, self.prior)
        for sweeps, there in ((self.schedule.warmup, np.empty(0)), (self.schedule.draws, counts)):
            for first in range(0, sweeps, TOGETHER):
                size = min(TOGETHER, sweeps - first)
                x, v = lone.run(rng, W21, x, v, alone, self.prior, size, there)
                act_on_signals()
        return counts / self.schedule.draws


def factor(X: Array) -> Array:
    """``L`` with ``L L' = X'X``, a row per column of X, and no more columns than X has rows or columns."""
    root = np.asarray(np.linalg.qr(X, mode="r")) if len(X) > X.shape[1] else X
    return np.ascontiguousarray(root.T)
