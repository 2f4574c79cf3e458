"""The Laplace prior of the paper: double exponential entries, ``p(w) = gamma/2 exp(-gamma |w|)``."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from markovblanket.contracts import Array, ChainState, Hyper, RowLaw
from markovblanket.priors.scale_mixture import ScaleMixture, draw_common_factor
from markovblanket.variates import inverse_gaussian


@dataclass(frozen=True)
class Laplace(ScaleMixture):
    """Laplace prior on the entries of ``W12``, with a given rate or one learned from the data.

    ``t ~ Exponential(gamma^2/2)`` and ``w | t ~ N(0, t)`` make ``w`` Laplace with rate gamma, and
    ``1/t | w ~ InverseGaussian(gamma/|w|, gamma^2)``.

    Parameters
    ----------
    gamma : float, optional
        The rate; larger shrinks more. By default it is learned, with a gamma hyperprior.
    shape, rate : float
        The hyperprior's factor ``Gamma(gamma; shape, rate)`` of a learned rate, by default with mean and standard
        deviation 100; it has as much weight as a single entry of ``W12``. (The other factor of the joint prior,
        ``exp -1/2 tr(U W12 W21)``, favours larger rates as q grows.)

    Examples
    --------
    >>> from markovblanket.priors import Laplace
    >>> Laplace(gamma=200).learned, Laplace().learned
    (False, True)
    """

    gamma: float | None = None
    shape: float = 1.0
    rate: float = 0.01

    def __post_init__(self) -> None:
        """Raise ValueError if a parameter is out of range."""
        for name in ("gamma", "shape", "rate"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float | np.floating) and 1e-100 < value < 1e100):
                raise ValueError(f"Laplace({name}={value!r}): {name} must be a number, positive and finite")
        if not 1e-100 < self.shape / self.rate < 1e100:
            raise ValueError(f"Laplace(shape={self.shape!r}, rate={self.rate!r}): shape/rate is too extreme")

    @property
    def learned(self) -> bool:
        """Whether the rate gamma is learned from the data."""
        return self.gamma is None

    def start(self, rng: np.random.Generator, p: int, q: int) -> tuple[Array, Hyper]:
        """Draw initial scales from the prior, and a learned rate from a wide range about ``sqrt(2q)``.

        With the rate ``sqrt(2q)``, a row of ``W12`` has about unit length.
        """
        gamma = self.gamma or math.sqrt(2 * q) * math.exp(rng.uniform(-2, 2))
        return rng.exponential(2 / gamma**2, (p, q)), self._hyper(gamma)

    def draw_scales(self, rng: np.random.Generator, W12: Array, hyper: Hyper) -> tuple[Array, Hyper]:
        """Draw ``gamma | W12 ~ Gamma(pq + shape, sum|w| + rate)``, T integrated out, then ``T | W12, gamma``."""
        size = np.abs(W12)
        gamma = self.gamma or rng.gamma(W12.size + self.shape) / (size.sum() + self.rate)
        with np.errstate(divide="ignore"):  # an entry that is exactly 0 has an infinite mean, which is valid
            D = inverse_gaussian.draw(rng, gamma / size, gamma**2)
        return 1.0 / D, self._hyper(gamma)

    def draw_factor(
        self, rng: np.random.Generator, hyper: Hyper, linear: float, quadratic: float
    ) -> tuple[float, Hyper]:
        """Draw c of the joint move ``(W12, T, gamma) -> (c W12, c^2 T, gamma / c)``; c = 1 if gamma is given."""
        if not self.learned:
            return 1.0, hyper
        gamma = hyper["gamma"]
        c = draw_common_factor(
            rng, lambda u: -self.shape * u - self.rate * gamma * math.exp(-u), linear, quadratic
        )
        return c, self._hyper(gamma / c)

    def row_law(self, state: ChainState) -> RowLaw:
        """Return the log density of ``diag(r) W12`` in r, Jacobian apart: ``-gamma sum_i r_i |w_i|_1``.

        With gamma integrated out, ``-(pq + shape) log(rate + sum_i r_i |w_i|_1)``.
        """
        (p, q), lengths = state.W12.shape, np.abs(state.W12).sum(axis=1)
        if self.gamma is not None:
            return RowLaw(np.full(p, float(q)), self.gamma * lengths, np.zeros(p))
        return RowLaw(np.full(p, float(q)), lengths, np.zeros(p), p * q + self.shape, self.rate)

    def _hyper(self, gamma: float) -> Hyper:
        return {"gamma": float(gamma)} if self.learned else {}
