"""MGIG at the edges: extremes of scale, rounding, and what is refused."""

import numpy as np
import pytest

from markovblanket.variates import mgig

B3 = np.array([[3.0, 1.2, -0.5], [1.2, 2.0, 0.4], [-0.5, 0.4, 5.0]])


def test_an_enclosure_that_does_not_close_says_so():
    with pytest.raises(mgig.EnclosureError, match=r"after 16 steps the relative gap is .*max_steps \(now 20\)"):
        mgig.enclose(np.random.default_rng(17), 2.0, np.eye(2), 1e6 * np.eye(2), max_steps=20)
    assert issubclass(mgig.EnclosureError, ArithmeticError)


def test_many_steps_are_single_steps_in_a_row():
    rng, X = np.random.default_rng(18), np.eye(3)
    many = mgig.step(np.random.default_rng(18), X, 2.0, B3, np.eye(3), steps=3)
    for _ in range(3):
        X = mgig.step(rng, X, 2.0, B3, np.eye(3))
    np.testing.assert_array_equal(many, X)
    np.testing.assert_array_equal(X, X.T)


@pytest.mark.parametrize("size", [1e-120, 1e-12, 1e12, 1e120])
@pytest.mark.parametrize("order", [1.001, 500.0])
def test_extremes_are_finite(size, order):
    """Rows of G from nothing to enormous, without a warning, and positive definite throughout."""
    stretch = np.array([1.0, np.sqrt(size), 0.0])
    G = B3 * np.outer(stretch, stretch)
    X = mgig.step(np.random.default_rng(19), np.eye(3), order, B3, G, steps=20)
    unit = 1.0 / np.sqrt(np.diag(X))
    assert np.all(np.isfinite(X))
    assert np.linalg.eigvalsh(X * np.outer(unit, unit)).min() > 0
    assert np.isfinite(mgig.log_density(X, order, B3, G))


def test_equivariance_under_rescaling():
    """Stretching the coordinates stretches the draw, to rounding, over 40 orders of magnitude of G."""
    stretch = np.diag([1.0, 1e-10, 1e10])
    G = np.array([[2.0, 0.5, 0.0], [0.5, 1.0, 0.2], [0.0, 0.2, 3.0]])
    shrink = np.linalg.inv(stretch)
    plain = mgig.draw(np.random.default_rng(20), 3.0, B3, G)
    stretched = mgig.draw(np.random.default_rng(20), 3.0, shrink @ B3 @ shrink, stretch @ G @ stretch)
    np.testing.assert_allclose(shrink @ stretched @ shrink, plain, rtol=1e-8)


@pytest.mark.parametrize("order", [1.0, -1.0, 0.0, np.nan])
def test_refuses_an_order_without_a_law(order):
    with pytest.raises(ValueError, match=r"needs \|order\| > 1.0"):
        mgig.draw(np.random.default_rng(0), order, np.eye(3), np.eye(3))


def test_refuses_matrices_without_a_law():
    rng = np.random.default_rng(0)
    with pytest.raises(ValueError, match="matrix B"):
        mgig.step(rng, np.eye(2), 2.0, np.diag([1.0, 0.0]), np.eye(2))
    with pytest.raises(ValueError, match="G must be"):
        mgig.step(rng, np.eye(2), 2.0, np.eye(2), np.diag([1.0, -1.0]))
    with pytest.raises(ValueError, match="MGIG: X"):
        mgig.step(rng, -np.eye(2), 2.0, np.eye(2), np.eye(2))
