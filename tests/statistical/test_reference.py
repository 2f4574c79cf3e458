"""The yardstick itself, against SciPy's densities and against its own proposals reweighted."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from statistical.reference import (
    ExponentialScales,
    Theta,
    draw_data,
    draw_prior,
    log_likelihood,
    log_prior,
    propose,
    quadratic,
)

LEARNED = ExponentialScales(shape=4.0, rate=1.5)


def test_likelihood_is_that_of_normal_rows() -> None:
    rng = np.random.default_rng(0)
    theta, X2 = propose(rng, 2, 3, 4, LEARNED), rng.standard_normal((6, 4))
    X1 = rng.standard_normal((6, 3))
    direct = []
    for W11, W12 in zip(theta.W11, theta.W12, strict=True):
        U = np.linalg.inv(W11)
        rows = zip(X1, -X2 @ W12.T @ U, strict=True)
        direct.append(sum(stats.multivariate_normal.logpdf(x, mean, U) for x, mean in rows))
    found = log_likelihood(theta, X1.T @ X1 + np.zeros((2, 3, 3)), X1.T @ X2 + np.zeros((2, 3, 4)), X2.T @ X2, 6)
    assert found[1] - found[0] == pytest.approx(direct[1] - direct[0], rel=1e-10)


def test_data_have_the_mean_and_covariance_they_should() -> None:
    rng = np.random.default_rng(1)
    one, X2 = propose(rng, 1, 2, 3, LEARNED), rng.standard_normal((2, 3))
    X1 = draw_data(rng, one.map(lambda x: np.repeat(x, 20_000, axis=0)), X2)
    U = np.linalg.inv(one.W11[0])
    white = (X1 + X2 @ one.W12[0].T @ U) @ np.linalg.cholesky(one.W11[0])
    assert stats.kstest(white.reshape(-1), "norm").pvalue > 1e-7
    assert np.abs(np.corrcoef(white.reshape(-1, 4).T) - np.eye(4)).max() < 6 / np.sqrt(20_000)


def test_prior_density_is_the_product_of_its_factors() -> None:
    theta = propose(np.random.default_rng(2), 2, 2, 3, LEARNED)
    gamma = theta.hyper["gamma"]
    scales = stats.expon.logpdf(theta.T, scale=(2 / gamma**2)[:, None, None]).sum((1, 2))
    entries = stats.norm.logpdf(theta.W12, scale=np.sqrt(theta.T)).sum((1, 2))
    wishart = [stats.wishart.logpdf(W11, 3, np.eye(2)) for W11 in theta.W11]
    tilt = -0.5 * quadratic(np.linalg.inv(theta.W11), theta.W12, None)
    product = stats.gamma.logpdf(gamma, 4.0, scale=1 / 1.5) + scales + entries + wishart + tilt
    assert np.diff(log_prior(theta, LEARNED)) == pytest.approx(np.diff(product), rel=1e-10)


def test_prior_draws_agree_with_reweighted_proposals() -> None:
    """``E f = E(f w) / E w`` with ``w = exp -1/2 tr(U W12 W21)`` for bounded f, within six standard errors."""
    rng = np.random.default_rng(3)
    proposed, drawn = propose(rng, 40_000, 2, 3, LEARNED), draw_prior(rng, 40_000, 2, 3, LEARNED)
    weight = np.exp(-0.5 * quadratic(np.linalg.inv(proposed.W11), proposed.W12, None))
    for f in (bounded_size, bounded_determinant, bounded_rate):
        expected = (f(proposed) * weight).mean() / weight.mean()
        influence = (f(proposed) - expected) * weight / weight.mean()
        error = np.sqrt((influence.var() + f(drawn).var()) / 40_000)
        assert abs(f(drawn).mean() - expected) < 6 * error


def bounded_size(theta: Theta) -> np.ndarray:
    return np.tanh(np.abs(theta.W12).sum((1, 2)) / 4)


def bounded_determinant(theta: Theta) -> np.ndarray:
    return np.tanh(np.linalg.slogdet(theta.W11)[1] / 2)


def bounded_rate(theta: Theta) -> np.ndarray:
    return np.tanh(theta.hyper["gamma"] / 4)
