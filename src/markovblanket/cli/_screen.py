"""Print a summary of a fit on a terminal of eighty columns."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from markovblanket.posterior.diagnostics import Diagnostics
from markovblanket.posterior.display import PLAIN, edge_fields, edge_rows
from markovblanket.posterior.posterior import Posterior

MOST_EDGES_SHOWN = 20
# Of a terminal, and between the columns of a table.
WIDTH, SPACING = 80, 2
# The columns of a table of edges that fit a terminal, and shorter titles for some of them.
FIELDS = ("query", "variable", "probability", "sign_probability", "partial_correlation", "lower", "rhat", "ess")
TITLES = {"partial_correlation": "partial"}
# Of a partial correlation as a bar: its title and its most signs.
BAR, LONGEST_BAR = "", 10
# Edges less probable than this are more likely absent than present.
TENTATIVE_BELOW = 0.5


def screen() -> Console:
    """A console on standard output that prints names literally, without markup or highlighting."""
    return Console(markup=False, highlight=False)


def tell(
    console: Console, posterior: Posterior, edges: pd.DataFrame, diagnostics: Diagnostics, time: str, written: str
) -> None:
    """Print the kinds of the columns, the selected edges, whether the chains agree, and the files written."""
    console.print(understood(posterior))
    tell_edges(console, edges)
    console.print(f"{diagnostics.verdict} {iterations(posterior)} {time}.")
    console.print(written)


# Edges --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A column of a table in a terminal: title and cells; numbers stand to the right and are never cut off."""

    title: str
    cells: Sequence[str]
    is_number: bool = True

    @property
    def width(self) -> int:
        """The number of characters that the column needs."""
        return max(cell_len(text) for text in (self.title, *self.cells))


def tell_edges(console: Console, edges: pd.DataFrame) -> None:
    """Print the surest edges, how many more there are, and how many are tentative."""
    if not len(edges):
        console.print("No edge is selected.\n")
        return
    title = f"{len(edges):,} edge{'' if len(edges) == 1 else 's'} selected"
    console.print(printed(title, edge_columns(edges.head(MOST_EDGES_SHOWN))))
    if len(edges) > MOST_EDGES_SHOWN:
        console.print(f"and {len(edges) - MOST_EDGES_SHOWN:,} more, in edges.csv")
    if unsure := int((edges["probability"] < TENTATIVE_BELOW).sum()):
        console.print(f"{unsure:,} with a probability below 50 %: tentative.")


def edge_columns(
    edges: pd.DataFrame, names: Sequence[str] = FIELDS, titles: Mapping[str, str] = TITLES
) -> list[Column]:
    """The columns of a table of edges that have these names, if the table has them."""
    fields = [field for field in edge_fields(edges) if field.name in names]
    rows = [[text.translate(PLAIN) for text in row] for row in edge_rows(edges, fields)]
    found = []
    for k, field in enumerate(fields):
        found.append(Column(titles.get(field.name, field.title), [row[k] for row in rows], field.is_number))
        if field.name == "partial_correlation":
            found.append(Column(BAR, [bar(value) for value in edges["partial_correlation"]], is_number=False))
    return found


def printed(title: str, columns: Sequence[Column]) -> Table:
    """Columns as a table that fits a terminal; long names are shortened, and bars are left out before that."""
    if sum(column.width + SPACING for column in columns) >= WIDTH:
        columns = [column for column in columns if column.title != BAR]
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for column, width in zip(columns, widths(columns), strict=True):
        side: Literal["left", "right"] = "right" if column.is_number else "left"
        table.add_column(column.title, justify=side, no_wrap=True, overflow="ellipsis", width=width)
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*map(Text, row))  # texts, lest a name be taken for markup
    return table


def widths(columns: Sequence[Column]) -> list[int]:
    """The widths of columns that fit a terminal: those of names share what the others leave."""
    found = [column.width for column in columns]
    names = [k for k, column in enumerate(columns) if not column.is_number and column.title != BAR]
    room = WIDTH - 1 - SPACING * len(columns) - sum(width for k, width in enumerate(found) if k not in names)
    for left, k in zip(range(len(names), 0, -1), sorted(names, key=found.__getitem__), strict=True):
        found[k] = max(1, min(found[k], room // left))
        room -= found[k]
    return found


def bar(value: float) -> str:
    """A partial correlation as a bar of plus or minus signs, of full width from 1/2 on."""
    length = min(LONGEST_BAR, max(1, round(abs(value) * 2 * LONGEST_BAR))) if np.isfinite(value) else 0
    return ("+" if value > 0 else "-") * length


# Sentences ----------------------------------------------------------------------------------------------------


def understood(posterior: Posterior) -> str:
    """Sentences with the query variables, their inferred kinds, missing cells, and the candidates."""
    rows = posterior.observed.table.describe()
    missing = sum(row["missing"] for row in rows)
    kinds = ", ".join(f"{row['name']} ({row['kind']})" for row in rows if row["role"] == "query")
    more = f", and {len(posterior.variables)} more"
    if not posterior.variables:
        counted = Counter(row["kind"] for row in rows)
        kinds, more = ", ".join(f"{count} {kind}" for kind, count in sorted(counted.items())) + " variables", ""
    return f"Understood as: {kinds}{more}; {missing} cells missing.{candidates(posterior)}\n"


def candidates(posterior: Posterior) -> str:
    """A sentence with the number of candidates in the block of the query; empty if there are none."""
    names = posterior.settings.get("candidates", {}).get("chosen", [])
    if not names or not posterior.variables:
        return ""
    count = "all" if len(names) == len(posterior.variables) else f"{len(names):,} of the"
    return f"\nCandidates: {count} {len(posterior.variables):,} other variables."


def iterations(posterior: Posterior) -> str:
    """The number of chains and of their iterations, as text."""
    made = posterior.settings
    return f"{made['chains']} chains x {made['warmup'] + made['draws'] * made['thin']:,} iterations"


def files(out: Path, folder: Path) -> str:
    """A sentence that names the output folder and the files in it."""
    names = sorted(entry.name + "/" * entry.is_dir() for entry in folder.iterdir())
    return f"Written to {out}/: {', '.join(names)}"
