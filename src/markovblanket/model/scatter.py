"""Gaussian columns in, scatter out: the only thing the model sees of the data.

``S22`` is never formed. Its factor ``F`` (``F'F = S22``, m x q with m <= min(n, q)) is rotated once per data
set so that its rows are orthogonal; ``F F'`` is then diagonal, which makes the solver's preconditioner free.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from numba import njit
from scipy import linalg

from markovblanket.contracts import Array
from markovblanket.tables.columns import spans

# A factor row that is this small in every column, relative to the column, adds no more than rounding to S22. Of
# smaller ones rounding would leave nothing orthogonal.
NEGLIGIBLE = 1e-8
# How far a given scatter may be from symmetric and positive semi-definite, relative to its diagonal.
ROUNDING = 1e-8
# Larger entries would overflow when squared.
LARGEST = 1e150


@dataclass(frozen=True)
class Factored:
    """What follows from ``S11`` and from a factor ``F`` of ``S22``, of ``n`` rows."""

    n: int
    S11: Array
    F: Array

    @property
    def rest_degrees(self) -> float:
        """As :func:`rest_degrees` has them."""
        return rest_degrees(self.n, self.F.shape[1])

    def times_factor(self, M: Array) -> Array:
        """``M F'``."""
        return times_transpose(M, self.F)

    @cached_property
    def B(self) -> Array:
        """``S11 + I``."""
        return self.S11 + np.eye(len(self.S11))

    @cached_property
    def row_sizes(self) -> Array:
        """``diag(F F')``: the eigenvalues of ``S22`` that are not zero, while the rows are orthogonal."""
        return np.einsum("kj,kj->k", self.F, self.F)

    @cached_property
    def column_sizes(self) -> Array:
        """``diag(S22)``."""
        return np.einsum("kj,kj->j", self.F, self.F)

    @cached_property
    def inverse_diagonal(self) -> Array:
        """``diag((S22 + r I)^-1)``, r the :func:`rest_ridge`."""
        return inverse_diagonal(self.F, rest_ridge(self.n, self.F.shape[1]))


@dataclass(frozen=True)
class FactorScatter(Factored):
    """``S11``, ``S12`` and a factor ``F`` of ``S22`` with orthogonal rows, of ``n`` rows."""

    S12: Array

    @cached_property
    def Y(self) -> Array:
        """``S12 = Y F``: as S is positive semi-definite, the rows of ``S12`` lie in the span of those of ``F``."""
        return self.S12 @ self.F.T / self.row_sizes


@dataclass(frozen=True)
class MatrixScatter(Factored):
    """The scatter given as a matrix, its variables in any units.

    Where units differ by many orders of magnitude the small rows of the factor are not orthogonal to the large
    ones, to rounding: what relies on that elsewhere comes from the matrix itself.
    """

    S12: Array
    Y: Array
    S22: Array

    @cached_property
    def inverse_diagonal(self) -> Array:
        """``diag((S22 + r I)^-1)``, by way of the matrix scaled to unit diagonal."""
        A = self.S22 + rest_ridge(self.n, len(self.S22)) * np.eye(len(self.S22))
        return np.diag(np.linalg.inv(_correlation(A))) / np.diag(A)


def inverse_diagonal(F: Array, ridge: float) -> Array:
    """``diag((F'F + r I)^-1)``: with ``F'F = sum_k l_k v_k v_k'``, 1/(r + l_k) along v_k, 1/r off their span."""
    sizes, out = np.einsum("kj,kj->k", F, F), np.empty(F.shape[1])
    for span in spans(*F.shape):
        squares = F[:, span] ** 2 / sizes[:, None]
        on_span = (squares / (ridge + sizes)[:, None]).sum(axis=0)
        out[span] = np.maximum(1.0 - squares.sum(axis=0), 0.0) / ridge + on_span
    return out


