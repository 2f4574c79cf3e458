"""Which variables have larger precisions than others: the units in which the prior measures the entries."""

from __future__ import annotations

import numpy as np

from markovblanket.contracts import Array, Scatter
from markovblanket.model.rest_prior import RestPrior
from markovblanket.model.scatter import inverse_diagonal, rotated


def relative_precisions(scatter: Scatter) -> Array:
    """Return how large the precision ``w_ii`` of each variable is beside the smallest one, query first.

    A first guess: the mean of a dense precision matrix under the Wishart prior of largest marginal likelihood. A
    variable that the others explain by 99 percent has 100 times the precision of one that they do not explain, in
    units of standard deviations. Where variables outnumber rows the guess is too large for all of them alike, so
    only the ratio is used, to the smallest: copies of a variable, however many, have large precisions, and leave
    the others as they are. Standard deviations are those of the scatter with the prior's identity.

    Examples
    --------
    >>> from markovblanket.model.scatter import from_columns
    >>> x, noise, *others = np.random.default_rng(0).standard_normal((7, 1000))
    >>> y = (x + 0.1 * noise) / np.sqrt(1.01)
    >>> relative_precisions(from_columns(x[:, None], np.column_stack([y, *others]))).round(-1)
    array([90., 90.,  0.,  0.,  0.,  0.,  0.])
    """
    p, S11 = len(scatter.B), scatter.B - np.eye(len(scatter.B))
    sizes = np.concatenate([np.diag(S11), scatter.column_sizes])
    units = np.sqrt((sizes + 1.0) / scatter.n)
    F, Y = scatter.F / units[p:], scatter.Y / units[:p, None]
    outside = _root(S11 / np.outer(units[:p], units[:p]) - Y @ Y.T)  # the part of the query that F does not span
    factor = rotated(np.block([[Y.T, F], [outside, np.zeros((p, F.shape[1]))]]))
    prior = RestPrior.fitted(np.einsum("kj,kj->k", factor, factor), len(sizes), scatter.n)
    diagonal = inverse_diagonal(factor, prior.ridge)
    return diagonal / diagonal.min() / units**2


def _root(S: Array) -> Array:
    """Return ``R`` with ``R'R = S``, for a matrix that is positive semi-definite up to rounding."""
    values, V = np.linalg.eigh(S)
    return (V * np.sqrt(np.maximum(values, 0.0))).T
