"""The data of a widened block: the scatter with the candidates among the query."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from markovblanket.contracts import Array, Indices, Problem, Scatter
from markovblanket.model.rest_prior import RestPrior
from markovblanket.model.scatter import Factored, inverse_diagonal, rotated


def widened(problem: Problem, candidates: Indices) -> Problem:
    """Return the problem in which the candidates, given by their positions among the rest, join the block."""
    if problem.latent is not None:
        latent = problem.latent.widened(candidates)
        return replace(problem, scatter=latent.scatter(latent.start()), latent=latent)
    return replace(problem, scatter=widened_scatter(problem.scatter, candidates))


@dataclass(frozen=True)
class BlockScatter(Factored):
    """Scatter of a widened block, whose factor need not have orthogonal rows."""

    Y: Array

    @cached_property
    def rest_prior(self) -> RestPrior:
        """Prior of ``W22.1`` of largest marginal likelihood."""
        sizes = np.linalg.eigvalsh(self.F @ self.F.T)
        return RestPrior.fitted(np.maximum(sizes, 0.0), self.F.shape[1], self.n)

    @cached_property
    def inverse_diagonal(self) -> Array:
        """Diagonal of ``(S22 + r I)^-1``; of a factor whose rows are rotated so that they are orthogonal."""
        return inverse_diagonal(rotated(self.F), self.rest_prior.ridge)

    @property
    def S12(self) -> Array:
        """Cross scatter ``S12 = Y F``."""
        return self.Y @ self.F


def widened_scatter(scatter: Scatter, candidates: Indices) -> BlockScatter:
    """Return the scatter with the candidates in the block: from ``S12 = Y F`` and ``S22 = F'F`` alone.

    For the candidates C and the rest R, ``S_CR = F_C' F_R``, so that their rows of Y are ``F_C'``. If the factor
    of the rest has more rows than columns it is replaced by its triangular factor.
    """
    rest = np.setdiff1d(np.arange(scatter.F.shape[1]), candidates)
    F_C, F_R = scatter.F[:, candidates], scatter.F.T[rest].T
    S11 = scatter.B - np.eye(len(scatter.B))
    S_QC = scatter.S12[:, candidates]
    wide, Y = np.block([[S11, S_QC], [S_QC.T, F_C.T @ F_C]]), np.vstack([scatter.Y, F_C.T])
    if len(F_R) > F_R.shape[1]:
        basis, triangle = np.linalg.qr(F_R)
        F_R, Y = np.asfortranarray(triangle), Y @ basis
    return BlockScatter(scatter.n, wide, F_R, Y)
