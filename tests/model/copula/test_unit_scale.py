"""One column at mean square 1 given all else: its law is that of its direction, to rounding and by simulation."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import pytest
from scipy import integrate, stats

from markovblanket.model.copula import _margins, _rest_columns, _unit_scale
from markovblanket.model.copula._margins import Levels
from markovblanket.model.copula._rest_columns import Column

ALARM = 1e-7  # per comparison
N = 6
CODES = np.array([-1, 0, 0, 1, 2, 2])
CENTRE = np.eye(N) - 1 / N


class Given(NamedTuple):
    """Precision of the cells and their linear term; rows are independent if ``M`` is zero."""

    M: np.ndarray
    g: float
    c: float
    b: np.ndarray

    @property
    def Q(self):
        return self.g * self.M + self.c * CENTRE


def setting(independent):
    rng = np.random.default_rng(5)
    A = CENTRE @ rng.standard_normal((N, 4)) * 0.7
    return Given(
        np.zeros((N, N)) if independent else A @ A.T,
        1.5,
        2.0,
        -CENTRE @ np.array([1.0, -3.0, -2.0, -0.5, 0.5, 4.0]),
    )


def directions(rng, size):
    """Uniform among the directions in which the column is centred and its levels are in order."""
    x = rng.standard_normal((40 * size, N))
    x = x[(x[:, 1:3].max(axis=1) < x[:, 3]) & (x[:, 3] < x[:, 4:].min(axis=1))]
    x -= x.mean(axis=1, keepdims=True)
    return (x / np.linalg.norm(x, axis=1, keepdims=True))[:size]


def drawn(rng, x, given):
    """The column after a step, as the package draws it."""
    margin = Levels(CODES)
    rows, edges = margin.rows, margin.edges
    if given.M.any():
        column = Column(x.copy(), given.M @ x, given.M, given.g, given.c, given.b)
        _rest_columns.draw_column(rng, column, rows, edges, True)
        np.testing.assert_allclose(column.Mx, given.M @ column.x, atol=1e-9)
        return column.x
    mean = -given.b / given.c
    intercept = (x - mean).mean() + rng.standard_normal() / math.sqrt(N * given.c)
    return _margins.draw_column(rng, x, mean + intercept, given.c**-0.5, rows, edges, True)


def p_values(independent, size, steps=2):
    """Of "steps from weighted draws of the law leave what is watched at its mean"."""
    rng, given = np.random.default_rng(1), setting(independent)
    x = math.sqrt(N) * directions(rng, size)
    log_weight = -0.5 * np.einsum("ri,ij,rj->r", x, given.Q, x) - x @ given.b
    weight = np.exp(log_weight - log_weight.max())
    x = x[rng.random(size) < weight]
    after = x.copy()
    for row in range(len(x)):
        for _ in range(steps):
            after[row] = drawn(rng, after[row], given)
    watched = [lambda x, k=k: x[:, k] for k in range(N)]
    watched += [lambda x, k=k: x[:, k] ** 2 for k in range(N)]
    watched += [lambda x: x @ given.b, lambda x: np.einsum("ri,ij,rj->r", x, given.Q, x)]
    changes = [f(after) - f(x) for f in watched]
    assert len(x) > 1000
    np.testing.assert_allclose((after**2).mean(axis=1), 1.0)
    return [stats.ttest_1samp(change, 0.0).pvalue for change in changes if np.ptp(change) > 1e-9]


BOTH = pytest.mark.parametrize("independent", [True, False])


@BOTH
def test_a_step_leaves_the_law_of_the_direction_invariant(independent):
    assert min(p_values(independent, 100_000)) > ALARM


def always(rng, log_ratio):
    """Every direction is accepted."""
    return True


def rescaled(patch):
    """Cells are drawn at the present length, and the column is scaled."""
    patch.setattr(_unit_scale, "release", lambda rng, n, A, B: (math.sqrt(n), 0.0))
    patch.setattr(_unit_scale, "accepted", always)


def always_accepted(patch):
    """A length is drawn, but every direction is accepted."""
    patch.setattr(_unit_scale, "accepted", always)


def without_linear_term(patch):
    """The weight without what the linear term says of the length."""
    right = _unit_scale.log_weight
    patch.setattr(_unit_scale, "log_weight", lambda n, A, B, r: right(n, A, B, r) + (math.sqrt(n) - r) * B)


@BOTH
@pytest.mark.parametrize("plant", [rescaled, always_accepted, without_linear_term])
def test_planted_bugs_are_rejected(plant, independent, monkeypatch):
    for module in (_margins, _rest_columns):
        monkeypatch.setattr(module, "draw_column", module.draw_column.py_func)
    plant(monkeypatch)
    assert min(p_values(independent, 100_000, steps=6)) < ALARM / 1000


@pytest.mark.parametrize(("A", "B"), [(1.0, -5.0), (3.0, 2.0), (40.0, -300.0), (0.2, 30.0)])
def test_the_weight_is_that_of_the_definition(A, B):
    """Averaged over the lengths of k, the inverse weight is the integral of f over its value at mean square 1."""
    n = 9

    def log_f(r):
        return (n - 2) * math.log(r) - 0.5 * A * r * r - B * r

    log_r, precision = _unit_scale.normal_law(n, A, B)

    def part(x, power):
        """k times the weight to some power, at the length exp(x)."""
        log_k = 0.5 * math.log(precision) - 0.5 * precision * (x - log_r) ** 2
        return math.exp(log_k + power * _unit_scale.log_weight(n, A, B, math.exp(x)))

    ends = log_r - 12 / math.sqrt(precision), log_r + 12 / math.sqrt(precision)
    found = integrate.quad(part, *ends, args=(-1,), points=[log_r])[0]
    at = log_f(math.sqrt(n)) - (n - 2) * math.log(math.sqrt(n))
    expected = integrate.quad(lambda x: math.exp(log_f(math.exp(x)) + x - at), *ends, points=[log_r])[0]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_the_length_is_drawn_from_k():
    rng, (log_r, precision) = np.random.default_rng(0), _unit_scale.normal_law(9, 3.0, -4.0)
    lengths = np.array([_unit_scale.release(rng, 9, 3.0, -4.0)[0] for _ in range(2000)])
    assert stats.kstest((np.log(lengths) - log_r) * math.sqrt(precision), "norm").pvalue > ALARM
