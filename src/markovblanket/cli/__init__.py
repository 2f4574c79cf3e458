"""The command line: ``markovblanket fit``, ``scan``, ``report``, ``simulate``, ``demo`` and others.

Here are the options and the exit codes; what is heavy is imported by the command that needs it, so help is quick.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from markovblanket import __version__

PRIORS = ("spike-slab", "laplace", "horseshoe", "normal")
MARGINS = ("auto", "rank", "gaussian")
KEEP = ("auto", "draws", "summary", "disk")
SIMULATED = ("continuous", "mixed", "binary", "ordinal", "count")
INTERRUPTED = 130


class Within(click.FloatRange):
    """A range without NaN, which is neither below nor above it."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """A number in the range."""
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


class Draws(click.ParamType):  # type: ignore[type-arg]
    """A whole number of at least 1, or ``auto``."""

    name = "draws"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """As the library takes it."""
        return value if value == "auto" else click.IntRange(min=1).convert(value, param, ctx)


DRAWS: dict[str, Any] = {"type": Draws(), "metavar": "N|auto"}
BUDGET = click.option("--budget", **COUNT, default=20_000, help="Of --draws auto: sweeps of a chain, at most.")
FORCE = click.option("--force", is_flag=True, help="Replace the folder of an earlier run.")
QUIET = click.option("--quiet", is_flag=True, help="No bars, no summary; warnings and errors only.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command. What goes wrong is told in one line.

    Returns
    -------
    int
        0 done, 1 failed (a full disk), 2 bad input, 3 not converged though that was asked for, 130 interrupted.
    """
    try:
        return commands.main(arguments, prog_name="markovblanket", standalone_mode=False) or 0
    except click.ClickException as error:
        click.echo(f"error: {' '.join(error.format_message().split())}{hint(error)}", err=True)
        return error.exit_code
    except click.Abort:
        click.echo("error: interrupted", err=True)
        return INTERRUPTED


def hint(error: click.ClickException) -> str:
    """Where to look after a slip of the fingers."""
    context = getattr(error, "ctx", None)
    return f" (see {context.command_path} --help)" if context else ""


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 80, "show_default": True},
    epilog="Exit codes: 0 done; 2 bad input, nothing written; 3 finished but not converged, with --strict; "
    "130 interrupted; resume goes on.",
    no_args_is_help=False,
)
@click.version_option(__version__, message="%(prog)s %(version)s")
def commands() -> None:
    """Which of these thousands of variables are directly connected to the few I care about, and how sure can I be?

    \b
    Try it:
      markovblanket demo
      markovblanket fit patients.csv --query stage,age,sex --out run/
    """


