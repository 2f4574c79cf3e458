"""Posteriors that algebra or quadrature knows, written from the mathematics and independently of the package.

Everything rests on one density, with ``A = S22 + I``, ``B = S11 + I`` and ``U = W11^-1``::

    p(W11, W12 | S)  ∝  |W11|^(n/2) exp -1/2 tr( B W11 + 2 W12 S21 + U W12 A W21 )  x  prior(W12)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import digamma

Array = npt.NDArray[np.floating[Any]]
LogPrior = Callable[[Array], Array]


@dataclass(frozen=True)
class Data:
    """What the posterior sees: the number of rows and the scatter of query (first) and other variables."""

    n: int
    S: Array
    p: int

    @property
    def S12(self) -> Array:
        """Cross scatter."""
        return self.S[: self.p, self.p :]

    @property
    def A(self) -> Array:
        """``S22 + I``."""
        return self.S[self.p :, self.p :] + np.eye(len(self.S) - self.p)

    @property
    def B(self) -> Array:
        """``S11 + I``."""
        return self.S[: self.p, : self.p] + np.eye(self.p)


@dataclass(frozen=True)
class Quadrature:
    """A law as weighted points: every array of ``points`` and the ``weight`` broadcast against each other."""

    points: Mapping[str, Array]
    weight: Array

    @classmethod
    def of(cls, points: Mapping[str, Array], log_density: Array, volume: Array) -> Quadrature:
        """Points with a log density up to a constant, and the rule's own weights."""
        weight = np.exp(log_density - log_density.max()) * volume
        return cls(points, weight / weight.sum())

    def mean(self, f: Array) -> float:
        """Expectation of ``f``, given at the points."""
        return float((self.weight * f).sum())


def panels(edges: Array, nodes: int = 24) -> tuple[Array, Array]:
    """Gauss-Legendre nodes and weights, on each interval between neighbouring ``edges``."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    half = np.diff(edges)[:, None] / 2
    middle = (edges[1:] + edges[:-1])[:, None] / 2
    return (middle + half * x).ravel(), (half * w).ravel()


def scalar_blocks(data: Data, log_prior: LogPrior, nodes: int = 24) -> Quadrature:
    """``(w11, w12)`` for p = q = 1, by a product rule in ``(log w11, w12)``; an edge lies on the prior's kink."""
    u, volume_u = panels(np.linspace(-9.0, 4.0, 9), nodes)
    w, volume_w = panels(np.array([-40.0, -12.0, -5.0, -2.0, -0.7, 0.0, 0.7, 2.0, 5.0, 12.0, 40.0]), nodes)
    x = np.exp(u)[:, None]
    log_density = scalar_log_likelihood(data, x, w) + np.log(x) + log_prior(w)
    return Quadrature.of({"w11": x, "w12": w}, log_density, volume_u[:, None] * volume_w)


def scalar_blocks_and_rate(data: Data, shape: float, rate: float, nodes: int = 16) -> Quadrature:
    """``(w11, w12, gamma)`` for p = q = 1: w12 Laplace with rate ``gamma ~ Gamma(shape, rate)``."""
    grid = scalar_blocks(data, np.zeros_like, nodes)
    v, volume = panels(np.linspace(-12.0, 6.0, 9), nodes)
    gamma, x, w = np.exp(v)[:, None, None], grid.points["w11"], grid.points["w12"]
    log_rate = (shape + 1) * np.log(gamma) - (rate + np.abs(w)) * gamma  # one gamma each from dw and d(log gamma)
    points = {"w11": x, "w12": w, "gamma": gamma}
    return Quadrature.of(points, log_rate + np.zeros_like(x), grid.weight * volume[:, None, None])


def scalar_log_likelihood(data: Data, x: Array, w: Array) -> Array:
    """The density without its prior, for p = q = 1."""
    A, B, s = data.A[0, 0], data.B[0, 0], data.S12[0, 0]
    return np.asarray(data.n / 2 * np.log(x) - (B * x + 2 * w * s + w**2 * A / x) / 2)


