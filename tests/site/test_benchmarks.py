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

RUN = Path(__file__).parents[2] / "benchmarks" / "run.py"
pytestmark = pytest.mark.skipif(not RUN.exists(), reason="the benchmarks are part of the repository only")
pytest.importorskip("matplotlib", reason="the benchmarks draw pictures")
ONLY = ("q", "block", "dense", "tolerance", "latent-step", "mixing")


# A section that was measured before, and is not measured again.
EARLIER = {
    "title": "A sweep with latent columns against q",
    "date": "2020-01-01",
    "seconds": 1,
    "machine": {"processor": "abacus", "cores": 1, "gigabytes": 1},
    "versions": {},
    "load": [0.0, 0.0, 0.0],
    "results": {"rows": [{"q": 10, "ms": 1.0, "latent_ms": 0.5}], "slope": 0.5},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where a quick run has left its results, its page, its pictures and, in ``printed``, what it said."""
    folder = tmp_path_factory.mktemp("benchmarks")
    (folder / "results.json").write_text(json.dumps({"sections": {"latent-q": EARLIER}}))
    command = [sys.executable, str(RUN), "--quick", "--out", str(folder / "results.json"), "--docs", str(folder)]
    command += ["--data", str(folder), "--only", *ONLY, "tumours"]
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}
    done = subprocess.run(command, env={**os.environ, **threads}, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (folder / "printed").write_text(done.stdout)
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


def test_a_section_is_merged_and_an_absent_one_skipped(folder: Path) -> None:
    sections = json.loads((folder / "results.json").read_text())["sections"]
    assert set(sections) == {"latent-q", *ONLY}
    assert sections["latent-q"] == EARLIER
    assert "skipped: no TCGA tables" in (folder / "printed").read_text()
    assert "abacus, 1 cores" in (folder / "benchmark_results.md").read_text()


def test_blocks_have_a_curve_against_their_size_and_against_what_is_outside(
    folder: Path, results: dict[str, Any]
) -> None:
    block = results["block"]
    assert [(row["P"], row["q"]) for row in block["rows"]] == [(10, 0), (20, 0), (10, 50), (10, 100)]
    inside = [row["ms"] for row in block["rows"][:2]]
    assert block["slopes"]["P"] == pytest.approx(math.log2(inside[1] / inside[0]))
    assert f"{block['slopes']['q']:.2f} against q" in (folder / "benchmark_results.md").read_text()
    assert (folder / "images" / "benchmark_block.png").stat().st_size > 10_000


def test_targets_are_judged_by_their_figures(results: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(RUN.parent))
    import targets

    memory = {"rows": [{"q": 50000, "margins": "auto", "ratio": 1.5}]}
    judged = {target["target"]: target for target in targets.judged({**results, "memory": memory})}
    missed = judged["memory of a summary over its limit, q = 50,000"]
    assert (missed["figure"], missed["met"]) == (1.5, False)
    assert judged["log-log slope of a sweep against q, Laplace"]["met"] is None
