"""Causes of edges: listed for the right pairs, and drawn from their exact joint law, by enumeration."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy import stats

from markovblanket.model._block_columns import Counts
from markovblanket.model._column_regression import WITH_QUERY, WITHOUT_QUERY
from markovblanket.model._propensities import BetaLaw, Edges, draw_causes, draw_rates, edges_of
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


# Rates --------------------------------------------------------------------------------------------------

LAWS = BetaLaw(1.0, 6.0), BetaLaw(0.2, 1.2)
COUNTS = Counts(np.zeros(2), np.array([2.0, 1.0]), np.zeros(2), np.array([9.0, 7.0]))


def rates_of(rng: Generator, found: Edges, rounds: int) -> tuple[Array, Array]:
    """Rates after some rounds, from those of the other tests."""
    inclusion, propensity = INCLUSION.copy(), PROPENSITY.copy()
    draw_rates(rng, found, COUNTS, inclusion, propensity, LAWS, rounds)
    return inclusion, propensity


def means_on_a_grid(points: int = 120) -> Array:
    """Mean of the inclusion probability and of a propensity, by quadrature in quantiles of their priors."""
    middle = (np.arange(points) + 0.5) / points
    x = stats.beta.ppf(middle, 1 + COUNTS.outside[0], 6 + COUNTS.pairs[0] - 1 - COUNTS.outside[0])
    theta = stats.beta.ppf(middle, 0.2, 1.2)
    declined = (1 - x)[:, None, None] * (1 - theta)[:, None] * (1 - theta)
    weight = (1 - declined) / (1 - declined).sum()
    return np.array([(weight * x[:, None, None]).sum(), (weight * theta[:, None]).sum()])


def test_rates_of_a_single_edge_have_their_exact_means():
    """4,000 chains of 30 rounds against quadrature, with a false alarm rate of 1e-7 each."""
    rng, ends = np.random.default_rng(5), []
    for _ in range(4000):
        inclusion, propensity = np.array([0.2, 0.2]), np.array([0.1, 0.1])
        draw_rates(rng, edges((1, 0, 0)), COUNTS, inclusion, propensity, LAWS, 30)
        ends.append([inclusion[0], propensity.mean()])
    draws = np.array(ends)
    z = (draws.mean(axis=0) - means_on_a_grid()) / (draws.std(axis=0, ddof=1) / np.sqrt(len(draws)))
    assert 2 * stats.norm.sf(np.abs(z)).min() > ALARM
    # What would be drawn if the edge counted for all of its causes is far away from that.
    wrong = np.array([(1 + 3) / (7 + 9), (0.2 + 1) / (1.4 + 1)])
    assert (np.abs(draws.mean(axis=0) - wrong) > 8 * draws.std(axis=0) / np.sqrt(len(draws))).all()


def test_without_edges_rates_have_beta_laws():
    """Kolmogorov and Smirnov's test of 4,000 draws of each, with a false alarm rate of 1e-7."""
    rng = np.random.default_rng(6)
    draws = [rates_of(rng, edges(), 1) for _ in range(4000)]
    inclusion, propensity = (np.array(values) for values in zip(*draws, strict=True))
    for kind in range(2):
        outside, pairs = COUNTS.outside[kind], COUNTS.pairs[kind]
        law = stats.beta(1 + outside, 6 + pairs - outside)
        assert stats.kstest(inclusion[:, kind], law.cdf).pvalue > ALARM
    for i in range(4):
        assert stats.kstest(propensity[:, i], stats.beta(0.2, 1.2 + 3).cdf).pvalue > ALARM


def test_rounds_follow_one_another():
    """Three rounds at once are three rounds one by one, number for number."""
    one, other = np.random.default_rng(7), np.random.default_rng(7)
    inclusion, propensity = INCLUSION.copy(), PROPENSITY.copy()
    for _ in range(3):
        draw_rates(one, edges(*PAIRS), COUNTS, inclusion, propensity, LAWS, 1)
    for found, expected in zip(rates_of(other, edges(*PAIRS), 3), (inclusion, propensity), strict=True):
        np.testing.assert_array_equal(found, expected)
