"""The scatter of Gaussian columns, or a given scatter matrix, in the form that the sampler needs.

``S22`` is never formed. Its factor ``F`` (``F'F = S22``, m x q with m <= min(n, q)) is rotated once per data set
so that its rows are orthogonal; ``F F'`` is then diagonal, which makes the preconditioner of the solver cheap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import linalg, sparse

from markovblanket.contracts import Array
from markovblanket.model.rest_prior import RestPrior
from markovblanket.tables.columns import spans

# A row of the factor whose entries are all smaller than this, relative to the norms of their columns, adds no more
# than rounding to S22. Rounding would also leave such rows far from orthogonal.
NEGLIGIBLE_ROW = 1e-8
# How far a given scatter may be from symmetric and positive semi-definite, relative to its diagonal.
MATRIX_TOLERANCE = 1e-8
# Larger entries of a scatter matrix would overflow when squared.
LARGEST_ENTRY = 1e150


@dataclass(frozen=True)
class Factored:
    """Quantities derived from ``S11`` and a factor ``F`` of ``S22``, for a table of ``n`` rows."""

    n: int
    S11: Array
    F: Array

    @cached_property
    def rest_prior(self) -> RestPrior:
        """Prior of ``W22.1`` of largest marginal likelihood; the rows of F are orthogonal here."""
        return RestPrior.fitted(self.row_sizes, self.F.shape[1], self.n)

    @property
    def rest_degrees(self) -> float:
        """Degrees of freedom of ``W22.1`` given the data."""
        return self.rest_prior.degrees + self.n

    def times_factor(self, M: Array) -> Array:
        """Return the product ``M F'``, p x m."""
        return times_transpose(M, self.F)

    @cached_property
    def B(self) -> Array:
        """Scatter of the query plus the identity, ``S11 + I``."""
        return self.S11 + np.eye(len(self.S11))

    @cached_property
    def row_sizes(self) -> Array:
        """Squared norms ``diag(F F')``: the nonzero eigenvalues of ``S22`` if the rows of F are orthogonal."""
        return np.einsum("kj,kj->k", self.F, self.F)

    @cached_property
    def column_sizes(self) -> Array:
        """Diagonal of ``S22``, the squared norms of the columns of F."""
        return np.einsum("kj,kj->j", self.F, self.F)

    @cached_property
    def inverse_diagonal(self) -> Array:
        """Diagonal of ``(S22 + r I)^-1`` with the ridge r of :attr:`rest_prior`."""
        return inverse_diagonal(self.F, self.rest_prior.ridge)


@dataclass(frozen=True)
class FactorScatter(Factored):
    """Scatter of a table of ``n`` rows: ``S11``, ``S12`` and a factor ``F`` of ``S22`` with orthogonal rows."""

    S12: Array

    @cached_property
    def Y(self) -> Array:
        """Solution of ``S12 = Y F``; as S is positive semi-definite, F spans the rows of ``S12``."""
        return self.S12 @ self.F.T / self.row_sizes


@dataclass(frozen=True)
class MatrixScatter(Factored):
    """Scatter given as a matrix, with variables in any units.

    Where units differ by many orders of magnitude, rounding leaves the small rows of the factor far from
    orthogonal to the large ones, so quantities that rely on orthogonality elsewhere are computed from the matrix
    itself.
    """

    S12: Array
    Y: Array
    S22: Array

    @cached_property
    def inverse_diagonal(self) -> Array:
        """Diagonal of ``(S22 + r I)^-1``, computed from the matrix scaled to unit diagonal."""
        A = self.S22 + self.rest_prior.ridge * np.eye(len(self.S22))
        return np.diag(np.linalg.inv(_correlation(A))) / np.diag(A)


def inverse_diagonal(F: Array, ridge: float) -> Array:
    """Return ``diag((F'F + r I)^-1)`` for a factor with orthogonal rows and the ridge r.

    With ``F'F = sum_k l_k v_k v_k'`` the inverse has eigenvalues 1/(r + l_k) along v_k, and 1/r elsewhere.
    """
    sizes, out = np.einsum("kj,kj->k", F, F), np.empty(F.shape[1])
    for span in spans(*F.shape):
        squares = F[:, span] ** 2 / sizes[:, None]
        on_span = (squares / (ridge + sizes)[:, None]).sum(axis=0)
        out[span] = np.maximum(1.0 - squares.sum(axis=0), 0.0) / ridge + on_span
    return out


def times_transpose(M: Array, F: Array) -> Array:
    """Return ``M F'``, computed from the columns or entries of ``M`` that are not zero if they are few."""
    columns = np.flatnonzero(M.any(axis=0))
    if 4 * len(columns) < M.shape[1]:
        return M[:, columns] @ F[:, columns].T
    if 8 * np.count_nonzero(M) < M.size:
        product: Array = sparse.csr_array(M) @ F.T
        return product
    return M @ F.T


