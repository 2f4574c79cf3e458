"""``markovblanket fit`` and ``network``: estimate the edges of a table file, and write a folder of results."""

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
from markovblanket.cli import _options, _output_folder, _screen
from markovblanket.cli._options import BadInput
from markovblanket.fitting.estimate import estimate, network
from markovblanket.fitting.run_folder import RunFolder
from markovblanket.posterior import storage
from markovblanket.posterior.diagnostics import ConvergenceWarning, Diagnostics
from markovblanket.posterior.posterior import Posterior

EXIT_NOT_CONVERGED = 3
LOG = "fit.log"
DISK = "disk"
# The prior of whole networks, and the default of all others.
SPARSE_PRIOR = "spike-slab"
# Raised by the library for a bad table or question, and by readers of files that are truncated or damaged.
UNREADABLE = (ValueError, OSError, ImportError, EOFError, zlib.error)
# Error numbers for which the disk is to blame, not the input.
UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EIO)
FILES = (
    *_output_folder.FILES,
    _output_folder.SETTINGS,
    _output_folder.CHECKPOINT,
    _output_folder.OLD_CHECKPOINT,
    LOG,
)


@dataclass(frozen=True)
class Question:
    """A table, its query columns and the rule that selects edges; ``run`` are options of :func:`estimate`.

    ``query`` is None if the whole network is asked for.
    """

    table: Path
    query: list[str] | None
    kinds: dict[str, Any] | None
    rule: dict[str, Any]
    run: dict[str, Any]

    @property
    def settings(self) -> dict[str, Any]:
        """The part of settings.json that records the question."""
        made_by = {"command": f"markovblanket {self.command}", "version": __version__, "table": str(self.table)}
        return made_by | {"query": self.query, "kinds": self.kinds, "rule": self.rule}

    @property
    def command(self) -> str:
        """The command that asks this question."""
        return "network" if self.query is None else "fit"

    def estimate(self, **options: Any) -> Posterior:
        """The posterior of the table, with the options of :func:`estimate` that are not part of the question."""
        if self.query is None:
            return network(self.table, kinds=self.kinds, **self.run, **options)
        return estimate(self.table, self.query, kinds=self.kinds, **self.run, **options)


@dataclass(frozen=True)
class Manner:
    """The output folder, and the options that concern the output alone."""

    out: Path
    force: bool
    strict: bool
    quiet: bool


@dataclass(frozen=True)
class Log:
    """A log file, each of whose lines begins with the time."""

    path: Path
    begin: float = field(default_factory=time.perf_counter)

    def __call__(self, text: str) -> None:
        """Add a line to the log file."""
        now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%SZ")
        with self.path.open("a", encoding="utf-8") as file:
            file.write(f"{now} {time.perf_counter() - self.begin:8.1f} s  {' '.join(text.split())}\n")


def asked(**typed: Any) -> tuple[Question, Manner]:
    """The question and the manner of output that the options of the command line ask for."""
    manner = Manner(**{name: typed.pop(name) for name in ("out", "force", "strict", "quiet")})
    rule = _options.rule(
        typed.get("prior", SPARSE_PRIOR), **{name: typed.pop(name) for name in ("probability", "fdr", "level")}
    )
    query = _options.names(typed.pop("query")) if "query" in typed else None
    kinds = _options.kinds(typed.pop("kind"))
    jobs = typed.pop("jobs") or min(typed["chains"], joblib.cpu_count())
    return Question(typed.pop("table"), query, kinds, rule, {**typed, "n_jobs": jobs}), manner


def run(question: Question, manner: Manner) -> int:
    """Fit the table, write all files, print a summary, and return the exit code."""
    out = manner.out.expanduser().resolve()
    _output_folder.refuse(out, FILES, manner.force, question.command)

    def fit(folder: Path, log: Log) -> Posterior:
        with begun(out / _output_folder.CHECKPOINT, question):
            return estimated(question, out / _output_folder.CHECKPOINT, log, progress=not manner.quiet)

    return finished(question, replace(manner, force=True), fit)


