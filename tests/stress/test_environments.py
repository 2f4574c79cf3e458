"""Environments that fail: read-only installations, no locks, little memory, signals, forks, orphans, Windows."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from functools import partial
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import markovblanket as mb
from markovblanket import _files
from markovblanket.chains.processes import between_sweeps
from markovblanket.chains.run import Schedule, run
from markovblanket.chains.snapshots import Saver
from markovblanket.cli import _output_folder, main
from markovblanket.contracts import ChainState, Draw, SweepInfo

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the system is asked for its processes in /proc")
OPTIONS = {"chains": 2, "warmup": 20, "draws": 20, "seed": 1, "progress": False}
MADE = mb.simulate(rows=40, query=1, rest=4, seed=1)
FIT = [
    "fit",
    "table.csv",
    "-q",
    "Q1",
    "--chains",
    "2",
    "--warmup",
    "20",
    "--draws",
    "20",
    "--seed",
    "1",
    "--quiet",
]


class Counting:
    """A sampler whose state is a number of sweeps; a signal comes in one of them."""

    def __init__(self, at: int, number: int) -> None:
        self.at, self.number = at, number

    def start(self, rng):
        one = np.ones((1, 1))
        return ChainState(one, one, one, {"count": 0.0})

    def sweep(self, rng, state):
        if state.hyper["count"] + 1 == self.at:
            signal.raise_signal(self.number)
        return replace(state, hyper={"count": state.hyper["count"] + 1}), SweepInfo(1, 0.0, 1.0)

    def derive(self, rng, state, info):
        return Draw(state.W11, state.W12, np.ones(1), np.ones(1), {}, info)

    def partial_correlations(self, state):
        return state.W12


def fitted(**options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mb.ConvergenceWarning)
        return mb.estimate(MADE.table, MADE.query, **OPTIONS | options)


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A working directory with a small table."""
    MADE.table.to_csv(tmp_path / "table.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def python(code, *arguments, before="", **options):
    """A Python process of its own; ``before`` are shell commands in which it is run."""
    command = f'{before} exec "{sys.executable}" -W ignore -c "$0" "$@"'
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    return subprocess.Popen(["sh", "-c", command, code, *map(str, arguments)], **pipes)


def is_there(pid):
    """Whether a process lives; one that ended and waits to be collected does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def gone(pids, seconds):
    """Whether all these processes end within some seconds."""
    until = time.monotonic() + seconds
    while any(map(is_there, pids)) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(map(is_there, pids))


# Memory and signals ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("kilobytes", [1_300_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_little_memory_is_one_line_at_once(here, kilobytes):
    code = "import sys; from markovblanket.__main__ import main; sys.argv[0] = 'markovblanket'; sys.exit(main())"
    begin = time.monotonic()
    process = python(code, *FIT, "--out", "run", before=f"ulimit -v {kilobytes};")
    _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert told.count("\n") == 1
    assert told.startswith("error: out of memory: this process is limited to 1.")
    assert not (here / "run").exists()
    assert time.monotonic() - begin < 60


SPINNING = """
import sys
from markovblanket.cli._output_folder import terminable
with terminable():
    print("spinning", flush=True)
    sum(range(10**13))
"""


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, *(pytest.param(n, marks=pytest.mark.slow) for n in (signal.SIGINT, signal.SIGHUP))]
)
def test_a_second_signal_ends_what_python_does_not_hear(number):
    """While compiled code runs that never comes back."""
    process = python(SPINNING, before="trap - INT;", preexec_fn=partial(signal.signal, number, signal.SIG_DFL))
    assert process.stdout.readline() == "spinning\n"
    time.sleep(0.5)  # until it does
    process.send_signal(number)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(number)
    assert process.wait(timeout=10) == -number
    process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_that_would_end_the_process_waits_for_the_sweep_and_its_snapshot(tmp_path, number):
    """Also if nobody handles it, as in a script."""
    pid = os.fork()
    if pid == 0:
        signal.signal(number, signal.SIG_DFL)
        sampler = Counting(at=5, number=number)
        run(sampler, Schedule(warmup=3, draws=7), chains=1, saver=Saver(tmp_path, every=1000.0))
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.WTERMSIG(status) == number
    assert int(Saver(tmp_path).read(0, "sampling")["count"]) == 5


def test_a_signal_that_is_ignored_stays_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with between_sweeps() as act:
            signal.raise_signal(signal.SIGHUP)
            act()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.slow
def test_ctrl_c_while_the_program_is_imported_is_one_line(here):
    """At any moment from the first line of the program on."""
    code = (
        "import sys\n"
        "class Ctrl:\n"
        "    def find_spec(self, name, *more):\n"
        "        if name == sys.argv[-1]: raise KeyboardInterrupt\n"
        "sys.meta_path.insert(0, Ctrl())\n"
        "from markovblanket.__main__ import main\n"
        "sys.exit(main())"
    )
    for module in ("click", "markovblanket.cli", "markovblanket.cli._fit", "pandas", "scipy"):
        process = python(code, *FIT, "--out", module)
        _, told = process.communicate(timeout=60)
        assert (process.returncode, told.strip()) == (130, "error: interrupted"), module


# Processes ------------------------------------------------------------------------------------------------

POOL = """
import sys, time, os, joblib
import markovblanket as mb
from markovblanket.chains.processes import delayed
made = mb.simulate(rows=40, query=1, rest=4, seed=1)
def own():
    time.sleep(0.3)  # so that both workers have something to do
    return os.getpid()
pids = set(joblib.Parallel(n_jobs=2, batch_size=1)(delayed(own)() for _ in range(8)))
print(*pids, flush=True)
time.sleep(600)
"""


def test_idle_workers_end_with_the_process_that_was_killed():
    process = python(POOL)
    workers = [int(pid) for pid in process.stdout.readline().split()]
    assert len(workers) == 2
    assert all(map(is_there, workers))
    process.kill()
    process.wait()
    assert gone(workers, seconds=10)
    begin = time.monotonic()
    process.communicate(timeout=10)  # nobody holds its pipes
    assert time.monotonic() - begin < 10


FORK = """
import os, sys
import markovblanket as mb
made = mb.simulate(rows=40, query=1, rest=4, seed=1)
def fit():
    return mb.estimate(made.table, made.query, chains=2, warmup=20, draws=20, seed=1, progress=False, n_jobs=2)
first, child = fit(), os.fork()
if child == 0:
    print("child", bool((fit().W12 == first.W12).all()), flush=True)
    os._exit(0)
print("ended", os.waitpid(child, 0)[1], bool((fit().W12 == first.W12).all()), flush=True)
"""


@pytest.mark.slow
def test_a_forked_process_fits_in_parallel_as_its_parent_did():
    process = python(FORK)
    told, errors = process.communicate(timeout=120)
    assert told.split("\n")[:2] == ["child True", "ended 0 True"], errors


# File systems ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_said_and_used(tmp_path, monkeypatch, number):
    """The table is not blamed for it, and a second run on the same machine is refused all the same."""

    def no_locks(*given):
        raise OSError(number, os.strerror(number))

    whole = fitted()
    monkeypatch.setattr(_files.fcntl, "flock", no_locks)
    with pytest.warns(UserWarning, match="has no locks: run on one machine only there"):
        run = fitted(checkpoint=tmp_path / "run", warmup=20)
    np.testing.assert_array_equal(run.W12, whole.W12)
    assert not mb.status(tmp_path / "run").running
    with subprocess.Popen(["sleep", "100"]) as other:
        (tmp_path / "run" / "owner").write_text(f"{other.pid} on {os.uname().nodename}\n")
        assert mb.status(tmp_path / "run").running
        with (
            pytest.warns(UserWarning, match="has no locks"),
            pytest.raises(RuntimeError, match="is in use by a run that has not ended"),
        ):
            mb.resume(tmp_path / "run", progress=False)
        other.kill()


def test_an_error_of_locks_that_is_none_of_these_is_not_hidden(tmp_path, monkeypatch):
    def broken(*given):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(_files.fcntl, "flock", broken)
    with pytest.raises(OSError, match="Input/output error"):
        fitted(checkpoint=tmp_path / "run")


READ_ONLY = """
import os, sys
import markovblanket as mb
made = mb.simulate(rows=40, query=1, rest=4, seed=1)
print(mb.estimate(made.table, made.query, chains=2, warmup=5, draws=5, seed=1, progress=False, prior="normal"))
print(os.environ["NUMBA_CACHE_DIR"])
"""


@pytest.mark.slow
def test_an_installation_and_a_home_that_cannot_be_written_are_no_obstacle(tmp_path):
    """The sources are on a read-only mount, and the home does not exist."""
    package = Path(mb.__file__).parent
    shutil.copytree(package, tmp_path / "site" / "markovblanket", ignore=shutil.ignore_patterns("__pycache__"))
    site = str(tmp_path / "site")
    mounted = subprocess.run(["mount", "--bind", site, site], capture_output=True).returncode == 0
    if not mounted:
        pytest.skip("nothing can be mounted here")
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", site], check=True)
        given = {**os.environ, "PYTHONPATH": site, "HOME": "/proc/none", "XDG_CACHE_HOME": "/proc/none"}
        process = python(READ_ONLY, env={**given, "PYTHONDONTWRITEBYTECODE": "1"})
        told, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
        assert told.startswith("<Posterior: 1 query and 4 other variables, 2 chains of 5 draws>")
        assert not Path(told.split("\n")[1]).exists()
    finally:
        subprocess.run(["umount", site], check=True)


def open_in(folder):
    """The files below a folder that this process has open."""
    found = (Path(f"/proc/self/fd/{number}") for number in os.listdir("/proc/self/fd"))
    ends = [os.readlink(link) for link in found if link.is_symlink()]
    return [end for end in ends if end.startswith(f"{folder}{os.sep}")]


@pytest.mark.parametrize("keep", ["draws", "disk"])
def test_no_folder_is_renamed_while_a_file_in_it_is_open_where_that_is_impossible(here, monkeypatch, keep):
    """As on Windows, which has no locks of this kind either."""
    rename, renamed = Path.rename, []

    def strict(source, target):
        if source.is_dir():
            assert not open_in(source.resolve())
            renamed.append(source.name)
        return rename(source, target)

    monkeypatch.setattr(_files, "fcntl", None)
    monkeypatch.setattr(Path, "rename", strict)
    assert main([*FIT, "--out", "run", "--keep", keep, "--jobs", "1"]) == 0
    assert main([*FIT, "--out", "run", "--keep", keep, "--jobs", "1", "--force"]) == 0
    assert main(["resume", "run", "--draws", "40", "--quiet", "--jobs", "1"]) == 0
    assert {"run", "new", "checkpoint"} <= set(renamed)
    assert mb.load("run/posterior").settings["draws"] == 40


# Names ----------------------------------------------------------------------------------------------------


def test_a_name_with_a_carriage_return_begins_no_row(tmp_path):
    frame = pd.DataFrame({"query": ["\r=1+1", "b"], "variable": ["c\r@d", "e\n=f"], "probability": [0.5, 0.25]})
    _output_folder.write_table(tmp_path / "edges.csv", _output_folder.inert(frame))
    outside, quoted = [], False
    for letter in (tmp_path / "edges.csv").read_bytes().decode():
        quoted ^= letter == '"'
        outside.append(letter if not quoted else "")
    rows = "".join(outside).replace("\r", "\n").split("\n")
    assert len(rows) == 1 + 2 + 1
    read = pd.read_csv(tmp_path / "edges.csv")
    assert read["query"].tolist() == ["'\r=1+1", "b"]
    assert read["probability"].tolist() == [0.5, 0.25]


@pytest.mark.slow
def test_pictures_and_graphs_of_names_with_control_characters_are_well_formed(here):
    """And no two names become one."""
    from xml.etree import ElementTree

    names = {"Q1": "Q\x01\x1b[31m", "V1": "V\x02", "V2": "V\x03", "V3": "V\ufffd", "V4": "\x07&<"}
    MADE.table.rename(columns=names).to_csv("table.csv", index=False)
    assert main(["fit", "table.csv", "-q", names["Q1"], *FIT[4:], "--out", "run", "--probability", "0.001"]) == 0
    for name in ("network.svg", "network.graphml"):
        ElementTree.parse(here / "run" / name)
    graph = nx.read_graphml(here / "run" / "network.graphml")
    posterior = mb.load("run/posterior").graph(probability=0.001)
    assert len(graph) == len(posterior)
    assert sorted(dict(graph.degree).values()) == sorted(dict(posterior.degree).values())
