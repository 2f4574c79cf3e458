"""The folder of a run that can go on: what was asked and of what data, beside the snapshots of its chains."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from markovblanket import _files
from markovblanket._files import DRAFTS, LOCK, DamagedError, locked
from markovblanket.chains.snapshots import Saver
from markovblanket.chains.streaming import can_grow
from markovblanket.posterior import storage

PLAN, TABLE, MATRIX, NOTE = "plan.json", "table.zarr", "scatter.npz", "note.json"
INSIDE = "checkpoint"
# Of a scan: what each fit has found.
FITS = "fits"
FORMAT = 2
# Seconds between snapshots, at least.
EVERY = 10.0
# What may differ: words that follow from the rest, and versions of packages other than this one.
FREE = ("keep.why", "versions.numpy", "versions.scipy", "versions.python")

Plan = dict[str, Any]


@contextmanager
def held(folder: str | Path | None) -> Iterator[Saver | None]:
    """A saver in a folder that is new or that of a run, if one is named; meanwhile nobody else may have it."""
    if folder is None:
        yield None
        return
    folder = Path(folder).resolve()
    _refuse_foreign(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder) as owner:
        for draft in (*folder.glob(DRAFTS), *(folder / FITS).glob(DRAFTS)):  # of processes that were killed
            draft.unlink(missing_ok=True)
        yield Saver(folder, EVERY, owner)


def begin(folder: Path, plan: Mapping[str, Any], write_data: Callable[[Path], None]) -> None:
    """A new run, or the same one again; another one is refused."""
    begun = read(folder)
    if begun is None:
        _prepare(folder, write_data)
    else:
        _refuse_other(folder, begun, plan)
    _write(folder, plan)


def _prepare(folder: Path, write_data: Callable[[Path], None]) -> None:
    """The data, before the plan: with that, the folder is whole."""
    shutil.rmtree(folder / TABLE, ignore_errors=True)
    (folder / MATRIX).unlink(missing_ok=True)
    write_data(folder)
    if (folder / TABLE).exists():  # a scan has none
        _files.seal(folder / TABLE)


def _write(folder: Path, plan: Mapping[str, Any]) -> None:
    """The plan, at once."""
    draft = folder / f"{PLAN}.part"
    known = json.loads(json.dumps(plan, default=storage.plain))
    text = json.dumps({"format": FORMAT, **known, "sha256": _digest(known)}, indent=2)
    draft.write_text(f"{text}\n", encoding="utf-8")
    draft.replace(folder / PLAN)


def _digest(plan: Plan) -> str:
    """By which a plan is known to be what was written."""
    return hashlib.sha256(json.dumps(plan, sort_keys=True).encode()).hexdigest()


def located(folder: str | Path) -> Path:
    """The folder itself, or the one inside it in which the command line has its checkpoints."""
    inside = Path(folder) / INSIDE
    return inside if (inside / PLAN).is_file() else Path(folder)


def read(folder: str | Path) -> Plan | None:
    """The plan of a run; None if none was begun there."""
    path = Path(folder) / PLAN
    if not path.is_file():
        return None
    try:
        plan = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as broken:
        raise DamagedError(f"{path} is damaged: {broken}") from None
    if not isinstance(plan, dict) or plan.pop("format", None) != FORMAT:
        raise ValueError(f"{folder} was written in another format than this version reads ({FORMAT})")
    if plan.pop("sha256", None) != _digest(plan):
        raise DamagedError(f"{path} is damaged: it is not what was written")
    return plan


def scanned(folder: str | Path, plan: Plan) -> str | None:
    """How far a scan is, in a line; None if the folder is that of a single run."""
    if "scan" not in plan:
        return None
    done = len(list((Path(folder) / FITS).glob("*.npz")))
    return f"{folder}: a scan, {done:,} of {plan['scan']:,} fits done; if it has stopped, the same call goes on"


def seed_of(folder: str | Path | None, seed: int | None) -> int | None:
    """The seed that was asked for; if none was, that of the run in the folder."""
    plan = read(folder) if folder is not None and seed is None else None
    return int(plan["seed"]) if plan else seed


# What is refused --------------------------------------------------------------------------------------


def refuse_no_path(folder: object) -> None:
    """Refuse what names no folder."""
    if folder is not None and (not isinstance(folder, str | Path) or folder == ""):
        raise TypeError(f"checkpoint={folder!r}: must be the path of a folder")


def _refuse_foreign(folder: Path) -> None:
    """Refuse what is neither absent, nor empty, nor the folder of a run."""
    if not folder.exists() or (folder.is_dir() and (folder / PLAN).is_file()):
        return
    # A run that was stopped before it had a plan has left no more than these; the note is that of who began it.
    ours = {LOCK, TABLE, MATRIX, NOTE, f"{PLAN}.part", *(draft.name for draft in folder.glob(DRAFTS))}
    if not folder.is_dir() or not {entry.name for entry in folder.iterdir()} <= ours:
        raise FileExistsError(f"{folder} exists and has no checkpoint; choose another folder")


def _refuse_other(folder: Path, begun: Mapping[str, Any], plan: Mapping[str, Any]) -> None:
    """Refuse to go on with another run, and say in what it differs."""
    there, here = _flat(begun), _flat(json.loads(json.dumps(plan, default=storage.plain)))
    free = {*FREE, "keep.asked"} if here["keep.kept"] != "disk" else {*FREE}
    if there.get("draws", 0) < here["draws"]:
        free.add("draws")
    names = [name for name in here | there if there.get(name) != here.get(name) and name not in free]
    if names:
        differ = "; ".join(_difference(name, there.get(name), here.get(name)) for name in names)
        raise ValueError(f"{folder} has the checkpoint of another run: {differ}. Choose another folder")
    if there["draws"] < here["draws"]:
        _require_growth(folder, here["keep.kept"], there["draws"], here["draws"])


def _require_growth(folder: Path, kept: str, draws: int, more: int) -> None:
    """Refuse more draws where there is no room for them."""
    if kept == "scan":
        raise ValueError(f"{folder}: a scan cannot grow")
    if kept != "draws" and not can_grow(draws, more):
        what = "keeps a summary" if kept == "summary" else "keeps its draws on disk, with a summary,"
        raise ValueError(
            f"{folder}: a run that {what} grows to at least twice its draws, here {2 * draws}, "
            "and not beyond 65535"
        )


def _difference(name: str, there: Any, here: Any) -> str:
    """In words."""
    return "its data are others" if name == "data.sha256" else f"{name} is {there!r} there, {here!r} here"


def _flat(plan: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Names with dots.

    >>> _flat({"prior": {"name": "Laplace"}, "draws": 10})
    {'prior.name': 'Laplace', 'draws': 10}
    """
    out: dict[str, Any] = {}
    for name, value in plan.items():
        out |= _flat(value, f"{before}{name}.") if isinstance(value, Mapping) else {f"{before}{name}": value}
    return out
