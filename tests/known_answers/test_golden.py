"""Seeded results are those that were recorded: code that is only moved leaves every bit as it was."""

from __future__ import annotations

import json

import pytest

import markovblanket as mb
from support import golden

KNOWN = json.loads(golden.RECORDED.read_text(encoding="utf-8"))


def test_public_names_are_those_recorded():
    assert sorted(mb.__all__) == KNOWN["public"]


def test_every_case_is_recorded():
    assert list(golden.CASES) == list(KNOWN["cases"])


@pytest.mark.parametrize("name", golden.CASES)
def test_numbers_are_those_recorded(name):
    found, known = golden.run(name), KNOWN["cases"][name]
    same = golden.environment() == KNOWN["environment"]
    assert found["means"].keys() == known["means"].keys()
    if same or name not in golden.DIVERGING:
        assert found["means"] == pytest.approx(known["means"], rel=1e-5, abs=1e-9)
    if same:
        assert found["sha256"] == known["sha256"]
