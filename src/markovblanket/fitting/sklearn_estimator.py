"""The scikit-learn estimator: :func:`markovblanket.estimate` as a regressor and a feature selector."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd

from markovblanket.contracts import Array, Prior, Solver
from markovblanket.fitting.estimate import estimate
from markovblanket.posterior import selection
from markovblanket.posterior.posterior import Posterior
from markovblanket.posterior.prediction import coefficients
from markovblanket.posterior.summaries import stacked

try:
    from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
    from sklearn.feature_selection import SelectorMixin
    from sklearn.utils import check_array, check_random_state
    from sklearn.utils.validation import check_is_fitted, validate_data
except ImportError as missing:
    raise ImportError(
        "markovblanket.MarkovBlanket needs scikit-learn 1.6 or later: pip install markovblanket[sklearn]"
    ) from missing


class MarkovBlanket(MultiOutputMixin, RegressorMixin, SelectorMixin, BaseEstimator):  # type: ignore[misc]
    """Regress query variables on the rest, and select their Markov blanket.

    ``y | X ~ N(-X W21 U, U)`` row by row, with ``(W11, W12)`` drawn from their posterior (Kaufmann et al.
    2016): ``predict`` is the posterior mean, ``transform`` keeps the columns directly connected to a target.

    Parameters
    ----------
    prior : str or prior
        ``"spike-slab"`` (exact zeros), ``"laplace"`` (rate learned), ``"horseshoe"``, ``"normal"``, or an instance
        such as ``Laplace(gamma=200)``.
    solver : str or solver
        ``"dual"``, linear in the number of features, or ``"dense"``, the slow reference.
    candidates : int or str
        Features that are modelled as fully as the targets, as in :func:`markovblanket.estimate`.
    level : float, optional
        Select where the central credible interval at this level excludes zero; by default, the posterior's
        own rule.
    fdr : float, optional
        Instead: the largest set of edges whose expected share of false ones is at most this.
    inclusion : float, optional
        Instead: edges that are present with at least this probability.
    chains, warmup, draws, thin : int
        Independent chains; iterations discarded; draws kept per chain; iterations per kept draw. For warm-up and
        draws, ``"auto"`` means what it does for :func:`markovblanket.estimate`.
    random_state : int, numpy.random.RandomState or None
        An int is the ``seed`` of :func:`markovblanket.estimate`; anything else draws that seed.
    n_jobs : int, optional
        Chains run at the same time, by joblib; the numbers do not depend on it.
    keep : str or path
        What is kept of the draws, as in :func:`markovblanket.estimate`; with a summary there is no ``return_std``.
    progress : bool
        Whether to show a bar per chain, on a terminal or in a notebook.

    Attributes
    ----------
    posterior_ : Posterior
        The posterior, with edges, intervals and diagnostics.
    coef_ : numpy.ndarray
        Posterior mean coefficients on the scale of the data: (features,) for a 1-d ``y``, else
        (targets, features).
    intercept_ : float or numpy.ndarray
        The intercept of the regression; one per target if ``y`` has two dimensions.
    support_ : numpy.ndarray of bool
        Features in the blanket of any target.
    n_features_in_ : int
        Number of features.
    feature_names_in_ : numpy.ndarray of str
        The names of the features, if ``X`` has them.

    See Also
    --------
    markovblanket.estimate : The posterior of query variables from one table.

    Examples
    --------
    >>> import markovblanket as mb
    >>> clinic = mb.simulate(rows=300, query=2, rest=12, density=0.1, seed=1)
    >>> X, y = clinic.table.drop(columns=clinic.query), clinic.table[clinic.query]
    >>> model = mb.MarkovBlanket(chains=2, warmup=200, draws=800, random_state=1).fit(X, y)
    >>> model.get_feature_names_out().tolist()
    ['V04', 'V09', 'V12']
    >>> round(model.score(X, y), 1)
    0.3
    """

    def __init__(
        self,
        prior: str | Prior = "spike-slab",
        *,
        solver: str | Solver = "dual",
        candidates: int | str = "auto",
        level: float | None = None,
        fdr: float | None = None,
        inclusion: float | None = None,
        chains: int = 4,
        warmup: int | str = "auto",
        draws: int | str = "auto",
        thin: int = 1,
        random_state: int | np.random.RandomState | None = None,
        n_jobs: int | None = None,
        keep: str | Path = "auto",
        progress: bool = False,
    ) -> None:
        self.prior = prior
        self.solver = solver
        self.candidates = candidates
        self.level = level
        self.fdr = fdr
        self.inclusion = inclusion
        self.chains = chains
        self.warmup = warmup
        self.draws = draws
        self.thin = thin
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.keep = keep
        self.progress = progress

    def fit(self, X: Any, y: Any) -> Self:
        """Draw from the posterior of the targets' Markov blanket.

        Parameters
        ----------
        X : array_like or frame, (rows, features)
            The remaining variables; none of them constant.
        y : array_like, series or frame, (rows,) or (rows, targets)
            The query variables.

        Returns
        -------
        MarkovBlanket
            This estimator, fitted.
        """
        selection.select(np.empty(0), np.empty(0), **self._rule)  # a bad rule is refused before anything runs
        X, Y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, ensure_min_samples=2)
        Y = check_array(Y, ensure_2d=False, dtype=np.float64, input_name="y")
        rest = [str(name) for name in getattr(self, "feature_names_in_", _feature_names(X.shape[1]))]
        query = _target_names(y, Y.shape, rest)
        self.posterior_ = self._estimate(np.column_stack([Y, X]), query, rest)
        self.support_ = self.posterior_.selected(**self._rule)[rest].to_numpy().any(axis=0)
        coef, intercept = _on_data_scale(self.posterior_)
        self.coef_: Array = coef if Y.ndim == 2 else coef[0]
        self.intercept_: Array | float = intercept if Y.ndim == 2 else float(intercept[0])
        return self

    def predict(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Posterior mean of the query variables given the other variables.

        Parameters
        ----------
        X : array_like or frame, (rows, features)
            New rows.
        return_std : bool
            Whether to return also the standard deviation of the predictive distribution, from the residual and the
            uncertain coefficients together.

        Returns
        -------
        numpy.ndarray or tuple of two
            Shaped like ``y``, a row per row of ``X``.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, reset=False)
        mean = X @ self.coef_.T + self.intercept_
        return (mean, _predictive_sd(self.posterior_, X).reshape(mean.shape)) if return_std else mean

    @property
    def _rule(self) -> dict[str, Any]:
        """The rule by which edges are selected."""
        return {"probability": self.inclusion, "fdr": self.fdr, "level": self.level}

    def _estimate(self, values: Array, query: list[str], rest: list[str]) -> Posterior:
        """The posterior by :func:`markovblanket.estimate`, with the settings of this estimator."""
        return estimate(
            pd.DataFrame(values, columns=[*query, *rest]),
            query,
            margins="gaussian",
            prior=self.prior,
            solver=self.solver,
            candidates=self.candidates,
            chains=self.chains,
            warmup=self.warmup,
            draws=self.draws,
            thin=self.thin,
            seed=_integer_seed(self.random_state),
            n_jobs=self.n_jobs,
            keep=self.keep,
            progress=self.progress,
        )

    def _get_support_mask(self) -> npt.NDArray[np.bool_]:
        """Which features are selected, a method that ``SelectorMixin`` requires."""
        check_is_fitted(self)
        return self.support_


def _integer_seed(random_state: int | np.random.RandomState | None) -> int:
    """The seed: an int itself, otherwise drawn from the generator, which is NumPy's global one for None."""
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


