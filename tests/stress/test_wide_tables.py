"""Wide tables are worked through some columns at a time: same numbers, and no second table on the way."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from markovblanket.fitting.data import from_mixed_table, from_table
from markovblanket.model.copula._margins import normal_scores
from markovblanket.model.copula.latent import Copula
from markovblanket.model.scatter import from_columns, rotated
from markovblanket.tables.columns import NUMBERS_PER_CHUNK, Column, spans
from markovblanket.tables.table import read_mixed

N, P, Q = 100, 3, 12_000


@pytest.fixture(scope="module")
def X():
    X = np.random.default_rng(0).standard_normal((N, P + Q))
    return np.asfortranarray((X - X.mean(axis=0)) / X.std(axis=0))


def peak(work, X):
    """The memory that ``work`` takes at most, in units of the table, and what it makes."""
    tracemalloc.start()
    made = work()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most / X.nbytes, made


@pytest.mark.parametrize("rows", [1, 7, NUMBERS_PER_CHUNK - 1, NUMBERS_PER_CHUNK, 3 * NUMBERS_PER_CHUNK])
@pytest.mark.parametrize("columns", [0, 1, 5, NUMBERS_PER_CHUNK // 7 + 1])
def test_spans_hold_every_column_once(rows, columns):
    found = list(spans(rows, columns))
    assert [k for span in found for k in range(columns)[span]] == list(range(columns))
    assert all(
        rows * (span.stop - span.start) <= NUMBERS_PER_CHUNK or span.stop - span.start == 1 for span in found
    )


def test_scores_are_those_of_all_columns_together_and_take_one_table(X):
    columns = [Column(k, "continuous", x) for k, x in enumerate(X.T)]
    most, copula = peak(lambda: Copula.of(columns, P), X)
    np.testing.assert_array_equal(np.hstack([copula.X1, copula.X2]), normal_scores(X))
    assert most < 1.6, most


def test_the_factor_takes_one_table(X):
    most, scatter = peak(lambda: from_columns(X[:, :P], X[:, P:]), X)
    F = scatter.F
    assert F.flags.f_contiguous
    assert len(F) == N - 1  # columns of mean zero span one dimension less
    np.testing.assert_allclose(F.T @ F[:, :50], X[:, P:].T @ X[:, P : P + 50], atol=1e-9)
    np.testing.assert_allclose(F @ F.T, np.diag(scatter.row_sizes), atol=1e-7)
    assert (F.max(axis=1) >= -F.min(axis=1)).all()
    assert most < 1.3, most


def test_the_largest_entry_decides_the_sign_wherever_it_is(X):
    F = rotated(X[:, P:])
    for column in (0, Q - 1):
        largest = np.abs(F[:, column]).argmax()
        G = F.copy(order="F")
        G[largest, column] = -1e4  # so large that it is the largest of its row after the rotation
        H = rotated(G)
        assert H[:, column].max() > 9e3
        assert (H.max(axis=1) >= -H.min(axis=1)).all()


def test_the_inverse_diagonal_takes_no_table(X):
    scatter = from_columns(X[:, :P], X[:, P:])
    most, diagonal = peak(lambda: scatter.inverse_diagonal, X)
    r = scatter.rest_prior.ridge
    inverse = np.linalg.inv(r * np.eye(N) + X[:, P:] @ X[:, P:].T)
    expected = (1.0 - np.einsum("ij,ij->j", X[:, P:], inverse @ X[:, P:])) / r
    np.testing.assert_allclose(diagonal, expected, rtol=1e-9)
    assert most < 0.3, most


@pytest.mark.parametrize(
    "read",
    [from_table, lambda X, query: from_mixed_table(read_mixed(X, query, None), "auto")],
    ids=["as is", "scores"],
)
def test_a_table_its_columns_and_their_factor_are_all_there_is(X, read):
    most, given = peak(lambda: read(X, list(range(P))), X)
    np.testing.assert_array_equal([column.values for column in given.table.columns], X.T)
    assert most < 3.6, most  # names and columns, one object each, weigh as much as a few rows


def test_a_query_with_levels_takes_one_table_more_for_the_basis_of_the_others(X):
    Y = X.copy()
    Y[:, 0] = np.searchsorted([-1.0, 0.0, 1.0], Y[:, 0])
    most, given = peak(lambda: from_mixed_table(read_mixed(Y, list(range(P)), None), "auto"), Y)
    assert given.latent is not None
    np.testing.assert_allclose(
        given.scatter.F.T @ given.scatter.F[:, 7], given.latent.X2.T @ given.latent.X2[:, 7]
    )
    assert most < 4.6, most
