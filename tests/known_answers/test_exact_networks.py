"""The exact answers for small networks against themselves, against closed forms, and against plain simulation.

Numerical answers carry their own standard error; where two of them are compared, five of its units are allowed
(it comes from eight scrambles, so it is itself uncertain by a quarter), and for three digits in an inclusion
probability a difference of ``DIGITS``. Simulations are allowed five standard errors: with fewer than 200
comparisons, a false alarm once in 10 000 choices of the seeds, which are fixed.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import gammaln, multigammaln

from known_answers.exact import Array, Data, FlatPrior, Quadrature, panels
from known_answers.exact_networks import Exact, block, by_class, network, pairs
from known_answers.small_networks import SMALL_CASES, SmallCase, correlated, scatter

DIGITS = 5e-4
NETWORKS = [case for case in SMALL_CASES if case.whole]
cases = pytest.mark.parametrize("case", SMALL_CASES, ids=str)
networks = pytest.mark.parametrize("case", NETWORKS, ids=str)
FEW_ROWS = scatter((0.6, 0.5, -0.3, 0.1), (-0.4, -0.5, 0.7, 0.4))  # weak enough for simulation from the prior
FLAT = 1e8  # a slab so wide that only the likelihood is left: an error of the order of 1 / FLAT


def assert_equal(a: Exact, b: Exact) -> None:
    """Both with their errors, and to the digits promised."""
    assert (np.abs(a.inclusion - b.inclusion) <= DIGITS).all()
    for x, y in (
        (np.abs(a.inclusion - b.inclusion), np.hypot(a.inclusion_error, b.inclusion_error)),
        (np.abs(a.mean - b.mean), np.hypot(a.mean_error, b.mean_error)),
        (np.abs(a.log_evidence - b.log_evidence), np.hypot(a.log_evidence_error, b.log_evidence_error)),
    ):
        assert (x <= 5 * y + 1e-7).all()  # 1e-7: an inclusion of 1 - 1e-9 has an error of 1e-12, and rounding


@cases
def test_cases_are_exact_and_tell_something(case: SmallCase) -> None:
    """Five errors are within three digits; means to 0.1 % of the largest; something is undecided."""
    exact, inside = case.exact, ~np.eye(case.P, case.d, dtype=bool)
    assert (5 * exact.inclusion_error <= DIGITS).all()
    assert (exact.mean_error <= 1e-3 * np.abs(exact.mean).max()).all()
    assert exact.inclusion.shape == exact.mean.shape == (case.P, case.d)
    assert np.abs(exact.inclusion[inside] - 0.5).min() < 0.35
    np.testing.assert_array_equal(np.diag(exact.inclusion), 0)
    by_graph = np.einsum("g,gij->ij", exact.probability, exact.graphs)
    np.testing.assert_allclose(exact.inclusion, by_graph, atol=1e-12)  # rounding
    np.testing.assert_allclose(case.X.T @ case.X, case.S, atol=1e-12)
    assert case.X.shape == (case.n, case.d)


def test_cases_can_tell_wrong_models() -> None:
    """A pivot's power off by one (the same as two rows more) or classes swapped: 0.02 in a mean or an inclusion.

    A sampler's run of 10 000 independent draws has errors of 0.005 or less in the inclusion probabilities.
    """
    for case in SMALL_CASES:
        wrong = [replace(case, n=case.n + 2)]
        if case.pi[0] != case.pi[1]:
            wrong.append(replace(case, pi=case.pi[::-1], v=case.v[::-1]))
        for other in wrong:
            answer = other.solve(log2=6, scrambles=2)
            off = max(np.abs(getattr(answer, x) - getattr(case.exact, x)).max() for x in ("inclusion", "mean"))
            assert off > 0.02, case.name


def test_errors_are_honest() -> None:
    """Runs with a sixteenth of the points against the full ones, in units of their errors.

    Student's law with seven degrees of freedom has a root mean square of 1.2; entries of a case move together,
    so anything from half to twice is allowed, and one in twenty beyond three.
    """
    z = []
    for case in SMALL_CASES:
        coarse = case.solve(log2=6)
        a = np.triu(coarse.inclusion_error > 1e-12, 1)  # a certain edge has rounding errors alone
        b = np.triu(np.ones_like(a))
        z.append((coarse.inclusion - case.exact.inclusion)[a] / coarse.inclusion_error[a])
        z.append((coarse.mean - case.exact.mean)[b] / coarse.mean_error[b])
    distance = np.abs(np.concatenate(z))
    assert 0.5 < np.sqrt(np.mean(distance**2)) < 2
    assert (distance > 3).mean() < 0.05


@networks
def test_another_column_last(case: SmallCase) -> None:
    """Another variable's column in closed form: another integral, with the same answer for every graph."""
    assert_equal(case.solve(last=0, log2=9), case.exact)


