"""What `fscore` compares: every method makes signed edges of simulated Gaussian data, by one rule or several.

A method is a function of (simulated data, schedule, seed) that returns an :class:`Answer`. To compare another one,
add it to `METHODS`.
"""

from __future__ import annotations

import shutil
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
from markovblanket.baselines import graphical_lasso

GAMMAS = (5, 10, 20, 50, 100, 200, 500)
RULES: dict[str, dict[str, float]] = {"default": {}, "level85": {"level": 0.85}, "fdr10": {"fdr": 0.1}}
HALF = {"half": {"inclusion": 0.5}}


class AbsentError(Exception):
    """What a method needs is not installed."""


@dataclass(frozen=True)
class Answer:
    """Signed weights by rule, query by variable, 0 where there is no edge; CPU seconds; versions."""

    weights: Mapping[str, pd.DataFrame]
    seconds: float
    versions: Mapping[str, str] = field(default_factory=dict)

    def edges(self, rule: str) -> pd.DataFrame:
        """A row for each edge: query, variable, weight."""
        weight = self.weights[rule].rename_axis(index="query", columns="variable").stack().rename("weight")
        return weight[weight != 0].reset_index()


@dataclass(frozen=True)
class Method:
    """How it is called in figures, the family it is coloured by, how it is run, and the rule that counts."""

    label: str
    family: str
    run: Callable[..., Answer]
    rule: str = "default"


def sampled(fit: Callable[..., mb.Posterior], data: Any, schedule: Mapping[str, int], seed: int) -> Answer:
    """One chain, and what every rule selects of its posterior."""
    begin = time.process_time()
    posterior = quietly(fit, data, chains=1, seed=seed, **schedule)
    mean = posterior.edges(all=True).pivot(index="query", columns="variable", values="weight")
    rules = RULES if posterior.inclusion.isna().any(axis=None) else RULES | HALF
    weights = {name: mean.where(posterior.selected(**rule), 0.0) for name, rule in rules.items()}
    return Answer(weights, time.process_time() - begin)


def blanket(data: Any, **options: Any) -> mb.Posterior:
    """Ours, of the columns as they are, standardised."""
    return mb.estimate(data.table, data.query, margins="gaussian", keep="summary", **options)


def one_end(data: Any, **options: Any) -> mb.Posterior:
    """Ours, without the second look that it takes by default."""
    return blanket(data, second_look=False, **options)


def untold(data: Any, **options: Any) -> mb.Posterior:
    """Ours, left to find out by itself that columns are continuous: they enter as normal scores."""
    return mb.estimate(data.table, data.query, keep="summary", **options)


def unscaled(data: Any, **options: Any) -> mb.Posterior:
    """Ours, of the scatter of the columns in their own units."""
    X, names = data.table.to_numpy(), list(data.table)
    return mb.estimate(scatter=X.T @ X, n=len(X), names=names, query=data.query, keep="summary", **options)


def network(data: Any, **options: Any) -> mb.Posterior:
    """The Bayesian graphical lasso, standardised columns."""
    return graphical_lasso(data.table, data.query, **options)


def cross_validated(data: Any, schedule: Mapping[str, int], seed: int) -> Answer:
    """scikit-learn's graphical lasso, its penalty by cross-validation: what is not zero, standardised columns."""
    try:
        from sklearn import covariance, exceptions
    except ImportError as error:
        raise AbsentError("scikit-learn is not installed") from error
    begin = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", exceptions.ConvergenceWarning)
        warnings.simplefilter("ignore", RuntimeWarning)
        W = covariance.GraphicalLassoCV().fit(_standardised(data.table).to_numpy()).precision_
    return Answer({"default": _block(data, W[: len(data.query), len(data.query) :])}, time.process_time() - begin)


def in_r(method: str, data: Any, schedule: Mapping[str, int], seed: int) -> Answer:
    """An estimator of `networks.R`, with its own defaults, standardised columns."""
    if not _r_has("BDgraph" if method.startswith("bdgraph") else "huge"):
        raise AbsentError(f"Rscript with what {method} needs is not installed")
    with tempfile.TemporaryDirectory() as folder:
        table, block = Path(folder, "table.csv"), Path(folder, "block.csv")
        _standardised(data.table).to_csv(table, index=False)
        command = ["Rscript", HERE / "networks.R", table, len(data.query), method, seed, block]
        run = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True)
        weights = {"default": _block(data, np.loadtxt(block, delimiter=",", ndmin=2))}
    seconds, version = run.stdout.strip().split("\n")[-2:]
    return Answer(weights, float(seconds), dict([version.split(" ")]))


def _standardised(table: pd.DataFrame) -> pd.DataFrame:
    """Columns with mean 0 and mean square 1, as ours takes them."""
    return (table - table.mean()) / table.std(ddof=0)


@cache
def _r_has(package: str) -> bool:
    """Whether R and a package of it are there."""
    if shutil.which("Rscript") is None:
        return False
    return subprocess.run(["Rscript", "-e", f"library({package})"], capture_output=True).returncode == 0


def _block(data: Any, W12: Any) -> pd.DataFrame:
    """With names."""
    return pd.DataFrame(W12, index=data.query, columns=[name for name in data.table if name not in data.query])


def _ours(prior: Any, fit: Callable[..., mb.Posterior] = blanket) -> Callable[..., Answer]:
    return partial(sampled, partial(fit, prior=prior))


METHODS: dict[str, Method] = {
    "spike-slab": Method("spike and slab (default)", "ours", _ours("spike-slab")),
    "spike-slab-one": Method("spike and slab, one end", "ours", _ours("spike-slab", one_end)),
    "spike-slab-scores": Method("spike and slab, normal scores", "ours", _ours("spike-slab", untold)),
    "horseshoe": Method("horseshoe", "ours", _ours("horseshoe")),
    "laplace": Method("Laplace, γ learned", "ours", _ours("laplace")),
    **{
        f"laplace-{gamma}": Method(f"Laplace, γ = {gamma}", "fixed", _ours(mb.Laplace(gamma=gamma)), "level85")
        for gamma in GAMMAS
    },
    "laplace-200-unscaled": Method(
        "Laplace, γ = 200, own units", "fixed", _ours(mb.Laplace(gamma=200), unscaled), "level85"
    ),
    **{
        f"bgl-{lam}": Method(
            f"BGL, λ = {lam}", "bgl", partial(sampled, partial(network, lam=float(lam))), "level85"
        )
        for lam in (50, 200)
    },
    "bgl": Method("BGL, λ learned", "bgl", partial(sampled, network), "level85"),
    "bdgraph": Method("BDgraph, bdmcmc", "peers", partial(in_r, "bdgraph")),
    "bdgraph-mpl": Method("BDgraph, mpl", "peers", partial(in_r, "bdgraph-mpl")),
    "huge-mb": Method("huge, mb + ric", "peers", partial(in_r, "huge-mb")),
    "huge-glasso": Method("huge, glasso + ebic", "peers", partial(in_r, "huge-glasso")),
    "glasso-cv": Method("GraphicalLassoCV", "peers", cross_validated),
}
