"""``markovblanket report``: write the report of a run again."""

from __future__ import annotations

from pathlib import Path

import click

from markovblanket.cli import _output_folder
from markovblanket.cli._options import BadInput
from markovblanket.fitting.resume import load
from markovblanket.posterior.posterior import Posterior


def run(run: Path, out: Path | None, quiet: bool) -> int:
    """Write the page, print its path, and return the exit code."""
    page = place(run, out)
    posterior = loaded(run)
    try:
        posterior.report(page)
    except (OSError, ImportError) as error:
        raise BadInput(str(error)) from error
    if not quiet:
        click.echo(f"Written: {page}")
    return 0


def place(run: Path, out: Path | None) -> Path:
    """The path of the page: in the folder of a fit by default; nothing is added to a saved posterior."""
    if out is not None and out.is_dir():
        raise BadInput(f"{out} is a folder: name a file with --out")
    if out is None and not (run / _output_folder.POSTERIOR).is_dir():
        raise BadInput(f"{run} is not the folder of a fit: if it is a saved posterior, name the page with --out")
    return run / _output_folder.REPORT if out is None else out


def loaded(run: Path) -> Posterior:
    """The posterior in the folder of a run, or in a folder written by ``posterior.save()``."""
    try:
        inside = _output_folder.inside(run, _output_folder.POSTERIOR)
        return load(inside if inside.is_dir() else run)
    except (OSError, ValueError) as error:
        raise BadInput(str(error)) from error
