"""Print a summary of a fit on a terminal of eighty columns."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from markovblanket.posterior.diagnostics import Diagnostics
from markovblanket.posterior.display import PARTIAL, PLAIN, Field, edge_fields, edge_rows
from markovblanket.posterior.posterior import Posterior

MOST_EDGES_SHOWN = 20


def screen() -> Console:
    """A console on standard output that prints names literally, without markup or highlighting."""
    return Console(markup=False, highlight=False)


def tell(
    console: Console, posterior: Posterior, edges: pd.DataFrame, diagnostics: Diagnostics, time: str, written: str
) -> None:
    """Print the kinds of the columns, the selected edges, whether the chains agree, and the files written."""
    console.print(understood(posterior))
    console.print(edge_table(edges) if len(edges) else "No edge is selected.\n")
    if len(edges) > MOST_EDGES_SHOWN:
        console.print(f"and {len(edges) - MOST_EDGES_SHOWN:,} more, in edges.csv")
    console.print(f"{diagnostics.verdict} {iterations(posterior)} {time}.")
    console.print(written)


def edge_table(edges: pd.DataFrame) -> Table:
    """The surest edges as a table, names printed literally."""
    title = f"{len(edges):,} edge{'' if len(edges) == 1 else 's'} selected"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    fields = edge_fields(edges, weight=False)
    for field in fields:
        add_column(table, field)
    for edge, cells in zip(
        edges.head(MOST_EDGES_SHOWN).itertuples(), edge_rows(edges.head(MOST_EDGES_SHOWN), fields), strict=True
    ):
        table.add_row(*with_bar(edge.partial_correlation, cells))
    return table


def add_column(table: Table, field: Field) -> None:
    """Add a column to the edge table; the partial correlation is followed by a column for its bar."""
    side: Literal["left", "right"] = "right" if field.is_number else "left"
    width = max(len(field.title), 5) if field.is_number else None
    table.add_column(field.title, justify=side, no_wrap=True, overflow="ellipsis", min_width=width)
    if field is PARTIAL:
        table.add_column("", no_wrap=True, overflow="ellipsis")


def with_bar(partial: float, cells: list[str]) -> list[Text]:
    """The cells of a row as literal text, with a bar after the partial correlation."""
    texts = [Text(cell.translate(PLAIN)) for cell in cells]
    return [*texts[:3], Text(bar(partial)), *texts[3:]]


def understood(posterior: Posterior) -> str:
    """A sentence with the query variables, their inferred kinds, and the number of missing cells."""
    rows = posterior.observed.table.describe()
    kinds = ", ".join(f"{row['name']} ({row['kind']})" for row in rows if row["role"] == "query")
    missing = sum(row["missing"] for row in rows)
    return f"Understood as: {kinds}, and {len(posterior.variables)} more; {missing} cells missing.\n"


def bar(value: float, width: int = 10) -> str:
    """A partial correlation as a bar of plus or minus signs, of full width from 1/2 on."""
    return ("+" if value > 0 else "-") * min(width, max(1, round(abs(value) * 2 * width)))


def iterations(posterior: Posterior) -> str:
    """The number of chains and of their iterations, as text."""
    made = posterior.settings
    return f"{made['chains']} chains x {made['warmup'] + made['draws'] * made['thin']:,} iterations"


def files(out: Path, folder: Path) -> str:
    """A sentence that names the output folder and the files in it."""
    names = sorted(entry.name + "/" * entry.is_dir() for entry in folder.iterdir())
    return f"Written to {out}/: {', '.join(names)}"
