"""Causes of edges: listed for the right pairs, and drawn from their exact joint law, by enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from markovblanket.model._block_columns import WITH_QUERY, WITHOUT_QUERY
from markovblanket.model._propensities import Edges, draw_causes, edges_of
from statistical.reference import Array, Generator

ALARM = 1e-7  # per comparison
DRAWS = 20_000
# Whether the class, the first and the second end are responsible: all ways in which an edge can be there.
WAYS = [way for way in product([0, 1], repeat=3) if any(way)]
INCLUSION, PROPENSITY = np.array([0.3, 0.6]), np.array([0.2, 0.05, 0.5, 0.7])


def edges(*pairs: tuple[int, int, int]) -> Edges:
    """Edges from triples: both ends and the class."""
    return Edges(*np.array(pairs, dtype=np.intp).reshape(-1, 3).T.copy())


def chances(inclusion: Array, propensity: Array, pair: tuple[int, int, int]) -> Array:
    """The probability of each way, conditional on an edge, from three independent causes."""
    i, k, kind = pair
    alone = np.array([inclusion[kind], propensity[i], propensity[k]])
    joint = np.array([np.prod(np.where(way, alone, 1 - alone)) for way in WAYS])
    return joint / joint.sum()


def ways_drawn(rng: Generator, draw, pair: tuple[int, int, int]) -> Array:
    """How often each way is drawn."""
    i, k, kind = pair
    counts = dict.fromkeys(WAYS, 0)
    for _ in range(DRAWS):
        by_class, by_variable = draw(rng, edges(pair), INCLUSION, PROPENSITY)
        counts[int(by_class[kind]), int(by_variable[i]), int(by_variable[k])] += 1
    return np.array(list(counts.values()))


def p_value(draw, pair: tuple[int, int, int]) -> float:
    """Pearson's test of the ways drawn against their exact law."""
    counts = ways_drawn(np.random.default_rng([1, *pair]), draw, pair)
    return float(stats.chisquare(counts, DRAWS * chances(INCLUSION, PROPENSITY, pair)).pvalue)


@pytest.mark.parametrize("p", [1, 3, 6])
def test_edges_are_the_nonzero_pairs_with_their_classes(p):
    rng = np.random.default_rng(p)
    W11 = np.triu(rng.standard_normal((6, 6)) * (rng.random((6, 6)) < 0.5), 1)
    W11 = W11 + W11.T + np.diag(rng.exponential(1.0, 6))
    found = {(int(i), int(k)): int(kind) for i, k, kind in zip(*edges_of(W11, p), strict=True)}
    expected = {
        (i, k): WITH_QUERY if k < p else WITHOUT_QUERY for i, k in zip(*np.nonzero(np.tril(W11, -1)), strict=True)
    }
    assert found == expected
    assert len(edges_of(W11, p).first) == len(expected) > 0  # none of them twice
    assert len(edges_of(np.diag(np.diag(W11)), p).first) == 0


@pytest.mark.parametrize("pair", [(1, 0, 0), (3, 2, 1), (3, 1, 1)], ids=str)
def test_causes_have_their_joint_law(pair):
    """Pearson's test of 20,000 draws, with a false alarm rate of 1e-7."""
    assert p_value(draw_causes, pair) > ALARM


def other_class(rng, edges, inclusion, propensity):
    """The inclusion probability of the other class."""
    return draw_causes(rng, edges, inclusion[::-1].copy(), propensity)


def forgotten_condition(rng, edges, inclusion, propensity):
    """The first end as likely as without the edge, even if the class has declined."""
    (i,), (k,), (kind,) = edges
    by_class, by_variable = np.zeros(2), np.zeros(4)
    of_ends = 1 - (1 - propensity[i]) * (1 - propensity[k])
    explained = rng.random() * (1 - (1 - inclusion[kind]) * (1 - of_ends)) < inclusion[kind]
    first = rng.random() < propensity[i]
    by_class[kind], by_variable[i] = explained, first
    by_variable[k] = rng.random() < propensity[k] if explained or first else True
    return by_class, by_variable


@pytest.mark.parametrize("bug", [other_class, forgotten_condition], ids=lambda bug: bug.__name__)
def test_wrong_laws_of_the_causes_are_rejected(bug):
    assert p_value(bug, (3, 2, 1)) < ALARM / 1000


PAIRS = [(1, 0, 0), (2, 0, 0), (3, 0, 0), (3, 1, 1), (3, 2, 1)]


def test_causes_add_up_over_edges():
    """The means of all counts over 4,000 draws, against sums over edges, with a false alarm rate of 1e-7 each."""
    rng = np.random.default_rng(2)
    draws = [draw_causes(rng, edges(*PAIRS), INCLUSION, PROPENSITY) for _ in range(4000)]
    counts = np.array([np.concatenate(draw) for draw in draws])
    expected = np.zeros(6)
    for i, k, kind in PAIRS:
        expected[[kind, 2 + i, 2 + k]] += chances(INCLUSION, PROPENSITY, (i, k, kind)) @ np.array(WAYS)
    z = (counts.mean(axis=0) - expected) / (counts.std(axis=0, ddof=1) / np.sqrt(len(counts)))
    assert 2 * stats.norm.sf(np.abs(z)).min() > ALARM
    assert counts.sum(axis=1).min() >= len(PAIRS)  # an edge has a cause
    assert (counts <= [3, 2, 3, 2, 2, 3]).all()  # and none twice


def test_a_cause_that_is_certain_is_always_responsible():
    rng, no_propensity, no_class = np.random.default_rng(3), np.zeros(4), np.zeros(2)
    one_end = np.array([1.0, 0.0, 0.0, 1.0])
    for _ in range(20):
        by_class, by_variable = draw_causes(rng, edges(*PAIRS), INCLUSION, no_propensity)
        assert (by_class.tolist(), by_variable.tolist()) == ([3, 2], [0, 0, 0, 0])
        by_class, by_variable = draw_causes(rng, edges(*PAIRS), no_class, one_end)
        assert (by_class.tolist(), by_variable.tolist()) == ([0, 0], [3, 0, 0, 3])


def test_without_edges_nothing_is_responsible():
    by_class, by_variable = draw_causes(np.random.default_rng(4), edges(), INCLUSION, PROPENSITY)
    assert by_class.sum() == by_variable.sum() == 0
