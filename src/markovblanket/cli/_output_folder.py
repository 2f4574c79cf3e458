"""The output folder of a command: it appears as a whole or not at all; and the result files in it.

Results are written to a hidden draft folder beside the output folder, which takes its name when all of them are
complete. The files are tables (csv), the network as a graph (GraphML) and as a picture (SVG), the report, the
settings, and the saved posterior.
"""

from __future__ import annotations

import csv
import io
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

from markovblanket import _files
from markovblanket._files import flush, require_plain, swap, write_json, write_text, writing
from markovblanket.chains.processes import end_at_second, handle, require_addresses
from markovblanket.cli._options import BadInput
from markovblanket.posterior.posterior import Posterior

SETTINGS, CHECKPOINT, OLD_CHECKPOINT = "settings.json", "checkpoint", "checkpoint~"
EDGES, GRAPH, PICTURE, POSTERIOR = "edges.csv", "network.graphml", "network.svg", "posterior"
REPORT = "report.html"
FILES = (EDGES, GRAPH, PICTURE, POSTERIOR, REPORT)
# Packages that a file needs and that are not always installed, and the extra that installs them.
NEEDED_PACKAGES: dict[str, tuple[tuple[str, ...], str]] = {
    PICTURE: (("matplotlib",), "plots"),
    REPORT: (("jinja2", "matplotlib"), "report"),
}
# Characters that no XML file may hold.
NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
UNPRINTABLE = "\ufffd"
# A spreadsheet takes text that begins with these for a formula, unless this mark comes first.
FORMULA_STARTS, FORMULA_MARK = ("=", "+", "-", "@", "\t", "\r", "\n"), "'"
# Signals that end a run: a wish to end, and a terminal that is gone.
ENDING = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))


# Folders that appear as a whole ------------------------------------------------------------------------------


class Failed(click.ClickException):
    """An error while running that no check of the input could foresee, such as a full disk."""


class Interrupted(click.ClickException):
    """The run was interrupted by Ctrl-C."""

    exit_code = 128 + signal.SIGINT


@contextmanager
def draft(
    out: Path, files: Collection[str], force: bool, what: str, after: str = "nothing was written"
) -> Iterator[Path]:
    """A draft folder beside ``out``, which takes its name if all goes well; otherwise the draft is removed.

    With ``force``, ``out`` may be the folder of an earlier run, one that holds none but these ``files``. The error
    of a run that was interrupted, or ran out of space, ends with ``after``.
    """
    out = out.expanduser().resolve()
    refuse(out, files, force, what)
    with told("nothing was written"):
        require_addresses()
    # Missing parent folders are created at the end, so that a run that fails leaves none behind.
    near = next(folder for folder in out.parents if folder.exists())
    with told(after), aside(near, out.name) as folder, terminable():
        new = Path(folder, "new")
        new.mkdir()
        yield new
        refuse(out, files, force, what)
        out.parent.mkdir(parents=True, exist_ok=True)
        flush(new)
        swap(new, out, Path(folder, "old"))


def refuse(out: Path, files: Collection[str], force: bool, what: str) -> None:
    """Refuse an output folder that is neither absent, nor empty, nor one that may be replaced."""
    if out in (Path.cwd(), *Path.cwd().parents):
        raise BadInput(f"{out} contains the working directory: name another folder with --out")
    if not out.exists():
        return
    if not out.is_dir():
        raise BadInput(f"{out} exists and is not a folder: name another with --out")
    found = {entry.name for entry in out.iterdir()} - {OLD_CHECKPOINT}  # left behind by a run that was killed
    if found == {CHECKPOINT} and not force:
        raise BadInput(
            f"{out} holds an unfinished run: continue it with markovblanket resume, or replace it with --force"
        )
    if found and found != {CHECKPOINT} and not (SETTINGS in found and found <= set(files)):
        strange = min(found - set(files), default=f"no {SETTINGS}")
        raise BadInput(
            f"{out} holds other files than those of an earlier {what} ({strange}): name another folder with --out"
        )
    if found and not force:
        raise BadInput(
            f"{out} holds an earlier {what}: name another folder with --out, or replace it with --force"
        )


def recover(run: Path) -> None:
    """Give a run its place again that a killed process was replacing: the whole folder, or its checkpoint."""
    _files.restore(run.expanduser().resolve())
    checkpoint, before = run / CHECKPOINT, run / OLD_CHECKPOINT
    if before.is_dir() and not before.is_symlink() and not any(checkpoint.glob("*.json")):
        shutil.rmtree(checkpoint, ignore_errors=True)
        before.rename(checkpoint)


def inside(run: Path, name: str) -> Path:
    """The path of a file or a folder inside a run, which may be no link."""
    if os.path.lexists(run / name):
        require_plain(run / name)
    return run / name


@contextmanager
def aside(near: Path, name: str) -> Iterator[str]:
    """A hidden temporary folder in the folder ``near``, and so on the same disk as the results."""
    try:
        folder = tempfile.TemporaryDirectory(prefix=_files.aside(Path(name)), dir=near)
    except OSError as error:
        raise BadInput(f"cannot write to {near}: {error.strerror}") from None
    with folder as path:
        yield path


