"""A posterior as a folder: a zarr group per data set, and the settings as JSON. Nothing is ever unpickled."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

SETTINGS = "settings.json"
GROUPS = ("draws", "effort", "table", "latent")
FORMAT = 2


def write(path: Path, groups: Mapping[str, xr.Dataset], settings: Mapping[str, Any]) -> None:
    """Write beside ``path``, then swap: whatever happens, a whole posterior of that name is never lost."""
    path = path.resolve()
    if path.exists() and not is_ours(path):
        raise FileExistsError(f"{path} exists and is not a saved posterior alone; choose another name")
    text = json.dumps({"format": FORMAT, **settings}, indent=2, default=plain) + "\n"
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{path.name}-", dir=path.parent) as aside:
        draft, old = Path(aside, "new"), Path(aside, "old")
        draft.mkdir()
        for name, group in groups.items():
            group.to_zarr(draft / f"{name}.zarr", mode="w", zarr_format=2, consolidated=True)
        (draft / SETTINGS).write_text(text)
        if path.exists():
            path.rename(old)
        draft.rename(path)


def is_ours(path: Path) -> bool:
    """Whether a folder holds a saved posterior and nothing else."""
    if not (path / SETTINGS).is_file():
        return False
    return all(entry.name == SETTINGS or entry.name.endswith(".zarr") for entry in path.iterdir())


def plain(value: Any) -> Any:
    """NumPy's numbers as Python's, anything else by its description."""
    return value.item() if isinstance(value, np.generic) else repr(value)


def read(path: Path) -> tuple[dict[str, xr.Dataset], dict[str, Any]]:
    """The data sets and settings of a saved posterior."""
    if not (path / SETTINGS).is_file():
        raise FileNotFoundError(f"{path} is not a saved posterior: it has no {SETTINGS}")
    try:
        settings = json.loads((path / SETTINGS).read_text())
    except json.JSONDecodeError as broken:
        raise ValueError(f"{path / SETTINGS} is damaged: {broken}") from None
    if not isinstance(settings, dict) or settings.pop("format", None) != FORMAT:
        raise ValueError(f"{path} was written in another format than this version reads ({FORMAT})")
    if absent := [name for name in GROUPS if not (path / f"{name}.zarr").is_dir()]:
        raise ValueError(f"{path} is not a whole saved posterior: {', '.join(absent)} missing")
    groups = {name: xr.open_zarr(path / f"{name}.zarr", consolidated=True, chunks=None).load() for name in GROUPS}
    return groups, settings
