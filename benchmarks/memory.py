"""Memory of a summary: the peak of ``estimate`` in a fresh process, over the limit that is promised."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from settings import AbsentError, Settings, one_thread
from tables import Size, label

STATUS = Path("/proc/self/status")


def summary(settings: Settings) -> dict[str, Any]:
    """Growth over 3 data matrices and 40 numbers per edge and chain, for both kinds of margins."""
    if not STATUS.exists():
        raise AbsentError("peaks of memory are read from /proc, which this system has not")
    size = (3, 2000, 100) if settings.quick else (7, 50000, 260)
    rows = [_measured(size, margins) for margins in ("auto", "gaussian")]
    return {"rows": rows}


def _measured(size: Size, margins: str) -> dict[str, Any]:
    """One fresh process."""
    command = [sys.executable, __file__, json.dumps(size), margins]
    run = subprocess.run(command, env=one_thread(), check=True, capture_output=True, text=True)
    growth, (p, q, n) = json.loads(run.stdout), size
    limit = 8 * (3 * n * (p + q) + 40 * p * q)
    row = {"p": p, "q": q, "n": n, "margins": margins, "megabytes": growth / 1e6, "limit": limit / 1e6}
    row["ratio"] = growth / limit
    print(f"  p, q, n = {label(size)}, {margins}: grew by {growth / 1e6:.0f} MB, {row['ratio']:.2f} of the limit")
    return row


def kilobytes(name: str) -> int:
    """An entry of this process's status: ``VmRSS``, or ``VmHWM``, its peak."""
    found = re.search(rf"{name}:\s+(\d+) kB", STATUS.read_text())
    assert found
    return int(found[1])


def growth(size: Size, margins: str) -> int:
    """Bytes by which the peak of ``estimate`` exceeds what there was, imports and the table included, before."""
    import warnings

    import markovblanket as mb
    from tables import factor_table

    warnings.simplefilter("ignore", mb.ConvergenceWarning)
    options = {"chains": 1, "keep": "summary", "margins": margins, "seed": 1, "progress": False}
    small = factor_table((size[0], 50, 60))
    mb.estimate(small, list(range(size[0])), warmup=20, draws=20, **options)  # compiled code, loaded before
    table = factor_table(size)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts from here
    before = kilobytes("VmRSS")
    mb.estimate(table, list(range(size[0])), warmup=20, draws=40, **options)
    return 1024 * (kilobytes("VmHWM") - before)


if __name__ == "__main__":
    print(growth(tuple(json.loads(sys.argv[1])), sys.argv[2]))
