"""The command line: what it writes, what it refuses, and that nothing is half-written."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import markovblanket as mb
from markovblanket.chains.zarr_store import DiskStore
from markovblanket.cli import KEEP, PRIORS, SIMULATED_KINDS, _options, _output_folder, commands, main
from markovblanket.cli import _fit as fitting
from markovblanket.cli._options import BadInput
from markovblanket.fitting.estimate import PRIORS as KNOWN_PRIORS
from markovblanket.fitting.keep import KEEP_WORDS
from markovblanket.simulation.networks import KIND_MAPS

# Names that a csv file, a spreadsheet, a terminal, HTML or a shell might take for something else.
NAMES = {"Q1": "a, b", "V1": "=1+1", "V2": "[bold]x", "V3": "<b>&amp;", "V4": "größe", "V5": "-minus", "V6": "$x$"}
TINY = ["--chains", "2", "--warmup", "50", "--draws", "50", "--seed", "1", "--jobs", "1"]
LIKELY = ["--probability", "0.2"]
SOURCE = str(Path(mb.__file__).parents[1])
WRITTEN = {"edges.csv", "fit.log", "network.graphml", "network.svg", "posterior", "report.html", "settings.json"}
WRITTEN |= {"checkpoint"}


def table() -> pd.DataFrame:
    return mb.simulate(rows=60, query=2, rest=8, density=0.4, seed=4).table.rename(columns=NAMES)


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    """A folder with a table, and a run of it."""
    place = tmp_path_factory.mktemp("place")
    table().to_csv(place / "table.csv", index=False)
    query = ["--query", '"a, b"', "--query", "Q2"]
    assert main(["fit", str(place / "table.csv"), *query, "--out", str(place / "run"), *LIKELY, *TINY]) == 0
    return place


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """A working directory with a small table and nothing else."""
    table().to_csv(tmp_path / "table.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(capsys, *arguments: str) -> str:
    """The one line of what is refused; nothing is written."""
    before = sorted(str(path) for path in Path.cwd().rglob("*"))
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("error: ")
    assert sorted(str(path) for path in Path.cwd().rglob("*")) == before
    return err.removeprefix("error: ").strip()


def assert_written(file: str | Path, expected: pd.DataFrame) -> None:
    """A file holds these names, and these numbers to the last bit."""
    written = pd.read_csv(file, dtype=str)
    for name, column in expected.items():
        if column.dtype.kind == "f":
            written[name] = written[name].map(float)
        elif column.dtype.kind == "b":
            written[name] = written[name].map({"True": True, "False": False})
        elif name in ("query", "variable"):
            written[name] = written[name].str.removeprefix(_output_folder.FORMULA_MARK)
    pd.testing.assert_frame_equal(written, expected, check_exact=True)


CAN_GO_ON = (
    r"error: (interrupted|.*No space left on device); markovblanket resume run continues from the last .*\n"
)


def results_in(folder):
    """All files but those of checkpoints."""
    return {
        path.relative_to(folder): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "checkpoint" not in path.parts
    }


# What a fit writes --------------------------------------------------------------------------------------


def test_a_run_holds_what_is_promised_and_leaves_nothing_beside_it(place):
    assert {entry.name for entry in (place / "run").iterdir()} == WRITTEN
    assert {entry.name for entry in place.iterdir()} == {"table.csv", "run"}


def test_edges_are_those_of_the_posterior_with_names_that_come_back(place):
    posterior = mb.load(place / "run" / "posterior")
    expected = posterior.edges(0.2)
    assert_written(place / "run" / "edges.csv", expected)
    assert {"=1+1", "-minus"} & set(expected["variable"])


def test_the_posterior_is_the_one_that_python_estimates(place):
    with pytest.warns(match="not converged"):
        same = mb.estimate(place / "table.csv", ["a, b", "Q2"], chains=2, warmup=50, draws=50, seed=1)
    np.testing.assert_array_equal(mb.load(place / "run" / "posterior").W12, same.W12)


def test_pictures_have_every_selected_variable(place):
    edges = mb.load(place / "run" / "posterior").edges(0.2)
    names = {*edges["variable"], "a, b", "Q2"}
    drawn = ElementTree.parse(place / "run" / "network.svg").iter("{http://www.w3.org/2000/svg}text")
    assert names <= {"".join(text.itertext()).strip() for text in drawn}
    graph = nx.read_graphml(place / "run" / "network.graphml")
    assert set(graph) == names
    assert {frozenset(pair) for pair in edges[["query", "variable"]].to_numpy()} <= set(
        map(frozenset, graph.edges)
    )


def test_settings_and_log_tell_how_it_was_made(place):
    settings = json.loads((place / "run" / "settings.json").read_text())
    assert settings["query"] == ["a, b", "Q2"]
    assert (settings["rule"], settings["seed"], settings["draws"]) == ({"probability": 0.2}, "1", 50)
    log = (place / "run" / "fit.log").read_text()
    assert mb.__version__ in log
    assert "cells missing" in log
    assert "not converged: " in log


def test_the_summary_takes_names_literally_and_says_what_to_beware_of(place, capsys):
    again = ["fit", str(place / "table.csv"), "-q", '"a, b",Q2', "-o", str(place / "run"), *LIKELY, *TINY]
    assert main([*again, "--force", "--strict"]) == 3
    out, err = capsys.readouterr()
    edges = mb.load(place / "run" / "posterior").edges(0.2)
    for variable in edges["variable"]:
        assert variable in out
    assert max(map(len, out.splitlines())) <= 80
    assert "NOT CONVERGED: worst R-hat" in out
    assert "warning: not converged: " in err
    assert "a spreadsheet would take '" in err
    assert main([*again, "--force", "--quiet"]) == 0
    assert capsys.readouterr().out == ""
    assert {entry.name for entry in place.iterdir()} == {"table.csv", "run"}


def test_candidates_are_as_many_as_were_asked_for(here, capsys):
    fit = ["fit", "table.csv", "-q", "Q2", *TINY]
    assert main([*fit, "-o", "none", "--candidates", "0"]) == 0
    assert "Candidates" not in capsys.readouterr().out
    assert main([*fit, "-o", "some"]) == 0
    assert "Candidates: all 9 other variables." in capsys.readouterr().out
    asked = [mb.load(f"{run}/posterior").settings["candidates"]["asked"] for run in ("none", "some")]
    assert asked == [0, "auto"]


def test_no_edge_is_said_in_words(here, capsys):
    noise = pd.DataFrame(np.random.default_rng(3).normal(size=(60, 4)), columns=list("abcd"))
    noise.to_csv("noise.csv", index=False)
    assert main(["fit", "noise.csv", "-q", "a", "-o", "run", "--probability", "0.999", *TINY]) == 0
    assert "No edge is selected." in capsys.readouterr().out
    assert len(pd.read_csv("run/edges.csv")) == 0


def test_without_matplotlib_the_picture_is_left_out_and_that_is_said(here, capsys, monkeypatch):
    monkeypatch.setattr(_output_folder, "find_spec", lambda name: None)
    assert main(["fit", "table.csv", "-q", "Q2", "-o", "run", *TINY]) == 0
    assert "network.svg is left out" in capsys.readouterr().err
    assert {entry.name for entry in Path("run").iterdir()} == WRITTEN - {"network.svg", "report.html"}


def test_names_that_no_xml_file_may_hold_do_not_cost_the_run():
    graph = _output_folder.printable(nx.Graph([("a\x01b", "c"), ("c", 3)]))
    assert set(graph) == {"a\ufffdb", "c", "3"}


# What is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["table.csv", "-q", "grösse"], r"query 'grösse' is not a column of the table; did you mean 'größe'\?"),
        (["table.csv", "-q", "Q2,Q2"], "query names 'Q2' more than once"),
        (["table.csv", "-q", ""], "query is empty"),
        (["table.csv", "-q", '"Q2'], "cannot be read as names"),
        (["table.csv", "-q", "@names.txt"], "cannot read names from 'names.txt': No such file"),
        (["table.csv"], "Missing option '-q' / '--query'"),
        (["tabel.csv", "-q", "Q2"], "'tabel.csv' does not exist"),
        (["binary.csv", "-q", "Q2"], "cannot read 'binary.csv'"),
        (["empty.csv", "-q", "Q2"], "cannot read 'empty.csv'"),
        (["cut.csv.gz", "-q", "Q2"], "cannot read 'cut.csv.gz': .*ended before"),
        (["damaged.csv.gz", "-q", "Q2"], "cannot read 'damaged.csv.gz': .*decompressing"),
        (["damaged.parquet", "-q", "Q2"], "damaged.parquet.*: Parquet magic bytes not found"),
        (["damaged.h5ad", "-q", "Q2"], "cannot read 'damaged.h5ad': .*file signature"),
        (["table.xlsx", "-q", "Q2"], "cannot read 'table.xlsx': a table file ends in .csv"),
        (["text.csv", "-q", "mood"], r"pass --kind 'mood=LOWEST,\.\.\.,HIGHEST'"),
        (["text.csv", "-q", "mood", "--kind", "mood=a,b"], "column 'mood' has 'c' outside its declared order"),
        (
            ["text.csv", "-q", "x", "--kind", "mod=a,b,c"],
            "'mod' is not a column .* did you mean 'mood'",
        ),
        (["text.csv", "-q", "x", "--kind", "mood=ordnal"], "--kind mood=ordnal: a kind is one of continuous"),
        (["text.csv", "-q", "x", "--kind", "mood"], "write NAME=KIND"),
        (["text.csv", "-q", "x", "--kind", "x=count", "--kind", "x=ordinal"], "declares 'x' more than once"),
        (["text.csv", "-q", "x", "--kind", "x=count", "--margins", "gaussian"], "use --margins auto or rank"),
        (["table.csv", "-q", "Q2", "--prior", "ridge"], "'ridge' is not one of 'spike-slab'"),
        (["table.csv", "-q", "Q2", "--level", "0.9", "--fdr", "0.1"], "--fdr and --level: .* one of them"),
        (["table.csv", "-q", "Q2", "--prior", "normal", "--probability", "0.5"], "no edge is certainly absent"),
        (["table.csv", "-q", "Q2", "--draws", "0"], "0 is not in the range x>=1"),
        (["table.csv", "-q", "Q2", "--candidates", "-1"], "-1 is not in the range x>=0"),
        (["table.csv", "-q", "Q2", "--candidates", "some"], "'some' is not a valid integer"),
        (
            ["table.csv", "-q", "Q2", "--out", "full"],
            "full holds other files than those of an earlier fit .notes.txt.",
        ),
        (
            ["table.csv", "-q", "Q2", "--out", "full", "--force"],
            "full holds other files than those of an earlier fit",
        ),
        (["table.csv", "-q", "Q2", "--out", "table.csv"], "exists and is not a folder"),
        (["table.csv", "-q", "Q2", "--out", "table.csv/run"], "cannot write to .*table.csv"),
        (["table.csv", "-q", "Q2", "--out", "."], "contains the working directory"),
    ],
)
def test_bad_input_is_told_in_one_line_and_nothing_is_written(here, capsys, arguments, message):
    (here / "binary.csv").write_bytes(bytes(range(128, 256)))
    (here / "empty.csv").touch()
    packed = gzip.compress((here / "table.csv").read_bytes())
    (here / "cut.csv.gz").write_bytes(packed[: len(packed) // 2])
    (here / "damaged.csv.gz").write_bytes(packed[:20] + bytes(1000))
    (here / "damaged.parquet").write_bytes(b"PAR1" + bytes(100))
    (here / "damaged.h5ad").write_bytes(bytes(100))
    (here / "table.xlsx").touch()
    pd.DataFrame({"mood": list("abc") * 10, "x": range(30)}).to_csv(here / "text.csv", index=False)
    (here / "full").mkdir()
    (here / "full" / "notes.txt").touch()
    out = [] if "--out" in arguments else ["--out", "deep/run"]
    assert re.search(message, refused(capsys, "fit", *arguments, *out))


def test_an_earlier_run_is_replaced_only_by_force_and_never_with_files_of_others(here, capsys):
    simulate = ["simulate", "--rows", "5", "--rest", "3", "--out", "sim"]
    assert main([*simulate, "--seed", "1"]) == 0
    capsys.readouterr()
    assert "holds an earlier simulation" in refused(capsys, *simulate)
    first = Path("sim/table.csv").read_text()
    assert main([*simulate, "--seed", "2", "--force"]) == 0
    assert Path("sim/table.csv").read_text() != first
    capsys.readouterr()
    Path("sim/notes.txt").touch()
    assert "(notes.txt)" in refused(capsys, *simulate, "--force")


def test_an_empty_folder_is_taken(here):
    Path("sim").mkdir()
    assert main(["simulate", "--rows", "5", "--rest", "3", "--out", "sim", "--quiet"]) == 0
    assert {entry.name for entry in Path("sim").iterdir()} == {"table.csv", "truth.csv", "settings.json"}


@pytest.mark.parametrize(
    "error", [OSError(28, "No space left on device"), KeyboardInterrupt(), RuntimeError("bug")]
)
def test_what_fails_late_leaves_the_earlier_run_as_it_was_and_can_go_on(here, capsys, monkeypatch, error):
    def fail(*arguments):
        raise error

    assert main(["simulate", "--rows", "30", "--rest", "3", "--query", "1", "--out", "sim", "--quiet"]) == 0
    fit = ["fit", "sim/table.csv", "-q", "Q1", "-o", "run", "--quiet", *TINY]
    assert main(fit) == 0
    before = results_in(here)
    fit = [*fit, "--draws", "60"]
    capsys.readouterr()
    monkeypatch.setattr(_output_folder, "draw", fail)
    if isinstance(error, RuntimeError):  # a fault of ours is told with all its details
        with pytest.raises(RuntimeError, match="bug"):
            main([*fit, "--force"])
    else:
        assert main([*fit, "--force"]) == (1 if isinstance(error, OSError) else 130)
        assert re.fullmatch(CAN_GO_ON, capsys.readouterr().err)
    assert results_in(here) == before
    monkeypatch.undo()
    monkeypatch.chdir(here)
    assert main(["resume", "run", "--quiet"]) == 0
    assert main([*fit[:5], "other", *fit[6:]]) == 0
    assert results_in(here / "run").keys() == results_in(here / "other").keys()
    assert Path("run/edges.csv").read_bytes() == Path("other/edges.csv").read_bytes()


# What is kept of the draws ------------------------------------------------------------------------------


def kept(where: str, keep: str) -> mb.Posterior:
    query = ["-q", '"a, b",Q2', "-o", where, *LIKELY, "--quiet"]
    assert main(["fit", "table.csv", *query, *TINY, "--keep", keep]) == 0
    assert {entry.name for entry in Path(where).iterdir()} == WRITTEN
    return mb.load(Path(where, "posterior"))


def test_what_is_kept_never_changes_the_numbers(place, here):
    draws, summary, disk = mb.load(place / "run" / "posterior"), kept("summary", "summary"), kept("disk", "disk")
    assert "W12" not in summary.draws
    np.testing.assert_array_equal(disk.W12, draws.W12.astype(np.float32))
    for one in (summary, disk):
        pd.testing.assert_frame_equal(one.selected(0.2), draws.selected(0.2))
        np.testing.assert_array_equal(one.W11, draws.W11)
    assert Path("summary/edges.csv").read_bytes() == Path("disk/edges.csv").read_bytes()


def test_draws_on_disk_are_in_the_folder_of_the_run_and_nothing_tells_where_they_were_before(here):
    posterior = kept("run", "disk")
    expected = {"asked": "disk", "kept": "disk", "why": "as asked"}
    assert posterior.settings["keep"] == json.loads(Path("run/settings.json").read_text())["keep"] == expected
    assert Path(posterior.draws.encoding["source"]) == here / "run" / "posterior" / "draws.zarr"
    for file in (file for file in Path("run").rglob("*") if file.is_file()):
        assert b".run-" not in file.read_bytes(), file
    assert len(posterior.predict(table().head(3), draws=5, seed=1).mean) == 3  # reads W12
    assert main(["report", "run", "--quiet"]) == 0
    before = posterior.W12.values
    Path("run").rename("elsewhere")
    np.testing.assert_array_equal(mb.load("elsewhere/posterior").W12, before)


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_draws_on_disk_go_on_after_the_disk_was_full(here, capsys, monkeypatch, error):
    def fail(store, begin):
        raise error

    monkeypatch.setattr(DiskStore, "_write", fail)
    fit = ["fit", "table.csv", "-q", "Q2", "--quiet", *TINY, "--keep", "disk", "-o"]
    assert main([*fit, "run"]) in (1, 130)
    assert re.fullmatch(CAN_GO_ON, capsys.readouterr().err)
    assert sorted(entry.name for entry in here.iterdir()) == ["run", "table.csv"]
    assert [entry.name for entry in Path("run").iterdir()] == ["checkpoint"]
    assert "holds an unfinished run" in refused(capsys, *fit, "run")
    monkeypatch.undo()
    monkeypatch.chdir(here)
    assert main(["resume", "run", "--quiet"]) == 0
    assert main([*fit, "other"]) == 0
    one, other = (mb.load(f"{run}/posterior") for run in ("run", "other"))
    np.testing.assert_array_equal(one.W12, other.W12)
    assert one.settings == other.settings


# Names, kinds and choices -------------------------------------------------------------------------------


def test_names_come_from_options_and_files_by_the_rules_of_csv(tmp_path):
    file = tmp_path / "names.txt"
    file.write_text("\ufeffT\n\n a, b \n@home\n", encoding="utf-8")
    assert _options.names([f"@{file}", 'N,"say ""M""",', '"@home"']) == [
        "T",
        "a, b",
        "@home",
        "N",
        'say "M"',
        "@home",
    ]


