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
    """Name a temporary folder for caches if the user has no place for them that can be written.

    Compiled code goes there, too, unless it can be kept beside the sources. The folder is private and of a random
    name, since compiled code is executed. Worker processes share it.
    """
    user = _user_cache()
    if _can_be_written(user):
        return
    with suppress(OSError):  # no place at all: numba says so itself
        folder = tempfile.mkdtemp(prefix="markovblanket-")
        atexit.register(_remove, folder, os.getpid())
        for name in ("XDG_CACHE_HOME", "MPLCONFIGDIR"):  # of ArviZ and matplotlib, which fail or complain
            os.environ[name] = folder
        if not _can_be_written(Path(__file__).parent / "model" / "__pycache__"):
            _use(folder)


def _use(folder: str) -> None:
    """Have numba keep compiled code in a folder, unless another was named."""
    folder = os.environ.setdefault("NUMBA_CACHE_DIR", folder)
    if "numba" in sys.modules:  # it has read its settings already
        sys.modules["numba"].config.CACHE_DIR = folder


def _user_cache() -> Path:
    """The folder for caches of the user."""
    caches = {"darwin": "~/Library/Caches", "win32": os.environ.get("LOCALAPPDATA", "~")}
    return Path(os.path.expanduser(os.environ.get("XDG_CACHE_HOME") or caches.get(sys.platform, "~/.cache")))


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
