"""Differences of edges between two posteriors: their means, intervals and probabilities of signs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from markovblanket.contracts import Array
from markovblanket.posterior import edges as edgetable
from markovblanket.posterior import selection
from markovblanket.posterior.posterior import Posterior
from markovblanket.posterior.selection import DEFAULT_LEVEL
from markovblanket.posterior.summaries import tails, take

Positions = npt.NDArray[np.intp]
# Bisections of the range of all differences; the remaining width is about a rounding error.
BISECTIONS = 50


def difference(
    first: Posterior, second: Posterior, level: float | None = None, *, fdr: float | None = None, all: bool = False
) -> pd.DataFrame:
    """Return the edges that differ between two groups of rows, ``first`` minus ``second``, the surest first.

    The posteriors must be of different rows, so that they are independent: every draw of one is paired with every
    draw of the other. An edge that is selected in one group and not in the other is not evidence of a difference,
    as one group may just have fewer rows; an edge that this function selects is.

    Parameters
    ----------
    first, second : Posterior
        Fits with the same query variables and the same ``margins``. Variables of only one are left out, and listed
        in the result's ``attrs["only_in_first"]`` and ``attrs["only_in_second"]``. An edge is conditional on all
        other variables of its own table, so edges may differ because one table lacks a variable.
    level : float, optional
        Select where the central credible interval of the difference at this level excludes zero; 95 % by default.
    fdr : float, optional
        Instead, select the largest set whose mean local false sign rate is at most this.
    all : bool
        Instead, return every pair.

    Returns
    -------
    pandas.DataFrame
        A row per edge, those among the query included: query, variable; mean partial correlations ``first`` and
        ``second``, over all draws; their mean ``difference``, its ``sd``, and ``lower``, ``upper`` ends of its
        central interval at ``level`` (or 95 %); ``sign_probability`` of its likelier sign; ``probability_first``,
        ``probability_second`` that the edge is present, and the probabilities that it is present in one only,
        ``only_first`` and ``only_second`` (missing if a prior has no exact zero); the larger ``rhat`` and the
        smaller ``ess`` of the two. If only a summary was kept, moments and signs of each partial correlation are
        exact, and the rest comes from its histogram.

    Notes
    -----
    A partial correlation depends on the spreads of its two variables: where one varies more in one group, it
    differs though its distribution given the others may not. Each posterior is also shrunk towards zero by its own
    learned prior, the more so the fewer its rows.

    Examples
    --------
    >>> import markovblanket as mb
    >>> clinic = mb.simulate(rows=400, query=1, rest=5, density=0.4, seed=0)
    >>> clinic.blanket
    {'Q1': ['V3', 'V4']}
    >>> here, there = clinic.table[:200], clinic.table[200:].assign(V4=-clinic.table["V4"])  # the other sign
    >>> fits = [mb.estimate(rows, clinic.query, draws=1500, seed=1) for rows in (here, there)]
    >>> mb.difference(*fits)[["query", "variable"]].to_numpy().tolist()
    [['Q1', 'V4']]
    """
    query, shared = _compared(first, second)
    names = [*query, *shared]
    sides = Side.of(first, query, names), Side.of(second, query, names)
    i, k = edgetable.once(np.ones((len(query), len(names))))
    sign = _sign_probability(*sides, i, k)
    chosen = np.ones_like(sign, bool) if all else selection.select(sign, level=level, fdr=fdr)
    i, k = i[chosen], k[chosen]
    table = _described(*sides, i, k, DEFAULT_LEVEL if level is None else level)
    table.insert(table.columns.get_loc("upper") + 1, "sign_probability", sign[chosen])
    table.insert(0, "query", take(names, i))
    table.insert(1, "variable", take(names, k))
    found = edgetable.surest_first(table, table["sign_probability"], "difference", "sd")
    found.attrs |= {"only_in_first": _without(first, shared), "only_in_second": _without(second, shared)}
    return found


def _compared(first: Posterior, second: Posterior) -> tuple[list[Any], list[Any]]:
    """Return the query variables and the shared variables of the rest; refuse posteriors that do not compare."""
    if set(first.query) != set(second.query):
        raise ValueError(f"the posteriors have different query variables: {first.query} and {second.query}")
    if first.observed.margins != second.observed.margins:
        margins = f"{first.observed.margins!r} and {second.observed.margins!r}"
        raise ValueError(f"the posteriors have different margins, {margins}: their edges are on different scales")
    known = set(second.variables)
    shared = [name for name in first.variables if name in known]
    if not shared and (first.variables or second.variables):
        raise ValueError("the posteriors have no variable in common besides the query variables")
    return first.query, shared


def _without(posterior: Posterior, shared: Sequence[Any]) -> list[Any]:
    """Return the variables of a posterior that are not shared."""
    known = set(shared)
    return [name for name in posterior.variables if name not in known]


@dataclass(frozen=True, eq=False)
class Side:
    """The pairs of one posterior, by positions among the query and the shared variables."""

    pairs: edgetable.AllPairs
    inclusion: Array
    place: Positions

    @classmethod
    def of(cls, posterior: Posterior, query: Sequence[Any], names: Sequence[Any]) -> Side:
        """Return the pairs of a posterior in the order of these names."""
        place = {name: k for k, name in enumerate(posterior.names)}
        columns = np.array([place[name] for name in names])
        inclusion = posterior.inclusion.to_numpy()[np.ix_(columns[: len(query)], columns)]
        return cls(edgetable.all_pairs(posterior.draws, posterior.streams), inclusion, columns)

    def table(self, i: Positions, k: Positions) -> pd.DataFrame:
        """Return the table of the pairs at these positions."""
        return self.pairs.table(self.place[i], self.place[k])

    def ordered(self, i: int, k: int) -> Array:
        """Return the partial correlations of one pair, ascending."""
        return self.pairs.ordered(int(self.place[i]), int(self.place[k]))


def _sign_probability(first: Side, second: Side, i: Positions, k: Positions) -> Array:
    """Return ``max(P(d > 0), P(d < 0))`` of the difference d of each pair."""
    pairs = zip(i.tolist(), k.tolist(), strict=True)
    return np.array([max(_signs(first.ordered(*pair), second.ordered(*pair))) for pair in pairs])


def _described(first: Side, second: Side, i: Positions, k: Positions, level: float) -> pd.DataFrame:
    """Return all columns of the result but names and sign probabilities, a row per chosen edge."""
    one, other = first.table(i, k), second.table(i, k)
    ends = [
        [_quantile(first.ordered(*e), second.ordered(*e), t) for t in tails(level)] for e in zip(i, k, strict=True)
    ]
    lower, upper = np.array(ends).reshape(-1, 2).T
    p, r = first.inclusion[i, k], second.inclusion[i, k]
    averaged = "partial_correlation_averaged"
    columns = {
        "first": one[averaged],
        "second": other[averaged],
        "difference": one[averaged] - other[averaged],
        "sd": np.hypot(one["sd_averaged"], other["sd_averaged"]),
        "lower": lower,
        "upper": upper,
        "probability_first": p,
        "probability_second": r,
        "only_first": p * (1 - r),
        "only_second": r * (1 - p),
        "rhat": np.fmax(one["rhat"], other["rhat"]),
        "ess": np.fmin(one["ess"], other["ess"]),
    }
    return pd.DataFrame(columns)


# Two sets of draws, all pairs -------------------------------------------------------------------------


def _signs(a: Array, b: Array) -> tuple[float, float]:
    """Return ``P(a > b)`` and ``P(a < b)`` over all pairs; ``b`` is ascending.

    Examples
    --------
    >>> _signs(np.array([0.0, 1.0]), np.array([-1.0, 0.0, 0.0, 3.0]))
    (0.5, 0.25)
    """
    below = np.searchsorted(b, a, side="left").sum()
    above = a.size * b.size - np.searchsorted(b, a, side="right").sum()
    return float(below) / (a.size * b.size), float(above) / (a.size * b.size)


def _quantile(a: Array, b: Array, tail: float) -> float:
    """Return the ``tail`` quantile of the differences a - b of all pairs; both arrays are ascending.

    It is the smallest difference up to which at least the share ``tail`` of all pairs lies, so it is positive
    exactly if ``P(a > b) > 1 - tail``.

    Examples
    --------
    >>> _quantile(np.array([1.0, 2.0]), np.array([0.0, 0.5, 4.0]), 0.5)
    0.5
    """
    wanted = max(1, math.ceil(tail * a.size * b.size))
    rounding = 4 * np.finfo(float).eps * max(abs(a[0]), abs(a[-1]), abs(b[0]), abs(b[-1]))
    low, high = a[0] - b[-1], a[-1] - b[0] + rounding
    for _ in range(BISECTIONS):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if _count(a, b, middle) >= wanted else (middle, high)
    return _largest(a, b, high + rounding)


def _count(a: Array, b: Array, most: float) -> int:
    """Return the number of pairs whose difference is at most ``most``."""
    return int(a.size * b.size - np.searchsorted(b, a - most, side="left").sum())


def _largest(a: Array, b: Array, most: float) -> float:
    """Return the largest difference of a pair that is at most ``most``."""
    place = np.searchsorted(b, a - most, side="left")
    return float(np.max((a - b[np.minimum(place, b.size - 1)])[place < b.size]))
