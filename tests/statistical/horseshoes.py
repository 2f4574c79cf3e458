"""Mistakes that are easily made with the regularised horseshoe."""

from __future__ import annotations

import math
from unittest import mock

import numpy as np

from markovblanket.contracts import Array, ChainState, Hyper, Scatter
from markovblanket.priors import Horseshoe, _horseshoe_scales, _horseshoe_small_entries
from markovblanket.priors._horseshoe_scales import regularised

Generator = np.random.Generator


class WithoutSlab(Horseshoe):
    """``t = tau^2 lambda^2``."""

    def draw_scales(self, rng: Generator, W12: Array, hyper: Hyper) -> tuple[Array, Hyper]:
        """The slab drawn, and not used."""
        T, drawn = super().draw_scales(rng, W12, hyper)
        return _horseshoe_small_entries.local_variances(T, drawn["slab"]), drawn


class PlainLocalScales(Horseshoe):
    """``lambda | w`` of the plain horseshoe: the slab left out of the normal law's height."""

    def draw_scales(self, rng: Generator, W12: Array, hyper: Hyper) -> tuple[Array, Hyper]:
        """Regularised afterwards."""
        s = _horseshoe_scales.draw(rng, W12, hyper["tau"], math.inf)
        slab = self._draw_slab(rng, s, float(np.vdot(W12, W12)), hyper["slab"])
        return regularised(s, slab), self._hyper(self._draw_tau(rng, s, hyper["tau"]), slab)


class RootOfLambda(Horseshoe):
    """``lambda`` for ``lambda^2``."""

    def draw_scales(self, rng: Generator, W12: Array, hyper: Hyper) -> tuple[Array, Hyper]:
        """``s = tau^2 lambda``."""
        s = hyper["tau"] * np.sqrt(_horseshoe_scales.draw(rng, W12, hyper["tau"], hyper["slab"]))
        slab = self._draw_slab(rng, s, float(np.vdot(W12, W12)), hyper["slab"])
        return regularised(s, slab), self._hyper(self._draw_tau(rng, s, hyper["tau"]), slab)


class OffByOne(Horseshoe):
    """The law of ``tau`` with one power too many: that of ``tau`` for that of ``log tau``."""

    def _log_prior_tau(self, x: float) -> float:
        """``tau^2 / (scale^2 + tau^2)``."""
        return super()._log_prior_tau(x) + x


class ChosenByRule(Horseshoe):
    """The joint move of ``tau`` and free entries, without the probability of these being the free ones."""

    def draw_jointly(self, rng: Generator, state: ChainState, scatter: Scatter) -> ChainState:
        """``1 / (1 + c^2 s/k)`` left out."""
        law = _horseshoe_small_entries.law_of_scales

        def forgetful(s: Array, ratio: Array, others: Array, tau: float, slab: float):
            return law(s, np.zeros_like(ratio), others, tau, slab)

        with mock.patch.object(_horseshoe_small_entries, "law_of_scales", forgetful):
            return super().draw_jointly(rng, state, scatter)
