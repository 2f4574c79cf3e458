"""``markovblanket fit``: a file in, a folder of results out."""

from __future__ import annotations

import errno
import shutil
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
import joblib
import numpy as np
import pandas as pd

from markovblanket import __version__
from markovblanket._files import locked, write_json
from markovblanket.cli import _options as asking
from markovblanket.cli import _output_folder, _screen
from markovblanket.cli._options import BadInput
from markovblanket.fitting.estimate import estimate
from markovblanket.fitting.run_folder import RunFolder
from markovblanket.posterior import storage
from markovblanket.posterior.diagnostics import ConvergenceWarning, Diagnostics
from markovblanket.posterior.posterior import Posterior

NOT_CONVERGED = 3
LOG = "fit.log"
DISK = "disk"
# What the library raises of a bad table or question, and readers of files that are cut off or damaged.
UNREADABLE = (ValueError, OSError, ImportError, EOFError, zlib.error)
# What the disk says if it is the one to blame.
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
FILES = (*_output_folder.FILES, _output_folder.SETTINGS, _output_folder.CHECKPOINT, _output_folder.BEFORE, LOG)


@dataclass(frozen=True)
class Question:
    """What is asked of which table; ``run`` are options of :func:`markovblanket.estimate`."""

    table: Path
    query: list[str]
    kinds: dict[str, Any] | None
    rule: dict[str, Any]
    run: dict[str, Any]

    @property
    def settings(self) -> dict[str, Any]:
        """As they are written down."""
        made_by = {"command": "markovblanket fit", "version": __version__}
        return made_by | {"table": str(self.table), "query": self.query, "kinds": self.kinds, "rule": self.rule}


@dataclass(frozen=True)
class Manner:
    """Where the results go, and how."""

    out: Path
    force: bool
    strict: bool
    quiet: bool


@dataclass(frozen=True)
class Log:
    """Lines with the time, in a file."""

    path: Path
    begin: float = field(default_factory=time.perf_counter)

    def __call__(self, text: str) -> None:
        """Add a line."""
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{now} {time.perf_counter() - self.begin:8.1f} s  {' '.join(text.split())}\n")


def asked(**typed: Any) -> tuple[Question, Manner]:
    """The options of the command line, understood."""
    manner = Manner(**{name: typed.pop(name) for name in ("out", "force", "strict", "quiet")})
    rule = asking.rule(typed["prior"], **{name: typed.pop(name) for name in ("level", "fdr", "inclusion")})
    query, kinds = asking.names(typed.pop("query")), asking.kinds(typed.pop("kind"))
    jobs = typed.pop("jobs") or min(typed["chains"], joblib.cpu_count())
    return Question(typed.pop("table"), query, kinds, rule, {**typed, "n_jobs": jobs}), manner


def run(question: Question, manner: Manner) -> int:
    """Fit, write everything, and tell what was found; the exit code."""
    out = manner.out.expanduser().resolve()
    _output_folder.refuse(out, FILES, manner.force, "fit")

    def fit(folder: Path, log: Log) -> Posterior:
        with begun(out / _output_folder.CHECKPOINT, question):
            return estimated(question, out / _output_folder.CHECKPOINT, log, progress=not manner.quiet)

    return finished(question, replace(manner, force=True), fit)


def finished(question: Question, manner: Manner, fit: Callable[[Path, Log], Posterior]) -> int:
    """What becomes of a fit: all files, and a summary; the exit code."""
    for file in _output_folder.left_out():
        warn(file)
    after = f"markovblanket resume {manner.out} goes on from the last checkpoint"
    checkpoint = manner.out.expanduser().resolve() / _output_folder.CHECKPOINT
    with ExitStack() as held, _output_folder.draft(manner.out, FILES, manner.force, "fit", after) as folder:
        log = Log(folder / LOG)
        posterior = fit(folder, log)
        held.enter_context(alone(checkpoint))
        edges, diagnostics = posterior.edges(**question.rule), posterior.diagnostics()
        write(folder, question, posterior, edges, diagnostics, log)
        _output_folder.link(checkpoint, folder / _output_folder.CHECKPOINT)
        written, seconds = _screen.files(manner.out, folder), time.perf_counter() - log.begin
    if not manner.quiet:
        _screen.tell(_screen.screen(), posterior, edges, diagnostics, f"in {seconds:.0f} s", written)
    beware(edges, diagnostics)
    return NOT_CONVERGED if manner.strict and not diagnostics.converged else 0


@contextmanager
def alone(checkpoint: Path) -> Iterator[None]:
    """Nobody else takes up the run while its results are written and its folder is replaced."""
    with ExitStack() as held:
        try:
            held.enter_context(locked(checkpoint))
        except RuntimeError as error:
            raise BadInput(str(error)) from None
        yield