@contextmanager
def told(after: str) -> Iterator[None]:
    """Turn what ends a run (Ctrl-C, a killed process, a full disk or memory) into an error of one line."""
    try:
        yield
    except KeyboardInterrupt:
        raise Interrupted(f"interrupted; {after}") from None
    except BrokenExecutor:
        lost = "a process that ran chains was killed, perhaps because memory ran out: try fewer --jobs"
        raise Failed(f"{lost}; {after}") from None
    except (OSError, MemoryError) as error:
        raise Failed(f"{str(error) or 'out of memory'}; {after}") from error
    except RuntimeError as error:
        if "can't start new thread" not in str(error):
            raise
        raise Failed(f"out of memory, or of processes: no thread can be started; {after}") from error


@contextmanager
def terminable() -> Iterator[None]:
    """Turn SIGTERM and SIGHUP into an exception, so that unfinished files are removed before the process ends."""
    heard = [number for number in ENDING if signal.getsignal(number) is not signal.SIG_IGN]  # nohup ignores one
    before = {number: signal.getsignal(number) for number in heard}
    for number in heard:
        handle(number, lambda number, frame: sys.exit(128 + number))
    end_at_second(signal.SIGINT, *heard)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def link(source: Path, target: Path) -> None:
    """Put the files of a folder under another name too, as hard links where the disk has them, else as copies."""
    try:
        shutil.copytree(source, target, copy_function=os.link)
    except OSError:
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(source, target)


def write_settings(folder: Path, settings: dict[str, Any]) -> None:
    """Write the settings of a run to settings.json; values that JSON does not have are described as text."""
    write_json(folder / SETTINGS, settings)


# The result files --------------------------------------------------------------------------------------------


def write(folder: Path, posterior: Posterior, edges: pd.DataFrame, rule: dict[str, Any]) -> None:
    """Write the selected edges, the network as a graph and as a picture, the report, and the posterior.

    The posterior exists already if its draws were written to the disk during the run.
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
    """Whether the packages that a file needs are installed."""
    return all(find_spec(package) is not None for package in NEEDED_PACKAGES[file][0])


def left_out() -> list[str]:
    """A sentence for each file that cannot be written, with the command that installs what it needs."""
    return [
        f"{file} is left out: it needs {' and '.join(packages)}, pip install 'markovblanket[{extra}]'"
        for file, (packages, extra) in NEEDED_PACKAGES.items()
        if not possible(file)
    ]


def draw(file: Path, posterior: Posterior, rule: dict[str, Any]) -> None:
    """Draw the network of the selected edges into an SVG file."""
    from markovblanket.plots import blanket

    draw_by(file, lambda: blanket(posterior, **rule))


def draw_by(file: Path, picture: Callable[[], Any]) -> None:
    """Save a picture as SVG, its text searchable; the same picture always gives the same file."""
    import matplotlib as mpl

    with mpl.rc_context({"backend": "svg", "svg.fonttype": "none", "svg.hashsalt": "markovblanket"}):
        figure: Any = picture().figure
        image = io.StringIO()
        figure.savefig(image, format="svg", metadata={"Date": None})
        write_text(file, NOT_IN_XML.sub(UNPRINTABLE, image.getvalue()))
        mpl.pyplot.close(figure)


def write_table(file: Path, table: pd.DataFrame) -> None:
    """Write a table as a csv file; text is quoted if some of it has a carriage return, which may end a row."""
    text = table.select_dtypes(exclude="number").astype(str)
    returns = any(column.str.contains("\r", regex=False).any() for _, column in text.items())
    quoting = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
    write_text(file, table.to_csv(index=False, quoting=quoting))


def write_graph(file: Path, graph: nx.Graph) -> None:
    """Write a network as GraphML."""
    with writing(file) as xml:
        nx.write_graphml(printable(graph), xml)


def printable(graph: nx.Graph) -> nx.Graph:
    """The graph with U+FFFD for characters that XML forbids, and more of them where names would be the same."""
    names: dict[str, Any] = {}
    for name in sorted(graph, key=lambda name: NOT_IN_XML.search(str(name)) is not None):
        shown = NOT_IN_XML.sub(UNPRINTABLE, str(name))
        while shown in names:
            shown += UNPRINTABLE
        names[shown] = name
    return nx.relabel_nodes(graph, {name: shown for shown, name in names.items()})


def inert(edges: pd.DataFrame) -> pd.DataFrame:
    """The table with a mark before each name that a spreadsheet would run as a formula.

    Names that begin with the mark receive one too, so that removing one mark recovers every name.
    """

    def marked(name: Any) -> Any:
        return (
            f"{FORMULA_MARK}{name}"
            if isinstance(name, str) and name.startswith((*FORMULA_STARTS, FORMULA_MARK))
            else name
        )

    return edges.assign(**{role: edges[role].map(marked) for role in ("query", "variable") if role in edges})


def formulas(edges: pd.DataFrame) -> list[str]:
    """The names in a table of edges that a spreadsheet would take for formulas."""
    names = dict.fromkeys([*edges["query"], *edges["variable"]])
    return [name for name in names if isinstance(name, str) and name.startswith(FORMULA_STARTS)]
