"""The random maps of :mod:`markovblanket.variates.mgig`, on roots: ``X = L L'``, ``Y = R R'``, ``W0 = T T'``.

Sums become stacks and are triangularised by QR, so a draw that is nearly singular costs no digits, and what comes
out is positive definite by construction.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from markovblanket.contracts import Array
from markovblanket.variates.factors import (
    cholesky,
    factor_and_least,
    forward,
    semidefinite_factor,
    solve_lower,
    triangular_root,
)
from markovblanket.variates.wishart import bartlett


@dataclass(frozen=True, slots=True)
class Maps:
    """The random maps of one law, or of the inverse's for negative order: a factor of ``B^-1``, and H."""

    df: float
    root: Array
    H: Array

    @classmethod
    def of(cls, order: float, B: Array, G: Array) -> Maps:
        """Factor B and G once."""
        p = B.shape[0]
        if not abs(order) > 0.5 * (p - 1):
            raise ValueError(f"MGIG on {p} x {p} matrices needs |order| > {0.5 * (p - 1)}, got {order}")
        if order < 0:
            B, G = G, B
        L = cholesky(B, "MGIG: the matrix B (G for negative order)")
        root = np.ascontiguousarray(solve_lower(L, np.eye(p)).T)
        return cls(2.0 * abs(order), root, semidefinite_factor(G))

    def draw(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Roots of ``Y ~ Wishart_p(2 order, B^-1)`` and ``W0 ~ Wishart_p(2 order, I)``."""
        p = len(self.H)
        return self.root @ bartlett(rng, self.df, p), bartlett(rng, self.df, p)


@njit(cache=True)
def apply(L: Array, H: Array, R: Array, T: Array) -> Array:
    """Root of ``Y + H (W0 + H' X^-1 H)^-1 H'``."""
    K = triangular_root(np.concatenate((T.T, forward(L, H))))
    return triangular_root(np.concatenate((R.T, forward(K, H.T))))


@njit(cache=True)
def move(rng: np.random.Generator, X: Array, df: float, B: Array, G: Array, steps: int) -> tuple[Array, float]:
    """Root of what so many random maps make of X, and the least eigenvalue of G (:func:`factor_and_least`)."""
    H, least = factor_and_least(G)
    root = np.ascontiguousarray(forward(np.linalg.cholesky(B), np.eye(len(B))).T)
    return walk(rng, np.linalg.cholesky(X), H, root, df, steps), least


@njit(cache=True)
def walk(rng: np.random.Generator, L: Array, H: Array, root: Array, df: float, steps: int) -> Array:
    """Root of what so many random maps, one after the other, make of ``L L'``."""
    for _ in range(steps):
        R = np.dot(root, bartlett(rng, df, len(H)))
        L = apply(L, H, R, bartlett(rng, df, len(H)))
    return L


def compose(H: Array, past: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Roots of what the maps in ``past``, newest first, make of zero and of infinity.

    Parameters
    ----------
    H : numpy.ndarray
        The factor of G.
    past : list
        Roots of Y and W0, a pair per map.

    Returns
    -------
    tuple of numpy.ndarray
        The lower root and the upper one.
    """
    R, T = past[-1]
    lower, upper = triangular_root(R.T), triangular_root(np.concatenate((R.T, forward(T, H.T))))
    for R, T in reversed(past[:-1]):
        lower, upper = apply(lower, H, R, T), apply(upper, H, R, T)
    return lower, upper


def relative_gap(lower: Array, upper: Array) -> float:
    """Relative width, from the largest eigenvalue of ``lower^-1 upper`` in roots.

    Parameters
    ----------
    lower, upper : numpy.ndarray
        Roots of the two matrices.

    Returns
    -------
    float
        Between 0 and 1.
    """
    largest = np.linalg.norm(solve_lower(lower, upper), 2)
    return max(0.0, 1.0 - 1.0 / float(largest) ** 2)


def square(L: Array, inverse: bool) -> Array:
    """``L L'`` or its inverse.

    Parameters
    ----------
    L : numpy.ndarray
        Lower triangular.
    inverse : bool
        Whether the inverse is wanted.

    Returns
    -------
    numpy.ndarray
        Symmetric and positive definite.
    """
    root = solve_lower(L, np.eye(len(L))).T if inverse else L
    X: Array = root @ root.T
    return X
