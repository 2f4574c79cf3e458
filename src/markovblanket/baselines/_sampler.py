"""The prior and the Gibbs sampler of the Bayesian graphical lasso, which draws ``W`` column by column."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from markovblanket.baselines._columns import draw_columns
from markovblanket.contracts import Array, Draw, Hyper, SweepInfo
from markovblanket.variates import inverse_gaussian, wishart


@dataclass(frozen=True)
class GraphicalLasso:
    """Prior ``p(W) ∝ exp(-lam sum_{i<j} |w_ij| - lam/2 sum_i w_ii)`` on positive definite matrices.

    Parameters
    ----------
    lam : float, optional
        The rate; larger shrinks more. By default it is learned, with a gamma hyperprior.
    shape, rate : float
        The hyperprior ``Gamma(lam; shape, rate)`` of a learned rate, by default with mean and standard deviation
        100.

    References
    ----------
    Wang, H. (2012). Bayesian graphical lasso models and efficient posterior computation. Bayesian Analysis 7,
    867-886.

    Examples
    --------
    >>> from markovblanket.baselines import GraphicalLasso
    >>> GraphicalLasso(lam=20).learned, GraphicalLasso().learned
    (False, True)
    """

    lam: float | None = None
    shape: float = 1.0
    rate: float = 0.01

    def __post_init__(self) -> None:
        """Raise ValueError if a parameter is out of range."""
        for name in ("lam", "shape", "rate"):
            value = getattr(self, name)
            number = isinstance(value, int | float | np.floating) and not isinstance(value, bool)
            if value is not None and not (number and 1e-100 < value < 1e100):
                raise ValueError(f"GraphicalLasso({name}={value!r}): {name} must be a number, positive and finite")

    @property
    def learned(self) -> bool:
        """Whether the rate lam is learned from the data."""
        return self.lam is None

    def draw_rate(self, rng: np.random.Generator, W: Array) -> float:
        """Draw ``lam | W ~ Gamma(shape + d(d+1)/2, rate + sum_ij |w_ij| / 2)``, scales integrated out.

        The cone of positive definite matrices is invariant under scaling, so the normalising constant of the prior
        is ``lam`` to the power of the number of free entries, d(d+1)/2. Half the sum over all entries counts every
        pair once and the diagonal half.
        """
        if self.lam is not None:
            return self.lam
        d = len(W)
        return float(rng.gamma(self.shape + d * (d + 1) / 2) / (self.rate + np.abs(W).sum() / 2))

    def draw_reciprocal_scales(self, rng: np.random.Generator, W: Array, lam: float) -> Array:
        """Draw ``1/t_ij | W ~ InverseGaussian(lam / |w_ij|, lam^2)`` for every pair i < j; the diagonal is 0."""
        i, j = np.tril_indices(len(W), -1)
        D = np.zeros(W.shape)
        with np.errstate(divide="ignore"):  # an entry that is exactly 0 has an infinite mean, which is valid
            D[i, j] = inverse_gaussian.draw(rng, lam / np.abs(W[i, j]), lam**2)
        return D + D.T


@dataclass(frozen=True, slots=True)
class NetworkState:
    """State of a chain: the whole precision matrix W, the reciprocal scales ``D = 1/T``, and the rate lam."""

    W: Array
    D: Array
    lam: float


@dataclass(frozen=True)
class WholeNetwork:
    """Block Gibbs sampler for rows ``x ~ N(0, W^-1)``, given ``S = X'X``, with a graphical lasso prior on ``W``.

    Parameters
    ----------
    S : numpy.ndarray
        The scatter, a sum over ``n`` rows; its first ``p`` variables are the query.
    n : int
        Number of rows.
    p : int
        Number of query variables.
    prior : GraphicalLasso
        The prior distribution of ``W``.
    """

    S: Array
    n: int
    p: int
    prior: GraphicalLasso

    def start(self, rng: np.random.Generator) -> NetworkState:
        """Draw an over-dispersed initial state of a chain.

        ``W`` comes from its posterior under a ``Wishart(d + 1, I)`` prior, without zeros, times a random factor
        between 1/e and e; a learned rate from a wide range about ``sqrt(2d)``; scales from their prior.
        """
        d = len(self.S)
        root = np.linalg.inv(np.linalg.cholesky(self.S + np.eye(d))).T
        W = wishart.draw_from_factor(rng, self.n + d + 1, root) * math.exp(rng.uniform(-1, 1))
        lam = self.prior.lam or math.sqrt(2 * d) * math.exp(rng.uniform(-2, 2))
        T = np.tril(rng.exponential(2 / lam**2, (d, d)), -1) + np.eye(d) / 2
        return NetworkState(W, 1 / (T + T.T), lam)

    def sweep(self, rng: np.random.Generator, state: NetworkState) -> tuple[NetworkState, SweepInfo]:
        """Draw the next state by one Gibbs sweep; the comments name the conditional distributions."""
        W = self.draw_matrix(rng, state)  # W  | D, lam, S, column by column
        lam = self.prior.draw_rate(rng, W)  # lam  | W
        D = self.prior.draw_reciprocal_scales(rng, W, lam)  # D  | W, lam
        return NetworkState(W, D, lam), SweepInfo(iterations=0, residual=0.0, scale_factor=1.0)

    def draw_matrix(self, rng: np.random.Generator, state: NetworkState) -> Array:
        """Draw every column of ``W`` once; the inverse is recomputed, so rounding errors do not accumulate."""
        W, root = state.W.copy(), np.linalg.inv(np.linalg.cholesky(state.W))
        v, Z = self.draw_conditional_precisions(rng, state.lam), rng.standard_normal(W.shape)
        draw_columns(W, root.T @ root, self.S, state.D, state.lam, Z, v)
        return W

    def draw_conditional_precisions(self, rng: np.random.Generator, lam: float) -> Array:
        """Draw all ``v_j = w_jj - u'W_-j-j^-1 u ~ Gamma(n/2 + 1, rate (s_jj + lam)/2)``, given any ``W_-j-j``."""
        return rng.gamma(self.n / 2 + 1, size=len(self.S)) / ((np.diag(self.S) + lam) / 2)

    def derive(self, rng: np.random.Generator, state: NetworkState, info: SweepInfo) -> Draw:
        """Return the query rows of ``W``, the diagonal of ``W22``, and the explained variances.

        The latter are the diagonal of ``U W12 S22 W21 U / n``.
        """
        p = self.p
        W11, W12 = state.W[:p, :p], state.W[:p, p:]
        UW12 = np.linalg.solve(W11, W12)
        explained = np.einsum("ij,ij->i", UW12 @ self.S[p:, p:], UW12) / self.n
        hyper: Hyper = {"lam": state.lam} if self.prior.learned else {}
        return Draw(W11, W12, np.diag(state.W)[p:], explained, hyper, info)

    def partial_correlations(self, state: NetworkState) -> Array:
        """Return the partial correlations between the query and all other variables, p x q."""
        root = np.sqrt(np.diag(state.W))
        return -state.W[: self.p, self.p :] / np.outer(root[: self.p], root[self.p :])
