"""``markovblanket scan``: estimate many blankets of one table, and write a folder of results."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from markovblanket.cli import _options, _output_folder, _screen
from markovblanket.cli._fit import (
    EXIT_NOT_CONVERGED,
    UNREADABLE,
    UNWRITABLE,
    beware_formulas,
    reason,
    warn,
)
from markovblanket.cli._options import BadInput
from markovblanket.fitting.scan import EACH, Scan, scan

FITS = "fits.csv"


def run(
    table: Path,
    out: Path,
    query: Sequence[str],
    queries: Path | None,
    kind: Sequence[str],
    rule: str,
    dask: str | None,
    jobs: int | None,
    strict: bool,
    quiet: bool,
    **options: Any,
) -> int:
    """Scan the table, write all files, print a summary, and return the exit code."""
    sets = [_options.names([one]) for one in query] + (_options.sets(queries) if queries else [])
    begin, after = time.perf_counter(), "run the same command again to continue"
    jobs = jobs or joblib.cpu_count()
    options |= {"kinds": _options.kinds(kind), "out": out, "n_jobs": jobs, "progress": not quiet}
    with _output_folder.told(after), _output_folder.terminable():
        with workers(dask):
            found = scanned(table, sets or EACH, options)
        written = write(out, found, rule)
    if not quiet:
        tell(found, rule, f"in {time.perf_counter() - begin:.0f} s", f"Written to {out}/: {', '.join(written)}")
    beware_formulas(found.edges(rule))
    if bad := int((~found.fits["converged"]).sum()):
        warn(f"not converged: {bad:,} of {len(found.fits):,} fits, see {FITS}. Ask for more --warmup and --draws")
    return EXIT_NOT_CONVERGED if strict and bad else 0


def scanned(table: Path, sets: Any, options: dict[str, Any]) -> Scan:
    """The results of the scan; an error in the table, the question or the folder is raised as bad input."""
    try:
        return scan(table, sets, **options)
    except np.linalg.LinAlgError:
        raise  # not the table's fault, though a ValueError
    except (*UNREADABLE, RuntimeError) as error:
        if getattr(error, "errno", None) in UNWRITABLE:
            raise
        raise BadInput(reason(error, table)) from error


@contextmanager
def workers(address: str | None) -> Iterator[None]:
    """Run fits on the workers of the Dask scheduler at this address; None runs them on this machine."""
    if address is None:
        yield
        return
    try:
        from distributed import Client
    except ImportError:
        raise BadInput("--dask needs the package distributed: pip install distributed") from None
    try:
        client = Client(address)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise BadInput(f"--dask {address}: no scheduler answers at this address ({error})") from None
    with client, joblib.parallel_config(backend="dask"):
        yield


def write(out: Path, found: Scan, rule: str) -> list[str]:
    """Write the edges, the fits, and the network as a graph and as a picture; the names of the files."""
    _output_folder.write_table(out / _output_folder.EDGES, _output_folder.inert(found.edges(rule)))
    names = found.fits["query"].map(lambda query: ", ".join(map(str, query)))
    _output_folder.write_table(out / FITS, _output_folder.inert(found.fits.assign(query=names)))
    _output_folder.write_graph(out / _output_folder.GRAPH, found.graph(rule))
    if not _output_folder.possible(_output_folder.PICTURE):
        return [_output_folder.EDGES, FITS, _output_folder.GRAPH]
    from markovblanket.plots import whole

    _output_folder.draw_by(out / _output_folder.PICTURE, lambda: whole(found, rule))
    return [_output_folder.EDGES, FITS, _output_folder.GRAPH, _output_folder.PICTURE]


def tell(found: Scan, rule: str, time: str, written: str) -> None:
    """Print the surest edges, the number of fits, and the files that were written."""
    console = _screen.screen()
    _screen.tell_edges(console, found.edges(rule))
    seen = "any fit that includes it" if rule == "or" else "every fit that includes it"
    console.print(f"{len(found.fits):,} fits {time}; an edge counts if it is selected by {seen}.")
    console.print(written)