@contextmanager
def begun(checkpoint: Path, question: Question) -> Iterator[None]:
    """A folder for the run, with the question; gone again if that is bad input."""
    made = next(folder for folder in (checkpoint, *checkpoint.parents) if folder.parent.exists())
    before = checkpoint.with_name(_output_folder.BEFORE)
    if checkpoint.exists():
        with alone(checkpoint):
            shutil.rmtree(before, ignore_errors=True)
            checkpoint.rename(before)
    checkpoint.mkdir(parents=True)
    write_json(RunFolder(checkpoint).question_file, asdict(question))
    try:
        yield
    except BadInput:
        shutil.rmtree(made)
        if before.exists():
            before.rename(checkpoint)
        raise
    shutil.rmtree(before, ignore_errors=True)


def write(
    folder: Path,
    question: Question,
    posterior: Posterior,
    edges: pd.DataFrame,
    diagnostics: Diagnostics,
    log: Log,
) -> None:
    """All files, the log's last lines at the end."""
    log(f"sampled; seed {posterior.settings['seed']}; {diagnostics.verdict}")
    for problem in diagnostics.problems:
        log(f"not converged: {problem}")
    with noted(log):
        if question.run["keep"] == DISK:
            posterior = take_draws(folder, posterior)
        _output_folder.write(folder, posterior, edges, question.rule)
    _output_folder.write_settings(folder, {**question.settings, **posterior.settings})
    log(f"{len(edges)} edges selected; written: {', '.join(sorted(entry.name for entry in folder.iterdir()))}")


def take_draws(folder: Path, posterior: Posterior) -> Posterior:
    """The posterior whose draws were written as they came, without a copy, and under its own name."""
    source = storage.source_of(posterior.draws)
    assert source is not None
    _output_folder.link(source.parent, folder / _output_folder.POSTERIOR)
    settings = {**posterior.settings, "keep": {"asked": DISK, "kept": DISK, "why": "as asked"}}
    storage.write_settings(folder / _output_folder.POSTERIOR, settings)
    return replace(posterior, settings=settings)


def beware(edges: pd.DataFrame, diagnostics: Diagnostics) -> None:
    """What a reader of the results must know."""
    beware_formulas(edges)
    if not diagnostics.converged:
        warn(f"not converged: {diagnostics.problems[0]}{more(diagnostics)}. Ask for more --warmup and --draws")


def beware_formulas(edges: pd.DataFrame) -> None:
    """Names are not quite what they were."""
    if names := _output_folder.formulas(edges):
        written = f"{_output_folder.MARK}{names[0]}"
        formula = f"a spreadsheet would take {names[0]!r} for a formula"
        warn(f"{_output_folder.EDGES}: {formula}, so it is written as {written!r}")


def estimated(question: Question, checkpoint: Path, log: Log, progress: bool) -> Posterior:
    """The posterior; what is wrong with the table or the question is bad input."""
    log(f"markovblanket {__version__}: {question.table}, query {', '.join(question.query)}")
    log(f"options: {question.run | {'kinds': question.kinds} | question.rule}")
    on_disk = question.run["keep"] == DISK
    options = question.run | ({"keep": checkpoint / _output_folder.POSTERIOR} if on_disk else {})
    try:
        with noted(log):
            posterior = estimate(
                question.table,
                question.query,
                kinds=question.kinds,
                progress=progress,
                checkpoint=checkpoint,
                **options,
            )
    except np.linalg.LinAlgError:
        raise  # not the table's fault, though a ValueError
    except UNREADABLE as error:
        if getattr(error, "errno", None) in UNWRITABLE:
            raise  # nor is this, where draws go to the disk
        raise BadInput(reason(error, question.table)) from error
    log(_screen.understood(posterior))
    return posterior


def reason(error: Exception, table: Path) -> str:
    """What is wrong; readers of files do not say of which."""
    ours = type(error) is ValueError or table.name in str(error)
    return asking.in_options(str(error)) if ours else f"cannot read {table}: {error}"


@contextmanager
def noted(log: Log) -> Iterator[None]:
    """Warnings go to the log, but that of chains that do not agree: it has lines of its own."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            for one in caught:
                if one.category is not ConvergenceWarning:
                    log(f"{one.category.__name__}: {one.message}")


def more(diagnostics: Diagnostics) -> str:
    """How many problems there are beside the first."""
    others = len(diagnostics.problems) - 1
    return f"; and {others} more, in {LOG}" if others else ""


def warn(text: str) -> None:
    """A line on standard error."""
    click.echo(f"warning: {text}", err=True)
