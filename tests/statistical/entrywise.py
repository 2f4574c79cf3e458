"""``W12`` with exact zeros, entry by entry, written plainly from the density; with mistakes on demand.

Given all else, with ``W`` the matrix without the entry, ``exp -tr(W12 S21) - 1/2 tr(U W12 A W21)`` is, in the
entry alone, ``exp(b w - c w^2 / 2)`` with ``c = u_ii a_jj`` and ``b = -(S12 + U W A)_ij``.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from markovblanket.contracts import Array, ChainState, Scatter, SolveInfo, Solver
from markovblanket.priors import SpikeSlab
from markovblanket.priors.spike_slab import passes

Generator = np.random.Generator


def visit(
    rng: Generator, W12: Array, U: Array, S12: Array, A: Array, odds: float, v: float, flaw: str = ""
) -> Array:
    """Whether every entry is zero, in turn, column by column; values that stay are redrawn later."""
    W = W12.copy()
    for j, i in product(range(W.shape[1]), range(W.shape[0])):
        c = U[i, i] * A[j, j]
        own = 0.0 if flaw == "own part" else W[i, j]
        b = -(S12 + U @ W @ A)[i, j] + c * own
        log_odds = odds + log_evidence(b, c, v, flaw)
        include = rng.random() < 1 / (1 + math.exp(-log_odds))
        if not include:
            W[i, j] = 0.0
        elif W[i, j] == 0:
            W[i, j] = b / (c + 1 / v) + rng.standard_normal() / math.sqrt(c + 1 / v)
    return W


def relocate(
    rng: Generator, W12: Array, U: Array, S12: Array, A: Array, v: float, i: int, j: int, flaw: str = ""
) -> Array:
    """Entry ``(i, j)`` moved to any place of its row that is zero."""
    W = W12.copy()
    W[i, j] = 0.0
    b, c = -(S12 + U @ W @ A)[i], U[i, i] * np.diag(A)
    weight = np.array([log_evidence(*pair, v, flaw) for pair in zip(b, c, strict=True)])
    weight = np.zeros(len(weight)) if flaw == "any place" else weight
    weight[W[i] != 0] = -np.inf
    ladder = np.cumsum(np.exp(weight - weight.max()))
    k = int(np.searchsorted(ladder, rng.random() * ladder[-1], side="right"))
    W[i, k] = b[k] / (c[k] + 1 / v) + rng.standard_normal() / math.sqrt(c[k] + 1 / v)
    return W


def redraw(rng: Generator, W12: Array, U: Array, S12: Array, A: Array, v: float, flaw: str = "") -> Array:
    """Entries that are not zero, row by row, those of a row together."""
    W = W12.copy()
    for i in range(len(U)):
        J = np.flatnonzero(W[i])
        W[i, J] = 0.0
        H, b = U[i, i] * A[np.ix_(J, J)] + np.eye(len(J)) / v, -(S12 + U @ W @ A)[i, J]
        H = np.diag(np.diag(H)) if flaw == "apart" else H
        L = np.linalg.cholesky(H)
        W[i, J] = np.linalg.solve(L.T, np.linalg.solve(L, b) + rng.standard_normal(len(J)))
    return W


def log_evidence(b: float, c: float, v: float, flaw: str = "") -> float:
    """``log int N(w; 0, v) exp(b w - c w^2 / 2) dw``."""
    volume = 0.0 if flaw == "volume" else math.log(1 + v * c)
    return 0.5 * (b * b / (c + 1 / v) - volume)


class Plain(SpikeSlab):
    """The package's prior with this module's draw of ``W12``, and its mistakes."""

    flaw = ""

    def draw_cross(
        self, rng: Generator, state: ChainState, scatter: Scatter, solver: Solver
    ) -> tuple[Array, SolveInfo]:
        """As the package's, by dense algebra."""
        inclusion, slab = self._values(state.hyper)
        U, A = np.linalg.inv(state.W11), scatter.F.T @ scatter.F + np.eye(scatter.F.shape[1])
        odds = math.log(inclusion / (1 - inclusion))
        W12 = state.W12
        for _ in range(passes(len(U), *scatter.F.T.shape)):
            W12 = visit(rng, W12, U, scatter.S12, A, odds, slab, self.flaw)
            queries, neighbours = np.nonzero(W12)
            if len(queries):
                k = rng.integers(len(queries))
                W12 = relocate(rng, W12, U, scatter.S12, A, slab, queries[k], neighbours[k], self.flaw)
                W12 = redraw(rng, W12, U, scatter.S12, A, slab, self.flaw)
        return W12, SolveInfo()


class WithoutOwnPart(Plain):
    """What an entry itself contributes left in its own conditional."""

    flaw = "own part"


class WithoutVolume(Plain):
    """Bayes factors without the slab's volume."""

    flaw = "volume"


class RedrawnApart(Plain):
    """Entries of a row redrawn together as if their variables were uncorrelated."""

    flaw = "apart"


class AnyPlace(Plain):
    """An entry relocated to any place, whatever the data say."""

    flaw = "any place"
