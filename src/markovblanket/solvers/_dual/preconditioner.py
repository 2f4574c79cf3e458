"""The preconditioner of the dual solver's ``K = I + sum_j G_j ⊗ f_j f_j'``: its mean, corrected for outliers.

Averaged over many variables, ``K`` is close to its Kronecker mean ``M = I + Gbar ⊗ F F'``, with ``Gbar`` the mean
of the ``G_j`` weighted by ``|f_j|^2``. As ``F F'`` is diagonal, one p x p eigendecomposition inverts it.

Under a prior with heavy tails a few entries are hardly shrunk, and the mean does not describe them: each is an
eigenvalue far from the others, and costs conjugate gradients one iteration or more. If the other entries of its
column are nearly zero, entry (i, j) adds to K the term ``z z'``, ``z = L' e_i ⊗ f_j / sqrt(u_ii + D_ij)``. Terms
with a large leverage ``z' M^-1 z`` with respect to the mean of the rest are removed from the mean and treated
exactly, by Woodbury's identity.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.linalg.lapack import dpotrf

from markovblanket.contracts import Array, Scatter
from markovblanket.solvers._dual import blocks
from markovblanket.solvers._dual.gradients import Preconditioner
from markovblanket.solvers.precision import CrossPrecision

Places = npt.NDArray[np.intp]


def leverage_worth_correcting(q: int) -> float:
    """Return the smallest leverage that is worth a correction, for q variables.

    A correction of leverage 1/2 saves about two iterations, ``8 p m q`` flops; by measurement it costs as much
    time as 5,000 p m flops.
    """
    return 1.0 if q < 1000 else 0.5


def most_corrections(q: int) -> int:
    """Return the largest number s of corrections; their setup, ``s^2 p m`` flops, costs about 12 iterations."""
    return round(np.sqrt(50 * q))


@dataclass(frozen=True)
class KroneckerMean:
    """Mean ``M = I + Gbar ⊗ diag(F F')``, eigenvectors Q of ``Gbar``, and ``shrink = Q' M^-1 Q``, p x m."""

    Gbar: Array
    Q: Array
    shrink: Array

    @classmethod
    def of(cls, Gbar: Array, scatter: Scatter) -> KroneckerMean:
        """Return the mean with the given ``Gbar``, diagonalised."""
        values, Q = np.linalg.eigh(Gbar)
        return cls(Gbar, Q, 1.0 / (1.0 + np.maximum(values, 0.0)[:, None] * scatter.row_sizes))

    def without(self, V: Array, places: Places, scatter: Scatter) -> KroneckerMean:
        """Return the mean without the terms ``v v' ⊗ f f'``, v from ``V`` and f the columns ``places`` of F."""
        return KroneckerMean.of(self.Gbar - (V * weights(scatter)[places]) @ V.T, scatter)

    def leverages(self, V: Array, squares: Array) -> Array:
        """Return ``z' M^-1 z``, ``z = v ⊗ f``: a row per column v of ``V``, a column per f * f in ``squares``."""
        return np.square(self.Q.T @ V).T @ (self.shrink @ squares)


def of(C: CrossPrecision, G: Array) -> Preconditioner:
    """Return the preconditioner: the mean of ``K`` with corrections; ``G`` are the packed blocks."""
    scatter = C.scatter
    mean, columns = KroneckerMean.of(blocks.unpacked(G @ weights(scatter)), scatter), candidates(C)
    V, places = outstanding(C, mean, columns) if len(columns) else (C.U[:, :0], columns)
    return corrected(mean.without(V, places, scatter) if len(places) else mean, V, scatter.F[:, places])


def weights(scatter: Scatter) -> Array:
    """Return the weights of the columns in the mean, ``|f_j|^2`` divided by their sum."""
    return scatter.column_sizes / max(scatter.column_sizes.sum(), np.finfo(float).tiny)


def candidates(C: CrossPrecision) -> Places:
    """Return the columns in which an entry may have a large leverage: at most ``u_ii |f_j|^2 / (u_ii + D_ij)``."""
    largest = (np.diag(C.U)[:, None] * C.T).max(axis=0)
    bound = largest / (1.0 + largest) * C.scatter.column_sizes
    return np.flatnonzero(bound > leverage_worth_correcting(len(bound)))


def outstanding(C: CrossPrecision, mean: KroneckerMean, columns: Places) -> tuple[Array, Places]:
    """Return v of the terms ``v v' ⊗ f f'`` with a large leverage, p x s, and the column of each.

    The first mean contains these terms, which makes their leverages too small: terms with the largest leverages
    are removed first, in rounds of decreasing thresholds. If no term passes the first threshold, as with lighter
    tails, corrections are not worth the effort.
    """
    T, L, enough = C.T[:, columns], C.root_U.T, leverage_worth_correcting(C.T.shape[1])
    share, squares, rest = T / (1.0 + np.diag(C.U)[:, None] * T), C.scatter.F[:, columns] ** 2, mean
    for bar in (16 * enough, 4 * enough, 2 * enough, enough):
        leverages = rest.leverages(L, squares) * share
        i, j = np.nonzero(leverages > max(bar, largest_left_out(leverages, most_corrections(C.T.shape[1]))))
        V, places = L[:, i] * np.sqrt(share[i, j]), columns[j]
        if not len(places):
            break
        rest = mean.without(V, places, C.scatter)
    return together(C, V, i, places), places


def largest_left_out(leverages: Array, most: int) -> float:
    """Return the largest leverage that is left out if the ``most`` largest are kept; 0 if all are kept."""
    return float(-np.partition(-leverages, most, axis=None)[most]) if leverages.size > most else 0.0


def together(C: CrossPrecision, V: Array, i: Places, places: Places) -> Array:
    """Return ``V``, where a column with several large entries I contributes ``L_I' (E_II)^-1 L_I`` as a whole."""
    several = np.flatnonzero(np.bincount(places) > 1)
    for column in several:
        at = np.flatnonzero(places == column)
        R = np.linalg.cholesky(C.U[np.ix_(i[at], i[at])] + np.diag(1.0 / C.T[i[at], column]))
        V[:, at] = np.linalg.solve(R, C.root_U[i[at]]).T
    return V


def corrected(mean: KroneckerMean, V: Array, F: Array) -> Preconditioner:
    """Return ``M + sum_k z_k z_k'`` with ``z_k = v_k ⊗ f_k``, from the columns of ``V`` and ``F``."""
    V, (m, s) = mean.Q.T @ V, F.shape
    Z = (np.sqrt(mean.shrink)[:, :, None] * V[:, None, :] * F).reshape(len(V) * m, s)
    R = dpotrf(np.eye(s) + Z.T @ Z, lower=1)[0]
    return Preconditioner(*map(np.ascontiguousarray, (mean.Q, mean.Q.T, mean.shrink, V, F.T, R)))
