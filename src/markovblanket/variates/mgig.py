"""The matrix generalised inverse Gaussian law: an invariant kernel, and a perfect sampler.

``MGIG_p(order; B, G)`` has density ``∝ |X|^(order-(p+1)/2) exp(-tr(B X + G X^-1)/2)`` on the positive
definite p x p matrices. For ``order > (p-1)/2`` B is positive definite and G may be singular; for
``order < -(p-1)/2`` the roles change, since ``X^-1 ~ MGIG_p(-order; G, B)``.

Everything rests on one random map (Bernadac 1995). Let ``G = H H'`` with H square, and independently

    W0 ~ Wishart_p(2 order, I),    Y ~ Wishart_p(2 order, B^-1),    X' = Y + H (W0 + H' X^-1 H)^-1 H'.

If X follows the law then so does X'. G is never inverted and its rank never decided: if some columns of H are
zero, the block of ``(W0 + H' X^-1 H)^-1`` that survives is the inverse of a Schur complement of W0 plus the
rest, and the Schur complement of a Wishart matrix on k of p coordinates is Wishart_k with ``p - k`` degrees
of freedom less, which is what the map needs when H is written with k columns. A rotation of H leaves W0's law
alone, so the same holds for every square H with that product.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from markovblanket.contracts import Array
from markovblanket.variates import _continued_fraction as fraction
from markovblanket.variates.factors import (
    ROUNDING,
    cholesky,
    semidefinite_factor,
    solve_lower,
    triangular_root,
)

__all__ = ["Enclosure", "EnclosureError", "draw", "enclose", "log_density", "semidefinite_factor", "step"]


class EnclosureError(ArithmeticError):
    """The perfect sampler's two paths did not meet within the steps allowed."""


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
        """Halfway between the bounds, so within half the gap of the exact draw."""
        return 0.5 * (self.lower + self.upper)


def step(rng: np.random.Generator, X: Array, order: float, B: Array, G: Array, steps: int = 1) -> Array:
    """Move X by a Markov kernel that leaves ``MGIG_p(order; B, G)`` invariant.

    One step is a correct Gibbs update; further ones bring X closer to an independent draw. Each forgets the
    past by a factor of about ``R2^2`` for a variable explained with R2, so no fixed number of steps from an
    arbitrary start is a draw from the law: that is what :func:`draw` is for.

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
            L, least = fraction.move(rng, X, 2.0 * order, B, G, steps)
            if least > ROUNDING:
                return fraction.square(L, inverse=False)
        except np.linalg.LinAlgError:
            pass  # what follows finds out which matrix it is
    L, maps = cholesky(X, "MGIG: X"), fraction.Maps.of(order, B, G)
    if order < 0:
        L = triangular_root(np.ascontiguousarray(solve_lower(L, np.eye(len(L)))))
    return fraction.square(fraction.walk(rng, L, maps.H, maps.root, maps.df, steps), inverse=order < 0)


def enclose(
    rng: np.random.Generator,
    order: float,
    B: Array,
    G: Array,
    tolerance: float = 1e-10,
    max_steps: int = 2**16,
) -> Enclosure:
    """Enclose an exact draw from ``MGIG_p(order; B, G)`` by coupling from the past.

    The map of this module is increasing in X. Composed backwards, newest map outermost, it converges to an
    exact draw whatever stands innermost; zero and infinity in that place give bounds. The number of maps
    is doubled, the old ones kept and the new ones put inside, until the bounds agree (Propp and Wilson 1996).

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
        Bounds on the draw and what they cost.

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
    maps = fraction.Maps.of(order, B, G)
    past = [maps.draw(rng)]
    while True:
        lower, upper = fraction.compose(maps.H, past)
        gap = fraction.relative_gap(lower, upper)
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
    return Enclosure(fraction.square(lower, order < 0), fraction.square(upper, order < 0), len(past), gap)


def draw(
    rng: np.random.Generator,
    order: float,
    B: Array,
    G: Array,
    tolerance: float = 1e-10,
    max_steps: int = 2**16,
) -> Array:
    """Draw from ``MGIG_p(order; B, G)``, density ``∝ |X|^(order-(p+1)/2) exp(-tr(B X + G X^-1)/2)``.

    The midpoint of :func:`enclose`: exact up to ``tolerance``, at a cost that grows as B and G leave the law
    less room (a few maps at R2 = 0.5, hundreds at 0.99).

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
    """Log density of ``MGIG_p(order; B, G)`` at X, up to a constant.

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
