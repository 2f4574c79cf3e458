"""What the studies share: a store of results that lets a stopped run go on, quiet fits, and the stamp of a page.

Machine, versions and Markdown tables are told by the benchmarks' own modules.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import markovblanket as mb

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))  # last: a study's own modules come first
import machine
from report import table as markdown

HERE = Path(__file__).parent
DOCS = HERE.parent / "docs" / "studies"
__all__ = ["DOCS", "HERE", "kept", "markdown", "one_thread", "quietly", "source", "stamp", "today", "written"]

Record = dict[str, Any]


def kept(path: Path, work: Callable[[], Record]) -> Record:
    """The result in the file; if there is none, that of the work, written whole or not at all."""
    if not path.exists():
        written(path, json.dumps(work()) + "\n")
    return json.loads(path.read_text())


def written(path: Path, text: str) -> None:
    """Replace a file in one step, so that a killed run leaves no half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f"{path.name}.{os.getpid()}.part")
    draft.write_text(text)
    draft.replace(path)


def unwarned(work: Callable[..., Any], *given: Any, **options: Any) -> Any:
    """Work whose chains may be too short by our own rule: the paper's schedule is what is studied."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.ConvergenceWarning)
        return work(*given, **options)


def quietly(fit: Callable[..., mb.Posterior], *given: Any, **options: Any) -> mb.Posterior:
    """The same of a fit, without bars."""
    posterior: mb.Posterior = unwarned(fit, *given, progress=False, **options)
    return posterior


def one_thread() -> None:
    """Before any work: BLAS on one thread here, and in the processes that are started from here."""
    from threadpoolctl import threadpool_limits

    os.environ |= {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    threadpool_limits(limits=1)


def today() -> str:
    """The date, for a record."""
    return time.strftime("%Y-%m-%d")


def source(*packages: str) -> Record:
    """Where a record comes from: date, machine and its load, versions, and those of further packages."""
    found = machine.described()
    found["versions"] |= {name: metadata.version(name) for name in packages}
    return {"date": today(), **found}


def stamp(sources: list[Record], script: str) -> str:
    """Markdown: how, when, where and with what a page's figures were made."""
    dates = sorted({one["date"] for one in sources})
    machines = sorted({"{processor}, {cores} cores, {gigabytes} GB".format(**one["machine"]) for one in sources})
    versions = sorted({pair for one in sources for pair in one["versions"].items()})
    loads = [one["load"][0] for one in sources if "load" in one]
    busy = f" (load up to {max(loads):.1f} meanwhile)" if len(loads) == len(sources) else ""
    when, what = dict.fromkeys([dates[0], dates[-1]]), (f"{name} {version}" for name, version in versions)
    return (
        f"*Made by `studies/{script}`, {' to '.join(when)}, on {' and '.join(machines)}{busy}. "
        f"Software: {', '.join(what)}.*"
    )
