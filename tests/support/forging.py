"""Run folders that somebody has altered, with checksums that fit what is in them now."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np

from markovblanket import _files
from markovblanket.chains import snapshots
from markovblanket.fitting import run_folder


class Marker:
    """Writes a file if it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.write_text, (self.path, "executed")


def plan_of(run: Path) -> dict[str, Any]:
    """The plan in a folder as it stands there, without its checksum."""
    plan = json.loads((run / "plan.json").read_text())
    del plan["sha256"]
    return plan


def replan(run: Path, plan: dict[str, Any]) -> None:
    """Write a plan with the checksum that fits it, and make all snapshots and the data those of that plan."""
    bare = {name: value for name, value in plan.items() if name != "format"}
    for file in run.glob("*.npz"):
        _, _, rest = str(snapshots.read(file)["mark"]).partition(" ")
        resnap(file, {"mark": f"{run_folder.identity(bare)} {rest}"})
    whole = plan | {"sha256": run_folder._digest(bare)}
    (run / "plan.json").write_text(json.dumps(whole))


def reseal(folder: Path) -> None:
    """Write the checksums that fit the files of a saved posterior."""
    files = {
        p.relative_to(folder).as_posix(): p for p in folder.rglob("*") if p.is_file() and p.name != "seal.json"
    }
    entries = {name: [path.stat().st_size, _files.sha256(path)] for name, path in files.items()}
    (folder / "seal.json").write_text(json.dumps(entries))


def resnap(path: Path, changes: dict[str, Any]) -> None:
    """Replace arrays of a snapshot; None removes one. Its mark stays."""
    record = snapshots.read(path)
    record |= {name: np.asarray(value) for name, value in changes.items() if value is not None}
    with path.open("wb") as file:
        np.savez(file, **{name: array for name, array in record.items() if changes.get(name, 0) is not None})


def trap(array: Path, marker: Path) -> None:
    """Make an array of Python objects whose filter unpickles them, and whose only block writes a marker."""
    known = json.loads((array / ".zarray").read_text())
    known |= {"dtype": "|O", "filters": [{"id": "pickle", "protocol": 5}], "compressor": None, "fill_value": None}
    (array / ".zarray").write_text(json.dumps(known))
    metadata = array.parent / ".zmetadata"
    whole = json.loads(metadata.read_text())
    whole["metadata"][f"{array.name}/.zarray"] = known
    metadata.write_text(json.dumps(whole))
    for block in array.iterdir():
        if not block.name.startswith("."):
            block.write_bytes(pickle.dumps(Marker(marker)))


def contents(folder: Path) -> dict[str, Any]:
    """All there is below a folder: files with contents and times, links with their ends."""

    def there(path: Path) -> Any:
        if path.is_symlink():
            return path.readlink()
        return None if path.is_dir() else (path.read_bytes(), path.stat().st_mtime_ns)

    return {path.relative_to(folder).as_posix(): there(path) for path in sorted(folder.rglob("*"))}
