"""``markovblanket scan``: many blankets of one table."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from markovblanket.cli import _options as asking
from markovblanket.cli import _output_folder, _screen
from markovblanket.cli._fit import (
    NOT_CONVERGED,
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
    """Scan, write everything, and tell what was found; the exit code."""
    sets = [asking.names([one]) for one in query] + (asking.sets(queries) if queries else [])
    begin, after = time.perf_counter(), "the same command goes on from there"
    jobs = jobs or joblib.cpu_count()
    options |= {"kinds": asking.kinds(kind), "out": out, "n_jobs": jobs, "progress": not quiet}
    with _output_folder.told(after), _output_folder.terminable():
        with workers(dask):
            found = scanned(table, sets or EACH, options)
        written = write(out, found, rule)
    if not quiet:
        tell(found, rule, f"in {time.perf_counter() - begin:.0f} s", f"Written to {out}/: {', '.join(written)}")
    beware_formulas(found.edges(rule))
    if bad := int((~found.fits["converged"]).sum()):
        warn(f"not converged: {bad:,} of {len(found.fits):,} fits, see {FITS}. Ask for more --warmup and --draws")
    return NOT_CONVERGED if strict and bad else 0


def scanned(table: Path, sets: Any, options: dict[str, Any]) -> Scan:
    """The scan; what is wrong with the table, the question or the folder is bad input."""
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
    """Those of a Dask cluster, if there is one."""
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
        raise BadInput(f"--dask {address}: no scheduler answers there ({error})") from None
    with client, joblib.parallel_config(backend="dask"):
        yield


def write(out: Path, found: Scan, rule: str) -> list[str]:
    """The edges, the fits, and the network as a graph and as a picture."""
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
    """What was found, on a screen."""
    console, edges = _screen.screen(), found.edges(rule)
    console.print(_screen.edge_table(edges) if len(edges) else "No edge is selected.\n")
    if len(edges) > _screen.MOST:
        console.print(f"and {len(edges) - _screen.MOST:,} more, in {_output_folder.EDGES}")
    seen = "any fit that looked at it" if rule == "or" else "every fit that looked at it"
    console.print(f"{len(found.fits):,} fits {time}; an edge is one that was selected by {seen}.")
    console.print(written)
