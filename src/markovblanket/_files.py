"""Files of a run: the one atomic writer, plain files only, checksums of whole folders, locks, damage errors.

Whatever the package writes goes through :func:`writing`, so a file is there whole or not at all, whenever the
process or the machine stops: a draft of a random name is written, flushed to disk and renamed, and the folder is
flushed after that. Folders that a library fills (zarr groups) are flushed by :func:`flush` and sealed by
:func:`seal`, which records the size and a checksum of every file. Folders may come from anybody, so links and
other special files in them are refused before anything is opened.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import platform
import secrets
import shutil
import stat
import time
import warnings
import zlib
from collections.abc import Callable, Iterator, Mapping
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
LOCK, OWNER, SEAL = "lock", "owner", "seal.json"
# Seconds until a lock that another process may only have checked is tried again; seconds between a chain's checks.
RETRY_AFTER, CHECK_EVERY = 0.05, 1.0
# What a file system that has no locks answers.
NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL, errno.EBADF)
# Flags to open a file that may be a trap: no link is followed, and a pipe does not block.
WARY = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)


class DamagedError(ValueError):
    """A file is not what was written."""


@contextmanager
def told_as_damage(what: Path) -> Iterator[None]:
    """Turn what contents that do not fit together make of their readers into the error of a damaged file."""
    try:
        yield
    except (DamagedError, FileNotFoundError):
        raise
    except (ValueError, TypeError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        raise DamagedError(f"{what} is damaged: its parts do not fit together ({error})") from None
    except MemoryError:
        raise DamagedError(f"{what} cannot be read: it says that it is larger than the memory") from None


# Writing --------------------------------------------------------------------------------------------------


@contextmanager
def writing(path: Path) -> Iterator[IO[bytes]]:
    """Open a draft that takes the name ``path`` once it is whole and on disk; a failure leaves no trace."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}.part")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | WARY, 0o666), "wb") as file:
            yield file
            file.flush()
            _to_disk(file.fileno())
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


def _to_disk(descriptor: int) -> None:
    """Flush a file to the disk itself; fsync leaves it in the cache of the disk on macOS."""
    if fcntl is not None and hasattr(fcntl, "F_FULLFSYNC"):
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


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
            with path.open("r+b") as file:  # Windows flushes no file that is only read
                _to_disk(file.fileno())
    flush_folder(folder)


def swap(new: Path, path: Path, old: Path) -> None:
    """Give a folder the name ``path`` by two renames; what was there comes back if the second one fails.

    Should the process be killed between them, :func:`restore` finds ``old``, whose folder is beside ``path`` and
    has a name by :func:`aside`.
    """
    try:
        if path.exists():
            path.rename(old)
        new.rename(path)
    except BaseException:
        if old.exists() and not path.exists():
            old.rename(path)
        raise
    flush_folder(path.parent)


def aside(path: Path) -> str:
    """How the names of temporary folders beside ``path`` begin, from and to which :func:`swap` renames."""
    return f".{path.name}-"


def left_aside(path: Path) -> Path | None:
    """The folder that had the name ``path`` until a process was killed while it was replaced, if there is one."""
    if os.path.lexists(path) or not path.parent.is_dir():
        return None
    found = [entry / "old" for entry in path.parent.iterdir() if entry.name.startswith(aside(path))]
    return next((old for old in sorted(found) if old.is_dir() and not old.is_symlink()), None)


def restore(path: Path) -> None:
    """Give a folder its name again that a killed process was replacing."""
    if (old := left_aside(path)) is not None:
        old.rename(path)
        flush_folder(path.parent)
        shutil.rmtree(old.parent, ignore_errors=True)


# Reading --------------------------------------------------------------------------------------------------


def plain_files(folder: Path) -> dict[str, Path]:
    """All files below a folder by their names relative to it; a link or another special file is refused."""
    found: dict[str, Path] = {}
    waiting = [folder]
    while waiting:
        for path in sorted(waiting.pop().iterdir()):
            if require_plain(path):
                waiting.append(path)
            else:
                found[path.relative_to(folder).as_posix()] = path
    return found


def require_plain(path: Path) -> bool:
    """Refuse a link or another special file; whether the path is a folder."""
    mode = path.lstat().st_mode
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        what = "a link" if stat.S_ISLNK(mode) else "a special file"
        raise DamagedError(f"{path} is {what}: only plain files and folders are read; put a copy in its place")
    return stat.S_ISDIR(mode)


def read_json(path: Path) -> Any:
    """What a JSON file holds; refused if it is no plain file or no JSON."""
    try:
        if require_plain(path):
            raise DamagedError(f"{path} is a folder, and should be a file")
        return json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as broken:
        raise DamagedError(f"{path} is damaged: {broken}") from None


# Checksums ------------------------------------------------------------------------------------------------


def seal(folder: Path, written: Mapping[str, str] | None = None) -> None:
    """Flush a folder and record sizes and checksums of all its files; of some, those that they were written with.

    A file that has changed since it was written is not sealed.
    """
    flush(folder)
    known = {} if written is None else written
    files = {name: path for name, path in plain_files(folder).items() if name != SEAL}
    _check(folder, known, files)
    entries = {name: [path.stat().st_size, known.get(name) or sha256(path)] for name, path in files.items()}
    write_json(folder / SEAL, entries)


