"""A posterior as a folder: a zarr group per data set, and the settings as JSON. Nothing is ever unpickled."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import xarray as xr

SETTINGS = "settings.json"
GROUPS = ("draws", "effort", "fixed")
FORMAT = 1


def write(path: Path, groups: Mapping[str, xr.Dataset], settings: Mapping[str, Any]) -> None:
    """Write beside ``path`` first and move into place, so that a folder of that name is always whole."""
    if path.exists() and not (path / SETTINGS).is_file():
        raise FileExistsError(f"{path} exists and is not a saved posterior; choose another name")
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        for name, group in groups.items():
            group.to_zarr(draft / f"{name}.zarr", mode="w", zarr_format=2, consolidated=True)
        (draft / SETTINGS).write_text(json.dumps({"format": FORMAT, **settings}, indent=2) + "\n")
        shutil.rmtree(path, ignore_errors=True)
        draft.rename(path)
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def read(path: Path) -> tuple[dict[str, xr.Dataset], dict[str, Any]]:
    """The data sets and settings of a saved posterior."""
    if not (path / SETTINGS).is_file():
        raise FileNotFoundError(f"{path} is not a saved posterior: it has no {SETTINGS}")
    settings = json.loads((path / SETTINGS).read_text())
    if settings.pop("format", None) != FORMAT:
        raise ValueError(f"{path} was written in another format than this version reads ({FORMAT})")
    groups = {name: xr.open_zarr(path / f"{name}.zarr", consolidated=True, chunks=None).load() for name in GROUPS}
    return groups, settings
