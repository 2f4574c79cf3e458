"""A sweep of the widened block by dense algebra, written plainly from the density; with mistakes on demand.

With column i of ``W11`` taken out, ``M`` the inverse of the rest of it, and the pivot ``g = w_ii - w'Mw`` fixed::

    log density  =  n/2 log g - 1/2 b_ii (g + w'Mw) - w'b_i - s'S_i - 1/2 z'A z / g  +  log prior

in the column w and in row s of ``W12``, with ``z = s - W21 M w``; so both together are a linear regression. The
compiled code knows neither M nor z. Random numbers are drawn in its order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from markovblanket.contracts import Array, ChainState, Hyper, Scatter, SweepInfo
from markovblanket.model import _block_relocation
from markovblanket.model._block_columns import Law
from markovblanket.model.network_sweep import WidenedBlanket
from markovblanket.priors.spike_slab import draw_rows
from markovblanket.variates.generalized_inverse_gaussian import draw_positive_order

Generator = np.random.Generator


class Regression(NamedTuple):
    """Entries ``y`` with precision ``Q`` and linear term ``linear``, and prior log-odds and slab of each."""

    Q: Array
    linear: Array
    odds: Array
    v: Array

    def conditional(self, y: Array, k: int) -> tuple[float, float]:
        """``b`` and ``h`` of entry k, ``N(b/h, 1/h)`` if it is not zero, given the others."""
        b = self.linear[k] - self.Q[k] @ y + self.Q[k, k] * y[k]
        return float(b), float(self.Q[k, k] + 1 / self.v[k])

    def log_evidence(self, y: Array, k: int) -> float:
        """Log Bayes factor of entry k not being zero."""
        b, h = self.conditional(y, k)
        return 0.5 * (b * b / h - math.log(self.v[k] * h))

    def log_odds(self, y: Array, k: int) -> float:
        """Conditional log-odds of entry k not being zero."""
        return float(self.odds[k]) + self.log_evidence(y, k)

    def draw(self, rng: Generator, y: Array, k: int) -> float:
        """Entry k, given that it is not zero."""
        b, h = self.conditional(y, k)
        return b / h + rng.standard_normal() / math.sqrt(h)


def classes(i: int, others: Array, p: int) -> Array:
    """Class of each pair of i with another: 0 if either is a query variable."""
    return np.where((others < p) | (i < p), 0, 1)


def column(W: Array, G: Array, law: Law, i: int, flaw: str = "") -> tuple[Array, Array, float, Regression]:
    """The other variables, M, the pivot, and the regression of column i."""
    others, b = np.delete(np.arange(len(W)), i), law.B[i, i]
    square = np.ix_(others, others)
    M, w = np.linalg.inv(W[square]), W[others, i]
    g = float(W[i, i] - w @ M @ w)
    if flaw == "U for M":
        M = np.linalg.inv(W)[square]
    Q = b * M + (0.0 if flaw == "no G in the precision" else M @ G[square] @ M / g)
    linear = -law.B[others, i] + (0.0 if flaw == "no G in the linear term" else M @ G[others, i] / g)
    kinds = classes(i, others, law.p)
    kinds = 1 - kinds if flaw == "classes swapped" else kinds
    return others, M, g, Regression(Q, linear, law.odds[kinds], law.slab[kinds])


def visit(rng: Generator, law: Regression, w: Array, visited: Array, flaw: str = "") -> tuple[Array, Array]:
    """Whether each entry is zero, in turn; also the probabilities, as far as entries were visited."""
    w, probability = w.copy(), np.full(len(w), np.nan)
    for k in np.flatnonzero(visited):
        probability[k] = 1 / (1 + math.exp(-law.log_odds(w, k)))
        nonzero = rng.random() < probability[k]
        if flaw == "own value reported":  # b without what the entry itself contributes
            b, h = law.linear[k] - law.Q[k] @ w, law.conditional(w, k)[1]
            probability[k] = 1 / (1 + math.exp(-law.odds[k] - 0.5 * (b * b / h - math.log(law.v[k] * h))))
        if nonzero != (w[k] != 0):
            w[k] = law.draw(rng, w, k) if nonzero else 0.0
    return w, probability


def relocate_all(rng: Generator, law: Regression, w: Array, flaw: str = "") -> Array:
    """As often as there are nonzero entries, lift one and draw its place among the zeros."""
    w, edges = w.copy(), np.count_nonzero(w)
    for k in range(len(w)) if flaw == "places in order" else range(edges):
        if not 0 < edges < len(w) or (flaw == "places in order" and not w[k]):
            continue
        lifted = k if flaw == "places in order" else np.flatnonzero(w)[int(rng.random() * edges)]
        old, w[lifted] = w[lifted], 0.0
        weight = np.array([-np.inf if w[k] else law.log_odds(w, k) for k in range(len(w))])
        weight -= law.odds if flaw == "relocated without prior odds" else 0.0
        k = draw_place(rng, weight)
        w[k] = old if k == lifted else law.draw(rng, w, k)
    return w


def draw_place(rng: Generator, weight: Array) -> int:
    """A place with probability proportional to ``exp(weight)``."""
    ladder = np.cumsum(np.exp(weight - weight.max()))
    return int(np.searchsorted(ladder, rng.random() * ladder[-1], side="right"))


def redraw(rng: Generator, law: Regression, w: Array) -> Array:
    """All nonzero entries together."""
    w, J = w.copy(), np.flatnonzero(w)
    L = np.linalg.cholesky(law.Q[np.ix_(J, J)] + np.diag(1 / law.v[J]))
    w[J] = np.linalg.solve(L.T, np.linalg.solve(L, law.linear[J]) + rng.standard_normal(len(J)))
    return w


def draw_column(
    rng: Generator, W: Array, G: Array, law: Law, i: int, drawn: Array, flaw: str = ""
) -> tuple[Array, Array]:
    """``W11`` with column i drawn, then its pivot; also the probabilities of its entries."""
    others, M, g, regression = column(W, G, law, i, flaw)
    w, probability = visit(rng, regression, W[others, i], drawn[others], flaw)
    w = redraw(rng, regression, relocate_all(rng, regression, w, flaw))
    chi = G[i, i] - 2 * G[i, others] @ M @ w + w @ M @ G[np.ix_(others, others)] @ M @ w
    order = law.n / 2 + (2 if flaw == "pivot's power" else 1)
    g = draw_positive_order(rng, order, law.B[i, i], 0.0 if flaw == "no G in the pivot" else max(chi, 0.0))
    W = W.copy()
    W[i, others] = W[others, i] = w
    M = np.linalg.inv(W[np.ix_(others, others)])
    W[i, i] = g + w @ M @ w
    row = np.zeros(len(W))
    row[others] = probability
    return W, row


def draw_columns(
    rng: Generator, W: Array, G: Array, law: Law, drawn: Array, flaw: str = ""
) -> tuple[Array, Array]:
    """All columns in turn; also the probability of each pair, averaged over both columns."""
    rows = np.zeros_like(W)
    for i in np.flatnonzero(drawn):
        W, rows[i] = draw_column(rng, W, G, law, i, drawn, flaw)
    return W, (rows + rows.T) / 2


def both_blocks(W11: Array, W12: Array, S12: Array, A: Array, law: Law, i: int) -> Regression:
    """The regression of column i of ``W11`` and row i of ``W12`` together, i a query variable."""
    others, q = np.delete(np.arange(len(W11)), i), W12.shape[1]
    M, w = np.linalg.inv(W11[np.ix_(others, others)]), W11[others, i]
    g = W11[i, i] - w @ M @ w
    z = np.hstack([-(M @ W12[others]).T, np.eye(q)])  # as a function of (w, s)
    Q = z.T @ A @ z / g
    Q[: len(others), : len(others)] += law.B[i, i] * M
    size = len(others) + q
    linear = -np.concatenate([law.B[others, i], S12[i]])
    return Regression(Q, linear, np.full(size, law.odds[0]), np.full(size, law.slab[0]))


def relocate(
    rng: Generator, W11: Array, W12: Array, scatter: Scatter, law: Law, flaw: str = ""
) -> tuple[Array, Array]:
    """A random edge of a random query variable moved to any place of both blocks that is zero."""
    A, P = scatter.F.T @ scatter.F + np.eye(W12.shape[1]), len(W11)
    i = int(rng.integers(law.p))
    others = np.delete(np.arange(P), i)
    y = np.concatenate([W11[others, i], W12[i]])
    if not W12.shape[1] or not y.any():
        return W11, W12
    of_others = W12 * (np.arange(P) == i)[:, None] if flaw == "z without w" else W12
    regression = both_blocks(W11, of_others, scatter.S12, A, law, i)
    old = int(rng.choice(np.flatnonzero(y)))
    if flaw == "z as it was":  # places of the other block are weighed as if the entry had not been lifted
        stale = regression.Q[old] * y[old] * ((np.arange(len(y)) < P - 1) != (old < P - 1))
        regression = regression._replace(linear=regression.linear - stale)
    y[old] = 0.0
    new = draw_place(rng, np.array([-np.inf if y[k] else regression.log_evidence(y, k) for k in range(len(y))]))
    if new == old:
        return W11, W12
    y[new] = regression.draw(rng, y, new)
    W11, W12 = W11.copy(), W12.copy()
    M, w = np.linalg.inv(W11[np.ix_(others, others)]), W11[others, i]
    pivot = W11[i, i] - w @ M @ w
    W11[i, others] = W11[others, i] = y[: P - 1]
    W12[i], W11[i, i] = y[P - 1 :], pivot + y[: P - 1] @ M @ y[: P - 1]
    return W11, W12


@dataclass(frozen=True, slots=True)
class Plain(WidenedBlanket):
    """The package's sampler with this module's sweep, and its mistakes."""

    held: Hyper
    flaw: str = ""

    def sweep(self, rng: Generator, state: ChainState) -> tuple[ChainState, SweepInfo]:
        """As the package's, by dense algebra."""
        scatter = self.problem.scatter
        law = self.law(state.hyper, scatter)
        W12 = self._draw_plain_cross(rng, state, scatter, law)
        W11, W12 = relocate(rng, state.W11, W12, scatter, law, self.flaw)
        G = W12 @ (scatter.F.T @ scatter.F + np.eye(W12.shape[1])) @ W12.T
        W11, inclusion = draw_columns(rng, W11, G, law, self._drawn(rng, state), self.flaw)
        hyper = self._draw_hyper(rng, W11, W12)
        return ChainState(W11, W12, state.T, hyper, None, inclusion), SweepInfo(0, 0.0, 1.0)

    def _draw_plain_cross(self, rng: Generator, state: ChainState, scatter: Scatter, law: Law) -> Array:
        """Rows of ``W12``, all as if they were the query's if that is the flaw."""
        if not self.problem.q:
            return state.W12
        rows = np.arange(self.problem.p)
        kinds = classes(len(rows), rows, 0 if self.flaw == "rows of another class" else self.p)
        U = np.linalg.inv(state.W11)
        return draw_rows(rng, state.W12, (U + U.T) / 2, scatter, law.odds[kinds], law.slab[kinds], rows)[0]

    def _drawn(self, rng: Generator, state: ChainState) -> Array:
        """Which variables of the block are drawn: all, or as the flaw has it, rather neighbours of the query."""
        drawn = np.ones(len(state.W11), dtype=bool)
        if self.flaw == "candidates by the state":
            neighbours = (state.W11[: self.p] != 0).any(axis=0)
            drawn = neighbours | (rng.random(len(drawn)) < 0.5)
        return drawn

    def _draw_hyper(self, rng: Generator, W11: Array, W12: Array) -> Hyper:
        """Hyperparameters of each class; pairs of ``W11`` count twice if that is the flaw."""
        if self.held:
            return self.held
        if self.flaw != "pairs counted twice":
            return WidenedBlanket._draw_hyper(self, rng, W11, W12)
        laws, query = {}, classes(len(W11), np.arange(len(W11)), self.p) == 0
        off = W11 - np.diag(np.diag(W11))
        inside = np.where(query[:, None] | query, 0, 1)
        for kind in self.classes:
            values = np.concatenate([off[inside == kind], W12[~query if kind else query].ravel()])
            size = len(values) - np.count_nonzero(np.diag(inside) == kind)
            edges, squares = np.count_nonzero(values), float(values @ values)
            laws[kind] = self.prior.draw_hyper(rng, edges, size, squares, self.variables)
        return self._hyper(laws)


@dataclass(frozen=True, slots=True)
class Relocating(Plain):
    """Nothing but edges that change places between both blocks: every step by itself leaves the law alone.

    Without a flaw, the steps are the package's.
    """

    def sweep(self, rng: Generator, state: ChainState) -> tuple[ChainState, SweepInfo]:
        """Eight steps."""
        scatter, W11, W12 = self.problem.scatter, state.W11, state.W12
        law = self.law(state.hyper, scatter)
        for _ in range(8):
            if self.flaw:
                W11, W12 = relocate(rng, W11, W12, scatter, law, self.flaw)
            else:
                W11, W12, _ = _block_relocation.relocate(rng, W11.copy(), W12, scatter, law)
        return ChainState(W11, W12, state.T, state.hyper), SweepInfo(0, 0.0, 1.0)
