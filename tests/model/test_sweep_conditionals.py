"""The sweep, exactly: every conditional it draws from is a slice of the joint law, to rounding.

The parameters of a conditional are taken from the code by listening at the door of the variate that draws it.
Its log density then has to differ between two states by as much as the joint log density does.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from markovblanket.contracts import ChainState, Noise, Problem, Solver
from markovblanket.model import sweep
from markovblanket.priors import Laplace, Normal, laplace, scale_mixture
from markovblanket.solvers import CrossPrecision, Dense, Dual
from markovblanket.variates import mgig
from statistical.reference import Array, ExponentialScales
from statistical.settings import (
    GIVEN,
    GIVEN_LAW,
    LEARNED,
    LEARNED_LAW,
    NORMAL_LAW,
    SIZES,
    Listener,
    Setting,
    make_setting,
    rescaled,
)


@pytest.fixture(params=SIZES, ids=str)
def setting(request: pytest.FixtureRequest) -> Setting:
    return make_setting(request.param)


class FixedGamma(np.random.Generator):
    """A generator whose gamma variates are all 1, and that tells their shape."""

    heard: float

    def gamma(self, shape: float) -> float:
        self.heard = shape
        return 1.0


@pytest.mark.parametrize(("prior", "law"), [(GIVEN, GIVEN_LAW), (LEARNED, LEARNED_LAW)], ids=["given", "learned"])
def test_scales_are_drawn_from_their_conditional(
    setting: Setting, prior: Laplace, law: ExponentialScales, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, other = setting.one, setting.other
    listener = Listener(1 / one.T)
    monkeypatch.setattr(laplace.inverse_gaussian, "draw", listener)
    T, hyper = prior.draw_scales(np.random.default_rng(0), one.W12, one.hyper)
    np.testing.assert_allclose(T, one.T)
    [(_, mean, shape)] = listener.calls

    def log_density(T: Array) -> float:
        """Of T, from the inverse Gaussian law of ``1/T``: the Jacobian is ``1/T^2``."""
        return float((stats.invgauss.logpdf(1 / T, mean / shape, scale=shape) - 2 * np.log(T)).sum())

    gain = setting.log_joint(replace(one, T=other.T, hyper=hyper), law) - setting.log_joint(
        replace(one, hyper=hyper), law
    )
    assert log_density(other.T) - log_density(one.T) == pytest.approx(gain, rel=1e-10, abs=1e-8)


def test_rate_is_drawn_with_the_scales_integrated_out(setting: Setting) -> None:
    one, rng = setting.one, FixedGamma(np.random.PCG64(0))
    _, hyper = LEARNED.draw_scales(rng, one.W12, one.hyper)
    shape, rate = rng.heard, 1 / hyper["gamma"]
    low, high = (setting.log_without_scales(replace(one, hyper={"gamma": gamma})) for gamma in (0.3, 2.9))
    gain = stats.gamma.logpdf([0.3, 2.9], shape, scale=1 / rate) @ [-1, 1]
    assert gain == pytest.approx(high - low, rel=1e-10, abs=1e-8)


@pytest.mark.parametrize("solver", [Dense(), Dual(tolerance=1e-12)], ids=["dense", "dual"])
def test_cross_block_is_drawn_from_its_conditional(setting: Setting, solver: Solver) -> None:
    one, other, data = setting.one, setting.other, setting.scatter
    U, (p, q), m = np.linalg.inv(one.W11), one.W12.shape, len(data.F)
    C = CrossPrecision(U, one.T, data).to_dense()

    def draw(noise: Array) -> Array:
        Z1, Z2, Z3 = np.split(noise, [p * q, p * q + p * m])
        parts = Noise(Z1.reshape(p, q), Z2.reshape(p, m), Z3.reshape(p, q))
        return solver.draw(U, one.T, data, parts)[0].ravel()

    mean = draw(np.zeros(2 * p * q + p * m))
    root = np.stack([draw(unit) - mean for unit in np.eye(2 * p * q + p * m)])
    np.testing.assert_allclose(root.T @ root @ C, np.eye(p * q), atol=1e-8)

    def log_density(W12: Array) -> float:
        return float(-0.5 * (W12.ravel() - mean) @ C @ (W12.ravel() - mean))

    gain = setting.gain(W12=other.W12)
    assert log_density(other.W12) - log_density(one.W12) == pytest.approx(gain, rel=1e-10, abs=1e-8)


def test_query_block_is_drawn_from_its_conditional(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    one, other, data = setting.one, setting.other, setting.scatter
    listener = Listener(one.W11)
    monkeypatch.setattr(sweep.mgig, "step", listener)
    sweep.draw_query(np.random.default_rng(0), one.W11, sweep.row_products(one.W12, data)[0], data)
    [(_, W11, order, B, G)] = listener.calls
    assert W11 is one.W11
    gain = mgig.log_density(other.W11, order, B, G) - mgig.log_density(one.W11, order, B, G)
    assert gain == pytest.approx(setting.gain(W11=other.W11), rel=1e-10, abs=1e-8)


def test_joint_scale_is_drawn_from_its_conditional(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """``(W12, T, gamma) -> (c W12, c^2 T, gamma/c)`` has Jacobian ``c^(pq + 2pq - 1)`` against ``dc/c``."""
    one, data = setting.one, setting.scatter
    listener = Listener(np.log(1.3))
    monkeypatch.setattr(scale_mixture.slice, "step", listener)
    quadratic = np.vdot(np.linalg.inv(one.W11), sweep.row_products(one.W12, data)[0])
    c, hyper = LEARNED.draw_factor(
        np.random.default_rng(0), one.hyper, np.vdot(one.W12, data.S12), float(quadratic)
    )
    assert (c, hyper["gamma"]) == pytest.approx((1.3, one.hyper["gamma"] / 1.3))
    [(_, start, log_density)] = listener.calls
    assert start == 0.0
    for u in (-1.1, 0.4):
        c = np.exp(u)
        moved = ChainState(one.W11, c * one.W12, c * c * one.T, {"gamma": one.hyper["gamma"] / c})
        gain = setting.log_joint(moved) - setting.log_joint(one) + u * (3 * one.W12.size - 1)
        assert log_density(u) - log_density(0.0) == pytest.approx(gain, rel=1e-10, abs=1e-8)


def test_query_block_is_drawn_given_the_regression(setting: Setting, monkeypatch: pytest.MonkeyPatch) -> None:
    """``W12 = W11 Z`` follows, with Jacobian ``|W11|^q``; and what is handed on belongs to the new state."""
    (_, q), one, other = setting.one.W12.shape, setting.one, setting.other
    listener = Listener(other.W11)
    monkeypatch.setattr(sweep._interweaving, "draw", listener)
    problem = Problem(setting.scatter, LEARNED, Dense())
    products = sweep.row_products(one.W12, setting.scatter)
    moved, *handed_on = sweep.draw_with_regression(np.random.default_rng(0), one, *products, problem)
    [(_, W11, power, D, H)] = listener.calls
    assert W11 is one.W11
    np.testing.assert_allclose(np.linalg.solve(moved.W11, moved.W12), np.linalg.solve(one.W11, one.W12))
    for found, expected in zip(handed_on, sweep.row_products(moved.W12, setting.scatter), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-8, atol=1e-8)

    def log_density(W: Array) -> float:
        return float(power * np.linalg.slogdet(W)[1] - 0.5 * np.vdot(D, W) - 0.5 * np.einsum("ab,abc,ac", W, H, W))

    volume = q * (np.linalg.slogdet(moved.W11)[1] - np.linalg.slogdet(one.W11)[1])
    gain = setting.log_joint(moved) - setting.log_joint(one) + volume
    assert log_density(moved.W11) - log_density(one.W11) == pytest.approx(gain, rel=1e-10, abs=1e-8)


@pytest.mark.parametrize("name", ["normal", "given", "learned"])
def test_row_scales_are_drawn_from_their_conditional(
    setting: Setting, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``W11 -> R^1/2 W11 R^1/2``, ``W12 -> R W12`` has Jacobian ``prod r_i^((p+1)/2 + q)`` against ``dr/r``."""
    (p, q), one = setting.one.W12.shape, setting.one
    prior, log_target = {
        "normal": (Normal(0.7), lambda state: setting.log_joint(state, NORMAL_LAW)),
        "given": (GIVEN, lambda state: setting.log_without_scales(state, GIVEN_LAW)),
        "learned": (LEARNED, setting.log_without_rate),
    }[name]
    one = replace(one, T=np.full((p, q), 0.49)) if name == "normal" else one
    listener = Listener(np.full(p, 1.3))
    monkeypatch.setattr(sweep._row_scales, "draw", listener)
    products = sweep.row_products(one.W12, setting.scatter)
    sweep.draw_row_scales(np.random.default_rng(0), one, *products, Problem(setting.scatter, prior, Dense()))
    [(_, power, M, s, law)] = listener.calls

    def log_density(log_r: Array) -> float:
        root = np.exp(log_r / 2)
        return float(power * log_r.sum() - 0.5 * root @ M @ root - root**2 @ s) + law.log_density(root**2)

    for log_r in np.linspace(-0.6, 0.9, 3 * p).reshape(3, p):
        gain = log_target(rescaled(one, log_r)) - log_target(one) + log_r.sum() * ((p + 1) / 2 + q)
        assert log_density(log_r) - log_density(np.zeros(p)) == pytest.approx(gain, rel=1e-10, abs=1e-8)