def rest_ridge(n: int, q: int) -> float:
    """``r`` in ``W22.1 | S ~ Wishart_q(rest_degrees, (S22 + r I)^-1)``: ``n / 2q``, but between 1 and 10.

    The prior speaks as r rows would in which no two columns are correlated. Without it the cells of the rest are
    filled in by regressions on all other columns that nothing shrinks. A rule of thumb for r is one over the mean
    squared correlation: 10 where correlations are about 0.3. With few rows precisions would come to hang on it, so
    there it is the paper's 1.

    Examples
    --------
    >>> rest_ridge(300, 15), rest_ridge(92, 314)
    (10.0, 1.0)
    """
    return min(max(n / (2 * q), 1.0), 10.0)


def rest_degrees(n: int, q: int) -> float:
    """Degrees of freedom of ``W22.1 | S ~ Wishart_q(., (S22 + r I)^-1)``: ``max(n - q, q) + r``.

    The paper's ``Wishart(q + 1, I)`` prior makes them n + q + 1. It believes every variable to be explained by the
    others all but entirely, and overrates precisions: of n rows, q are spent on the coefficients of the other
    variables, but the prior counts as many on top. With ``n - q + 1``, and as many more as the ridge adds to the
    scatter, a precision is judged by its residual degrees of freedom, as in a regression on the others (for r = 1,
    the prior of Geisser and Cornfield 1963). That takes more rows than variables; with fewer, ``q + 1`` is the
    number by which a variable has unit variance before anything is seen. ``W11`` and ``W12`` do not depend on any
    of this as long as no cell moves.

    References
    ----------
    Geisser, S. and Cornfield, J. (1963). Posterior distributions for multivariate normal parameters. Journal of
    the Royal Statistical Society B 25, 368-376.

    Examples
    --------
    >>> rest_degrees(300, 15), rest_degrees(92, 314)
    (295.0, 315.0)
    """
    return max(n - q, q) + rest_ridge(n, q)


def times_transpose(M: Array, F: Array) -> Array:
    """``M F'``, from the entries of ``M`` that are not zero if they are few."""
    return _nonzero_times(M, F.T) if 8 * np.count_nonzero(M) < M.size else M @ F.T


@njit(cache=True)
def _nonzero_times(M: Array, Ft: Array) -> Array:
    """The product of a matrix that is nearly all zeros with ``Ft``."""
    product = np.zeros((M.shape[0], Ft.shape[1]))
    for i in range(M.shape[0]):
        for j in range(M.shape[1]):
            if M[i, j] != 0.0:
                for k in range(Ft.shape[1]):
                    product[i, k] += M[i, j] * Ft[j, k]
    return product


def from_columns(X1: Array, X2: Array) -> FactorScatter:
    """The scatter of Gaussian columns: ``S11 = X1'X1``, ``S12 = X1'X2`` and a factor of ``X2'X2``."""
    n, q = X2.shape
    F: Array = X2 if n <= q else linalg.qr(X2, mode="r")[0][:q]
    return FactorScatter(n, X1.T @ X1, _rotated(F), X1.T @ X2)


def from_matrix(S: Array, n: int, p: int) -> MatrixScatter:
    """A scatter matrix as given, its first ``p`` variables the query.

    Raises
    ------
    ValueError
        If ``S`` is not finite, symmetric and positive semi-definite.
    """
    S = checked(S)
    S12, S22 = S[:p, p:], S[p:, p:]
    R, inverse = _semidefinite_root(S22)
    V = _rotation(R)
    return MatrixScatter(n, S[:p, :p], (R.T @ V).T, S12, S12 @ inverse @ V, S22)


def _rotated(F: Array) -> Array:
    """``V'F``: the same ``F'F``, with orthogonal rows, negligible ones dropped.

    Columns are contiguous: a variable is a column, and some are looked at alone.
    """
    return (F.T @ _rotation(F)).T


