"""Posterior predictive checks: could the model have produced rows like these?

With W drawn, the residual of a query variable given the rest, ``(x_i - fit_i) / sqrt(u_ii)``, is standard normal
in every row. Each check measures one way of not being so, in the rows as they are (latent columns as drawn) and in
rows that the model makes for the same draw (Gelman, Meng and Stern 1996).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pandas as pd

from markovblanket.contracts import Array
from markovblanket.model.copula.transforms import Steps
from markovblanket.posterior.observed import Sample
from markovblanket.posterior.prediction import Fit, coefficients

Statistic = Callable[[Array, Array], float]


def correlation(a: Array, b: Array) -> float:
    """Of two columns; 0 where one of them is constant."""
    a, b = a - a.mean(), b - b.mean()
    size = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / size) if size > 0 else 0.0


CHECKS: dict[str, Statistic] = {
    "spread": lambda z, fit: float(np.mean(z**2)),
    "skewness": lambda z, fit: float(np.mean(z**3)),
    "tails": lambda z, fit: float(np.mean(z**4)),
    "curvature": lambda z, fit: correlation(z, (fit - fit.mean()) ** 2),
    "uneven spread": lambda z, fit: correlation(np.abs(z), fit),
}


def predictive_checks(rng: np.random.Generator, fit: Fit, draws: int, level: float) -> pd.DataFrame:
    """A row per query variable and check."""
    rows = [row for sample in fit.observed.samples(draws) for row in at_sample(rng, fit, sample)]
    frame = pd.DataFrame(rows, columns=["query", "check", "rows", "model"])
    grouped = frame.groupby(["query", "check"], sort=False)
    tail = (1 - level) / 2
    made = grouped["model"].quantile(np.array([tail, 1 - tail])).unstack()
    summary = pd.DataFrame({"observed": grouped["rows"].mean()})
    summary["lower"], summary["upper"] = made.iloc[:, 0], made.iloc[:, 1]
    larger = (frame["model"] > frame["rows"]).groupby([frame["query"], frame["check"]], sort=False).mean()
    return summary.assign(probability=larger).reset_index()


def at_sample(rng: np.random.Generator, fit: Fit, sample: Sample) -> Iterator[tuple[object, str, float, float]]:
    """Query variable, check, and its value for the rows as they are and for rows of the model's making."""
    observed = fit.observed
    W11, W12 = fit.matrices(sample)
    columns, sd = observed.columns_at(sample), np.sqrt(np.diag(np.linalg.inv(W11)))
    means = columns.X2 @ coefficients(W11, W12).T
    scales = observed.scales(rng, sample, observed.table.query)
    for i, (name, scale) in enumerate(zip(observed.table.query, scales, strict=True)):
        z, noise, mean = (columns.X1[:, i] - means[:, i]) / sd[i], rng.standard_normal(len(means)), means[:, i]
        for check, statistic in CHECKS.items():
            yield name, check, statistic(z, mean), statistic(noise, mean)
        if isinstance(scale, Steps):
            codes = observed.columns[name].values
            made = scale.data(mean + sd[i] * noise)
            yield name, "surprise", surprise(scale, codes, mean, sd[i]), surprise(scale, made, mean, sd[i])


def surprise(scale: Steps, codes: Array, mean: Array, sd: float) -> float:
    """``-mean log P(level)`` of the levels that rows have, missing ones left out."""
    seen = ~np.isnan(codes)
    chances = scale.probabilities(mean[seen], sd)
    return float(-np.mean(np.log(np.maximum(chances[np.arange(seen.sum()), codes[seen].astype(int)], 1e-300))))
