"""Compiled draws of who is responsible for the edges of a widened block: a class of pairs, or one of their ends.

Every variable i of the block has a propensity ``theta_i`` to have neighbours. A pair is an edge unless its class
of pairs and both of its variables decline::

    P(i - k is an edge)  =  1 - (1 - pi_class)(1 - theta_i)(1 - theta_k)

so that hubs, variables with many neighbours, are learned. A pair with a variable outside the block has its class
alone: there, variables are many, and a variable with few rows could be explained by hundreds of them. Given which
of its causes are responsible for each edge, ``pi`` and ``theta`` have beta distributions: a pair without an edge
was declined by all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from markovblanket.contracts import Array, Indices
from markovblanket.model._block_columns import Counts
from markovblanket.model._column_regression import class_of
from markovblanket.priors.spike_slab import LARGEST_INCLUSION


class Edges(NamedTuple):
    """The edges within the block: both ends, and the class of their pair."""

    first: Indices
    second: Indices
    kind: Indices


class BetaLaw(NamedTuple):
    """Parameters of a beta distribution, like edges and gaps that were seen before."""

    edges: float
    gaps: float


@njit(cache=True, nogil=True)
def edges_of(W11: Array, p: int) -> Edges:
    """Return the edges within the block; the first p variables are the query."""
    P, edges = len(W11), 0
    for i in range(P):
        for k in range(i):
            edges += W11[i, k] != 0.0
    found = Edges(np.empty(edges, np.intp), np.empty(edges, np.intp), np.empty(edges, np.intp))
    edges = 0
    for i in range(P):
        for k in range(i):
            if W11[i, k] != 0.0:
                found.first[edges], found.second[edges], found.kind[edges] = i, k, class_of(i, k, p)
                edges += 1
    return found


@njit(cache=True, nogil=True)
def draw_causes(
    rng: np.random.Generator, edges: Edges, inclusion: Array, propensity: Array
) -> tuple[Array, Array]:
    """Draw the causes of every edge, at least one of three; count them by class of pairs and by variable."""
    by_class, by_variable = np.zeros(len(inclusion)), np.zeros(len(propensity))
    for e in range(len(edges.first)):
        i, k, kind = edges.first[e], edges.second[e], edges.kind[e]
        of_class, of_first, of_second = inclusion[kind], propensity[i], propensity[k]
        of_ends = of_first + of_second - of_first * of_second
        explained = rng.random() * (of_class + of_ends - of_class * of_ends) < of_class
        # Once a cause is there, all further ones are as likely as they are without the edge.
        first = rng.random() < (of_first if explained else of_first / of_ends)
        by_class[kind] += explained
        by_variable[i] += first
        by_variable[k] += rng.random() < of_second if explained or first else True
    return by_class, by_variable


@njit(cache=True, nogil=True)
def draw_rates(
    rng: np.random.Generator,
    edges: Edges,
    counts: Counts,
    inclusion: Array,
    propensity: Array,
    laws: tuple[BetaLaw, BetaLaw],
    rounds: int,
) -> None:
    """Draw the causes of all edges, then ``inclusion`` and ``propensity`` in place, so many times in turn.

    ``laws`` are the priors of both.
    """
    of_class, of_variable = laws
    for _ in range(rounds):
        by_class, by_variable = draw_causes(rng, edges, inclusion, propensity)
        for kind in range(len(inclusion)):
            made = by_class[kind] + counts.outside[kind]
            inclusion[kind] = draw_rate(rng, of_class, made, counts.pairs[kind])
        for i in range(len(propensity)):
            propensity[i] = draw_rate(rng, of_variable, by_variable[i], len(propensity) - 1.0)


@njit(cache=True, nogil=True)
def draw_rate(rng: np.random.Generator, law: BetaLaw, edges: float, pairs: float) -> float:
    """Draw a rate given how many of its ``pairs`` it has made ``edges``."""
    return min(rng.beta(law.edges + edges, law.gaps + pairs - edges), LARGEST_INCLUSION)
