"""The query variables given the rest: ``X1 | X2 ~ N(-X2 W21 U, U)``, row by row, with W drawn."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from markovblanket.contracts import Array
from markovblanket.model.copula.new_rows import SWEEPS_OF_FIRST_DRAW, SWEEPS_PER_DRAW, Completion, Rows
from markovblanket.model.copula.transforms import Steps
from markovblanket.model.scatter import rest_degrees, rest_ridge
from markovblanket.posterior.observed import Observed, Sample
from markovblanket.posterior.summaries import describe, describe_levels, level_numbers
from markovblanket.tables.columns import Column
from markovblanket.tables.names import Name
from markovblanket.tables.recode import read_like
from markovblanket.tables.table import row_names


@dataclass(frozen=True, eq=False)
class Prediction:
    """Predictive draws of the query variables, on the scale of the data.

    Attributes
    ----------
    draws : dict of xarray.DataArray
        For each query variable, in its own type: (sample, row).
    mean : pandas.DataFrame
        The predictive mean, rows of the table by query variables; missing where the levels are no numbers.
    probabilities : dict of pandas.DataFrame
        For each query variable with levels: rows of the table by levels.
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
        """A row per cell: mean, sd, central predictive interval at ``level``; with levels, the likeliest one."""
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
    """``-U W12``: the regression of the query on the rest, for each draw."""
    return -np.linalg.solve(W11, W12)


def _residual_noise(rng: np.random.Generator, W11: Array, rows: int) -> Array:
    """Rows of ``N(0, U)``: with ``W11 = L L'`` is ``U = L^-T L^-1``, the covariance of rows ``z' L^-1``."""
    noise = rng.standard_normal((rows, len(W11)))
    return np.linalg.solve(np.linalg.cholesky(W11).T, noise.T).T


@dataclass(frozen=True, eq=False)
class Fit:
    """What prediction takes from a posterior: draws of the matrices, (chain, draw, ...), and the table.

    ``W12`` may be on disk and is read draw by draw; ``coefficients``, the mean of ``-U W12``, are
    for columns that are standardised.
    """

    W11: Array
    W12: Array | xr.DataArray
    observed: Observed
    coefficients: Array | None = None

    def predict_rows(self, rng: np.random.Generator, new: Any, draws: int) -> Prediction:
        """The query of the rows of a table; means are those of the coefficients where these are known."""
        values = read_like(new, self.observed.table.columns[self.observed.p :])
        if np.isnan(values).any():
            self.observed.require_rows("prediction of rows with missing cells")
        prediction = self.predict(rng, values, draws, row_names(new, len(values)))
        if self.coefficients is not None:
            complete = ~np.isnan(values).any(axis=1)
            prediction.mean[complete] = self.regression(values[complete], self.coefficients)
        return prediction

    def matrices(self, sample: Sample) -> tuple[Array, Array]:
        """``W11`` and ``W12`` of a sample's draw."""
        chain, draw = self.observed.draw_of(sample)
        return self.W11[chain, draw], np.asarray(self.W12[chain, draw], dtype=float)

    def predict(self, rng: np.random.Generator, values: Array, draws: int, rows: Any) -> Prediction:
        """The query of new rows whose remaining cells are ``values``, coded like the table's."""
        columns = self.observed.table.columns[: self.observed.p]
        codes: list[list[Array]] = [[] for _ in columns]
        chances: list[list[Array]] = [[] for _ in columns]
        samples = self.observed.samples(draws)
        for sample, X2 in zip(samples, self._rest(rng, values, samples), strict=True):
            W11, W12 = self.matrices(sample)
            mean = X2 @ coefficients(W11, W12).T
            X1, sd = mean + _residual_noise(rng, W11, len(X2)), np.sqrt(np.diag(np.linalg.inv(W11)))
            scales = self.observed.scales(rng, sample, self.observed.table.query)
            for i, scale in enumerate(scales):
                codes[i].append(scale.data(X1[:, i]))
                if isinstance(scale, Steps):
                    chances[i].append(scale.probabilities(mean[:, i], sd[i]))
        average = {c.name: np.mean(part, axis=0) for c, part in zip(columns, chances, strict=True) if part}
        return _assemble(columns, [np.array(part) for part in codes], average, rows)

    def regression(self, values: Array, beta: Array) -> Array:
        """Means on the scale of the data, for columns that are standardised, in rows that are complete."""
        X2, _ = self._known(values)
        scales = (self.observed.fixed_scales[name] for name in self.observed.table.query)
        return np.column_stack([scale.data(x) for scale, x in zip(scales, beta @ X2.T, strict=True)])

    def _rest(self, rng: np.random.Generator, values: Array, samples: Sequence[Sample]) -> Iterator[Array]:
        """The latent remaining cells of the new rows, for each sample, from where the last one left them."""
        observed, names = self.observed, self.observed.table.rest
        drawn = [j for j, name in enumerate(names) if name not in observed.fixed_scales]
        moving = np.isin(np.arange(len(names)), list(observed.moving_rest)) | np.isnan(values).any(axis=0)
        K, J, X2 = np.flatnonzero(~moving), np.flatnonzero(moving), observed.start.X2
        completion = Completion(X2[:, K], K, J, rest_degrees(*X2.shape), rest_ridge(*X2.shape))
        lower, upper = self._known(values)
        x: Array = np.zeros(values.shape)
        for k, sample in enumerate(samples):
            scales = observed.scales(rng, sample, [names[j] for j in drawn])
            for j, scale in zip(drawn, scales, strict=True):
                lower[:, j], upper[:, j] = scale.bounds(values[:, j])
            rows = Rows.between(lower, upper, x)
            x = completion.draw(
                rng, rows, observed.rest_at(sample, J), SWEEPS_PER_DRAW if k else SWEEPS_OF_FIRST_DRAW
            )
            yield x

    def _known(self, values: Array) -> tuple[Array, Array]:
        """Bounds of the cells of columns whose scale no draw changes."""
        lower, upper = np.full(values.shape, np.nan), np.full(values.shape, np.nan)
        for j, name in enumerate(self.observed.table.rest):
            if name in self.observed.fixed_scales:
                lower[:, j], upper[:, j] = self.observed.fixed_scales[name].bounds(values[:, j])
        return lower, upper


def _assemble(
    columns: Sequence[Column], codes: Sequence[Array], chances: Mapping[Name, Array], rows: Any
) -> Prediction:
    """Draws in the columns' own types, their means, and the probabilities of their levels."""
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
