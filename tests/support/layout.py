"""Figures of the layout: how many modules a task visits, and how the package's names and files are spread.

``python tests/support/layout.py`` prints them. A module is *visited* if a function of it runs, uncompiled,
while the task does for the second time (the first time, modules are imported).
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"
PACKAGE = SOURCE / "markovblanket"
SHORT = "chains=2, warmup=10, draws=10, seed=1, progress=False"

PREPARE = """
import json, sys, tempfile, warnings
warnings.simplefilter("ignore")
import markovblanket as mb
made = mb.simulate(rows=40, query=2, rest=6, kinds="mixed", missing=0.1, seed=1)
plain = mb.simulate(rows=40, query=2, rest=6, seed=1)
folder = tempfile.mkdtemp()
"""
TASKS = {
    "estimate": ("", f"mb.estimate(plain.table, plain.query, {SHORT})"),
    "fit": (
        "from click.testing import CliRunner; from markovblanket.cli import commands;"
        "made.table.to_csv(folder + '/t.csv', index=False)",
        "CliRunner().invoke(commands, ['fit', folder + '/t.csv', '--query', ','.join(made.query), '--out',"
        " folder + f'/run{k}', '--warmup', '10', '--draws', '10', '--chains', '2', '--seed', '1'],"
        " catch_exceptions=False)",
    ),
    "resume": (
        f"mb.estimate(made.table, made.query, checkpoint=folder + '/c', {SHORT})",
        "mb.resume(folder + '/c', draws=20 * k, progress=False)",
    ),
    "scan": ("", f"mb.scan(made.table, ['Q1', 'Q2'], {SHORT})"),
    "predict": (
        f"posterior = mb.estimate(made.table, made.query, {SHORT})",
        "posterior.predict(made.table.drop(columns=made.query), draws=5, seed=1)",
    ),
}
TRACE = """
k = 1
{task}
k, visited = 2, set()
def seen(frame, event, argument):
    if event == "call" and frame.f_code.co_name != "<module>":
        visited.add(frame.f_code.co_filename)
sys.setprofile(seen)
{task}
sys.setprofile(None)
print("\\n" + json.dumps(sorted(visited)))
"""


def visited(task: str) -> list[str]:
    """The modules of which a function runs while the task does."""
    before, what = TASKS[task]
    code = PREPARE + before + TRACE.format(task=what)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    files = json.loads(done.stdout.splitlines()[-1])
    return sorted(str(Path(file).relative_to(PACKAGE)) for file in files if file.startswith(str(PACKAGE)))


def trees() -> dict[str, ast.Module]:
    """Every module of the package, by its dotted name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
        found[name] = ast.parse(path.read_text(encoding="utf-8"))
    return found


def short_docstrings() -> int:
    """Docstrings whose first line has four words or fewer."""
    kinds = (ast.FunctionDef, ast.ClassDef, ast.Module)
    nodes = (node for tree in trees().values() for node in ast.walk(tree) if isinstance(node, kinds))
    firsts = ((ast.get_docstring(node) or "").split("\n")[0] for node in nodes)
    return sum(0 < len(first.split()) <= 4 for first in firsts)


def public_names() -> int:
    """Top-level functions and classes without an underscore, in modules without one."""
    modules = (tree for name, tree in trees().items() if not any(part.startswith("_") for part in name.split(".")))
    made = (node for tree in modules for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef))
    return sum(not node.name.startswith("_") for node in made)


WRITES = re.compile(
    r"\.write_text\(|\.write_bytes\(|\.open\(\s*\"[wax]|open\([^)]*\"[wax]b?\"|\.to_zarr\(|\.to_csv\("
    r"|np\.savez?\(|create_group\(|write_graphml\(|os\.fdopen\(|\.savefig\("
)


def places_that_write() -> list[str]:
    """Modules that open files for writing themselves."""
    files = sorted(PACKAGE.rglob("*.py"))
    return [str(path.relative_to(PACKAGE)) for path in files if WRITES.search(path.read_text(encoding="utf-8"))]


def importers() -> Counter[str]:
    """How many modules import each module of the package."""
    modules = trees()
    counts: Counter[str] = Counter(dict.fromkeys(modules, 0))
    for name, tree in modules.items():
        targets = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("markovblanket"):
                full = {f"{node.module}.{alias.name}" for alias in node.names}
                targets |= {module if module in modules else node.module for module in full}
            elif isinstance(node, ast.Import):
                targets |= {alias.name for alias in node.names if alias.name in modules}
        counts.update(targets - {name})
    return counts


def main() -> None:
    """Print all figures."""
    entries = [path for path in PACKAGE.iterdir() if path.name != "__pycache__"]
    folders, files = (sorted(path.name for path in entries if path.is_dir() == kind) for kind in (True, False))
    counts, writing = importers(), places_that_write()
    lines = [
        f"packages {len(folders)}: {' '.join(folders)}",
        f"files {len(files)}: {' '.join(files)}",
        f"modules: {len(counts)}",
        f"docstrings of four words or fewer: {short_docstrings()}",
        f"public top-level names: {public_names()}",
        f"modules that write files: {len(writing)}: {' '.join(writing)}",
        f"modules with exactly one importer: {sum(count == 1 for count in counts.values())}",
        *(f"modules visited by {task}: {len(visited(task))}" for task in TASKS),
    ]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
