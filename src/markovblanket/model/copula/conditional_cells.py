"""A cell given all others of its row, and W: normal, and what is averaged instead of counting draws of it.

With w the column of ``W`` that belongs to x, and X whole rows::

    x | others ~ N(x - X w / w_xx, 1 / w_xx)

in which x itself cancels. For a query column w is in ``(W11, W12)``; column j of the rest takes row j of
``W22 = W22.1 + W21 U W12``. ``W22.1`` is not kept with the draws, but it depends on ``X2`` alone, and what is
needed of it is drawn again (see :mod:`markovblanket.model.copula.new_rows`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from markovblanket.contracts import Array, Columns
from markovblanket.model.copula.new_rows import Completion
from markovblanket.model.scatter import rest_degrees, rest_ridge

Indices = npt.NDArray[np.intp]


def of_query(W11: Array, W12: Array, columns: Columns) -> tuple[Array, Array]:
    """Means of the cells of the query, n x p, and the sd of each column."""
    w = np.diag(W11)
    return columns.X1 - (columns.X1 @ W11 + columns.X2 @ W12.T) / w, w**-0.5


def of_rest(rng: np.random.Generator, W11: Array, W12: Array, columns: Columns, J: Indices) -> tuple[Array, Array]:
    """Means of the cells of columns J of the rest, n x d, and the sd of each, with ``W22.1`` drawn."""
    X1, X2 = columns.X1, columns.X2
    K = np.setdiff1d(np.arange(X2.shape[1]), J)
    law = Completion(X2[:, K], K, J, rest_degrees(*X2.shape), rest_ridge(*X2.shape))
    W_JJ, W_KJ = law.draw_precision(rng, X2[:, J])
    UW12 = np.linalg.solve(W11, W12[:, J])
    w = np.diag(W_JJ) + np.einsum("ij,ij->j", W12[:, J], UW12)
    Xw = X1 @ W12[:, J] + X2[:, J] @ W_JJ + X2[:, K] @ W_KJ + (X2 @ W12.T) @ UW12
    return X2[:, J] - Xw / w, w**-0.5
