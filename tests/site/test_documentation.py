"""What the documents show is true: examples run, commands are understood, links lead somewhere.

Code cells of ``docs/`` are run by ``make docs``; here is what that does not see.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import click
import pytest

import markovblanket as mb
from markovblanket.cli import commands
from markovblanket.cli._demo import clinic

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    *ROOT.glob("*.md"),
    *(page for page in ROOT.glob("docs/**/*.md") if not {"_build", "generated"} & set(page.parts)),
]
README = ROOT / "README.md"

pytestmark = pytest.mark.skipif(not (ROOT / "docs").exists(), reason="the documents are not here")


def relative(page: Path) -> str:
    """Its name, for a test's."""
    return str(page.relative_to(ROOT))


def blocks(page: Path, language: str) -> list[str]:
    """Fenced blocks of a language."""
    fence = rf"^```{re.escape(language)}\n(.*?)^```"
    return re.findall(fence, page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


# Examples ----------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
def test_the_example_of_the_readme_runs(monkeypatch, tmp_path):
    """Line by line on the demo's own clinic, with few of its rows and genes, and in short chains."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(
        mb, "estimate", partial(mb.estimate, chains=2, warmup=50, draws=50, seed=1, progress=False)
    )
    (example,) = blocks(README, "python")
    genes = sorted(set(re.findall(r"gene_\d+", example)))
    table = clinic().table.head(100)[["sex", "stage", "survival", *genes, "gene_001", "gene_010"]]
    names = {"table": table, "new_rows": table.drop(columns=["sex", "stage", "survival"]).head(3)}
    exec(compile(example, "README.md", "exec"), names)
    posterior = names["posterior"]
    assert posterior.query == ["sex", "stage", "survival"]
    assert set(genes) <= set(posterior.variables)


@pytest.mark.parametrize("page", [page for page in PAGES if page != README], ids=relative)
def test_python_stands_in_cells_that_are_run(page):
    assert not blocks(page, "python")
    text = page.read_text(encoding="utf-8")
    assert ("```{code-cell}" in text) == text.startswith("---\nfile_format: mystnb\n")


# Commands ----------------------------------------------------------------------------------------------


def shown_commands() -> Iterator[tuple[str, list[str]]]:
    """Every ``markovblanket ...`` of a page, in a block or in a line, with where it stands."""
    named = rf"markovblanket (?:{'|'.join(commands.commands)})\b"
    for page in PAGES:
        text = re.sub(r"\\\n\s*", " ", page.read_text(encoding="utf-8"))
        lines = re.findall(rf"^(?:\$ | {{4,6}})?({named}.*)$", text, re.MULTILINE)
        for command in (*lines, *re.findall(rf"`({named}[^`]*)`", text)):
            yield relative(page), shlex.split(command, comments=True)[1:]


COMMANDS = list(shown_commands()) if (ROOT / "docs").exists() else []


def test_commands_are_shown():
    """Otherwise the next test tests nothing."""
    assert {words[0] for _, words in COMMANDS} >= set(commands.commands)
    assert {page for page, _ in COMMANDS} >= {"README.md", "docs/commands.md", "docs/start.md"}


@pytest.mark.parametrize("words", [words for _, words in COMMANDS], ids=" ".join)
def test_commands_are_understood(words, monkeypatch, tmp_path):
    """Name, options and their values, as far as can be told without running it."""
    monkeypatch.chdir(tmp_path)
    name, *arguments = words
    if arguments == ["--help"] or (not arguments and name != "demo"):
        return  # another test reads the helps; and this one is spoken of, not shown
    for argument in arguments:
        if argument.endswith((".csv", ".parquet", ".yaml")):
            Path(argument).parent.mkdir(parents=True, exist_ok=True)
            Path(argument).touch()
    if name in ("report", "resume", "status"):
        Path(arguments[0]).mkdir()
    understand(name, arguments)


def understand(name: str, arguments: list[str]) -> None:
    """Read the arguments of a command, as the shell would have it done."""
    parent = click.Context(commands, **commands.context_settings)  # click remembers the names of the help option
    commands.commands[name].make_context(name, arguments, parent=parent)


def test_a_slip_in_a_command_would_be_noticed():
    with pytest.raises(click.NoSuchOption):
        understand("simulate", ["--row", "3"])


# Links -------------------------------------------------------------------------------------------------


def links(page: Path) -> Iterator[str]:
    """Targets of links and pictures that lie in this repository."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    for target in (*re.findall(r"\]\(([^()\s]+)\)", text), *re.findall(r'src="([^"]+)"', text)):
        if not re.match(r"[a-z]+:", target):
            yield target


def anchors(page: Path) -> set[str]:
    """Of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=relative)
def test_links_lead_somewhere(page):
    for target in links(page):
        path, _, anchor = target.partition("#")
        found = (page.parent / path).resolve() if path else page
        assert found.exists(), f"{relative(page)} has a link to {target}"
        if anchor and page.parent == ROOT:  # those within docs are known to Sphinx
            assert anchor in anchors(found), f"{relative(page)} has a link to {target}"
