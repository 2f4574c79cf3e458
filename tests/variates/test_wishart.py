"""Wishart: scalar functionals with known laws, and a density that is normalised."""

import numpy as np
import pytest
from scipy.stats import chi2, gamma
from scipy.stats import wishart as scipy_wishart

from markovblanket.variates import wishart
from variates.agreement import FALSE_ALARM, p_value_of_density, p_value_of_law, p_value_of_pair

SCALE = np.array([[2.0, -0.6, 0.3], [-0.6, 0.5, 0.1], [0.3, 0.1, 4.0]])


def sample(seed, df, scale, count=3_000):
    rng = np.random.default_rng(seed)
    factor = np.linalg.cholesky(scale)
    return np.array([wishart.draw_from_factor(rng, df, factor) for _ in range(count)])


@pytest.mark.parametrize("df", [2.4, 3.0, 7.7, 250.0])
def test_quadratic_forms_are_chi_square(df):
    X = sample(1, df, SCALE)
    for a in [np.eye(3)[0], np.eye(3)[2], np.array([1.0, -2.0, 0.5])]:
        law = chi2(df, scale=a @ SCALE @ a)
        assert p_value_of_law(np.einsum("i,nij,j->n", a, X, a), law.cdf) > FALSE_ALARM


@pytest.mark.parametrize("df", [3.0, 7.7, 250.0])
def test_schur_complements_are_chi_square(df):
    schur = 1.0 / np.linalg.inv(sample(11, df, SCALE))[:, 1, 1]
    law = chi2(df - 2, scale=1.0 / np.linalg.inv(SCALE)[1, 1])
    assert p_value_of_law(schur, law.cdf) > FALSE_ALARM


@pytest.mark.parametrize("df", [2.3, 9.0])
def test_determinant_is_a_product_of_chi_squares(df):
    log_det = np.linalg.slogdet(sample(2, df, SCALE))[1] - np.linalg.slogdet(SCALE)[1]
    rng = np.random.default_rng(3)
    expected = np.log(rng.chisquare(df - np.arange(3), size=(20_000, 3))).sum(axis=1)
    assert p_value_of_pair(log_det, expected) > FALSE_ALARM


def test_factor_need_not_be_triangular():
    rng = np.random.default_rng(4)
    rotation, _ = np.linalg.qr(rng.standard_normal((3, 3)))
    factor = np.linalg.cholesky(SCALE) @ rotation
    X = np.array([wishart.draw_from_factor(rng, 4.0, factor) for _ in range(3_000)])
    for i in range(3):
        assert p_value_of_law(X[:, i, i], chi2(4.0, scale=SCALE[i, i]).cdf) > FALSE_ALARM
    assert p_value_of_pair(X[:, 0, 1], sample(5, 4.0, SCALE)[:, 0, 1]) > FALSE_ALARM


def test_draw_and_draw_from_factor_agree():
    one = wishart.draw(np.random.default_rng(6), 4.5, SCALE)
    other = wishart.draw_from_factor(np.random.default_rng(6), 4.5, np.linalg.cholesky(SCALE))
    np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(one, one.T)


def test_one_by_one_is_gamma():
    X = sample(7, 3.4, np.array([[2.5]]))[:, 0, 0]
    x = X[:20]
    expected = gamma(1.7, scale=5.0).logpdf(x)
    got = [wishart.log_density(np.array([[value]]), 3.4, np.array([[2.5]])) for value in x]
    np.testing.assert_allclose(got, expected, rtol=1e-11)

    def log_density(grid):
        return np.array([wishart.log_density(np.array([[value]]), 3.4, np.array([[2.5]])) for value in grid])

    assert p_value_of_density(X, log_density, points=4_001, support=(1e-9, np.inf)) > FALSE_ALARM


@pytest.mark.parametrize("df", [2.4, 5.0, 40.0])
def test_density_agrees_with_scipy(df):
    for X in sample(8, df, SCALE, count=20):
        assert wishart.log_density(X, df, SCALE) == pytest.approx(scipy_wishart.logpdf(X, df, SCALE), rel=1e-9)


def test_density_is_zero_off_the_cone():
    assert wishart.log_density(np.diag([1.0, -1.0]), 3.0, np.eye(2)) == -np.inf


def test_wrong_degrees_of_freedom_are_caught():
    """Planted bug: n + 3p - 1 in place of n + p + 1, here p = 3 and n = 20."""
    X = sample(9, 28.0, SCALE, count=2_000)
    assert p_value_of_law(X[:, 0, 0], chi2(24.0, scale=SCALE[0, 0]).cdf) < FALSE_ALARM


@pytest.mark.parametrize("df", [2.0 + 1e-9, 1e12])
@pytest.mark.parametrize("size", [1e-200, 1e-8, 1e8, 1e200])
def test_extremes_are_finite(df, size):
    scale = SCALE * np.outer([1.0, size**0.5, 1.0], [1.0, size**0.5, 1.0])
    X = wishart.draw(np.random.default_rng(10), df, scale)
    assert np.all(np.isfinite(X))
    assert not np.isnan(wishart.log_density(df * scale, df, scale))


@pytest.mark.parametrize("df", [2.0, -1.0, np.nan, np.inf])
def test_refuses_too_few_degrees_of_freedom(df):
    with pytest.raises(ValueError, match="more than 2 degrees of freedom"):
        wishart.draw(np.random.default_rng(0), df, SCALE)


def test_refuses_an_indefinite_scale():
    with pytest.raises(ValueError, match="scale of a Wishart distribution must be positive definite"):
        wishart.draw(np.random.default_rng(0), 5.0, np.diag([1.0, 0.0]))
