"""Completed tables: every missing cell drawn, on the scale of the data."""

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
    """A sequence of completed tables, each with the missing cells as one posterior draw has them.

    Names, order and types of the columns are those of the table that was fitted, observed cells are untouched, and
    a column takes only values that it can: an observed level, or a number between its smallest and its largest,
    whole if all of them are. (Blanks around words were stripped.)

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
        """A completed table."""
        if isinstance(which, slice):
            return [self[k] for k in range(*which.indices(len(self)))]
        self.samples[which]  # an IndexError ends a loop, also over tables without gaps
        cells = {name: draws[which] for name, draws in self.draws.items()}
        table = self.observed.table
        made = {name: _series(self.observed.columns[name], cells.get(name)) for name in table.order}
        return pd.DataFrame(made, index=table.rows)

    @cached_property
    def seeds(self) -> list[np.random.SeedSequence]:
        """Of each table: what is drawn for one is the same however often it is drawn."""
        return self.seed.spawn(len(self))

    @cached_property
    def gaps(self) -> dict[Name, npt.NDArray[np.intp]]:
        """The rows where cells are missing, for every column that has some; those of the query first."""
        return {c.name: np.flatnonzero(c.missing) for c in self.observed.table.columns if not c.complete}

    @cached_property
    def draws(self) -> dict[Name, Array]:
        """Numbers or codes of the missing cells of every column that has some: tables x cells."""
        place = {name: k for k, name in enumerate(self.observed.moving)}
        drawn: dict[Name, list[Array]] = {name: [] for name in self.gaps}
        for _, sample, scales in self._scales():
            for name, rows in self.gaps.items():
                x = self.observed.latent.values[(*sample, rows, place[name])]
                drawn[name].append(scales[name].data(x))
        return {name: np.array(parts) for name, parts in drawn.items()}

    @cached_property
    def probabilities(self) -> dict[Name, pd.DataFrame]:
        """Of its levels for each missing cell, for every column that has both: rows of the table by levels.

        Not shares of the tables: in each of these a cell is normal given the others of its row, which makes
        probabilities of its levels, and they are averaged over the tables. (Shares, if ``W12`` was not kept.)
        """
        columns = [self.observed.columns[name] for name in self.gaps if self.observed.columns[name].levels]
        values = self._shares(columns) if self.fit is None else self._chances(self.fit, columns)
        rows = self.observed.table.rows
        return {
            c.name: pd.DataFrame(part, index=rows[self.gaps[c.name]], columns=list(c.levels))
            for c, part in zip(columns, values, strict=True)
        }

    def cells(self, level: float = 0.9) -> pd.DataFrame:
        """A row per missing cell: its mean, sd and central interval at ``level``, and its likeliest level.

        All of these follow from the :attr:`probabilities` if the column has levels, otherwise from the draws.
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
        if column.levels:
            return describe_levels(column, self.probabilities[column.name].to_numpy(), level)
        return describe(self.draws[column.name], level)

    def _scales(self) -> Iterator[tuple[np.random.Generator, Sample, dict[Name, Scale]]]:
        """Of each table what is random from here on, its sample, and the scales of its columns with gaps."""
        for sample, seed in zip(self.samples, self.seeds, strict=True):
            rng = np.random.default_rng(seed)
            scales = self.observed.scales(rng, sample, self.gaps)
            yield rng, sample, dict(zip(self.gaps, scales, strict=True))

    def _shares(self, columns: Sequence[Column]) -> list[Array]:
        """Of the tables, in which a cell has each level."""
        return [(self.draws[c.name][:, :, None] == np.arange(len(c.levels))).mean(axis=0) for c in columns]

    def _chances(self, fit: Fit, columns: Sequence[Column]) -> list[Array]:
        """The mean over tables of the probability, given all other cells, that a cell has each level."""
        total: list[Array] = [np.zeros((len(self.gaps[c.name]), len(c.levels))) for c in columns]
        with one_thread:  # as in the chains: the last bits must not depend on the number of cores
            for rng, sample, scales in self._scales():
                laws = _laws_given_rows(rng, fit, sample, [c.name for c in columns])
                for part, column, (mean, sd) in zip(total, columns, laws, strict=True):
                    steps = scales[column.name]
                    assert isinstance(steps, Steps)
                    part += steps.probabilities(mean[self.gaps[column.name]], sd) / len(self)
        return total


def _laws_given_rows(
    rng: np.random.Generator, fit: Fit, sample: Sample, names: Sequence[Name]
) -> Iterator[tuple[Array, float]]:
    """Means of the cells of each column named, those of the query first, and their sd, given all others."""
    table, columns, (W11, W12) = fit.observed.table, fit.observed.columns_at(sample), fit.matrices(sample)
    query, J = (np.flatnonzero([name in names for name in part]) for part in (table.query, table.rest))
    mean, sd = new_rows.of_query(W11, W12, columns)
    yield from ((mean[:, i], float(sd[i])) for i in query)
    if len(J):
        mean, sd = new_rows.of_rest(rng, W11, W12, columns, J)
        yield from zip(mean.T, sd.tolist(), strict=True)


def _series(column: Column, filled: Array | None) -> Any:
    """The cells of a completed column, in a type like the one it had."""
    values = column.values.copy()
    if filled is not None:
        values[column.missing] = filled
    return _typed(column, column.restore(values))


def _typed(column: Column, cells: npt.NDArray[Any]) -> Any:
    """Categories as such; anything else as it is."""
    if column.dtype not in ("category", "ordered category"):
        return cells
    if not column.categories:
        return pd.Categorical(cells)
    labels = {key(category): category for category in column.categories}
    found = [labels.get(key(cell)) for cell in cells]
    return pd.Categorical(found, list(column.categories), ordered=column.dtype == "ordered category")
