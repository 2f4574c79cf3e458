"""Generalised inverse Gaussian: draws, density and Bessel function hold each other to account."""

import numpy as np
import pytest
from scipy.special import kv, logsumexp
from scipy.stats import gamma, geninvgauss, invgamma

from markovblanket.variates import generalized_inverse_gaussian as gig
from variates.agreement import FALSE_ALARM, p_value_of_law, p_value_on_log_scale

COUNT = 20_000
LAWS = [
    (0.0, 1.0, 1.0),
    (0.0, 1e-100, 1e-100),
    (0.01, 2.0, 1e-40),
    (0.5, 1e-3, 3.0),
    (-0.5, 4.0, 4.0),
    (1.0, 1.0, 1e-200),
    (-3.2, 0.7, 25.0),
    (5.0, 1e150, 1e-140),
    (60.0, 2.0, 1e4),
    (-800.0, 5.0, 1.0),
    (5e4, 1.0, 1e9),
    (2.0, 1e6, 1e6),
    (2.5, 3.0, 0.0),
    (-2.5, 0.0, 3.0),
]


@pytest.mark.parametrize(("order", "a", "b"), LAWS)
def test_draws_follow_the_density(order, a, b):
    x = gig.draw(np.random.default_rng(1), order, a, b, size=COUNT)
    assert p_value_on_log_scale(x, lambda x: gig.log_density(x, order, a, b)) > FALSE_ALARM


POSITIVE = [
    *(law for law in LAWS if law[0] > 0 and law[1] > 0),
    (1.0, 1.0, 0.0),
    (1.5, 3.0, 40.0),
    (501.0, 900.0, 1e-3),
]


@pytest.mark.parametrize(("order", "a", "b"), POSITIVE)
def test_compiled_draws_follow_the_density(order, a, b):
    rng = np.random.default_rng(7)
    x = np.array([gig.draw_positive_order(rng, order, a, b) for _ in range(COUNT)])
    assert p_value_on_log_scale(x, lambda x: gig.log_density(x, order, a, b)) > FALSE_ALARM


@pytest.mark.parametrize(("order", "omega"), [(0.3, 0.2), (-1.0, 5.0), (12.0, 3.0), (2.0, 1e-4)])
def test_agrees_with_scipy(order, omega):
    x = gig.draw(np.random.default_rng(2), order, omega, omega, size=COUNT)
    law = geninvgauss(order, omega)
    y = gig.draw(np.random.default_rng(3), order, 10 * omega, omega / 10, size=COUNT)
    np.testing.assert_allclose(gig.log_density(x[:50], order, omega, omega), law.logpdf(x[:50]), rtol=1e-9)
    other = geninvgauss.rvs(order, omega, size=COUNT, random_state=np.random.default_rng(4))
    assert p_value_on_log_scale(other, lambda x: gig.log_density(x, order, omega, omega)) > FALSE_ALARM
    assert p_value_on_log_scale(10 * y, lambda x: gig.log_density(x, order, omega, omega)) > FALSE_ALARM


def test_edges_are_gamma_and_inverse_gamma():
    x = gig.draw(np.random.default_rng(5), 1.7, 4.0, 0.0, size=COUNT)
    assert p_value_of_law(x, gamma(1.7, scale=0.5).cdf) > FALSE_ALARM
    np.testing.assert_allclose(
        gig.log_density(x[:20], 1.7, 4.0, 0.0), gamma(1.7, scale=0.5).logpdf(x[:20]), rtol=1e-9
    )
    x = gig.draw(np.random.default_rng(6), -1.7, 0.0, 4.0, size=COUNT)
    assert p_value_of_law(x, invgamma(1.7, scale=2.0).cdf) > FALSE_ALARM
    np.testing.assert_allclose(
        gig.log_density(x[:20], -1.7, 0.0, 4.0), invgamma(1.7, scale=2.0).logpdf(x[:20]), rtol=1e-9
    )


def log_bessel_k_by_quadrature(order, z):
    """``K(z) = 1/2 int exp(order u - z cosh u) du``, summed on the log scale around its peak."""
    peak = np.arcsinh(order / z)
    reach = 14.0 / np.sqrt(np.hypot(order, z)) if np.hypot(order, z) > 40 else 60.0
    u = np.linspace(peak - reach, peak + reach, 8_001)
    if order < 40 and z < 40:
        u = np.linspace(-60.0, peak + 60.0, 8_001)
    with np.errstate(over="ignore"):
        return logsumexp(order * u - z * np.cosh(u)) + np.log(u[1] - u[0]) - np.log(2)


@pytest.mark.parametrize("order", [0.0, 0.4, 1.0, 3.0, 20.0, 149.0, 151.0, 400.0, 1e4])
@pytest.mark.parametrize("z", [1e-12, 1e-2, 1.0, 3.0, 30.0, 149.5, 151.0, 1e4, 1e6])
def test_log_bessel_k_against_quadrature(order, z):
    expected = log_bessel_k_by_quadrature(order, z)
    assert gig.log_bessel_k(order, z) == pytest.approx(expected, rel=1e-10, abs=1e-10)
    assert gig.log_bessel_k(-order, z) == gig.log_bessel_k(order, z)


def test_log_bessel_k_regimes_meet():
    for order in [0.0, 50.0, 149.0]:
        z = np.sqrt(150.0**2 - order**2)
        below, above = gig.log_bessel_k(order, z * (1 - 1e-12)), gig.log_bessel_k(order, z * (1 + 1e-12))
        assert below == pytest.approx(above, rel=1e-9, abs=1e-9)
    assert gig.log_bessel_k(2.5, 0.3) == pytest.approx(np.log(kv(2.5, 0.3)), rel=1e-13)


@pytest.mark.parametrize("order", [0.0, 1e-3, 1.0, 1e3, 1e9, 1e15])
@pytest.mark.parametrize("omega", [1e-290, 1e-160, 1e-20, 1.0, 1e20, 1e150])
def test_extremes_are_finite(order, omega):
    x = gig.draw(np.random.default_rng(7), order, omega, omega, size=200)
    assert np.all((x >= 0) & (x < np.inf))
    assert not np.any(np.isnan(gig.log_density(x, order, omega, omega)))
    assert np.isfinite(gig.log_bessel_k(order, omega))


def test_sizes():
    rng = np.random.default_rng(8)
    assert np.ndim(gig.draw(rng, 1.0, 1.0, 1.0)) == 0
    assert np.all(gig.draw(rng, -1.0, 1.0, 1.0, size=(2, 3)) > 0)
    assert gig.draw(rng, -1.0, 1.0, 1.0, size=(2, 3)).shape == (2, 3)
    assert gig.draw(rng, 1.0, 1.0, 1.0, size=0).shape == (0,)


@pytest.mark.parametrize(
    ("order", "a", "b"), [(0.0, 1.0, 0.0), (-1.0, 1.0, 0.0), (1.0, 0.0, 1.0), (1.0, -1.0, 1.0), (np.nan, 1.0, 1.0)]
)
def test_refuses_what_is_not_integrable(order, a, b):
    with pytest.raises(ValueError, match="generalised inverse Gaussian"):
        gig.draw(np.random.default_rng(0), order, a, b)


@pytest.mark.parametrize("place", range(3))
def test_compiled_draw_ends_for_parameters_that_are_not_numbers(place):
    given = [5.0, 1.0, 2.0]
    given[place] = np.nan
    assert np.isnan(gig.draw_positive_order(np.random.default_rng(0), *given))
