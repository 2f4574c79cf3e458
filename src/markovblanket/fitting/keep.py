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
from markovblanket.chains.zarr_store import KeepOnDisk
from markovblanket.contracts import Array
from markovblanket.posterior import storage
from markovblanket.posterior.observed import Observed, name_axes, name_streams
from markovblanket.posterior.posterior import Posterior
from markovblanket.tables.names import Name

# So many numbers of W12 are kept in memory without being asked to: two gigabytes.
MOST_NUMBERS = 2**28
WORDS = ("auto", "draws", "summary")


@dataclass(frozen=True, eq=False)
class Keeping:
    """What was asked, what is kept (``"draws"``, ``"summary"``, ``"disk"``), and the positions of named edges."""

    asked: str
    kept: str
    why: str
    named: npt.NDArray[np.intp] | None = None

    @property
    def settings(self) -> dict[str, str]:
        """What the settings of the posterior record."""
        return {"asked": self.asked, "kept": self.kept, "why": self.why}

    def settings_in(self, folder: Path) -> dict[str, str]:
        """As the plan in that folder records it: draws inside the folder by a relative path, as both may move."""
        inside = self.kept == "disk" and Path(self.asked).is_relative_to(folder)
        return self.settings | ({"asked": str(Path(self.asked).relative_to(folder))} if inside else {})

    @classmethod
    def of(cls, recorded: Mapping[str, str], folder: Path, named: npt.NDArray[np.intp] | None) -> Keeping:
        """From what the plan in that folder records."""
        asked = str(folder.resolve() / recorded["asked"]) if recorded["kept"] == "disk" else recorded["asked"]
        return cls(asked, recorded["kept"], recorded["why"], named)

    def keep(self, draws: int, saver: Saver | None = None) -> Keep:
        """What the chains keep. A folder for draws is claimed now, unless the run goes on there."""
        if self.kept == "draws":
            return KeepDraws(draws)
        summary = KeepSummary(draws, self.named)
        if self.kept == "summary":
            return summary
        folder = Path(self.asked)
        if saver is None or not saver.has_any:
            return KeepOnDisk(storage.claim(folder), summary)
        if saver.has_draws:
            storage.require_draws(folder)
        return KeepOnDisk(storage.reopen(folder, draws), summary)

    def can_double(self, draws: int) -> bool:
        """Whether there is room for twice as many draws."""
        return self.kept == "draws" or can_grow(draws, 2 * draws)

    def posterior(
        self,
        arrays: Mapping[str, Array],
        query: Sequence[Name],
        rest: Sequence[Name],
        observed: Observed,
        settings: Mapping[str, Any],
    ) -> Posterior:
        """What the chains have left, with named axes; on disk, a saved posterior."""
        (draws, effort), streams = name_axes(arrays, query, rest), name_streams(arrays)
        posterior = Posterior(draws, effort, observed, settings, streams)
        if self.kept != "disk":
            return posterior
        return replace(posterior, draws=storage.complete(Path(self.asked), posterior.datasets(), settings))

    def keep_second_look(self, posterior: Posterior) -> Posterior:
        """The same posterior; on disk, what was learned after the draws is added."""
        if self.kept == "disk":
            storage.add(Path(self.asked), posterior.datasets(), posterior.settings)
        return posterior


def decide(
    keep: str | Path,
    named: Sequence[tuple[Any, Any]] | None,
    names: tuple[Sequence[Name], Sequence[Name]],
    chains: int,
    schedule: Schedule,
) -> Keeping:
    """The word or path that was asked for, and the edges named, as a decision; what is impossible is refused."""
    require_count("chains", chains, 1)
    if not isinstance(keep, str | Path) or keep == "":
        raise ValueError(f"keep={keep!r}: known are {', '.join(map(repr, WORDS))}, or pass a path")
    if keep == "draws" and named is not None:
        raise ValueError("named edges belong to keep='summary' or a path; keep='draws' keeps the draws of all")
    chosen = None if named is None else _positions(named, *names)
    if isinstance(keep, Path) or keep not in WORDS:
        _refuse_misspelt(keep)
        storage.refuse_foreign(Path(keep))
        return Keeping(str(Path(keep).resolve()), "disk", "a path was given", chosen)
    if keep != "auto":
        return Keeping(keep, keep, "as asked", chosen)
    numbers = chains * schedule.draws * len(names[0]) * len(names[1])
    kept, how = ("draws", "at most") if numbers <= MOST_NUMBERS else ("summary", "more than")
    return Keeping(keep, kept, f"W12 has {numbers:,} numbers, {how} {MOST_NUMBERS:,}", chosen)


def _refuse_misspelt(keep: str | Path) -> None:
    """A word that is nearly one of those known is no folder, unless it is said to be one."""
    meant = get_close_matches(keep, WORDS, n=1, cutoff=0.75) if isinstance(keep, str) else []
    if meant:
        raise ValueError(f"keep={keep!r}: if {meant[0]!r} was not meant but a folder, pass pathlib.Path({keep!r})")


def _positions(
    named: Sequence[tuple[Any, Any]], query: Sequence[Name], rest: Sequence[Name]
) -> npt.NDArray[np.intp]:
    """Of pairs of names (query, variable): their rows and columns in ``W12``, k x 2."""
    rows, columns = ({name: k for k, name in enumerate(part)} for part in (query, rest))
    if not isinstance(named, Iterable):
        raise TypeError(f"named={named!r}: must be a list of pairs (query, variable)")
    for edge in named:
        pair = isinstance(edge, Sequence) and not isinstance(edge, str) and len(edge) == 2
        if not pair or edge[0] not in rows or edge[1] not in columns:
            raise ValueError(f"named has {edge!r}, which is no pair of a query variable and one of the rest")
    return np.array([(rows[i], columns[j]) for i, j in named], dtype=np.intp).reshape(-1, 2)
