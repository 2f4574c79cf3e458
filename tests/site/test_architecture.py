"""The floors hold: nothing imports upwards, and the import contract notices when something does."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"
UPSTAIRS = {
    "arviz",
    "jinja2",
    "matplotlib",
    "narwhals",
    "networkx",
    "pandas",
    "polars",
    "rich",
    "sklearn",
    "xarray",
    "zarr",
}


def floors_0_3() -> list[str]:
    """The floors that `make test-floors` runs alone, as the Makefile lists them."""
    listed = re.search(r"^FLOORS_0_3 := (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert listed is not None
    return [name for name in listed[1].split() if module_file(ROOT, name).exists()]


def run_python(code: str, source: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run ``code`` in a fresh interpreter that finds the package in ``source``."""
    command = [sys.executable, "-c", code, *arguments]
    environment = os.environ | {"PYTHONPATH": str(source)}
    return subprocess.run(
        command, cwd=source, env=environment, capture_output=True, text=True, timeout=120, check=False
    )


def lint(copy: Path) -> subprocess.CompletedProcess[str]:
    """Check the import contract of a copy of the tree."""
    return run_python(LINT, copy / "src", "--config", str(copy / "pyproject.toml"), "--no-cache")


def module_file(copy: Path, module: str) -> Path:
    """Where ``module`` is written, or would be."""
    package = copy / "src" / "markovblanket"
    folder = package / module / "__init__.py"
    return folder if folder.exists() else package / f"{module}.py"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package and its contract, free to be broken."""
    pytest.importorskip("importlinter")
    skip = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "src" / "markovblanket", tmp_path / "src" / "markovblanket", ignore=skip)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_contract_is_kept(copy: Path) -> None:
    outcome = lint(copy)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


@pytest.mark.parametrize(
    ("importer", "imported", "broken"),
    [
        ("variates", "markovblanket.model.sweep", "Nothing imports upwards"),
        ("contracts", "markovblanket.variates", "Nothing imports upwards"),
        ("priors", "markovblanket.solvers", "Nothing imports upwards"),
        ("simulate", "markovblanket.contracts", "Nothing imports upwards"),
        ("chains", "pandas", "Floors 0-3"),
        ("gibbs", "markovblanket.simulate", "Floors 0-3"),
        ("priors", "markovblanket.model.scatter", "A prior knows no data"),
        ("solvers", "markovblanket.variates", "A solver draws no random numbers"),
    ],
)
def test_contract_catches_an_import_against_the_floors(
    copy: Path, importer: str, imported: str, broken: str
) -> None:
    package, _, module = imported.rpartition(".")
    if package:
        module_file(copy, module).touch()
    with module_file(copy, importer).open("a") as source:
        source.write(f"\nimport {imported}\n")
    outcome = lint(copy)
    assert outcome.returncode == 1, outcome.stdout + outcome.stderr
    assert re.search(rf"^{broken}.* BROKEN", outcome.stdout, re.MULTILINE), outcome.stdout


def test_contract_catches_a_module_without_a_floor(copy: Path) -> None:
    module_file(copy, "attic").touch()
    outcome = lint(copy)
    assert outcome.returncode == 1
    assert "attic" in outcome.stdout


@pytest.mark.parametrize("module", floors_0_3())
def test_importing_a_lower_floor_loads_nothing_from_upstairs(module: str) -> None:
    code = f"import sys, markovblanket.{module}; print(*sys.modules)"
    outcome = run_python(code, ROOT / "src")
    assert outcome.returncode == 0, outcome.stderr
    assert UPSTAIRS.isdisjoint(outcome.stdout.split())
