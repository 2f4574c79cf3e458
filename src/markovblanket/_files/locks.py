"""One run at a time in a folder, by a lock that ends with its process, however that ends."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # no such locks: two runs in one folder are then the user's own care
    fcntl = None  # type: ignore[assignment]

LOCK = "lock"
# Seconds after which whoever looks at a lock, or a chain, looks again.
MOMENT, OFTEN = 0.05, 1.0


@contextmanager
def locked(folder: Path) -> Iterator[str]:
    """Nobody else runs in this folder meanwhile; under this name the lock is held."""
    with (folder / LOCK).open("a+", encoding="utf-8") as file:
        if not taken(file) and not taken(file, MOMENT):  # somebody may just have looked whether it is held
            file.seek(0)
            raise RuntimeError(f"{folder} is in use by a run that has not ended (process {file.read().strip()})")
        owner = f"{os.getpid()} on {platform.node()}"
        file.truncate(0)
        file.write(f"{owner}\n")
        file.flush()
        yield owner


def taken(file: IO[str], after: float = 0.0) -> bool:
    """Whether the lock could be had."""
    time.sleep(after)
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def is_running(folder: Path) -> bool:
    """Whether a process has the lock."""
    if not (folder / LOCK).is_file():
        return False
    with (folder / LOCK).open("r", encoding="utf-8") as file:
        return not taken(file)


def is_held(folder: Path, owner: str) -> bool:
    """Whether the lock is still that of this owner; elsewhere, where locks may not be seen, by its name."""
    named = (folder / LOCK).read_text(encoding="utf-8").strip() == owner
    here = fcntl is not None and owner.endswith(f" on {platform.node()}")
    return named and (not here or is_running(folder))


@dataclass(slots=True)
class Leash:
    """Ends a chain whose run has ended.

    A process that was killed does not take with it those to which it has given its chains: they would go on, and
    write beside whoever takes up the run.
    """

    folder: Path
    owner: str
    looked: float = 0.0

    def __call__(self) -> None:
        """Between sweeps: looks now and then."""
        if time.monotonic() - self.looked < OFTEN:
            return
        self.looked = time.monotonic()
        if not is_held(self.folder, self.owner):
            raise RuntimeError(f"the run in {self.folder} has ended, and so do its chains")
