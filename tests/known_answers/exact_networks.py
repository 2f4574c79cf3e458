"""Spike-and-slab posteriors of small networks, by enumerating every graph; written independently of the package.

The block V (the first P variables) and the rest R (q others), ``A = S22 + I``, ``B = S11 + I``, ``U = W11^-1``::

    p(W11, W12 | S)  ∝  1{W11 > 0} |W11|^(n/2) exp -1/2 tr( B W11 + 2 W12 S21 + U W12 A W21 )
                        x  prod_{pairs} [ (1 - pi) delta_0(w) + pi N(w; 0, v) ]

over the pairs i < k in V and all of V x R, with a flat measure for the diagonal of W11; pi and v may differ from
pair to pair. A graph says which of these entries are not zero. For each graph

- given W11 the entries of W12 are normal with precision ``U x A + 1/v`` and integrate in closed form;
- W11 is left: P + (edges in V) dimensions. With ``W11 = F'F``, F upper triangular, the logarithms of F's diagonal
  and the entries of F on edges are free, and the density is smooth in them. It has one mode (the density is
  log-concave in W11, W12 jointly, hence in W11 alone). Importance sampling with scrambled Sobol points: the mode
  by Newton's method, mean and covariance from two small pilots, then independent Student coordinates.

The whole network (R empty) needs nothing else. Single out one variable: its column w and its pivot
``g = w_ii - w' W11^-1 w`` enter as ``g^(n/2) exp(-b_ii g / 2)``, a constant once g is integrated, and as
``exp(-w's - b_ii w' W11^-1 w / 2)``. So the other entries have exactly the law of the block model whose rest is
that variable. Any variable may be singled out, which is how the answers are checked against themselves.

The points come in independent scrambles, and the spread between them gives the error of every answer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln, logsumexp, stdtrit
from scipy.stats import qmc

from known_answers.exact import Array

Graph = npt.NDArray[np.bool_]
LogDensity = Callable[[Array], Array]
TAIL = 8.0  # degrees of freedom of the importance density


@dataclass(frozen=True)
class Exact:
    """Answers with their numerical standard errors; ``W = (W11, W12)`` is P x d, for a whole network d x d.

    ``inclusion`` and ``graphs`` have zeros on the diagonal, which is always there. ``log_evidence`` holds, for
    every graph, the logarithm of its prior times its likelihood: the integral of the density above as it stands.
    """

    inclusion: Array
    mean: Array
    inclusion_error: Array
    mean_error: Array
    graphs: Graph
    log_evidence: Array
    log_evidence_error: Array

    @property
    def probability(self) -> Array:
        """Of every graph."""
        return np.asarray(np.exp(self.log_evidence - logsumexp(self.log_evidence)))


@dataclass(frozen=True)
class Model:
    """The density for a block of the first ``P`` variables; ``pi`` and ``v`` are d x d, one entry a pair."""

    n: float
    S: Array
    P: int
    pi: Array
    v: Array

    @property
    def q(self) -> int:
        """Variables in the rest."""
        return len(self.S) - self.P

    def graphs(self) -> Iterator[Graph]:
        """All P x d patterns that the prior allows, symmetric in the block and empty on its diagonal."""
        P, d = self.P, len(self.S)
        pairs = [(i, k) for i in range(P) for k in range(i + 1, d)]
        for chosen in product((False, True), repeat=len(pairs)):
            if any(self.pi[pair] == (not there) for pair, there in zip(pairs, chosen, strict=True)):
                continue  # pi = 0 or 1
            graph = np.zeros((d, d), bool)
            for (i, k), there in zip(pairs, chosen, strict=True):
                graph[i, k] = graph[k, i] = there
            yield graph[:P]

    def log_prior(self, graph: Graph) -> float:
        """Of the pattern alone."""
        pi = np.array([self.pi[i, k] for i in range(self.P) for k in range(i + 1, len(self.S))])
        there = np.array([graph[i, k] for i in range(self.P) for k in range(i + 1, len(self.S))])
        return float(np.log(np.where(there, pi, 1 - pi)).sum())


@dataclass(frozen=True)
class OneGraph:
    """What one graph leaves to integrate: W11 in its free coordinates, with W12 integrated out."""

    model: Model
    graph: Graph

    @cached_property
    def edges(self) -> list[tuple[int, int]]:
        """Inside the block."""
        P = self.model.P
        return [(i, k) for i in range(P) for k in range(i + 1, P) if self.graph[i, k]]

    @cached_property
    def cross(self) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Rows and columns of the entries of W12 that are not zero."""
        rows, columns = np.nonzero(self.graph[:, self.model.P :])
        return rows, columns

    @property
    def dimension(self) -> int:
        """Of the integral."""
        return self.model.P + len(self.edges)

    def block(self, theta: Array) -> tuple[Array, Array]:
        """W11 at the coordinates, and the sum of logarithms of F's diagonal for every row (points x P)."""
        P = self.model.P
        F = np.zeros((len(theta), P, P))
        free = {edge: theta[:, P + k] for k, edge in enumerate(self.edges)}
        for i in range(P):
            F[:, i, i] = np.exp(theta[:, i])
            for k in range(i + 1, P):  # an entry that is zero in W11 fixes the one of F
                F[:, i, k] = free[i, k] if (i, k) in free else -(F[:, :i, i] * F[:, :i, k]).sum(1) / F[:, i, i]
        return np.swapaxes(F, 1, 2) @ F, theta[:, :P]

    def row(self, U: Array) -> tuple[Array, Array, Array]:
        """Covariance and mean of the nonzero entries of W12 given W11, and the logarithm of their integral."""
        m, (rows, columns) = self.model, self.cross
        A = m.S[m.P :, m.P :] + np.eye(m.q)
        s, v = m.S[rows, m.P + columns], m.v[rows, m.P + columns]
        C = U[:, rows[:, None], rows] * A[columns[:, None], columns] + np.diag(1 / v)
        cov = np.linalg.inv(C)
        mean = -cov @ s
        return cov, mean, -(mean @ s + np.log(v).sum() + np.linalg.slogdet(C)[1]) / 2

    def log_density(self, theta: Array) -> Array:
        """Of the coordinates, with prior and Jacobian: integrates to the graph's evidence."""
        m = self.model
        W11, log_F = self.block(theta)
        B = m.S[: m.P, : m.P] + np.eye(m.P)
        later = np.array([sum(i == j for i, _ in self.edges) for j in range(m.P)])  # dW11 / dF = F_ii for each
        f = m.log_prior(self.graph) + m.P * math.log(2) + log_F @ (m.n + 2 + later)
        f = f - np.einsum("ij,kij->k", B, W11) / 2 + self.row(np.linalg.inv(W11))[2]
        for i, k in self.edges:
            v = m.v[i, k]
            f = f - (W11[:, i, k] ** 2 / v + math.log(2 * math.pi * v)) / 2
        return np.asarray(f)

    def means(self, theta: Array) -> tuple[Array, Array]:
        """Mean of ``(W11, W12)`` given W11 (points x P x d), and of the diagonal of ``W21 U W12`` (points x q)."""
        m, (rows, columns) = self.model, self.cross
        W = np.zeros((len(theta), *self.graph.shape))
        W[:, :, : m.P] = self.block(theta)[0]
        U = np.linalg.inv(W[:, :, : m.P])
        cov, mean, _ = self.row(U)
        W[:, rows, m.P + columns] = mean
        second = cov + mean[:, :, None] * mean[:, None, :]
        of = (columns[:, None] == np.arange(m.q)).astype(float)
        return W, np.einsum("kab,kab,aj,bj->kj", U[:, rows[:, None], rows], second, of, of)

    def start(self) -> tuple[Array, Array]:
        """Coordinates to start from, and about how far the density reaches around them."""
        m = self.model
        b = np.diag(m.S)[: m.P] + 1
        ends = np.array([k for _, k in self.edges], int)
        scale = np.concatenate([np.full(m.P, 1 / math.sqrt(2 * m.n + 4)), 1 / np.sqrt(b[ends])])
        return np.concatenate([np.log((m.n + 2) / b) / 2, np.zeros(len(ends))]), scale


