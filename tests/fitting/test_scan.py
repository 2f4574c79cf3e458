"""Many query sets on one table: the numbers of single fits, whoever runs them and however often they stop."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import joblib
import numpy as np
import pandas as pd
import pytest

import markovblanket as mb
from markovblanket.chains.processes import MOST_TRIES, all_done
from markovblanket.fitting.scan import NUMBERS, Fits, Scan
from markovblanket.posterior.edges import directions

SHORT = {"chains": 2, "warmup": 30, "draws": 60, "seed": 8}


@pytest.fixture(scope="module")
def made():
    return mb.simulate(rows=150, query=2, rest=6, density=0.4, seed=3)


@pytest.fixture(scope="module")
def each(made):
    return mb.scan(made.table, **SHORT)


def equal(one: Scan, other: Scan) -> None:
    pd.testing.assert_frame_equal(one.seen, other.seen, check_exact=True)
    pd.testing.assert_frame_equal(one.fits, other.fits, check_exact=True)
    assert one.variables == other.variables


# The numbers ------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
@pytest.mark.parametrize("margins", ["auto", "gaussian", "rank"])
def test_a_fit_of_a_scan_is_the_estimate_with_its_seed(made, margins):
    options = SHORT | {"margins": margins}
    found = mb.scan(made.table, ["V2", ["Q1", "Q2"]], **options)
    for k, query in enumerate((["V2"], ["Q1", "Q2"])):
        row = found.fits.loc[k]
        alone = mb.estimate(made.table, query, **options | {"seed": row["seed"]}, keep="summary")
        seen = found.seen[(found.seen["fit"] == k) & found.seen["selected"]]
        wanted = alone.edges(detail=True)[list(NUMBERS)]
        np.testing.assert_array_equal(seen[list(NUMBERS)].to_numpy(), wanted.to_numpy())
        assert row["query"] == tuple(query)
        assert row["edges"] == len(wanted)
        assert row["r2"] == alone.r2()["mean"].mean()
        assert row["converged"] == alone.diagnostics().converged
        assert row["rhat"] == alone.diagnostics().table["rhat"].max()


@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_neither_jobs_nor_backend_change_a_number(made, each, backend):
    with joblib.parallel_config(backend=backend):
        equal(mb.scan(made.table, n_jobs=2, **SHORT), each)


def test_every_fit_has_random_numbers_of_its_own(each):
    assert each.fits["seed"].is_unique


def test_an_array_and_a_file_give_the_same(made, each, tmp_path):
    made.table.to_csv(tmp_path / "table.csv", index=False)
    equal(mb.scan(tmp_path / "table.csv", **SHORT), each)
    array = mb.scan(made.table.to_numpy(), [0], **SHORT)
    frame = mb.scan(made.table, ["Q1"], **SHORT)
    np.testing.assert_array_equal(array.seen["partial_correlation"], frame.seen["partial_correlation"])
    assert [made.table.columns[j] for j in array.seen["variable"]] == frame.seen["variable"].tolist()


def test_the_true_edges_are_found_from_both_ends():
    made = mb.simulate(rows=1000, query=3, rest=9, density=0.2, seed=1)
    both = mb.scan(made.table, seed=2, chains=1, warmup=200, draws=400).graph("and")
    true = {frozenset((query, name)) for query, names in made.blanket.items() for name in names}
    seen = {frozenset(edge) for edge in both.edges if set(edge) & set(made.blanket)}
    rest = {edge for edge in seen if len(edge & set(made.blanket)) == 1}
    assert rest == true
    assert both.number_of_nodes() == 12


# Both ends --------------------------------------------------------------------------------------------


def scanned(rows: list[tuple], sets: list[tuple]) -> Scan:
    """A scan by hand; rows are (fit, query, variable, partial_correlation, probability, selected)."""
    columns = ["fit", "query", "variable", "partial_correlation", "probability", "selected"]
    seen = pd.DataFrame(rows, columns=columns).reindex(columns=["fit", "query", "variable", *NUMBERS, "selected"])
    seen = seen.assign(sign_probability=seen["probability"], direction=directions(seen["partial_correlation"]))
    fits = pd.DataFrame({"query": sets, "converged": True})
    return Scan(seen, fits, ("a", "b", "c", "d"))


def test_an_edge_is_one_row_from_its_surest_end_and_tells_of_the_other():
    looks = [(0, "a", "b", 1.0, 0.6, True), (1, "b", "a", 1.2, 0.9, True)]
    looks += [(0, "a", "c", -1.0, 0.7, True), (0, "a", "d", -0.5, 0.2, False), (2, "c", "a", 0.3, 0.1, False)]
    found = scanned(looks, [("a",), ("b",), ("c",)])
    either = found.edges().set_index(["query", "variable"])
    assert list(either.index) == [("b", "a"), ("a", "c")]
    assert either["partial_correlation"].tolist() == [1.2, -1.0]
    assert either[["ends", "looks"]].to_numpy().tolist() == [[2, 2], [1, 2]]
    assert found.edges("and")["variable"].tolist() == ["a"]
    assert [sorted(edge) for edge in found.graph("and").edges] == [["a", "b"]]
    assert set(found.graph("and").nodes) == {"a", "b", "c"}
    assert found.graph().edges["a", "c"]["sign"] == "-"


def test_with_one_end_alone_both_rules_agree():
    found = scanned([(0, "a", "d", 1.0, 0.6, True)], [("a",), ("b",)])
    pd.testing.assert_frame_equal(found.edges("and"), found.edges("or"))
    assert found.edges()["looks"].tolist() == [1]


def test_no_edge_at_all_is_an_empty_table_and_a_graph_without_edges():
    found = scanned([], [("a",), ("b",)])
    assert found.edges().empty
    assert found.edges("and").empty
    assert list(found.graph().nodes) == ["a", "b"]
    assert "No edge" in found._repr_html_()


def test_a_notebook_is_told_of_fits_that_did_not_converge(each):
    assert not each.fits["converged"].all()
    bad = (~each.fits["converged"]).sum()
    assert f"NOT CONVERGED: {bad} of 8 fits." in each._repr_html_()


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ("Q1", "queries='Q1': 'each', or a list of names and of lists of names"),
        ([], "queries is empty: name at least one set of variables"),
        (["Q9"], "query 'Q9' is not a column of the table"),
        ([["Q1", "Q2"], ["Q2", "Q1"]], "queries has Q1, Q2 more than once"),
        ([["Q1", "Q1"]], "query names 'Q1' more than once"),
        ([[]], "query is empty: name at least one column to ask about"),
        ([list("QV")], "query 'Q' is not a column of the table"),
    ],
)
def test_odd_questions_are_refused(made, queries, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        mb.scan(made.table, queries, **SHORT)


@pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
def test_a_set_of_all_columns_is_the_whole_network(made):
    found = mb.scan(made.table, [list(made.table)], **SHORT)
    seed = int(found.fits["seed"][0])
    whole = mb.network(made.table, keep="summary", progress=False, **SHORT | {"seed": seed})
    edges = whole.edges()
    assert len(edges) > 3
    assert found.fits["edges"].tolist() == [len(edges)]
    one, other = (table.set_index(["query", "variable"])["probability"] for table in (found.edges(), edges))
    pd.testing.assert_series_equal(one.sort_index(), other.sort_index())


def test_a_set_of_all_columns_needs_exact_zeros(made):
    with pytest.raises(ValueError, match=r"^every column is a query column, and only the prior 'spike-slab'"):
        mb.scan(made.table, [list(made.table)], prior="laplace", **SHORT)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"margins": "normal"}, "margins='normal': known are 'auto', 'rank' and 'gaussian'"),
        ({"margins": "gaussian", "kinds": {"Q1": "ordinal"}}, "kinds belong to a copula"),
        ({"prior": "ridge"}, "prior='ridge': known are "),
        ({"chains": 0}, "chains=0: must be a whole number, at least 1"),
        ({"draws": 0}, "draws=0: must be a whole number, at least 1"),
    ],
)
def test_odd_options_are_refused(made, options, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        mb.scan(made.table, ["Q1"], **SHORT | options)


def test_unknown_rules_are_refused(each):
    with pytest.raises(ValueError, match=r"^rule='xor': known are 'or', 'and'"):
        each.edges("xor")


# Its folder -------------------------------------------------------------------------------------------


def test_only_what_is_missing_or_damaged_is_done_again(made, each, tmp_path, monkeypatch):
    equal(mb.scan(made.table, out=tmp_path / "scan", **SHORT), each)
    files = sorted((tmp_path / "scan" / "fits").iterdir())
    assert len(files) == 8
    files[2].unlink()
    files[5].write_bytes(files[5].read_bytes()[:200])
    done = []
    posterior = Fits.posterior
    monkeypatch.setattr(Fits, "posterior", lambda *asked: done.append(asked[1]) or posterior(*asked))
    equal(mb.scan(made.table, out=tmp_path / "scan", **SHORT), each)
    assert done == [("V1",), ("V4",)]
    equal(mb.scan(made.table, out=tmp_path / "scan", **{**SHORT, "seed": None}), each)
    assert len(done) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seed": 9}, "seed is '8' there, '9' here"),
        ({"draws": 50}, "draws is 60 there, 50 here"),
        ({"prior": mb.Laplace(gamma=5)}, "prior.name is 'SpikeSlab' there, 'Laplace' here"),
        ({"queries": ["Q1"]}, "scan is 8 there, 1 here"),
        ({"margins": "rank"}, "margins is 'auto' there, 'rank' here"),
    ],
)
def test_another_scan_is_refused_and_the_difference_named(made, tmp_path_factory, change, message):
    folder = tmp_path_factory.getbasetemp() / "one-scan"
    if not folder.exists():
        mb.scan(made.table, out=folder, **SHORT)
    with pytest.raises(ValueError, match=message):
        mb.scan(made.table, out=folder, **{**SHORT, **change})


def test_other_data_are_refused(made, tmp_path):
    mb.scan(made.table, ["Q1"], out=tmp_path / "scan", **SHORT)
    with pytest.raises(ValueError, match="its data differ"):
        mb.scan(made.table.iloc[::-1], ["Q1"], out=tmp_path / "scan", **SHORT)


def test_workers_that_do_not_see_the_folder_leave_the_writing_to_others(made, each, tmp_path, monkeypatch):
    """As on another machine: of what they did, nothing is lost."""
    module = import_module("markovblanket.fitting.scan")
    monkeypatch.setattr(module, "_numbered", lambda *asked, numbered=module._numbered: numbered(*asked[:4], None))
    equal(mb.scan(made.table, out=tmp_path / "scan", **SHORT), each)
    assert len(list((tmp_path / "scan" / "fits").iterdir())) == 8


SCRIPT = """
import sys
import markovblanket as mb
made = mb.simulate(rows=150, query=2, rest=6, density=0.4, seed=3)
mb.scan(made.table, chains=2, warmup=30, draws=60, seed=8, out=sys.argv[1])
"""


def test_a_scan_that_was_killed_goes_on(made, each, tmp_path):
    fits = tmp_path / "scan" / "fits"
    with subprocess.Popen([sys.executable, "-c", SCRIPT, str(tmp_path / "scan")]) as process:
        until = time.monotonic() + 120
        while len(list(fits.glob("*.npz"))) < 3 and time.monotonic() < until:
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    assert 3 <= len(list(fits.glob("*.npz"))) < 8
    equal(mb.scan(made.table, out=tmp_path / "scan", **SHORT), each)


# Workers ----------------------------------------------------------------------------------------------


def killed_once(marker: Path, k: int) -> int:
    """The first to come here ends its process."""
    try:
        marker.touch(exist_ok=False)
    except FileExistsError:
        return k * k
    os.kill(os.getpid(), signal.SIGKILL)
    return -1


def test_tasks_of_a_lost_process_are_done_again(tmp_path):
    calls = [joblib.delayed(killed_once)(tmp_path / "marker", k) for k in range(4)]
    told: list[int] = []
    assert all_done(lambda: calls, 2, told.append) == [0, 1, 4, 9]
    assert told[-1] == 4


def always_killed() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def test_processes_that_always_end_are_given_up(tmp_path):
    with pytest.raises(
        RuntimeError, match=f"^processes ended {MOST_TRIES} times before their tasks did, perhaps for"
    ):
        all_done(lambda: [joblib.delayed(always_killed)() for _ in range(2)], 2)
