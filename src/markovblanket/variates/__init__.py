"""The laws that the sampler draws from, each in a module of its own with its density beside it.

A module holds ``draw(rng, ...)`` and ``log_density(x, ...)`` of one law in one parametrisation, so that the
two can be held against each other: integrate the density, and the draws must follow it. Nothing here knows
of the model; the laws take numbers and arrays and need NumPy and SciPy alone.

``inverse_gaussian``
    ``x^(-3/2) exp(-shape (x - mean)^2 / (2 mean^2 x))``. The reciprocal scales of a Laplace prior given the
    weights: their mean ``gamma/|w|`` grows without bound as a weight shrinks, so the sampler stays exact up
    to and including an infinite mean, where the law is Levy's.
``generalized_inverse_gaussian``
    ``x^(order-1) exp(-(a x + b/x)/2)``: the query block when there is one query variable, and the law of
    many variance components. Gamma and inverse gamma are its edges.
``truncated_normal``
    The standard normal between two bounds, arrays at a time or one by one from compiled code, as exact at a
    distance of 1e8 standard deviations as at the centre: the latent columns of the copula.
``wishart``
    ``|X|^((df-p-1)/2) exp(-tr(scale^-1 X)/2)`` by Bartlett's decomposition, for real degrees of freedom.
``mgig``
    The matrix generalised inverse Gaussian
    ``|X|^(order-(p+1)/2) exp(-tr(B X + G X^-1)/2)``: the query block ``W11``. It comes with a Markov kernel
    that leaves the law invariant (``step``, one p x p update, what a Gibbs sampler needs) and a perfect
    sampler with a certificate (``draw`` and ``enclose``, for standalone draws and for tests).
``slice``
    No law but a move: one univariate slice-sampling update for any log density, for the few scalar
    hyperparameters whose conditional has no name.

Two habits are shared. The generator ``rng`` comes first and is the only source of randomness. Parameters
outside a law's range raise ``ValueError``; parameters inside it give finite draws without warnings however
extreme they are, as far as double precision can hold the answer.

Examples
--------
>>> import numpy as np
>>> from markovblanket.variates import inverse_gaussian, truncated_normal
>>> rng = np.random.default_rng(1)
>>> bool(np.all(np.isfinite(inverse_gaussian.draw(rng, [1e-300, 1.0, np.inf], 4.0))))
True
>>> float(truncated_normal.draw(rng, 1e8, np.inf)) >= 1e8
True
"""

from markovblanket.variates import (
    generalized_inverse_gaussian,
    inverse_gaussian,
    mgig,
    slice,
    truncated_normal,
    wishart,
)

__all__ = [
    "generalized_inverse_gaussian",
    "inverse_gaussian",
    "mgig",
    "slice",
    "truncated_normal",
    "wishart",
]
