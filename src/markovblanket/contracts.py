"""The ground floor: notation, the nouns every floor shares, and what each swappable part promises.

The letters are the paper's, everywhere in the mathematical rooms:

=========  ===============  =============================================================================
letter     shape            meaning
=========  ===============  =============================================================================
n, p, q                     rows; query variables; remaining variables
X1, X2     n x p, n x q     standardised data, one row per observation
S = X'X                     the scatter, a sum over rows; blocks ``S11, S12, S22``
A, B       q x q, p x p     ``S22 + I`` and ``S11 + I``: scatter plus the Wishart prior's identity
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
Hyper = Mapping[str, float]
State = TypeVar("State")


class SolverError(ArithmeticError):
    """A linear system could not be solved to the accuracy that an exact draw needs."""


@dataclass(frozen=True, slots=True)
class SolveInfo:
    """What one linear solve cost, and how far it ended from the exact draw (in conditional sds)."""

    iterations: int = 0
    residual: float = 0.0


@dataclass(frozen=True, slots=True)
class SweepInfo:
    """What one Gibbs pass cost; numerical effort is reported here, never hidden.

    ``iterations`` of the solver, or entries that a sweep without one has changed; ``rejections`` of ``proposals``
    that edges of latent columns come, go or change their place.
    """

    iterations: int
    residual: float
    scale_factor: float
    proposals: int = 0
    rejections: int = 0


@dataclass(frozen=True, slots=True)
class Columns:
    """Gaussian columns as they stand in a sweep: ``X1`` is n x p, ``X2`` n x q."""

    X1: Array
    X2: Array


@dataclass(frozen=True, slots=True)
class ChainState:
    """Where a chain stands. Never mutated: a sweep returns a new one.

    ``columns`` is None when no column ever moves.
    """

    W11: Array
    W12: Array
    T: Array
    hyper: Hyper = field(default_factory=dict)
    columns: Columns | None = None


@dataclass(frozen=True, slots=True)
class Noise:
    """The standard normals of one draw of W12: ``Z1`` and ``Z3`` are p x q, ``Z2`` is p x m."""

    Z1: Array
    Z2: Array
    Z3: Array

    @classmethod
    def draw(cls, rng: np.random.Generator, p: int, q: int, m: int) -> Noise:
        """Fresh noise for a draw of ``W12``."""
        return cls(rng.standard_normal((p, q)), rng.standard_normal((p, m)), rng.standard_normal((p, q)))


class Scatter(Protocol):
    """All that the model sees of the data."""

    @property
    def n(self) -> int:
        """Number of rows."""

    @property
    def S12(self) -> Array:
        """Cross scatter, p x q."""

    @property
    def F(self) -> Array:
        """Factor of ``S22``, m x q; its rows are (nearly) orthogonal."""

    @property
    def Y(self) -> Array:
        """The cross scatter in the factor's coordinates, p x m: ``S12 = Y F``."""

    @property
    def B(self) -> Array:
        """``S11 + I``, p x p."""

    @property
    def row_sizes(self) -> Array:
        """``diag(F F')``, length m."""

    @property
    def column_sizes(self) -> Array:
        """``diag(S22)``, length q."""

    @property
    def inverse_diagonal(self) -> Array:
        """``diag((S22 + r I)^-1)``, length q."""

    def times_factor(self, M: Array) -> Array:
        """``M F'`` for a p x q matrix, which may have few columns that are not zero."""

    @property
    def rest_degrees(self) -> float:
        """``W22.1 | S ~ Wishart_q(rest_degrees, (S22 + r I)^-1)``, the ridge r between 1 and 10."""


@runtime_checkable
class Solver(Protocol):
    """Turns noise into a draw of ``W12``, deterministically.

    With ``C = U ⊗ A + diag(1/T)`` the conditional law of the rows of ``W12`` is ``N(-C^-1 S12, C^-1)``.
    Zero noise returns its mean and unit noise the columns of a square root of ``C^-1``, so a solver is
    proved against another one to rounding, without Monte Carlo.
    """

    def draw(self, U: Array, T: Array, scatter: Scatter, noise: Noise) -> tuple[Array, SolveInfo]:
        """``C^-1 (eta - S12)`` with ``eta ~ N(0, C)`` made from ``noise``."""


@dataclass(frozen=True, slots=True)
class RowLaw:
    """How the prior's density changes when row i of ``W12`` is multiplied by ``r_i``, the Jacobian included::

        prod_i r_i^counts_i  exp(-e(r))    or    prod_i r_i^counts_i  (rate + e(r))^-power    if power > 0

        e(r) = linear . r + 1/2 quadratic . r^2

    ``counts`` are the numbers of entries that move: q in every row, less those that are exactly zero.
    """

    counts: Array
    linear: Array
    quadratic: Array
    power: float = 0.0
    rate: float = 0.0

    def log_density(self, r: Array) -> float:
        """At ``r``, up to a constant."""
        e = float(self.linear @ r) + 0.5 * float(self.quadratic @ r**2)
        return float(self.counts @ np.log(r)) - (self.power * math.log(self.rate + e) if self.power else e)


