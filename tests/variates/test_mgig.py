"""MGIG: kernel and perfect sampler against laws known exactly.

Most checks use one fact. Let ``X ~ Wishart_p(df, B^-1)`` and, given X, let H have k columns ``N(0, X)``. Then
``X | H ~ MGIG_p((df - k)/2; B, H H')``, so with H drawn that way a correct draw or step given H must return
a matrix that is Wishart again and makes ``tr(H' X^-1 H)`` chi-square with pk degrees of freedom. For k < p the
matrix ``H H'`` is singular; for k much larger than ``2 order`` the law is the one of a variable explained with
``R2 = k/df``.
"""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import chi2, geninvgauss

from markovblanket.variates import generalized_inverse_gaussian as gig
from markovblanket.variates import mgig, wishart
from variates.agreement import FALSE_ALARM, p_value_of_law, p_value_of_pair, p_value_on_log_scale

B3 = np.array([[3.0, 1.2, -0.5], [1.2, 2.0, 0.4], [-0.5, 0.4, 5.0]])


def joint(rng, order, B, k):
    """``(X, H)`` from the joint law of the fact above."""
    X = wishart.draw(rng, 2 * order + k, np.linalg.inv(B))
    return X, np.linalg.cholesky(X) @ rng.standard_normal((len(B), k))


def p_values(pairs, order, B, k):
    """Each functional of the pairs (X, H) against its exact law."""
    df, S, p = 2 * order + k, np.linalg.inv(B), len(B)
    X = np.array([x for x, _ in pairs])
    a = np.linspace(-1.0, 1.0, p) + 0.3
    rng = np.random.default_rng(99)
    log_det = np.log(rng.chisquare(df - np.arange(p), size=(20_000, p))).sum(axis=1) + np.linalg.slogdet(S)[1]
    trace = np.array([np.sum(h * np.linalg.solve(x, h)) for x, h in pairs])
    return [
        p_value_of_law(np.einsum("i,nij,j->n", a, X, a), chi2(df, scale=a @ S @ a).cdf),
        p_value_of_law(1.0 / np.linalg.inv(X)[:, 0, 0], chi2(df - p + 1, scale=1.0 / B[0, 0]).cdf),
        p_value_of_pair(np.linalg.slogdet(X)[1], log_det),
        p_value_of_law(trace, chi2(p * k).cdf),
    ]


def stepped(rng, order, B, k, count, steps=1, wrong_order=None):
    """Pairs from the joint law, X moved by the kernel given H."""
    for _ in range(count):
        X, H = joint(rng, order, B, k)
        yield mgig.step(rng, X, wrong_order or order, B, H @ H.T, steps), H


@pytest.mark.parametrize(("k", "order"), [(1, 1.2), (2, 3.0), (3, 1.05), (3, 10.0), (300, 2.0)])
def test_step_leaves_the_law_invariant(k, order):
    pairs = list(stepped(np.random.default_rng(1), order, B3, k, count=1_000, steps=2))
    assert min(p_values(pairs, order, B3, k)) > FALSE_ALARM


@pytest.mark.parametrize(("k", "order"), [(1, 1.5), (3, 4.0)])
def test_draw_follows_the_law(k, order):
    rng = np.random.default_rng(2)
    pairs = []
    for _ in range(250):
        _, H = joint(rng, order, B3, k)
        pairs.append((mgig.draw(rng, order, B3, H @ H.T, tolerance=1e-4), H))
    assert min(p_values(pairs, order, B3, k)) > FALSE_ALARM


@pytest.mark.slow
@pytest.mark.parametrize(("p", "k", "order"), [(2, 1, 0.6), (3, 1, 1.2), (4, 9, 12.0), (5, 100, 30.0)])
def test_draw_and_step_with_many_samples(p, k, order):
    rng = np.random.default_rng(3)
    root = rng.standard_normal((p, p)) + 2 * np.eye(p)
    B = root @ root.T
    assert min(p_values(list(stepped(rng, order, B, k, count=10_000)), order, B, k)) > FALSE_ALARM
    pairs = []
    for _ in range(2_000):
        _, H = joint(rng, order, B, k)
        pairs.append((mgig.draw(rng, order, B, H @ H.T, tolerance=1e-5), H))
    assert min(p_values(pairs, order, B, k)) > FALSE_ALARM


def test_wrong_degrees_of_freedom_are_caught():
    """Planted bug: Wishart degrees of freedom n + 3p - 1 in place of n + p + 1."""
    p, n = 3, 20
    order, wrong = (n + p + 1) / 2, (n + 3 * p - 1) / 2
    pairs = list(stepped(np.random.default_rng(4), order, B3, 3, count=800, steps=3, wrong_order=wrong))
    assert min(p_values(pairs, order, B3, 3)) < FALSE_ALARM


