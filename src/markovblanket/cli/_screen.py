"""What was found, on a screen of eighty columns."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from markovblanket.posterior.diagnostics import Diagnostics
from markovblanket.posterior.posterior import Posterior
from markovblanket.posterior.summaries import likelier

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
    console.print(f"{verdict(diagnostics)}; {sweeps(posterior)} {time}.")
    console.print(written)


def edge_table(edges: pd.DataFrame) -> Table:
    """The surest edges; names are taken literally."""
    title = f"{len(edges):,} edge{'' if len(edges) == 1 else 's'} selected"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in ("query", "variable", "partial", ""):
        table.add_column(name, justify="right" if name == "partial" else "left", no_wrap=True, overflow="ellipsis")
    likely = "P(sign)" if edges["inclusion"].isna().all() else "P(edge)"
    for name in ("weight, interval", likely, "R-hat", "ESS"):
        table.add_column(name, justify="right", no_wrap=True, min_width=max(len(name), 5))  # the bar gives way
    for edge in edges.head(MOST).assign(likelier=likelier(edges)).itertuples():
        probability = edge.sign_probability if likely == "P(sign)" else edge.likelier
        table.add_row(
            Text(str(edge.query)),
            Text(str(edge.variable)),
            f"{edge.partial_correlation:+.2f}",
            bar(edge.partial_correlation),
            f"{edge.lower:+.2f} to {edge.upper:+.2f}",
            f"{probability:.3f}",
            f"{edge.rhat:.3f}",
            f"{edge.ess:.0f}",
        )
    return table


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


def verdict(diagnostics: Diagnostics) -> str:
    """Whether the chains agree, and the figures that tell it."""
    table = diagnostics.table
    agree = "The chains agree" if diagnostics.converged else "The chains do NOT agree"
    if table.empty:
        return f"{agree}: {'; '.join(diagnostics.problems)}"
    worst, least = table["rhat"].max(), table["ess_bulk"].min()
    return f"{agree}: worst R-hat {worst:.3f}, smallest effective sample {least:.0f}"


def files(out: Path, folder: Path) -> str:
    """What was written where."""
    names = sorted(entry.name + "/" * entry.is_dir() for entry in folder.iterdir())
    return f"Written to {out}/: {', '.join(names)}"
