"""A sweep of the widened block by dense algebra, written plainly from the density; with mistakes on demand.

With column i of ``W11`` taken out, ``M`` the inverse of the rest of it, and the pivot ``g = w_ii - w'Mw`` fixed::

    log density  =  n/2 log g - 1/2 b_ii (g + w'Mw) - w'b_i - s'S_i - 1/2 z'A z / g  +  log prior

in the column w and in row s of ``W12``, with ``z = s - W21 M w``; so both together are a linear regression. Which
entries of the column are zero is decided with the values of all others integrated out, by a linear system for each
entry. The compiled code knows neither M nor z, and updates where this solves anew. Random numbers are drawn in its
order.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from markovblanket.contracts import Array, ChainState, Hyper, Scatter, SweepInfo
from markovblanket.model import _block_relocation
from markovblanket.model._column_regression import Law
from markovblanket.model._column_selection import MOST_RELOCATIONS
from markovblanket.model._pair_classes import PROPENSITY_DRAWS
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

    @property
    def precision(self) -> Array:
        """``Q + diag(1/v)``, that of entries which are not zero."""
        return self.Q + np.diag(1 / self.v)

    def conditional(self, y: Array, k: int) -> tuple[float, float]:
        """``b`` and ``h`` of entry k, ``N(b/h, 1/h)`` if it is not zero, given the others."""
        b = self.linear[k] - self.Q[k] @ y + self.Q[k, k] * y[k]
        return float(b), float(self.Q[k, k] + 1 / self.v[k])

    def integrated(self, nonzero: Array, k: int, flaw: str = "") -> tuple[float, float]:
        """The same given only which others are not zero, their values integrated out."""
        J = np.flatnonzero(nonzero)
        J = J if flaw == "own value reported" else J[k != J]
        C = np.linalg.inv(self.precision[J[:, None], J])
        b, h = self.linear[k] - self.Q[k, J] @ C @ self.linear[J], self.Q[k, k] - self.Q[k, J] @ C @ self.Q[k, J]
        b = self.linear[k] if flaw == "others' share forgotten" else b
        return float(b), float(h + 1 / self.v[k])

    def log_evidence(self, b: float, h: float, k: int) -> float:
        """Log Bayes factor of entry k not being zero."""
        return 0.5 * (b * b / h - math.log(self.v[k] * h))

    def log_odds(self, y: Array, k: int) -> float:
        """Conditional log-odds of entry k not being zero, given the values of the others."""
        return float(self.odds[k]) + self.log_evidence(*self.conditional(y, k), k)

    def log_odds_integrated(self, nonzero: Array, k: int, flaw: str = "") -> float:
        """Conditional log-odds of entry k not being zero, given which others are not."""
        return float(self.odds[k]) + self.log_evidence(*self.integrated(nonzero, k, flaw), k)

    def draw(self, rng: Generator, y: Array, k: int) -> float:
        """Entry k, given that it is not zero."""
        b, h = self.conditional(y, k)
        return b / h + rng.standard_normal() / math.sqrt(h)


def classes(i: int, others: Array, p: int) -> Array:
    """Class of each pair of i with another: 0 if either is a query variable."""
    return np.where((others < p) | (i < p), 0, 1)


def log_odds(own: Array, law: Law, i: int, others: Array, flaw: str = "") -> Array:
    """Prior log-odds of the pairs of i in the block: not declined by class, by i and by the other end."""
    second = 0.0 if flaw == "one end's propensity" else law.own_odds[others]
    declined = 1 / ((1 + own) * (1 + law.own_odds[i]) * (1 + second))
    return np.log(1 - declined) - np.log(declined)


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
    units = 1.0 if flaw == "slab without units" else law.precision[i] * law.precision[others]
    odds = log_odds(law.odds[kinds], law, i, others, flaw)
    return others, M, g, Regression(Q, linear, odds, law.slab[kinds] * units)


def visit(rng: Generator, law: Regression, w: Array, visited: Array, flaw: str = "") -> tuple[Array, Array]:
    """Which entries are not zero, in turn; also the probabilities, as far as entries were visited."""
    nonzero, probability = w != 0, np.full(len(w), np.nan)
    wrong = flaw if flaw == "others' share forgotten" else ""
    for k in np.flatnonzero(visited):
        probability[k] = special.expit(law.log_odds_integrated(nonzero, k, wrong))
        now = rng.random() < probability[k]
        if flaw == "own value reported":  # as if what the entry itself explains were explained already
            probability[k] = special.expit(law.log_odds_integrated(nonzero, k, flaw))
        nonzero[k] = now
    return nonzero, probability


def relocate_some(rng: Generator, law: Regression, nonzero: Array, flaw: str = "") -> Array:
    """Lift a random nonzero entry, draw its place among the zeros, a few times; in order, if that is the flaw."""
    nonzero, edges = nonzero.copy(), np.count_nonzero(nonzero)
    in_order = flaw == "places in order"
    for k in range(len(nonzero)) if in_order else range(min(edges, MOST_RELOCATIONS)):
        if not 0 < edges < len(nonzero) or (in_order and not nonzero[k]):
            continue
        lifted = k if in_order else np.flatnonzero(nonzero)[int(rng.random() * edges)]
        nonzero[lifted] = False
        zeros = np.flatnonzero(~nonzero)
        places = np.concatenate([[lifted], zeros[zeros != lifted]])  # the old place first
        weight = np.array([law.log_odds_integrated(nonzero, k) for k in places])
        weight -= law.odds[places] if flaw == "relocated without prior odds" else 0.0
        nonzero[places[draw_place(rng, weight)]] = True
    return nonzero


def draw_place(rng: Generator, weight: Array) -> int:
    """A place with probability proportional to ``exp(weight)``."""
    ladder = np.cumsum(np.exp(weight - weight.max()))
    return int(np.searchsorted(ladder, rng.random() * ladder[-1], side="right"))


def redraw(rng: Generator, law: Regression, nonzero: Array) -> Array:
    """The values of all nonzero entries together."""
    w, J = np.zeros(len(nonzero)), np.flatnonzero(nonzero)
    L = np.linalg.cholesky(law.Q[np.ix_(J, J)] + np.diag(1 / law.v[J]))
    w[J] = np.linalg.solve(L.T, np.linalg.solve(L, law.linear[J]) + rng.standard_normal(len(J)))
    return w


def draw_column(
    rng: Generator, W: Array, G: Array, law: Law, i: int, drawn: Array, flaw: str = ""
) -> tuple[Array, Array]:
    """``W11`` with column i drawn, then its pivot; also the probabilities of its entries."""
    others, M, g, regression = column(W, G, law, i, flaw)
    nonzero, probability = visit(rng, regression, W[others, i], drawn[others], flaw)
    w = redraw(rng, regression, relocate_some(rng, regression, nonzero, flaw))
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


def both_blocks(W11: Array, W12: Array, S12: Array, A: Array, law: Law, outside: Array, i: int) -> Regression:
    """The regression of column i of ``W11`` and row i of ``W12`` together, i a query variable."""
    others, q = np.delete(np.arange(len(W11)), i), W12.shape[1]
    M, w = np.linalg.inv(W11[np.ix_(others, others)]), W11[others, i]
    g = W11[i, i] - w @ M @ w
    z = np.hstack([-(M @ W12[others]).T, np.eye(q)])  # as a function of (w, s)
    Q = z.T @ A @ z / g
    Q[: len(others), : len(others)] += law.B[i, i] * M
    linear = -np.concatenate([law.B[others, i], S12[i]])
    slab = law.slab[0] * law.precision[i] * np.append(law.precision[others], outside)
    odds = np.append(log_odds(law.odds[0], law, i, others), np.full(q, math.log(law.odds[0])))
    return Regression(Q, linear, odds, slab)


def relocate(
    rng: Generator, W11: Array, W12: Array, scatter: Scatter, law: Law, outside: Array, flaw: str = ""
) -> tuple[Array, Array]:
    """A random edge of a random query variable moved to any place of both blocks that is zero."""
    A, P = scatter.F.T @ scatter.F + np.eye(W12.shape[1]), len(W11)
    i = int(rng.integers(law.p))
    others = np.delete(np.arange(P), i)
    y = np.concatenate([W11[others, i], W12[i]])
    if not W12.shape[1] or not y.any():
        return W11, W12
    of_others = W12 * (np.arange(P) == i)[:, None] if flaw == "z without w" else W12
    regression = both_blocks(W11, of_others, scatter.S12, A, law, outside, i)
    old = int(rng.choice(np.flatnonzero(y)))
    if flaw == "z as it was":  # places of the other block are weighed as if the entry had not been lifted
        stale = regression.Q[old] * y[old] * ((np.arange(len(y)) < P - 1) != (old < P - 1))
        regression = regression._replace(linear=regression.linear - stale)
    y[old] = 0.0
    weight = np.array([-np.inf if y[k] else regression.log_odds(y, k) for k in range(len(y))])
    weight -= regression.odds if flaw == "moved without propensities" else 0.0
    new = draw_place(rng, weight)
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
        law = self.law(state, scatter)
        W12 = self._draw_plain_cross(rng, state, scatter, law)
        W11, W12 = relocate(rng, state.W11, W12, scatter, law, self.outside, self.flaw)
        G = W12 @ (scatter.F.T @ scatter.F + np.eye(W12.shape[1])) @ W12.T
        W11, inclusion = draw_columns(rng, W11, G, law, self._drawn(rng, state), self.flaw)
        hyper, T = self._draw_hyper(rng, ChainState(W11, W12, state.T, state.hyper))
        return ChainState(W11, W12, T, hyper, None, inclusion), SweepInfo(0, 0.0, 1.0)

    def _draw_plain_cross(self, rng: Generator, state: ChainState, scatter: Scatter, law: Law) -> Array:
        """Rows of ``W12``, all as if they were the query's if that is the flaw."""
        if not self.problem.q:
            return state.W12
        rows = np.arange(self.problem.p)
        kinds = classes(len(rows), rows, 0 if self.flaw == "rows of another class" else self.p)
        U, slab = np.linalg.inv(state.W11), law.slab[kinds] * self.inside
        odds = np.log(law.odds[kinds])
        return draw_rows(rng, state.W12, (U + U.T) / 2, scatter, odds, slab, self.outside, rows)[0]

    def _drawn(self, rng: Generator, state: ChainState) -> Array:
        """Which variables of the block are drawn: all, or as the flaw has it, rather neighbours of the query."""
        drawn = np.ones(len(state.W11), dtype=bool)
        if self.flaw == "candidates by the state":
            neighbours = (state.W11[: self.p] != 0).any(axis=0)
            drawn = neighbours | (rng.random(len(drawn)) < 0.5)
        return drawn

    def _draw_hyper(self, rng: Generator, state: ChainState) -> tuple[Hyper, Array]:
        """Causes of every edge, then inclusion probabilities and propensities, several times; then the slabs."""
        if self.held:
            return self.held, state.T
        edges = self._listed(state.W11, state.W12)
        pairs = [sum(kind == of for *_, kind, _ in edges) for of in self.pairs.classes]
        present = [pair for pair in edges if pair[3]]
        inclusion, propensity = [float(value) for value in self.pairs.values(state.hyper)[0]], state.T.ravel()
        for _ in range(PROPENSITY_DRAWS if self.prior.inclusion is None else 0):
            by_class, by_variable = self._causes(rng, present, inclusion, propensity)
            made, gaps = self.prior.inclusion_law(self.variables)
            for of in self.pairs.classes:
                inclusion[of] = rng.beta(made + by_class[of], gaps + pairs[of] - by_class[of])
            tried = len(state.W11) - 1 if self.flaw != "pairs counted twice" else 2 * len(state.W11) - 2
            tried = self.variables - 1 if self.flaw == "propensities outside" else tried
            made, gaps = self.prior.propensity_law(self.variables)
            propensity = np.minimum(rng.beta(made + by_variable, gaps + tried - by_variable), 1 - 2.0**-53)
        squares = [sum(value**2 for *_, kind, value in present if kind == of) for of in self.pairs.classes]
        counts = [sum(kind == of for *_, kind, _ in present) for of in self.pairs.classes]
        slabs = [self.prior.draw_slab(rng, counts[of], squares[of]) for of in self.pairs.classes]
        return self.pairs.named({of: (inclusion[of], slabs[of]) for of in self.pairs.classes}), propensity[None][
            : len(state.T)
        ]

    def _listed(self, W11: Array, W12: Array) -> list[tuple[int, int, int, float]]:
        """Every pair: its ends, the second -1 if it is outside, its class, and its entry in units of the slab."""
        P, q = W12.shape
        twice = 2 if self.flaw == "pairs counted twice" else 1
        listed = []
        for i in range(P):
            for k in range(i):
                value = W11[i, k] / math.sqrt(self.inside[i] * self.inside[k])
                listed += twice * [(i, k, int(min(i, k) >= self.p), value)]
            for j in range(q):
                listed.append((i, -1, int(i >= self.p), W12[i, j] / math.sqrt(self.inside[i] * self.outside[j])))
        return listed

    def _causes(
        self, rng: Generator, present: list[tuple[int, int, int, float]], inclusion: list[float], propensity: Array
    ) -> tuple[Array, Array]:
        """How many edges each class and each variable has caused; an edge has at least one of its causes."""
        by_class, by_variable = np.zeros(2), np.zeros(len(propensity))
        for i, k, of, _ in present:
            if k < 0 and self.flaw != "propensities outside":
                by_class[of] += 1
                continue
            odds = [inclusion[of], propensity[i], propensity[k] if k >= 0 else 0.0]
            none_of = [1 - np.prod([1 - value for value in odds[place:]]) for place in range(3)]
            cause = rng.random() < odds[0] / none_of[0]
            first = rng.random() < (odds[1] if cause else odds[1] / none_of[1])
            if self.flaw == "one cause for each edge":
                first = first and not cause
            by_class[of] += cause
            by_variable[i] += first
            if k >= 0:
                second = rng.random() < odds[2] if cause or first else True
                by_variable[k] += second and not (self.flaw == "one cause for each edge" and (cause or first))
        return by_class, by_variable


@dataclass(frozen=True, slots=True)
class Relocating(Plain):
    """Nothing but edges that change places between both blocks: every step by itself leaves the law alone.

    Without a flaw, the steps are the package's.
    """

    def sweep(self, rng: Generator, state: ChainState) -> tuple[ChainState, SweepInfo]:
        """Eight steps."""
        scatter, W11, W12 = self.problem.scatter, state.W11, state.W12
        law = self.law(state, scatter)
        for _ in range(8):
            if self.flaw:
                W11, W12 = relocate(rng, W11, W12, scatter, law, self.outside, self.flaw)
            else:
                W11, W12, _ = _block_relocation.relocate(rng, W11.copy(), W12.copy(), scatter, law, self.outside)
        return ChainState(W11, W12, state.T, state.hyper), SweepInfo(0, 0.0, 1.0)