@pytest.mark.slow
@networks
@pytest.mark.parametrize("last", range(3))
def test_every_column_last(case: SmallCase, last: int) -> None:
    """Every column, with four times the points."""
    assert_equal(case.solve(last=last, log2=12), case.exact)


def test_variables_in_another_order() -> None:
    """With a value of its own for every pair, order must not matter: the block's and the rest's."""
    rng = np.random.default_rng(3)
    S = correlated(20, 4, r01=0.4, r02=0.3, r13=-0.4, r23=0.3)
    pi, v = (np.triu(rng.uniform(0.2, 0.8, (4, 4)), 1) for _ in range(2))
    pi, v = pi + pi.T, v + v.T + np.eye(4)
    order = [1, 0, 3, 2]
    at, part = np.ix_(order, order), np.ix_(order[:2], order)
    for a, b, moved in (
        (network(20, S, pi, v, log2=7), network(20, S[at], pi[at], v[at], log2=7), at),
        (block(20, S, 2, pi, v, log2=7), block(20, S[at], 2, pi[at], v[at], log2=7), part),
    ):
        both = np.hypot(a.inclusion_error[moved], b.inclusion_error)
        assert (np.abs(a.inclusion[moved] - b.inclusion) <= 5 * both).all()
        assert (both < DIGITS).all()
        assert (np.abs(a.mean[moved] - b.mean) <= 5 * np.hypot(a.mean_error[moved], b.mean_error)).all()


# Closed forms


def test_no_edges() -> None:
    """Every diagonal entry is gamma; and the evidence of the graph without edges, in a network that allows all."""
    S, n = SMALL_CASES[3].S, SMALL_CASES[3].n
    shape, rate = n / 2 + 1, (np.diag(S) + 1) / 2
    alone = network(n, S, 0.0, 1.0)
    assert len(alone.graphs) == 1
    np.testing.assert_allclose(alone.mean, np.diag(shape / rate), atol=5 * alone.mean_error.max())
    known = (gammaln(shape) - shape * np.log(rate)).sum()
    exact = SMALL_CASES[3].exact
    assert not exact.graphs[0].any()
    assert abs(exact.log_evidence[0] - known - 6 * np.log(0.7)) <= 5 * exact.log_evidence_error[0]


def test_all_edges_and_a_flat_slab() -> None:
    """A Wishart law, with its normalising constant."""
    n, d, S = 7, 4, FEW_ROWS
    exact, wishart = network(n, S, 1.0, FLAT), FlatPrior.of(Data(n, S, d))
    df = n + d + 1
    known = df * d / 2 * np.log(2) - df / 2 * np.linalg.slogdet(S + np.eye(d))[1] + multigammaln(df / 2, d)
    assert abs(exact.log_evidence[0] - known + 3 * np.log(2 * np.pi * FLAT)) <= 5 * exact.log_evidence_error[0]
    np.testing.assert_array_less(np.abs(exact.mean - wishart.df * wishart.scale), 5 * exact.mean_error + 1e-6)


@pytest.mark.parametrize("P", [1, 2, 3])
def test_all_edges_and_a_flat_slab_with_a_rest(P: int) -> None:
    """The same law's first P rows, whatever is outside the block."""
    exact, wishart = block(7, FEW_ROWS, P, 1.0, FLAT), FlatPrior.of(Data(7, FEW_ROWS, P))
    known = (wishart.df * wishart.scale)[:P]
    np.testing.assert_array_less(np.abs(exact.mean - known), 5 * exact.mean_error + 1e-6)


