"""The horseshoe's conditionals, exactly: against its density as tests write it, and by quadrature."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import integrate, stats

from markovblanket.contracts import ChainState
from markovblanket.model.scatter import from_columns
from markovblanket.priors import Horseshoe, _horseshoe_scales, _horseshoe_small_entries, horseshoe
from statistical import reference
from statistical.reference import HorseshoeScales, Theta

GIVEN = {"scale": 0.3, "shape": 2.5, "rate": 1.7}
PRIORS = {
    "learned": (Horseshoe(**GIVEN), HorseshoeScales(**GIVEN)),
    "given slab": (Horseshoe(scale=0.3, slab=0.8), HorseshoeScales(scale=0.3, slab=0.8)),
    "no slab": (Horseshoe(scale=0.3, slab=math.inf), HorseshoeScales(scale=0.3, slab=math.inf)),
}


def log_joint(law, W12, T, hyper):
    """Log density of ``(W12, T, hyper)``: normals times the mixture."""
    normals = stats.norm.logpdf(W12, scale=np.sqrt(T)).sum()
    return float(normals + law.log_density(T[None], {name: np.array([v]) for name, v in hyper.items()})[0])


@pytest.mark.parametrize("slab", [0.01, 1.0, 1e4, math.inf])
@pytest.mark.parametrize("w", [1e-9, 1e-3, 0.05, 0.1, 0.3, 2.0])
def test_local_scales_follow_their_density(w, slab):
    """``N(w; 0, t(s)) p(s | tau)`` integrated on a fine grid of ``log s``; false alarm 1e-7 each."""
    tau, rng = 0.1, np.random.default_rng([int(1e9 * w), 7])
    s = _horseshoe_scales.draw(rng, np.full((1, 20_000), w), tau, slab)[0]
    x = np.linspace(math.log(w * w) - 8, 60, 400_001)
    t = 1 / (np.exp(-x) + 1 / slab)
    log_density = stats.norm.logpdf(w, scale=np.sqrt(t)) + 0.5 * x - np.logaddexp(2 * math.log(tau), x)
    cdf = integrate.cumulative_trapezoid(np.exp(log_density - log_density.max()), x, initial=0)
    assert stats.kstest(np.log(s), lambda value: np.interp(value, x, cdf / cdf[-1])).pvalue > 1e-7


def test_scales_of_any_entry_are_positive_and_finite():
    W12 = np.array([[0.0, 1e-300, 1e-160, 1e-20, 1e-3, 1.0, 1e3, 1e6]])
    rng = np.random.default_rng(1)
    for prior, _ in PRIORS.values():
        for tau in (1e-12, 1e-3, 1e3):
            T, hyper = prior.draw_scales(rng, W12, {"tau": tau, "slab": 0.5})
            assert ((T > 0) & np.isfinite(T)).all()
            assert all(0 < value < math.inf for value in hyper.values())


def test_sum_of_logarithms():
    s = 10.0 ** np.random.default_rng(2).uniform(-30, 30, (7, 300))
    for x in (1e-12, 1.0, 1e9):
        assert _horseshoe_scales.sum_log(s, x) == pytest.approx(np.log1p(s / x).sum(), rel=1e-12)


class Ear:
    """Stands in for the slice step: keeps the log densities it is handed, and moves as it was told."""

    def __init__(self, move=0.0):
        self.heard, self.move = [], move

    def __call__(self, rng, x, log_density, width):
        self.heard.append((x, log_density))
        return x + self.move


@pytest.mark.parametrize("name", PRIORS)
def test_hyperparameters_have_the_conditionals_of_the_joint_density(name, monkeypatch):
    """Given s and W12; the joint density is in t, so ``dt/ds = (t/s)^2`` comes with a slab that moves."""
    (prior, law), rng, ear = PRIORS[name], np.random.default_rng(3), Ear()
    monkeypatch.setattr(horseshoe.slice, "step", ear)
    W12, hyper = rng.standard_normal((2, 3)), {"tau": 0.4} | ({} if prior.slab else {"slab": 0.9})
    T, _ = prior.draw_scales(rng, W12, hyper)
    slab = prior.slab or 0.9
    s = 1 / (1 / T - 1 / slab)

    def density(tau, slab):
        t = 1 / (1 / s + 1 / slab)
        moved = {"tau": tau} | ({} if prior.slab else {"slab": slab})
        return log_joint(law, W12, t, moved) + 2 * np.log(t / s).sum() + math.log(tau) + math.log(slab)

    slab = slab if slab < math.inf else 1e300
    expected = [lambda x: density(math.exp(x), slab), lambda x: density(0.4, math.exp(x))]
    assert len(ear.heard) == (1 if prior.slab else 2)
    for (x, found), truth in zip(ear.heard, expected, strict=False):
        for move in (-1.0, 0.5, 3.0):
            assert found(x + move) - found(x) == pytest.approx(truth(x + move) - truth(x), rel=1e-8)


@pytest.mark.parametrize("name", ["learned", "no slab"])
def test_common_scale_has_the_conditional_of_the_joint_density(name, monkeypatch):
    """Along ``(e^u W12, e^2u T, e^u tau, e^2u slab)`` with the Jacobian, ``3pq + 1`` powers, and 2 more."""
    (prior, law), rng, ear = PRIORS[name], np.random.default_rng(4), Ear()
    monkeypatch.setattr("markovblanket.priors.scale_mixture.slice.step", ear)
    hyper = {"tau": 0.4} | ({} if prior.slab else {"slab": 0.9})
    W12, T = rng.standard_normal((2, 3)), rng.uniform(0.1, 0.8, (2, 3))
    prior.draw_factor(rng, hyper, linear=1.3, quadratic=2.1)
    ((_, found),) = ear.heard

    def truth(u):
        c = math.exp(u)
        moved = {name: value * c ** {"tau": 1, "slab": 2}[name] for name, value in hyper.items()}
        powers = 3 * W12.size + (1 if prior.slab else 3)
        return log_joint(law, c * W12, c * c * T, moved) + powers * u - 1.3 * c - 0.5 * 2.1 * c * c

    for u in (-1.0, 0.5, 2.0):
        assert found(u) - found(0.0) == pytest.approx(truth(u) - truth(0.0), rel=1e-8)


@pytest.mark.parametrize("name", PRIORS)
def test_joint_move_of_tau_and_small_entries_has_the_conditional_of_the_joint_density(name, monkeypatch):
    """The joint density with the data, times the probability of this choice of free entries, and the Jacobian."""
    (prior, law), rng = PRIORS[name], np.random.default_rng(6)
    X1, X2, ear = rng.standard_normal((9, 2)), 5 * rng.standard_normal((9, 8)), Ear(math.log(2))
    monkeypatch.setattr(_horseshoe_small_entries.slice, "step", ear)
    Z, hyper = rng.standard_normal((5, 2)), {"tau": 0.4} | ({} if prior.slab else {"slab": 0.9})
    one = ChainState(Z.T @ Z, rng.standard_normal((2, 8)), 10.0 ** rng.uniform(-3, -0.1, (2, 8)), hyper)
    other = prior.draw_jointly(rng, one, from_columns(X1, X2))
    free = other.W12 != one.W12
    assert 0 < free.sum() < free.size
    variance = 1 / np.outer(np.diag(np.linalg.inv(one.W11)), np.diag(X2.T @ X2) + 1)

    def moved(u):
        s = 1 / (1 / one.T - 1 / (prior.slab or 0.9)) * np.where(free, math.exp(2 * u), 1)
        W12, T = one.W12 * np.where(free, math.exp(u), 1), 1 / (1 / s + 1 / (prior.slab or 0.9))
        return s, ChainState(one.W11, W12, T, {**hyper, "tau": 0.4 * math.exp(u)})

    def truth(u):
        s, state = moved(u)
        theta = Theta(
            state.W11[None], state.W12[None], state.T[None], {k: np.array([v]) for k, v in state.hyper.items()}
        )
        S11, S12, S22 = X1.T @ X1, X1.T @ X2, X2.T @ X2
        choice = -np.log1p(s / (3 * variance))[free].sum() + 2 * np.log(state.T / s).sum()
        return reference.log_joint(theta, S11[None], S12[None], S22, 9, law)[0] + choice + (3 * free.sum() + 1) * u

    ((_, found),) = ear.heard
    for u in (-1.0, 0.5, 2.0):
        assert found(u) - found(0.0) == pytest.approx(truth(u) - truth(0.0), rel=1e-8)
    for name in ("W12", "T"):
        np.testing.assert_allclose(getattr(other, name), getattr(moved(math.log(2))[1], name), rtol=1e-10)
    assert other.hyper == pytest.approx({**hyper, "tau": 0.8})


@pytest.mark.parametrize("name", PRIORS)
def test_repeated_draws_find_the_marginal_law_of_tau(name):
    """``tau | W12`` by quadrature over every lambda; 600 thinned draws, false alarm 1e-7."""
    (prior, _), rng = PRIORS[name], np.random.default_rng(5)
    W12, hyper, draws = np.array([[0.02, -0.3, 1.1, 0.004]]), {"tau": 0.1, "slab": 0.9}, []
    for k in range(6000):
        _, drawn = prior.draw_scales(rng, W12, hyper)
        hyper = {**hyper, "tau": drawn["tau"]}  # the slab held, learned or not
        draws += [drawn["tau"]] if k % 10 == 9 else []
    x, log_s = np.linspace(-12, 6, 400), np.linspace(-60, 40, 4000)
    t = 1 / (np.exp(-log_s) + 1 / (prior.slab or 0.9))
    normal = stats.norm.pdf(W12.T, scale=np.sqrt(t))
    mixing = np.exp(0.5 * log_s + x[:, None] - np.logaddexp(2 * x[:, None], log_s))
    entries = integrate.trapezoid(normal[:, None] * mixing, log_s, axis=-1)
    density = entries.prod(axis=0) * np.exp(x) / (0.3**2 + np.exp(2 * x))
    cdf = integrate.cumulative_trapezoid(density, x, initial=0)
    assert stats.kstest(np.log(draws), lambda value: np.interp(value, x, cdf / cdf[-1])).pvalue > 1e-7


def test_scale_is_where_the_expected_number_of_edges_escapes():
    p, q, n = 3, 40, 150
    scale = Horseshoe(edges=7).for_data(p, q, n).scale
    angle = (np.arange(100_000) + 0.5) * math.pi / 200_000  # lambda = tan(angle) is half-Cauchy
    escaped = n * (scale * np.tan(angle)) ** 2
    assert p * q * (escaped / (1 + escaped)).mean() == pytest.approx(7, rel=1e-4)
    assert Horseshoe(edges=7, scale=0.2).for_data(p, q, n).scale == 0.2
    assert Horseshoe().for_data(p, q, n) == Horseshoe()


def test_a_number_of_edges_needs_data_that_can_have_them():
    with pytest.raises(ValueError, match="less than the number of entries, 2 x 3"):
        Horseshoe(edges=6).for_data(2, 3, 10)
    with pytest.raises(ValueError, match="for_data"):
        Horseshoe(edges=2).draw_scales(np.random.default_rng(0), np.ones((2, 3)), {"tau": 0.1, "slab": 1.0})


@pytest.mark.parametrize(
    "wrong", [{"edges": 0}, {"scale": -1.0}, {"slab": 0.0}, {"shape": math.nan}, {"rate": "1"}]
)
def test_what_is_no_law_is_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Horseshoe(**wrong)
