"""A folder of results that appears as a whole, or not at all."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import networkx as nx
import pandas as pd

from markovblanket._files import swap, write_json, write_text, writing
from markovblanket.cli._options import BadInput
from markovblanket.posterior.posterior import Posterior

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
        swap(new, out, Path(folder, "old"))


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
    write_json(folder / SETTINGS, settings)


EDGES, GRAPH, PICTURE, POSTERIOR = "edges.csv", "network.graphml", "network.svg", "posterior"
REPORT = "report.html"
FILES = (EDGES, GRAPH, PICTURE, POSTERIOR, REPORT)
# What some files need that is not always installed, and the extra that brings it.
NEEDS: dict[str, tuple[tuple[str, ...], str]] = {
    PICTURE: (("matplotlib",), "plots"),
    REPORT: (("jinja2", "matplotlib"), "report"),
}
# Characters that no XML file may hold.
FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# What a spreadsheet takes for a formula; and the mark before it, by which it is text.
FORMULA, MARK = ("=", "+", "-", "@", "\t", "\r", "\n"), "'"


def write(folder: Path, posterior: Posterior, edges: pd.DataFrame, rule: dict[str, Any]) -> None:
    """The selected edges, the network as a graph and as a picture, the report, and the posterior itself.

    It is there already if its draws were written as they came.
    """
    if not (folder / POSTERIOR).exists():
        posterior.save(folder / POSTERIOR)
    write_table(folder / EDGES, inert(edges))
    write_graph(folder / GRAPH, posterior.graph(**rule))
    if possible(PICTURE):
        draw(folder / PICTURE, posterior, rule)
    if possible(REPORT):
        posterior.report(folder / REPORT)


def possible(file: str) -> bool:
    """Whether what a file needs is installed."""
    return all(find_spec(package) is not None for package in NEEDS[file][0])


def left_out() -> list[str]:
    """The files that cannot be written, with the way to have them."""
    return [
        f"{file} is left out: it needs {' and '.join(packages)}, pip install 'markovblanket[{extra}]'"
        for file, (packages, extra) in NEEDS.items()
        if not possible(file)
    ]


def draw(file: Path, posterior: Posterior, rule: dict[str, Any]) -> None:
    """The network."""
    from markovblanket.plots import blanket

    draw_by(file, lambda: blanket(posterior, **rule))


def draw_by(file: Path, picture: Callable[[], Any]) -> None:
    """With text as text, so that names can be searched; the same edges, the same file."""
    import matplotlib as mpl

    with mpl.rc_context({"backend": "svg", "svg.fonttype": "none", "svg.hashsalt": "markovblanket"}):
        figure: Any = picture().figure
        with writing(file) as image:
            figure.savefig(image, format="svg", metadata={"Date": None})
        mpl.pyplot.close(figure)


def write_table(file: Path, table: pd.DataFrame) -> None:
    """Write a table as a csv file."""
    write_text(file, table.to_csv(index=False))


def write_graph(file: Path, graph: nx.Graph) -> None:
    """Write a network as GraphML."""
    with writing(file) as xml:
        nx.write_graphml(printable(graph), xml)


def printable(graph: nx.Graph) -> nx.Graph:
    """With a mark in place of control characters: after a long run is no time to refuse a name."""
    return nx.relabel_nodes(graph, {name: FORBIDDEN.sub("\ufffd", str(name)) for name in graph})


def inert(edges: pd.DataFrame) -> pd.DataFrame:
    """With a mark before the names that a spreadsheet would run, and before those that have one: take one off, and
    every name is again what it was.
    """

    def marked(name: Any) -> Any:
        return f"{MARK}{name}" if isinstance(name, str) and name.startswith((*FORMULA, MARK)) else name

    return edges.assign(**{role: edges[role].map(marked) for role in ("query", "variable") if role in edges})


def formulas(edges: pd.DataFrame) -> list[str]:
    """The names that a spreadsheet would take for formulas."""
    names = dict.fromkeys([*edges["query"], *edges["variable"]])
    return [name for name in names if isinstance(name, str) and name.startswith(FORMULA)]
