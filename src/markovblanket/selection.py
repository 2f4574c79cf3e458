"""Which edges to believe: rules on posterior probabilities of signs, and nothing else.

The central credible interval at ``level`` excludes zero exactly when the probability of one sign exceeds
``(1 + level) / 2``, so a count of signs decides, without quantiles. The probability of the *other* sign is the
local false sign rate; the largest set of edges whose mean rate stays below ``fdr`` bounds the expected share of
wrong calls (Bayesian false discovery rate).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from markovblanket.contracts import Array

Mask = npt.NDArray[np.bool_]


def sign_probability(draws: Array) -> Array:
    """``max(P(w > 0), P(w < 0))`` over the first axis."""
    return np.maximum((draws > 0).mean(axis=0), (draws < 0).mean(axis=0))


def select(
    probability: Array, level: float | None = None, fdr: float | None = None, default: float = 0.95
) -> Mask:
    """One rule at a time: by ``level``, by ``fdr``, or by the default level."""
    if level is not None and fdr is not None:
        raise ValueError("select by level or by fdr, not by both")
    if fdr is not None:
        return by_false_sign_rate(probability, fdr)
    return by_level(probability, default if level is None else level)


def by_level(probability: Array, level: float) -> Mask:
    """Edges whose central credible interval at ``level`` excludes zero."""
    if not 0 < level < 1:
        raise ValueError(f"level={level!r}: a credibility level lies between 0 and 1")
    return probability > (1 + level) / 2


def by_false_sign_rate(probability: Array, fdr: float) -> Mask:
    """The largest set of edges, surest first, whose mean local false sign rate is at most ``fdr``.

    Examples
    --------
    >>> import numpy as np
    >>> by_false_sign_rate(np.array([0.99, 0.93, 0.80, 0.55]), fdr=0.1)
    array([ True,  True,  True, False])
    """
    if not 0 < fdr < 1:
        raise ValueError(f"fdr={fdr!r}: a false discovery rate lies between 0 and 1")
    rate = 1.0 - probability.ravel()
    order = np.argsort(rate, kind="stable")
    mean = np.cumsum(rate[order]) / np.arange(1, rate.size + 1)
    chosen = np.zeros(rate.size, dtype=bool)
    chosen[order[mean <= fdr]] = True
    return chosen.reshape(probability.shape)
