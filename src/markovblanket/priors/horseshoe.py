"""The regularised horseshoe prior: entries are nearly zero, or nearly normal with the variance of a slab."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from markovblanket.contracts import Array, ChainState, Hyper, Scatter
from markovblanket.priors import _horseshoe_scales, _horseshoe_small_entries
from markovblanket.priors._horseshoe_scales import regularised
from markovblanket.priors.scale_mixture import LEAST_SHAPE, ScaleMixture, draw_common_factor
from markovblanket.variates import slice


@dataclass(frozen=True)
class Horseshoe(ScaleMixture):
    """Regularised horseshoe: ``w ~ N(0, t)``, ``1/t = 1/(tau lambda)^2 + 1/slab``, every ``lambda`` half-Cauchy.

    Entries are shrunk to nearly zero by the global ``tau``, which is learned, unless
    their own ``lambda`` is large; then they are nearly ``N(0, slab)``.

    Parameters
    ----------
    edges : float, optional
        Expected number of edges, which sets ``scale``, see :meth:`for_data`. Not used by default.
    scale : float, optional
        ``tau ~ HalfCauchy(scale)``; 1 by default.
    slab : float, optional
        Variance of entries that are not shrunk; ``inf`` for the plain horseshoe. By default it is learned, with
        the hyperprior ``slab ~ InverseGamma(shape, rate)``, which makes these entries Student t.
    shape, rate : float
        Parameters of this hyperprior; by default the Student t has 4 degrees of freedom and scale 2.

    References
    ----------
    Carvalho, C. M., Polson, N. G. and Scott, J. G. (2010). The horseshoe estimator for sparse signals.
    Biometrika 97, 465-480.
    Piironen, J. and Vehtari, A. (2017). Sparsity information and regularization in the horseshoe and other
    shrinkage priors. Electronic Journal of Statistics 11, 5018-5051.

    Examples
    --------
    >>> from markovblanket.priors import Horseshoe
    >>> Horseshoe(slab=1.0)
    Horseshoe(edges=None, scale=None, slab=1.0, shape=2.0, rate=8.0)
    """

    edges: float | None = None
    scale: float | None = None
    slab: float | None = None
    shape: float = 2.0
    rate: float = 8.0

    def __post_init__(self) -> None:
        """Raise ValueError if a parameter is out of range."""
        for name in ("edges", "scale", "slab", "shape", "rate"):
            value, least = getattr(self, name), LEAST_SHAPE if name == "shape" else 1e-100
            inside = value is None or (isinstance(value, int | float | np.number) and least <= value < 1e100)
            if not (inside or (name == "slab" and value == math.inf)):
                bound = f"at least {LEAST_SHAPE}" if name == "shape" else "positive"
                raise ValueError(f"Horseshoe({name}={value!r}): {name} must be a number, {bound} and finite")

    def for_data(self, p: int, q: int, n: int) -> Horseshoe:
        """Return the prior with its scale computed from the expected number of edges, for tables of n rows.

        ``scale = edges / (pq - edges) / sqrt(n)``. The prior multiplies the least-squares estimate of an entry by
        about ``1 - kappa``, with ``kappa = 1 / (1 + n tau^2 lambda^2)`` for a query variable of unit residual
        variance and columns of mean square 1. The mean of that factor over ``lambda`` is
        ``tau sqrt(n) / (1 + tau sqrt(n))``, so at ``tau = scale`` the expected factors of the pq entries add up to
        ``edges`` (Piironen and Vehtari 2017, section 3). :func:`markovblanket.estimate` calls this method.

        Parameters
        ----------
        p, q, n : int
            Numbers of query variables, other variables and rows.

        Returns
        -------
        Horseshoe
            The prior with a scale; itself if ``edges`` is not given or ``scale`` is.

        Examples
        --------
        >>> from markovblanket.priors import Horseshoe
        >>> round(Horseshoe(edges=20).for_data(p=10, q=90, n=100).scale, 6)
        0.002273
        """
        if self.edges is None or self.scale is not None:
            return self
        if self.edges >= p * q:
            raise ValueError(f"Horseshoe(edges={self.edges}): must be less than the number of entries, {p} x {q}")
        return replace(self, scale=self.edges / (p * q - self.edges) / math.sqrt(n))

    def start(self, rng: np.random.Generator, p: int, q: int) -> tuple[Array, Hyper]:
        """Draw initial scales: hardly any to a few neighbours per query variable, and a narrow to wide slab."""
        tau = math.exp(rng.uniform(-2, 2)) / q
        slab = self.slab or self.rate / self.shape * math.exp(rng.uniform(-1, 1))
        s = np.square(tau * rng.standard_cauchy((p, q)))
        return regularised(s, slab), self._hyper(tau, slab)

    def draw_scales(self, rng: np.random.Generator, W12: Array, hyper: Hyper) -> tuple[Array, Hyper]:
        """Draw ``lambda | W12, tau, slab``, then ``tau`` and ``slab`` given ``s = tau^2 lambda^2`` and ``W12``.

        ``tau`` is drawn given the variances s, not given ``lambda``, where it could move only half as far.
        """
        slab = self.slab or hyper["slab"]
        s = _horseshoe_scales.draw(rng, np.ascontiguousarray(W12), hyper["tau"], slab)
        tau = self._draw_tau(rng, s, hyper["tau"])
        slab = self.slab or self._draw_slab(rng, s, float(np.vdot(W12, W12)), slab)
        return regularised(s, slab), self._hyper(tau, slab)

    def draw_jointly(self, rng: np.random.Generator, state: ChainState, scatter: Scatter) -> ChainState:
        """Move ``tau`` jointly with the entries about which the data say little.

        See :mod:`markovblanket.priors._horseshoe_small_entries`.
        """
        return _horseshoe_small_entries.draw(
            rng, state, scatter, self.slab or state.hyper["slab"], self._log_prior_tau
        )

    def draw_factor(
        self, rng: np.random.Generator, hyper: Hyper, linear: float, quadratic: float
    ) -> tuple[float, Hyper]:
        """Draw c of ``(W12, T, tau, slab) -> (c W12, c^2 T, c tau, c^2 slab)``; 1 if a finite slab is given."""
        tau, slab = hyper["tau"], self.slab or hyper["slab"]
        if self.slab is not None and self.slab < math.inf:
            return 1.0, hyper
        c = draw_common_factor(rng, lambda u: self._log_hyperprior(u, tau, slab), linear, quadratic)
        return c, self._hyper(c * tau, c * c * slab)

    def _log_hyperprior(self, u: float, tau: float, slab: float) -> float:
        """Return the log density of the hyperprior at ``(e^u tau, e^2u slab)``, with the Jacobian."""
        log_tau = self._log_prior_tau(math.log(tau) + u)
        return log_tau if self.slab is not None else log_tau + self._log_prior_slab(math.log(slab) + 2 * u)

    def _log_prior_tau(self, x: float) -> float:
        """Return the log density of ``x = log tau``: ``tau / (scale^2 + tau^2)``."""
        return x - math.log(self._scale**2 + math.exp(2 * x))

    def _log_prior_slab(self, x: float) -> float:
        """Return the log density of ``x = log slab``: ``slab^-shape exp(-rate/slab)``."""
        return -self.shape * x - self.rate * math.exp(-x)

    def _draw_tau(self, rng: np.random.Generator, s: Array, tau: float) -> float:
        """Move ``tau`` given s by a slice step on ``log tau``; every s has the factor ``tau / (tau^2 + s)``."""

        def log_density(x: float) -> float:
            return self._log_prior_tau(x) - s.size * x - _horseshoe_scales.sum_log(s, math.exp(2 * x))

        return math.exp(slice.step(rng, math.log(tau), log_density, width=min(1.0, 4 / math.sqrt(s.size))))

    def _draw_slab(self, rng: np.random.Generator, s: Array, size: float, slab: float) -> float:
        """Move ``slab`` given s and ``W12`` by a slice step on ``log slab``.

        Every entry has the factor ``sqrt(1/s + 1/slab) exp(-w^2 / (2 slab))``.
        """

        def log_density(x: float) -> float:
            slab = math.exp(x)
            return self._log_prior_slab(x) + 0.5 * _horseshoe_scales.sum_log(s, slab) - 0.5 * size / slab

        return math.exp(slice.step(rng, math.log(slab), log_density, width=1.0))

    @property
    def _scale(self) -> float:
        if self.scale is None and self.edges is not None:
            raise ValueError(f"Horseshoe(edges={self.edges}) needs the sizes of the data: .for_data(p, q, n)")
        return 1.0 if self.scale is None else self.scale

    def _hyper(self, tau: float, slab: float) -> Hyper:
        return {"tau": float(tau)} | ({"slab": float(slab)} if self.slab is None else {})