def test_kinds_split_at_the_first_equals_sign_outside_quotes():
    assert _options.kinds(['"a=""b"""=<1,>=1', " c = ordinal "]) == {'a="b"': ["<1", ">=1"], "c": "ordinal"}
    with pytest.raises(BadInput, match="a kind is one of"):
        _options.kinds(["a="])


def test_declared_kinds_reach_the_posterior(here):
    moods = pd.DataFrame({"mood": ["low", "fair", "good"] * 20, "x": np.random.default_rng(1).normal(size=60)})
    moods.to_csv("moods.csv", index=False)
    assert (
        main(["fit", "moods.csv", "-q", "x", "--kind", "mood=low,fair,good", "-o", "run", "--quiet", *TINY]) == 0
    )
    column = mb.load("run/posterior").observed.table.columns[1]
    assert (column.kind, column.levels) == ("ordinal", ("low", "fair", "good"))


def test_choices_are_those_of_the_library():
    assert set(PRIORS) == set(KNOWN_PRIORS)
    assert (*KEEP_WORDS, fitting.DISK) == KEEP
    assert set(SIMULATED_KINDS) == {"mixed", *KIND_MAPS}


def test_every_option_of_a_fit_has_help_and_reaches_the_library():
    (fit,) = [command for name, command in commands.commands.items() if name == "fit"]
    assert all(option.help for option in fit.params[1:])
    typed = {option.name: option.name for option in fit.params} | {"chains": 4, "jobs": None, "query": ["Q"]}
    typed |= {"kind": [], "level": 0.5, "fdr": None, "probability": None}
    question, _ = fitting.asked(**typed)
    assert set(question.run) <= set(mb.estimate.__kwdefaults__)


