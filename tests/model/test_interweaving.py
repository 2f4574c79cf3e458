"""``W11`` given the regression: the step leaves a law alone from which exact draws can be made."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from markovblanket.model import _interweaving
from markovblanket.variates import wishart

ALARM, POWER = 1e-7, 6.0


def law(p):
    """D, and curvatures strong enough to matter."""
    rng = np.random.default_rng(p)
    root, parts = rng.standard_normal((p + 3, p)), rng.standard_normal((p, p + 2, p))
    return root.T @ root, 0.02 * np.einsum("akb,akc->abc", parts, parts)


def exact(rng, size, p):
    """Wishart draws, accepted with the probability that the curvatures leave."""
    D, H = law(p)
    root, found = np.linalg.cholesky(np.linalg.inv(D)), []
    while len(found) < size:
        W = wishart.draw_from_factor(rng, 2 * POWER + p + 1, root)
        if -rng.standard_exponential() < -0.5 * np.einsum("ab,abc,ac", W, H, W):
            found.append(W)
    return np.stack(found)


def p_value(p, size, power=POWER, spoil=lambda D, H: (D, H)):
    """Of "the step changes no mean", over entries, their squares and the log determinant."""
    rng = np.random.default_rng(1)
    before, given = exact(rng, size, p), spoil(*law(p))
    after = np.stack([_interweaving.draw(rng, W, power, *given) for W in before])
    i = np.triu_indices(p)
    change = [f(after) - f(before) for f in (lambda W: W[:, *i], lambda W: W[:, *i] ** 2)]
    change.append((np.linalg.slogdet(after)[1] - np.linalg.slogdet(before)[1])[:, None])
    change = np.hstack(change)
    t = change.mean(axis=0) / change.std(axis=0, ddof=1) * math.sqrt(size)
    return float(2 * stats.norm.sf(np.abs(t)).min() * len(t))


@pytest.mark.parametrize("p", [1, 2, 4])
def test_the_step_leaves_its_law_alone(p):
    assert p_value(p, 8000) > ALARM


BUGS = {
    "no Jacobian": {"power": POWER - 2},
    "no curvatures": {"spoil": lambda D, H: (D, 0 * H)},
    "D twice": {"spoil": lambda D, H: (2 * D, H)},
    "off-diagonal terms of D forgotten": {"spoil": lambda D, H: (np.diag(np.diag(D)), H)},
}


@pytest.mark.parametrize("bug", BUGS)
def test_planted_bugs_are_caught(bug):
    assert p_value(2, 8000, **BUGS[bug]) < 1e-3 * ALARM


def test_it_moves_and_stays_positive_definite():
    rng, (D, H) = np.random.default_rng(0), law(4)
    W = W0 = exact(rng, 1, 4)[0]
    for _ in range(300):
        W = _interweaving.draw(rng, W, POWER, D, H)
        assert np.linalg.eigvalsh(W)[0] > 0
        np.testing.assert_array_equal(W, W.T)
    assert not np.isclose(W, W0).any()


@pytest.mark.parametrize("at", [(0, 0), (2, 1)])
def test_the_inverse_follows(at):
    (a, b), W, x = at, exact(np.random.default_rng(2), 1, 3)[0], -0.04
    U, W[a, b] = np.linalg.inv(W), W[a, b] + x
    W[b, a] = W[a, b]
    _interweaving.follow(U, a, b, x)
    np.testing.assert_allclose(U, np.linalg.inv(W), rtol=1e-9)


def test_curvatures_are_what_the_scales_make_of_the_regression():
    rng = np.random.default_rng(3)
    Z, T, W11 = rng.standard_normal((2, 5)), rng.random((2, 5)), exact(rng, 1, 2)[0]
    expected = ((W11 @ Z) ** 2 / T).sum()
    assert np.einsum("ab,abc,ac", W11, _interweaving.curvatures(Z, T), W11) == pytest.approx(expected)