def test_two_separate_pairs() -> None:
    """The evidence of the graph with edges 0 - 1 and 2 - 3 alone is that of the two pairs, each on its own."""
    case = NETWORKS[3]
    wanted = np.zeros((4, 4), bool)
    wanted[[0, 1, 2, 3], [1, 0, 3, 2]] = True
    at = int(np.flatnonzero((case.exact.graphs == wanted).all(axis=(1, 2)))[0])
    known = 4 * np.log(1 - case.pi[0])
    for pair in (slice(0, 2), slice(2, 4)):
        known += network(case.n, case.S[pair, pair], case.pi[0], case.v[0]).log_evidence[1]
    assert abs(case.exact.log_evidence[at] - known) <= 5 * case.exact.log_evidence_error[at]


# Product rules; the panels leave less than 1e-6


def test_a_pair_by_brute_force() -> None:
    """Two variables, three dimensions, nothing integrated in closed form, both graphs."""
    n, S, pi, v = 4, correlated(4, 2, r01=0.6), 0.3, 0.7
    u, volume_u = panels(np.linspace(-9.0, 4.0, 7), 16)
    x, volume_x = panels(np.linspace(-7.0, 7.0, 7), 16)
    a, c = np.exp(u)[:, None, None], np.exp(u)[:, None]
    r = np.tanh(x)
    w = r * np.sqrt(a * c)

    def log_density(w: Array, r: Array) -> Array:
        density = n / 2 * np.log(a * c * (1 - r**2)) - (a * (S[0, 0] + 1) + c * (S[1, 1] + 1)) / 2 - w * S[0, 1]
        return np.asarray(density + np.log(a * c))

    volume = volume_u[:, None, None] * volume_u[:, None] * volume_x * np.sqrt(a * c) * (1 - r**2)
    there = pi * np.exp(log_density(w, r) - w**2 / (2 * v)) / np.sqrt(2 * np.pi * v) * volume
    absent = (1 - pi) * np.exp(log_density(0 * a, 0 * c)) * volume_u[:, None, None] * volume_u[:, None]
    total = there.sum() + absent.sum()
    exact = network(n, S, pi, v)
    assert abs(exact.inclusion[0, 1] - there.sum() / total) < 1e-5 + 5 * exact.inclusion_error[0, 1]
    for (i, k), known in {
        (0, 1): (there * w).sum() / total,
        (0, 0): ((there * a).sum() + (absent * a).sum()) / total,
        (1, 1): ((there * c).sum() + (absent * c).sum()) / total,
    }.items():
        assert abs(exact.mean[i, k] - known) < 1e-5 + 5 * exact.mean_error[i, k]


def product_rule(n: float, S: Array, pi: Array, v: Array) -> tuple[Array, Array]:
    """Inclusion probabilities and means of rows 0 and 1 of three variables, by a product rule for W11.

    The third column in closed form, with the inverse of a 2 x 2 matrix written out.
    """
    u, volume_u = panels(np.linspace(-9.0, 4.0, 7), 12)
    x, volume_x = panels(np.linspace(-7.0, 7.0, 9), 12)
    a, c = np.exp(u)[:, None, None], np.exp(u)[:, None]
    b, s = S[2, 2] + 1, S[:2, 2]
    total, inclusion, mean = 0.0, np.zeros((2, 3)), np.zeros((2, 3))
    for edge in (False, True):
        r = np.tanh(x) if edge else np.zeros(1)
        w = r * np.sqrt(a * c)
        det = a * c * (1 - r**2)
        f = n / 2 * np.log(det) - (a * (S[0, 0] + 1) + c * (S[1, 1] + 1)) / 2 - w * S[0, 1] + np.log(a * c)
        volume = volume_u[:, None, None] * volume_u[:, None] * np.ones_like(r)
        if edge:
            f = f - w**2 / (2 * v[0, 1]) + np.log(a * c) / 2 - np.log(2 * np.pi * v[0, 1]) / 2
            volume = volume * volume_x * (1 - r**2)
        q00, q11, q01 = b * c / det + 1 / v[0, 2], b * a / det + 1 / v[1, 2], -b * w / det
        D = q00 * q11 - q01**2
        zero = np.zeros_like(D)
        column = [  # integral over the third column, mean of w02, mean of w12
            (zero + 1, zero, zero),
            (np.exp(s[0] ** 2 / q00 / 2) / np.sqrt(v[0, 2] * q00), -s[0] / q00, zero),
            (np.exp(s[1] ** 2 / q11 / 2) / np.sqrt(v[1, 2] * q11), zero, -s[1] / q11),
            (
                np.exp((s[0] ** 2 * q11 - 2 * s[0] * s[1] * q01 + s[1] ** 2 * q00) / D / 2)
                / np.sqrt(v[0, 2] * v[1, 2] * D),
                -(q11 * s[0] - q01 * s[1]) / D,
                -(q00 * s[1] - q01 * s[0]) / D,
            ),
        ]
        for k, (integral, m0, m1) in enumerate(column):
            there = np.array([edge, k in (1, 3), k in (2, 3)])
            prior = np.where(there, pi[[0, 0, 1], [1, 2, 2]], 1 - pi[[0, 0, 1], [1, 2, 2]]).prod()
            weight = prior * np.exp(f) * integral * volume
            total += weight.sum()
            inclusion += weight.sum() * np.array([[0, there[0], there[1]], [there[0], 0, there[2]]])
            mean += np.array([[(weight * y).sum() for y in row] for row in ((a, w, m0), (w, c, m1))])
    return inclusion / total, mean / total