def test_a_report_is_written_again_and_elsewhere(place, tmp_path, capsys):
    page = (place / "run" / "report.html").read_bytes()
    (place / "run" / "report.html").unlink()
    assert main(["report", str(place / "run")]) == 0
    assert (place / "run" / "report.html").read_bytes() == page
    assert main(["report", str(place / "run" / "posterior"), "--out", str(tmp_path / "page.html"), "--quiet"]) == 0
    assert (tmp_path / "page.html").read_bytes() == page


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "'nowhere' does not exist"),
        (["empty"], "empty is not the folder of a fit"),
        (["empty", "--out", "page.html"], "not a saved posterior"),
        (["empty", "--out", "empty"], "empty is a folder: name a file"),
    ],
)
def test_what_has_no_report_is_refused(here, capsys, arguments, message):
    (here / "empty").mkdir()
    assert message in refused(capsys, "report", *arguments)


# The other commands, help and manners ---------------------------------------------------------------------


def test_simulate_writes_the_table_that_python_draws(here, capsys):
    arguments = [
        "--rows",
        "40",
        "--query",
        "3",
        "--rest",
        "9",
        "--kinds",
        "mixed",
        "--missing",
        "0.1",
        "--seed",
        "5",
    ]
    assert main(["simulate", *arguments, "--out", "sim"]) == 0
    made = mb.simulate(40, 3, 9, kinds="mixed", missing=0.1, seed=5)
    assert_written("sim/table.csv", made.table)
    assert_written("sim/truth.csv", pd.concat([made.query_edges, made.truth], ignore_index=True))
    assert "seed 5" in capsys.readouterr().out


