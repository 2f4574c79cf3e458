"""The prior of ``W22.1``, the precision of the variables outside the block, as strong as the data ask for."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy import optimize, special

from markovblanket.contracts import Array

# The ridge is sought between these numbers, the larger one times the number of rows and variables.
LEAST_RIDGE, LARGEST_RIDGE = 1e-2, 1e2


@dataclass(frozen=True, slots=True)
class RestPrior:
    """Prior ``W22.1 ~ Wishart_q(degrees, (r I)^-1)``, so ``W22.1 | S ~ Wishart_q(degrees + n, (S22 + r I)^-1)``.

    With ``degrees = ridge + q + 1`` the expected covariance is the identity, that of standardised variables which
    are not correlated; the ridge is the number of rows that this prior is worth.
    """

    degrees: float
    ridge: float

    @classmethod
    def of_ridge(cls, ridge: float, q: int) -> RestPrior:
        """Return the prior of this ridge for q variables."""
        return cls(ridge + q + 1, ridge)

    @classmethod
    def of_columns(cls, X2: Array) -> RestPrior:
        """Return the prior of largest marginal likelihood for columns, n x q, whose means are unknown."""
        if not X2.size:  # nothing left outside, or a scatter matrix without rows
            return cls.of_ridge(1.0, X2.shape[1])
        X = X2 - X2.mean(axis=0)
        n, q = X.shape
        sizes = np.linalg.eigvalsh(X @ X.T if n <= q else X.T @ X)
        return cls.fitted(np.maximum(sizes, 0.0), q, n - 1)

    @classmethod
    def fitted(cls, sizes: Array, q: int, n: int) -> RestPrior:
        """Return the prior of largest marginal likelihood, given the nonzero eigenvalues ``sizes`` of ``S22``.

        The paper's ``Wishart(q + 1, I)`` expects every variable to be explained almost entirely by the others, and
        overestimates precisions many times where q exceeds n. Choosing the strength by the marginal likelihood
        shrinks towards uncorrelated variables as far as the data ask for (Leday and Richardson 2019).

        References
        ----------
        Leday, G. G. R. and Richardson, S. (2019). Fast Bayesian inference in large Gaussian graphical models.
        Biometrics 75, 1288-1298.

        Examples
        --------
        >>> X = np.random.default_rng(0).standard_normal((100, 50))  # columns that are not correlated
        >>> prior = RestPrior.fitted(np.linalg.eigvalsh(X.T @ X), 50, 100)
        >>> prior.ridge > 1000
        True
        """
        if not q:
            return cls.of_ridge(1.0, 0)
        most = math.log(LARGEST_RIDGE * (n + q))
        found = optimize.minimize_scalar(
            lambda log_r: -log_marginal(math.exp(log_r), sizes, q, n),
            bounds=(math.log(LEAST_RIDGE), most),
            method="bounded",
            options={"xatol": 1e-3},
        )
        return cls.of_ridge(math.exp(found.x), q)


def log_marginal(r: float, sizes: Array, q: int, n: int) -> float:
    """Return the log marginal likelihood of the ridge r, up to a constant, from the eigenvalues of ``S22``."""
    degrees = r + q + 1
    steps = np.arange(q) / 2
    gammas = special.gammaln((degrees + n) / 2 - steps) - special.gammaln(degrees / 2 - steps)
    determinant = np.log(r + sizes).sum() + (q - len(sizes)) * math.log(r)
    return float(gammas.sum() + q * degrees / 2 * math.log(r) - (degrees + n) / 2 * determinant)
