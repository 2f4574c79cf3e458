"""The model, written once from its mathematics and independently of the package.

::

    W11, W12, T, hyper   ∝  exp -1/2 tr(W11 + U W12 W21)  x  mixture(W12, T, hyper)        U = W11^-1
    X1 | X2, W11, W12    ~  N(-X2 W21 U, U), row by row, X2 held fixed

Everything is batched: a leading axis counts draws.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Generator = np.random.Generator


@dataclass(frozen=True)
class Theta:
    """Parameters; every array has a leading axis that counts draws."""

    W11: Array
    W12: Array
    T: Array
    hyper: Mapping[str, Array]

    def __len__(self) -> int:
        return len(self.W11)

    def map(self, f: Callable[[Array], Array]) -> Theta:
        """``f`` of every array."""
        return Theta(f(self.W11), f(self.W12), f(self.T), {name: f(v) for name, v in self.hyper.items()})


class Mixture(Protocol):
    """A scale mixture of normals, with its hyperparameters."""

    def draw(self, rng: Generator, size: int, p: int, q: int) -> tuple[Array, dict[str, Array]]:
        """``size`` independent ``(T, hyper)``."""

    def log_density(self, T: Array, hyper: Mapping[str, Array]) -> Array:
        """Log density of ``(T, hyper)``, normalised in ``T``."""


@dataclass(frozen=True)
class FixedScales:
    """``T = scale^2``: a normal law of ``W12``."""

    scale: float

    def draw(self, rng: Generator, size: int, p: int, q: int) -> tuple[Array, dict[str, Array]]:
        return np.full((size, p, q), self.scale**2), {}

    def log_density(self, T: Array, hyper: Mapping[str, Array]) -> Array:
        return np.zeros(len(T))


def unequal(p: int, q: int) -> Array:
    """Scales ``T`` from 0.01 to 10, growing along rows and then from row to row."""
    return np.geomspace(0.01, 10, p * q).reshape(p, q)


class UnequalScales:
    """A known ``T`` that differs from entry to entry: shows whether every entry meets its own."""

    def draw(self, rng: Generator, size: int, p: int, q: int) -> tuple[Array, dict[str, Array]]:
        return np.tile(unequal(p, q), (size, 1, 1)), {}

    def log_density(self, T: Array, hyper: Mapping[str, Array]) -> Array:
        return np.zeros(len(T))


@dataclass(frozen=True)
class ExponentialScales:
    """``t ~ Exponential(gamma^2/2)``: a Laplace law of ``W12``; gamma given, or ``~ Gamma(shape, rate)``."""

    gamma: float | None = None
    shape: float = 1.0
    rate: float = 1.0

    def draw(self, rng: Generator, size: int, p: int, q: int) -> tuple[Array, dict[str, Array]]:
        learned = self.gamma is None
        gamma = rng.gamma(self.shape, 1 / self.rate, size) if learned else np.full(size, self.gamma)
        T = rng.exponential(1.0, (size, p, q)) * (2 / gamma**2)[:, None, None]
        return T, {"gamma": gamma} if learned else {}

    def log_density(self, T: Array, hyper: Mapping[str, Array]) -> Array:
        gamma = hyper["gamma"] if self.gamma is None else np.full(len(T), self.gamma)
        log_T = T[0].size * np.log(gamma**2 / 2) - gamma**2 / 2 * T.sum((1, 2))
        return log_T + ((self.shape - 1) * np.log(gamma) - self.rate * gamma if self.gamma is None else 0.0)


@dataclass(frozen=True)
class HorseshoeScales:
    """``1/t = 1/(tau lambda)^2 + 1/slab``, lambda half-Cauchy; ``tau ~ HalfCauchy(scale)``.

    The slab is given, possibly infinite, or inverse gamma.
    """

    scale: float = 1.0
    slab: float | None = None
    shape: float = 1.0
    rate: float = 1.0

    def draw(self, rng: Generator, size: int, p: int, q: int) -> tuple[Array, dict[str, Array]]:
        tau = self.scale * np.abs(rng.standard_cauchy(size))
        slab = np.full(size, self.slab) if self.slab else self.rate / rng.gamma(self.shape, size=size)
        local = (tau[:, None, None] * rng.standard_cauchy((size, p, q))) ** 2
        return 1 / (1 / local + 1 / slab[:, None, None]), {"tau": tau} | ({} if self.slab else {"slab": slab})

    def log_density(self, T: Array, hyper: Mapping[str, Array]) -> Array:
        tau, slab = hyper["tau"][:, None, None], np.array(self.slab or hyper["slab"]).reshape(-1, 1, 1)
        local = 1 / (1 / T - 1 / slab)
        log_local = np.log(tau / np.pi) - 0.5 * np.log(local) - np.log(tau**2 + local) + 2 * np.log(local / T)
        log_slab = 0.0 if self.slab else -(self.shape + 1) * np.log(hyper["slab"]) - self.rate / hyper["slab"]
        return log_local.sum((1, 2)) - np.log(self.scale**2 + hyper["tau"] ** 2) + log_slab


@dataclass(frozen=True)
class SpikeScales:
    """``t`` is zero, or ``slab`` with probability ``inclusion``; ``Beta`` and inverse gamma hyperpriors."""

    inclusion: float | None = None
    slab: float | None = None
    edges: float = 1.0
    gaps: float = 1.0
    shape: float = 1.0
    rate: float = 1.0

    def draw(self, rng: Generator, size: int, p: int, q: int) -> tuple[Array, dict[str, Array]]:
        inclusion = rng.beta(self.edges, self.gaps, size) if self.inclusion is None else self.inclusion
        slab = self.rate / rng.gamma(self.shape, size=size) if self.slab is None else self.slab
        inclusion, slab = np.broadcast_to(inclusion, size), np.broadcast_to(slab, size)
        T = slab[:, None, None] * (rng.random((size, p, q)) < inclusion[:, None, None])
        learned = {"inclusion": (self.inclusion, inclusion), "slab": (self.slab, slab)}
        return T, {name: value for name, (given, value) in learned.items() if given is None}

    def log_density(self, T: Array, hyper: Mapping[str, Array]) -> Array:
        raise NotImplementedError("a law with atoms has no density")


def log_prior(theta: Theta, mixture: Mixture) -> Array:
    """Log density of the prior of ``(W11, W12, T, hyper)``, up to one constant."""
    U = np.linalg.inv(theta.W11)
    wishart = -0.5 * np.trace(theta.W11, axis1=1, axis2=2) - 0.5 * quadratic(U, theta.W12, None)
    normals = -0.5 * (np.log(2 * np.pi * theta.T) + theta.W12**2 / theta.T).sum((1, 2))
    return wishart + normals + mixture.log_density(theta.T, theta.hyper)


def log_likelihood(theta: Theta, S11: Array, S12: Array, S22: Array, n: int) -> Array:
    """Log density of ``X1`` given ``X2``, up to one constant: rows ``N(-X2 W21 U, U)``."""
    U = np.linalg.inv(theta.W11)
    crossed = np.einsum("rij,rij->r", theta.W11, S11) + 2 * np.einsum("rij,rij->r", theta.W12, S12)
    return 0.5 * n * np.linalg.slogdet(theta.W11)[1] - 0.5 * (crossed + quadratic(U, theta.W12, S22))


def log_joint(theta: Theta, S11: Array, S12: Array, S22: Array, n: int, mixture: Mixture) -> Array:
    """Log density of parameters and data together, up to one constant."""
    return log_prior(theta, mixture) + log_likelihood(theta, S11, S12, S22, n)


def quadratic(U: Array, W12: Array, S22: Array | None) -> Array:
    """``tr(U W12 S22 W21)``, with the identity for ``S22`` if it is None."""
    right = W12 if S22 is None else W12 @ S22
    return np.einsum("rij,rik,rjk->r", U, W12, right)


def propose(rng: Generator, size: int, p: int, q: int, mixture: Mixture) -> Theta:
    """``W11 ~ Wishart_p(p+1, I)`` and, independently, ``(W12, T, hyper)`` from the mixture."""
    Z = rng.standard_normal((size, p + 1, p))
    T, hyper = mixture.draw(rng, size, p, q)
    return Theta(Z.swapaxes(1, 2) @ Z, np.sqrt(T) * rng.standard_normal((size, p, q)), T, hyper)


def draw_prior(rng: Generator, size: int, p: int, q: int, mixture: Mixture) -> Theta:
    """Exact draws from the prior: proposals accepted with probability ``exp -1/2 tr(U W12 W21)``."""
    accepted: list[Theta] = []
    while sum(map(len, accepted)) < size:
        proposal = propose(rng, 4 * size, p, q, mixture)
        log_probability = -0.5 * quadratic(np.linalg.inv(proposal.W11), proposal.W12, None)
        keep = rng.exponential(size=len(proposal)) > -log_probability
        accepted.append(proposal.map(lambda x, keep=keep: x[keep]))
    return concatenate(accepted).map(lambda x: x[:size])


def concatenate(parts: list[Theta]) -> Theta:
    """All draws of ``parts``, one after the other."""
    hyper = {name: np.concatenate([part.hyper[name] for part in parts]) for name in parts[0].hyper}
    W11, W12, T = (np.concatenate([getattr(part, name) for part in parts]) for name in ("W11", "W12", "T"))
    return Theta(W11, W12, T, hyper)


def draw_data(rng: Generator, theta: Theta, X2: Array) -> Array:
    """``X1``, one n x p matrix for every draw of the parameters."""
    U = np.linalg.inv(theta.W11)
    E = rng.standard_normal((len(theta), len(X2), U.shape[1]))
    return E @ np.linalg.cholesky(U).swapaxes(1, 2) - X2 @ theta.W12.swapaxes(1, 2) @ U
