"""Probabilities of statements, against draws that can be counted by hand."""

from __future__ import annotations

import numpy as np
import pytest

import markovblanket as mb
from markovblanket.posterior import edges, summaries
from markovblanket.posterior.observed import name_axes
from markovblanket.posterior.posterior import Posterior
from posterior.test_posterior import NAMES, arrays, observed

pytestmark = pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
QUICK = {"chains": 2, "warmup": 50, "draws": 60, "seed": 1, "progress": False}


def made(W12, W11=None, names=NAMES):
    """A posterior of four draws in two chains whose weights are given: (4, 2, 4)."""
    values = {name: array[:2, :2] for name, array in arrays().items()}
    values["W12"] = np.asarray(W12, float).reshape(2, 2, 2, 4)
    values |= {} if W11 is None else {"W11": np.asarray(W11, float).reshape(2, 2, 2, 2)}
    return Posterior(
        *name_axes(values, *names), observed(names), {"prior": {"name": "SpikeSlab", "exact_zeros": True}}
    )


# T~a, T~b, T~c, T~<script> and the same of N, in each of four draws.
WEIGHTS = [
    [[1.0, 0.5, 0.0, 2.0], [0.0, 0.0, -1.0, 0.0]],
    [[0.5, 1.0, 0.0, 2.0], [0.0, 0.0, -1.0, 0.5]],
    [[-2.0, 1.0, 0.3, 2.0], [0.0, 0.1, -1.0, 0.0]],
    [[3.0, 1.0, 0.0, 2.0], [0.0, 0.0, 1.0, 0.0]],
]


@pytest.mark.parametrize(
    ("statement", "probability"),
    [
        ("T~a > T~b", 0.5),
        ("a~T > b~T", 0.5),
        ("T~a < T~b", 0.5),
        ("|T~a| > T~b", 0.75),
        ("|T~a| > 2.5 * |T~b|", 0.25),
        ("T~c == 0", 0.75),
        ("T~c != 0", 0.25),
        ("T~a >= 1", 0.5),
        ("T~a <= 0.5", 0.5),
        ("T~a + T~b > 1.5", 0.25),
        ("T~a + T~b >= 1.5", 0.75),
        ("T~<script> - T~a > 1", 0.5),
        ("|T~a - T~b| < 1", 0.5),
        ("T~a > T~b and N~c < 0", 0.25),
        ("T~a > 0 and T~a < 0", 0.0),
        ("1 > N~c", 0.75),
    ],
)
def test_a_probability_is_a_share_of_draws(statement, probability):
    assert made(WEIGHTS).probability(statement, of="precision") == probability


def test_joined_comparisons_hold_in_the_same_draw():
    """Each holds in half of the draws, both never: a product of shares would say a quarter."""
    posterior = made(WEIGHTS)
    assert posterior.probability("T~a > T~b") * posterior.probability("T~b > T~a") == 0.25
    assert posterior.probability("T~a > T~b and T~b > T~a") == 0.0


def test_edges_among_query_variables_come_from_the_query_block():
    W11 = [[[1.0, w], [w, 4.0]] for w in (-0.5, 0.5, 1.0, 1.5)]
    posterior = made(WEIGHTS, W11)
    assert posterior.probability("T~N < -0.3") == posterior.probability("N~T < -0.3") == 0.5
    np.testing.assert_allclose(posterior.contrast("N~T", of="precision").values.ravel(), [-0.5, 0.5, 1.0, 1.5])
    partial = posterior.contrast("N~T")
    np.testing.assert_allclose(partial.values.ravel(), [0.25, -0.25, -0.5, -0.75])


def test_contrasts_are_draws_for_arviz():
    values, draws = arrays(), Posterior(*name_axes(arrays(), *NAMES), observed(NAMES), {})
    found = draws.contrast("2 * T~a - |N~c| + 1", of="precision")
    expected = 2 * values["W12"][:, :, 0, 0] - np.abs(values["W12"][:, :, 1, 2]) + 1
    np.testing.assert_allclose(found.values, expected)
    assert found.dims == ("chain", "draw")
    summary = summaries.arviz().summary(found, round_to="none")
    assert summary["mean"].item() == pytest.approx(expected.mean())


def test_partial_correlations_are_those_of_the_posterior():
    posterior = Posterior(*name_axes(arrays(), *NAMES), observed(NAMES), {})
    expected = posterior.partial_correlation.sel(query="N", variable="b").values
    np.testing.assert_allclose(posterior.contrast("b~N").values, expected)
    assert posterior.probability("T~a < 0") == posterior.probability("T~a > 0", of="precision") == 1.0


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("a~b > 0", "a~b is not an edge of this posterior: neither of them is a query variable"),
        ("T~T > 0", "T~T is not an edge of this posterior: no variable is connected to itself"),
        ("T~z > 0", "no variable is named 'z'"),
    ],
)
def test_edges_that_the_posterior_does_not_have(statement, reason):
    with pytest.raises(ValueError, match=reason):
        made(WEIGHTS).probability(statement)


def test_an_unknown_scale_is_refused():
    with pytest.raises(ValueError, match="of='slope': known are 'partial_correlation', 'precision'"):
        made(WEIGHTS).contrast("T~a", of="slope")


@pytest.fixture(scope="module")
def table():
    return np.random.default_rng(1).standard_normal((40, 6))


def test_every_way_of_keeping_gives_the_same_draws_and_positions_are_names(table, tmp_path):
    kept = {
        keep: mb.estimate(table, [0, 5], keep=keep, **QUICK) for keep in ("draws", "summary", tmp_path / "run")
    }
    for of in ("precision", "partial_correlation"):
        full, summary, disk = (posterior.contrast("0~3 - 2 * 2~5", of=of).values for posterior in kept.values())
        np.testing.assert_allclose(summary, full, rtol=1e-12)
        np.testing.assert_allclose(disk, full, rtol=1e-12)
    loaded = mb.load(tmp_path / "run")
    assert loaded.probability("0~3 > 2~5") == kept["draws"].probability("0~3 > 2~5")


def test_a_summary_says_which_edge_was_not_kept_and_what_to_do(table):
    posterior = mb.estimate(table, [0, 5], keep="summary", named=[(0, 3)], **QUICK)
    assert 0 <= posterior.probability("0~3 > 0 and 0~5 > 0") <= 1
    with pytest.raises(ValueError, match=r'draws of 5~2 were not kept: estimate with keep="draws", or name it'):
        posterior.probability("0~3 > 2~5")


def test_single_edges_from_disk_have_partial_correlations_of_their_own(table, tmp_path):
    posterior = mb.estimate(table, [0, 5], keep=tmp_path / "run", named=[(0, 3)], **QUICK)
    full = mb.estimate(table, [0, 5], keep="draws", **QUICK)
    found = edges.draws_of_edge(posterior.draws, 5, 2, "partial_correlation").values
    np.testing.assert_allclose(found, full.partial_correlation.sel(query=5, variable=2).values, rtol=1e-6)
