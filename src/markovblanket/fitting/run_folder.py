"""The folder of a run that can be resumed: every path in it, its plan, its lock, and what it refuses.

A folder holds the plan (what was asked, of which data), a copy of the data, and a snapshot of every chain; that of
a scan holds a file for each fit instead. Everything is written by :mod:`markovblanket._files`. As folders are
copied and shared, the plan has a checksum, and every snapshot the identity of its run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from markovblanket._files import (
    DRAFTS,
    LOCK,
    OWNER,
    DamagedError,
    is_running,
    locked,
    owner_of,
    plain_files,
    read_json,
    sha256_of_text,
    write_text,
)
from markovblanket.chains.snapshots import Saver
from markovblanket.chains.streaming import can_grow
from markovblanket.posterior import recorded
from markovblanket.posterior.recorded import SETTINGS, Schema
from markovblanket.posterior.storage import plain

Plan = dict[str, Any]

# The format that this version reads and writes; folders of other formats are refused.
FORMAT = 5
SECONDS_BETWEEN_SNAPSHOTS = 10.0
# The name of a run's folder inside the output folder of the command line.
CHECKPOINT = "checkpoint"
# Settings that may differ when a run is resumed: text that follows from the rest, and versions of other packages.
MAY_DIFFER = ("grown", "keep.why", "versions.numpy", "versions.scipy", "versions.python")
# A run has at most so many chains, and a scan at most so many fits.
MOST_CHAINS, MOST_FITS = 2**16, 2**31
# What the plans of all runs have, and what else those of a single run and of a scan have.
COMMON: Schema = {
    **{name: SETTINGS[name] for name in ("data", "margins", "prior", "solver", "versions")},
    **{name: SETTINGS[name] for name in ("warmup", "draws", "thin", "seed")},
    "chains": recorded.whole(1, MOST_CHAINS),
    "variables": recorded.TEXT,
    "grown": recorded.COUNTS,
}
ONE_RUN: Schema = {
    **COMMON,
    "query": recorded.NAMES,
    "kinds": recorded.ANYTHING,
    "keep": {"asked": recorded.TEXT, "kept": recorded.one_of("draws", "summary", "disk"), "why": recorded.TEXT},
    "candidates": {"asked": recorded.either(recorded.one_of("auto"), recorded.whole())},
    "named": recorded.either(recorded.NOTHING, recorded.PAIRS),
    "scouting": recorded.whole(),
}
SCAN: Schema = {
    **COMMON,
    "queries": recorded.TEXT,
    "scan": recorded.whole(1, MOST_FITS),
    "keep": {"kept": recorded.one_of("scan")},
}


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, and all paths in it."""

    path: Path

    @classmethod
    def at(cls, path: str | Path) -> RunFolder:
        """The run in that folder, or in the ``checkpoint`` inside an output folder of the command line."""
        inside = Path(path) / CHECKPOINT
        if inside.is_symlink():
            raise DamagedError(f"{inside} is a link: only plain files and folders are read; name where it leads")
        return cls(inside) if cls(inside).plan_file.is_file() else cls(Path(path))

    # Paths ------------------------------------------------------------------------------------------------

    @property
    def plan_file(self) -> Path:
        """The path of the plan, which has a checksum."""
        return self.path / "plan.json"

    @property
    def question_file(self) -> Path:
        """The path of the question of the command line, which is written before the plan."""
        return self.path / "note.json"

    @property
    def table(self) -> Path:
        """The path of the copy of the table, which carries the identity of the run."""
        return self.path / "table.npz"

    @property
    def matrix(self) -> Path:
        """The path of the copy of the scatter matrix, if one was given."""
        return self.path / "scatter.npz"

    @property
    def fits(self) -> Path:
        """The folder with the results of a scan, a file per fit."""
        return self.path / "fits"

    # The plan ---------------------------------------------------------------------------------------------

    def plan(self) -> Plan | None:
        """The plan of the run, checked; None if no run was begun here."""
        if not self.plan_file.is_file():
            return None
        plain_files(self.path)
        plan = read_json(self.plan_file)
        found = plan.pop("format", None) if isinstance(plan, dict) else None
        if found != FORMAT:
            raise ValueError(
                f"{self.path} was written by another version of markovblanket (format {found!r}, "
                f"and this one reads {FORMAT}): fit again, or continue with that version"
            )
        if plan.pop("sha256", None) != _digest(plan):
            raise DamagedError(f"{self.plan_file} is damaged: its checksum does not match")
        recorded.require(plan, SCAN if "scan" in plan else ONE_RUN, self.plan_file)
        return dict(plan)

    def plan_of_one_run(self) -> Plan:
        """The plan of a single run; refuses a folder without a plan, and the folder of a scan."""
        plan = self.plan()
        if plan is None:
            raise FileNotFoundError(f"{self.path} has no checkpoint: there is no {self.plan_file.name}")
        if progress := self.scan_progress(plan):
            raise ValueError(progress)
        return plan

    def scan_progress(self, plan: Plan) -> str | None:
        """The progress of a scan as a sentence; None if the folder is that of a single run."""
        if "scan" not in plan:
            return None
        done, wanted = len(list(self.fits.glob("*.npz"))), plan["scan"]
        return (
            f"{self.path}: a scan, {done:,} of {wanted:,} fits done; if it has stopped, the same call continues it"
        )

    def begin(self, plan: Mapping[str, Any], write_data: Callable[[RunFolder, str], None]) -> Saver:
        """Begin a run here, or resume the same run, and return what saves its chains; another run is refused.

        The data are written before the plan, so that a folder with a plan is complete. Of a run that is extended,
        the plan records the earlier numbers of draws.
        """
        begun, plan = self.plan(), _as_json(plan)
        if begun is None:
            self.matrix.unlink(missing_ok=True)  # of an unfinished start
            write_data(self, data_mark(plan))
        else:
            _refuse_other(self.path, begun, plan)
            plan["grown"] = begun["grown"] + ([begun["draws"]] if begun["draws"] < plan["draws"] else [])
        self._write_plan(plan)
        return self.saver(plan)

    def _write_plan(self, plan: Plan) -> None:
        """Write the plan with its format and checksum."""
        whole = {"format": FORMAT, **plan, "sha256": _digest(plan)}
        write_text(self.plan_file, json.dumps(whole, indent=2) + "\n")

    @property
    def grown(self) -> tuple[int, ...]:
        """The numbers of draws that the run had before it was extended."""
        plan = self.plan()
        return () if plan is None else tuple(plan["grown"])

    # The chains -------------------------------------------------------------------------------------------

    @property
    def is_running(self) -> bool:
        """Whether a process is running in this folder."""
        return is_running(self.path)

    def saver(self, plan: Plan) -> Saver:
        """What reads the snapshots of a plan's run, and writes them while this process has the lock."""
        owner = owner_of(self.path) if self.is_running else None
        return Saver(self.path, SECONDS_BETWEEN_SNAPSHOTS, owner, identity(plan))

    @contextmanager
    def held(self) -> Iterator[RunFolder]:
        """Hold the lock of this folder, which is created if it is absent, so that no other process runs in it."""
        folder = RunFolder(self.path.resolve())
        folder.refuse_foreign()
        folder.path.mkdir(parents=True, exist_ok=True)
        with locked(folder.path):
            for draft in (
                *folder.path.glob(DRAFTS),
                *folder.fits.glob(DRAFTS),
            ):  # left behind by processes that were killed
                draft.unlink(missing_ok=True)
            yield folder

    def refuse_foreign(self) -> None:
        """Refuse a folder that is neither absent, nor empty, nor that of a run."""
        if not self.path.exists() or (self.path.is_dir() and self.plan_file.is_file()):
            return
        # A run that was stopped before it had a plan leaves only these.
        drafts = {draft.name for draft in self.path.glob(DRAFTS)}
        ours = {LOCK, OWNER, self.table.name, self.matrix.name, self.question_file.name, *drafts}
        if not self.path.is_dir() or not {entry.name for entry in self.path.iterdir()} <= ours:
            raise FileExistsError(f"{self.path} exists and has no checkpoint; choose another folder")