@runtime_checkable
class Prior(Protocol):
    """A law of ``W12`` given as a scale mixture of normals, with its hyperparameters."""

    @property
    def exact_zeros(self) -> bool:
        """Whether an entry of ``W12`` is exactly zero with positive probability."""

    def for_data(self, p: int, q: int, n: int) -> Prior:
        """The prior with everything worked out that depends on the size of the data; itself if nothing does."""

    def start(self, rng: np.random.Generator, p: int, q: int) -> tuple[Array, Hyper]:
        """Over-dispersed ``(T, hyper)`` for the start of a chain."""

    def draw_scales(self, rng: np.random.Generator, W12: Array, hyper: Hyper) -> tuple[Array, Hyper]:
        """``(T, hyper) | W12``."""

    def draw_cross(
        self, rng: np.random.Generator, state: ChainState, scatter: Scatter, solver: Solver
    ) -> tuple[Array, SolveInfo]:
        """``W12 | W11, T, hyper, S``."""

    def draw_jointly(self, rng: np.random.Generator, state: ChainState, scatter: Scatter) -> ChainState:
        """A move of the prior's own: ``W12``, ``T`` and ``hyper`` together, ``| W11, S``. It may do nothing."""

    def draw_factor(
        self, rng: np.random.Generator, hyper: Hyper, linear: float, quadratic: float
    ) -> tuple[float, Hyper]:
        """The joint move ``(W12, T, hyper) -> (c W12, c^2 T, hyper')``: ``c`` and ``hyper'``.

        Along the move the likelihood is ``exp(-c linear - c^2/2 quadratic)`` with ``linear = <W12, S12>``
        and ``quadratic = tr(U G)``. Priors without a learned scale return ``(1.0, hyper)``.
        """

    def zero_law(self, hyper: Hyper) -> tuple[float, float] | None:
        """For entries that are exactly zero or else normal: the log-odds that they are not, and their variance."""

    def row_law(self, state: ChainState) -> RowLaw:
        """The density of ``diag(r) W12``, with ``T`` and ``hyper`` integrated out if possible.

        It serves the joint scale moves of the rows of ``(W11, W12)``, after which ``T`` and ``hyper`` are drawn
        anew; a prior that cannot integrate them out holds them fixed here.
        """


class Latent(Protocol):
    """Columns of which some cells are not observed, or only by their order: what moves is drawn in every sweep."""

    def start(self) -> Columns:
        """The first columns of a chain."""

    def refresh(self, rng: np.random.Generator, state: ChainState) -> Columns:
        """``X | W, Y``: the columns with their moving cells drawn anew."""

    def hop(
        self, rng: np.random.Generator, state: ChainState, odds: float, slab: float
    ) -> tuple[ChainState, tuple[int, int]]:
        """Joint moves of columns and entries of ``W12``, which are not zero with these log-odds, then normal.

        Also how many were proposed, and how many of these rejected.
        """

    def scatter(self, columns: Columns) -> Scatter:
        """The scatter of the columns as they stand."""

    def moving(self, columns: Columns) -> Array:
        """The columns that move, those of the query first; n x d."""


@dataclass(frozen=True, slots=True)
class Problem:
    """What a sweep needs besides the state: data, prior, solver.

    ``scatter`` is that of all columns; where some move, ``latent`` draws them and ``scatter`` follows.
    """

    scatter: Scatter
    prior: Prior
    solver: Solver
    latent: Latent | None = None

    @property
    def p(self) -> int:
        """Number of query variables."""
        return len(self.scatter.B)

    @property
    def q(self) -> int:
        """Number of remaining variables."""
        return self.scatter.F.shape[1]


@dataclass(frozen=True, slots=True)
class Draw:
    """One kept draw: the state's matrices and what is derived from them at O(q) cost.

    ``W22_diagonal`` holds draws of the diagonal of ``W22``, each from its own marginal law (its entries need
    not be a joint draw); ``explained`` is the variance of each query variable that the rest accounts for;
    ``latent`` has the columns that move, where these are kept.
    """

    W11: Array
    W12: Array
    W22_diagonal: Array
    explained: Array
    hyper: Hyper
    info: SweepInfo
    latent: Array | None = None


class Sampler(Protocol[State]):
    """A Markov chain that leaves a posterior invariant: all that is needed to run one, whatever its states are."""

    def start(self, rng: np.random.Generator) -> State:
        """An over-dispersed first state."""

    def sweep(self, rng: np.random.Generator, state: State) -> tuple[State, SweepInfo]:
        """The next state, and what it cost."""

    def derive(self, rng: np.random.Generator, state: State, info: SweepInfo) -> Draw:
        """What is kept of a state."""

    def cross(self, state: State) -> Array:
        """``W12`` of a state."""


class Store(Protocol):
    """Takes the draws of one chain as they come."""

    def append(self, draw: Draw) -> None:
        """Take the next draw."""

    def collect(self) -> dict[str, Array]:
        """Everything kept, by name; the first axis counts draws."""

    def pack(self) -> dict[str, Array]:
        """All that is needed to go on later, by name."""

    def unpack(self, record: dict[str, Array]) -> None:
        """Go on from there."""