def finished(question: Question, manner: Manner, fit: Callable[[Path, Log], Posterior]) -> int:
    """Run ``fit``, write all files, print a summary, and return the exit code."""
    for file in _output_folder.left_out():
        warn(file)
    after = f"markovblanket resume {manner.out} continues from the last checkpoint"
    checkpoint = manner.out.expanduser().resolve() / _output_folder.CHECKPOINT
    draft = _output_folder.draft(manner.out, FILES, manner.force, question.command, after)
    with ExitStack() as held, draft as folder:
        log = Log(folder / LOG)
        posterior = fit(folder, log)
        held.enter_context(alone(checkpoint))
        edges, diagnostics = posterior.edges(**question.rule), posterior.diagnostics()
        write(folder, question, posterior, edges, diagnostics, log)
        _output_folder.link(checkpoint, folder / _output_folder.CHECKPOINT)
        written, seconds = _screen.files(manner.out, folder), time.perf_counter() - log.begin
    if not manner.quiet:
        _screen.tell(_screen.screen(), posterior, edges, diagnostics, f"in {seconds:.0f} s", written)
    beware(edges, diagnostics, f"markovblanket resume {manner.out} --draws {2 * posterior.draws.sizes['draw']}")
    return EXIT_NOT_CONVERGED if manner.strict and not diagnostics.converged else 0


@contextmanager
def alone(checkpoint: Path) -> Iterator[None]:
    """Hold the lock of a run while its results are written and its folder is replaced."""
    with ExitStack() as held:
        try:
            held.enter_context(locked(checkpoint))
        except RuntimeError as error:
            raise BadInput(str(error)) from None
        yield


@contextmanager
def begun(checkpoint: Path, question: Question) -> Iterator[None]:
    """A new folder for the run, with its question inside; bad input removes it, and restores the one before."""
    made = next(folder for folder in (checkpoint, *checkpoint.parents) if folder.parent.exists())
    before = checkpoint.with_name(_output_folder.OLD_CHECKPOINT)
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
    """Write all files of a fit, and add to the log how the chains agree and what was written."""
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
    """Link the draws that were written during the run into the folder, and return the posterior that says so."""
    source = storage.source_of(posterior.draws)
    assert source is not None
    _output_folder.link(source.parent, folder / _output_folder.POSTERIOR)
    settings = {**posterior.settings, "keep": {"asked": DISK, "kept": DISK, "why": "as asked"}}
    storage.write_settings(folder / _output_folder.POSTERIOR, settings)
    return replace(posterior, settings=settings)


def beware(edges: pd.DataFrame, diagnostics: Diagnostics, longer: str) -> None:
    """Warn of names that were changed in edges.csv, and of chains that have not converged.

    ``longer`` is a command that goes on.
    """
    beware_formulas(edges)
    if not diagnostics.converged:
        warn(f"not converged: {diagnostics.problems[0]}{more(diagnostics)}. To go on: {longer}")


def beware_formulas(edges: pd.DataFrame) -> None:
    """Warn of names that are marked in edges.csv, because a spreadsheet would run them as formulas."""
    if names := _output_folder.formulas(edges):
        written = f"{_output_folder.FORMULA_MARK}{names[0]}"
        formula = f"a spreadsheet would take {names[0]!r} for a formula"
        warn(f"{_output_folder.EDGES}: {formula}, so it is written as {written!r}")


def estimated(question: Question, checkpoint: Path, log: Log, progress: bool) -> Posterior:
    """The posterior of the question; an error in the table or the question is raised as bad input."""
    of = "whole network" if question.query is None else f"query {', '.join(question.query)}"
    log(f"markovblanket {__version__}: {question.table}, {of}")
    log(f"options: {question.run | {'kinds': question.kinds} | question.rule}")
    if question.run["keep"] == DISK:
        question = replace(question, run=question.run | {"keep": checkpoint / _output_folder.POSTERIOR})
    try:
        with noted(log):
            posterior = question.estimate(progress=progress, checkpoint=checkpoint)
    except np.linalg.LinAlgError:
        raise  # not the table's fault, though a ValueError
    except UNREADABLE as error:
        if getattr(error, "errno", None) in UNWRITABLE:
            raise  # not the table's fault either: draws are written to the disk
        raise BadInput(reason(error, question.table)) from error
    log(_screen.understood(posterior))
    return posterior


def reason(error: Exception, table: Path) -> str:
    """The message of an error; names the table if the message does not, as with errors of file readers."""
    ours = type(error) is ValueError or table.name in str(error)
    return _options.in_options(str(error)) if ours else f"cannot read {table}: {error}"


@contextmanager
def noted(log: Log) -> Iterator[None]:
    """Write warnings to the log, except for the convergence warning, which has log lines of its own."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        try:
            yield
        finally:
            for one in caught:
                if one.category is not ConvergenceWarning:
                    log(f"{one.category.__name__}: {one.message}")


def more(diagnostics: Diagnostics) -> str:
    """The number of problems beside the first, as the end of a sentence."""
    others = len(diagnostics.problems) - 1
    return f"; and {others} more, in {LOG}" if others else ""


def warn(text: str) -> None:
    """Print a warning in one line on standard error."""
    click.echo(f"warning: {text}", err=True)
