"""Mistakes that are easily made with the regularised horseshoe."""

from __future__ import annotations

import math

import numpy as np

from markovblanket.contracts import Array, Hyper
from markovblanket.priors import Horseshoe, local_scales
from markovblanket.priors.horseshoe import regularised

Generator = np.random.Generator


class WithoutSlab(Horseshoe):
    """``t = tau^2 lambda^2``."""

    def draw_scales(self, rng: Generator, W12: Array, hyper: Hyper) -> tuple[Array, Hyper]:
        """The slab drawn, and not used."""
        T, drawn = super().draw_scales(rng, W12, hyper)
        return 1 / (1 / T - 1 / drawn["slab"]), drawn


class PlainLocalScales(Horseshoe):
    """``lambda | w`` of the plain horseshoe: the slab left out of the normal law's height."""

    def draw_scales(self, rng: Generator, W12: Array, hyper: Hyper) -> tuple[Array, Hyper]:
        """Regularised afterwards."""
        s = local_scales.draw(rng, W12, hyper["tau"], math.inf)
        slab = self._draw_slab(rng, s, float(np.vdot(W12, W12)), hyper["slab"])
        return regularised(s, slab), self._hyper(self._draw_tau(rng, s, hyper["tau"]), slab)


class RootOfLambda(Horseshoe):
    """``lambda`` for ``lambda^2``."""

    def draw_scales(self, rng: Generator, W12: Array, hyper: Hyper) -> tuple[Array, Hyper]:
        """``s = tau^2 lambda``."""
        s = hyper["tau"] * np.sqrt(local_scales.draw(rng, W12, hyper["tau"], hyper["slab"]))
        slab = self._draw_slab(rng, s, float(np.vdot(W12, W12)), hyper["slab"])
        return regularised(s, slab), self._hyper(self._draw_tau(rng, s, hyper["tau"]), slab)


class OffByOne(Horseshoe):
    """The law of ``tau`` with one power too many: that of ``tau`` for that of ``log tau``."""

    def _log_prior_tau(self, x: float) -> float:
        """``tau^2 / (scale^2 + tau^2)``."""
        return super()._log_prior_tau(x) + x
