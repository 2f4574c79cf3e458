"""Where the figures come from: the machine, its load, and the versions of all that ran."""

from __future__ import annotations

import os
import platform
import re
from importlib import metadata
from pathlib import Path
from typing import Any

PACKAGES = ("markovblanket", "numpy", "scipy", "numba", "arviz", "joblib", "threadpoolctl")


def described() -> dict[str, Any]:
    """For the results."""
    return {"machine": machine(), "versions": versions(), "load": [round(load, 2) for load in os.getloadavg()]}


def machine() -> dict[str, Any]:
    """Processor, cores and memory."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return {"processor": processor(), "cores": os.cpu_count(), "gigabytes": round(pages / 2**30, 1)}


def processor() -> str:
    """Its name, with family and model where that says more."""
    path = Path("/proc/cpuinfo")
    text = path.read_text() if path.exists() else ""
    found = dict(re.findall(r"^(model name|cpu family|model)\s*: (.*)$", text, re.M))
    if "model name" not in found:
        return platform.processor() or platform.machine()
    return f"{found['model name']} (family {found.get('cpu family')}, model {found.get('model')})"


def versions() -> dict[str, str]:
    """Of Python, of the packages, and of the BLAS that NumPy and SciPy have loaded."""
    from threadpoolctl import threadpool_info

    blas = sorted(
        f"{lib['internal_api']} {lib['version']}" for lib in threadpool_info() if lib["user_api"] == "blas"
    )
    packages = {name: metadata.version(name) for name in PACKAGES}
    return {"python": platform.python_version(), **packages, "BLAS": " and ".join(blas)}
