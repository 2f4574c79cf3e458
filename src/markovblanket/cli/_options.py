"""Read what was typed on the command line: names, kinds, sets of names, and the rule that selects edges."""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

# NAME=KIND; the name is in double quotes if it contains an equals sign itself.
KIND_DECLARATION = re.compile(r'\s*(?:"(?P<quoted>(?:[^"]|"")*)"|(?P<plain>[^=]*))\s*=(?P<kind>.*)', re.DOTALL)


class BadInput(click.ClickException):
    """An error in the input that the user can correct; nothing is written."""

    exit_code = 2


def names(typed: Sequence[str]) -> list[str]:
    """The names in one or several ``--query``: separated by commas as in a csv file, or @FILE with one per line.

    >>> names(["T, N", '"a, b",c', "M"])
    ['T', 'N', 'a, b', 'c', 'M']
    """
    return [name for text in typed for name in (lines(Path(text[1:])) if text.startswith("@") else cells(text))]


def cells(text: str) -> list[str]:
    """The cells of a line of a csv file, without blanks around them and without empty cells."""
    try:
        row = next(csv.reader([text], skipinitialspace=True, strict=True), [])
    except csv.Error as error:
        raise BadInput(f"{text!r} cannot be read as names separated by commas: {error}") from None
    return [cell.strip() for cell in row if cell.strip()]


def lines(file: Path) -> list[str]:
    """The lines of a text file that are not blank."""
    try:
        text = file.expanduser().read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read names from {str(file)!r}: {getattr(error, 'strerror', error)}") from None
    return [line.strip() for line in text.splitlines() if line.strip()]


def sets(file: Path) -> list[list[str]]:
    """The sets in the YAML file of ``--queries``: names and lists of names, in a list or each under a heading.

    Scalars are read as text: what other readers of YAML take for a number or for ``no`` is a name here. A heading
    may occur twice, and both sets count.
    """
    try:
        import yaml
    except ImportError:
        raise BadInput("--queries needs the package pyyaml: pip install 'markovblanket[files]'") from None
    try:
        top = yaml.compose(file.read_text(encoding="utf-8-sig"), yaml.BaseLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError, RecursionError) as error:
        raise BadInput(f"--queries {file}: cannot be read as YAML: {' '.join(str(error).split())}") from None
    listed = [one for _, one in top.value] if isinstance(top, yaml.MappingNode) else getattr(top, "value", None)
    if not isinstance(listed, list) or not listed:
        raise BadInput(f"--queries {file}: must be a list of names and of lists of names, such as - [age, sex]")
    return [members(file, one) for one in listed]


def members(file: Path, node: Any) -> list[str]:
    """The names of a set, from a YAML node that is a name or a list of names."""
    nodes = node.value if isinstance(node.value, list) else [node]
    if not nodes or not all(isinstance(getattr(one, "value", None), str) and one.value for one in nodes):
        line = node.start_mark.line + 1
        raise BadInput(f"--queries {file}, line {line}: a set is a name or a list of names, at least one")
    return [one.value for one in nodes]


def kinds(typed: Sequence[str]) -> dict[str, Any] | None:
    """The kinds declared by ``--kind stage=ordinal`` or ``--kind stage=I,II,III``, by name; or None.

    >>> kinds(["stage=I,II,III", "dose=ordinal", '"a=b"=count', "size=<5,>=5"])
    {'stage': ['I', 'II', 'III'], 'dose': 'ordinal', 'a=b': 'count', 'size': ['<5', '>=5']}
    """
    declared: dict[str, Any] = {}
    for text in typed:
        found = KIND_DECLARATION.fullmatch(text)
        if found is None:
            raise BadInput(f"--kind {text!r}: write NAME=KIND, such as stage=ordinal or stage=I,II,III")
        name = found["plain"].strip() if found["quoted"] is None else found["quoted"].replace('""', '"')
        if name in declared:
            raise BadInput(f"--kind declares {name!r} more than once")
        declared[name] = kind(name, found["kind"])
    return declared or None


def kind(name: str, text: str) -> str | list[str]:
    """A known kind, or at least two levels in ascending order."""
    from markovblanket.tables.kinds import KINDS

    levels = cells(text)
    if len(levels) > 1:
        return levels
    if "".join(levels) not in KINDS:
        known = ", ".join(KINDS)
        raise BadInput(f"--kind {name}={text}: a kind is one of {known}, or levels in order such as low,fair,good")
    return levels[0]


def rule(prior: str, **given: float | None) -> dict[str, Any]:
    """The rule that selects edges: at most one of probability, fdr and level, the first with exact zeros only."""
    chosen = {name: value for name, value in given.items() if value is not None}
    if len(chosen) > 1:
        raise BadInput(f"{' and '.join(f'--{name}' for name in chosen)}: use only one of them")
    if "probability" in chosen and prior != "spike-slab":
        raise BadInput(f"--probability: with --prior {prior} no edge is certainly absent; use --level or --fdr")
    return chosen


def in_options(message: str) -> str:
    """A message of the library, with the options of the command line in place of arguments.

    >>> in_options("a copula needs an order: pass kinds={'stage': [...]} or indicator columns")
    "a copula needs an order: pass --kind 'stage=LOWEST,...,HIGHEST' or indicator columns"
    """
    message = re.sub(r"kinds=\{(['\"])(.*?)\1: \[\.\.\.\]\}", r"--kind '\2=LOWEST,...,HIGHEST'", message)
    message = re.sub(r"\bkinds: ", "--kind: ", message)
    message = message.replace("pass margins='auto' or 'rank'", "use --margins auto or rank")
    return message.replace("declare it 'continuous'", "declare it --kind NAME=continuous")
