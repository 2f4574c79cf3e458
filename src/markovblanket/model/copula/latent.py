"""The Gaussian copula: latent normal columns behind a table of mixed kinds with missing cells.

Continuous, complete columns become normal scores once and stay fixed. The other columns move: every sweep redraws
all cells of a column with levels (binary, ordinal, count), and the missing cells of a continuous column (see
:mod:`markovblanket.model.copula._margins`).

A cell is normal given its row and W. Its distribution depends on a row of ``(W11, W12)`` for a query column, and
on a row of ``W22 = W22.1 + W21 U W12`` for a column of the rest. With fewer than 2 q rows ``W22.1`` is integrated
out, and a sweep redraws some of the moving columns of the rest, those without an edge in turn
(:mod:`markovblanket.model.copula._rest_columns`).

Otherwise it is drawn. With J the moving columns of the rest and K the fixed ones::

    W22.1_JJ ~ Wishart_d(rest_degrees, (A_JJ - A_JK A_KK^-1 A_KJ)^-1)
    W22.1_JK | W22.1_JJ  has mean -W22.1_JJ A_JK A_KK^-1 and row covariance W22.1_JJ, column covariance A_KK^-1

where ``A = X2'X2 + r I``, r the ridge of the prior of ``W22.1``. Only the n x d matrix ``X_K W22.1_KJ`` is needed,
and it is drawn in the space of the rows: with ``H = X_K A_KK^-1 X_K'`` it is
``-H X_J W_JJ + H^1/2 Z chol(W_JJ)'``. Only two thin products depend on q.

The means of the columns are unknown and have a flat prior. They are integrated out: the scatter is that of the
centred columns, with n - 1 in place of n, and the intercept of a column is drawn before its cells.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from markovblanket.contracts import Array, ChainState, Columns, ImpossibleStateError, Scatter
from markovblanket.model.copula import _margins, _rest_columns
from markovblanket.model.copula._fixed_columns import Fixed, MovingScatter
from markovblanket.model.copula._margins import Indices, Margin, Moving, moving_column, normal_scores
from markovblanket.model.copula._rest_columns import RowScatter, row_inverse
from markovblanket.model.rest_prior import RestPrior
from markovblanket.model.scatter import times_transpose
from markovblanket.tables.columns import spans
from markovblanket.variates import wishart

if TYPE_CHECKING:
    from markovblanket.tables.columns import Column


# Multiplications per sweep for columns of the rest, a column taking four times n^2; but one column in so many at
# least is drawn in every sweep.
MOST_MULTIPLICATIONS, LEAST_SHARE = 3_000_000, 100
# The inverse that is kept up to date by steps of rank one is computed anew once in so many sweeps, for accuracy.
SWEEPS_PER_INVERSE = 50


@dataclass(frozen=True)
class Copula:
    """Latent Gaussian columns of a table, of which some move in every sweep.

    Parameters
    ----------
    X1, X2 : numpy.ndarray
        Initial values of all columns, n x p and n x q.
    query, rest : dict
        Margins of the moving columns of the query and of the rest, by position.
    given_prior : RestPrior, optional
        Prior of ``W22.1``; by default that of largest marginal likelihood, given the initial columns.
    collapsed : bool, optional
        Whether ``W22.1`` is integrated out for the columns of the rest; by default it is if n < 2 q.
    """

    X1: Array
    X2: Array
    query: dict[int, Margin]
    rest: dict[int, Margin]
    given_prior: RestPrior | None = None
    collapsed: bool | None = None

    @classmethod
    def of(cls, columns: Sequence[Column], p: int, by_rank: bool = False) -> Copula:
        """Return the copula of the columns of a table, the first ``p`` of which are the query.

        Continuous, complete columns become normal scores and stay fixed. If ``by_rank``, only the order of the
        values is used in every column, and all columns move.
        """
        scored = [k for k, c in enumerate(columns) if c.kind == "continuous" and c.complete and not by_rank]
        X = np.empty((len(columns[0].values), len(columns)), order="F")
        for span in spans(len(X), len(scored)):
            X[:, scored[span]] = normal_scores(np.column_stack([columns[k].values for k in scored[span]]))
        moving = {}
        for k in np.setdiff1d(np.arange(len(columns)), scored):
            continuous = columns[k].kind == "continuous" and not by_rank
            X[:, k], moving[int(k)] = moving_column(columns[k].values, continuous)
        query = {k: margin for k, margin in moving.items() if k < p}
        rest = {k - p: margin for k, margin in moving.items() if k >= p}
        return cls(X[:, :p].copy(), X[:, p:], query, rest)

    @property
    def moves(self) -> bool:
        """Whether any column is redrawn in a sweep."""
        return bool(self.query or self.rest)

    def start(self) -> Columns:
        """Return the initial columns of a chain."""
        return Columns(self.X1, self.X2)

    @property
    def moves_query(self) -> bool:
        """Whether a column of the query is redrawn in a sweep."""
        return bool(self.query)

    def linear_terms(self, state: ChainState) -> Array:
        """Return ``X2 W21``, n x p: all that the query columns depend on outside the query."""
        assert state.columns is not None
        return times_transpose(state.W12, state.columns.X2).T

    def refresh_query(self, rng: np.random.Generator, X1: Array, linear: Array, W11: Array) -> Array:
        """Draw the moving columns of X1, whose rows have precision ``W11`` and linear terms ``X2 W21``."""
        X1 = X1.copy()
        _margins.draw(rng, X1, np.ascontiguousarray(linear), np.ascontiguousarray(W11), self.moving_query)
        return X1

    def query_scatter(self, X1: Array) -> Array:
        """Return the scatter ``S11`` of the query columns, whose means are integrated out."""
        X1 = centred(X1)
        return X1.T @ X1

    def refresh(self, rng: np.random.Generator, state: ChainState) -> Columns:
        """Draw the moving cells from ``X | W, Y``, column by column; return all columns."""
        assert state.columns is not None
        X1, X2 = state.columns.X1, state.columns.X2
        M = self.linear_terms(state)
        X1 = self.refresh_query(rng, X1, M, state.W11) if self.query else X1
        if not self.rest:
            return Columns(X1, X2)
        if self.integrates_out_rest:
            return self._refresh_integrated(rng, replace(state.columns, X1=X1), M, state)
        X2 = X2.copy(order="K")
        X2[:, self.J] = self._refresh_rest(rng, X1, X2[:, self.J], M, state)
        return Columns(X1, X2)

    def widened(self, candidates: Indices) -> Copula:
        """Return the copula in which the candidates, given by their positions in the rest, join the query."""
        others, p = np.setdiff1d(np.arange(self.X2.shape[1]), candidates), self.X1.shape[1]
        query = self.query | {p + k: self.rest[j] for k, j in enumerate(candidates.tolist()) if j in self.rest}
        rest = {k: self.rest[j] for k, j in enumerate(others.tolist()) if j in self.rest}
        X1, X2 = np.hstack([self.X1, self.X2[:, candidates]]), self.X2.T[others].T
        return replace(self, X1=X1, X2=X2, query=query, rest=rest)

    def scatter(self, columns: Columns) -> Scatter:
        """Return the scatter of the current columns; what fixed ones contribute is computed once, if it helps."""
        X1 = centred(columns.X1)
        if self.rest and self.integrates_out_rest:
            return RowScatter.of(X1, columns, self.rest_prior)
        X_J = centred(columns.X2[:, self.J])
        F, basis = self._fixed.factor(X_J)
        return MovingScatter(len(X1) - 1, X1.T @ X1, F, X1.T @ basis, self._fixed, X_J)

    def moving(self, columns: Columns) -> Array:
        """Return the columns that move, those of the query first."""
        return np.vstack([columns.X1.T[list(self.query)], columns.X2.T[self.J]]).T  # whole columns are copied

    def _refresh_integrated(
        self, rng: np.random.Generator, columns: Columns, fit: Array, state: ChainState
    ) -> Columns:
        """Draw some columns of the rest with ``W22.1`` integrated out."""
        X2, inverse, leverages = columns.X2, columns.inverse, columns.leverages
        if inverse is None or leverages is None or rng.random() * SWEEPS_PER_INVERSE < 1.0:
            inverse = row_inverse(X2, self.rest_prior.ridge)
            leverages = _rest_columns.leverages(inverse, X2)
        U, chosen = np.linalg.inv(state.W11), self._chosen(rng, state.W12)
        rest = _rest_columns.Rest.of(X2, inverse, fit, self._degrees, len(chosen))
        impossible = _rest_columns.draw(rng, rest, columns.X1, state.W12, U, self._moving_rest, chosen)
        if impossible >= 0:
            raise ImpossibleStateError(columns.X1.shape[1] + impossible)
        leverages = _rest_columns.changed_leverages(leverages, rest, self.J[chosen])
        return Columns(columns.X1, rest.X2T.T, rest.inverse, leverages)

    def _chosen(self, rng: np.random.Generator, W12: Array) -> Indices:
        """Draw which moving columns of the rest a sweep redraws: at first, up to half of them, some with an edge.

        Both kinds are drawn in any sweep, so that none stays as it is however many edges there are.
        """
        d, n = len(self.rest), len(self.X2)
        most = max(MOST_MULTIPLICATIONS // (4 * n * n), -(-d // LEAST_SHARE))
        order = rng.permutation(d)
        linked = order[np.any(W12 != 0.0, axis=0)[self.J[order]]][: (most + 1) // 2]
        return np.concatenate([linked, order[~np.isin(order, linked)]])[:most]

    def _refresh_rest(self, rng: np.random.Generator, X1: Array, X_J: Array, M: Array, state: ChainState) -> Array:
        """Draw columns J of the rest: precision ``W22_JJ``, linear terms ``X1 W12_J + X_K W22_KJ``."""
        X_J, W12 = X_J.copy(), state.W12[:, self.J]
        W_JJ, fixed = self._draw_W22(rng, X_J)
        UW12 = np.linalg.solve(state.W11, W12)
        linear = X1 @ W12 + fixed + (M - X_J @ W12.T) @ UW12
        _margins.draw(rng, X_J, linear, W_JJ + W12.T @ UW12, self._moving_J)
        return X_J

    def _draw_W22(self, rng: np.random.Generator, X_J: Array) -> tuple[Array, Array]:
        """Draw ``W22.1_JJ`` and ``X_K W22.1_KJ`` given the columns."""
        X_J, (Q, weight) = centred(X_J), self._fixed.hat
        QX = Q.T @ X_J
        root = np.linalg.inv(np.linalg.cholesky(self._fixed.schur(X_J, QX))).T
        W_JJ = wishart.draw_from_factor(rng, self._degrees, root)
        noise = np.sqrt(weight)[:, None] * rng.standard_normal(QX.shape)
        return W_JJ, Q @ (noise @ np.linalg.cholesky(W_JJ).T - (weight[:, None] * QX) @ W_JJ)

    @cached_property
    def rest_prior(self) -> RestPrior:
        """Prior of ``W22.1``, the one that was given or that of largest marginal likelihood."""
        return self.given_prior or RestPrior.of_columns(self.X2)

    @property
    def _degrees(self) -> float:
        """Degrees of freedom of ``W22.1`` given the columns, whose means are integrated out."""
        return self.rest_prior.degrees + len(self.X2) - 1

    @cached_property
    def integrates_out_rest(self) -> bool:
        """Whether columns of the rest are drawn with ``W22.1`` integrated out."""
        n, q = self.X2.shape
        return n < 2 * q if self.collapsed is None else self.collapsed

    @cached_property
    def moving_query(self) -> Moving:
        """Margins of the moving columns of the query."""
        return Moving.of(self.query)

    @cached_property
    def _moving_rest(self) -> Moving:
        """Margins of the moving columns of the rest, by their positions there."""
        return Moving.of(self.rest)

    @cached_property
    def _moving_J(self) -> Moving:
        """The same, by their positions in J."""
        return Moving.of(dict(enumerate(self.rest.values())))

    @cached_property
    def J(self) -> Indices:
        """Positions J of the moving columns of the rest."""
        return np.fromiter(self.rest, dtype=np.intp)

    @cached_property
    def _fixed(self) -> Fixed:
        return Fixed(self.X2, self.J, self.rest_prior)


def centred(X: Array) -> Array:
    """Return the columns less their means."""
    return X - X.mean(axis=0)