def from_columns(X1: Array, X2: Array, *, centred: bool = False) -> FactorScatter:
    """Return the scatter of Gaussian columns: ``S11 = X1'X1``, ``S12 = X1'X2`` and a factor of ``X2'X2``.

    Of columns that were ``centred``, because their means are unknown, the number of rows counts one less.
    """
    rows, q = X2.shape
    F: Array = X2 if rows <= q else linalg.qr(X2, mode="r")[0][:q] if q else np.zeros((0, 0))
    return FactorScatter(rows - centred, X1.T @ X1, rotated(F), X1.T @ X2)


def from_matrix(S: Array, n: int, p: int) -> MatrixScatter:
    """Return the scatter of a given d x d matrix, whose first ``p`` variables are the query.

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


def rotated(F: Array) -> Array:
    """Return ``V'F``, a factor with the same ``F'F`` and orthogonal rows, without negligible ones.

    Its columns are contiguous in memory, because columns of single variables are read.
    """
    if not F.size:
        return F
    return (F.T @ _rotation(F)).T


def _rotation(F: Array) -> Array:
    """Return ``V`` with ``F F' = V Λ V'``, without the columns for which ``V'F`` is negligible.

    The largest entry of every row of ``V'F`` is positive, so that the factor depends on the scatter alone and not
    on the order of the observations.
    """
    _, V = np.linalg.eigh(F @ F.T)
    signs, kept = _rows_worth_keeping(V, F)
    return (V * signs)[:, kept]


def _rows_worth_keeping(V: Array, F: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Return the sign of the largest entry of each row of ``V'F``, and whether the row is more than rounding.

    ``V'F`` is computed in spans of columns: all of it at once would take the memory of another table.
    """
    largest, kept = np.zeros(V.shape[1]), np.zeros(V.shape[1], dtype=bool)
    for span in spans(*F.shape):
        part = V.T @ F[:, span]
        size = np.abs(part)
        extreme = np.take_along_axis(part, size.argmax(axis=1, keepdims=True), axis=1)[:, 0]
        largest = np.where(np.abs(extreme) > np.abs(largest), extreme, largest)
        kept |= (size > NEGLIGIBLE_ROW * np.linalg.norm(part, axis=0)).any(axis=1)
    return np.where(largest < 0, -1.0, 1.0), kept


def _semidefinite_root(S: Array) -> tuple[Array, Array]:
    """Return ``R`` with ``R'R = S``, and an inverse ``R^-``: ``M = M R^- R`` if the rows of M are in its span.

    Both are accurate for every variable, however different their scales are.
    """
    scale = np.sqrt(np.diag(S))
    values, V = np.linalg.eigh(_correlation(S))
    kept = values > NEGLIGIBLE_ROW**2 * len(S)
    root, V = np.sqrt(values[kept]), V[:, kept]
    inverse = np.divide(V, scale[:, None], out=np.zeros_like(V), where=scale[:, None] > 0) / root
    return (V * root).T * scale, inverse


def _correlation(S: Array) -> Array:
    """Return ``S`` scaled to unit diagonal; variables with no scatter get zeros."""
    scale = np.sqrt(np.diag(S))
    inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    return inverse[:, None] * S * inverse


def _square(given: npt.ArrayLike) -> Array:
    """Return a square matrix of real numbers, masked entries as NaN; raise ValueError if it is none."""
    try:
        S: Any = np.ma.asarray(given)
    except ValueError:
        raise ValueError("a scatter matrix must be square; got rows of different lengths") from None
    if S.dtype.kind not in "fiub":
        raise ValueError(f"a scatter matrix must hold real numbers, not dtype {S.dtype}")
    if S.ndim != 2 or S.shape[0] != S.shape[1] or not S.size:
        raise ValueError(f"a scatter matrix must be square; got shape {S.shape}")
    return S.astype(float).filled(np.nan)


def _refuse_where(bad: npt.NDArray[np.bool_], what: str) -> None:
    """Raise a ValueError that names the first bad entry, if there is one."""
    if bad.any():
        row, column = np.argwhere(bad)[0]
        raise ValueError(f"the scatter matrix {what} (row {row}, column {column}, from 0)")


def checked(S: npt.ArrayLike) -> Array:
    """Return ``S``, made exactly symmetric; raise ValueError if it is not a scatter matrix."""
    S = _square(S)
    _refuse_where(~np.isfinite(S), "has an entry that is not finite")
    _refuse_where(np.abs(S) > LARGEST_ENTRY, f"has an entry beyond {LARGEST_ENTRY:.0e}; measure in larger units")
    _refuse_where(np.diag(np.diag(S) < 0), "has a negative diagonal entry, so it is not a scatter")
    scale = np.sqrt(np.diag(S))
    _refuse_where(np.abs(S - S.T) > MATRIX_TOLERANCE * np.outer(scale, scale), "is not symmetric")
    _refuse_where(
        np.abs(S) > (1 + MATRIX_TOLERANCE) * np.outer(scale, scale),
        "is not positive semi-definite: a covariance exceeds its variances",
    )
    least = np.linalg.eigvalsh(_correlation((S + S.T) / 2))[0]
    if least < -MATRIX_TOLERANCE:
        raise ValueError(
            f"the scatter matrix is not positive semi-definite: an eigenvalue of {least:.2g} "
            "after scaling to unit diagonal"
        )
    return (S + S.T) / 2
