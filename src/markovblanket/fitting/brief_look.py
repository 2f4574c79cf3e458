"""The second look that a fit takes by itself, where that is quick: long enough for a probability, no more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import joblib
import numpy as np
import pandas as pd

from markovblanket._determinism import one_thread
from markovblanket.chains.interruption import between_sweeps
from markovblanket.chains.processes import all_done, shipped
from markovblanket.chains.run import Schedule
from markovblanket.contracts import Array
from markovblanket.fitting.second_look import candidates, prior_of
from markovblanket.model import lone
from markovblanket.posterior.posterior import Posterior
from markovblanket.priors import SpikeSlab
from markovblanket.tables.names import Name

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
    if posterior.settings["prior"]["name"] != "SpikeSlab":
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
