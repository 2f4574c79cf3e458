"""What a run of the benchmarks is told, and how a section says that it cannot run."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent


class AbsentError(Exception):
    """A peer or a table that a section needs is not there."""


@dataclass(frozen=True)
class Settings:
    """Small sizes only (``quick``), where clinical tables are, and a Python that has NumPyro."""

    quick: bool = False
    data: Path = HERE.parent.parent / "shared" / "data"
    numpyro: Path | None = None

    @property
    def repeats(self) -> int:
        """Rounds of every timing."""
        return 3 if self.quick else 15


def one_thread() -> dict[str, str]:
    """The environment of a peer that is to use one core."""
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    flags = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    return {**os.environ, **threads, "XLA_FLAGS": flags}
