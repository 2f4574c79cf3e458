"""Relative precisions of all variables, against the dense formula and in any units."""

from __future__ import annotations

import numpy as np
import pytest

from markovblanket.contracts import Problem
from markovblanket.model.network_sweep import WidenedBlanket
from markovblanket.model.relative_precisions import relative_precisions
from markovblanket.model.rest_prior import RestPrior
from markovblanket.model.scatter import from_columns, from_matrix
from markovblanket.priors import SpikeSlab
from markovblanket.solvers import Dual

SHAPES = {"tall": (60, 2, 6), "wide": (12, 3, 40), "all in the query": (30, 7, 0), "one row fewer": (8, 1, 8)}


def columns(n: int, p: int, q: int) -> np.ndarray:
    """Correlated columns, the last nearly determined by the first, of mean 0 and variance 1."""
    rng = np.random.default_rng([n, p, q])
    X = rng.standard_normal((n, p + q)) + 0.8 * rng.standard_normal((n, 1))
    X[:, -1] = X[:, 0] + 0.1 * X[:, -1]
    return (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_they_are_those_of_a_dense_precision_matrix(shape):
    X, p = columns(*shape), shape[1]
    units = np.sqrt(1 + 1 / len(X))
    S = X.T @ X / units**2
    prior = RestPrior.fitted(np.maximum(np.linalg.eigvalsh(S), 0.0), X.shape[1], len(X))
    dense = np.diag(np.linalg.inv(S + prior.ridge * np.eye(X.shape[1])))
    found = relative_precisions(from_columns(X[:, :p], X[:, p:]))
    np.testing.assert_allclose(found, dense / dense.min() / units**2, rtol=1e-3)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_units_and_the_way_the_data_come_do_not_matter(shape):
    X, p = columns(*shape), shape[1]
    units = np.geomspace(1e3, 1e6, X.shape[1])
    expected = relative_precisions(from_columns(1e3 * X[:, :p], 1e3 * X[:, p:])) * 1e6
    scaled = from_matrix((X * units).T @ (X * units), len(X), p)
    np.testing.assert_allclose(relative_precisions(scaled) * units**2, expected, rtol=1e-4)


def test_variables_with_little_or_no_scatter_have_finite_ones():
    S = np.diag([50.0, 0.0, 1e-300])
    found = relative_precisions(from_matrix(S, 50, 1))
    assert (found > 0).all()
    assert np.isfinite(found).all()


def test_copies_leave_the_others_as_they_are():
    X = columns(200, 1, 3)[:, [0, 1, 2, 2, 2, 2]]
    found = relative_precisions(from_columns(X[:, :1], X[:, 1:]))
    assert (found[:2] < 10).all()
    assert (found[2:] > 100).all()


def test_the_sampler_has_them_in_the_order_of_its_block():
    X = columns(40, 2, 5)
    problem = Problem(from_columns(X[:, :2], X[:, 2:]), SpikeSlab(), Dual())
    sampler, expected = WidenedBlanket.of(problem, np.array([3, 1])), relative_precisions(problem.scatter)
    np.testing.assert_array_equal(sampler.inside, expected[[0, 1, 5, 3]])
    np.testing.assert_array_equal(sampler.outside, expected[[2, 4, 6]])
