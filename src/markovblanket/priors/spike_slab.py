"""An exact zero, or a normal slab: the prior that says which edges there are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovblanket.contracts import Array, ChainState, Hyper, RowLaw, Scatter, SolveInfo, Solver
from markovblanket.priors import spike_slab_sweep
from markovblanket.priors.scale_mixture import LEAST_SHAPE, ScaleMixture, draw_common_factor

CHEAP = 600_000
# The largest probability that a double can tell from 1.
LARGEST = 1.0 - 2.0**-53


@dataclass(frozen=True)
class SpikeSlab(ScaleMixture):
    """``w = 0`` with probability ``1 - inclusion``, else ``w ~ N(0, slab)``; both learned from the data.

    As a scale mixture: ``t`` is 0 or ``slab``. The share of draws in which an entry is not zero is its posterior
    inclusion probability. ``W12`` is drawn entry by entry, not by a solver, at the cost of about one product of
    ``W12`` with the data.

    Parameters
    ----------
    inclusion : float, optional
        Prior probability of an edge. By default it is learned, with a ``Beta(edges, gaps)`` hyperprior, in which
        ``gaps`` is the number of other variables: one neighbour per query variable is expected, and many more are
        possible.
    slab : float, optional
        Variance of the entries that are not zero. By default it is learned, with an inverse gamma hyperprior
        ``slab ~ InverseGamma(shape, rate)``.
    edges, gaps, shape, rate : float
        The hyperpriors.

    References
    ----------
    Castillo, I., Schmidt-Hieber, J. and van der Vaart, A. (2015). Bayesian linear regression with sparse priors.
    Annals of Statistics 43, 1986-2018. (Why ``gaps`` should grow with the number of variables.)

    Examples
    --------
    >>> from markovblanket.priors import SpikeSlab
    >>> SpikeSlab(inclusion=0.1)
    SpikeSlab(inclusion=0.1, slab=None, edges=1.0, gaps=None, shape=2.0, rate=0.5)
    """

    exact_zeros: ClassVar[bool] = True
    inclusion: float | None = None
    slab: float | None = None
    edges: float = 1.0
    gaps: float | None = None
    shape: float = 2.0
    rate: float = 0.5

    def __post_init__(self) -> None:
        """Refuse what is not a law."""
        for name in ("inclusion", "slab", "edges", "gaps", "shape", "rate"):
            value, most = getattr(self, name), 1.0 if name == "inclusion" else 1e100
            least, bound = 1e-100, "between 0 and 1" if name == "inclusion" else "positive and finite"
            if name in ("edges", "gaps", "shape"):
                least, bound = LEAST_SHAPE, f"at least {LEAST_SHAPE} and finite"
            if value is not None and not (isinstance(value, int | float | np.floating) and least <= value < most):
                raise ValueError(f"SpikeSlab({name}={value!r}): {name} must be a number, {bound}")

    def start(self, rng: np.random.Generator, p: int, q: int) -> tuple[Array, Hyper]:
        """From hardly any to a few neighbours per query variable, with slabs from narrow to wide."""
        inclusion = self.inclusion or min(0.5, math.exp(rng.uniform(-2, 2)) / q)
        slab = self.slab or self.rate / self.shape * math.exp(rng.uniform(-1, 1))
        return slab * (rng.random((p, q)) < inclusion), self._hyper(inclusion, slab)

    def draw_cross(
        self, rng: np.random.Generator, state: ChainState, scatter: Scatter, solver: Solver
    ) -> tuple[Array, SolveInfo]:
        """Every entry of ``W12`` given all others; one that is not zero moved along its row; all of those redrawn.

        Small problems have up to three such passes, which take less time than the rest of a sweep.
        """
        odds, slab = self.zero_law(state.hyper)
        U, FT = np.linalg.inv(state.W11), np.ascontiguousarray(scatter.F.T)
        W21, a = state.W12.T.copy(order="C"), 1.0 + scatter.column_sizes
        R = scatter.Y + U @ scatter.times_factor(state.W12)
        changes = spike_slab_sweep.sweep(rng, W21, U, R, FT, a, odds, slab, passes(len(U), *FT.shape))
        return W21.T.copy(order="C"), SolveInfo(changes)

    def zero_law(self, hyper: Hyper) -> tuple[float, float]:
        """The log-odds of an edge, and ``slab``."""
        inclusion, slab = self._values(hyper)
        return math.log(inclusion) - math.log1p(-inclusion), slab

    def draw_scales(self, rng: np.random.Generator, W12: Array, hyper: Hyper) -> tuple[Array, Hyper]:
        """``inclusion | W12`` is beta, ``slab | W12`` inverse gamma; ``t`` is ``slab`` where ``w`` is not zero."""
        edges = np.count_nonzero(W12)
        gaps = (self.gaps or W12.shape[1]) + W12.size - edges
        inclusion = self.inclusion or min(rng.beta(self.edges + edges, gaps), LARGEST)
        rate = self.rate + 0.5 * float(np.vdot(W12, W12))
        slab = self.slab or rate / rng.gamma(self.shape + 0.5 * edges)
        return slab * (W12 != 0), self._hyper(inclusion, slab)

    def draw_factor(
        self, rng: np.random.Generator, hyper: Hyper, linear: float, quadratic: float
    ) -> tuple[float, Hyper]:
        """``(W12, T, slab) -> (c W12, c^2 T, c^2 slab)``."""
        inclusion, slab = self._values(hyper)
        if self.slab is not None:
            return 1.0, hyper
        c = draw_common_factor(
            rng, lambda u: -2 * self.shape * u - self.rate / slab * math.exp(-2 * u), linear, quadratic
        )
        return c, self._hyper(inclusion, c * c * slab)

    def row_law(self, state: ChainState) -> RowLaw:
        """``-1/2 sum_i r_i^2 |w_i|^2 / slab``, or with the slab integrated out; zeros do not move."""
        sizes = np.einsum("ij,ij->i", state.W12, state.W12)
        counts, linear = np.count_nonzero(state.W12, axis=1).astype(float), np.zeros(len(sizes))
        if self.slab is not None:
            return RowLaw(counts, linear, sizes / self.slab)
        return RowLaw(counts, linear, sizes, self.shape + 0.5 * counts.sum(), self.rate)

    def _values(self, hyper: Hyper) -> tuple[float, float]:
        """Inclusion and slab, given or learned."""
        return self.inclusion or hyper["inclusion"], self.slab or hyper["slab"]

    def _hyper(self, inclusion: float, slab: float) -> Hyper:
        learned = {"inclusion": (self.inclusion, inclusion), "slab": (self.slab, slab)}
        return {name: float(value) for name, (given, value) in learned.items() if given is None}


def passes(p: int, q: int, m: int) -> int:
    """How many passes over the entries fit into a sweep, by their multiplications: from one to three."""
    return min(max(CHEAP // (p * q * m), 1), 3) if p * q * m else 1
