"""Completed tables: every missing cell drawn, on the scale of the data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, overload

import numpy as np
import numpy.typing as npt
import pandas as pd

from markovblanket.contracts import Array
from markovblanket.levels import Column, key
from markovblanket.observed import Observed, Sample
from markovblanket.summaries import describe_cells
from markovblanket.table import Name


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
        made = {name: series(self.observed.columns[name], cells.get(name)) for name in table.order}
        return pd.DataFrame(made, index=table.rows)

    @cached_property
    def draws(self) -> dict[Name, Array]:
        """Numbers or codes of the missing cells of every column that has some: tables x cells."""
        gaps = {c.name: np.flatnonzero(c.missing) for c in self.observed.table.columns if not c.complete}
        place = {name: k for k, name in enumerate(self.observed.moving)}
        drawn: dict[Name, list[Array]] = {name: [] for name in gaps}
        for sample, seed in zip(self.samples, self.seed.spawn(len(self)), strict=True):
            scales = self.observed.scales(np.random.default_rng(seed), sample, gaps)
            for (name, rows), scale in zip(gaps.items(), scales, strict=True):
                x = self.observed.latent.values[(*sample, rows, place[name])]
                drawn[name].append(scale.data(x))
        return {name: np.array(parts) for name, parts in drawn.items()}

    def cells(self, level: float = 0.9) -> pd.DataFrame:
        """A row per missing cell: its mean, sd and central interval at ``level``, and its likeliest level."""
        rows = self.observed.table.rows
        parts = [
            describe_cells(column, self.draws[column.name], level).assign(
                row=rows[np.flatnonzero(column.missing)], variable=column.name
            )
            for column in (self.observed.columns[name] for name in self.observed.table.order)
            if column.name in self.draws
        ]
        frame = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["row", "variable"])
        return frame.set_index(["row", "variable"])


def series(column: Column, filled: Array | None) -> Any:
    """The cells of a completed column, in a type like the one it had."""
    values = column.values.copy()
    if filled is not None:
        values[column.missing] = filled
    return typed(column, column.restore(values))


def typed(column: Column, cells: npt.NDArray[Any]) -> Any:
    """Categories as such; anything else as it is."""
    if column.dtype not in ("category", "ordered category"):
        return cells
    if not column.categories:
        return pd.Categorical(cells)
    labels = {key(category): category for category in column.categories}
    found = [labels.get(key(cell)) for cell in cells]
    return pd.Categorical(found, list(column.categories), ordered=column.dtype == "ordered category")