def _rotation(F: Array) -> Array:
    """``V`` with ``F F' = V Λ V'``, without the columns for which ``V'F`` is negligible.

    The largest entry of every row of ``V'F`` is positive, so that the factor depends on the scatter alone and not
    on the order of the observations.
    """
    _, V = np.linalg.eigh(F @ F.T)
    signs, kept = _rows_worth_keeping(V, F)
    return (V * signs)[:, kept]


def _rows_worth_keeping(V: Array, F: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
    """The sign of the largest entry of each row of ``V'F``, and whether the row is more than rounding.

    ``V'F`` is looked at in passing: to hold it beside what is left of it would take the memory of another table.
    """
    largest, kept = np.zeros(V.shape[1]), np.zeros(V.shape[1], dtype=bool)
    for span in spans(*F.shape):
        part = V.T @ F[:, span]
        size = np.abs(part)
        extreme = np.take_along_axis(part, size.argmax(axis=1, keepdims=True), axis=1)[:, 0]
        largest = np.where(np.abs(extreme) > np.abs(largest), extreme, largest)
        kept |= (size > NEGLIGIBLE * np.linalg.norm(part, axis=0)).any(axis=1)
    return np.where(largest < 0, -1.0, 1.0), kept


def _semidefinite_root(S: Array) -> tuple[Array, Array]:
    """``R`` with ``R'R = S``, and an inverse: ``M = M R^- R`` for matrices whose rows are in its span.

    Both are accurate for every variable however different their scales are.
    """
    scale = np.sqrt(np.diag(S))
    values, V = np.linalg.eigh(_correlation(S))
    kept = values > NEGLIGIBLE**2 * len(S)
    root, V = np.sqrt(values[kept]), V[:, kept]
    inverse = np.divide(V, scale[:, None], out=np.zeros_like(V), where=scale[:, None] > 0) / root
    return (V * root).T * scale, inverse


def _correlation(S: Array) -> Array:
    """``S`` scaled to unit diagonal; variables with no scatter get zeros."""
    scale = np.sqrt(np.diag(S))
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    return inverse[:, None] * S * inverse


def _square(given: npt.ArrayLike) -> Array:
    """Real numbers, as many rows as columns; what is masked is not finite."""
    try:
        S: Any = np.ma.asarray(given)
    except ValueError:
        raise ValueError("a scatter matrix is square; got rows of different lengths") from None
    if S.dtype.kind not in "fiub":
        raise ValueError(f"a scatter matrix holds real numbers, not dtype {S.dtype}")
    if S.ndim != 2 or S.shape[0] != S.shape[1] or not S.size:
        raise ValueError(f"a scatter matrix is square; got shape {S.shape}")
    return S.astype(float).filled(np.nan)


def _refuse_where(bad: npt.NDArray[np.bool_], what: str) -> None:
    """A ValueError that names the first entry that is bad."""
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(f"the scatter matrix {what} (row {row}, column {column}, from 0)")


def checked(S: npt.ArrayLike) -> Array:
    """``S``, symmetrised to the last bit, or a ValueError that says why it is no scatter matrix."""
    S = _square(S)
    _refuse_where(~np.isfinite(S), "has an entry that is not finite")
    _refuse_where(np.abs(S) > LARGEST, f"has an entry beyond {LARGEST:.0e}; measure in larger units")
    _refuse_where(np.diag(np.diag(S) < 0), "has a negative diagonal entry, so it is not a scatter")
    scale = np.sqrt(np.diag(S))
    _refuse_where(np.abs(S - S.T) > ROUNDING * np.outer(scale, scale), "is not symmetric")
    _refuse_where(
        np.abs(S) > (1 + ROUNDING) * np.outer(scale, scale),
        "is not positive semi-definite: a covariance exceeds its variances",
    )
    least = np.linalg.eigvalsh(_correlation((S + S.T) / 2))[0]
    if least < -ROUNDING:
        raise ValueError(
            f"the scatter matrix is not positive semi-definite: an eigenvalue of {least:.2g} "
            "after scaling to unit diagonal"
        )
    return (S + S.T) / 2
