"""Files of a run: the one atomic writer, checksums of whole folders, locks, and the error of a damaged file.

Whatever the package writes goes through :func:`writing`, so a file is there whole or not at all, whenever the
process or the machine stops: a draft of a random name is written, flushed to disk and renamed, and the folder is
flushed after that. Folders that a library fills (zarr groups) are flushed by :func:`flush` and sealed by
:func:`seal`, which records the size and hash of every file: a zarr group has no checksums of its own, and reads a
chunk that is absent as missing values.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

try:
    import fcntl
except ImportError:  # Windows: nothing keeps two runs out of one folder there
    fcntl = None  # type: ignore[assignment]

# Drafts of files; what a killed process leaves of them is removed when its run is taken up.
DRAFTS = "*.part"
LOCK, SEAL = "lock", "seal.json"
# Seconds until a lock that another process may only have checked is tried again; seconds between a chain's checks.
RETRY_AFTER, CHECK_EVERY = 0.05, 1.0


class DamagedError(ValueError):
    """A file is not what was written."""


# Writing --------------------------------------------------------------------------------------------------


@contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """Open a draft that takes the name ``path`` once it is whole and on disk; a failure leaves no trace."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        with os.fdopen(os.open(draft, flags, 0o666), "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
        flush_folder(path.parent)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Write a text file, in UTF-8 with plain line ends, at once."""
    with writing(path) as file:
        file.write(text.encode())


def write_json(path: Path, value: Any, *, default: Callable[[Any], Any] = str) -> None:
    """Write a JSON file at once; what JSON does not know is written as ``default`` makes it."""
    write_text(path, json.dumps(value, indent=2, default=default, ensure_ascii=False) + "\n")


def flush_folder(folder: Path) -> None:
    """Flush the names in a folder to disk, where folders can be opened for that."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def flush(folder: Path) -> None:
    """Flush every file and folder below ``folder`` to disk, for files that a library wrote."""
    for path in folder.rglob("*"):
        if path.is_dir():
            flush_folder(path)
        else:
            with path.open("rb") as file:
                os.fsync(file.fileno())
    flush_folder(folder)


def swap(new: Path, path: Path, old: Path) -> None:
    """Give a folder the name ``path`` by two renames; what was there comes back if the second one fails."""
    try:
        if path.exists():
            path.rename(old)
        new.rename(path)
    except BaseException:
        if old.exists() and not path.exists():
            old.rename(path)
        raise
    flush_folder(path.parent)


# Checksums ------------------------------------------------------------------------------------------------


def seal(folder: Path, large: Callable[[str], bool] = lambda name: False) -> None:
    """Flush a folder and record all its files; of those that are ``large``, only their sizes."""
    flush(folder)
    entries = {name: [path.stat().st_size, None if large(name) else sha256(path)] for name, path in _files(folder)}
    write_json(folder / SEAL, entries)


def check_seal(folder: Path) -> None:
    """Refuse a folder in which a file is not what was written, by the file's name."""
    if not (folder / SEAL).is_file():
        raise DamagedError(f"{folder} is damaged: it has no {SEAL}")
    try:
        read = json.loads((folder / SEAL).read_text(encoding="utf-8"))
        entries = {str(name): (int(size), digest) for name, (size, digest) in read.items()}
    except (ValueError, TypeError, AttributeError):
        raise DamagedError(f"{folder / SEAL} is damaged") from None
    for name, (size, digest) in entries.items():
        path = folder / name
        whole = path.is_file() and path.stat().st_size == size
        if not whole or (digest is not None and sha256(path) != digest):
            raise DamagedError(f"{path} is damaged: it is not what was written")


def sha256(path: Path) -> str:
    """SHA-256 of the contents of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_text(text: str) -> str:
    """SHA-256 of a text, encoded in UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()


def _files(folder: Path) -> list[tuple[str, Path]]:
    """All files below a folder but its seal, with their names relative to it."""
    found = (path for path in folder.rglob("*") if path.is_file() and path != folder / SEAL)
    return sorted((path.relative_to(folder).as_posix(), path) for path in found)


# Locks ----------------------------------------------------------------------------------------------------
# A few lines of flock rather than a library: such a lock ends with its process, however that ends, and names it.


@contextmanager
def locked(folder: Path) -> Iterator[str]:
    """Hold the lock of a folder, so that no other process runs there; yields the name of its owner."""
    with (folder / LOCK).open("a+", encoding="utf-8") as file:
        # Another process may hold the lock for a moment while checking it.
        if not _lock(file) and not _lock(file, RETRY_AFTER):
            file.seek(0)
            raise RuntimeError(f"{folder} is in use by a run that has not ended (process {file.read().strip()})")
        owner = f"{os.getpid()} on {platform.node()}"
        file.truncate(0)
        file.write(f"{owner}\n")
        file.flush()
        yield owner


def is_running(folder: Path) -> bool:
    """Whether a process holds the lock of a folder."""
    if not (folder / LOCK).is_file():
        return False
    with (folder / LOCK).open("r", encoding="utf-8") as file:
        return not _lock(file)


def _lock(file: IO[str], after: float = 0.0) -> bool:
    """Try to take a lock after some seconds; whether that worked."""
    time.sleep(after)
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_held(folder: Path, owner: str) -> bool:
    """Whether an owner still holds the lock; on another machine, where locks may not be seen, by its name."""
    named = (folder / LOCK).read_text(encoding="utf-8").strip() == owner
    here = fcntl is not None and owner.endswith(f" on {platform.node()}")
    return named and (not here or is_running(folder))


@dataclass(slots=True)
class OwnerCheck:
    """Ends a chain whose run has lost its folder.

    Worker processes outlive a parent that was killed; without this check they would go on writing beside the
    process that resumes the run.
    """

    folder: Path
    owner: str
    checked: float = 0.0

    def __call__(self) -> None:
        """Check now and then, between sweeps."""
        if time.monotonic() - self.checked < CHECK_EVERY:
            return
        self.checked = time.monotonic()
        if not _is_held(self.folder, self.owner):
            raise RuntimeError(f"the run in {self.folder} has ended, and so do its chains")
