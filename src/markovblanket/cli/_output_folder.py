"""A folder of results that appears as a whole, or not at all."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Collection, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import click

from markovblanket.cli._options import BadInput
from markovblanket.posterior import storage

SETTINGS, CHECKPOINT, BEFORE = "settings.json", "checkpoint", "checkpoint~"
TERMINATED = 128 + signal.SIGTERM


class Failed(click.ClickException):
    """What nobody could know before, such as a full disk."""


class Interrupted(click.ClickException):
    """Ctrl-C."""

    exit_code = 128 + signal.SIGINT


@contextmanager
def draft(
    out: Path, files: Collection[str], force: bool, what: str, after: str = "nothing was written"
) -> Iterator[Path]:
    """A folder to write to, beside ``out``, whose name it takes if all goes well; otherwise it is removed.

    ``out`` may be the folder of an earlier run if ``force``: one that holds no other than these ``files``. Who
    interrupts it, or has no space left, is told what comes ``after``.
    """
    out = out.expanduser().resolve()
    refuse(out, files, force, what)
    # Folders above that do not exist yet are made in the end: a run that fails leaves none behind.
    near = next(folder for folder in out.parents if folder.exists())
    with told(after), aside(near, out.name) as folder, terminable():
        new = Path(folder, "new")
        new.mkdir()
        yield new
        refuse(out, files, force, what)
        out.parent.mkdir(parents=True, exist_ok=True)
        storage.swap(new, out, Path(folder, "old"))


def refuse(out: Path, files: Collection[str], force: bool, what: str) -> None:
    """Refuse what is neither absent, nor an empty folder, nor one that may be replaced."""
    if out in (Path.cwd(), *Path.cwd().parents):
        raise BadInput(f"{out} holds the working directory: name a folder of its own with --out")
    if not out.exists():
        return
    if not out.is_dir():
        raise BadInput(f"{out} exists and is no folder: name another with --out")
    found = {entry.name for entry in out.iterdir()} - {BEFORE}  # put aside by a run that was killed
    if found == {CHECKPOINT} and not force:
        raise BadInput(
            f"{out} holds a run that has not ended: markovblanket resume goes on with it; or use --force"
        )
    if found and found != {CHECKPOINT} and not (SETTINGS in found and found <= set(files)):
        strange = min(found - set(files), default=f"no {SETTINGS}")
        raise BadInput(f"{out} is no folder of an earlier {what} alone ({strange}): name another with --out")
    if found and not force:
        raise BadInput(f"{out} holds an earlier {what}: name another folder with --out, or replace it by --force")


@contextmanager
def aside(near: Path, name: str) -> Iterator[str]:
    """A hidden folder on the same disk."""
    try:
        folder = tempfile.TemporaryDirectory(prefix=f".{name}-", dir=near)
    except OSError as error:
        raise BadInput(f"cannot write to {near}: {error.strerror}") from None
    with folder as path:
        yield path


@contextmanager
def told(after: str) -> Iterator[None]:
    """What ends a run, in a line."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {after}") from None
    except BrokenExecutor:
        lost = "a process that ran chains was killed, perhaps for lack of memory: try fewer --jobs"
        raise Failed(f"{lost}; {after}") from None
    except (OSError, MemoryError) as error:
        raise Failed(f"{str(error) or 'out of memory'}; {after}") from error


@contextmanager
def terminable() -> Iterator[None]:
    """Being told to end is an exception like others, so that what was begun is removed."""
    before = signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def link(source: Path, target: Path) -> None:
    """The same files under another name, without a copy where the disk knows how to do that."""
    try:
        shutil.copytree(source, target, copy_function=os.link)
    except OSError:
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)


def write_settings(folder: Path, settings: dict[str, Any]) -> None:
    """As JSON; what JSON does not know, by its description."""
    text = json.dumps(settings, indent=2, default=str, ensure_ascii=False)
    (folder / SETTINGS).write_text(text + "\n", encoding="utf-8")
