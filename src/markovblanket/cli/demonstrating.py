"""``markovblanket demo``."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from markovblanket import __version__
from markovblanket.cli import folders, results, summary
from markovblanket.cli.clinic import fit_clinic, write

FILES = ("table.csv", "truth.csv", folders.SETTINGS, *results.FILES)


def run(out: Path) -> int:
    """Fit the clinic, print its blanket beside the truth, and write everything."""
    console = Console()
    with folders.draft(out, FILES, force=True, what="demo") as folder:
        posterior, data = fit_clinic(console)
        write(folder, data)
        results.write(folder, posterior, posterior.edges(), {})
        made_by = {"command": "markovblanket demo", "version": __version__}
        folders.write_settings(folder, {**made_by, **posterior.settings})
        written = summary.files(out, folder)
    summary.screen().print(written)
    return 0
