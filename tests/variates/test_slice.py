"""Slice sampling: the update leaves a law invariant, whatever its width."""

import math

import numpy as np
import pytest
from scipy.stats import gamma, norm

from markovblanket.variates import slice as slice_sampling
from variates.agreement import FALSE_ALARM, p_value_of_law


def log_gamma(x):
    return 1.5 * math.log(x) - x if x > 0 else -math.inf


def log_two_hills(x):
    return float(np.logaddexp(-0.5 * (x - 3.0) ** 2, -0.5 * (x + 3.0) ** 2))


@pytest.mark.parametrize("width", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("max_steps", [1, 3, 1000])
def test_leaves_a_law_invariant(width, max_steps):
    """Exact draws stay exact after an update, with steps limited or not."""
    rng = np.random.default_rng(1)
    x = [slice_sampling.step(rng, x, log_gamma, width, max_steps) for x in rng.gamma(2.5, size=1_500)]
    assert p_value_of_law(np.array(x), gamma(2.5).cdf) > FALSE_ALARM


def test_leaves_two_hills_invariant():
    rng = np.random.default_rng(2)
    start = rng.choice([-3.0, 3.0], size=4_000) + rng.standard_normal(4_000)
    x = np.array([slice_sampling.step(rng, value, log_two_hills, width=2.0) for value in start])
    assert p_value_of_law(x, lambda x: 0.5 * norm.cdf(x - 3) + 0.5 * norm.cdf(x + 3)) > FALSE_ALARM
    assert np.mean(np.sign(x) != np.sign(start)) > 0.02


@pytest.mark.parametrize("width", [1.3, 3.0])
def test_leaves_two_islands_invariant(width):
    """Hops between islands betray an interval that is centred on the point in place of randomly placed."""

    def log_islands(x):
        return 0.0 if 0 < x < 1 or 2 < x < 2.4 else -math.inf

    rng, moved = np.random.default_rng(6), []
    for x in 1.4 * rng.random(1_500):
        x = x if x < 1 else x + 1
        for _ in range(8):
            x = slice_sampling.step(rng, x, log_islands, width)
        moved.append(x)
    assert (
        p_value_of_law(np.array(moved), lambda x: (np.clip(x, 0, 1) + np.clip(x - 2, 0, 0.4)) / 1.4) > FALSE_ALARM
    )


def test_finds_the_law_from_a_cold_start():
    rng, x, draws = np.random.default_rng(3), 50.0, []
    for _ in range(6_000):
        x = slice_sampling.step(rng, x, log_gamma, width=3.0)
        draws.append(x)
    assert p_value_of_law(np.array(draws[1_000::5]), gamma(2.5).cdf) > FALSE_ALARM


def test_moves_and_is_reproducible():
    first = slice_sampling.step(np.random.default_rng(4), 1.0, log_gamma)
    assert first == slice_sampling.step(np.random.default_rng(4), 1.0, log_gamma)
    assert first != 1.0


def test_a_law_narrower_than_rounding_stays_put():
    def spike(x):
        return 0.0 if x == 1e10 else -math.inf

    assert slice_sampling.step(np.random.default_rng(5), 1e10, spike) == 1e10


@pytest.mark.parametrize("x", [-1.0, 0.0])
def test_refuses_to_start_outside_the_support(x):
    with pytest.raises(ValueError, match="log density is -inf"):
        slice_sampling.step(np.random.default_rng(0), x, log_gamma)


def test_refuses_a_bad_width():
    with pytest.raises(ValueError, match="positive finite width"):
        slice_sampling.step(np.random.default_rng(0), 1.0, log_gamma, width=0.0)
