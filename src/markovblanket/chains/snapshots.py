"""Snapshots of chains: all that a chain needs to go on bit for bit, in one file that is written at once.

Arrays by name in NumPy's own archive, uncompressed; the generator's state as JSON. Nothing is ever unpickled.
"""

from __future__ import annotations

import io
import json
import struct
import time
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from markovblanket._files import DamagedError, OwnerCheck, require_plain, told_as_damage, writing
from markovblanket.contracts import ChainState, Columns

Record = dict[str, npt.NDArray[Any]]

# A snapshot is taken after so many times the time that the last one took, if that is longer than was asked for.
LEAST_INTERVAL_PER_SECOND_SPENT = 20.0
# Under this name a record says to what it belongs.
MARK = "mark"
# Booleans, numbers and text: the kinds of arrays in a record.
KINDS = "biufU"
# What a damaged archive makes of its readers: wrong marks, sizes, methods, checksums.
DAMAGE = (
    *(zipfile.BadZipFile, struct.error, zlib.error),
    *(ValueError, EOFError, KeyError, OSError, RuntimeError, OverflowError, MemoryError),
)


def write(path: Path, record: Mapping[str, npt.NDArray[Any]]) -> None:
    """Write a record at once: whenever the machine stops, the old file is there or the new one."""
    with writing(path) as file:
        np.savez(file, **record)  # type: ignore[arg-type]


def read(path: Path, wanted: Callable[[str], bool] = lambda name: True) -> Record | None:
    """Read a record, or the arrays of it that are wanted; None if the file does not exist."""
    try:
        if require_plain(path):
            raise DamagedError(f"{path} is a folder, and should be a file")
        with zipfile.ZipFile(path) as archive:
            members = {entry.filename.removesuffix(".npy"): entry for entry in archive.infolist()}
            _require_as_written(archive.infolist(), path.stat().st_size)
            # Whole members, since only then zipfile looks at their checksums.
            return {name: _array_in(archive.read(entry)) for name, entry in members.items() if wanted(name)}
    except FileNotFoundError:
        return None
    except DamagedError:
        raise
    except DAMAGE as error:
        raise DamagedError(f"{path} is damaged: {error}") from None


def marked(record: Mapping[str, npt.NDArray[Any]], mark: str) -> Record:
    """A record that carries a mark, by which :func:`read_marked` recognises it."""
    return {MARK: np.array(mark), **record}


def read_marked(path: Path, mark: str, wanted: Callable[[str], bool] = lambda name: True) -> Record | None:
    """Read a record that must carry this mark; None if the file does not exist."""
    record = read(path, lambda name: name == MARK or wanted(name))
    if record is None:
        return None
    if str(entry(record, MARK)) != mark:
        raise DamagedError(f"{path} is damaged: it belongs to another run, chain or phase")
    return {name: array for name, array in record.items() if name != MARK}


def _require_as_written(members: list[zipfile.ZipInfo], size: int) -> None:
    """Refuse members that are compressed, larger than their archive, or of the same name."""
    if len({member.filename for member in members}) < len(members):
        raise ValueError("two of its arrays have the same name")
    if any(member.compress_type != zipfile.ZIP_STORED or member.file_size > size for member in members):
        raise ValueError("an array in it is compressed")


def _array_in(member: bytes) -> npt.NDArray[Any]:
    """An array of numbers or text from bytes in NumPy's own format, which never holds pickles here."""
    array: npt.NDArray[Any] = np.lib.format.read_array(io.BytesIO(member), allow_pickle=False)
    if array.dtype.kind not in KINDS:
        raise ValueError(f"an array in it is of type {array.dtype}")
    return array


def entry(record: Mapping[str, npt.NDArray[Any]], name: str) -> npt.NDArray[Any]:
    """The array of that name; a record without it is damaged."""
    if name not in record:
        raise DamagedError(f"a snapshot is damaged: it has no {name}")
    return record[name]


# Parts of a record ------------------------------------------------------------------------------------


def inside(name: str, record: Mapping[str, npt.NDArray[Any]]) -> Record:
    """A record as part of another one, its names prefixed.

    >>> inside("state", {"W11": np.eye(1)})
    {'state.W11': array([[1.]])}
    """
    return {f"{name}.{key}": array for key, array in record.items()}


def part(name: str, record: Mapping[str, npt.NDArray[Any]]) -> Record:
    """The part of a record that has this prefix.

    >>> part("state", {"state.W11": np.eye(1), "moments.sum": np.eye(1)})
    {'W11': array([[1.]])}
    """
    return {key[len(name) + 1 :]: array for key, array in record.items() if key.startswith(f"{name}.")}


def from_generator(rng: np.random.Generator) -> npt.NDArray[Any]:
    """The state of a random number generator, as bytes of JSON."""
    return np.frombuffer(json.dumps(rng.bit_generator.state).encode(), dtype=np.uint8)


def to_generator(array: npt.NDArray[Any]) -> np.random.Generator:
    """A random number generator that goes on from a saved state.

    >>> rng = np.random.default_rng(1)
    >>> to_generator(from_generator(rng)).random() == rng.random()
    True
    """
    try:
        bits = np.random.PCG64()
        bits.state = json.loads(array.astype(np.uint8).tobytes())
    except (ValueError, TypeError, KeyError) as error:
        raise DamagedError(f"the state of a generator is damaged: {error}") from None
    return np.random.Generator(bits)