def test_a_few_steps_from_a_cold_start_are_caught():
    """Planted bug: three steps of the fraction taken for a draw, at R2 = 0.99."""
    rng = np.random.default_rng(5)
    order, k = 5.0, 990
    cold, warm = [], []
    for _ in range(40):
        X, H = joint(rng, order, B3, k)
        cold.append((mgig.step(rng, 2 * order * np.linalg.inv(B3), order, B3, H @ H.T, steps=3), H))
        warm.append((mgig.step(rng, X, order, B3, H @ H.T, steps=3), H))
    assert min(p_values(cold, order, B3, k)) < FALSE_ALARM
    assert min(p_values(warm, order, B3, k)) > FALSE_ALARM


@pytest.mark.slow
def test_draws_at_high_r2_follow_the_law():
    rng = np.random.default_rng(21)
    order, k = 5.0, 990
    pairs = []
    for _ in range(60):
        _, H = joint(rng, order, B3, k)
        pairs.append((mgig.draw(rng, order, B3, H @ H.T, tolerance=1e-4), H))
    assert min(p_values(pairs, order, B3, k)) > FALSE_ALARM


def test_steps_needed_grow_with_r2():
    rng = np.random.default_rng(6)
    steps = []
    for k in [10, 90, 990]:
        H = joint(rng, 5.0, B3, k)[1]
        steps.append(np.mean([mgig.enclose(rng, 5.0, B3, H @ H.T, tolerance=1e-6).steps for _ in range(2)]))
    assert steps[0] <= 64
    assert steps[1] >= 2 * steps[0]
    assert steps[2] >= 4 * steps[1]


@pytest.mark.parametrize(
    ("order", "b", "g"), [(0.3, 1.0, 2.0), (5.0, 3.0, 40.0), (-2.0, 0.5, 3.0), (0.8, 2.0, 1e-8)]
)
def test_one_by_one_is_generalised_inverse_gaussian(order, b, g):
    rng = np.random.default_rng(7)
    B, G = np.array([[b]]), np.array([[g]])
    law = geninvgauss(order, np.sqrt(b * g), scale=np.sqrt(g / b))
    x = np.array([mgig.draw(rng, order, B, G, tolerance=1e-4)[0, 0] for _ in range(250)])
    assert p_value_on_log_scale(x, law.logpdf) > FALSE_ALARM
    start = gig.draw(rng, order, b, g, size=1_500)
    moved = np.array([mgig.step(rng, np.array([[each]]), order, B, G)[0, 0] for each in start])
    assert p_value_on_log_scale(moved, law.logpdf) > FALSE_ALARM
    difference = [
        mgig.log_density(np.array([[each]]), order, B, G) - gig.log_density(each, order, b, g) for each in x
    ]
    assert np.ptp(difference) < 1e-9


def test_without_g_the_law_is_wishart():
    G = np.zeros((3, 3))
    found = mgig.enclose(np.random.default_rng(8), 4.0, B3, G)
    assert (found.steps, found.gap) == (1, 0.0)
    rng = np.random.default_rng(9)
    X = np.array([mgig.step(rng, np.eye(3), 4.0, B3, G) for _ in range(2_000)])
    S = np.linalg.inv(B3)
    for i in range(3):
        assert p_value_of_law(X[:, i, i], chi2(8.0, scale=S[i, i]).cdf) > FALSE_ALARM


def test_rows_of_g_that_are_exactly_zero():
    """With G in one entry alone, ``1/(X^-1)_11`` is GIG and the other diagonal entries are chi-square."""
    rng = np.random.default_rng(10)
    order, g = 2.5, 30.0
    G = np.zeros((3, 3))
    G[0, 0] = g
    X = np.array([mgig.draw(rng, order, B3, G, tolerance=1e-4) for _ in range(250)])
    moved = np.array([mgig.step(rng, each, order, B3, G) for each in X])
    S = np.linalg.inv(B3)
    schur = geninvgauss(order - 1.0, np.sqrt(B3[0, 0] * g), scale=np.sqrt(g / B3[0, 0]))
    for each in (X, moved):
        assert p_value_on_log_scale(1.0 / np.linalg.inv(each)[:, 0, 0], schur.logpdf) > FALSE_ALARM
        assert p_value_of_law(each[:, 2, 2], chi2(2 * order, scale=S[2, 2]).cdf) > FALSE_ALARM


def test_square_factor_with_zero_columns_equals_the_thin_form():
    """One step from a fixed X against the k-column map with ``2 order - (p - k)`` degrees of freedom."""
    rng = np.random.default_rng(11)
    order, X = 2.2, np.diag([100.0, 400.0, 30.0])
    H = np.array([[2.0], [-1.0], [3.0]])
    S = np.linalg.inv(B3)

    def thin(df):
        W0 = wishart.draw(rng, df, np.eye(1))
        return wishart.draw(rng, 2 * order, S) + H @ np.linalg.inv(W0 + H.T @ np.linalg.inv(X) @ H) @ H.T

    square = np.array([mgig.step(rng, X, order, B3, H @ H.T) for _ in range(1_500)])
    expected = np.array([thin(2 * order - 2) for _ in range(1_500)])
    wrong = np.array([thin(2 * order) for _ in range(1_500)])
    for functional in (lambda x: x[:, 0, 2], lambda x: x[:, 1, 1], lambda x: np.linalg.slogdet(x)[1]):
        assert p_value_of_pair(functional(square), functional(expected)) > FALSE_ALARM
    assert p_value_of_pair(square[:, 2, 2], wrong[:, 2, 2]) < FALSE_ALARM


