"""``markovblanket resume`` and ``markovblanket status``: continue a run, and show its progress."""

from __future__ import annotations

from concurrent.futures import BrokenExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import joblib

from markovblanket._files import DamagedError, read_json
from markovblanket.cli import KEEP, PRIORS, _output_folder, _screen
from markovblanket.cli._fit import UNWRITABLE, Log, Manner, Question, estimated, finished, noted
from markovblanket.cli._options import BadInput
from markovblanket.fitting.estimate import AUTO
from markovblanket.fitting.resume import resume, status
from markovblanket.fitting.run_folder import RunFolder
from markovblanket.posterior import recorded
from markovblanket.posterior.posterior import Posterior
from markovblanket.posterior.recorded import Schema

COUNT_OR_AUTO = recorded.either(recorded.one_of(AUTO), recorded.whole())
# What the question of a run is; where its draws are kept is a word there, and no path.
QUESTION: Schema = {
    "table": recorded.TEXT,
    "query": recorded.either(recorded.NOTHING, recorded.NAMES),
    "kinds": recorded.ANYTHING,
    "rule": recorded.RECORD,
    "run": {
        **dict.fromkeys(("chains", "budget", "thin", "n_jobs"), recorded.whole(1)),
        **dict.fromkeys(("warmup", "draws"), COUNT_OR_AUTO),
        "candidates": recorded.optional(COUNT_OR_AUTO),
        "seed": recorded.either(recorded.NOTHING, recorded.whole()),
        "margins": recorded.MARGINS,
        "keep": recorded.one_of(*KEEP),
        "prior": recorded.optional(recorded.one_of(*PRIORS)),
    },
}


def run(run: Path, draws: int | str | None, budget: int, jobs: int | None, strict: bool, quiet: bool) -> int:
    """Continue the run, write all files, print a summary, and return the exit code."""
    question = asked(run)
    if draws is None and question.run.get("draws") == AUTO:
        draws, budget = AUTO, question.run["budget"]

    def fit(folder: Path, log: Log) -> Posterior:
        checkpoint = RunFolder(run / _output_folder.CHECKPOINT)
        if not checkpoint.plan_file.is_file():  # the run was killed while it read its table
            return estimated(begun_anew(question, draws, budget), checkpoint.path.resolve(), log, not quiet)
        log(f"resumed: {status(run).sentence}")
        return resumed(run, draws, budget, jobs or joblib.cpu_count(), not quiet, log)

    return finished(question, Manner(run, force=True, strict=strict, quiet=quiet), fit)


def begun_anew(question: Question, draws: int | str | None, budget: int) -> Question:
    """The question of a run that has not begun sampling, with other draws if they are asked for."""
    return question if draws is None else replace(question, run=question.run | {"draws": draws, "budget": budget})


def asked(run: Path) -> Question:
    """The question with which the run in a folder was begun."""
    _output_folder.recover(run)
    if not run.is_dir():
        raise BadInput(f"{run} is not there")
    try:
        note = RunFolder(_output_folder.inside(run, _output_folder.CHECKPOINT)).question_file
        known: dict[str, Any] = read_json(note)
        recorded.require(known, QUESTION, note)
    except FileNotFoundError:
        raise BadInput(f"{run} is not the folder of a fit with a checkpoint: there is no {note}") from None
    except DamagedError as error:
        raise BadInput(str(error)) from None
    return replace(Question(**known), table=Path(known["table"]))


def resumed(run: Path, draws: int | str | None, budget: int, jobs: int, progress: bool, log: Log) -> Posterior:
    """The posterior of the continued run; an error in its folder or in the options is raised as bad input."""
    try:
        with noted(log):
            posterior = resume(run, draws=draws, budget=budget, n_jobs=jobs, progress=progress)
    except BrokenExecutor:
        raise  # not the folder's fault, though a RuntimeError
    except (ValueError, OSError, RuntimeError) as error:
        if getattr(error, "errno", None) in UNWRITABLE:
            raise
        raise BadInput(str(error)) from error
    log(_screen.understood(posterior))
    return posterior


def tell(run: Path) -> int:
    """Print the progress of a run or a scan, and return the exit code."""
    try:
        folder = RunFolder(run)
        if (plan := folder.plan()) is not None and (progress := folder.scan_progress(plan)):
            click.echo(progress)
            return 0
        seen = status(run)
    except (ValueError, OSError) as error:
        raise BadInput(str(error)) from error
    click.echo(f"{run}: {seen.sentence}")
    for chain, row in seen.chains.iterrows():
        age = "" if row["phase"] == "waiting" else f", as of {row['seconds_ago']:.0f} s ago"
        click.echo(f"  chain {chain + 1}: {row['phase']}, {row['sweeps']:,} of {seen.sweeps:,} iterations{age}")
    return 0
