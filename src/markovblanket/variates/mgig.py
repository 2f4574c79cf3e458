"""The matrix generalised inverse Gaussian distribution (MGIG): an invariant kernel, and a perfect sampler.

``MGIG_p(order; B, G)`` has density ``∝ |X|^(order-(p+1)/2) exp(-tr(B X + G X^-1)/2)`` on the positive
definite p x p matrices. For ``order > (p-1)/2`` B is positive definite and G may be singular; for
``order < -(p-1)/2`` the roles change, since ``X^-1 ~ MGIG_p(-order; G, B)``.

Everything is based on one random map (Bernadac 1995). Let ``G = H H'`` with H square, and independently

    W0 ~ Wishart_p(2 order, I),    Y ~ Wishart_p(2 order, B^-1),    X' = Y + H (W0 + H' X^-1 H)^-1 H'.

If X has the MGIG distribution, then so has X'. G is never inverted, and its rank need not be known: if some
columns of H are zero, the block of ``(W0 + H' X^-1 H)^-1`` that matters is the inverse of a Schur complement of W0
plus the rest, and the Schur complement of a Wishart matrix on k of p coordinates is Wishart_k with ``p - k``
degrees of freedom less, which is what the map needs when H is written with k columns. A rotation of H does not
change the distribution of W0, so the same holds for every square H with ``H H' = G``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit

from markovblanket.contracts import Array
from markovblanket.variates.factors import (
    LEAST_EIGENVALUE,
    cholesky,
    factor_and_least,
    forward,
    semidefinite_factor,
    solve_lower,
    triangular_root,
)
from markovblanket.variates.wishart import bartlett

__all__ = ["Enclosure", "EnclosureError", "draw", "enclose", "log_density", "semidefinite_factor", "step"]


class EnclosureError(ArithmeticError):
    """Raised when the bounds of the perfect sampler do not agree within the allowed number of steps."""


@dataclass(frozen=True, slots=True)
class Enclosure:
    """An exact draw X, known to lie in ``lower <= X <= upper`` in the Loewner order.

    Attributes
    ----------
    lower, upper : numpy.ndarray
        The bounds, p x p.
    steps : int
        How many random maps were composed.
    gap : float
        Relative width: the largest ``v'(upper - lower)v / v'upper v``, between 0 and 1.
    """

    lower: Array
    upper: Array
    steps: int
    gap: float

    @property
    def midpoint(self) -> Array:
        """Midpoint of the bounds, within half the gap of the exact draw."""
        return 0.5 * (self.lower + self.upper)


def step(rng: np.random.Generator, X: Array, order: float, B: Array, G: Array, steps: int = 1) -> Array:
    """Move X by a Markov kernel that leaves ``MGIG_p(order; B, G)`` invariant.

    One step is a correct Gibbs update; further ones bring X closer to an independent draw. Each multiplies the
    dependence on the start by about ``R2^2`` for a variable explained with R2, so no fixed number of steps from an
    arbitrary start is an exact draw from the distribution: use :func:`draw` for that.

    Parameters
    ----------
    rng : numpy.random.Generator
        The source of randomness.
    X : numpy.ndarray
        The current p x p matrix, positive definite.
    order : float
        Above ``(p-1)/2`` or below ``-(p-1)/2``.
    B, G : numpy.ndarray
        B positive definite and G positive semi-definite for positive ``order``; the reverse for negative.
    steps : int
        How many times the kernel is applied.

    Returns
    -------
    numpy.ndarray
        The next matrix, symmetric positive definite.

    References
    ----------
    Bernadac, E. (1995). Random continued fractions and inverse Gaussian distribution on a symmetric cone.
    Journal of Theoretical Probability 8, 221-259.

    Examples
    --------
    >>> import numpy as np
    >>> X = step(np.random.default_rng(0), np.eye(2), order=4.0, B=np.eye(2), G=np.diag([3.0, 0.0]), steps=5)
    >>> bool(np.all(np.linalg.eigvalsh(X) > 0))
    True
    """
    if order > 0.5 * (len(X) - 1):
        try:
            L, least = move(rng, X, 2.0 * order, B, G, steps)
            if least > LEAST_EIGENVALUE:
                return square(L, inverse=False)
        except np.linalg.LinAlgError:
            pass  # the checked path below raises an error that names the matrix
    L, maps = cholesky(X, "MGIG: X"), Maps.of(order, B, G)
    if order < 0:
        L = triangular_root(np.ascontiguousarray(solve_lower(L, np.eye(len(L)))))
    return square(walk(rng, L, maps.H, maps.root, maps.df, steps), inverse=order < 0)


def enclose(
    rng: np.random.Generator,
    order: float,
    B: Array,
    G: Array,
    tolerance: float = 1e-10,
    max_steps: int = 2**16,
) -> Enclosure:
    """Enclose an exact draw from ``MGIG_p(order; B, G)`` by coupling from the past.

    The random map of this module is increasing in X. Composed backwards, with new maps applied first, it
    converges to an exact draw from any starting value; starting from zero and from infinity gives bounds. The
    number of maps is doubled, keeping the old ones, until the bounds agree (Propp and Wilson 1996).

    Parameters
    ----------
    rng : numpy.random.Generator
        The source of randomness.
    order : float
        Above ``(p-1)/2`` or below ``-(p-1)/2``.
    B, G : numpy.ndarray
        As in :func:`step`.
    tolerance : float
        Relative width at which to stop.
    max_steps : int
        Composing more maps than this raises :class:`EnclosureError`.

    Returns
    -------
    Enclosure
        Bounds on the draw, and the number of maps composed.

    References
    ----------
    Propp, J. G. and Wilson, D. B. (1996). Exact sampling with coupled Markov chains and applications to
    statistical mechanics. Random Structures and Algorithms 9, 223-252.

    Examples
    --------
    >>> import numpy as np
    >>> found = enclose(np.random.default_rng(0), order=4.0, B=np.eye(2), G=np.diag([3.0, 0.0]))
    >>> found.gap < 1e-10, found.steps <= 64
    (True, True)
    """
    maps = Maps.of(order, B, G)
    past = [maps.draw(rng)]
    while True:
        lower, upper = compose(maps.H, past)
        gap = relative_gap(lower, upper)
        if gap <= tolerance:
            break
        if 2 * len(past) > max_steps:
            raise EnclosureError(
                f"MGIG: after {len(past)} steps the relative gap is {gap:.3g}, above the tolerance "
                f"{tolerance:.3g}; raise max_steps (now {max_steps}) or the tolerance"
            )
        past += [maps.draw(rng) for _ in range(len(past))]
    if order < 0:  # inversion reverses the order and keeps the gap
        lower, upper = upper, lower
    return Enclosure(square(lower, order < 0), square(upper, order < 0), len(past), gap)


def draw(
    rng: np.random.Generator,
    order: float,
    B: Array,
    G: Array,
    tolerance: float = 1e-10,
    max_steps: int = 2**16,
) -> Array:
    """Draw from ``MGIG_p(order; B, G)``, density ``∝ |X|^(order-(p+1)/2) exp(-tr(B X + G X^-1)/2)``.

    Returns the midpoint of :func:`enclose`, exact up to ``tolerance``, at a cost that grows as the query is
    explained better by the rest (a few maps at R2 = 0.5, hundreds at 0.99).

    Parameters
    ----------
    rng : numpy.random.Generator
        The source of randomness.
    order : float
        Above ``(p-1)/2`` or below ``-(p-1)/2``.
    B, G : numpy.ndarray
        As in :func:`step`.
    tolerance, max_steps : float, int
        As in :func:`enclose`.

    Returns
    -------
    numpy.ndarray
        A symmetric positive definite p x p matrix.

    Examples
    --------
    >>> import numpy as np
    >>> X = draw(np.random.default_rng(0), order=-4.0, B=np.diag([3.0, 0.0]), G=np.eye(2))
    >>> bool(np.all(np.linalg.eigvalsh(X) > 0))
    True
    """
    return enclose(rng, order, B, G, tolerance, max_steps).midpoint


def log_density(X: Array, order: float, B: Array, G: Array) -> float:
    """Return the log density of ``MGIG_p(order; B, G)`` at X, up to a constant.

    The constant is the logarithm of a Bessel function of matrix argument, which is not computed here.

    Parameters
    ----------
    X : numpy.ndarray
        Symmetric p x p matrix.
    order : float
        Any real number.
    B, G : numpy.ndarray
        Symmetric p x p matrices.

    Returns
    -------
    float
        The unnormalised log density; ``-inf`` where X is not positive definite.

    Examples
    --------
    >>> import numpy as np
    >>> log_density(np.eye(2), order=4.0, B=np.eye(2), G=np.eye(2))
    -2.0
    """
    try:
        L = np.asarray(np.linalg.cholesky(X), dtype=float)
    except np.linalg.LinAlgError:
        return -np.inf
    root = solve_lower(L, np.eye(len(X)))
    log_det = 2.0 * np.sum(np.log(np.diag(L)))
    trace = np.sum(B * X) + np.sum((root @ G) * root)
    return float((order - 0.5 * (len(X) + 1)) * log_det - 0.5 * trace)


@dataclass(frozen=True, slots=True)
class Maps:
    """Parameters of the random maps: a factor of ``B^-1``, and H; for negative order, those of the inverse's."""

    df: float
    root: Array
    H: Array

    @classmethod
    def of(cls, order: float, B: Array, G: Array) -> Maps:
        """Return the maps of ``MGIG_p(order; B, G)``, with B and G factored."""
        p = B.shape[0]
        if not abs(order) > 0.5 * (p - 1):
            raise ValueError(f"MGIG on {p} x {p} matrices needs |order| > {0.5 * (p - 1)}, got {order}")
        if order < 0:
            B, G = G, B
        L = cholesky(B, "MGIG: the matrix B (G for negative order)")
        root = np.ascontiguousarray(solve_lower(L, np.eye(p)).T)
        return cls(2.0 * abs(order), root, semidefinite_factor(G))

    def draw(self, rng: np.random.Generator) -> tuple[Array, Array]:
        """Draw roots of ``Y ~ Wishart_p(2 order, B^-1)`` and ``W0 ~ Wishart_p(2 order, I)``."""
        p = len(self.H)
        return self.root @ bartlett(rng, self.df, p), bartlett(rng, self.df, p)


