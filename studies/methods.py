"""What `fscore` compares: every method orders the pairs that touch the query, and selects edges by some rules.

A method is a function of (known data, seed) that returns an :class:`Answer`. To compare another one, add it to
`METHODS`.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import markovblanket as mb
from common import HERE, quietly
from designs import AbsentError, Known, require_r
from markovblanket.baselines import graphical_lasso

GAMMAS = (5, 10, 20, 50, 100, 200, 500)
PAPERS = {"chains": 1, "warmup": 300, "draws": 700}
RULES: dict[str, dict[str, float]] = {"default": {}, "probability90": {"probability": 0.9}, "fdr10": {"fdr": 0.1}}
INTERVALS: dict[str, dict[str, float]] = {"default": {}, "level85": {"level": 0.85}, "fdr10": {"fdr": 0.1}}


@dataclass(frozen=True)
class Answer:
    """For every pair of `Known.pairs`, in that order, what a method says of it.

    ``score`` orders the pairs, the surest first if sorted downwards; ``probabilities`` tells whether it is the
    probability of an edge. ``chosen`` has a mask for each rule. ``sign`` is that of the partial correlation, 0 if
    the method does not tell, or not of pairs that no rule selects. ``seconds`` are CPU seconds.
    """

    score: np.ndarray
    probabilities: bool
    chosen: Mapping[str, np.ndarray]
    sign: np.ndarray
    seconds: float
    versions: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Method:
    """How it is called in figures, the family it is coloured by, how it is run, and the rule that counts."""

    label: str
    family: str
    run: Callable[[Known, int], Answer]
    rule: str = "default"


# ------------------------------------------------------------------------------------------------------- ours


def sampled(fit: Callable[..., mb.Posterior], known: Known, seed: int) -> Answer:
    """A posterior's probabilities and signs, and what every rule selects."""
    compiled()
    begin = time.process_time()
    posterior = quietly(fit, known, seed=seed, n_jobs=1)
    posterior.edges()
    seconds = time.process_time() - begin
    names = list(known.table)
    matrices = (posterior.inclusion, posterior.sign_probability)
    probability, likelier = (matrix.loc[known.query, names].to_numpy()[known.ends] for matrix in matrices)
    zeros = np.isfinite(probability)
    # Where there are no exact zeros: how much likelier one sign is than the other.
    score = np.where(zeros, probability, 2 * likelier - 1)
    chosen, sign = {}, np.zeros(len(score), dtype=int)
    for name, rule in (RULES if zeros.any() else INTERVALS).items():
        edges = posterior.edges(**rule)
        chosen[name] = selected(known, edges)
        sign[places(known, edges)] = np.sign(edges["partial_correlation"])
    return Answer(score, bool(zeros.all()), chosen, sign, seconds)


@cache
def compiled() -> None:
    """A small fit, so that no other has to load the compiled code within its time."""
    small = mb.simulate(rows=60, query=2, rest=8, density=0.3, seed=0)
    quietly(mb.estimate, small.table, small.query, margins="gaussian", chains=1, warmup=20, draws=20, n_jobs=1)


def places(known: Known, edges: pd.DataFrame) -> np.ndarray:
    """Where the edges stand among the pairs, whichever end is named first."""
    ends = zip(known.pairs["query"], known.pairs["variable"], strict=True)
    place = {frozenset(pair): k for k, pair in enumerate(ends)}
    found = [place[frozenset(pair)] for pair in zip(edges["query"], edges["variable"], strict=True)]
    if len(set(found)) < len(found):
        raise ValueError("a pair is listed twice")
    return np.array(found, dtype=int)


def in_order(known: Known, every: pd.DataFrame) -> pd.DataFrame:
    """All pairs, in the order of the known ones."""
    ordered = every.set_axis(places(known, every))
    if len(ordered) != len(known.pairs):
        raise ValueError(f"{len(ordered)} of {len(known.pairs)} pairs are listed")
    return ordered.sort_index()


def selected(known: Known, edges: pd.DataFrame) -> np.ndarray:
    """As a mask."""
    chosen = np.zeros(len(known.pairs), dtype=bool)
    chosen[places(known, edges)] = True
    return chosen


def default(known: Known, **options: Any) -> mb.Posterior:
    """As `estimate` does it, told only that the columns are Gaussian."""
    return mb.estimate(known.table, known.query, margins="gaussian", **options)


def one_chain(known: Known, **options: Any) -> mb.Posterior:
    """A single chain of 500 draws after the default's warm-up; the contestants in R run one chain, too."""
    return default(known, chains=1, draws=500, **options)


def blanket(known: Known, **options: Any) -> mb.Posterior:
    """The paper's block, of the columns as they are, standardised, by the paper's schedule."""
    return mb.estimate(known.table, known.query, margins="gaussian", **PAPERS, **options)


def untold(known: Known, **options: Any) -> mb.Posterior:
    """Left to find out by itself that columns are continuous: they enter as normal scores."""
    return mb.estimate(known.table, known.query, **options)


