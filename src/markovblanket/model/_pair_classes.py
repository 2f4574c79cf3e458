"""Inclusion probability and slab of each class of pairs of the widened block: with a query variable, and without.

Variables of the block have propensities, too, which belong to no class (:mod:`markovblanket.model._propensities`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from markovblanket.contracts import Array, ChainState, Hyper, SparsePrior
from markovblanket.model import _block_columns
from markovblanket.model._block_columns import Counts
from markovblanket.model._column_regression import WITH_QUERY, WITHOUT_QUERY
from markovblanket.model._propensities import BetaLaw, draw_rate, draw_rates, edges_of

# Names of the hyperparameters of each class of pairs.
HYPER_NAMES = {WITH_QUERY: ("inclusion", "slab"), WITHOUT_QUERY: ("inclusion_others", "slab_others")}
# How many times a sweep draws the propensities of the variables: it costs little, and the causes of edges change
# slowly.
PROPENSITY_DRAWS = 12


@dataclass(frozen=True, slots=True)
class PairClasses:
    """The prior of all pairs: p query variables among the ``block`` of a table of so many ``variables``."""

    prior: SparsePrior
    p: int
    block: int
    variables: int

    @property
    def classes(self) -> tuple[int, ...]:
        """The classes of pairs that exist: without candidates, every pair has a query variable."""
        return (WITH_QUERY, WITHOUT_QUERY) if self.block > self.p else (WITH_QUERY,)

    def start(self, rng: np.random.Generator) -> Hyper:
        """Draw over-dispersed hyperparameters for the start of a chain."""
        return self.named({of: self.prior.start_hyper(rng, self.variables) for of in self.classes})

    def start_propensities(self, rng: np.random.Generator) -> Array:
        """Draw the propensities, 1 x P, from their prior; none if the inclusion probability is given."""
        if self.prior.inclusion is not None:
            return np.empty((0, 0))
        law = BetaLaw(*self.prior.propensity_law(self.variables))
        return np.array([[draw_rate(rng, law, 0.0, 0.0) for _ in range(self.block)]])

    def draw(
        self, rng: np.random.Generator, state: ChainState, inside: Array, outside: Array
    ) -> tuple[Hyper, Array]:
        """Draw the hyperparameters of each class, and the propensities, given all entries.

        ``inside`` and ``outside`` are the relative precisions of the variables in the block and outside.
        """
        counts = _block_columns.count_pairs(state.W11, state.W12, self.p, inside, outside)
        inclusion, propensities = self._draw_inclusion(rng, state, counts)
        slab = [self.prior.draw_slab(rng, counts.edges[of], counts.squares[of]) for of in self.classes]
        return self.named({of: (float(inclusion[of]), slab[of]) for of in self.classes}), propensities

    def _draw_inclusion(self, rng: np.random.Generator, state: ChainState, counts: Counts) -> tuple[Array, Array]:
        """Draw the inclusion probability of each class and the propensities, given the edges."""
        (inclusion, _), propensities = self.values(state.hyper), state.T.copy()
        if self.prior.inclusion is None:
            laws = self.prior.inclusion_law(self.variables), self.prior.propensity_law(self.variables)
            of_class, of_variable = (BetaLaw(*law) for law in laws)
            edges, rates = edges_of(state.W11, self.p), (inclusion[: len(self.classes)], propensities[0])
            draw_rates(rng, edges, counts, *rates, (of_class, of_variable), PROPENSITY_DRAWS)
        return inclusion, propensities

    def named(self, laws: dict[int, tuple[float, float]]) -> Hyper:
        """Return those inclusion probabilities and slabs of each class that are learned, by name."""
        given = self.prior.inclusion, self.prior.slab
        return {
            name: value
            for of, law in laws.items()
            for name, value, fixed in zip(HYPER_NAMES[of], law, given, strict=True)
            if fixed is None
        }

    def values(self, hyper: Hyper) -> tuple[Array, Array]:
        """Return inclusion probability and slab by class, given or learned; those of the query twice if alone."""
        laws = []
        for of in (WITH_QUERY, WITHOUT_QUERY):
            inclusion, slab = HYPER_NAMES[of if of in self.classes else WITH_QUERY]
            laws.append((self.prior.inclusion or hyper[inclusion], self.prior.slab or hyper[slab]))
        inclusions, slabs = np.array(laws).T
        return np.ascontiguousarray(inclusions), np.ascontiguousarray(slabs)

    def along_row(self, i: int, of_class: Array) -> Array:
        """Return the values of the class of each entry of row i of ``(W11, W12)``."""
        query = (np.arange(self.variables) < self.p) | (i < self.p)
        return np.where(query, of_class[WITH_QUERY], of_class[WITHOUT_QUERY])
