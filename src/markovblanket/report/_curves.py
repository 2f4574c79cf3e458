"""Density, trace and autocorrelation of the surest edges, small enough to be part of a page.

All are about partial correlations. A point of a curve is one byte, in base64, which is finer than a screen shows.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import gaussian_kde

from markovblanket.contracts import Array
from markovblanket.plots.chains import MOST_LAGS, autocorrelations
from markovblanket.posterior.edges import draws_of_edge
from markovblanket.posterior.posterior import Posterior

MOST_EDGES_WITH_CURVES, MOST_TRACE_POINTS, DENSITY_POINTS = 100, 500, 90


def curves(posterior: Posterior, pairs: Sequence[tuple[Any, Any]]) -> dict[str, Any]:
    """The curves of the first pairs whose draws were kept, as many as a page holds, by number of the edge."""
    found: dict[str, Any] = {}
    for k, (query, variable) in enumerate(pairs):
        draws = kept(posterior, query, variable)
        if draws is not None:
            found[str(k)] = curves_of(draws)
        if len(found) == MOST_EDGES_WITH_CURVES:
            break
    return found


def kept(posterior: Posterior, query: Any, variable: Any) -> Array | None:
    """The draws (chain, draw) of the partial correlation of one edge; None if they were not kept."""
    try:
        draws = draws_of_edge(posterior.draws, query, variable, "partial_correlation")
        return np.asarray(draws.values, dtype=float)
    except ValueError:
        return None


def curves_of(draws: Array) -> dict[str, Any]:
    """The curves that the page draws when an edge is chosen, from its draws (chain, draw)."""
    every = -(-draws.shape[1] // MOST_TRACE_POINTS)
    low, high = float(draws.min()), float(draws.max())
    lags = min(MOST_LAGS, draws.shape[1])
    return {
        "density": density(draws),
        "trace": [packed(chain[::every], low, high) for chain in draws],
        "range": [significant(low), significant(high)],
        "every": every,
        "draws": draws.shape[1],
        "autocorrelation": [packed(autocorrelations(chain, lags), -1.0, 1.0) for chain in draws],
    }


def density(draws: Array) -> dict[str, Any]:
    """The density of the draws other than zero, on an even grid, highest point 1; and the fraction of zeros."""
    rest, zero = draws[draws != 0], float(np.mean(draws == 0))
    known: dict[str, Any] = {"zero": round(zero, 4), "from": 0.0, "to": 0.0, "curve": ""}
    if len(rest) < 3 or np.ptp(rest) == 0:
        return known
    pad = 0.05 * float(np.ptp(rest))
    x = np.linspace(rest.min() - pad, rest.max() + pad, DENSITY_POINTS)
    y = gaussian_kde(rest)(x)
    return known | {
        "from": significant(float(x[0])),
        "to": significant(float(x[-1])),
        "curve": packed(y, 0.0, float(y.max())),
    }


def packed(values: Array, low: float, high: float) -> str:
    """Values as bytes in base64, 0 for ``low`` and 255 for ``high``."""
    scaled = (np.asarray(values) - low) / max(high - low, np.finfo(float).tiny)
    return base64.b64encode(np.rint(255 * np.clip(scaled, 0, 1)).astype(np.uint8).tobytes()).decode()


def significant(value: float, digits: int = 5) -> float | None:
    """A number rounded to so many significant digits; None if it is not finite."""
    return float(f"{value:.{digits}g}") if np.isfinite(value) else None