def climb(f: LogDensity, start: Array, scale: Array) -> tuple[Array, Array]:
    """Mode of a smooth density and the inverse of its curvature, by Newton's method with finite differences."""
    size, h = len(start), 1e-2
    x, unit = start, np.eye(size)
    a, b = np.triu_indices(size, 1)
    stencil = h * np.concatenate([np.zeros((1, size)), unit, -unit, unit[a] + unit[b], -unit[a] - unit[b]])
    for _ in range(100):
        y = f(x + stencil * scale)
        up, down, both, neither = np.split(y[1:], np.cumsum([size, size, len(a)]))
        gradient, curvature = (up - down) / (2 * h), np.diag(up + down - 2 * y[0]) / h**2
        curvature[a, b] = (both + neither + 2 * y[0] - up[a] - up[b] - down[a] - down[b]) / (2 * h**2)
        curvature[b, a] = curvature[a, b]
        values, vectors = np.linalg.eigh(-curvature)
        values = np.maximum(np.abs(values), 0.05)
        step = vectors @ (vectors.T @ gradient / values)
        lengths = 0.5 ** np.arange(12)
        heights = f(x + lengths[:, None] * step * scale)
        best = int(np.argmax(heights))
        if gradient @ step < 1e-4 or not heights[best] > y[0]:
            return x, (vectors / values) @ vectors.T * np.outer(scale, scale)
        x = x + lengths[best] * step * scale
    raise RuntimeError("no mode in a hundred steps")


