"""Every command that the page of the command line shows is run, and says what the page says."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from markovblanket.cli import main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "commands.md"

# Of the chains: the numbers do not depend on it, and tests run side by side already.
ONE_AT_A_TIME = ("--jobs", "1")

pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="the documents are not here")


def shown() -> list[tuple[list[str], str]]:
    """Commands and what they print, in the order of the page."""
    blocks = re.findall(r"^```console\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    parts = [part for block in blocks for part in re.split(r"^\$ ", block, flags=re.MULTILINE) if part]
    pairs = (part.split("\n", 1) for part in parts)
    return [(shlex.split(command)[1:], output) for command, output in pairs]


def masked(text: str) -> list[str]:
    """Words; numbers are left to the machine, and bars and rules to the numbers."""
    return [word for word in re.sub(r"[-+]?[\d.,]*\d|[-+]{2,}|─+", " # ", text).split() if word != "#"]


HELPS = [(command, output) for command, output in shown() if command[-1] == "--help"] if PAGE.exists() else []


def test_the_page_has_every_help_as_it_is_at_eighty_columns(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "80")
    assert [command[:-1] for command, _ in HELPS] == [
        [],
        ["fit"],
        ["network"],
        ["scan"],
        ["resume"],
        ["status"],
        ["report"],
        ["simulate"],
        ["demo"],
    ]
    for command, expected in HELPS:
        assert main(command) == 0
        assert capsys.readouterr().out == expected


@pytest.mark.slow
def test_the_worked_example_prints_what_the_page_shows(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    for command, expected in shown():
        if command[-1] != "--help":
            assert main([*command, *(ONE_AT_A_TIME if command[0] == "fit" else ())]) == 0
            assert masked(capsys.readouterr().out) == masked(expected)