def from_state(state: ChainState) -> Record:
    """The arrays of a chain's state, by name."""
    matrices = {name: getattr(state, name) for name in ("W11", "W12", "T")}
    hyper = {name: np.asarray(value) for name, value in state.hyper.items()}
    moving = {name: getattr(state.columns, name, None) for name in ("X1", "X2", "inverse", "leverages")}
    present = {name: array for name, array in moving.items() if array is not None}
    return matrices | inside("hyper", hyper) | inside("columns", present)


def to_state(record: Record) -> ChainState:
    """A chain's state, from its arrays by name."""
    hyper = {name: array.item() for name, array in part("hyper", record).items()}
    moving = part("columns", record)
    kept = moving.get("inverse"), moving.get("leverages")
    columns = Columns(entry(moving, "X1"), entry(moving, "X2"), *kept) if moving else None
    W11, W12, T = (entry(record, name) for name in ("W11", "W12", "T"))
    return ChainState(W11, W12, T, hyper, columns)


def require_like(record: Mapping[str, npt.NDArray[Any]], known: Mapping[str, npt.NDArray[Any]]) -> None:
    """Refuse arrays that are not those of a known record in name, type and shape, or not finite.

    Compiled code trusts shapes, and would read and write beside arrays that are smaller than it expects.
    """
    for name, array in known.items():
        found = entry(record, name)
        if (found.dtype, found.shape) != (array.dtype, array.shape):
            raise ValueError(f"{name} is an array of type {found.dtype} and shape {found.shape}")
    for name, array in record.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ValueError(f"{name} holds numbers that are not finite")


# When to save -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Saver:
    """Writes snapshots of chains to a folder that exists, each chain at most once in ``every`` seconds.

    With an ``owner``, only while that process holds the lock of the folder. Every snapshot carries the
    ``identity`` of the run, its chain and its phase, and one that carries another is refused.
    """

    folder: Path
    every: float = 0.0
    owner: str | None = None
    identity: str = ""

    @property
    def has_any(self) -> bool:
        """Whether some chain has left a snapshot."""
        return any(self.folder.glob("chain-*.npz"))

    @property
    def has_draws(self) -> bool:
        """Whether some chain was past its warm-up."""
        return any(self.folder.glob("chain-*.sampling.npz"))

    def path(self, chain: int, phase: str) -> Path:
        """The file of a chain in a phase."""
        return self.folder / f"chain-{chain}.{phase}.npz"

    def mark(self, chain: int, phase: str) -> str:
        """What the snapshots of a chain in a phase carry."""
        return f"{self.identity} chain {chain} {phase}"

    def read(self, chain: int, phase: str, wanted: Callable[[str], bool] = lambda name: True) -> Record | None:
        """The last snapshot of a chain in a phase, if there is one; refused if it is another's."""
        return read_marked(self.path(chain, phase), self.mark(chain, phase), wanted)


def saving(saver: Saver | None, chain: int, phase: str) -> Saving | Silent:
    """What saves one chain in one phase; without a saver, nothing is written."""
    if saver is None:
        return Silent()
    owner_check = None if saver.owner is None else OwnerCheck(saver.folder, saver.owner)
    clock = Clock(saver.every, time.monotonic())
    return Saving(saver.path(chain, phase), saver.mark(chain, phase), clock, owner_check)


@dataclass(frozen=True, slots=True)
class Saving:
    """The snapshots of one chain in one phase."""

    path: Path
    mark: str
    clock: Clock
    owner_check: OwnerCheck | None = None

    def last(self) -> Record | None:
        """The last snapshot, if there is one."""
        return read_marked(self.path, self.mark)

    def reading(self) -> AbstractContextManager[None]:
        """A context in which the last snapshot is taken apart; what does not fit together is told as damage."""
        return told_as_damage(self.path)

    def __call__(self, record: Callable[[], Record], now: bool = False) -> None:
        """Write a snapshot, between sweeps, if it is time for one or ``now``."""
        if self.owner_check is not None:
            self.owner_check()
        begin = time.monotonic()
        if now or self.clock.due(begin):
            write(self.path, marked(record(), self.mark))
            self.clock.wrote(begin, time.monotonic())

    @contextmanager
    def at_the_latest(self, record: Callable[[], Record]) -> Iterator[None]:
        """A context that writes a last snapshot if what is done in it ends the run."""
        try:
            yield
        except BaseException:
            self(record, now=True)
            raise


class Silent:
    """What takes the place of :class:`Saving` in a run without snapshots."""

    def last(self) -> None:
        """None: there is no snapshot."""

    def reading(self) -> AbstractContextManager[None]:
        """A context that does nothing, as there is no snapshot."""
        return nullcontext()

    def __call__(self, record: Callable[[], Record], now: bool = False) -> None:
        """Write nothing: a run without snapshots goes on."""

    def at_the_latest(self, record: Callable[[], Record]) -> AbstractContextManager[None]:
        """A context that does nothing when a run is ended."""
        return nullcontext()


@dataclass(slots=True)
class Clock:
    """Decides when the next snapshot is due: at most a twentieth of the time is spent on them."""

    every: float
    last: float
    took: float = 0.0

    def due(self, now: float) -> bool:
        """Whether it is time for the next snapshot."""
        return now - self.last >= max(self.every, LEAST_INTERVAL_PER_SECOND_SPENT * self.took)

    def wrote(self, begin: float, end: float) -> None:
        """Note when a snapshot was begun and ended."""
        self.last, self.took = end, end - begin