@dataclass(frozen=True)
class Importance:
    """Independent Student coordinates, moved and stretched."""

    mean: Array
    factor: Array

    @classmethod
    def of(cls, mean: Array, cov: Array) -> Importance:
        """With these moments, the covariance somewhat widened by the Student tails."""
        return cls(mean, np.linalg.cholesky(cov))

    def weighted(self, f: LogDensity, z: Array) -> tuple[Array, Array]:
        """The points, and the logarithms of density over importance density."""
        z = z[:, : len(self.mean)]
        log_q = -(TAIL + 1) / 2 * np.log1p(z**2 / TAIL).sum(1) - np.log(np.diag(self.factor)).sum()
        each = gammaln((TAIL + 1) / 2) - gammaln(TAIL / 2) - math.log(TAIL * math.pi) / 2
        theta = self.mean + z @ self.factor.T
        return theta, f(theta) - log_q - len(self.mean) * each

    def refined(self, f: LogDensity, z: Array) -> Importance:
        """With the moments that its own points give."""
        theta, log_weight = self.weighted(f, z)
        w = np.exp(log_weight - log_weight.max())
        w /= w.sum()
        mean = w @ theta
        return Importance.of(mean, (w[:, None] * (theta - mean)).T @ (theta - mean))


def student(dimension: int, log2: int, seed: int) -> Array:
    """Independent Student coordinates at scrambled Sobol points, the same for all graphs."""
    uniform = qmc.Sobol(dimension, scramble=True, seed=seed).random_base2(log2)
    return np.asarray(stdtrit(TAIL, np.clip(uniform, 1e-12, 1 - 1e-12)))


def integrate(model: Model, log2: int, scrambles: int) -> tuple[Graph, Array, Array, Array]:
    """The graphs; by scramble and graph the log evidence and, given the graph, the means of ``OneGraph``."""
    graphs = np.array(list(model.graphs()))
    P, q = model.P, model.q
    dimension = P * (P + 1) // 2
    pilots = [student(dimension, 9, 1000 + k) for k in range(2)]
    points = np.concatenate([student(dimension, log2, k) for k in range(scrambles)])
    log_evidence = np.zeros((scrambles, len(graphs)))
    W, inner = np.zeros((scrambles, len(graphs), P, P + q)), np.zeros((scrambles, len(graphs), q))
    for g, graph in enumerate(graphs):
        one = OneGraph(model, graph)
        density = Importance.of(*climb(one.log_density, *one.start()))
        for pilot in pilots:
            density = density.refined(one.log_density, pilot)
        theta, log_weight = density.weighted(one.log_density, points)
        log_weight = log_weight.reshape(scrambles, -1)
        log_evidence[:, g] = logsumexp(log_weight, axis=1) - log2 * math.log(2)
        w = np.exp(log_weight - logsumexp(log_weight, axis=1, keepdims=True))
        for total, values in zip((W, inner), one.means(theta), strict=True):
            total[:, g] = np.einsum("rk,rk...->r...", w, values.reshape(scrambles, -1, *values.shape[1:]))
    return graphs, log_evidence, W, inner


