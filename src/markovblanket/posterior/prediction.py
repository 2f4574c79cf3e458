"""Posterior prediction of the query variables given the rest, and posterior predictive checks.

In each draw of ``W``, rows are independent with ``X1 | X2 ~ N(-X2 W21 U, U)``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from markovblanket.contracts import Array
from markovblanket.model.copula.new_rows import SWEEPS_OF_FIRST_DRAW, SWEEPS_PER_DRAW, Completion, Rows, of_query
from markovblanket.model.copula.transforms import Steps
from markovblanket.posterior.observed import Observed, Sample
from markovblanket.posterior.summaries import describe, describe_levels, level_numbers
from markovblanket.tables.columns import Column
from markovblanket.tables.names import Name
from markovblanket.tables.recode import read_like
from markovblanket.tables.table import row_names

# A statistic of residuals ``z``, in units of their sd, and fitted means.
Statistic = Callable[[Array, Array], float]
# Statistics by which rows are compared with rows drawn from the model.
CHECKS: dict[str, Statistic] = {
    "spread": lambda z, fit: float(np.mean(z**2)),
    "skewness": lambda z, fit: float(np.mean(z**3)),
    "tails": lambda z, fit: float(np.mean(z**4)),
    "curvature": lambda z, fit: _correlation(z, (fit - fit.mean()) ** 2),
    "uneven spread": lambda z, fit: _correlation(np.abs(z), fit),
}


@dataclass(frozen=True, eq=False)
class Prediction:
    """Predictive draws of the query variables, on the scale of the data.

    Attributes
    ----------
    draws : dict of xarray.DataArray
        The draws of each query variable, (sample, row), in its own type.
    mean : pandas.DataFrame
        The predictive mean, rows of the table by query variables; missing if the levels are not numbers.
    probabilities : dict of pandas.DataFrame
        The probabilities of the levels of each query variable that has some: rows of the table by levels.
    """

    draws: dict[Any, xr.DataArray]
    mean: pd.DataFrame
    probabilities: dict[Any, pd.DataFrame]
    columns: tuple[Column, ...]
    codes: tuple[Array, ...]

    def __repr__(self) -> str:
        rows, query = self.mean.shape
        return f"<Prediction: {query} query variables in {rows} rows; see summary(), mean, probabilities, draws>"

    def summary(self, level: float = 0.9) -> pd.DataFrame:
        """Return mean, sd and central predictive interval at ``level`` of each cell, and its likeliest level."""
        parts = []
        for column, codes in zip(self.columns, self.codes, strict=True):
            table = self.probabilities.get(column.name)
            part = describe(codes, level) if table is None else describe_levels(column, table.to_numpy(), level)
            parts.append(
                part.assign(mean=self.mean[column.name].to_numpy(), query=column.name, row=self.mean.index)
            )
        by_row = np.arange(self.mean.size).reshape(self.mean.shape[::-1]).T.ravel()
        return pd.concat(parts).set_index(["row", "query"]).iloc[by_row]


def coefficients(W11: Array, W12: Array) -> Array:
    """Return ``-U W12``, the coefficients of the regression of the query on the rest, for each draw."""
    return -np.linalg.solve(W11, W12)


def _residual_noise(rng: np.random.Generator, W11: Array, rows: int) -> Array:
    """Draw rows of ``N(0, U)``: with ``W11 = L L'``, ``U = L^-T L^-1`` is the covariance of rows ``z' L^-1``."""
    noise = rng.standard_normal((rows, len(W11)))
    return np.linalg.solve(np.linalg.cholesky(W11).T, noise.T).T


@dataclass(frozen=True, eq=False)
class Fit:
    """What prediction needs of a posterior: draws of the matrices, (chain, draw, ...), and the table.

    ``W12`` may be on disk and is read draw by draw. ``coefficients``, the posterior mean of ``-U W12``, are given
    if all columns are just standardised.
    """

    W11: Array
    W12: Array | xr.DataArray
    observed: Observed
    coefficients: Array | None = None

    def predict_rows(self, rng: np.random.Generator, new: Any, draws: int) -> Prediction:
        """Predict the query variables in the rows of a table; means use the coefficients if these are given."""
        values = read_like(new, self.observed.table.columns[self.observed.p :])
        if np.isnan(values).any():
            self.observed.require_rows("prediction of rows with missing cells")
        prediction = self.predict(rng, values, draws, row_names(new, len(values)))
        if self.coefficients is not None:
            complete = ~np.isnan(values).any(axis=1)
            prediction.mean[complete] = self.regression(values[complete], self.coefficients)
        return prediction

    def matrices(self, sample: Sample) -> tuple[Array, Array]:
        """Return ``W11`` and ``W12`` in the draw of a sample."""
        chain, draw = self.observed.draw_of(sample)
        return self.W11[chain, draw], np.asarray(self.W12[chain, draw], dtype=float)

    def predict(self, rng: np.random.Generator, values: Array, draws: int, rows: Any) -> Prediction:
        """Predict the query variables in new rows whose other cells are ``values``, coded like the table."""
        columns = self.observed.table.columns[: self.observed.p]
        codes: list[list[Array]] = [[] for _ in columns]
        chances: list[list[Array]] = [[] for _ in columns]
        samples = self.observed.samples(draws)
        for sample, X2 in zip(samples, self._rest(rng, values, samples), strict=True):
            W11, W12 = self.matrices(sample)
            mean = self.observed.means_at(sample)[0] + X2 @ coefficients(W11, W12).T
            X1, sd = mean + _residual_noise(rng, W11, len(X2)), np.sqrt(np.diag(np.linalg.inv(W11)))
            scales = self.observed.scales(rng, sample, self.observed.table.query)
            for i, scale in enumerate(scales):
                codes[i].append(scale.data(X1[:, i]))
                if isinstance(scale, Steps):
                    chances[i].append(scale.probabilities(mean[:, i], sd[i]))
        average = {c.name: np.mean(part, axis=0) for c, part in zip(columns, chances, strict=True) if part}
        return _assemble(columns, [np.array(part) for part in codes], average, rows)

    def regression(self, values: Array, beta: Array) -> Array:
        """Return predictive means on the scale of the data, for standardised columns and complete rows."""
        X2, _ = self._known(values)
        scales = (self.observed.fixed_scales[name] for name in self.observed.table.query)
        return np.column_stack([scale.data(x) for scale, x in zip(scales, beta @ X2.T, strict=True)])

    def _rest(self, rng: np.random.Generator, values: Array, samples: Sequence[Sample]) -> Iterator[Array]:
        """Yield latent cells of the rest of the new rows for each sample, starting from the previous ones.

        They are less the means of their columns in that sample.
        """
        observed, names = self.observed, self.observed.table.rest
        drawn = [j for j, name in enumerate(names) if name not in observed.fixed_scales]
        moving = np.isin(np.arange(len(names)), list(observed.moving_rest)) | np.isnan(values).any(axis=0)
        K, J, X2 = np.flatnonzero(~moving), np.flatnonzero(moving), observed.start.X2
        prior = observed.rest_prior
        completion = Completion(X2[:, K], K, J, prior.degrees + len(X2) - 1, prior.ridge)
        lower, upper = self._known(values)
        x: Array = np.zeros(values.shape)
        for k, sample in enumerate(samples):
            scales = observed.scales(rng, sample, [names[j] for j in drawn])
            for j, scale in zip(drawn, scales, strict=True):
                lower[:, j], upper[:, j] = scale.bounds(values[:, j])
            means, sweeps = observed.means_at(sample)[1], SWEEPS_PER_DRAW if k else SWEEPS_OF_FIRST_DRAW
            rows = Rows.between(lower - means, upper - means, x)
            x = completion.draw(rng, rows, observed.rest_at(sample, J) - means[J], sweeps)
            yield x

    def _known(self, values: Array) -> tuple[Array, Array]:
        """Return bounds of the latent cells of columns whose scale is the same in every draw; others are NaN."""
        lower, upper = np.full(values.shape, np.nan), np.full(values.shape, np.nan)
        for j, name in enumerate(self.observed.table.rest):
            if name in self.observed.fixed_scales:
                lower[:, j], upper[:, j] = self.observed.fixed_scales[name].bounds(values[:, j])
        return lower, upper


def _assemble(
    columns: Sequence[Column], codes: Sequence[Array], chances: Mapping[Name, Array], rows: Any
) -> Prediction:
    """Return the prediction: draws in the types of the columns, their means, and probabilities of levels."""
    draws, mean, probabilities = {}, {}, {}
    for column, drawn in zip(columns, codes, strict=True):
        draws[column.name] = xr.DataArray(column.restore(drawn), dims=("sample", "row"), coords={"row": rows})
        mean[column.name] = drawn.mean(axis=0)
        if column.levels:
            probabilities[column.name] = pd.DataFrame(
                chances[column.name], index=rows, columns=list(column.levels)
            )
            mean[column.name] = chances[column.name] @ level_numbers(column)
    return Prediction(
        draws,
        pd.DataFrame(mean, index=rows),
        probabilities,
        tuple(columns),
        tuple(codes),
    )


# Predictive checks ------------------------------------------------------------------------------------


def _correlation(a: Array, b: Array) -> float:
    """Return the correlation of two columns; 0 if one of them is constant."""
    a, b = a - a.mean(), b - b.mean()
    size = np.sqrt((a @ a) * (b @ b))
    return float(a @ b / size) if size > 0 else 0.0


def predictive_checks(rng: np.random.Generator, fit: Fit, draws: int, level: float) -> pd.DataFrame:
    """Return predictive intervals and tail probabilities, a row per query variable and check."""
    rows = [row for sample in fit.observed.samples(draws) for row in _checks_at_sample(rng, fit, sample)]
    frame = pd.DataFrame(rows, columns=["query", "check", "rows", "model"])
    grouped = frame.groupby(["query", "check"], sort=False)
    tail = (1 - level) / 2
    made = grouped["model"].quantile(np.array([tail, 1 - tail])).unstack()
    summary = pd.DataFrame({"observed": grouped["rows"].mean()})
    summary["lower"], summary["upper"] = made.iloc[:, 0], made.iloc[:, 1]
    larger = (frame["model"] > frame["rows"]).groupby([frame["query"], frame["check"]], sort=False).mean()
    return summary.assign(probability=larger).reset_index()


def _checks_at_sample(
    rng: np.random.Generator, fit: Fit, sample: Sample
) -> Iterator[tuple[object, str, float, float]]:
    """Yield query variable, check, its value in the observed rows, and that in rows drawn from the model."""
    observed = fit.observed
    W11, W12 = fit.matrices(sample)
    columns = observed.columns_at(sample)
    means, sd = of_query(W11, W12, columns)  # if there are no other variables: given all of the query
    if W12.shape[1]:
        others = columns.X2 - columns.X2.mean(axis=0)
        means = columns.X1.mean(axis=0) + others @ coefficients(W11, W12).T
        sd = np.sqrt(np.diag(np.linalg.inv(W11)))
    scales = observed.scales(rng, sample, observed.table.query)
    for i, (name, scale) in enumerate(zip(observed.table.query, scales, strict=True)):
        z, noise, mean = (columns.X1[:, i] - means[:, i]) / sd[i], rng.standard_normal(len(means)), means[:, i]
        for check, statistic in CHECKS.items():
            yield name, check, statistic(z, mean), statistic(noise, mean)
        if isinstance(scale, Steps):
            codes = observed.columns[name].values
            made = scale.data(mean + sd[i] * noise)
            yield name, "surprise", _surprise(scale, codes, mean, sd[i]), _surprise(scale, made, mean, sd[i])


def _surprise(scale: Steps, codes: Array, mean: Array, sd: float) -> float:
    """Return ``-mean log P(level)`` of the levels of rows; missing cells are left out."""
    seen = ~np.isnan(codes)
    chances = scale.probabilities(mean[seen], sd)
    return float(-np.mean(np.log(np.maximum(chances[np.arange(seen.sum()), codes[seen].astype(int)], 1e-300))))
