"""Variables that stand in for each other: near-duplicates among which an edge's probability is shared.

Where several variables say nearly the same, the data cannot tell which of them a query variable is connected to.
Each has a share of the probability, and none looks sure, though that *one of them* is connected may be certain.
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
    """Groups of a query variable's candidates, from whether each is a neighbour in each of the draws.

    Parameters
    ----------
    query : name
        The query variable.
    variables : sequence of names
        The candidates.
    included : numpy.ndarray of bool
        Draws by candidates.
    correlation : numpy.ndarray
        Of the candidates.
    similar : float
        Group members correlate with the likeliest one, in either direction, by at least this.

    Returns
    -------
    list of tuple
        Of each group of two or more: the query variable; the members, likeliest first; the probability that at
        least one of them is a neighbour; and that of the likeliest.

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
    """That at least one is."""
    return float(included.any(axis=1).mean())


def table(found: Iterable[Group]) -> pd.DataFrame:
    """Groups, surest first."""
    columns = ["query", "variables", "probability", "likeliest"]
    return pd.DataFrame(found, columns=columns).sort_values("probability", ascending=False, ignore_index=True)


def around_leaders(share: Array, size: Array, similar: float) -> Iterator[list[int]]:
    """The likeliest candidate and those like it, then the likeliest of the others and those like it, and so on."""
    left = list(np.argsort(-share, kind="stable"))
    while left:
        members = [k for k in left if k == left[0] or size[left[0], k] >= similar]
        left = [k for k in left if k not in members]
        yield members