def summary(graphs: Graph, log_evidence: Array, W: Array) -> Exact:
    """Pooled over the scrambles, with jackknife errors."""
    scrambles = len(W)

    def pooled(chosen: list[int]) -> tuple[Array, Array, Array]:
        z = logsumexp(log_evidence[chosen], axis=0) - math.log(len(chosen))
        share = np.exp(log_evidence[chosen] - logsumexp(z)) / len(chosen)
        return np.einsum("rg,gij->ij", share, graphs.astype(float)), np.einsum("rg,rgij->ij", share, W[chosen]), z

    def error(without: list[Array]) -> Array:
        return np.asarray(np.std(without, axis=0) * math.sqrt(scrambles - 1))

    inclusion, mean, z = pooled(list(range(scrambles)))
    left_out = [pooled([r for r in range(scrambles) if r != out]) for out in range(scrambles)]
    e_inclusion, e_mean, e_z = (error([part[k] for part in left_out]) for k in range(3))
    return Exact(inclusion, mean, e_inclusion, e_mean, graphs, z, e_z)


def pairs(d: int, value: float | Array) -> Array:
    """One value for every pair, or the d x d array of them."""
    return np.broadcast_to(np.asarray(value, float), (d, d))


def by_class(d: int, query: int, touching: float, others: float) -> Array:
    """One value for the pairs that touch the first ``query`` variables, another for those that do not."""
    touches = np.arange(d) < query
    return np.where(touches[:, None] | touches, touching, others)


def block(
    n: float, S: Array, P: int, pi: float | Array, v: float | Array, *, log2: int = 10, scrambles: int = 8
) -> Exact:
    """Inclusion probabilities and means of ``(W11, W12)``, P x d, for P <= 3 and a few variables in the rest.

    ``scrambles`` times ``2^log2`` points for each of ``2^(P(P-1)/2 + Pq)`` graphs.
    """
    model = Model(n, S, P, pairs(len(S), pi), pairs(len(S), v))
    graphs, log_evidence, W, _ = integrate(model, log2, scrambles)
    return summary(graphs, log_evidence, W)


def network(
    n: float, S: Array, pi: float | Array, v: float | Array, *, last: int = -1, log2: int = 10, scrambles: int = 8
) -> Exact:
    """Inclusion probabilities and means of W, d x d, d from 2 to 4, with column ``last`` in closed form.

    Every ``last`` gives the same answer by another integral.
    """
    d = len(S)
    last %= d
    order = [k for k in range(d) if k != last] + [last]
    back, at = np.argsort(order), np.ix_(order, order)
    model = Model(n, S[at], d - 1, pairs(d, pi)[at], pairs(d, v)[at])
    part, log_evidence, W, inner = integrate(model, log2, scrambles)
    shape, rate = n / 2 + 1, (S[last, last] + 1) / 2  # the pivot's law
    graphs = np.zeros((len(part), d, d), bool)
    whole = np.zeros((*W.shape[:2], d, d))
    graphs[:, :-1], whole[:, :, :-1] = part, W
    graphs[:, -1, :-1], whole[:, :, -1, :-1] = part[:, :, -1], W[:, :, :, -1]
    whole[:, :, -1, -1] = shape / rate + inner[:, :, 0]
    log_evidence = log_evidence + gammaln(shape) - shape * math.log(rate)
    graphs, whole = graphs[:, back][:, :, back], whole[:, :, back][:, :, :, back]
    upper = graphs[(slice(None), *np.triu_indices(d, 1))]
    rank = np.lexsort(upper.T[::-1])  # in the same order whatever ``last``
    return summary(graphs[rank], log_evidence[:, rank], whole[:, rank])
