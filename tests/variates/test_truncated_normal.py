"""Truncated normal: draws against the density over body, tails and slivers."""

import numpy as np
import pytest
from scipy.special import log_ndtr
from scipy.stats import norm, truncnorm

from markovblanket.variates import truncated_normal
from variates.agreement import FALSE_ALARM, p_value_of_density, p_value_of_law

COUNT = 20_000
INTERVALS = [
    (-np.inf, np.inf),
    (-np.inf, 0.3),
    (-0.2, np.inf),
    (-3.0, 4.0),
    (0.999, np.inf),
    (1.001, np.inf),
    (-0.4, 0.5),
    (0.0, 0.9),
    (-0.5, 0.5),
    (-1e-200, 0.5),
    (2.0, 2.3),
    (4.0, 40.0),
    (-9.0, -7.0),
    (-np.inf, -12.0),
    (38.0, np.inf),
    (1e5, np.inf),
    (1e5, 1e5 + 1e-6),
    (0.5, 1.6),
    (-30.0, 1.0),
    (0.0, np.inf),
    (-0.49, np.inf),
    (-0.51, np.inf),
    (-0.49, 2.0),
    (-0.01, 2.38),
    (-0.01, 2.4),
    (-1.19, 1.2),
    (-1.21, 1.2),
    (0.0, 1.41),
    (0.0, 1.42),
    (7.0, 7.14),
    (7.0, 7.15),
]


@pytest.mark.parametrize(("lower", "upper"), INTERVALS)
def test_draws_follow_the_density(lower, upper):
    x = truncated_normal.draw(np.random.default_rng(1), np.full(COUNT, lower), upper)
    assert np.all((x >= lower) & (x <= upper))
    p = p_value_of_density(x, lambda x: truncated_normal.log_density(x, lower, upper), support=(lower, upper))
    assert p > FALSE_ALARM


@pytest.mark.parametrize(("lower", "upper"), [(-1.0, 2.0), (-np.inf, -6.0), (3.0, 3.4), (-0.3, 0.3)])
def test_agrees_with_scipy(lower, upper):
    x = truncated_normal.draw(np.random.default_rng(2), lower, np.full(COUNT, upper))
    law = truncnorm(lower, upper)
    assert p_value_of_law(x, law.cdf) > FALSE_ALARM
    np.testing.assert_allclose(truncated_normal.log_density(x[:50], lower, upper), law.logpdf(x[:50]), rtol=1e-9)


@pytest.mark.parametrize("low", [-0.49, 0.0, 0.5, 3.0, 8.0, 40.0, 1e3])
def test_tails_by_their_logarithms(low):
    """``P(X > x)``, a ratio of tails that underflow, is uniform."""
    rng = np.random.default_rng(9)
    x = np.array([truncated_normal.between(rng, low, np.inf) for _ in range(5_000)])
    assert p_value_of_law(np.exp(log_ndtr(-x) - log_ndtr(-low)), lambda u: np.clip(u, 0.0, 1.0)) > FALSE_ALARM


def test_mirror_images():
    x = np.linspace(-4.0, 4.0, 41)
    np.testing.assert_array_equal(
        truncated_normal.log_density(x, -3.3, 0.7), truncated_normal.log_density(-x, -0.7, 3.3)
    )


def test_far_tail_is_exponential():
    """At 1e8 neighbouring doubles are 1.5e-8 apart, the law's spread 1e-8: its mean excess still shows."""
    x = truncated_normal.draw(np.random.default_rng(3), np.full(COUNT, 1e8), np.inf)
    assert np.all(x >= 1e8)
    assert np.mean(x - 1e8) == pytest.approx(1e-8, rel=0.2)
    y = truncated_normal.draw(np.random.default_rng(3), -np.inf, np.full(COUNT, -1e8))
    np.testing.assert_array_equal(x, -y)
    distance = np.array([0.0, 1e-3, 1e-2])
    np.testing.assert_allclose(
        truncated_normal.log_density(1e3 + distance, 1e3, np.inf),
        np.log(1e3) + np.log1p(1e-6) - 1e3 * distance - distance**2 / 2,
        rtol=1e-9,
    )