def test_inverse_follows_the_law_with_roles_exchanged():
    rng = np.random.default_rng(12)
    order, k = 3.0, 4
    pairs, drawn = [], []
    for _ in range(800):
        X, H = joint(rng, order, B3, k)
        pairs.append((np.linalg.inv(mgig.step(rng, np.linalg.inv(X), -order, H @ H.T, B3)), H))
    for _ in range(250):
        H = joint(rng, order, B3, k)[1]
        drawn.append((np.linalg.inv(mgig.draw(rng, -order, H @ H.T, B3, tolerance=1e-4)), H))
    assert min(p_values(pairs, order, B3, k) + p_values(drawn, order, B3, k)) > FALSE_ALARM


def test_densities_of_a_matrix_and_its_inverse():
    rng = np.random.default_rng(13)
    G, order = wishart.draw(rng, 4.0, np.eye(3)), 1.7
    difference = []
    for _ in range(10):
        X = wishart.draw(rng, 4.0, np.eye(3))
        jacobian = -4.0 * np.linalg.slogdet(X)[1]
        difference.append(
            mgig.log_density(X, order, B3, G) - mgig.log_density(np.linalg.inv(X), -order, G, B3) - jacobian
        )
    assert np.abs(difference).max() < 1e-8
    assert mgig.log_density(-np.eye(3), order, B3, G) == -np.inf


def cdf_by_quadrature(order, B, G, functional, points=60):
    """Distribution function of a functional of the 2 x 2 law, over a grid of Cholesky coordinates.

    Written from the formula of the density alone: ``X = L L'``, ``dX ∝ l11^2 l22 dL``.
    """
    log11, log22 = np.linspace(-3.5, 3.5, points), np.linspace(-3.5, 3.5, points)
    l11, l22 = np.exp(log11)[:, None, None], np.exp(log22)[None, :, None]
    l21 = np.linspace(-6.0, 6.0, 2 * points)
    x11, x12, x22 = (
        np.broadcast_to(x, (points, points, 2 * points)) for x in (l11**2, l11 * l21, l21**2 + l22**2)
    )
    det = (l11 * l22) ** 2
    trace = B[0, 0] * x11 + 2 * B[0, 1] * x12 + B[1, 1] * x22
    trace = trace + (G[0, 0] * x22 - 2 * G[0, 1] * x12 + G[1, 1] * x11) / det
    log_weight = (order - 1.5) * np.log(det) - trace / 2 + 3 * np.log(l11) + 2 * np.log(l22)
    weight = np.exp(log_weight - log_weight.max()).ravel()
    value = np.broadcast_to(functional(x11, x12, x22), x11.shape).ravel()
    bins = np.linspace(value[weight > 1e-9].min(), value[weight > 1e-9].max(), 400)
    mass = np.cumsum(np.histogram(value, bins, weights=weight)[0])
    return lambda x: np.interp(x, bins[1:], mass / mass[-1])


def test_two_by_two_against_quadrature():
    rng = np.random.default_rng(14)
    order, B, G = 1.8, np.array([[2.0, 0.7], [0.7, 1.0]]), np.array([[3.0, -1.0], [-1.0, 1.5]])
    X = np.array([mgig.draw(rng, order, B, G, tolerance=1e-4) for _ in range(600)])
    for functional in (
        lambda a, _, c: np.log(a + c),
        lambda a, b, c: np.log(a * c - b * b),
        lambda a, b, c: b / np.sqrt(a * c),
        lambda a, b, c: np.log(c),
    ):
        cdf = cdf_by_quadrature(order, B, G, functional)
        assert p_value_of_law(functional(X[:, 0, 0], X[:, 0, 1], X[:, 1, 1]), cdf) > FALSE_ALARM
    wrong = cdf_by_quadrature(order + 0.5, B, G, lambda a, b, c: np.log(a * c - b * b))
    assert p_value_of_law(np.linalg.slogdet(X)[1], wrong) < FALSE_ALARM


def test_enclosures_are_nested():
    """Doubling keeps the old maps: each enclosure lies inside the one before, and lower <= upper."""
    H = joint(np.random.default_rng(15), 3.0, B3, 60)[1]
    G = H @ H.T
    found = [mgig.enclose(np.random.default_rng(16), 3.0, B3, G, tolerance=10.0**-t) for t in range(11)]
    found = list({each.steps: each for each in found}.values())
    assert len(found) >= 4
    scale = np.linalg.inv(np.linalg.cholesky(found[0].upper))

    def below(one, other):
        return np.linalg.eigvalsh(scale @ (other - one) @ scale.T).min() > -1e-11

    for outer, inner in pairwise(found):
        assert outer.steps < inner.steps
        assert outer.gap > inner.gap
        assert below(outer.lower, inner.lower)
        assert below(inner.lower, inner.upper)
        assert below(inner.upper, outer.upper)
        assert below(outer.lower, found[-1].midpoint)
        assert below(found[-1].midpoint, outer.upper)