def check_seal(folder: Path) -> None:
    """Refuse a folder with a file that is not what was written, that is absent, or that was added, by its name."""
    if not os.path.lexists(folder / SEAL):
        raise DamagedError(f"{folder} is damaged: it has no {SEAL}")
    files, read = plain_files(folder), read_json(folder / SEAL)
    try:
        sizes = {str(name): int(size) for name, (size, _) in read.items()}
        checksums = {str(name): str(checksum) for name, (_, checksum) in read.items()}
    except (ValueError, TypeError, AttributeError):
        raise DamagedError(f"{folder / SEAL} is damaged") from None
    if added := set(files) - set(sizes) - {SEAL}:
        raise DamagedError(f"{folder / min(added)} was not written with the rest of {folder}; remove it")
    for name, size in sizes.items():
        if name not in files or files[name].stat().st_size != size:
            raise DamagedError(f"{folder / name} is damaged: it is not what was written")
    _check(folder, checksums, files)


def _check(folder: Path, checksums: Mapping[str, str], files: Mapping[str, Path]) -> None:
    """Refuse files that do not have these checksums."""
    for name, checksum in checksums.items():
        if name not in files or checksum_of(files[name], checksum) != checksum:
            raise DamagedError(f"{folder / name} is damaged: it is not what was written")


def checksum_of(path: Path, like: str) -> str:
    """The checksum of a file, of the same kind as another one: a CRC, or SHA-256."""
    return crc32_text(zlib.crc32(path.read_bytes())) if like.startswith("crc32 ") else sha256(path)


def crc32_text(checksum: int) -> str:
    """A CRC-32 as a seal records it.

    >>> crc32_text(zlib.crc32(b"draws"))
    'crc32 8bc12027'
    """
    return f"crc32 {checksum:08x}"


def sha256(path: Path) -> str:
    """SHA-256 of the contents of a file."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of_text(text: str) -> str:
    """SHA-256 of a text, encoded in UTF-8."""
    return hashlib.sha256(text.encode()).hexdigest()


# Locks ----------------------------------------------------------------------------------------------------
# A few lines of flock rather than a library: such a lock ends with its process, however that ends. The name of its
# owner is in a file beside it, since nothing is ever written over. Where a file system has no locks, that file and
# the list of processes take their place.


@contextmanager
def locked(folder: Path) -> Iterator[str]:
    """Hold the lock of a folder, so that no other process runs there; yields the name of its owner."""
    with _lock_file(folder, os.O_RDWR | os.O_CREAT) as file:
        _take(file, folder)
        if not _has_locks():  # Windows renames no folder in which a file is open
            file.close()
        owner = f"{os.getpid()} on {platform.node()}"
        write_text(folder / OWNER, f"{owner}\n")
        try:
            yield owner
        finally:
            with suppress(OSError):  # the folder may have been replaced meanwhile
                (folder / OWNER).unlink(missing_ok=True)


def _take(file: IO[str], folder: Path) -> None:
    """Take the lock of a folder; refused if another process has it."""
    free = _flock(file)
    if free is False:  # another process may hold the lock for a moment while checking it
        time.sleep(RETRY_AFTER)
        free = _flock(file)
    if free is None:
        warnings.warn(f"the file system of {folder} has no locks: run on one machine only there", stacklevel=5)
        free = not _is_alive(owner := owner_of(folder)) or owner.startswith(f"{os.getpid()} ")
    if not free:
        raise RuntimeError(f"{folder} is in use by a run that has not ended (process {owner_of(folder)})")


def is_running(folder: Path) -> bool:
    """Whether a process holds the lock of a folder."""
    if not os.path.lexists(folder / LOCK):
        return False
    with _lock_file(folder, os.O_RDONLY) as file:
        free = _flock(file)
    return _is_alive(owner_of(folder)) if free is None else not free


def owner_of(folder: Path) -> str:
    """The process that has the lock of a folder, or had it when it was killed; empty if there is none."""
    try:
        require_plain(folder / OWNER)
        return (folder / OWNER).read_text(encoding="utf-8", errors="replace").strip()
    except FileNotFoundError:
        return ""


def _lock_file(folder: Path, flags: int) -> IO[str]:
    """Open the lock of a folder, which may be no link."""
    if os.path.lexists(folder / LOCK):
        require_plain(folder / LOCK)
    return os.fdopen(os.open(folder / LOCK, flags | WARY, 0o666), "r")


def _has_locks() -> bool:
    """Whether Python has locks on this platform."""
    return fcntl is not None


def _flock(file: IO[str]) -> bool | None:
    """Try to take a lock, and return whether that worked; None if the file system has no locks."""
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno not in NO_LOCKS:
            raise
        return None
    return True


def _is_alive(owner: str) -> bool:
    """Whether a process of that name is on this machine."""
    number, _, machine = owner.partition(" on ")
    if machine != platform.node() or not number.isdecimal() or not int(number):
        return False
    try:
        os.kill(int(number), 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def _is_held(folder: Path, owner: str) -> bool:
    """Whether an owner still holds the lock; on another machine, where locks may not be seen, by its name."""
    here = fcntl is not None and owner.endswith(f" on {platform.node()}")
    return owner_of(folder) == owner and (not here or is_running(folder))


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