def seed_in(folder: str | Path | None, seed: int | None) -> int | None:
    """The seed that was asked for; if none was, that of the run in the folder."""
    plan = RunFolder(Path(folder)).plan() if folder is not None and seed is None else None
    return int(plan["seed"]) if plan else seed


def require_path(folder: object) -> None:
    """Refuse a ``checkpoint`` that is not the path of a folder."""
    if folder is not None and (not isinstance(folder, str | Path) or folder == ""):
        raise TypeError(f"checkpoint={folder!r}: must be the path of a folder")


def identity(plan: Plan) -> str:
    """A hash of all settings on which the numbers of a run depend, which every snapshot of it carries.

    The number of draws is not among them, as a run may be extended.
    """
    free = {*MAY_DIFFER, "keep.asked", "draws"}
    return sha256_of_text(repr(sorted((name, value) for name, value in _flat(plan).items() if name not in free)))


def data_mark(plan: Plan) -> str:
    """What the copy of the data of a run carries."""
    return f"{identity(plan)} data"


# Comparing plans --------------------------------------------------------------------------------------------


def _as_json(plan: Mapping[str, Any]) -> Plan:
    """A plan as it is read back from its file."""
    made: Plan = json.loads(json.dumps(plan, default=plain))
    return made


def _digest(plan: Plan) -> str:
    """SHA-256 of a plan, whatever the order of its entries."""
    return sha256_of_text(json.dumps(plan, sort_keys=True))


