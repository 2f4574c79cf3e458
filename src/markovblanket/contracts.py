"""Notation, the data types shared by all packages, and the protocols of the parts that can be exchanged.

The mathematical packages use the paper's letters throughout:

=========  ===============  =============================================================================
letter     shape            meaning
=========  ===============  =============================================================================
n, p, q                     rows; query variables; remaining variables
X1, X2     n x p, n x q     standardised data, one row per observation
S = X'X                     the scatter, a sum over rows; blocks ``S11, S12, S22``
A, B       q x q, p x p     ``S22 + I`` and ``S11 + I``: scatter plus the identity of the Wishart prior
F          m x q            a factor of the scatter, ``F'F = S22``, with ``m <= min(n, q)`` rows
W                           precision matrix, blocks ``W11`` (p x p), ``W12`` (p x q), ``W22``
U          p x p            ``W11^-1``
T, D       p x q            variances of the normal scale mixture on ``W12``; ``D = 1/T``
G          p x p            ``W12 A W21``
=========  ===============  =============================================================================

The posterior (Lemma 1 of Kaufmann et al. 2016)::

    p(W11, W12, T | S)  ∝  |W11|^(n/2) exp -1/2 tr( B W11 + 2 W12 S21 + U W12 A W21 )
                           x  prod_ij N(w_ij; 0, t_ij) p(t_ij)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.floating[Any]]
Indices = npt.NDArray[np.intp]
Hyper = Mapping[str, float]
State = TypeVar("State")


class SolverError(ArithmeticError):
    """A linear system could not be solved to the accuracy that an exact draw needs."""


class ImpossibleStateError(ArithmeticError):
    """A chain has left the numbers that are possible, because of the variable at this position, query first."""

    def __init__(self, position: int) -> None:
        super().__init__(position)
        self.position = position


@dataclass(frozen=True, slots=True)
class SolveInfo:
    """Iterations of one linear solve, and a bound on its error in conditional standard deviations."""

    iterations: int = 0
    residual: float = 0.0


@dataclass(frozen=True, slots=True)
class SweepInfo:
    """Numerical effort of one Gibbs sweep.

    ``iterations`` and ``residual`` are those of the linear solver; a sweep without a solver reports the number of
    entries of ``W12`` that it changed as ``iterations``. ``scale_factor`` is c of the common scale move.
    """

    iterations: int
    residual: float
    scale_factor: float


@dataclass(frozen=True, slots=True)
class Columns:
    """Current values of the Gaussian columns: ``X1`` is n x p, ``X2`` is n x q.

    ``inverse`` is ``(r I + X2 X2')^-1`` of the centred columns, and ``leverages`` are ``x' inverse x`` of each
    column x of X2, if they are kept up to date while the columns move.
    """

    X1: Array
    X2: Array
    inverse: Array | None = None
    leverages: Array | None = None


@dataclass(frozen=True, slots=True)
class ChainState:
    """Current state of a chain; a sweep returns a new state and never changes an old one.

    ``T`` has the prior's own variables besides: the scales of ``W12``, or in a widened block the propensities of
    its variables, 1 x P, if they are learned. ``hyper`` holds the learned hyperparameters by name. ``columns`` is
    None if all columns are observed Gaussian data, which never change. ``inclusion``, P x P, has the conditional
    probabilities of the last sweep that an entry of a widened block is not zero; the next sweep does not depend on
    them.
    """

    W11: Array
    W12: Array
    T: Array
    hyper: Hyper = field(default_factory=dict)
    columns: Columns | None = None
    inclusion: Array | None = None


@dataclass(frozen=True, slots=True)
class Noise:
    """Standard normal variates for one draw of ``W12``: ``Z1`` and ``Z3`` are p x q, ``Z2`` is p x m."""

    Z1: Array
    Z2: Array
    Z3: Array

    @classmethod
    def draw(cls, rng: np.random.Generator, p: int, q: int, m: int) -> Noise:
        """Draw independent standard normals for one draw of ``W12``."""
        return cls(rng.standard_normal((p, q)), rng.standard_normal((p, m)), rng.standard_normal((p, q)))


class Scatter(Protocol):
    """Sufficient statistics of the data: all that the model sees of them."""

    @property
    def n(self) -> int:
        """Number of rows n of the data."""

    @property
    def S12(self) -> Array:
        """Cross scatter ``S12 = X1'X2``, p x q."""

    @property
    def F(self) -> Array:
        """Factor of the scatter, ``F'F = S22``, m x q, with (nearly) orthogonal rows."""

    @property
    def Y(self) -> Array:
        """Cross scatter in the coordinates of the factor, p x m: ``S12 = Y F``."""

    @property
    def B(self) -> Array:
        """Scatter of the query plus the identity, ``B = S11 + I``, p x p."""

    @property
    def row_sizes(self) -> Array:
        """Squared norms of the rows of the factor, ``diag(F F')``, length m."""

    @property
    def column_sizes(self) -> Array:
        """Squared norms of the columns of the factor, ``diag(S22)``, length q."""

    @property
    def inverse_diagonal(self) -> Array:
        """Diagonal of the regularised inverse, ``diag((S22 + r I)^-1)``, length q; r is the ridge."""

    def times_factor(self, M: Array) -> Array:
        """Product ``M F'`` of a p x q matrix, possibly sparse, with the transposed factor."""

    @property
    def rest_degrees(self) -> float:
        """Degrees of freedom of ``W22.1 | S ~ Wishart_q(., (S22 + r I)^-1)``, r the ridge of its prior."""


@runtime_checkable
class Solver(Protocol):
    """Deterministic map from standard normal noise to a draw of ``W12``.

    With ``C = U ⊗ A + diag(1/T)`` the conditional distribution of the stacked rows of ``W12`` is
    ``N(-C^-1 S12, C^-1)``. Zero noise returns its mean, and unit vectors of noise return the columns of a square
    root of ``C^-1``, so two solvers can be compared up to rounding, without Monte Carlo.
    """

    def draw(self, U: Array, T: Array, scatter: Scatter, noise: Noise) -> tuple[Array, SolveInfo]:
        """Return the draw ``C^-1 (eta - S12)``, with ``eta ~ N(0, C)`` computed from ``noise``, and its cost."""


@dataclass(frozen=True, slots=True)
class RowLaw:
    """Prior density of ``diag(r) W12`` as a function of the row factors r, Jacobian included, up to a constant::

        prod_i r_i^counts_i  exp(-e(r))    or    prod_i r_i^counts_i  (rate + e(r))^-power    if power > 0

        e(r) = linear . r + 1/2 quadratic . r^2

    ``counts`` has the number of entries that a row factor changes: q in every row, less the exact zeros.
    """

    counts: Array
    linear: Array
    quadratic: Array
    power: float = 0.0
    rate: float = 0.0

    def log_density(self, r: Array) -> float:
        """Return the log density at the row factors ``r``, up to a constant."""
        e = float(self.linear @ r) + 0.5 * float(self.quadratic @ r**2)
        return float(self.counts @ np.log(r)) - (self.power * math.log(self.rate + e) if self.power else e)


@runtime_checkable
class Prior(Protocol):
    """Prior distribution of ``W12`` as a scale mixture of normals, with its hyperparameters."""

    @property
    def exact_zeros(self) -> bool:
        """Whether an entry of ``W12`` is exactly zero with positive probability."""

    def for_data(self, p: int, q: int, n: int) -> Prior:
        """Return the prior with everything set that depends on the size of the data; itself if nothing does."""

    def start(self, rng: np.random.Generator, p: int, q: int) -> tuple[Array, Hyper]:
        """Draw over-dispersed scales and hyperparameters ``(T, hyper)`` for the start of a chain."""

    def draw_scales(self, rng: np.random.Generator, W12: Array, hyper: Hyper) -> tuple[Array, Hyper]:
        """Draw scales and hyperparameters from ``(T, hyper) | W12``."""

    def draw_cross(
        self, rng: np.random.Generator, state: ChainState, scatter: Scatter, solver: Solver
    ) -> tuple[Array, SolveInfo]:
        """Draw the cross block from ``W12 | W11, T, hyper, S``; also return what it cost."""

    def draw_jointly(self, rng: np.random.Generator, state: ChainState, scatter: Scatter) -> ChainState:
        """Apply a joint move specific to this prior, which leaves ``(W12, T, hyper) | W11, S`` invariant.

        It may do nothing.
        """

    def draw_factor(
        self, rng: np.random.Generator, hyper: Hyper, linear: float, quadratic: float
    ) -> tuple[float, Hyper]:
        """Draw ``c`` and ``hyper'`` of the joint scale move ``(W12, T, hyper) -> (c W12, c^2 T, hyper')``.

        Along the move the likelihood is ``exp(-c linear - c^2/2 quadratic)`` with ``linear = <W12, S12>``
        and ``quadratic = tr(U G)``. Priors without a learned scale return ``(1.0, hyper)``.
        """

    def zero_law(self, hyper: Hyper) -> tuple[float, float] | None:
        """Return the log-odds that an entry is not zero, and its variance if so; None without exact zeros."""

    def row_law(self, state: ChainState) -> RowLaw:
        """Return the density of ``diag(r) W12`` in r, with ``T`` and ``hyper`` integrated out if possible.

        It is used by the joint scale moves of the rows of ``(W11, W12)``, after which ``T`` and ``hyper`` are
        drawn again; a prior that cannot integrate them out holds them fixed here.
        """


@runtime_checkable
class SparsePrior(Protocol):
    """Prior with exact zeros, normal elsewhere, whose hyperparameters can be learned for each class of pairs."""

    @property
    def inclusion(self) -> float | None:
        """Probability that an entry is not zero; None if it is learned."""

    @property
    def slab(self) -> float | None:
        """Variance of an entry that is not zero; None if it is learned."""

    def inclusion_law(self, variables: int) -> tuple[float, float]:
        """Return the parameters of the beta distribution of the inclusion probability."""

    def propensity_law(self, variables: int) -> tuple[float, float]:
        """Return the parameters of the beta distribution of the propensity of a variable to have neighbours."""

    def draw_slab(self, rng: np.random.Generator, edges: float, squares: float) -> float:
        """Draw the slab given the number of nonzero entries and their sum of squares."""

    def start_hyper(self, rng: np.random.Generator, variables: int) -> tuple[float, float]:
        """Draw an over-dispersed ``(inclusion, slab)`` for the start of a chain."""

    def expected_inclusion(self, variables: int, causes: int = 1) -> float:
        """Return the prior probability of an edge that has so many causes, averaged over what is learned."""


class Latent(Protocol):
    """Latent Gaussian columns behind data that are partly missing or known by their order alone.

    Every sweep redraws the cells that are not fixed by the data.
    """

    def start(self) -> Columns:
        """Return the initial columns of a chain."""

    def refresh(self, rng: np.random.Generator, state: ChainState) -> Columns:
        """Draw the latent cells from ``X | W, Y``, where Y are the observed data; return all columns."""

    @property
    def moves_query(self) -> bool:
        """Whether a column of the query is latent."""

    def linear_terms(self, state: ChainState) -> Array:
        """Return ``X2 W21``, n x p: all that the query columns depend on outside the query."""

    def refresh_query(self, rng: np.random.Generator, X1: Array, linear: Array, W11: Array) -> Array:
        """Draw the latent cells of the query columns from ``X1 | X2, W, Y``, given their linear terms."""

    def query_scatter(self, X1: Array) -> Array:
        """Return the scatter ``S11`` of the query columns."""

    def widened(self, candidates: Indices) -> Latent:
        """Return the latent columns with the candidates, given by their positions in the rest, among the query."""

    def scatter(self, columns: Columns) -> Scatter:
        """Return the scatter of the given current columns."""

    def moving(self, columns: Columns) -> Array:
        """Return the latent columns, n x d, those of the query first."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Data, prior and solver: everything that a sweep needs besides the state.

    ``scatter`` is that of all columns. If some columns are latent, ``latent`` redraws them in every sweep, and the
    sweep replaces ``scatter`` accordingly.
    """

    scatter: Scatter
    prior: Prior
    solver: Solver
    latent: Latent | None = None

    @property
    def p(self) -> int:
        """Number p of query variables."""
        return len(self.scatter.B)

    @property
    def q(self) -> int:
        """Number q of remaining variables."""
        return self.scatter.F.shape[1]


@dataclass(frozen=True, slots=True)
class Draw:
    """One kept draw: the matrices of a state, and quantities derived from them at O(q) cost.

    ``W22_diagonal`` holds draws of the diagonal of ``W22``, each from its own marginal distribution (its entries
    need not be a joint draw); ``explained`` is the variance of each query variable that the rest explains;
    ``latent`` holds the latent columns, if these are kept. ``inclusion`` is p x (p + q), query variables first:
    the conditional probability in this sweep that each pair's entry is not zero; None without exact zeros in both
    blocks.
    """

    W11: Array
    W12: Array
    W22_diagonal: Array
    explained: Array
    hyper: Hyper
    info: SweepInfo
    latent: Array | None = None
    inclusion: Array | None = None


class Sampler(Protocol[State]):
    """Markov chain that leaves a posterior distribution invariant, with states of any type."""

    def start(self, rng: np.random.Generator) -> State:
        """Draw an over-dispersed initial state of a chain."""

    def sweep(self, rng: np.random.Generator, state: State) -> tuple[State, SweepInfo]:
        """Draw the next state; also return its numerical effort."""

    def derive(self, rng: np.random.Generator, state: State, info: SweepInfo) -> Draw:
        """Return the quantities to be kept of a state."""

    def partial_correlations(self, state: State) -> Array:
        """Return the p x q partial correlations of a state; the diagonal of ``W22`` is at its conditional mean."""


class Store(Protocol):
    """Storage for the draws of one chain, added one at a time."""

    def append(self, draw: Draw) -> None:
        """Add the next draw to the store."""

    def collect(self) -> dict[str, Array]:
        """Return the stored arrays by name; their first axis counts draws."""

    def pack(self) -> dict[str, Array]:
        """Return the complete state of the store as arrays by name, for :meth:`unpack`."""

    def unpack(self, record: dict[str, Array]) -> None:
        """Restore the state of the store from a record made by :meth:`pack`."""