def unscaled(known: Known, **options: Any) -> mb.Posterior:
    """The paper's block, of the scatter of the columns in their own units."""
    X, names = known.table.to_numpy(), list(known.table)
    return mb.estimate(scatter=X.T @ X, n=len(X), names=names, query=known.query, **PAPERS, **options)


def lasso(known: Known, **options: Any) -> mb.Posterior:
    """The Bayesian graphical lasso, standardised columns, the paper's schedule."""
    return graphical_lasso(known.table, known.query, **PAPERS, **options)


# ------------------------------------------------------------------------------------------------------ others


def cross_validated(known: Known, seed: int) -> Answer:
    """scikit-learn's graphical lasso, its penalty by cross-validation: what is not zero, standardised columns."""
    try:
        from sklearn import covariance, exceptions
    except ImportError as error:
        raise AbsentError("scikit-learn is not installed") from error
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", exceptions.ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        W = covariance.GraphicalLassoCV().fit(_standardised(known.table).to_numpy()).precision_
    seconds = time.process_time() - begin
    pairs = Known(known.table, known.query, W).pairs
    size = pairs["partial_correlation"].to_numpy()
    return Answer(np.abs(size), False, {"default": size != 0}, np.sign(size).astype(int), seconds)


def in_r(method: str, known: Known, seed: int) -> Answer:
    """An estimator of `networks.R`, standardised columns; where it has probabilities, also by our other rules."""
    package = "BDgraph" if method.startswith("bdgraph") else "huge"
    require_r(package)
    with tempfile.TemporaryDirectory() as folder:
        table, out = Path(folder, "table.csv"), Path(folder, "pairs.csv")
        _standardised(known.table).to_csv(table, index=False)
        command = ["Rscript", HERE / "networks.R", table, len(known.query), method, seed, out]
        run = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)
        pairs = pd.read_csv(out)
    names = np.array(known.table.columns, dtype=object)
    pairs = in_order(known, pairs.assign(query=names[pairs["i"] - 1], variable=names[pairs["j"] - 1]))
    score, probabilities = pairs["score"].to_numpy(dtype=float), package == "BDgraph"
    chosen = {"default": pairs["chosen"].to_numpy() == 1}
    if probabilities:
        chosen |= {"probability90": score >= 0.9, "fdr10": within_rate(score, 0.1)}
    seconds, version = run.stdout.strip().split("\n")[-2:]
    versions = dict([version.split(" ")])
    return Answer(score, probabilities, chosen, pairs["sign"].to_numpy(), float(seconds), versions)


def within_rate(probability: np.ndarray, rate: float) -> np.ndarray:
    """The largest set, surest first, in which the mean of 1 - probability is at most the rate."""
    order = np.argsort(-probability, kind="stable")
    expected = np.cumsum(1 - probability[order]) / np.arange(1, len(order) + 1)
    chosen = np.zeros(len(order), dtype=bool)
    chosen[order[expected <= rate]] = True
    return chosen


def _standardised(table: pd.DataFrame) -> pd.DataFrame:
    """Columns with mean 0 and mean square 1, as ours takes them."""
    return (table - table.mean()) / table.std(ddof=0)


def _ours(fit: Callable[..., mb.Posterior], **options: Any) -> Callable[[Known, int], Answer]:
    return partial(sampled, partial(fit, **options))


METHODS: dict[str, Method] = {
    "spike-slab": Method("spike and slab (default)", "ours", _ours(default)),
    "spike-slab-chain": Method("spike and slab, one chain of 500 draws", "ours", _ours(one_chain)),
    "spike-slab-one": Method("spike and slab, the paper's block", "ours", _ours(blanket, candidates=0)),
    "spike-slab-scores": Method("spike and slab, normal scores", "ours", _ours(untold)),
    "horseshoe": Method("horseshoe", "ours", _ours(blanket, prior="horseshoe")),
    "laplace": Method("Laplace, γ learned", "ours", _ours(blanket, prior="laplace")),
    **{
        f"laplace-{gamma}": Method(
            f"Laplace, γ = {gamma}", "fixed", _ours(blanket, prior=mb.Laplace(gamma=gamma)), "level85"
        )
        for gamma in GAMMAS
    },
    "laplace-200-unscaled": Method(
        "Laplace, γ = 200, own units", "fixed", _ours(unscaled, prior=mb.Laplace(gamma=200)), "level85"
    ),
    **{
        f"bgl-{lam}": Method(f"BGL, λ = {lam}", "bgl", _ours(lasso, lam=float(lam)), "level85")
        for lam in (50, 200)
    },
    "bgl": Method("BGL, λ learned", "bgl", _ours(lasso), "level85"),
    "bdgraph": Method("BDgraph, bdmcmc", "peers", partial(in_r, "bdgraph")),
    "bdgraph-mpl": Method("BDgraph, mpl", "peers", partial(in_r, "bdgraph-mpl")),
    "huge-mb": Method("huge, mb + ric", "peers", partial(in_r, "huge-mb")),
    "huge-glasso": Method("huge, glasso + ebic", "peers", partial(in_r, "huge-glasso")),
    "glasso-cv": Method("GraphicalLassoCV", "peers", cross_validated),
}
