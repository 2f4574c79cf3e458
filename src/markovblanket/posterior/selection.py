"""Selection of edges, by rules on the posterior probabilities of their signs and of their inclusion.

The central credible interval at ``level`` excludes zero exactly when the probability of one sign exceeds
``(1 + level) / 2``, so counts of signs suffice, without quantiles. The probability of the *other* sign is the
local false sign rate.

A prior with exact zeros gives every edge a probability of inclusion. The edges that are more likely present than
absent make up the median probability model (Barbieri and Berger 2004, Annals of Statistics 32), for which a missed
edge is as bad as a false one; where rows are few, it hardly finds any. The f-score balances precision and recall,
and the set that makes it largest has all edges whose probability is above *half of that f-score* (Lipton, Elkan
and Naryanaswamy 2014): this threshold is near 1/2 where the data identify nearly all edges, and lower elsewhere.
With a bound on the expected false discovery rate this is the default, see :func:`least_inclusion`. The mean of
``1 - probability`` over the selected edges is that rate, and ``fdr`` selects the largest set in which it is small
enough; without exact zeros, the probability is that of the sign.
"""

from __future__ import annotations

from numbers import Real

import numpy as np
import numpy.typing as npt

from markovblanket.contracts import Array

Mask = npt.NDArray[np.bool_]

# Credible level of the default rule without exact zeros.
DEFAULT_LEVEL = 0.95
# The default rule with exact zeros selects edges with probabilities below 1/2 only while the expected false
# discovery rate is at most this. (On simulated Gaussian tables the actual rate was lower.)
MAX_FALSE_DISCOVERY_RATE = 0.3


def sign_probability(draws: Array) -> Array:
    """Return the probability of the likelier sign, ``max(P(w > 0), P(w < 0))``, over the first axis."""
    return np.maximum((draws > 0).mean(axis=0), (draws < 0).mean(axis=0))


def select(
    sign: Array,
    included: Array | None = None,
    *,
    probability: float | None = None,
    fdr: float | None = None,
    level: float | None = None,
) -> Mask:
    """Return a mask of the edges that one rule selects, or the default rule.

    By default the expected f-score is largest, or, without exact zeros, 95 % intervals exclude zero. ``sign`` is
    the probability of the likelier sign; ``included`` is that of inclusion, if the prior has exact zeros. Where it
    is missing, as within the query if that block has no zeros, edges are selected by 95 % intervals, unless a
    ``level`` is given.
    """
    if sum(rule is not None for rule in (probability, fdr, level)) > 1:
        raise ValueError("select by probability, by fdr or by level: only one of them")
    known = np.zeros(sign.shape, bool) if included is None else ~np.isnan(included)
    if level is not None or not known.any():
        return _by_sign(sign, probability, fdr, level)
    assert included is not None
    chosen = by_level(sign, DEFAULT_LEVEL)
    if fdr is not None:
        chosen[known] = by_fdr(included[known], fdr)
    else:
        least = least_inclusion(included[known]) if probability is None else probability
        chosen[known] = by_probability(included[known], least)
    return chosen


def _by_sign(sign: Array, probability: float | None, fdr: float | None, level: float | None) -> Mask:
    """Select by the probabilities of signs alone."""
    if probability is not None:
        _require_share("probability", probability, "the probability of an edge")
        if sign.size:
            raise ValueError("without exact zeros edges have no probability: select by level or fdr")
    if fdr is not None:
        return by_fdr(sign, fdr)
    return by_level(sign, DEFAULT_LEVEL if level is None else level)


def _require_share(name: str, value: object, what: str) -> None:
    """Refuse a value that does not lie between 0 and 1."""
    if not (isinstance(value, Real) and 0 < float(value) < 1):
        raise ValueError(f"{name}={value!r}: {what} lies between 0 and 1")


def by_probability(included: Array, least: float) -> Mask:
    """Select the edges that are present with at least this probability."""
    _require_share("probability", least, "the probability of an edge")
    return included >= least


def least_inclusion(included: Array | None, most_false: float = MAX_FALSE_DISCOVERY_RATE) -> float:
    """Return the inclusion threshold, in whole per cent, of the default rule: that of largest expected f-score.

    With p the probabilities, edges above a threshold have expected f-score
    ``2 sum_above p / (number above + sum p)``.
    The threshold is 1/2, or lower as long as the expected false discovery rate, the mean of ``1 - p`` above it, is
    at most ``most_false``: where all edges are unlikely, none is selected. Of equally good thresholds it is the
    highest.

    Examples
    --------
    >>> import numpy as np
    >>> least_inclusion(np.array([0.99, 0.98, 0.97, 0.45, 0.01]))
    0.5
    >>> least_inclusion(np.array([0.95, 0.80, 0.46, 0.40, 0.35, 0.3, 0.2]))
    0.46
    """
    p = np.empty(0) if included is None else included[~np.isnan(included)]
    cuts = np.arange(50, 0, -1) / 100
    above = [p[p >= cut] for cut in cuts]
    hits, count = np.array([part.sum() for part in above]), np.array([part.size for part in above])
    f = 2 * hits / np.maximum(count + p.sum(), 1e-300)
    allowed = (count - hits <= most_false * count) | (cuts == 0.5)
    return float(cuts[np.argmax(np.where(allowed, f, -1.0))])


def by_level(probability: Array, level: float) -> Mask:
    """Select the edges whose central credible interval at ``level`` excludes zero."""
    _require_share("level", level, "a credibility level")
    return probability > (1 + level) / 2


def by_fdr(probability: Array, fdr: float) -> Mask:
    """Select the largest set of edges, surest first, whose mean of ``1 - probability`` is at most ``fdr``.

    With probabilities of presence, that is the expected share of edges that are absent; with those of signs, the
    mean local false sign rate.

    Examples
    --------
    >>> import numpy as np
    >>> by_fdr(np.array([0.99, 0.93, 0.80, 0.55]), fdr=0.1)
    array([ True,  True,  True, False])
    """
    _require_share("fdr", fdr, "a false discovery rate")
    rate = 1.0 - probability.ravel()
    order = np.argsort(rate, kind="stable")
    mean = np.cumsum(rate[order]) / np.arange(1, rate.size + 1)
    chosen = np.zeros(rate.size, dtype=bool)
    chosen[order[mean <= fdr]] = True
    return chosen.reshape(probability.shape)
