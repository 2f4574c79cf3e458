"""Which variables join the query in the widened block: as many as were asked for, chosen by a scouting stage.

A small table is in the block as a whole, and nothing is scouted. Otherwise every chain begins with sweeps of the
paper's block, which sees an edge from the query's end alone and costs little; the variables that are a neighbour
of some query variable there with probability 0.05 or more, the likeliest also with less, become candidates, and
with them their near-duplicates, the same in all chains and for good.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from markovblanket.chains.run import SCOUTING, Scouting
from markovblanket.chains.snapshots import Saver
from markovblanket.chains.stores import Chain
from markovblanket.chains.streaming import Moments
from markovblanket.contracts import Array, Indices, Problem, Sampler, SparsePrior
from markovblanket.model.network_sweep import WidenedBlanket
from markovblanket.model.sweep import Blanket

AUTO = "auto"
# The block has at most so many variables: a smaller table is in it as a whole, and in a larger one candidates are
# scouted. The cost of a sweep grows with the third power of that.
LARGEST_BLOCK = 150
# Candidates are a neighbour of some query variable with at least this probability while scouting; if they are few,
# with at least the smaller one.
LEAST_INCLUSION, LEAST_OF_FEW, FEW = 0.05, 0.005, 30
# Variables that correlate with a candidate by at least this, in either direction, become candidates, too.
LEAST_CORRELATION = 0.9
# Sweeps of scouting, if the warm-up is not shorter.
SCOUTING_SWEEPS = 500
LEAST_SCOUTING_SWEEPS = 20
# Iterations discarded by default.
QUICK_WARMUP, WARMUP = 300, 1000
# A whole network of more variables takes too long.
LARGEST_NETWORK = 500


@dataclass(frozen=True)
class Candidates:
    """The candidates that were asked for: ``"auto"``, or the largest number of them; 0 for the paper's block."""

    asked: str | int = AUTO

    def __post_init__(self) -> None:
        """Refuse what is neither a number nor ``"auto"``."""
        whole = isinstance(self.asked, int | np.integer) and not isinstance(self.asked, bool)
        if self.asked != AUTO and not (whole and int(self.asked) >= 0):
            raise ValueError(f"candidates={self.asked!r}: must be a whole number, at least 0, or {AUTO!r}")

    def sampler(self, problem: Problem, warmup: int) -> Sampler[Any] | Scouting:
        """Return what the chains run: the paper's block, or the widened one, perhaps after a scouting stage."""
        self.require(problem)
        if not isinstance(problem.prior, SparsePrior) or (self.asked == 0 and problem.q):
            return Blanket(problem)
        if self._most(problem) >= problem.q:
            return WidenedBlanket.of(problem, np.arange(problem.q))
        sweeps = min(SCOUTING_SWEEPS, max(warmup, LEAST_SCOUTING_SWEEPS))
        return Scouting(
            sampler=Blanket(problem),
            sweeps=sweeps,
            choose=lambda moments: self._chosen(moments, problem),
            widen=lambda chosen: WidenedBlanket.of(problem, chosen),
        )

    def _chosen(self, moments: Moments, problem: Problem) -> Indices:
        """Return the positions of the likely neighbours and of their near-duplicates."""
        most = self._most(problem)
        return with_duplicates(likeliest(moments, most), problem.scatter.F, most)

    def warmup(self, problem: Problem) -> int:
        """Return how many iterations to discard if nobody says: few where the widened block mixes quickly."""
        quick = (
            isinstance(problem.prior, SparsePrior)
            and (self.asked != 0 or not problem.q)
            and problem.latent is None
        )
        return QUICK_WARMUP if quick else WARMUP

    def _most(self, problem: Problem) -> int:
        """The largest number of candidates."""
        return max(LARGEST_BLOCK - problem.p, 0) if isinstance(self.asked, str) else int(self.asked)

    def require(self, problem: Problem) -> None:
        """Refuse candidates or a network under a prior without exact zeros, and too small or large a network."""
        sparse = isinstance(problem.prior, SparsePrior)
        if problem.p + problem.q < 2:
            raise ValueError("there is only one variable: a network needs at least two")
        if not sparse and self.asked not in (0, AUTO):
            raise ValueError(
                f"candidates={self.asked}: only the prior 'spike-slab', which has exact zeros, takes any"
            )
        if not problem.q and not sparse:
            raise ValueError(
                "every column is a query column, and only the prior 'spike-slab' estimates a whole network: "
                "choose that, or fewer query columns"
            )
        if not problem.q and problem.p > LARGEST_NETWORK:
            raise ValueError(
                f"a network of {problem.p:,} variables: at most {LARGEST_NETWORK} are possible. "
                "markovblanket.scan estimates the neighbours of each of thousands of variables"
            )


def likeliest(moments: Moments, most: int) -> Indices:
    """Return the positions of the variables that are likely neighbours of any query variable, at most ``most``.

    >>> W = np.array([[0.0, 0.4, -0.1]])
    >>> moments = Moments.empty(W.shape)
    >>> moments.add(W)
    >>> likeliest(moments, 2), likeliest(moments, 1)
    (array([1, 2]), array([1]))
    """
    inclusion = ((moments.positive + moments.negative) / moments.seen).max(axis=0)
    order = np.argsort(-inclusion, kind="stable")[:most]
    least = np.where(np.arange(len(order)) < FEW, LEAST_OF_FEW, LEAST_INCLUSION)
    return np.sort(order[inclusion[order] >= least])


def with_duplicates(chosen: Indices, F: Array, most: int) -> Indices:
    """Return the chosen positions and those of variables that nearly duplicate one of them, at most ``most``.

    An edge moves less easily between two variables if one is in the block and the other is not. ``F`` is a factor
    of the scatter, a column per variable; the closest duplicates come first.

    >>> with_duplicates(np.array([0]), np.array([[1.0, 0.0, 0.99], [0.0, 1.0, 0.1]]), 2)
    array([0, 2])
    """
    if not len(chosen):
        return chosen
    sizes = np.sqrt(np.einsum("kj,kj->j", F, F))
    unit = F[:, chosen] / sizes[chosen]
    closest = np.abs(unit.T @ F).max(axis=0) / np.where(sizes > 0, sizes, np.inf)
    closest[chosen] = 0.0
    order = np.argsort(-closest, kind="stable")[: max(most - len(chosen), 0)]
    return np.sort(np.concatenate([chosen, order[closest[order] >= LEAST_CORRELATION]]))


def scouted(scouting: Scouting, saver: Saver, chains: int) -> Indices | None:
    """Return the candidates that the snapshots of a run have chosen; None if scouting is not done there."""
    records = [saver.read(chain, SCOUTING) for chain in range(chains)]
    done = [Chain.unpack(record) for record in records if record is not None]
    if len(done) < chains or any(chain.count < scouting.sweeps or chain.moments is None for chain in done):
        return None
    return scouting.choose(Moments.pooled([chain.moments for chain in done if chain.moments is not None]))