def test_a_seed_that_was_not_given_is_told(here, capsys):
    assert main(["simulate", "--rows", "5", "--rest", "3", "--out", "one"]) == 0
    seed = re.search(r"seed (\d+)", capsys.readouterr().out)[1]
    assert main(["simulate", "--rows", "5", "--rest", "3", "--out", "two", "--seed", seed]) == 0
    assert Path("one/table.csv").read_text() == Path("two/table.csv").read_text()


def test_the_command_line_tells_its_version_and_refuses_what_it_does_not_know(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out.strip() == f"markovblanket {mb.__version__}"
    assert main(["dance"]) == 2
    assert capsys.readouterr().err == "error: No such command 'dance'. (see markovblanket --help)\n"
    assert main([]) == 2
    assert capsys.readouterr().err == "error: Missing command. (see markovblanket --help)\n"


def test_shells_complete_commands_and_choices(capsys, monkeypatch):
    for words, expected in (
        ("markovblanket si", "simulate"),
        ("markovblanket fit --prior la", "laplace"),
    ):
        monkeypatch.setenv("_MARKOVBLANKET_COMPLETE", "bash_complete")
        monkeypatch.setenv("COMP_WORDS", words)
        monkeypatch.setenv("COMP_CWORD", str(len(words.split()) - 1))
        with pytest.raises(SystemExit, match="0"):
            main([])
        assert capsys.readouterr().out.split() == [f"plain,{expected}"]


def python(*arguments: str, **options) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": SOURCE, "COLUMNS": "80", "PYTHONWARNINGS": "default"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen([sys.executable, *arguments], env=environment, text=True, **pipes, **options)


def hear_ctrl_c() -> None:
    signal.signal(signal.SIGINT, signal.SIG_DFL)


HELP = """
import sys, time
begin = time.perf_counter()
from markovblanket.cli import commands, main
for command in ["", *commands.commands]:
    assert main([*command.split(), "--help"]) == 0
print(time.perf_counter() - begin, *sys.modules, file=sys.stderr)
"""


def test_help_fits_eighty_columns_and_is_quick():
    out, err = python("-c", HELP).communicate(timeout=60)
    assert out.count("Usage: markovblanket") == 1 + len(commands.commands)
    assert max(map(len, out.splitlines())) <= 80
    seconds, *modules = err.split()
    assert float(seconds) < 3  # a tenth of it where nothing else runs
    assert {"numba", "numpy", "pandas", "arviz", "rich"}.isdisjoint(modules)


@pytest.mark.skipif(os.name == "nt", reason="signals are those of POSIX")
def test_an_interrupted_run_says_in_one_line_how_to_go_on(here, capsys):
    schedule = ("--draws", "1000000", "--jobs", "1", "--keep", "summary")
    endless = ("fit", "table.csv", "-q", "Q2", "-o", "run", *schedule)
    # As in a terminal: a shell's background jobs ignore Ctrl-C, and so do their children.
    process = python("-m", "markovblanket", *endless, cwd=here, preexec_fn=hear_ctrl_c)
    try:
        while not list(here.glob("run/checkpoint/plan.json")):
            assert process.poll() is None, process.communicate()
            time.sleep(0.05)
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
    finally:
        process.kill()  # whatever went wrong, nothing runs on
    after = "error: interrupted; markovblanket resume run continues from the last checkpoint"
    assert (process.returncode, out, err.strip()) == (130, "", after)
    assert sorted(entry.name for entry in here.iterdir()) == ["run", "table.csv"]
    assert main(["status", "run"]) == 0
    assert re.match("run: stopped, 0% of all iterations done", capsys.readouterr().out)


def test_more_draws_are_those_of_a_longer_fit(here, capsys):
    fit = ["fit", "table.csv", "-q", "Q2", "--quiet", *TINY]
    longer = [*fit, "--draws", "80"]
    assert main([*fit, "-o", "run"]) == main([*longer, "-o", "other"]) == 0
    assert main(["resume", "run", "--draws", "80", "--quiet", "--strict"]) == 3
    assert Path("run/edges.csv").read_bytes() == Path("other/edges.csv").read_bytes()
    assert json.loads(Path("run/settings.json").read_text())["draws"] == 80
    capsys.readouterr()
    assert main(["status", "run"]) == 0
    assert "finished, 100% of all iterations done, 80 draws in every chain" in capsys.readouterr().out


def test_what_cannot_go_on_is_refused(here, capsys):
    Path("empty").mkdir()
    for command in ("resume", "status"):
        assert "no checkpoint" in refused(capsys, command, "empty") or command == "resume"
    assert main(["fit", "table.csv", "-q", "Q2", "--quiet", *TINY, "-o", "run"]) == 0
    capsys.readouterr()
    assert "draws is 50 there, 20 here" in refused(capsys, "resume", "run", "--draws", "20")
    Path("run/checkpoint/note.json").write_text("{")
    assert "note.json is damaged" in refused(capsys, "resume", "run")
