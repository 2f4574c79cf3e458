"""The spike-and-slab prior: an entry is exactly zero, or normal with the variance of a slab."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from markovblanket.contracts import Array, ChainState, Hyper, RowLaw, Scatter, SolveInfo, Solver
from markovblanket.priors import spike_slab_sweep
from markovblanket.priors.scale_mixture import LEAST_SHAPE, ScaleMixture, draw_common_factor
from markovblanket.priors.spike_slab_sweep import Indices

# Budget of multiplications for the passes over the entries in one sweep. A pass takes p q m; one is always made.
MOST_MULTIPLICATIONS = 600_000
MOST_PASSES = 3
# A propensity has the hyperprior of the inclusion probability with this share of its parameters: the same mean,
# but most are near zero, and some large.
PROPENSITY_SHARE = 0.2
# The largest double below 1: with an inclusion probability of 1 the log-odds would be infinite.
LARGEST_INCLUSION = 1.0 - 2.0**-53


@dataclass(frozen=True)
class SpikeSlab(ScaleMixture):
    """Spike and slab: ``w = 0`` with probability ``1 - inclusion``, otherwise ``w ~ N(0, slab)``.

    Both parameters are learned from the data unless they are given; in a widened block, separately for pairs with
    a query variable and for all other pairs. There, every variable also has a propensity of its own, which is
    large for hubs, unless the inclusion probability is given; and the slab of a pair is ``slab s_i s_j``, with s
    the precision of each variable relative to the smallest one. As a scale mixture, ``t`` is 0 or ``slab``.
    ``W12`` is drawn entry by entry, not by a solver, at the cost of about one product of ``W12`` with the data.

    Parameters
    ----------
    inclusion : float, optional
        Prior probability of an edge. By default it is learned, with a ``Beta(edges, gaps)`` hyperprior, in which
        ``gaps`` is by default the number of variables (in the paper's block, of those outside the query): about
        one neighbour per variable is expected, apart from hubs, and many more are possible.
    slab : float, optional
        Variance of the entries that are not zero. By default it is learned, with an inverse gamma hyperprior
        ``slab ~ InverseGamma(shape, rate)``.
    edges, gaps, shape, rate : float
        Parameters of the hyperpriors.

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
        """Raise ValueError if a parameter is out of range."""
        for name in ("inclusion", "slab", "edges", "gaps", "shape", "rate"):
            value, most = getattr(self, name), 1.0 if name == "inclusion" else 1e100
            least, bound = 1e-100, "between 0 and 1" if name == "inclusion" else "positive and finite"
            if name in ("edges", "gaps", "shape"):
                least, bound = LEAST_SHAPE, f"at least {LEAST_SHAPE} and finite"
            if value is not None and not (isinstance(value, int | float | np.floating) and least <= value < most):
                raise ValueError(f"SpikeSlab({name}={value!r}): {name} must be a number, {bound}")

    def start(self, rng: np.random.Generator, p: int, q: int) -> tuple[Array, Hyper]:
        """Draw initial scales: hardly any to a few neighbours per query variable, and a narrow to wide slab."""
        inclusion, slab = self.start_hyper(rng, q)
        return slab * (rng.random((p, q)) < inclusion), self._hyper(inclusion, slab)

    def draw_cross(
        self, rng: np.random.Generator, state: ChainState, scatter: Scatter, solver: Solver
    ) -> tuple[Array, SolveInfo]:
        """Draw ``W12`` entry by entry, relocate a nonzero entry within its row, and redraw all nonzero entries.

        In small problems up to three such passes are made; they take less time than the rest of a sweep.
        """
        odds, slab = self.zero_law(state.hyper)
        (p, q), U = state.W12.shape, np.linalg.inv(state.W11)
        law = np.full(p, odds), np.full(p, slab), np.ones(q)
        return draw_rows(rng, state.W12, U, scatter, *law, np.arange(p))

    def zero_law(self, hyper: Hyper) -> tuple[float, float]:
        """Return the prior log-odds of an edge, and the variance ``slab`` of its entry."""
        inclusion, slab = self._values(hyper)
        return math.log(inclusion) - math.log1p(-inclusion), slab

    def draw_scales(self, rng: np.random.Generator, W12: Array, hyper: Hyper) -> tuple[Array, Hyper]:
        """Draw ``inclusion | W12``, a beta, and ``slab | W12``, an inverse gamma; ``t`` is ``slab`` or 0."""
        edges, squares = int(np.count_nonzero(W12)), float(np.vdot(W12, W12))
        inclusion = self._draw_inclusion(rng, edges, W12.size, W12.shape[1])
        slab = self.draw_slab(rng, edges, squares)
        return slab * (W12 != 0), self._hyper(inclusion, slab)

    def inclusion_law(self, variables: int) -> tuple[float, float]:
        """Return ``edges`` and ``gaps``, for which the number of variables stands in if they are not given."""
        return self.edges, self.gaps or float(variables)

    def propensity_law(self, variables: int) -> tuple[float, float]:
        """Return a fifth of the law of the inclusion probability: the same mean, less sure."""
        edges, gaps = self.inclusion_law(variables)
        return PROPENSITY_SHARE * edges, PROPENSITY_SHARE * gaps

    def _draw_inclusion(self, rng: np.random.Generator, edges: int, pairs: int, variables: int) -> float:
        """Draw the inclusion probability given ``edges`` nonzero ones among ``pairs``, unless it is given."""
        before, gaps = self.inclusion_law(variables)
        return self.inclusion or min(float(rng.beta(before + edges, gaps + pairs - edges)), LARGEST_INCLUSION)

    def draw_slab(self, rng: np.random.Generator, edges: float, squares: float) -> float:
        """Draw the slab given the number of nonzero entries and their sum of squares, unless it is given."""
        return self.slab or float((self.rate + 0.5 * squares) / rng.gamma(self.shape + 0.5 * edges))

    def start_hyper(self, rng: np.random.Generator, variables: int) -> tuple[float, float]:
        """Draw an over-dispersed ``(inclusion, slab)`` for the start of a chain."""
        inclusion = self.inclusion or min(0.5, math.exp(rng.uniform(-2, 2)) / max(variables, 1))
        return inclusion, self.slab or self.rate / self.shape * math.exp(rng.uniform(-1, 1))

    def expected_inclusion(self, variables: int, causes: int = 1) -> float:
        """Return the prior probability of an edge that has so many causes, averaged over what is learned.

        Causes are the class of the pair and, in a widened block, those of its variables that are in the block.
        """
        edges, gaps = self.inclusion_law(variables)
        return self.inclusion or 1.0 - (gaps / (edges + gaps)) ** causes

    def draw_factor(
        self, rng: np.random.Generator, hyper: Hyper, linear: float, quadratic: float
    ) -> tuple[float, Hyper]:
        """Draw c of the joint move ``(W12, T, slab) -> (c W12, c^2 T, c^2 slab)``; c = 1 if the slab is given."""
        inclusion, slab = self._values(hyper)
        if self.slab is not None:
            return 1.0, hyper
        c = draw_common_factor(
            rng, lambda u: -2 * self.shape * u - self.rate / slab * math.exp(-2 * u), linear, quadratic
        )
        return c, self._hyper(inclusion, c * c * slab)

    def row_law(self, state: ChainState) -> RowLaw:
        """Return the log density of ``diag(r) W12`` in r, Jacobian apart: ``-1/2 sum_i r_i^2 |w_i|^2 / slab``.

        A learned slab is integrated out. Exact zeros do not count in the Jacobian.
        """
        sizes = np.einsum("ij,ij->i", state.W12, state.W12)
        counts, linear = np.count_nonzero(state.W12, axis=1).astype(float), np.zeros(len(sizes))
        if self.slab is not None:
            return RowLaw(counts, linear, sizes / self.slab)
        return RowLaw(counts, linear, sizes, self.shape + 0.5 * counts.sum(), self.rate)

    def _values(self, hyper: Hyper) -> tuple[float, float]:
        """Return the current inclusion probability and slab, given or learned."""
        return self.inclusion or hyper["inclusion"], self.slab or hyper["slab"]

    def _hyper(self, inclusion: float, slab: float) -> Hyper:
        learned = {"inclusion": (self.inclusion, inclusion), "slab": (self.slab, slab)}
        return {name: float(value) for name, (given, value) in learned.items() if given is None}


def draw_rows(
    rng: np.random.Generator,
    W12: Array,
    U: Array,
    scatter: Scatter,
    odds: Array,
    slab: Array,
    factor: Array,
    rows: Indices,
) -> tuple[Array, SolveInfo]:
    """Draw some rows of ``W12`` entry by entry; return all rows and the cost.

    ``odds`` and ``slab`` have a number for every row; ``factor``, for every column, multiplies the slab.
    """
    FT, a, W12 = np.ascontiguousarray(scatter.F.T), 1.0 + scatter.column_sizes, W12.copy()
    R = scatter.Y + U @ scatter.times_factor(W12)
    law = odds, slab, factor
    changes = spike_slab_sweep.sweep(rng, W12, U, R, FT, a, *law, rows, passes(len(rows), *FT.shape))
    return W12, SolveInfo(changes)


def passes(p: int, q: int, m: int) -> int:
    """Return the number of passes over the entries in one sweep, from one to three, by their cost."""
    return min(max(MOST_MULTIPLICATIONS // (p * q * m), 1), MOST_PASSES) if p * q * m else 1