@pytest.mark.parametrize("centre", [-50.0, -1.0, 0.0, 1e-12, 0.3, 5.0, 1e3])
def test_slivers_are_uniform_and_closed(centre):
    lower, upper = centre, centre + 1e-14 * max(abs(centre), 1.0)
    x = truncated_normal.draw(np.random.default_rng(4), np.full(2_000, lower), upper)
    assert np.all((x >= lower) & (x <= upper))
    assert np.mean(x - lower) == pytest.approx(
        (upper - lower) / 2, abs=np.spacing(abs(centre)) + 0.05 * (upper - lower)
    )
    assert truncated_normal.log_density(lower, lower, upper) == pytest.approx(-np.log(upper - lower), rel=1e-9)


def test_points_and_mixed_intervals_in_one_call():
    lower = np.array([2.0, -np.inf, -1e300, 1e300, -5.0, 0.0, -0.0, 1.7e308, -1.7e308, 1.7e308])
    upper = np.array([2.0, np.inf, 1e300, np.inf, -5.0, 5e-324, 0.0, 1.7e308, 1.7e308, np.inf])
    x = truncated_normal.draw(np.random.default_rng(5), lower, upper)
    assert x[0] == 2.0
    assert x[4] == -5.0
    assert np.all(np.isfinite(x) & (x >= lower) & (x <= upper))


def test_each_entry_has_its_own_interval():
    """Uniforms by the probability transform, over random bounds of every kind at once."""
    rng = np.random.default_rng(6)
    ends = np.sort(rng.normal(scale=2.0, size=(COUNT, 2)), axis=1)
    ends[rng.random(COUNT) < 0.3, 0] = -np.inf
    ends[rng.random(COUNT) < 0.3, 1] = np.inf
    lower, upper = ends.T
    x = truncated_normal.draw(rng, lower, upper)
    mirror = np.where(lower + np.where(np.isinf(lower), 0.0, upper) > 0, -1.0, 1.0)
    low, high = np.where(mirror < 0, -upper, lower), np.where(mirror < 0, -lower, upper)
    u = (norm.cdf(mirror * x) - norm.cdf(low)) / (norm.cdf(high) - norm.cdf(low))
    assert p_value_of_law(u, lambda u: np.clip(u, 0.0, 1.0)) > FALSE_ALARM


PROPOSALS = {
    "exponential": (1.5, np.inf, lambda rng: 1.5 + 0.5 * rng.standard_exponential(COUNT)),
    "exponential at low": (1.5, np.inf, lambda rng: 1.5 + rng.standard_exponential(COUNT) / 1.5),
    "uniform": (0.0, 1.41, lambda rng: 1.41 * rng.random(COUNT)),
    "normal": (-0.51, np.inf, lambda rng: np.abs(rng.standard_normal(COUNT) + 0.51) - 0.51),
}


@pytest.mark.parametrize("name", PROPOSALS)
def test_proposals_that_are_all_accepted_are_caught(name):
    """Planted bugs: what is proposed taken for the law itself."""
    lower, upper, propose = PROPOSALS[name]
    x = propose(np.random.default_rng(7))
    p = p_value_of_density(x, lambda x: truncated_normal.log_density(x, lower, upper), support=(lower, upper))
    assert p < FALSE_ALARM


def test_broadcasting_and_scalars():
    rng = np.random.default_rng(8)
    assert np.ndim(truncated_normal.draw(rng, 0.0, 1.0)) == 0
    x = truncated_normal.draw(rng, np.zeros((3, 1)), np.ones(4))
    assert x.shape == (3, 4)
    assert np.unique(x).size == 12
    assert truncated_normal.draw(rng, np.empty(0), np.empty(0)).shape == (0,)
    assert truncated_normal.log_density([-1.0, 2.0], 0.0, 1.0).tolist() == [-np.inf, -np.inf]


@pytest.mark.parametrize(("lower", "upper"), [(1.0, 0.0), (np.nan, 1.0), (np.inf, np.inf), (-np.inf, -np.inf)])
def test_refuses_empty_intervals(lower, upper):
    with pytest.raises(ValueError, match="lower <= upper"):
        truncated_normal.draw(np.random.default_rng(0), [0.0, lower], [1.0, upper])
    with pytest.raises(ValueError, match="lower <= upper"):
        truncated_normal.between(np.random.default_rng(0), lower, upper)


def test_a_point_has_no_density():
    with pytest.raises(ValueError, match="no density"):
        truncated_normal.log_density(1.0, 1.0, 1.0)