@commands.command(short_help="Estimate the blanket of a few columns of a table.")
@click.argument("table", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-q", "--query", multiple=True, required=True, metavar="NAMES", help="Columns to ask about.")
@click.option("-o", "--out", type=FOLDER, required=True, metavar="FOLDER", help="Where the results go.")
@click.option("--kind", multiple=True, metavar="NAME=KIND", help="Of a column, if not as its cells look.")
@click.option("--prior", type=click.Choice(PRIORS), default=PRIORS[0], help="Of the weights.")
@click.option("--margins", type=click.Choice(MARGINS), default="auto", help="Of the columns.")
@click.option("--chains", **COUNT, default=4, help="Independent chains.")
@click.option("--warmup", type=click.IntRange(min=0), metavar="N", default=1000, help="Sweeps discarded.")
@click.option("--draws", **DRAWS, default=1000, help="Draws kept per chain; auto: until they converge.")
@BUDGET
@click.option("--thin", **COUNT, default=1, help="Sweeps per kept draw.")
@click.option("--seed", **SEED, help="The same seed, the same numbers.")
@click.option("-j", "--jobs", **COUNT, show_default="one per core", help="Chains at a time.")
@click.option("--keep", type=click.Choice(KEEP), default="auto", help="What is kept of the draws, and where.")
@click.option("--level", **SHARE, help="Select edges whose interval at this level excludes zero.")
@click.option("--fdr", **SHARE, help="Select edges up to this expected share of wrong signs.")
@click.option("--inclusion", **SHARE, help="Select edges at least this likely to be there.")
@click.option("--strict", is_flag=True, help="Exit code 3 if the chains have not converged.")
@FORCE
@QUIET
def fit(**options: Any) -> int:
    """Estimate which columns of TABLE are directly connected to the query columns, and how surely.

    TABLE is a csv, tsv (also .gz), parquet, feather or h5ad file with a row per observation. Columns may be
    continuous, binary, ordinal or counts, and cells may be missing.

    \b
    Examples:
      markovblanket fit patients.csv --query T,N,M,stage --out run/
      markovblanket fit patients.csv -q @names.txt -o run/ --seed 1 --strict
      markovblanket fit survey.csv -q mood --kind mood=low,fair,good -o run/

    NAMES are separated by commas; a name that has a comma stands in double quotes, as in a csv file. The option
    may be repeated, and @FILE reads a name from each line of a file.

    Margins are auto, for columns of any kind; rank, for their order alone; or gaussian, for numbers as they are.

    KIND is continuous, binary, ordinal or count, or the levels in ascending order, separated by commas. Needed
    only where the kind is not what the cells look like.

    Kept are draws, every one, in memory until the end; summary, statistics of every edge and the draws of a few,
    in far less memory; disk, the same, and every draw in posterior/ as it comes; or auto, draws up to two
    gigabytes and a summary beyond.

    Without --level, --fdr or --inclusion, the set of edges of largest expected f-score is selected (spike-slab:
    those more likely there than not, and more where rows are few); with other priors, edges whose 95 % interval
    excludes zero.

    FOLDER gets report.html, edges.csv, network.svg, network.graphml, settings.json, fit.log, and the draws in
    posterior/, which markovblanket.load() reads; they appear when all is done, or not at all. Until then, and
    after it, checkpoint/ has what `markovblanket resume` needs to go on. In edges.csv, names that begin with
    = + - or @, which a spreadsheet would run as formulas, or with ' itself, have a ' before them; everywhere else
    they are exactly those of the table.
    """
    from markovblanket.cli._fit import asked, run

    return run(*asked(**options))


@commands.command(short_help="Go on with a run that was stopped, or add draws to it.")
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("--draws", **DRAWS, show_default="as asked", help="Draws per chain, if more than before.")
@BUDGET
@click.option("-j", "--jobs", **COUNT, show_default="one per core", help="Chains at a time.")
@click.option("--strict", is_flag=True, help="Exit code 3 if the chains have not converged.")
@QUIET
def resume(**options: Any) -> int:
    """Go on with RUN, the folder of a fit that was interrupted, killed or out of space: bit for bit as if nothing
    had happened. A finished run is written again, with more draws if --draws says so.

    \b
    Examples:
      markovblanket resume run/
      markovblanket resume run/ --draws 5000
    """
    from markovblanket.cli._resume import run

    return run(**options)


@commands.command(short_help="How far a run is.")
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
def status(run: Path) -> int:
    """How far RUN, the folder of a fit, is by its last checkpoint; it may be running meanwhile."""
    from markovblanket.cli._resume import tell

    return tell(run)


@commands.command(short_help="Write the report of a run again.")
@click.argument("run", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.option("-o", "--out", type=FOLDER, metavar="FILE", help="Where the page goes.  [default: RUN/report.html]")
@QUIET
def report(**options: Any) -> int:
    """Write the report of RUN, the folder of a fit, as one HTML page that opens from disk.

    A fit has written it already; this is for a newer version, or another place. RUN may also be a folder that
    posterior.save() wrote; then --out names the page.
    """
    from markovblanket.cli._report import run

    return run(**options)


@commands.command(short_help="Draw a table from a network that is known.")
@click.option("--rows", type=click.IntRange(min=2), metavar="N", default=300, help="Observations.")
@click.option("--query", **COUNT, default=5, help="Query variables: Q1, Q2, ...")
@click.option("--rest", **COUNT, default=200, help="Remaining variables: V1, V2, ...")
@click.option("--kinds", type=click.Choice(SIMULATED), default="continuous", help="Of the columns.")
@click.option("--missing", **BELOW_ONE, default=0.0, help="Share of missing cells.")
@click.option("--density", type=Within(0, 1), metavar="P", default=0.05, help="Share of edges.")
@click.option("--seed", **SEED, help="The same seed, the same table.")
@click.option("-o", "--out", type=FOLDER, required=True, metavar="FOLDER", help="Where the table goes.")
@FORCE
@QUIET
def simulate(**options: Any) -> int:
    """Draw a sparse network with hubs and a table from it, to see what a fit would find.

    \b
    Example:
      markovblanket simulate --rows 300 --query 5 --rest 200 --kinds mixed \\
        --missing 0.1 --out sim/

    FOLDER gets table.csv, truth.csv (every pair of a query and another variable, and whether there is an edge) and
    settings.json.
    """
    from markovblanket.cli._simulate import run

    return run(**options)


@commands.command(short_help="Estimate many blankets of one table.")
@click.argument("table", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("-o", "--out", type=FOLDER, required=True, metavar="FOLDER", help="Where the results go.")
@click.option("-q", "--query", multiple=True, metavar="NAMES", show_default="each", help="A set to ask about.")
@click.option("--queries", type=YAML, metavar="FILE", help="Sets to ask about, as YAML.")
@click.option("--kind", multiple=True, metavar="NAME=KIND", help="Of a column, if not as its cells look.")
@click.option("--prior", type=click.Choice(PRIORS), default=PRIORS[0], help="Of the weights.")
@click.option("--margins", type=click.Choice(MARGINS), default="auto", help="Of the columns.")
@click.option("--chains", **COUNT, default=2, help="Independent chains of a fit.")
@click.option("--warmup", type=click.IntRange(min=0), metavar="N", default=500, help="Sweeps discarded.")
@click.option("--draws", **COUNT, default=1000, help="Draws per chain.")
@click.option("--seed", **SEED, help="The same seed, the same numbers.")
@click.option("--rule", type=click.Choice(["or", "and"]), default="or", help="Edges of any fit, or of all.")
@click.option("-j", "--jobs", **COUNT, show_default="one per core", help="Fits at a time.")
@click.option("--dask", metavar="ADDRESS", help="Of a Dask scheduler whose workers run the fits.")
@click.option("--strict", is_flag=True, help="Exit code 3 if a fit has not converged.")
@QUIET
def scan(**options: Any) -> int:
    """Estimate the blanket of every column of TABLE, or of many sets of columns, each by a fit of its own.

    \b
    Examples:
      markovblanket scan genes.csv --out scan/
      markovblanket scan patients.csv -q stage -q age,sex --out scan/
      markovblanket scan genes.parquet --queries sets.yaml --out scan/

    A file of sets has a line such as "- stage" or "- [age, sex]" for each, or "vitals: [age, sex]", whose heading
    is for its readers alone.

    If every column is asked for, each edge is seen from both of its ends: --rule and keeps those that both fits
    select. FOLDER gets edges.csv, network.svg, network.graphml, fits.csv (a row per set), and what each fit has
    found. A scan that was stopped goes on by the same command.
    """
    from markovblanket.cli._scan import run

    return run(**options)


@commands.command(short_help="Fit a simulated clinic whose truth is known.")
@click.option("-o", "--out", type=FOLDER, default=Path("demo"), metavar="FOLDER", help="Results.")
def demo(out: Path) -> int:
    """Simulate a clinic, fit it, and print its blanket beside the truth.

    FOLDER gets the table and its truth, and what `markovblanket fit` writes. That of an earlier demo is replaced.
    """
    from markovblanket.cli._demo import run

    return run(out)
