"""``markovblanket report``: the page of a run, again."""

from __future__ import annotations

from pathlib import Path

import click

from markovblanket.cli import _output_folder
from markovblanket.cli._options import BadInput
from markovblanket.fitting.resume import load
from markovblanket.posterior.posterior import Posterior


def run(run: Path, out: Path | None, quiet: bool) -> int:
    """Write the page, and say where it is."""
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
    """Where the page goes: a saved posterior is a folder of its own, to which nothing is added."""
    if out is not None and out.is_dir():
        raise BadInput(f"{out} is a folder: name a file with --out")
    if out is None and not (run / _output_folder.POSTERIOR).is_dir():
        raise BadInput(f"{run} is not the folder of a fit: if it is a saved posterior, name the page with --out")
    return run / _output_folder.REPORT if out is None else out


def loaded(run: Path) -> Posterior:
    """The posterior of a run, or of a folder that is one."""
    inside = run / _output_folder.POSTERIOR
    try:
        return load(inside if inside.is_dir() else run)
    except (OSError, ValueError) as error:
        raise BadInput(str(error)) from error