def _refuse_other(folder: Path, begun: Plan, plan: Plan) -> None:
    """Refuse to continue a run with another plan, and say how the plans differ."""
    there, here = _flat(begun), _flat(plan)
    free = {*MAY_DIFFER, "keep.asked"} if here["keep.kept"] != "disk" else {*MAY_DIFFER}
    if there.get("draws", 0) < here["draws"]:
        free.add("draws")
    names = [name for name in here | there if there.get(name) != here.get(name) and name not in free]
    if names:
        differ = "; ".join(_difference(name, there.get(name), here.get(name)) for name in names)
        raise ValueError(f"{folder} has the checkpoint of another run: {differ}. Choose another folder")
    if there["draws"] < here["draws"]:
        _require_growth(folder, here["keep.kept"], there["draws"], here["draws"])


def _require_growth(folder: Path, kept: str, draws: int, more: int) -> None:
    """Refuse more draws if the stores of a run cannot hold them."""
    if kept == "scan":
        raise ValueError(f"{folder}: a scan cannot be extended with more draws")
    if kept != "draws" and not can_grow(draws, more):
        what = "keeps a summary" if kept == "summary" else "keeps its draws on disk, with a summary,"
        raise ValueError(
            f"{folder}: a run that {what} can only grow to at least twice its draws, here {2 * draws}, "
            "and at most 65535"
        )


def _difference(name: str, there: Any, here: Any) -> str:
    """Describe the difference of one setting between two plans."""
    return "its data differ" if name == "data.sha256" else f"{name} is {there!r} there, {here!r} here"


def _flat(plan: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """A nested plan as one level, its names joined by dots.

    >>> _flat({"prior": {"name": "Laplace"}, "draws": 10})
    {'prior.name': 'Laplace', 'draws': 10}
    """
    out: dict[str, Any] = {}
    for name, value in plan.items():
        out |= _flat(value, f"{before}{name}.") if isinstance(value, Mapping) else {f"{before}{name}": value}
    return out
