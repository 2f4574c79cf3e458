"""The benchmarks run, and what they measure is what they say: the sections without peers, at small sizes."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

RUN = Path(__file__).parents[1] / "benchmarks" / "run.py"
pytestmark = pytest.mark.skipif(not RUN.exists(), reason="the benchmarks are part of the repository only")
pytest.importorskip("matplotlib", reason="the benchmarks draw pictures")
ONLY = ("q", "dense", "tolerance", "latent-step", "mixing")


def run(folder: Path, *options: str) -> str:
    """What the command prints."""
    command = [sys.executable, str(RUN), "--quick", "--out", str(folder / "results.json"), "--docs", str(folder)]
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    done = subprocess.run([*command, *options], env={**os.environ, **threads}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a quick run has left its results, its page and its pictures."""
    folder = tmp_path_factory.mktemp("benchmarks")
    run(folder, "--only", *ONLY)
    return folder


@pytest.fixture(scope="module")
def results(folder: Path) -> dict[str, Any]:
    """By section."""
    book = json.loads((folder / "results.json").read_text())
    return {name: section["results"] for name, section in book["sections"].items()}


def test_sweeps_have_a_slope_and_cost_more_than_their_products(results: dict[str, Any]) -> None:
    assert set(results["q"]["slopes"]) == {"Laplace", "SpikeSlab"}
    assert all(math.isfinite(slope) for slope in results["q"]["slopes"].values())
    assert all(row["over_iterations"] > 0.5 for row in results["q"]["rows"] if row["prior"] == "Laplace")


def test_both_solvers_draw_the_same(results: dict[str, Any]) -> None:
    assert len(results["dense"]["rows"]) == 2
    assert all(row["difference"] < 1e-4 for row in results["dense"]["rows"])


def test_errors_are_below_the_tolerance_and_fall_with_iterations(results: dict[str, Any]) -> None:
    rows = results["tolerance"]["rows"]
    assert all(0 < row["worst_error"] <= row["tolerance"] for row in rows)
    assert sorted(rows, key=lambda row: row["iterations"]) == rows
    assert all(row["shift"] < 3 for row in rows)


def test_effective_sizes_are_those_of_the_draws(results: dict[str, Any]) -> None:
    rows = results["mixing"]["rows"]
    names = {(row["prior"], row["quantity"]) for row in rows}
    assert {("Laplace", "gamma"), ("Horseshoe", "tau"), ("SpikeSlab", "slab"), ("SpikeSlab", "W12")} <= names
    assert all(0 < row["bulk_per_100"] < 300 for row in rows)


def test_page_and_pictures_show_the_results(folder: Path, results: dict[str, Any]) -> None:
    page = (folder / "benchmark_results.md").read_text()
    assert f"| 800 | Laplace | {results['q']['rows'][-2]['ms']:.3g} |" in page
    for name in ("sweeps", "peers", "mixing"):
        assert f"images/benchmark_{name}.png" in page
        assert (folder / "images" / f"benchmark_{name}.png").stat().st_size > 10_000


def test_a_section_is_merged_and_an_absent_one_skipped(folder: Path, tmp_path: Path) -> None:
    before = json.loads((folder / "results.json").read_text())["sections"]
    printed = run(folder, "--only", "latent-step", "tumours", "--data", str(tmp_path))
    after = json.loads((folder / "results.json").read_text())["sections"]
    assert "skipped: no TCGA tables" in printed
    assert "tumours" not in after
    assert after["q"] == before["q"]
    assert after["latent-step"] != before["latent-step"]


def test_targets_are_judged_by_their_figures(results: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(RUN.parent))
    import targets

    memory = {"rows": [{"q": 50000, "margins": "auto", "ratio": 1.5}]}
    judged = {target["target"]: target for target in targets.judged({**results, "memory": memory})}
    missed = judged["memory of a summary over its limit, q = 50,000"]
    assert (missed["figure"], missed["met"]) == (1.5, False)
    assert judged["log-log slope of a sweep against q, Laplace"]["met"] is None
