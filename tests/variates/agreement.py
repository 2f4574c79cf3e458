"""Does a sample follow a density? Shared by the tests of the laws.

Every statistical assertion here raises a false alarm with probability 3e-8; there are about three hundred, so
the rate for all of them together is 1e-5.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from scipy.integrate import cumulative_trapezoid
from scipy.stats import ks_2samp, kstest

Array = npt.NDArray[np.float64]
FALSE_ALARM = 3e-8


def p_value_of_density(
    sample: Array,
    log_density: Callable[[Array], Array],
    points: int = 20_001,
    support: tuple[float, float] = (-np.inf, np.inf),
) -> float:
    """Kolmogorov-Smirnov p-value of a sample against a normalised log density, integrated numerically.

    The grid reaches the sample's range beyond its ends, where the mass of the laws tested is negligible;
    the density must integrate to one over it.
    """
    reach = np.ptp(sample)
    grid = np.linspace(max(sample.min() - reach, support[0]), min(sample.max() + reach, support[1]), points)
    cdf = cumulative_trapezoid(np.exp(log_density(grid)), grid, initial=0.0)
    assert abs(cdf[-1] - 1.0) < 1e-4, f"the density integrates to {cdf[-1]}"
    return float(kstest(sample, lambda x: np.interp(x, grid, cdf)).pvalue)


def p_value_on_log_scale(sample: Array, log_density: Callable[[Array], Array]) -> float:
    """The same for a positive law, compared as the law of ``log x``."""
    return p_value_of_density(np.log(sample), lambda u: log_density(np.exp(u)) + u)


def p_value_of_law(sample: Array, cdf: Callable[[Array], Array]) -> float:
    """Kolmogorov-Smirnov p-value of a sample against a known distribution function."""
    return float(kstest(sample, cdf).pvalue)


def p_value_of_pair(one: Array, other: Array) -> float:
    """Two-sample Kolmogorov-Smirnov p-value."""
    return float(ks_2samp(one, other, method="asymp").pvalue)
