"""A process that is killed at one of its file events, and what a power cut then makes of files not yet on disk.

Events are those of opening for writing, renaming, removing and making folders below a folder. A file is on disk
once it was flushed after it was last opened for writing; a new name, or the end of one, once its folder is.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND


class Watch:
    """Counts the file events below ``folder`` in this process, and kills it at event number ``last``."""

    def __init__(self, folder: Path, last: float, record: Path) -> None:
        self.folder, self.last, self.record, self.count = str(folder), last, record, 0
        self.unflushed: dict[str, None] = {}
        self.unnamed: dict[str, Any] = {}
        self.busy = False

    def begin(self) -> None:
        """Watch from now on, until the process ends."""
        self.record.mkdir()
        self.flush, os.fsync = os.fsync, self.fsync
        sys.addaudithook(self.heard)

    def heard(self, event: str, given: tuple[Any, ...]) -> None:
        """An event, before it takes place."""
        if self.busy or event not in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir"):
            return
        self.busy = True
        try:
            self.note(event, given)
        finally:
            self.busy = False

    def note(self, event: str, given: tuple[Any, ...]) -> None:
        if event == "open" and not (isinstance(given[2], int) and given[2] & WRITING):
            return
        path = self.path(given[0], given[-1] if event in ("os.remove", "os.rmdir", "os.mkdir") else -1)
        if not path.startswith(self.folder):
            return
        self.count += 1
        if self.count >= self.last:
            self.die()
        if event == "open":
            self.unflushed[path] = None
        elif event == "os.rename":
            self.rename(path, self.path(given[1], -1))
        elif event == "os.remove":
            self.unflushed.pop(path, None)
            self.unnamed.setdefault(path, self.copy(path))

    def path(self, path: Any, folder: int) -> str:
        """The absolute path of a name, perhaps in a folder that is open."""
        if isinstance(path, int):
            return os.readlink(f"/proc/self/fd/{path}")
        near = os.readlink(f"/proc/self/fd/{folder}") if isinstance(folder, int) and folder >= 0 else os.getcwd()
        return os.path.join(near, os.fsdecode(path))

    def rename(self, source: str, target: str) -> None:
        """A name that comes back, or another content, unless the folder is flushed."""
        self.unnamed.setdefault(target, source if os.path.isdir(source) else self.copy(target))
        if source in self.unflushed:
            del self.unflushed[source]
            self.unflushed[target] = None

    def copy(self, path: str) -> str | None:
        """A copy of a file, None of what is not there or a folder."""
        if not os.path.isfile(path):
            return None
        return str(shutil.copy(path, self.record / f"{self.count}.copy"))

    def fsync(self, number: int) -> None:
        """Flush a file or the names in a folder."""
        path = os.readlink(f"/proc/self/fd/{number}")
        self.unflushed.pop(path, None)
        for name in [name for name in self.unnamed if os.path.dirname(name) == path]:
            del self.unnamed[name]

    def die(self) -> None:
        """Tell what was not on disk, and be killed."""
        found = {"unflushed": list(self.unflushed), "unnamed": self.unnamed}
        (self.record / "record.json").write_text(json.dumps(found))
        os.kill(os.getpid(), signal.SIGKILL)


def killed(
    work: Callable[[], Any], folder: Path, last: float, record: Path, before: Callable[[Watch], None] = id
) -> int:
    """Do ``work`` in a forked process that is killed at a file event; the number of events if it ended before."""
    shutil.rmtree(record, ignore_errors=True)
    child = os.fork()  # of a process with threads, which may leave a lock that nobody opens: then once more
    if child == 0:
        watch = Watch(folder, last, record)
        try:
            watch.begin()
            before(watch)
            work()
            watch.busy = True
            (record / "count").write_text(str(watch.count))
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)
    if os.WIFSIGNALED(ended(child)):
        there = (record / "record.json").is_file()
        return 0 if there else killed(work, folder, last, record, before)
    return int((record / "count").read_text())


def ended(child: int, seconds: float = 30.0) -> int:
    """The status of a child when it has ended; it is killed if it takes longer."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if (found := os.waitpid(child, os.WNOHANG))[0]:
            return found[1]
        time.sleep(0.01)
    os.kill(child, signal.SIGKILL)
    return os.waitpid(child, 0)[1]


def cut_power(record: Path, rng: np.random.Generator) -> int:
    """Do to files what a power cut may do to those that were not on disk; how many were changed."""
    found, changed = json.loads((record / "record.json").read_text()), 0
    for path in map(Path, found["unflushed"]):
        if path.is_file():
            content, how = path.read_bytes(), rng.integers(5)
            keep = int(rng.integers(len(content) + 1))
            if how == 0:
                path.unlink()
            elif how < 4:
                path.write_bytes((content[:keep], content[:keep] + bytes(len(content) - keep), b"")[how - 1])
            changed += how < 4
    for name, before in reversed(found["unnamed"].items()):
        if rng.integers(2):
            changed += undo(Path(name), before)
    return changed


def undo(name: Path, before: str | None) -> bool:
    """Undo a change of a name: a folder has its earlier name, a file its earlier content, or is not there."""
    if name.is_dir() and before is not None and not Path(before).exists():
        name.rename(before)
    elif name.is_dir() or not name.parent.is_dir():
        return False
    elif before is None:
        name.unlink(missing_ok=True)
    elif Path(before).is_file():
        shutil.copy(before, name)
    return True
