"""``markovblanket simulate``: draw a network and a table from it, and write the table and its truth."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import numpy as np
import pandas as pd

import markovblanket as mb
from markovblanket.cli import _output_folder
from markovblanket.cli._options import BadInput
from markovblanket.simulation import Simulated

TABLE, TRUTH = "table.csv", "truth.csv"
FILES = (TABLE, TRUTH, _output_folder.SETTINGS)


def run(out: Path, force: bool, quiet: bool, **options: Any) -> int:
    """Draw a network and a table, write both, print their sizes, and return the exit code."""
    if options["seed"] is None:
        options["seed"] = np.random.SeedSequence().generate_state(1).item()
    with _output_folder.draft(out, FILES, force, "simulation") as folder:
        try:
            made = mb.simulate(**options)
        except (ValueError, MemoryError) as error:
            raise BadInput(str(error)) from error
        _output_folder.write_table(folder / TABLE, made.table)
        _output_folder.write_table(folder / TRUTH, every_pair(made))
        settings = {"command": "markovblanket simulate", "version": mb.__version__, **options, "kind": made.kinds}
        _output_folder.write_settings(folder, settings)
    if not quiet:
        edges, missing = int(every_pair(made)["edge"].sum()), int(made.table.isna().to_numpy().sum())
        sizes = f"{len(made.table)} rows, {len(made.query)} query and {options['rest']} other variables"
        click.echo(f"{sizes}; seed {options['seed']}.")
        click.echo(f"Edges of the query variables: {edges}; missing cells: {missing}.")
        click.echo(f"Written to {out}/: {', '.join(sorted(FILES))}")
    return 0


def every_pair(made: Simulated) -> pd.DataFrame:
    """The truth of every pair that has a query variable, each pair once, as in a table of edges."""
    return pd.concat([made.query_edges, made.truth], ignore_index=True)
