"""``markovblanket demo``."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from markovblanket import __version__
from markovblanket.cli import files, output_folder, screen
from markovblanket.cli.clinic import fit_clinic, write

FILES = ("table.csv", "truth.csv", output_folder.SETTINGS, *files.FILES)


def run(out: Path) -> int:
    """Fit the clinic, print its blanket beside the truth, and write everything."""
    console = Console()
    with output_folder.draft(out, FILES, force=True, what="demo") as folder:
        posterior, data = fit_clinic(console)
        write(folder, data)
        files.write(folder, posterior, posterior.edges(), {})
        made_by = {"command": "markovblanket demo", "version": __version__}
        output_folder.write_settings(folder, {**made_by, **posterior.settings})
        written = screen.files(out, folder)
    screen.screen().print(written)
    return 0
