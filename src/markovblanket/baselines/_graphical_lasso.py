"""The public function of the Bayesian graphical lasso: from a table and a query to a posterior."""

from __future__ import annotations

from typing import Any

import numpy as np

from markovblanket._determinism import checked_seed, one_thread
from markovblanket.baselines._sampler import GraphicalLasso, WholeNetwork
from markovblanket.chains.run import Schedule
from markovblanket.contracts import Array, Scatter
from markovblanket.fitting.data import from_table
from markovblanket.fitting.keep import decide
from markovblanket.fitting.task import Task, described
from markovblanket.posterior.posterior import Posterior


def graphical_lasso(
    table: Any,
    query: Any,
    *,
    lam: float | None = None,
    chains: int = 4,
    warmup: int = 1000,
    draws: int = 1000,
    thin: int = 1,
    seed: int | None = None,
    n_jobs: int | None = None,
    progress: bool = True,
) -> Posterior:
    """Estimate the whole network by the Bayesian graphical lasso, and keep the rows of the query variables.

    Draws from the posterior of the precision matrix ``W`` of all d variables under the prior
    ``exp(-lam sum_{i<j} |w_ij| - lam/2 sum_i w_ii)`` (Wang 2012), at a cost of O(d^4) per sweep. It
    is a baseline for :func:`markovblanket.estimate`.

    Parameters
    ----------
    table : pandas or polars frame, numpy.ndarray, or path
        A row per observation; columns are numeric and complete, and enter standardised.
    query : list of names
        The variables whose edges are kept; positions for an array. The posterior distribution does not depend on
        them.
    lam : float, optional
        The rate of the prior; by default it is learned, with the hyperprior ``Gamma(1, 0.01)``.
    chains, warmup, draws, thin : int
        Independent chains; sweeps discarded; draws kept per chain; sweeps per kept draw.
    seed : int, optional
        Seed of the random numbers; results depend on it, but not on ``n_jobs``.
    n_jobs : int, optional
        Number of chains run in parallel by joblib, with any of its backends.
    progress : bool
        Whether to show a progress bar per chain, on a terminal or in a notebook.

    Returns
    -------
    Posterior
        Draws with named axes, edges, blankets, predictions. (Missing cells of rows to predict are imputed from the
        distribution of the remaining variables in the model of :func:`markovblanket.estimate`, not in this one.)

    Warns
    -----
    ConvergenceWarning
        If the chains have not converged, or their effective sample size is too small.

    References
    ----------
    Wang, H. (2012). Bayesian graphical lasso models and efficient posterior computation. Bayesian Analysis 7,
    867-886.

    Examples
    --------
    >>> import markovblanket as mb
    >>> from markovblanket.baselines import graphical_lasso
    >>> clinic = mb.simulate(rows=200, query=2, rest=8, seed=1)
    >>> posterior = graphical_lasso(clinic.table, clinic.query, warmup=200, draws=1000, seed=1)
    >>> posterior
    <Posterior: 2 query and 8 other variables, 4 chains of 1000 draws>
    >>> sorted(posterior.blanket())
    ['Q1', 'Q2']
    """
    schedule, prior = Schedule(warmup, draws, thin), GraphicalLasso(lam)
    seeds = np.random.SeedSequence(checked_seed(seed))
    with one_thread:  # as in the chains: the last bits must not depend on the number of cores
        data = from_table(table, query)
        sampler = WholeNetwork(whole(data.scatter), data.scatter.n, len(data.query), prior)
    task = Task(
        problem=sampler,
        data=data,
        settings=described(data, {"prior": prior}),
        schedule=schedule,
        keeping=decide("draws", None, (data.query, data.rest), chains, schedule),
        chains=chains,
        seeds=seeds,
    )
    return task.run(n_jobs, progress)


def whole(scatter: Scatter) -> Array:
    """Return the d x d scatter ``S``, put together from its blocks."""
    S11, S22 = scatter.B - np.eye(len(scatter.B)), scatter.F.T @ scatter.F
    return np.block([[S11, scatter.S12], [scatter.S12.T, S22]])
