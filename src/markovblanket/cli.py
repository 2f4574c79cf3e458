"""The command line: ``markovblanket demo``."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from markovblanket import __version__


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; 0 when all went well, 3 when a fit did not converge."""
    options = parser().parse_args(arguments)
    from rich.console import Console

    from markovblanket.demo import run

    posterior = run(options.out, Console())
    return 0 if posterior.diagnostics().converged else 3


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
    top = argparse.ArgumentParser(prog="markovblanket", description="Bayesian Markov blanket estimation")
    top.add_argument("--version", action="version", version=f"%(prog)s {__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    demo = commands.add_parser("demo", help="fit a simulated clinic whose truth is known")
    demo.add_argument("--out", type=Path, default=Path("demo"), help="folder for the results (default: demo)")
    return top
