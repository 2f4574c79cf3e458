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

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Hyper = Mapping[str, float]


class SolverError(ArithmeticError):
    """A linear system could not be solved to the accuracy that an exact draw needs."""


@dataclass(frozen=True, slots=True)
class SolveInfo:
    """What one linear solve cost, and how well it ended."""

    iterations: int = 0
    residual: float = 0.0


@dataclass(frozen=True, slots=True)
class SweepInfo:
    """What one Gibbs pass cost; numerical effort is reported here, never hidden."""

    iterations: int
    residual: float
    scale_factor: float


@dataclass(frozen=True, slots=True)
class ChainState:
    """Where a chain stands. Never mutated: a sweep returns a new one."""

    W11: Array
    W12: Array
    T: Array
    hyper: Hyper = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Noise:
    """The standard normals of one draw of W12: ``Z1`` and ``Z3`` are p x q, ``Z2`` is p x m."""

    Z1: Array
    Z2: Array
    Z3: Array


class Scatter(Protocol):
    """All that the model sees of the data."""

    n: int
    S11: Array
    S12: Array
    F: Array
    spectrum: Array

    @property
    def B(self) -> Array:
        """``S11 + I``."""

    def quadratic(self, W12: Array) -> Array:
        """``G = W12 A W21``."""


class Precision(Protocol):
    """``C = U ⊗ A + diag(D)``, the precision of the rows of ``W12`` given the rest."""

    def to_dense(self) -> Array:
        """``C`` itself, pq x pq."""


class Solver(Protocol):
    """Turns ``(precision, noise)`` into a draw of ``W12``, deterministically.

    Zero noise returns the conditional mean and unit noise the columns of a square root of ``C^-1``, so a
    solver is proved against another one to rounding, without Monte Carlo.
    """

    def draw(self, U: Array, T: Array, scatter: Scatter, noise: Noise) -> tuple[Array, SolveInfo]:
        """``-C^-1 S12 + C^-1 eta`` with ``eta ~ N(0, C)`` made from ``noise``."""
