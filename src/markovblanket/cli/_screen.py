"""What was found, on a screen of eighty columns."""

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

MOST = 20


def screen() -> Console:
    """Standard output, on which names are taken literally."""
    return Console(markup=False, highlight=False)


def tell(
    console: Console, posterior: Posterior, edges: pd.DataFrame, diagnostics: Diagnostics, time: str, written: str
) -> None:
    """The columns as understood, the selected edges, whether the chains agree, and where everything is."""
    console.print(understood(posterior))
    console.print(edge_table(edges) if len(edges) else "No edge is selected.\n")
    if len(edges) > MOST:
        console.print(f"and {len(edges) - MOST:,} more, in edges.csv")
    console.print(f"{diagnostics.verdict} {sweeps(posterior)} {time}.")
    console.print(written)


def edge_table(edges: pd.DataFrame) -> Table:
    """The surest edges; names are taken literally."""
    title = f"{len(edges):,} edge{'' if len(edges) == 1 else 's'} selected"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    fields = edge_fields(edges, weight=False)
    for field in fields:
        add_column(table, field)
    for edge, cells in zip(edges.head(MOST).itertuples(), edge_rows(edges.head(MOST), fields), strict=True):
        table.add_row(*with_bar(edge.partial_correlation, cells))
    return table


def add_column(table: Table, field: Field) -> None:
    """A column of the edge table; after the partial correlation one for its bar, which gives way first."""
    side: Literal["left", "right"] = "right" if field.is_number else "left"
    width = max(len(field.title), 5) if field.is_number else None
    table.add_column(field.title, justify=side, no_wrap=True, overflow="ellipsis", min_width=width)
    if field is PARTIAL:
        table.add_column("", no_wrap=True, overflow="ellipsis")


def with_bar(partial: float, cells: list[str]) -> list[Text]:
    """The cells of a row as text that is taken literally, with a bar after the partial correlation."""
    texts = [Text(cell.translate(PLAIN)) for cell in cells]
    return [*texts[:3], Text(bar(partial)), *texts[3:]]


def understood(posterior: Posterior) -> str:
    """The traits and their kinds, and what is missing."""
    rows = posterior.observed.table.describe()
    kinds = ", ".join(f"{row['name']} ({row['kind']})" for row in rows if row["role"] == "query")
    missing = sum(row["missing"] for row in rows)
    return f"Understood as: {kinds}, and {len(posterior.variables)} more; {missing} cells missing.\n"


def bar(value: float, width: int = 10) -> str:
    """A partial correlation as a bar, full at 1/2: plus signs or minus signs, so that it needs no colour."""
    return ("+" if value > 0 else "-") * min(width, max(1, round(abs(value) * 2 * width)))


def sweeps(posterior: Posterior) -> str:
    """How long the chains ran, in words."""
    made = posterior.settings
    return f"{made['chains']} chains x {made['warmup'] + made['draws'] * made['thin']:,} sweeps"


def files(out: Path, folder: Path) -> str:
    """What was written where."""
    names = sorted(entry.name + "/" * entry.is_dir() for entry in folder.iterdir())
    return f"Written to {out}/: {', '.join(names)}"