@pytest.mark.parametrize("case", [SMALL_CASES[2], SMALL_CASES[6]], ids=str)
def test_three_variables_by_a_product_rule(case: SmallCase) -> None:
    """Once as a whole network, once as two variables and a rest of one, which is the same law of their rows."""
    pi, v = by_class(3, case.query, *case.pi), by_class(3, case.query, *case.v)
    inclusion, mean = product_rule(case.n, case.S, pi, v)
    assert (np.abs(case.exact.inclusion[:2] - inclusion) < 1e-5 + 5 * case.exact.inclusion_error[:2]).all()
    assert (np.abs(case.exact.mean[:2] - mean) < 1e-5 + 5 * case.exact.mean_error[:2]).all()


def test_one_variable_by_a_product_rule() -> None:
    """One variable and a rest of two: one dimension and four patterns, the rows of W12 as in ``exact.py``."""
    n, S, pi, v = 4, FEW_ROWS[:3, :3], 0.4, 0.7
    u, volume = panels(np.linspace(-12.0, 5.0, 9))
    x, inclusion, means, total = np.exp(u), np.zeros(2), np.zeros(3), 0.0
    for there in ([], [0], [1], [0, 1]):
        s, A = S[0, 1:][there], (S[1:, 1:] + np.eye(2))[np.ix_(there, there)]
        C = A / x[:, None, None] + np.eye(len(s)) / v
        fit = np.linalg.solve(C, np.broadcast_to(s[:, None], (len(x), len(s), 1)))[:, :, 0]
        f = (n / 2 + 1) * u - (S[0, 0] + 1) * x / 2 + fit @ s / 2 - np.log(np.linalg.det(v * C)) / 2
        weight = pi ** len(s) * (1 - pi) ** (2 - len(s)) * np.exp(f) * volume
        law = Quadrature({}, weight)
        total += law.mean(np.ones_like(x))
        inclusion[there] += law.mean(np.ones_like(x))
        means[0] += law.mean(x)
        means[[1 + k for k in there]] -= weight @ fit
    exact = block(n, S, 1, pi, v)
    assert (np.abs(exact.inclusion[0, 1:] - inclusion / total) < 1e-6 + 5 * exact.inclusion_error[0, 1:]).all()
    assert (np.abs(exact.mean[0] - means / total) < 1e-6 + 5 * exact.mean_error[0]).all()


# Simulation from the definition


