"""Random variate generators for the sampler, one module per distribution, each with its log density.

A module holds ``draw(rng, ...)`` and ``log_density(x, ...)`` of one distribution in one parametrisation, so that
each can be tested against the other. Nothing here depends on the model: the functions take numbers and arrays, and
need NumPy, SciPy and numba alone.

``inverse_gaussian``
    ``x^(-3/2) exp(-shape (x - mean)^2 / (2 mean^2 x))``. The reciprocal scales of a Laplace prior given the
    weights: their mean ``gamma/|w|`` grows without bound as a weight shrinks, so the generator is exact up
    to and including an infinite mean, where the distribution is Levy's.
``generalized_inverse_gaussian``
    ``x^(order-1) exp(-(a x + b/x)/2)``: the query block when there is one query variable, and the distribution
    of many variance components. Gamma and inverse gamma are its limiting cases.
``truncated_normal``
    The standard normal between two bounds, for whole arrays or for single draws in compiled code, as exact at a
    distance of 1e8 standard deviations as at the centre: the latent columns of the copula.
``wishart``
    ``|X|^((df-p-1)/2) exp(-tr(scale^-1 X)/2)`` by Bartlett's decomposition, for real degrees of freedom.
``mgig``
    The matrix generalised inverse Gaussian
    ``|X|^(order-(p+1)/2) exp(-tr(B X + G X^-1)/2)``: the query block ``W11``. It comes with a Markov kernel
    that leaves the distribution invariant (``step``, one p x p update, what a Gibbs sampler needs) and a perfect
    sampler with a bound on its error (``draw`` and ``enclose``, for standalone draws and for tests).
``slice``
    One univariate slice-sampling update for any log density, for the few scalar hyperparameters whose
    conditional is not a standard distribution.

Two conventions are shared. The generator ``rng`` comes first and is the only source of randomness. Parameters
outside the valid range raise ``ValueError``; valid parameters give finite draws without warnings however extreme
they are, as far as double precision can represent the result.

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
