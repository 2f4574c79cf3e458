"""Where compiled code is kept: beside the sources or in the user's cache, else in a folder of this process."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from contextlib import suppress
from pathlib import Path


def require_place() -> None:
    """Name a temporary folder for compiled code if numba has no other place that it can write.

    The folder is private and of a random name, since compiled code is executed. Worker processes share it.
    """
    if "NUMBA_CACHE_DIR" in os.environ or any(_can_be_written(place) for place in _places()):
        return
    with suppress(OSError):  # no place at all: numba says so itself
        folder = tempfile.mkdtemp(prefix="markovblanket-")
        atexit.register(_remove, folder, os.getpid())
        os.environ["NUMBA_CACHE_DIR"] = folder
        if "numba" in sys.modules:  # it has read its settings already
            sys.modules["numba"].config.CACHE_DIR = folder


def _places() -> tuple[Path, Path]:
    """Where numba looks for a place by itself: beside the sources, and in the user's cache."""
    caches = {"darwin": "~/Library/Caches", "win32": os.environ.get("LOCALAPPDATA", "~")}
    user = os.environ.get("XDG_CACHE_HOME") or caches.get(sys.platform, "~/.cache")
    return Path(__file__).parent / "model" / "__pycache__", Path(os.path.expanduser(user)) / "numba"


def _can_be_written(place: Path) -> bool:
    """Whether files can be written in a folder, which is made if it is absent."""
    try:
        place.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=place).close()
    except OSError:
        return False
    return True


def _remove(folder: str, owner: int) -> None:
    """Remove the folder at the end of the process that made it."""
    if os.getpid() == owner:
        shutil.rmtree(folder, ignore_errors=True)
