"""Tables in which a column with levels is all but determined by others, as a stage is by the parts it is made of.

The column is cut from a latent one that three others explain to 98 %, or it is a function of their levels with a
few exceptions; it is binary, ordinal or a count, and stands in the query, in the rest, or in both with its causes.
Latent values of such tables once left all numbers that a computer can hold.
"""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import markovblanket as mb

ROWS, EXPLAINED, EXCEPTIONS, HELD_OUT, GAPS = 150, 0.98, 0.03, 0.12, 0.02
KINDS, PLACES = ("binary", "ordinal", "count"), ("query", "rest", "both")
CAUSES = ["T", "N", "M"]
SHORT: dict[str, Any] = {"warmup": 60, "draws": 60}
LONG: dict[str, Any] = {"warmup": 500, "draws": 500}
ALARM = 1e-6
# The most that an entry of the diagonal can be: its posterior mean is below (n + 2) / b with b at least 1.
LARGEST = 2.0 * ROWS


class Determined(NamedTuple):
    """A table, which variables are the query, and the true values of the held-out cells of `stage`."""

    table: pd.DataFrame
    query: list[str]
    kind: str
    held_out: pd.Series


def cut(x: np.ndarray, kind: str) -> np.ndarray:
    """A standard normal column as levels."""
    if kind == "binary":
        return (x > 0.2).astype(float)
    if kind == "ordinal":
        return np.searchsorted([-1.0, -0.2, 0.7], x).astype(float)
    return np.asarray(stats.poisson.ppf(stats.norm.cdf(x), 2.0), dtype=float)


def stage_of(
    rng: np.random.Generator, X: np.ndarray, parts: list[np.ndarray], kind: str, latent: bool
) -> np.ndarray:
    """The determined column: cut from a latent one, or a function of the parts with a few exceptions."""
    if latent:
        slopes = np.array([1.0, 0.8, 0.6]) / np.sqrt(2.0)
        noise = np.sqrt(1 / EXPLAINED - 1) * rng.standard_normal(len(X))
        return cut((X @ slopes + noise) * np.sqrt(EXPLAINED), kind)
    total = sum(parts) + 0.0
    levels = {"binary": total > np.median(total), "ordinal": np.minimum(total, 4), "count": total}[kind] + 0.0
    swapped = rng.random(len(X)) < EXCEPTIONS
    levels[swapped] = rng.permutation(levels[swapped])
    return levels


def determined(seed: int) -> Determined:
    """A table of its own for every seed; the seeds go through kinds, places and ways of being determined."""
    rng, kind, place, latent = np.random.default_rng(seed), KINDS[seed % 3], PLACES[seed // 3 % 3], seed % 2 == 0
    X, noise = rng.standard_normal((ROWS, 3)), rng.standard_normal((ROWS, 5))
    parts = [
        cut(x, of) for x, of in zip(X.T, ("ordinal", "ordinal" if seed % 4 else "count", "binary"), strict=True)
    ]
    stage = stage_of(rng, X, parts, kind, latent)
    columns = dict(zip(CAUSES, parts, strict=True))
    columns |= {"stage": stage, "age": 0.5 * stats.zscore(stage) + noise[:, 0]}
    table = pd.DataFrame(columns | {f"protein {k}": noise[:, k] for k in range(1, 5)})
    held = rng.random(ROWS) < HELD_OUT
    truth = table.loc[held, "stage"].copy()
    table = table.mask(rng.random(table.shape) < GAPS)
    table.loc[held, "stage"] = np.nan
    query = {"query": ["stage"], "rest": ["age"], "both": ["stage", "T"]}[place]
    return Determined(table, query, kind, truth)


def fitted(given: Determined, seed: int, **schedule: int) -> mb.Posterior:
    """The posterior, with all others than the query but one outside of the block unless `stage` is alone there."""
    kinds = {"stage": given.kind}
    outside = {} if given.query == ["stage"] else {"candidates": 1}
    options: dict[str, Any] = {"chains": 2, "n_jobs": 1, "progress": False, "seed": seed, "kinds": kinds}
    return mb.estimate(given.table, given.query, **options, **outside, **schedule)


def assert_possible(given: Determined, seed: int, **schedule: int) -> mb.Posterior:
    """Finite, of a size that the posterior allows, and converged or said not to be."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        posterior = fitted(given, seed, **schedule)
    for draws in (posterior.W11, posterior.W12, posterior.partial_correlation):
        assert np.isfinite(draws.values).all()
    diagonal = np.diagonal(posterior.W11.values, axis1=-2, axis2=-1)
    assert diagonal.min() > 0.0
    assert diagonal.max() < LARGEST
    assert np.abs(posterior.partial_correlation.values).max() <= 1.0
    told = any(issubclass(warning.category, mb.ConvergenceWarning) for warning in caught)
    assert told != posterior.diagnostics().converged
    return posterior


@pytest.mark.parametrize("seed", range(0, 18, 2))
def test_a_short_fit_stays_possible(seed):
    assert_possible(determined(seed), seed, **SHORT)


# Held-out cells ---------------------------------------------------------------------------------------


def ranks(rng: np.random.Generator, chances: pd.DataFrame, truth: pd.Series) -> np.ndarray:
    """Randomised probabilities of less than the truth: uniform if the probabilities of the levels are right."""
    levels, p = chances.columns.to_numpy(dtype=float), chances.to_numpy()
    below = (p * (levels < truth.to_numpy()[:, None])).sum(axis=1)
    at = (p * (levels == truth.to_numpy()[:, None])).sum(axis=1)
    return np.asarray(below + rng.random(len(p)) * at)


def of_another_cell(chances: pd.DataFrame) -> pd.DataFrame:
    """Every cell with the probabilities of the next one: right for the whole column, and wrong for the cell."""
    return pd.DataFrame(np.roll(chances.to_numpy(), 1, axis=0), columns=chances.columns)


def share(found: np.ndarray) -> float:
    """Share of cells that are in the central interval of 80 %."""
    return float(np.mean(np.abs(found - 0.5) <= 0.4))


def p_of_coverage(found: np.ndarray) -> float:
    """How likely a share so far from 80 % is, if the probabilities are right."""
    return float(stats.binomtest(round(share(found) * len(found)), len(found), 0.8).pvalue)


@pytest.mark.slow
def test_twenty_tables_stay_possible_and_cover_what_was_held_out():
    rng, found, wrong = np.random.default_rng(0), [], []
    for seed in range(20):
        given = determined(seed)
        posterior = assert_possible(given, seed, **LONG)
        imputed = posterior.imputed(draws=200, seed=seed)
        rows, chances = imputed.gaps["stage"], imputed.probabilities["stage"]
        held = np.isin(rows, given.held_out.index)
        chances, truth = chances[held], given.held_out.loc[rows[held]]
        found.append(ranks(rng, chances, truth))
        wrong.append(ranks(rng, of_another_cell(chances), truth))
    right, planted = (np.concatenate(parts) for parts in (found, wrong))
    assert p_of_coverage(right) > ALARM
    assert p_of_coverage(planted) < ALARM
