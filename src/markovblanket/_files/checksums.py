"""The seal of a folder: sizes and hashes of its files, by which it is known that they are what was written.

Files of a zarr group have no checksums of their own, and one that is absent is read as zeros.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from markovblanket.chains.snapshots import DamagedError

SEAL = "seal.json"


def write(folder: Path, large: Callable[[str], bool] = lambda name: False) -> None:
    """Of all files as they are now; of those that are ``large``, too large to be read whole, only their sizes."""
    entries = {name: [path.stat().st_size, None if large(name) else digest(path)] for name, path in files(folder)}
    (folder / SEAL).unlink(missing_ok=True)  # it may be the file of another folder, too
    (folder / SEAL).write_text(json.dumps(entries, indent=0), encoding="utf-8")


def check(folder: Path) -> None:
    """Refuse a folder with a file that is not what was written, by its name."""
    if not (folder / SEAL).is_file():
        raise DamagedError(f"{folder} is damaged: it has no {SEAL}")
    try:
        entries = {str(name): (int(size), what) for name, (size, what) in json.loads(read(folder)).items()}
    except (ValueError, TypeError, AttributeError):
        raise DamagedError(f"{folder / SEAL} is damaged") from None
    for name, (size, what) in entries.items():
        path = folder / name
        whole = path.is_file() and path.stat().st_size == size
        if not whole or (what is not None and digest(path) != what):
            raise DamagedError(f"{path} is damaged: it is not what was written")


def read(folder: Path) -> str:
    """The seal's own text."""
    return (folder / SEAL).read_text(encoding="utf-8")


def files(folder: Path) -> list[tuple[str, Path]]:
    """All files under a folder but the seal, by their names from there."""
    found = (path for path in folder.rglob("*") if path.is_file() and path != folder / SEAL)
    return sorted((path.relative_to(folder).as_posix(), path) for path in found)


def digest(path: Path) -> str:
    """By which a file is known again."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
