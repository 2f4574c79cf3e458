"""Expectations with their Monte Carlo error, and the decision whether two of them agree.

The error of a mean over autocorrelated draws comes from batch means: the draws of every chain are cut into
batches so much longer than the autocorrelation that their means are as good as independent. A difference
in units of its error then follows Student's law, here with the Welch-Satterthwaite degrees of freedom, and
the effective sample size is the variance of the draws over the squared error of their mean.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import stats

Array = npt.NDArray[np.floating[Any]]

logger = logging.getLogger(__name__)  # figures of a passing run: pytest --log-cli-level=INFO

# The whole suite raises a false alarm once in 100 000 runs: every check gets an equal share of that, and every
# expectation of a check an equal share of the check's (Bonferroni). CHECKS bounds the checks of the suite.
FALSE_ALARM = 1e-5
CHECKS = 200
# Batches shorter than this many independent draws would make the errors too small.
LEAST_ESS_PER_BATCH = 8


@dataclass(frozen=True)
class Estimate:
    """An expectation: its value, standard error, degrees of freedom of that error, and effective sample size."""

    value: float
    error: float = 0.0
    df: float = np.inf
    ess: float = np.inf


def estimate(draws: Array, batches: int = 100) -> Estimate:
    """The mean of ``draws`` (chain, draw), its error by ``batches`` batch means of all chains together.

    The error is never taken to be below one draw in the effective sample: that many zeros are no proof of a
    probability of zero.
    """
    chains, length = draws.shape
    per_chain = batches // chains
    size = length // per_chain
    means = draws[:, length - size * per_chain :].reshape(chains * per_chain, size).mean(axis=1)
    error = max(means.std(ddof=1) / np.sqrt(means.size), np.ptp(draws) / draws.size, np.finfo(float).tiny)
    spread = draws.var()
    ess = float(spread / error**2) if spread > 0 else float(draws.size)
    if ess < LEAST_ESS_PER_BATCH * means.size:
        raise ValueError(f"{ess:.0f} effective draws are too few for {means.size} batches: run longer")
    return Estimate(float(draws.mean()), float(error), means.size - 1, ess)


def estimates(draws: Mapping[str, Array], batches: int = 100) -> dict[str, Estimate]:
    """The mean of everything in ``draws``, each (chain, draw)."""
    return {name: estimate(value, batches) for name, value in draws.items()}


def independent(draws: Mapping[str, Array]) -> dict[str, Estimate]:
    """The same for independent draws along one axis."""
    return {
        name: Estimate(float(x.mean()), float(x.std() / np.sqrt(x.size)), x.size - 1, x.size)
        for name, x in draws.items()
    }


def known(values: Mapping[str, float]) -> dict[str, Estimate]:
    """Expectations without error."""
    return {name: Estimate(float(value)) for name, value in values.items()}


@dataclass(frozen=True)
class Agreement:
    """Two sets of estimates, compared one by one."""

    names: list[str]
    difference: Array
    error: Array
    df: Array
    ess: Array

    @property
    def z(self) -> Array:
        """The differences in units of their errors."""
        return self.difference / self.error

    @property
    def p_values(self) -> Array:
        """Of every difference by itself."""
        return np.asarray(2 * stats.t.sf(np.abs(self.z), self.df))

    @property
    def p_value(self) -> float:
        """That of the worst disagreement, corrected for having looked at all."""
        return float(min(1.0, self.p_values.min() * len(self.names)))

    @property
    def holds(self) -> bool:
        """Whether all differences can be chance, at this check's share of the suite's false alarm rate."""
        return self.p_value > FALSE_ALARM / CHECKS

    @property
    def resolution(self) -> dict[str, float]:
        """The true difference that is found out in every second run."""
        critical = stats.t.isf(FALSE_ALARM / CHECKS / len(self.names) / 2, self.df)
        return dict(zip(self.names, critical * self.error, strict=True))

    def __str__(self) -> str:
        worst = int(np.argmin(self.p_values))
        return (
            f"{len(self.names)} expectations: max |z| = {abs(self.z[worst]):.2f} at {self.names[worst]}, "
            f"corrected p-value {self.p_value:.1e}; ESS {self.ess.min():.0f} to {self.ess.max():.0f}, "
            f"median {np.median(self.ess):.0f}"
        )


def compare(run: Mapping[str, Estimate], truth: Mapping[str, Estimate]) -> Agreement:
    """Every expectation of ``run`` against the one of the same name in ``truth``."""
    assert run.keys() == truth.keys()
    pairs = [(run[name], truth[name]) for name in run]
    return Agreement(
        names=list(run),
        difference=np.array([a.value - b.value for a, b in pairs]),
        error=np.array([np.hypot(a.error, b.error) for a, b in pairs]),
        df=np.array([_welch(a, b) for a, b in pairs]),
        ess=np.array([min(a.ess, b.ess) for a, b in pairs]),
    )


def assert_agree(run: Mapping[str, Estimate], truth: Mapping[str, Estimate], label: str = "run") -> Agreement:
    """Fail if a difference cannot be chance; the figures go to the log."""
    agreement = compare(run, truth)
    logger.info("%s: %s", label, agreement)
    assert agreement.holds, f"{label}: {agreement}"
    return agreement


def assert_disagree(run: Mapping[str, Estimate], truth: Mapping[str, Estimate], label: str = "wrong") -> None:
    """Fail if a planted error goes unnoticed."""
    agreement = compare(run, truth)
    logger.info("%s: %s", label, agreement)
    assert not agreement.holds, f"{label}, unnoticed: {agreement}"


def _welch(a: Estimate, b: Estimate) -> float:
    """Degrees of freedom of the error of a difference."""
    return (a.error**2 + b.error**2) ** 2 / (a.error**4 / a.df + b.error**4 / b.df)
