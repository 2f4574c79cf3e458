"""What plans and settings on disk must hold: a rule for each entry, and one sentence for each fault."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from markovblanket._files import DamagedError

# No number of rows, draws or chains is larger.
LARGEST = 2**53


@dataclass(frozen=True)
class Rule:
    """What an entry must be, in words and as a test; an ``optional`` entry may be absent."""

    words: str
    holds: Callable[[Any], bool]
    optional: bool = False


Schema = Mapping[str, "Rule | Schema"]


def whole(least: int = 0, most: int = LARGEST) -> Rule:
    """A whole number within bounds."""
    return Rule(f"a whole number from {least} to {most}", lambda value: _is_whole(value, least, most))


def one_of(*words: str) -> Rule:
    """One of several words, compared as they are."""
    return Rule(f"one of {', '.join(words)}", lambda value: isinstance(value, str) and value in words)


def optional(rule: Rule) -> Rule:
    """The rule of an entry that may be absent."""
    return replace(rule, optional=True)


def _is_whole(value: Any, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _are_names(value: Any) -> bool:
    return isinstance(value, list) and all(type(name) in (str, int) for name in value)


def _is_share(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1


def _are_pairs(value: Any) -> bool:
    pairs = isinstance(value, list) and all(isinstance(pair, list) and len(pair) == 2 for pair in value)
    return pairs and all(_is_whole(end, 0, LARGEST) for pair in value for end in pair)


def _is_record(value: Any) -> bool:
    return isinstance(value, dict) and not any(isinstance(one, dict | list) for one in value.values())


TEXT = Rule("text", lambda value: isinstance(value, str))
NAMES = Rule("a list of names", _are_names)
TRUTH = Rule("true or false", lambda value: isinstance(value, bool))
DIGITS = Rule(
    "a whole number as text", lambda value: isinstance(value, str) and value.isdecimal() and len(value) < 4000
)
PAIRS = Rule("a list of pairs of positions", _are_pairs)
COUNTS = Rule(
    "a list of whole numbers",
    lambda value: isinstance(value, list) and all(_is_whole(one, 1, LARGEST) for one in value),
)
RECORD = Rule("entries of numbers and text", _is_record)
OPTIONS = Rule("a set of entries", lambda value: isinstance(value, dict))
ANYTHING = Rule("anything", lambda value: True)


def either(rule: Rule, other: Rule) -> Rule:
    """A rule that holds if one of two does."""
    return Rule(f"{rule.words}, or {other.words}", lambda value: rule.holds(value) or other.holds(value))


NOTHING = Rule("null", lambda value: value is None)
# A prior or a solver, and the data of a fit.
PART: Schema = {"name": TEXT, "exact_zeros": optional(TRUTH), "options": OPTIONS}
PRIOR: Schema = {
    **PART,
    "expected_inclusion": optional(
        Rule(
            "two numbers from 0 to 1",
            lambda value: (
                isinstance(value, dict)
                and set(value) == {"block", "outside"}
                and all(map(_is_share, value.values()))
            ),
        )
    ),
}
DATA: Schema = {"n": whole(1), "p": whole(1), "q": whole(), "sha256": TEXT}
MARGINS = one_of("auto", "rank", "gaussian")
# Settings of a posterior; whoever makes one may leave them out, or add others.
SETTINGS: Schema = {
    "data": DATA,
    "margins": MARGINS,
    "prior": PRIOR,
    "solver": PART,
    "versions": RECORD,
    "warmup": whole(),
    "draws": whole(1),
    "thin": whole(1),
    "chains": whole(1),
    "seed": DIGITS,
    "keep": {"asked": TEXT, "kept": TEXT, "why": TEXT},
    "candidates": {"asked": either(TEXT, whole()), "chosen": optional(NAMES)},
}


def require(found: Any, schema: Schema, file: Path, *, whole: bool = True) -> None:
    """Refuse entries that do not follow their rules; if ``whole``, also absent ones and unknown ones."""
    if fault := next(_faults(found, schema, "", whole), None):
        raise DamagedError(f"{file} is damaged: {fault}")


def _faults(found: Any, schema: Schema, before: str, whole: bool) -> Any:
    """Yield a sentence for each entry that does not follow its rule."""
    if not isinstance(found, Mapping):
        yield f"{before.removesuffix('.') or 'it'} is {found!r:.60}, and should be a set of entries"
        return
    if whole and (strange := sorted(set(found) - set(schema))):
        yield f"it has an unknown entry {before}{strange[0]}"[:200]
    for name, rule in schema.items():
        if name not in found:
            if whole and not (isinstance(rule, Rule) and rule.optional):
                yield f"{before}{name} is missing"
        elif not isinstance(rule, Rule):
            yield from _faults(found[name], rule, f"{before}{name}.", whole)
        elif not rule.holds(found[name]):
            yield f"{before}{name} is {found[name]!r:.60}, and should be {rule.words}"
