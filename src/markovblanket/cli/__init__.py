"""The command line: ``markovblanket fit``, ``network``, ``scan``, ``report``, ``demo`` and others.

This module holds the options and the exit codes. Each command imports what it needs when it runs, so that help
texts appear quickly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from markovblanket import __version__

PRIORS = ("spike-slab", "laplace", "horseshoe", "normal")
MARGINS = ("auto", "rank", "gaussian")
KEEP = ("auto", "draws", "summary", "disk")
SIMULATED_KINDS = ("continuous", "mixed", "binary", "ordinal", "count")
EXIT_FAILED, EXIT_INTERRUPTED = 1, 130


class Within(click.FloatRange):
    """A range of numbers that excludes NaN, which click would accept as neither below nor above the range."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number that was typed, if it is in the range."""
        number = super().convert(value, param, ctx)
        if number != number:
            self.fail(f"{value} is not in the range {self._describe_range()}.", param, ctx)
        return number


PROBABILITY = Within(0, 1, min_open=True, max_open=True)
COUNT: dict[str, Any] = {"type": click.IntRange(min=1), "metavar": "N"}
SHARE: dict[str, Any] = {"type": PROBABILITY, "metavar": "P"}
BELOW_ONE: dict[str, Any] = {"type": Within(0, 1, max_open=True), "metavar": "P"}
SEED: dict[str, Any] = {"type": click.IntRange(min=0), "metavar": "N", "show_default": "fresh"}
FOLDER = click.Path(path_type=Path)
YAML = click.Path(exists=True, dir_okay=False, path_type=Path)


class CountOrAuto(click.IntRange):
    """A whole number, or the word ``auto``."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """The number that was typed, or ``auto``, as :func:`markovblanket.estimate` takes it."""
        return value if value == "auto" else super().convert(value, param, ctx)


DRAWS: dict[str, Any] = {"type": CountOrAuto(min=1), "metavar": "N|auto"}
COUNT_FROM_ZERO: dict[str, Any] = {"type": CountOrAuto(min=0), "metavar": "N|auto"}
BUDGET = click.option("--budget", **COUNT, default=10_000, help="Most iterations per chain with --draws auto.")
FORCE = click.option("--force", is_flag=True, help="Replace the folder of an earlier run.")
QUIET = click.option("--quiet", is_flag=True, help="No progress bars and no summary; only warnings and errors.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command, and report an error in one line on standard error.

    Returns
    -------
    int
        The exit code: 0 done, 1 failed while running (such as by a full disk), 2 bad input, 3 not converged,
        with ``--strict``, 130 interrupted.
    """
    try:
        return commands.main(arguments, prog_name="markovblanket", standalone_mode=False) or 0
    except click.ClickException as error:
        click.echo(f"error: {' '.join(error.format_message().split())}{hint(error)}", err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("error: interrupted", err=True)
        return EXIT_INTERRUPTED
    except MemoryError as error:
        click.echo(f"error: {str(error) or 'out of memory'}", err=True)
        return EXIT_FAILED


def hint(error: click.ClickException) -> str:
    """The help command to name after an error in the options; empty if the error belongs to no command."""
    context = getattr(error, "ctx", None)
    return f" (see {context.command_path} --help)" if context else ""


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80, "show_default": True},
    epilog="Exit codes: 0 done; 2 bad input, nothing written; 3 finished but not converged, with --strict; "
    "130 interrupted; resume continues.",
    no_args_is_help=False,
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def commands() -> None:
    """Which of these thousands of variables are directly connected to the few I care about, and how sure can I be?

    \b
    Try it:
      markovblanket demo
      markovblanket fit patients.csv --query stage,age,sex --out run/
      markovblanket network survey.csv --out net/
    """


# Options of both ``fit`` and ``network``, in the order of their help.
FITTING = (
    click.option("-o", "--out", type=FOLDER, required=True, metavar="FOLDER", help="Folder for the results."),
    click.option("--kind", multiple=True, metavar="NAME=KIND", help="Kind of a column, if inferred wrongly."),
    click.option("--margins", type=click.Choice(MARGINS), default="auto", help="Model of the columns."),
    click.option("--chains", **COUNT, default=4, help="Independent chains."),
    click.option("--warmup", **COUNT_FROM_ZERO, default="auto", help="Iterations discarded; auto: 300, or 1000."),
    click.option("--draws", **DRAWS, default="auto", help="Draws kept per chain; auto: until the chains agree."),
    BUDGET,
    click.option("--thin", **COUNT, default=1, help="Iterations per kept draw."),
    click.option("--seed", **SEED, help="The same seed gives the same numbers."),
    click.option("-j", "--jobs", **COUNT, show_default="one per core", help="Chains run at the same time."),
    click.option("--keep", type=click.Choice(KEEP), default="auto", help="How draws are kept."),
    click.option("--probability", **SHARE, help="Select edges present with at least this probability."),
    click.option("--fdr", **SHARE, help="Select edges up to this expected false discovery rate."),
    click.option("--level", **SHARE, help="Select edges whose interval at this level excludes zero."),
    click.option("--strict", is_flag=True, help="Exit code 3 if the chains have not converged."),
    FORCE,
    QUIET,
)


