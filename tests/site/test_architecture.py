"""Nothing imports upwards, private modules stay private, and the import contract notices breaches."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "markovblanket"
LINT = "from importlinter.cli import lint_imports_command; lint_imports_command()"
LIGHT = ("contracts", "_compiled", "_determinism", "_files", "variates", "priors", "solvers", "model", "chains")
HEAVY = {"arviz", "jinja2", "matplotlib", "narwhals", "networkx", "pandas", "polars", "rich", "sklearn", "xarray"}


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


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A copy of the package and its contract, free to be broken."""
    pytest.importorskip("importlinter")
    shutil.copytree(PACKAGE, tmp_path / "src" / "markovblanket", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    return tmp_path


def test_contract_is_kept(copy: Path) -> None:
    outcome = lint(copy)
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr


@pytest.mark.parametrize(
    ("importer", "imported", "broken"),
    [
        ("variates/wishart.py", "markovblanket.model.sweep", "Nothing imports upwards"),
        ("priors/normal.py", "markovblanket.solvers", "Nothing imports upwards"),
        ("posterior/edges.py", "markovblanket.fitting.task", "Nothing imports upwards"),
        ("chains/run.py", "pandas", "The sampler needs"),
        ("model/sweep.py", "markovblanket.tables.table", "The sampler needs"),
        ("priors/normal.py", "markovblanket.tables.columns", "A prior knows no data"),
        ("solvers/dense.py", "markovblanket.variates", "A solver draws no random numbers"),
    ],
)
def test_contract_catches_a_forbidden_import(copy: Path, importer: str, imported: str, broken: str) -> None:
    with (copy / "src" / "markovblanket" / importer).open("a") as source:
        source.write(f"\nimport {imported}\n")
    outcome = lint(copy)
    assert outcome.returncode == 1, outcome.stdout + outcome.stderr
    assert re.search(rf"^{broken}.* BROKEN", outcome.stdout, re.MULTILINE), outcome.stdout


def test_contract_catches_a_package_without_a_layer_and_welcomes_a_new_module(copy: Path) -> None:
    (copy / "src" / "markovblanket" / "posterior" / "centrality.py").write_text(
        "import markovblanket.chains.run\n"
    )
    assert lint(copy).returncode == 0
    (copy / "src" / "markovblanket" / "attic.py").touch()
    outcome = lint(copy)
    assert outcome.returncode == 1
    assert "attic" in outcome.stdout


@pytest.mark.parametrize("package", LIGHT)
def test_importing_the_sampler_loads_nothing_heavy(package: str) -> None:
    code = f"""
import pkgutil, sys, markovblanket.{package} as package
for found in pkgutil.walk_packages(getattr(package, "__path__", []), package.__name__ + "."):
    __import__(found.name)
print(*sys.modules)
"""
    outcome = run_python(code, ROOT / "src")
    assert outcome.returncode == 0, outcome.stderr
    assert HEAVY.isdisjoint(outcome.stdout.split())


# A module that begins with an underscore is imported by its own package alone, such a name by its own module.


def imports(path: Path) -> list[str]:
    """What a module imports of this package, in full."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    names = [f"{node.module}.{alias.name}" for node in found for alias in node.names]
    return [name for name in names if name.startswith("markovblanket.")]


def breaches(path: Path, root: Path = PACKAGE) -> list[str]:
    """Private modules and names of other packages that a module imports."""
    own = path.relative_to(root).parts[0]
    found = []
    for name in imports(path):
        first, *inner = name.removeprefix("markovblanket.").split(".")
        if first != own and any(part.startswith("_") for part in inner):
            found.append(name)
    return found


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_nobody_imports_what_is_private_to_another_package(path: Path) -> None:
    assert not breaches(path)


def test_a_private_import_would_be_noticed(tmp_path: Path) -> None:
    (tmp_path / "plots").mkdir()
    module = tmp_path / "plots" / "new.py"
    module.write_text(
        "from markovblanket.report._page import render\nfrom markovblanket.model import _row_scales\n"
    )
    assert len(breaches(module, tmp_path)) == 2