@dataclass(frozen=True)
class GivenScalar:
    """p = 1 with a normal prior: given w11 the row W12 is normal and integrates out, leaving one dimension.

    ``W12 | w11 ~ N(-C^-1 s, C^-1)`` with ``C = A/w11 + I/scale^2``, and the integral over W12 is
    ``|C|^(-1/2) exp(s' C^-1 s / 2)``, up to a constant.
    """

    law: Quadrature
    conditional_mean: Array
    conditional_cov: Array

    @classmethod
    def of(cls, data: Data, scale: float) -> GivenScalar:
        """The marginal of w11 by quadrature in its logarithm, and the normal law of W12 at every node."""
        u, volume = panels(np.linspace(-9.0, 4.0, 9))
        x, s = np.exp(u), data.S12[0]
        C = data.A / x[:, None, None] + np.eye(len(s)) / scale**2
        cov = np.linalg.inv(C)
        fit = s @ cov
        log_density = data.n / 2 * u - data.B[0, 0] * x / 2 - np.linalg.slogdet(C)[1] / 2 + fit @ s / 2 + u
        return cls(Quadrature.of({"w11": x}, log_density, volume), -fit, cov)

    @property
    def mean(self) -> Array:
        """Posterior mean of W12."""
        return self.law.weight @ self.conditional_mean

    @property
    def cov(self) -> Array:
        """Posterior covariance of W12: the mean of its variance plus the variance of its mean."""
        deviation = self.conditional_mean - self.mean
        within = np.einsum("k,kij->ij", self.law.weight, self.conditional_cov)
        return np.asarray(within + np.einsum("k,ki,kj->ij", self.law.weight, deviation, deviation))


@dataclass(frozen=True)
class FlatPrior:
    """A flat prior on W12: the first p rows of ``Wishart_(p+q)(n+p+q+1, (S+I)^-1)``.

    Completing the square in W12 leaves ``|W11|^((n+q)/2) exp -1/2 tr((B - S12 A^-1 S21) W11)``, that is
    ``W11 ~ Wishart_p(n+p+q+1, (B - S12 A^-1 S21)^-1)``, and
    ``W12 | W11 ~ -W11 S12 A^-1 + W11^(1/2) Z A^(-1/2)`` with standard normal Z.
    """

    df: float
    scale: Array
    p: int

    @classmethod
    def of(cls, data: Data) -> FlatPrior:
        """Degrees of freedom and the whole scale matrix."""
        size = len(data.S)
        return cls(data.n + size + 1, np.linalg.inv(data.S + np.eye(size)), data.p)

    def mean(self, i: int, j: int) -> float:
        """Of entry (i, j) of the precision matrix."""
        return float(self.df * self.scale[i, j])

    def variance(self, i: int, j: int) -> float:
        """Of entry (i, j) of the precision matrix."""
        V = self.scale
        return float(self.df * (V[i, j] ** 2 + V[i, i] * V[j, j]))

    @property
    def mean_log_det(self) -> float:
        """Of W11."""
        halves = (self.df - np.arange(self.p)) / 2
        block = self.scale[: self.p, : self.p]
        return float(digamma(halves).sum() + self.p * np.log(2) + np.linalg.slogdet(block)[1])


def whitened_residual(W11: Array, W12: Array, data: Data) -> Array:
    """``W11^(-1/2) (W12 + W11 S12 A^-1) A^(1/2)``: standard normal entries under a flat prior."""
    residual = W12 + W11 @ data.S12 @ np.linalg.inv(data.A)
    return np.asarray(np.linalg.solve(np.linalg.cholesky(W11), residual) @ np.linalg.cholesky(data.A))


def without_data(rng: np.random.Generator, W12: Array, n: int) -> tuple[Array, npt.NDArray[np.bool_]]:
    """The posterior for a scatter of zero, by rejection: W11 for every W12 of the prior, and which pairs to keep.

    ``|W11|^(n/2) exp -1/2 tr(W11)`` is ``Wishart_p(n+p+1, I)``, here as Z'Z; what is left of the density is
    the prior and ``exp -1/2 tr(U W12 W21)``, the probability of keeping the pair.
    """
    size, p, _ = W12.shape
    Z = rng.standard_normal((size, n + p + 1, p))
    W11 = Z.transpose(0, 2, 1) @ Z
    trace = np.einsum("kij,kij->k", np.linalg.solve(W11, W12), W12)
    return W11, rng.random(size) < np.exp(-trace / 2)
