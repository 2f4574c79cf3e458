"""Completed tables, in which every missing cell is drawn from the posterior, on the scale of the data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pandas as pd

from markovblanket._determinism import one_thread
from markovblanket.contracts import Array
from markovblanket.model.copula import new_rows
from markovblanket.model.copula.transforms import Scale, Steps
from markovblanket.posterior.observed import Observed, Sample
from markovblanket.posterior.prediction import Fit
from markovblanket.posterior.summaries import describe, describe_levels
from markovblanket.tables.columns import Column, key
from markovblanket.tables.names import Name


@dataclass(frozen=True, eq=False)
class Imputed(Sequence[pd.DataFrame]):
    """A sequence of completed tables, whose missing cells come from one posterior draw each.

    Names, order and types of the columns are those of the table that was fitted, observed cells are untouched, and
    drawn cells have possible values: an observed level, or a number between the smallest and the largest observed
    one, whole if all observed ones are. (Blanks around words are removed.)

    Examples
    --------
    >>> import markovblanket as mb
    >>> clinic = mb.simulate(rows=60, query=2, rest=6, kinds="mixed", missing=0.1, seed=1)
    >>> posterior = mb.estimate(clinic.table, clinic.query, margins="auto", warmup=500, draws=500, seed=1)
    >>> tables = posterior.imputed(draws=5, seed=1)
    >>> len(tables), int(tables[0].isna().sum().sum())
    (5, 0)
    """

    observed: Observed
    samples: list[Sample]
    seed: np.random.SeedSequence
    fit: Fit | None = None

    def __len__(self) -> int:
        return len(self.samples)

    @overload
    def __getitem__(self, which: int) -> pd.DataFrame: ...
    @overload
    def __getitem__(self, which: slice) -> list[pd.DataFrame]: ...
    def __getitem__(self, which: int | slice) -> pd.DataFrame | list[pd.DataFrame]:
        """Return one completed table, or a list of them for a slice."""
        if isinstance(which, slice):
            return [self[k] for k in range(*which.indices(len(self)))]
        self.samples[which]  # its IndexError ends a loop, also if no cell is missing
        cells = {name: draws[which] for name, draws in self.draws.items()}
        table = self.observed.table
        made = {name: _series(self.observed.columns[name], cells.get(name)) for name in table.order}
        return pd.DataFrame(made, index=table.rows)

    @cached_property
    def seeds(self) -> list[np.random.SeedSequence]:
        """A seed for each table, so that a table is the same whenever it is drawn."""
        return self.seed.spawn(len(self))

    @cached_property
    def gaps(self) -> dict[Name, npt.NDArray[np.intp]]:
        """The rows of the missing cells of each column that has some; columns of the query first."""
        return {c.name: np.flatnonzero(c.missing) for c in self.observed.table.columns if not c.complete}

    @cached_property
    def draws(self) -> dict[Name, Array]:
        """Drawn numbers or codes of the missing cells of each column that has some: tables x cells."""
        place = {name: k for k, name in enumerate(self.observed.moving)}
        drawn: dict[Name, list[Array]] = {name: [] for name in self.gaps}
        for _, sample, scales in self._scales():
            for name, rows in self.gaps.items():
                x = self.observed.latent.values[(*sample, rows, place[name])]
                drawn[name].append(scales[name].data(x))
        return {name: np.array(parts) for name, parts in drawn.items()}

    @cached_property
    def probabilities(self) -> dict[Name, pd.DataFrame]:
        """Probabilities of the levels of missing cells, for each column that has both: rows by levels.

        In each table a latent cell is normal given the other cells of its row, which gives probabilities of its
        levels; these are averaged over the tables. (If ``W12`` was not kept, they are the shares of the tables in
        which the cell has each level, which vary more.)
        """
        columns = [self.observed.columns[name] for name in self.gaps if self.observed.columns[name].levels]
        values = self._shares(columns) if self.fit is None else self._chances(self.fit, columns)
        rows = self.observed.table.rows
        return {
            c.name: pd.DataFrame(part, index=rows[self.gaps[c.name]], columns=list(c.levels))
            for c, part in zip(columns, values, strict=True)
        }

    def cells(self, level: float = 0.9) -> pd.DataFrame:
        """Return mean, sd and central interval at ``level`` of each missing cell, and its likeliest level.

        These follow from the :attr:`probabilities` if the column has levels, otherwise from the draws.
        """
        rows = self.observed.table.rows
        parts = [
            self._described(self.observed.columns[name], level).assign(row=rows[self.gaps[name]], variable=name)
            for name in self.observed.table.order
            if name in self.gaps
        ]
        frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["row", "variable"])
        return frame.set_index(["row", "variable"])

    def _described(self, column: Column, level: float) -> pd.DataFrame:
        """Return mean, sd and interval of the missing cells of one column."""
        if column.levels:
            return describe_levels(column, self.probabilities[column.name].to_numpy(), level)
        return describe(self.draws[column.name], level)

    def _scales(self) -> Iterator[tuple[np.random.Generator, Sample, dict[Name, Scale]]]:
        """Yield the generator of each table, its sample, and the scales of the columns with missing cells."""
        for sample, seed in zip(self.samples, self.seeds, strict=True):
            rng = np.random.default_rng(seed)
            scales = self.observed.scales(rng, sample, self.gaps)
            yield rng, sample, dict(zip(self.gaps, scales, strict=True))

    def _shares(self, columns: Sequence[Column]) -> list[Array]:
        """Return the shares of the tables in which a missing cell has each level."""
        return [(self.draws[c.name][:, :, None] == np.arange(len(c.levels))).mean(axis=0) for c in columns]

    def _chances(self, fit: Fit, columns: Sequence[Column]) -> list[Array]:
        """Return the mean over tables of the probability of each level, given all other cells of the row."""
        total: list[Array] = [np.zeros((len(self.gaps[c.name]), len(c.levels))) for c in columns]
        with one_thread:  # as in the chains: the last bits must not depend on the number of cores
            for rng, sample, scales in self._scales():
                conditionals = _conditionals_given_rows(rng, fit, sample, [c.name for c in columns])
                for part, column, (mean, sd) in zip(total, columns, conditionals, strict=True):
                    steps = scales[column.name]
                    assert isinstance(steps, Steps)
                    part += steps.probabilities(mean[self.gaps[column.name]], sd) / len(self)
        return total


def _conditionals_given_rows(
    rng: np.random.Generator, fit: Fit, sample: Sample, names: Sequence[Name]
) -> Iterator[tuple[Array, float]]:
    """Yield means and sd of the latent cells of each named column given all others, the query first."""
    table, columns, (W11, W12) = fit.observed.table, fit.observed.columns_at(sample), fit.matrices(sample)
    query, J = (np.flatnonzero([name in names for name in part]) for part in (table.query, table.rest))
    mean, sd = new_rows.of_query(W11, W12, columns)
    yield from ((mean[:, i], float(sd[i])) for i in query)
    if len(J):
        mean, sd = new_rows.of_rest(rng, W11, W12, columns, J, fit.observed.rest_prior)
        yield from zip(mean.T, sd.tolist(), strict=True)


def _series(column: Column, filled: Array | None) -> Any:
    """Return the cells of a completed column, in the type that the column had."""
    values = column.values.copy()
    if filled is not None:
        values[column.missing] = filled
    return _typed(column, column.restore(values))


def _typed(column: Column, cells: npt.NDArray[Any]) -> Any:
    """Return categories as a pandas categorical, and other cells unchanged."""
    if column.dtype not in ("category", "ordered category"):
        return cells
    if not column.categories:
        return pd.Categorical(cells)
    labels = {key(category): category for category in column.categories}
    found = [labels.get(key(cell)) for cell in cells]
    return pd.Categorical(found, list(column.categories), ordered=column.dtype == "ordered category")