def rejection(seed: int, size: int, n: float, S: Array, P: int, pi: Array, v: Array) -> tuple[Array, Array]:
    """Independent draws of ``(W11, W12)`` and what is not zero in them, nothing integrated.

    Diagonal entries from ``w^(n/2) exp(-b w / 2)``; the others from spike and slab times ``exp(-s w)``, that is,
    with odds times ``exp(v s^2 / 2)`` and a slab around ``-v s``. What is left of the density is at most one, and
    the probability of keeping the draw: ``1{W11 > 0} (|W11| / prod of diagonal)^(n/2) exp -1/2 tr(U W12 A W21)``.
    """
    rng, d = np.random.default_rng(seed), len(S)
    W = np.zeros((size, d, d))
    for i in range(P):
        W[:, i, i] = rng.gamma(n / 2 + 1, 2 / (S[i, i] + 1), size)
        for k in range(i + 1, d):
            odds = pi[i, k] / (1 - pi[i, k]) * np.exp(v[i, k] * S[i, k] ** 2 / 2)
            slab = rng.normal(-v[i, k] * S[i, k], np.sqrt(v[i, k]), size)
            W[:, i, k] = W[:, k, i] = np.where(rng.random(size) < odds / (1 + odds), slab, 0)
    minors = [np.linalg.det(W[:, :k, :k]) for k in range(1, P + 1)]
    positive = np.min(minors, axis=0) > 0
    W, det = W[positive, :P], minors[-1][positive]
    log_keep = n / 2 * np.log(det / np.diagonal(W, axis1=1, axis2=2).prod(1))
    W12, A = W[:, :, P:], S[P:, P:] + np.eye(d - P)
    log_keep -= np.einsum("kij,jl,kil->k", np.linalg.solve(W[:, :, :P], W12), A, W12) / 2
    W = W[np.log(rng.random(len(W))) < log_keep]
    return W, (W != 0) & ~np.eye(P, d, dtype=bool)


def assert_simulated(exact: Exact, W: Array, there: Array) -> None:
    """Five standard errors of the simulation, and those of the answer itself."""
    assert len(W) > 1000
    for known, error, draws in (
        (exact.inclusion, exact.inclusion_error, there.astype(float)),
        (exact.mean, exact.mean_error, W),
    ):
        bound = 5 * np.hypot(draws.std(0) / np.sqrt(len(draws)), error)
        assert (np.abs(draws.mean(0) - known) <= bound).all()


PRIOR = (by_class(4, 1, 0.3, 0.6), by_class(4, 1, 1.5, 0.5))
SIMULATIONS = {
    "prior": (0, np.zeros((4, 4))),
    "no scatter": (3, np.zeros((4, 4))),
    "two rows": (2, FEW_ROWS),
}


@pytest.mark.parametrize(("name", "P"), [("prior", 4), ("no scatter", 2), ("two rows", 3), ("two rows", 4)])
def test_simulated_from_the_definition(name: str, P: int) -> None:
    """Four variables in two classes; standard errors of 0.001 to 0.003 in the inclusion probabilities."""
    n, S = SIMULATIONS[name]
    exact = network(n, S, *PRIOR, log2=8) if P == 4 else block(n, S, P, *PRIOR, log2=8)
    assert_simulated(exact, *rejection(P, 200_000, n, S, P, *PRIOR))


@pytest.mark.slow
@pytest.mark.parametrize("P", [2, 3, 4])
@pytest.mark.parametrize("name", SIMULATIONS)
def test_simulated_at_length(name: str, P: int) -> None:
    """All, with twenty times the draws: standard errors of 0.0003 to 0.0006."""
    n, S = SIMULATIONS[name]
    exact = network(n, S, *PRIOR, log2=12) if P == 4 else block(n, S, P, *PRIOR, log2=12)
    parts = [rejection(100 * P + k, 400_000, n, S, P, *PRIOR) for k in range(10)]
    assert_simulated(exact, *(np.concatenate(x) for x in zip(*parts, strict=True)))


def test_simulation_notices_a_wrong_model() -> None:
    """The same draws do not pass for another power of the determinant, nor for the classes swapped."""
    n, S = SIMULATIONS["two rows"]
    draws = rejection(4, 100_000, n, S, 4, *PRIOR)
    swapped = (by_class(4, 1, 0.6, 0.3), by_class(4, 1, 0.5, 1.5))
    for wrong in (network(n + 1, S, *PRIOR, log2=7), network(n, S, *swapped, log2=7)):
        with pytest.raises(AssertionError):
            assert_simulated(wrong, *draws)


def test_pairs_and_classes() -> None:
    """One value for all, or one for the pairs that touch the query."""
    np.testing.assert_array_equal(pairs(2, 0.5), [[0.5, 0.5], [0.5, 0.5]])
    np.testing.assert_array_equal(by_class(3, 1, 1.0, 2.0), [[1, 1, 1], [1, 2, 2], [1, 2, 2]])
