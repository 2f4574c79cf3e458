"""Simulated networks with hubs, tables of several kinds drawn from them, and scores of inferred edges.

The artificial data of Kaufmann et al. (2016): a sparse precision matrix ``W`` in which few variables hold
most of the edges, edge weights uniform in [0.3, 1] with random signs, and rows from ``N(0, W^-1)``. Columns of
other kinds are increasing functions of these, and cells go missing completely at random. :func:`score` compares
inferred edges with the true ones.

>>> simulate(rows=50, query=2, rest=30, seed=0).blanket
{'Q1': ['V27'], 'Q2': ['V01', 'V24', 'V27']}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pandas as pd
from scipy import linalg, stats

from markovblanket._determinism import checked_seed

Array = npt.NDArray[np.float64]
Indices = npt.NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Simulated:
    """A simulated table, with the network from which it was drawn.

    ``table`` is what an analyst would be given, query columns first; ``complete`` is this table before cells went
    missing; ``latent`` has the Gaussian rows behind it, which are the same numbers with ``kinds="continuous"``.
    ``query`` has the names of the query variables; ``W`` is the true precision matrix, in the order of the
    columns; ``kinds`` has the kind of each column.
    """

    table: pd.DataFrame
    latent: pd.DataFrame
    query: list[str]
    W: Array
    complete: pd.DataFrame
    kinds: dict[str, str]

    @property
    def truth(self) -> pd.DataFrame:
        """Every pair of a query variable and another: query, variable, weight, partial_correlation, edge."""
        i, j = np.indices((len(self.query), len(self.W) - len(self.query))).reshape(2, -1)
        return self._pairs(i, j + len(self.query))

    @property
    def query_edges(self) -> pd.DataFrame:
        """Every pair of query variables once, the earlier one as ``query``; columns as in `truth`."""
        return self._pairs(*np.triu_indices(len(self.query), 1))

    @property
    def blanket(self) -> dict[str, list[str]]:
        """The neighbours of each query variable among the remaining variables; a list may be empty."""
        edges = self.truth.query("edge")
        return {name: edges["variable"][edges["query"] == name].tolist() for name in self.query}

    def _pairs(self, i: Indices, j: Indices) -> pd.DataFrame:
        """Return a row for each pair ``W[i, j]``."""
        names, scale, weight = self.latent.columns, np.sqrt(np.diag(self.W)), self.W[i, j]
        pairs = pd.DataFrame({"query": names[i], "variable": names[j], "weight": weight})
        # 0 minus the ratio, so that absent edges have 0.0 and not -0.0
        return pairs.assign(partial_correlation=0 - weight / (scale[i] * scale[j]), edge=weight != 0)


# Tables -----------------------------------------------------------------------------------------------


def simulate(
    rows: int = 300,
    query: int = 5,
    rest: int = 200,
    *,
    density: float = 0.05,
    weights: tuple[float, float] = (0.3, 1.0),
    hubs: float = 0.2,
    margin: float = 0.1,
    unit_variances: bool = False,
    kinds: str | Sequence[str] = "continuous",
    missing: float = 0.0,
    seed: int | np.random.SeedSequence | None = None,
) -> Simulated:
    """Draw a network, and a table with rows from ``N(0, W^-1)``.

    The variables of `network` are exchangeable, so the first ``query`` of them are a random choice: a hub may
    be a query variable or one of the rest. With the same seed, more rows come from the same network.

    Parameters
    ----------
    rows, query, rest : int
        Numbers of observations, of query variables (Q1, Q2, ...) and of remaining variables (V1, V2, ...),
        their names padded with zeros so that they sort.
    density, weights, hubs, margin, unit_variances : as in `network`
        The network's options.
    kinds : str or sequence of str
        "continuous": the Gaussian rows themselves. "mixed": continuous (skewed), binary (0 and 1), ordinal (1 to
        between 3 and 6) and count columns in about equal numbers, among the query as among the rest. Or the kind
        of every column, one by one.
    missing : float
        Probability that a cell is missing.
    seed : int, numpy.random.SeedSequence or None
        Fixes every draw; None takes fresh entropy.

    Returns
    -------
    Simulated
        The table and its truth.

    Examples
    --------
    >>> simulated = simulate(rows=100, query=3, rest=10, density=0.2, seed=2)
    >>> simulated.table.columns[:5].tolist()
    ['Q1', 'Q2', 'Q3', 'V01', 'V02']
    >>> simulated.truth.query("edge").head(2).round(2)
       query variable  weight  partial_correlation  edge
    1     Q1      V02    0.98                -0.41  True
    11    Q2      V02   -0.33                 0.14  True
    """
    for name, count in {"rows": rows, "query": query, "rest": rest}.items():
        require(count >= 1, f"{name} must be at least 1, not {count}")
    require(0 <= missing < 1, f"missing must lie in [0, 1), not {missing}")
    rng = np.random.default_rng(checked_seed(seed))
    names = [*_names("Q", query), *_names("V", rest)]
    W = network(
        rng,
        query + rest,
        density=density,
        weights=weights,
        hubs=hubs,
        margin=margin,
        unit_variances=unit_variances,
    )
    latent = pd.DataFrame(_gaussian_rows(rng, rows, W), columns=names)
    chosen = _kinds(rng, kinds, query, rest)
    complete = latent if kinds == "continuous" else _columns(rng, latent, W, chosen)
    table = complete.mask(rng.random(complete.shape) < missing) if missing else complete.copy()
    return Simulated(table, latent, names[:query], W, complete, dict(zip(names, chosen, strict=True)))


# Networks ---------------------------------------------------------------------------------------------


def network(
    rng: np.random.Generator,
    variables: int,
    *,
    density: float = 0.05,
    weights: tuple[float, float] = (0.3, 1.0),
    hubs: float = 0.2,
    margin: float = 0.1,
    unit_variances: bool = False,
) -> Array:
    """Draw a sparse precision matrix with hubs by a beta-binomial model.

    Every variable has a propensity ``pi_i ~ Beta``, and a pair is joined unless both variables decline::

        P(i - j | pi) = 1 - (1 - pi_i)(1 - pi_j)        E pi = 1 - sqrt(1 - density)

    so a pair is an edge with probability ``density``, and given its own propensity a variable's number of
    neighbours is binomial. Weights are uniform in magnitude, with fair signs, and the diagonal is the one
    constant that makes the smallest eigenvalue of ``W`` equal to ``margin``.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of randomness.
    variables : int
        Number of variables.
    density : float
        Expected share of pairs that are edges; strong hubs make a single network's share scatter widely.
    weights : tuple of float
        Smallest and largest magnitude of an edge's weight.
    hubs : float
        ``1 / (a + b + 1)`` of the propensities' distribution ``Beta(a, b)``, in [0, 1): at 0 all variables have
        the same propensity (no hubs), near 1 nearly all are close to 0 or to 1.
    margin : float
        Smallest eigenvalue of ``W`` before any rescaling; the smaller, the stronger the correlations.
    unit_variances : bool
        Rescale ``W`` so that ``W^-1`` has a unit diagonal: partial correlations stay, weights do not.

    Returns
    -------
    numpy.ndarray
        The precision matrix ``W``, symmetric and positive definite, zero where there is no edge.

    References
    ----------
    Kaufmann et al. (2016), "Bayesian Markov Blanket Estimation"; pairing rule, hubs and margin are ours.

    Examples
    --------
    >>> W = network(np.random.default_rng(0), 100)
    >>> neighbours = (W != 0).sum(axis=0) - 1
    >>> int(np.median(neighbours)), int(neighbours.max())
    (2, 39)
    """
    require(variables >= 1, f"variables must be at least 1, not {variables}")
    require(0 <= density <= 1, f"density must lie in [0, 1], not {density}")
    require(0 < weights[0] <= weights[1] < np.inf, f"weights must be 0 < smallest <= largest, not {weights}")
    require(0 <= hubs < 1, f"hubs must lie in [0, 1), not {hubs}")
    require(0 < margin < np.inf, f"margin must be positive, not {margin}")
    i, j = _edges(rng, variables, density, hubs)
    W = np.zeros((variables, variables))
    W[i, j] = W[j, i] = rng.uniform(*weights, i.size) * rng.choice([-1.0, 1.0], i.size)
    W[np.diag_indices(variables)] = margin - linalg.eigvalsh(W, subset_by_index=[0, 0])[0]
    if unit_variances:
        deviation = np.sqrt(np.diag(linalg.inv(W)))
        W *= np.outer(deviation, deviation)
    return W


def _edges(rng: np.random.Generator, variables: int, density: float, hubs: float) -> tuple[Indices, Indices]:
    """Draw the joined pairs i < j: all but those that both variables decline."""
    decline = 1 - _propensities(rng, variables, 1 - np.sqrt(1 - density), hubs)
    i, j = np.triu_indices(variables, 1)
    joined = rng.random(i.size) >= decline[i] * decline[j]
    return i[joined], j[joined]


def _propensities(rng: np.random.Generator, variables: int, mean: float, hubs: float) -> Array:
    """Draw from ``Beta(a, b)`` with this mean and ``1/(a + b + 1) = hubs``; constant where that is a point."""
    if hubs == 0 or mean in (0, 1):
        return np.full(variables, mean)
    total = 1 / hubs - 1
    return rng.beta(total * mean, total * (1 - mean), variables)


def _gaussian_rows(rng: np.random.Generator, rows: int, W: Array) -> Array:
    """Draw independent rows of ``N(0, W^-1)``: with ``W = L L'`` each is ``L'^-1 z`` for a standard normal z."""
    L, Z = linalg.cholesky(W, lower=True), rng.standard_normal((rows, len(W)))
    return np.ascontiguousarray(linalg.solve_triangular(L, Z.T, lower=True, trans="T").T)


# Columns of several kinds -----------------------------------------------------------------------------


def _kinds(rng: np.random.Generator, kinds: str | Sequence[str], query: int, rest: int) -> list[str]:
    """Return the kind of every column; "mixed" deals all kinds evenly at random, for query and rest separately."""
    if kinds == "mixed":
        shares = (np.resize(rng.permutation(list(KIND_MAPS)), count) for count in (query, rest))
        return [str(kind) for share in shares for kind in rng.permutation(share)]
    chosen = [kinds] * (query + rest) if isinstance(kinds, str) else list(kinds)
    require(len(chosen) == query + rest, f"kinds has {len(chosen)} entries for {query + rest} columns")
    unknown = sorted(set(chosen) - set(KIND_MAPS))
    require(not unknown, f"kinds has {unknown}; known are 'mixed', {', '.join(map(repr, KIND_MAPS))}")
    return chosen


def _columns(rng: np.random.Generator, latent: pd.DataFrame, W: Array, kinds: list[str]) -> pd.DataFrame:
    """Map every Gaussian column, divided by its standard deviation, to its kind by an increasing function."""
    Z = latent / np.sqrt(np.diag(linalg.inv(W)))
    made = {name: KIND_MAPS[kind](rng, Z[name].to_numpy()) for name, kind in zip(Z.columns, kinds, strict=True)}
    return pd.DataFrame(made)


def _skewed(rng: np.random.Generator, z: Array) -> Array:
    """Return a log-normal column with a random log scale."""
    return np.exp(rng.uniform(0.2, 0.8) * z)


def _binary(rng: np.random.Generator, z: Array) -> npt.NDArray[np.int64]:
    """Return a column that is 1 with a random probability between 1/4 and 3/4, otherwise 0."""
    return (z > stats.norm.ppf(rng.uniform(0.25, 0.75))).astype(np.int64)


def _ordinal(rng: np.random.Generator, z: Array) -> npt.NDArray[np.int64]:
    """Return a column with 3 to 6 levels from 1, whose random probabilities vary around equal ones."""
    cumulative = np.cumsum(rng.dirichlet(np.full(rng.integers(3, 7), 5.0)))[:-1]
    return 1 + np.searchsorted(stats.norm.ppf(cumulative), z)


def _count(rng: np.random.Generator, z: Array) -> npt.NDArray[np.int64]:
    """Return a Poisson column with a random mean between 1 and 8."""
    return np.asarray(stats.poisson.ppf(stats.norm.cdf(z), rng.uniform(1, 8))).astype(np.int64)


# The function that maps standard normal values to a column of each kind.
KIND_MAPS = {"continuous": _skewed, "binary": _binary, "ordinal": _ordinal, "count": _count}


# Small helpers ----------------------------------------------------------------------------------------


def _names(letter: str, count: int) -> list[str]:
    """Return names such as V001 to V200, padded so that they sort in the order of the columns."""
    return [letter + str(k).zfill(len(str(count))) for k in range(1, count + 1)]


def require(rule: bool, otherwise: str) -> None:
    """Raise a ValueError unless a rule holds; rules are written so that NaN violates them."""
    if not rule:
        raise ValueError(otherwise)