@njit(cache=True)
def apply(L: Array, H: Array, R: Array, T: Array) -> Array:
    """Return the root of ``Y + H (W0 + H' X^-1 H)^-1 H'``, where L, R and T are roots of X, Y and W0."""
    K = triangular_root(np.concatenate((T.T, forward(L, H))))
    return triangular_root(np.concatenate((R.T, forward(K, H.T))))


@njit(cache=True)
def move(rng: np.random.Generator, X: Array, df: float, B: Array, G: Array, steps: int) -> tuple[Array, float]:
    """Return the root of X after ``steps`` random maps, and G's least eigenvalue (:func:`factor_and_least`)."""
    H, least = factor_and_least(G)
    root = np.ascontiguousarray(forward(np.linalg.cholesky(B), np.eye(len(B))).T)
    return walk(rng, np.linalg.cholesky(X), H, root, df, steps), least


@njit(cache=True)
def walk(rng: np.random.Generator, L: Array, H: Array, root: Array, df: float, steps: int) -> Array:
    """Return the root of ``L L'`` after ``steps`` random maps, applied one after the other."""
    for _ in range(steps):
        R = np.dot(root, bartlett(rng, df, len(H)))
        L = apply(L, H, R, bartlett(rng, df, len(H)))
    return L


def compose(H: Array, past: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Return the roots of zero and of infinity after the maps in ``past``, the last of which is applied first.

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
    """Return the relative width of an enclosure, from the largest eigenvalue of ``lower^-1 upper``.

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
    """Return ``L L'`` or its inverse.

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
