"""Inverse Gaussian: draws against the density, the limit of an infinite mean, and the far ends of a double."""

import numpy as np
import pytest
from scipy.stats import invgauss

from markovblanket.variates import inverse_gaussian
from variates.agreement import FALSE_ALARM, p_value_of_law, p_value_on_log_scale

COUNT = 20_000


@pytest.mark.parametrize("ratio", [1e-6, 1e-2, 0.7, 1.0, 40.0, 1e8, 1e150, np.inf])
@pytest.mark.parametrize("shape", [1e-120, 1e-6, 1.0, 1e6, 1e120])
def test_draws_follow_the_density(ratio, shape):
    mean = ratio * shape
    x = inverse_gaussian.draw(np.random.default_rng(3), mean, np.full(COUNT, shape))
    assert p_value_on_log_scale(x, lambda x: inverse_gaussian.log_density(x, mean, shape)) > FALSE_ALARM


@pytest.mark.parametrize(("mean", "shape"), [(1e-300, 1.0), (1e-3, 1e6), (1.0, 1e12)])
def test_a_large_shape_gives_the_normal_limit(mean, shape):
    x = inverse_gaussian.draw(np.random.default_rng(4), np.full(COUNT, mean), shape)
    relative_sd = np.sqrt(mean / shape)
    if relative_sd < 1e-15:
        np.testing.assert_allclose(x, mean, rtol=1e-15)
    else:
        assert np.abs(x / mean - 1.0).max() < 7 * relative_sd
        assert x.std() / mean == pytest.approx(relative_sd, rel=0.05)


def test_density_agrees_with_scipy():
    x = np.geomspace(1e-3, 1e3, 50)
    expected = invgauss.logpdf(x, mu=2.5 / 0.8, scale=0.8)
    np.testing.assert_allclose(inverse_gaussian.log_density(x, 2.5, 0.8), expected, rtol=1e-10)
    assert np.all(inverse_gaussian.log_density([-1.0, 0.0, np.inf], 2.5, 0.8) == -np.inf)


def test_an_infinite_mean_is_the_limit_of_large_ones():
    shape = np.full(1000, 3.0)
    far = inverse_gaussian.draw(np.random.default_rng(5), 1e200, shape)
    limit = inverse_gaussian.draw(np.random.default_rng(5), np.inf, shape)
    np.testing.assert_allclose(far, limit, rtol=1e-12)
    x = np.geomspace(1e-4, 1e8, 30)
    np.testing.assert_allclose(
        inverse_gaussian.log_density(x, 1e200, 3.0), inverse_gaussian.log_density(x, np.inf, 3.0), rtol=1e-12
    )


def test_small_means_keep_their_moments_when_shape_is_smaller_still():
    """The textbook root cancels when mean/shape is large; E[1/x] = 1/mean + 1/shape sees it."""
    mean, shape = 1e12, 1.0
    x = inverse_gaussian.draw(np.random.default_rng(6), np.full(200_000, mean), shape)
    assert np.mean(1.0 / x) == pytest.approx(1.0 / mean + 1.0 / shape, abs=6 * np.sqrt(2.0 / 200_000))


def test_returning_the_reciprocal_is_caught():
    """Planted bug: T in place of 1/T."""
    mean, shape = 3.0, 2.0
    x = 1.0 / inverse_gaussian.draw(np.random.default_rng(7), np.full(2_000, mean), shape)
    assert p_value_of_law(x, invgauss(mu=mean / shape, scale=shape).cdf) < FALSE_ALARM


def test_broadcasts_and_stays_finite_over_the_whole_range():
    mean = np.concatenate([np.logspace(-300, 300, 121), [np.inf]])
    shape = np.logspace(-150, 150, 61)[:, None]
    x = inverse_gaussian.draw(np.random.default_rng(8), mean, shape)
    assert x.shape == (61, 122)
    assert np.all(np.isfinite(x) & (x > 0))
    assert not np.any(np.isnan(inverse_gaussian.log_density(x, mean, shape)))


@pytest.mark.parametrize(
    ("mean", "shape"), [(0.0, 1.0), (-1.0, 1.0), (np.nan, 1.0), (1.0, 0.0), (1.0, np.inf), (1.0, np.nan)]
)
def test_refuses_parameters_outside_the_range(mean, shape):
    with pytest.raises(ValueError, match="must be positive"):
        inverse_gaussian.draw(np.random.default_rng(0), mean, shape)
