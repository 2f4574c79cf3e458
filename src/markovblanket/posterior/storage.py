"""A saved posterior: a folder of zarr groups, one per data set, and the settings as JSON. Nothing is unpickled."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xarray as xr

from markovblanket import _files
from markovblanket._files import DamagedError
from markovblanket.chains import zarr_format, zarr_store
from markovblanket.chains.zarr_store import ATTRIBUTES
from markovblanket.posterior import recorded

SETTINGS = "settings.json"
GROUPS = ("draws", "effort", "table", "latent")
OPTIONAL = ("streams", "averages")
DRAWS = "draws.zarr"
ON_DISK = ("W12", "W22_diagonal")
# All names in the folder of a saved posterior, and how those of drafts begin.
OURS = {SETTINGS, _files.SEAL, *(f"{name}.zarr" for name in (*GROUPS, *OPTIONAL))}
MARKED = {name.partition(".")[0] for name in (SETTINGS, _files.SEAL)}
# What this version reads and writes.
FORMAT = 7


def write(path: Path, groups: Mapping[str, xr.Dataset], settings: Mapping[str, Any]) -> None:
    """Save a posterior: written beside ``path`` and then renamed, so that one of that name is never lost."""
    path = path.resolve()
    if path.exists() and not _is_ours(path):
        raise FileExistsError(f"{path} exists and is not a saved posterior alone; choose another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=_files.aside(path), dir=path.parent) as aside:
        draft, old = Path(aside, "new"), Path(aside, "old")
        draft.mkdir()
        _write_groups(draft, groups)
        write_settings(draft, settings)
        _files.swap(draft, path, old)


def _write_groups(folder: Path, groups: Mapping[str, xr.Dataset]) -> None:
    """Write a zarr group per data set; one that is on disk already is copied, unless it has grown since."""
    for name, group in groups.items():
        source = source_of(group)
        if source is None or zarr_store.room(source) != group.sizes["draw"]:
            write_group(folder / f"{name}.zarr", group)
        else:
            shutil.copytree(source, folder / f"{name}.zarr")


def write_group(path: Path, group: xr.Dataset) -> None:
    """Write a data set as a zarr group; what is there is replaced."""
    _to_zarr(path, group, mode="w")


def _to_zarr(path: Path, group: xr.Dataset, mode: Literal["w", "a"]) -> None:
    """Write arrays as :func:`zarr_format.require_group` takes them: every block, one compressor."""
    import numcodecs

    options = {name: value for name, value in zarr_format.COMPRESSOR.items() if name != "id"}
    bare = group.drop_encoding()
    encoding = {str(name): {"compressors": [numcodecs.Blosc(**options)]} for name in bare.variables}
    bare.to_zarr(path, mode=mode, zarr_format=2, consolidated=True, encoding=encoding, write_empty_chunks=True)


def write_settings(folder: Path, settings: Mapping[str, Any], written: Mapping[str, str] | None = None) -> None:
    """Write the last files of a saved posterior, its settings and its seal, which make it whole.

    ``written`` are checksums of files from when these were written.
    """
    _files.write_json(folder / SETTINGS, {"format": FORMAT, **settings}, default=plain)
    _files.seal(folder, written)


def refuse_foreign(path: Path) -> None:
    """Refuse a path that exists and is no empty folder, saved posterior or remains of an interrupted run."""
    if not path.exists() or (
        path.is_dir() and (not any(path.iterdir()) or _is_ours(path) or _is_interrupted(path))
    ):
        return
    raise FileExistsError(f"{path} exists and is neither empty nor a saved posterior alone; choose another name")


def _is_interrupted(path: Path) -> bool:
    """Whether a folder holds the remains of an interrupted run and nothing else."""
    mark, marks = zarr_store.draft(path / DRAWS), path / DRAWS / zarr_format.MARKS
    if not _has_only(path, {*OURS, mark.name}):
        return False
    return mark.is_dir() or (marks.is_file() and _files.read_json(marks) == ATTRIBUTES)


def claim(path: Path) -> Path:
    """Empty a folder for draws that are written as they come; returns the path of the group to be made."""
    path = path.resolve()
    refuse_foreign(path)
    mark = zarr_store.draft(path / DRAWS)  # by which the rest is known as ours, should this be stopped
    mark.mkdir(parents=True, exist_ok=True)
    for entry in set(path.iterdir()) - {mark}:
        shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
    shutil.rmtree(mark)
    return path / DRAWS


def require_draws(path: Path) -> None:
    """Refuse to go on if the draws so far are gone."""
    if not (path / DRAWS).is_dir():
        raise DamagedError(f"{path / DRAWS} is not there, but the draws of this run were; put it back")


def reopen(path: Path, draws: int) -> Path:
    """The path of the draws of a run that goes on; if these must grow, their saved posterior is undone."""
    path = path.resolve()
    if (path / DRAWS).exists() and zarr_store.room(path / DRAWS) < draws:
        _unseal(path)
        for name in {*GROUPS, *OPTIONAL} - {"draws"}:
            shutil.rmtree(path / f"{name}.zarr", ignore_errors=True)
    return path / DRAWS


def _unseal(path: Path) -> None:
    """Remove the last files of a saved posterior, so that nobody takes it for whole while groups are written."""
    for name in (SETTINGS, _files.SEAL):
        (path / name).unlink(missing_ok=True)
    for draft in path.glob(_files.DRAFTS):
        draft.unlink()


def complete(
    path: Path,
    groups: Mapping[str, xr.Dataset],
    settings: Mapping[str, Any],
    checksums: Mapping[str, Mapping[str, str]],
) -> xr.Dataset:
    """Make a saved posterior of a folder of draws; ``groups`` add names and small draws to it.

    Returns the draws, opened where they are. ``checksums`` are those with which the blocks of draws were written,
    by quantity and block; whatever else an interrupted call has left is written again.
    """
    _unseal(path)
    for name in {*GROUPS, *OPTIONAL} - {"draws"}:
        shutil.rmtree(path / f"{name}.zarr", ignore_errors=True)
    zarr_store.remove_added(path / DRAWS, checksums)
    added = groups["draws"].drop_vars(list(checksums), errors="ignore").assign_attrs(ATTRIBUTES)
    _to_zarr(path / DRAWS, added, mode="a")
    _write_groups(path, {name: group for name, group in groups.items() if name != "draws"})
    written = {f"{DRAWS}/{k}/{block}": crc for k, blocks in checksums.items() for block, crc in blocks.items()}
    write_settings(path, settings, written)
    return _open_draws(path)


def _open_draws(path: Path) -> xr.Dataset:
    """Open draws that stay on disk; small ones are read into memory."""
    draws = _opened(path.resolve() / DRAWS)
    for name in set(draws.variables) - set(ON_DISK):
        draws[name].load()
    return draws


def _opened(path: Path) -> xr.Dataset:
    """Open a zarr group after checking that this package could have written it."""
    zarr_format.require_group(path)
    return xr.open_zarr(path, zarr_format=2, consolidated=True, chunks=None)


def source_of(group: xr.Dataset) -> Path | None:
    """The folder of a data set that is on disk; None of one in memory."""
    source = group.encoding.get("source")
    return None if source is None else Path(source)


def _is_ours(path: Path) -> bool:
    """Whether a folder holds a saved posterior and nothing else."""
    if not (path / SETTINGS).is_file():
        return False
    return _has_only(path, OURS)


def _has_only(path: Path, ours: Collection[str]) -> bool:
    """Whether a folder holds nothing but what this package writes under these names, or drafts of it."""
    return all(
        entry.name in ours or (entry.match(_files.DRAFTS) and entry.name.partition(".")[0] in MARKED)
        for entry in path.iterdir()
    )


def plain(value: Any) -> Any:
    """A value that JSON does not know: NumPy's numbers as Python's, anything else by its description."""
    return value.item() if isinstance(value, np.generic) else repr(value)


def read(path: Path) -> tuple[dict[str, xr.Dataset], dict[str, Any]]:
    """Read the data sets and the settings of a saved posterior, checked against its seal."""
    if not (path / SETTINGS).is_file():
        if old := _files.left_aside(path):
            raise FileNotFoundError(f"{path} was being replaced when its process was killed: it is in {old}")
        raise FileNotFoundError(f"{path} is not a saved posterior: it has no {SETTINGS}")
    settings = _files.read_json(path / SETTINGS)
    found = settings.pop("format", None) if isinstance(settings, dict) else None
    if found != FORMAT:
        raise ValueError(
            f"{path} was written by another version of markovblanket (format {found!r}, "
            f"and this one reads {FORMAT}): fit again, or load it with that version"
        )
    if absent := [name for name in GROUPS if not (path / f"{name}.zarr").is_dir()]:
        raise ValueError(f"{path} is not a whole saved posterior: {', '.join(absent)} missing")
    _files.check_seal(path)
    recorded.require(settings, recorded.SETTINGS, path / SETTINGS, whole=False)
    groups = {name: read_group(path / f"{name}.zarr") for name in GROUPS[1:]}
    groups |= {name: read_group(path / f"{name}.zarr") for name in OPTIONAL if (path / f"{name}.zarr").is_dir()}
    kept = settings.get("keep", {}).get("kept")
    groups["draws"] = _open_draws(path) if kept == "disk" else read_group(path / DRAWS)
    return groups, settings


def read_group(path: Path) -> xr.Dataset:
    """A data set, read into memory from a zarr group."""
    group = _opened(path).load()
    group.encoding.pop("source", None)  # it no longer depends on the file
    return group
