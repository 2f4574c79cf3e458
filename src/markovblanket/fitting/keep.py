"""What is kept of a run, decided before it starts: all draws in memory, statistics of them, or draws on disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from markovblanket.chains.run import Schedule, require_count
from markovblanket.chains.snapshots import Saver
from markovblanket.chains.stores import Keep, KeepDraws, KeepSummary
from markovblanket.chains.streaming import can_grow
from markovblanket.chains.zarr_store import KeepOnDisk, checksums_of
from markovblanket.contracts import Array
from markovblanket.posterior import storage
from markovblanket.posterior.observed import Observed, name_averages, name_axes, name_streams
from markovblanket.posterior.posterior import Posterior
from markovblanket.tables.names import Name

# With keep="auto", draws are kept in memory if W12 has at most so many numbers in all: two gigabytes.
MOST_NUMBERS_IN_MEMORY = 2**28
KEEP_WORDS = ("auto", "draws", "summary")


@dataclass(frozen=True, eq=False)
class Keeping:
    """How draws are kept: as asked, as decided (``"draws"``, ``"summary"``, ``"disk"``), and the named edges."""

    asked: str
    kept: str
    why: str
    named: npt.NDArray[np.intp] | None = None

    @property
    def settings(self) -> dict[str, str]:
        """The record of this decision in the settings of the posterior."""
        return {"asked": self.asked, "kept": self.kept, "why": self.why}

    def settings_in(self, folder: Path) -> dict[str, str]:
        """The record of this decision in the plan of a folder; draws inside it by a relative path."""
        inside = self.kept == "disk" and Path(self.asked).is_relative_to(folder)
        return self.settings | ({"asked": str(Path(self.asked).relative_to(folder))} if inside else {})

    @classmethod
    def of(
        cls,
        recorded: Mapping[str, str],
        folder: Path,
        named: npt.NDArray[np.intp] | None,
        elsewhere: Path | None = None,
    ) -> Keeping:
        """The decision that the plan in a folder records; draws on disk are in there, or ``elsewhere``."""
        asked = recorded["asked"]
        if recorded["kept"] == "disk":
            asked = str(_inside(folder.resolve(), asked) if elsewhere is None else elsewhere.resolve())
        return cls(asked, recorded["kept"], recorded["why"], named)

    def keep(self, draws: int, saver: Saver | None = None, grown: tuple[int, ...] = ()) -> Keep:
        """The stores of the chains; a folder for draws is claimed now, unless a run is resumed there.

        ``grown`` are the numbers of draws that the run had before it was extended.
        """
        if self.kept == "draws":
            return KeepDraws(draws)
        summary = KeepSummary(draws, self.named, grown)
        if self.kept == "summary":
            return summary
        folder = Path(self.asked)
        if saver is None or not saver.has_any:
            return KeepOnDisk(storage.claim(folder), summary)
        if saver.has_draws:
            storage.require_draws(folder)
        return KeepOnDisk(storage.reopen(folder, draws), summary)

    def can_double(self, draws: int) -> bool:
        """Whether the stores can hold twice as many draws."""
        return self.kept == "draws" or can_grow(draws, 2 * draws)

    def posterior(
        self,
        arrays: Mapping[str, Array],
        query: Sequence[Name],
        rest: Sequence[Name],
        observed: Observed,
        settings: Mapping[str, Any],
    ) -> Posterior:
        """The posterior of what the chains have kept, with named axes; on disk, it is also saved."""
        arrays = dict(arrays)
        checksums = checksums_of(arrays)
        (draws, effort), streams = name_axes(arrays, query, rest), name_streams(arrays)
        averages = name_averages(arrays, query, rest)
        posterior = Posterior(draws, effort, observed, settings, streams, averages)
        if self.kept != "disk":
            return posterior
        draws = storage.complete(Path(self.asked), posterior.datasets(), settings, checksums)
        return replace(posterior, draws=draws)


def _inside(folder: Path, asked: str) -> Path:
    """The path of draws on disk inside a run folder; a plan is not followed out of its folder."""
    path = Path(asked)
    if path.is_absolute() or not path.parts or ".." in path.parts or "\0" in asked:
        raise ValueError(
            f"the draws of the run in {folder} are outside of it, in {asked!r:.200}: a run folder is not followed "
            "there; load that folder itself, or resume with keep=... and its path"
        )
    return folder / path


def decide(
    keep: str | Path,
    named: Sequence[tuple[Any, Any]] | None,
    names: tuple[Sequence[Name], Sequence[Name]],
    chains: int,
    schedule: Schedule,
) -> Keeping:
    """How draws are kept, from the word or path that was asked for and the named edges; checks both."""
    require_count("chains", chains, 1)
    if not isinstance(keep, str | Path) or keep == "":
        raise ValueError(f"keep={keep!r}: known are {', '.join(map(repr, KEEP_WORDS))}, or pass a path")
    if keep == "draws" and named is not None:
        raise ValueError("named edges belong to keep='summary' or a path; keep='draws' keeps the draws of all")
    chosen = None if named is None else _positions(named, *names)
    if isinstance(keep, Path) or keep not in KEEP_WORDS:
        _refuse_misspelt(keep)
        storage.refuse_foreign(Path(keep))
        return Keeping(str(Path(keep).resolve()), "disk", "a path was given", chosen)
    if keep != "auto":
        return Keeping(keep, keep, "as asked", chosen)
    numbers = chains * schedule.draws * len(names[0]) * len(names[1])  # W11 is kept in any case
    kept, how = ("draws", "at most") if numbers <= MOST_NUMBERS_IN_MEMORY else ("summary", "more than")
    return Keeping(keep, kept, f"W12 has {numbers:,} numbers, {how} {MOST_NUMBERS_IN_MEMORY:,}", chosen)


def _refuse_misspelt(keep: str | Path) -> None:
    """Refuse text that is nearly one of the known words; a folder of such a name is passed as a path."""
    meant = get_close_matches(keep, KEEP_WORDS, n=1, cutoff=0.75) if isinstance(keep, str) else []
    if meant:
        raise ValueError(
            f"keep={keep!r}: did you mean {meant[0]!r}? For a folder of this name, pass pathlib.Path({keep!r})"
        )


def _positions(
    named: Sequence[tuple[Any, Any]], query: Sequence[Name], rest: Sequence[Name]
) -> npt.NDArray[np.intp]:
    """The rows and columns in ``W12`` of pairs of names (query, variable), k x 2."""
    rows, columns = ({name: k for k, name in enumerate(part)} for part in (query, rest))
    if not isinstance(named, Iterable):
        raise TypeError(f"named={named!r}: must be a list of pairs (query, variable)")
    for edge in named:
        pair = isinstance(edge, Sequence) and not isinstance(edge, str) and len(edge) == 2
        if not pair or edge[0] not in rows or edge[1] not in columns:
            raise ValueError(f"named has {edge!r}, which is not a pair of a query variable and another variable")
    return np.array([(rows[i], columns[j]) for i, j in named], dtype=np.intp).reshape(-1, 2)
