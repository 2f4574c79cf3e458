"""A real Dask cluster on the loopback interface: a scheduler and two workers, each a process of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from contextlib import ExitStack, contextmanager
from pathlib import Path

import joblib
import numpy as np
import pytest

import markovblanket as mb
from markovblanket.chains.processes import shipped

pd = pytest.importorskip("pandas")
distributed = pytest.importorskip("distributed")

pytestmark = [
    pytest.mark.slow,
    # What a cluster says while its workers are killed is not ours.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning:distributed"),
]
PATIENCE = 120


def started(module: str, *options: str) -> subprocess.Popen:
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    command = [sys.executable, "-m", f"distributed.cli.dask_{module}", *options]
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=os.environ | threads, **quiet)


@contextmanager
def ended(process: subprocess.Popen):
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def cluster(tmp_path):
    """A client, and the processes of two workers."""
    file = tmp_path / "scheduler.json"
    here = ("--host", "127.0.0.1", "--scheduler-file", str(file))
    with ExitStack() as stack:
        stack.enter_context(ended(started("scheduler", *here, "--port", "0", "--no-dashboard")))
        ready(file)
        alone = ("--nthreads", "1", "--no-nanny", "--no-dashboard", "--local-directory", str(tmp_path))
        workers = [
            stack.enter_context(ended(started("worker", *here, *alone, "--name", name))) for name in ("one", "two")
        ]
        client = stack.enter_context(distributed.Client(scheduler_file=str(file)))
        client.wait_for_workers(2, timeout=PATIENCE)
        yield client, workers


def ready(file: Path) -> None:
    until = time.monotonic() + PATIENCE
    while not file.exists():
        assert time.monotonic() < until, "the scheduler did not start"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def table():
    return mb.simulate(rows=60, query=2, rest=48, density=0.1, seed=5).table


@pytest.fixture(scope="module")
def mixed():
    return mb.simulate(rows=60, query=2, rest=8, kinds="mixed", missing=0.1, seed=5).table


OPTIONS = {"warmup": 20, "draws": 40, "seed": 3}


def equal(one: mb.Scan, other: mb.Scan) -> None:
    pd.testing.assert_frame_equal(one.seen, other.seen, check_exact=True)
    pd.testing.assert_frame_equal(one.fits, other.fits, check_exact=True)


@pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
@pytest.mark.usefixtures("cluster")
def test_chains_on_a_cluster_have_the_numbers_of_one_process(mixed):
    here = mb.estimate(mixed, ["Q1", "Q2"], chains=4, **OPTIONS)
    with joblib.parallel_config(backend="dask"):
        there = mb.estimate(mixed, ["Q1", "Q2"], chains=4, **OPTIONS)
    np.testing.assert_array_equal(here.W12.values, there.W12.values)
    np.testing.assert_array_equal(here.W11.values, there.W11.values)


def test_a_scan_of_fifty_sets_on_a_cluster_survives_the_loss_of_a_worker(cluster, table, tmp_path):
    client, workers = cluster
    here = mb.scan(table, chains=1, **OPTIONS)
    assert len(here.fits) == 50
    with joblib.parallel_config(backend="dask"):
        equal(mb.scan(table, chains=1, **OPTIONS), here)
        out = tmp_path / "scan"
        killer = threading.Thread(target=kill_midway, args=(workers[0], out / "fits"))
        killer.start()
        with_a_loss = mb.scan(table, chains=1, **OPTIONS, out=out)
        killer.join()
    assert workers[0].poll() == -signal.SIGKILL
    assert len(client.scheduler_info()["workers"]) == 1
    equal(with_a_loss, here)
    assert len(list((out / "fits").glob("*.npz"))) == 50


def kill_midway(worker: subprocess.Popen, fits: Path) -> None:
    """When some fits are done, and most are not."""
    until = time.monotonic() + PATIENCE
    while len(list(fits.glob("*.npz"))) < 8:
        assert time.monotonic() < until
        time.sleep(0.01)
    worker.send_signal(signal.SIGKILL)


class Part:
    """Leaves a file wherever it arrives."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self):
        return arrived, (self.folder,)


def arrived(folder: Path) -> Part:
    (folder / f"{os.getpid()}-{uuid.uuid4().hex}").touch()
    return Part(folder)


def name_of_place(part: Part, k: int) -> tuple[int, int]:
    time.sleep(0.05)  # so that both have something to do
    return k, os.getpid()


def test_what_is_shipped_goes_to_each_worker_once(cluster, tmp_path):
    client, workers = cluster
    client.upload_file(__file__)
    folder = tmp_path / "arrived"
    folder.mkdir()
    part = Part(folder)
    with joblib.parallel_config(backend="dask"), shipped(part):
        places = joblib.Parallel()(joblib.delayed(name_of_place)(part, k) for k in range(20))
    assert [k for k, _ in places] == list(range(20))
    assert {place for _, place in places} == {worker.pid for worker in workers}
    # Dask takes a copy apart once where it arrives and once where it is passed on; 20 tasks do not matter.
    assert len(list(folder.iterdir())) <= 2 * len(workers)