def _feature_names(count: int) -> list[str]:
    """``x0, x1, ...``: scikit-learn's names for the columns of an array."""
    return [f"x{j}" for j in range(count)]


def _target_names(y: Any, shape: tuple[int, ...], taken: Collection[str]) -> list[str]:
    """The names of a frame or a series; otherwise ``y``, or ``y0, y1, ...``, different from names in use."""
    if hasattr(y, "columns"):
        return [str(name) for name in y.columns]
    if getattr(y, "name", None) not in (None, ""):
        return [str(y.name)]
    names = ["y"] if len(shape) == 1 else [f"y{i}" for i in range(shape[1])]
    while not set(names).isdisjoint(taken):
        names = [f"{name}_" for name in names]
    return names


def _on_data_scale(posterior: Posterior) -> tuple[Array, Array]:
    """Coefficients (p x q) and intercepts (p) for variables that are not standardised."""
    whole, p = posterior.observed.standardisation, len(posterior.query)
    coef = posterior.coefficients.to_numpy() * whole.sd[:p, None] / whole.sd[p:]
    return coef, whole.mean[:p] - coef @ whole.mean[p:]


def _predictive_sd(posterior: Posterior, X: Array) -> Array:
    """``sqrt(E U_ii + Var(x' beta_i))`` over the posterior, rows x p: the law of total variance."""
    whole, p = posterior.observed.standardisation, len(posterior.query)
    W11, W12 = stacked(posterior.W11), stacked(posterior.W12)
    X2 = (X - whole.mean[p:]) / whole.sd[p:]
    mean = X2 @ posterior.coefficients.to_numpy().T
    spread = np.zeros_like(mean)
    for w11, w12 in zip(W11, W12, strict=True):
        spread += (X2 @ coefficients(w11, w12).T - mean) ** 2
    residual = np.einsum("kii->i", np.linalg.inv(W11))
    return np.asarray(np.sqrt((residual + spread) / len(W11)) * whole.sd[:p])
