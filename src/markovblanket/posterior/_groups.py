"""Groups of highly correlated variables that share the probability of an edge with a query variable.

If several variables are nearly the same, the data cannot tell to which of them a query variable is connected. Each
then has a part of the probability, and none looks certain, though it may be certain that *one of them* is a
neighbour.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from markovblanket.contracts import Array

Group = tuple[Any, tuple[Any, ...], float, float]
Mask = npt.NDArray[np.bool_]


def shared(
    query: Any, variables: Sequence[Any], included: Mask, correlation: Array, similar: float
) -> list[Group]:
    """Return the groups of candidates that share the probability of being a neighbour of a query variable.

    Parameters
    ----------
    query : name
        The query variable.
    variables : sequence of names
        The candidates.
    included : numpy.ndarray of bool
        Whether each candidate is a neighbour in each draw: draws by candidates.
    correlation : numpy.ndarray
        The correlations of the candidates.
    similar : float
        Members of a group have at least this absolute correlation with its likeliest member.

    Returns
    -------
    list of tuple
        For each group of two or more: the query variable; the members, likeliest first; the probability that at
        least one of them is a neighbour; and the probability of the likeliest.

    Examples
    --------
    >>> import numpy as np
    >>> draws = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 1], [0, 1, 0]], dtype=bool)
    >>> correlation = np.array([[1.0, -0.9, 0.1], [-0.9, 1.0, 0.2], [0.1, 0.2, 1.0]])
    >>> shared("sex", ["XIST", "RPS4Y1", "ACTB"], draws, correlation, 0.7)
    [('sex', ('RPS4Y1', 'XIST'), 1.0, 0.75)]
    """
    share = included.mean(axis=0)
    return [
        (query, tuple(variables[k] for k in members), probability(included[:, members]), float(share[members[0]]))
        for members in around_leaders(share, np.abs(correlation), similar)
        if len(members) > 1
    ]


def probability(included: Mask) -> float:
    """Return the probability that at least one of the candidates is a neighbour."""
    return float(included.any(axis=1).mean())


def table(found: Iterable[Group]) -> pd.DataFrame:
    """Return groups as a table, the most probable first."""
    columns = ["query", "variables", "probability", "likeliest"]
    return pd.DataFrame(found, columns=columns).sort_values("probability", ascending=False, ignore_index=True)


def around_leaders(share: Array, size: Array, similar: float) -> Iterator[list[int]]:
    """Yield groups of positions: the likeliest candidate left, with all candidates left that are similar to it."""
    left = list(np.argsort(-share, kind="stable"))
    while left:
        members = [k for k in left if k == left[0] or size[left[0], k] >= similar]
        left = [k for k in left if k not in members]
        yield members