def with_options(options: Sequence[Callable[[Any], Any]]) -> Callable[[Any], Any]:
    """A decorator that adds several options to a command, in their order."""

    def decorated(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorated


@commands.command(short_help="Estimate the blanket of a few columns of a table.")
@click.argument("table", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-q", "--query", multiple=True, required=True, metavar="NAMES", help="Columns of interest.")
@click.option("--candidates", **COUNT_FROM_ZERO, default="auto", help="Most candidates in the query's block.")
@click.option("--prior", type=click.Choice(PRIORS), default=PRIORS[0], help="Prior of the edges.")
@with_options(FITTING)
def fit(**options: Any) -> int:
    """Estimate which columns of TABLE are directly connected to the query columns, and how certain that is.

    TABLE is a csv, tsv (also .gz), parquet, feather or h5ad file with a row per observation. Columns may be
    continuous, binary, ordinal or counts, and cells may be missing.

    \b
    Examples:
      markovblanket fit patients.csv --query T,N,M,stage --out run/
      markovblanket fit patients.csv -q @names.txt -o run/ --seed 1 --strict
      markovblanket fit survey.csv -q mood --kind mood=low,fair,good -o run/

    NAMES are separated by commas; a name that contains a comma is written in double quotes, as in a csv file. The
    option may be repeated, and @FILE reads a name from each line of a file.

    Candidates are likely neighbours of the query that are modelled as fully as the query itself, so that edges are
    seen from both ends. auto takes all columns of a small table, and otherwise those that a short scouting stage
    finds; 0 takes none.

    --margins auto is for columns of any kind; rank uses only the order of the values; gaussian takes numbers as
    they are.

    KIND is continuous, binary, ordinal or count, or the levels in ascending order, separated by commas. It is
    needed only where the kind that is inferred from the cells is wrong.

    --keep draws keeps every draw in memory until the end; summary keeps statistics of every edge and the draws of
    a few edges, in far less memory; disk keeps a summary, and writes every draw to posterior/ while the chains
    run; auto keeps draws up to two gigabytes, and a summary beyond.

    Without --probability, --fdr or --level, the spike-slab prior selects the set of edges with the largest
    expected F-score (edges that are more likely present than not, and more where rows are few); other priors
    select the edges whose 95 % interval excludes zero.

    FOLDER receives report.html, edges.csv, network.svg, network.graphml, settings.json, fit.log, and the draws in
    posterior/, which markovblanket.load() reads; they appear when all of them are complete, or not at all.
    checkpoint/ exists from the beginning, and holds what `markovblanket resume` needs. In edges.csv, names that
    begin with = + - or @, which a spreadsheet would run as formulas, or with ' itself, have a ' before them;
    everywhere else names are exactly those of the table.
    """
    from markovblanket.cli._fit import asked, run

    return run(*asked(**options))


@commands.command(short_help="Estimate the whole network of a table.")
@click.argument("table", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@with_options(FITTING)
def network(**options: Any) -> int:
    """Estimate which columns of TABLE are directly connected to each other, and how certain that is.

    All columns are modelled together with the spike-slab prior, up to a few hundred of them; `markovblanket scan`
    takes more.

    \b
    Example:
      markovblanket network survey.csv --out net/

    The options are those of `markovblanket fit`, whose help explains them, and FOLDER receives the same files.
    """
    from markovblanket.cli._fit import asked, run

    return run(*asked(**options))


@commands.command(short_help="Continue a run that was stopped, or add draws to it.")
@click.argument("run", type=click.Path(file_okay=False, path_type=Path))
@click.option("--draws", **DRAWS, show_default="as before", help="Draws per chain, if more than before.")
@BUDGET
@click.option("-j", "--jobs", **COUNT, show_default="one per core", help="Chains run at the same time.")
@click.option("--strict", is_flag=True, help="Exit code 3 if the chains have not converged.")
@QUIET
def resume(**options: Any) -> int:
    """Continue RUN, the folder of a fit or a network that was interrupted, killed or out of disk space.

    The results are bit for bit those of a run without interruption. Those of a finished run are written again,
    with more draws if --draws asks for them.

    \b
    Examples:
      markovblanket resume run/
      markovblanket resume run/ --draws 5000
    """
    from markovblanket.cli._resume import run

    return run(**options)


@commands.command(short_help="Show the progress of a run.")
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
def status(run: Path) -> int:
    """Show the progress of RUN, the folder of a fit, a network or a scan. It may be running."""
    from markovblanket.cli._resume import tell

    return tell(run)


@commands.command(short_help="Write the report of a run again.")
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("-o", "--out", type=FOLDER, metavar="FILE", help="File for the page.  [default: RUN/report.html]")
@QUIET
def report(**options: Any) -> int:
    """Write the report of RUN, the folder of a fit or a network, as one HTML page that opens from disk.

    A fit writes its report itself; use this command after an upgrade of markovblanket, or to write the page to
    another file. RUN may also be a folder written by posterior.save(); then --out is required.
    """
    from markovblanket.cli._report import run

    return run(**options)


@commands.command(short_help="Simulate a table from a known network.")
@click.option("--rows", type=click.IntRange(min=2), metavar="N", default=300, help="Number of rows.")
@click.option("--query", **COUNT, default=5, help="Number of query variables: Q1, Q2, ...")
@click.option("--rest", **COUNT, default=200, help="Number of other variables: V1, V2, ...")
@click.option("--kinds", type=click.Choice(SIMULATED_KINDS), default="continuous", help="Kinds of the columns.")
@click.option("--missing", **BELOW_ONE, default=0.0, help="Fraction of missing cells.")
@click.option("--density", type=Within(0, 1), metavar="P", default=0.05, help="Fraction of pairs with an edge.")
@click.option("--seed", **SEED, help="The same seed gives the same table.")
@click.option("-o", "--out", type=FOLDER, required=True, metavar="FOLDER", help="Folder for the table.")
@FORCE
@QUIET
def simulate(**options: Any) -> int:
    """Draw a sparse network with hubs, and a table from it, to test what a fit finds.

    \b
    Example:
      markovblanket simulate --rows 300 --query 5 --rest 200 --kinds mixed \\
        --missing 0.1 --out sim/

    FOLDER receives table.csv, truth.csv (every pair of a query variable and any other variable, and whether it has
    an edge) and settings.json.
    """
    from markovblanket.cli._simulate import run

    return run(**options)


@commands.command(short_help="Estimate many blankets of one table.")
@click.argument("table", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-o", "--out", type=FOLDER, required=True, metavar="FOLDER", help="Folder for the results.")
@click.option(
    "-q", "--query", multiple=True, metavar="NAMES", show_default="each column", help="One set of query columns."
)
@click.option("--queries", type=YAML, metavar="FILE", help="YAML file with sets of query columns.")
@click.option("--kind", multiple=True, metavar="NAME=KIND", help="Kind of a column, if inferred wrongly.")
@click.option("--prior", type=click.Choice(PRIORS), default=PRIORS[0], help="Prior of the edges.")
@click.option("--margins", type=click.Choice(MARGINS), default="auto", help="Model of the columns.")
@click.option("--chains", **COUNT, default=2, help="Independent chains per fit.")
@click.option("--warmup", type=click.IntRange(min=0), metavar="N", default=500, help="Iterations discarded.")
@click.option("--draws", **COUNT, default=1000, help="Draws kept per chain.")
@click.option("--seed", **SEED, help="The same seed gives the same numbers.")
@click.option(
    "--rule", type=click.Choice(["or", "and"]), default="or", help="Keep edges selected by any fit, or by all."
)
@click.option("-j", "--jobs", **COUNT, show_default="one per core", help="Fits run at the same time.")
@click.option("--dask", metavar="ADDRESS", help="Address of a Dask scheduler whose workers run the fits.")
@click.option("--strict", is_flag=True, help="Exit code 3 if a fit has not converged.")
@QUIET
def scan(**options: Any) -> int:
    """Estimate the blanket of every column of TABLE, or of many sets of columns, with a separate fit for each.

    \b
    Examples:
      markovblanket scan genes.csv --out scan/
      markovblanket scan patients.csv -q stage -q age,sex --out scan/
      markovblanket scan genes.parquet --queries sets.yaml --out scan/

    A file of sets has a line for each set, such as "- stage" or "- [age, sex]", or "vitals: [age, sex]"; the
    heading, here vitals, has no other use.

    If every column is a query, each edge is estimated from both of its ends: --rule and keeps the edges that both
    fits select. FOLDER receives edges.csv, network.svg, network.graphml, fits.csv (a row per set), and the results
    of each fit. To continue a scan that was stopped, run the same command again.
    """
    from markovblanket.cli._scan import run

    return run(**options)


@commands.command(short_help="Fit a simulated clinic whose truth is known.")
@click.option("-o", "--out", type=FOLDER, default=Path("demo"), metavar="FOLDER", help="Folder for the results.")
def demo(out: Path) -> int:
    """Simulate a clinic, fit it, and print its blanket beside the truth.

    FOLDER receives the table, its truth, and what `markovblanket fit` writes. The folder of an earlier demo is
    replaced.
    """
    from markovblanket.cli._demo import run

    return run(out)
