"""Statements about edges, read as they are meant or refused with a reason."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from markovblanket.posterior._statements import (
    Comparison,
    Magnitude,
    Term,
    edges_of,
    read_statement,
    read_sum,
)

NAMES = [
    "T",
    "N",
    "HGF",
    "RELA",
    "HLA",
    "HLA-A",
    "x.1",
    "x",
    "T > 3",
    "a b",
    "nausea and vomiting",
    "A1BG|1",
    "5HT",
]


def edge(first, second, factor=1.0):
    return Term(factor, (first, second))


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("T~HGF", (edge("T", "HGF"),)),
        ("  HGF ~ T ", (edge("HGF", "T"),)),
        ("T~HGF - T~RELA", (edge("T", "HGF"), edge("T", "RELA", -1.0))),
        ("-T~HGF + 2 * T~RELA", (edge("T", "HGF", -1.0), edge("T", "RELA", 2.0))),
        ("1.5e-1*T~HGF - .5", (edge("T", "HGF", 0.15), Term(-0.5))),
        ("T~HLA-A", (edge("T", "HLA-A"),)),
        ("HLA-A~T", (edge("HLA-A", "T"),)),
        ("T~HLA - HLA-A~T", (edge("T", "HLA"), edge("HLA-A", "T", -1.0))),
        ("T~x.1 - T~x", (edge("T", "x.1"), edge("T", "x", -1.0))),
        ("T > 3~HGF", (edge("T > 3", "HGF"),)),
        ("`T`~`T > 3`", (edge("T", "T > 3"),)),
        ("`a b`~`HLA-A`-`T`~x", (edge("a b", "HLA-A"), edge("T", "x", -1.0))),
        ("T~a b", (edge("T", "a b"),)),
        ("5HT~T - 5", (edge("5HT", "T"), Term(-5.0))),
        ("|T~A1BG|1|", (Term(1.0, Magnitude((edge("T", "A1BG|1"),))),)),
        ("2*|T~HGF - T~RELA|-|T~x|", None),
    ],
)
def test_sums_are_read_as_they_are_meant(text, terms):
    within = Magnitude((edge("T", "HGF"), edge("T", "RELA", -1.0)))
    expected = terms or (Term(2.0, within), Term(-1.0, Magnitude((edge("T", "x"),))))
    assert read_sum(text, NAMES) == expected


@pytest.mark.parametrize("relation", [">", "<", ">=", "<=", "==", "!="])
@pytest.mark.parametrize("blank", ["", " "])
def test_every_comparison(relation, blank):
    read = read_statement(f"T~HGF{blank}{relation}{blank}0.1", NAMES)
    assert read == [Comparison((edge("T", "HGF"),), relation, (Term(0.1),))]


def test_comparisons_are_joined_by_and_which_a_name_may_contain():
    one, other = read_statement("T~nausea and vomiting > 0 and 0 < N~x", NAMES)
    assert one == Comparison((edge("T", "nausea and vomiting"),), ">", (Term(0.0),))
    assert other == Comparison((Term(0.0),), "<", (edge("N", "x"),))


def test_positions_are_names_and_no_numbers():
    assert read_sum("2 * 2~10 - 1~2 - 2", range(12)) == (edge(2, 10, 2.0), edge(1, 2, -1.0), Term(-2.0))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("T~HGX > 0", "no variable is named 'HGX'; did you mean 'HGF'"),
        ("TT~HGF > 0", "no variable is named 'TT'"),
        ("`HGX`~T > 0", "no variable is named 'HGX'; did you mean 'HGF'"),
        ("T~HLA-2 > 0", "no variable is named 'HLA-2'.*takes a blank before it"),
        ("T~HGF-T~RELA > 0", "'HGF-T~RELA'.*takes a blank before it"),
        ("T~HGFX > 0", "no variable is named 'HGFX'"),
        ("T~HGF", "a comparison .* is expected"),
        ("T~HGF = 0", "a comparison .* is expected before '= 0'"),
        ("0 < T~HGF < 1", "'< 1' is left over: compare once"),
        ("T~HGF > 0 or T~x > 0", "'or T~x > 0' is left over"),
        ("T~HGF > ", "an edge such as A~B, or a number, is expected before ''"),
        ("T~ > 0", "a name is expected before '> 0'"),
        ("|T~HGF > 0", "a closing bar is expected"),
        (
            "2 * 3 > T~HGF",
            "an edge such as A~B, or a number, is expected before '3 > T~HGF'",
        ),
        ("2 > 1", "it contains no edge"),
        ("", "an edge such as A~B"),
        ("__import__('os')~T > 0", "no variable is named"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_a_reason(text, reason):
    with pytest.raises(ValueError, match=reason):
        read_statement(text, NAMES)


def test_a_contrast_has_no_comparison():
    with pytest.raises(ValueError, match=r"left over: a contrast is a sum of edges without a comparison"):
        read_sum("T~HGF > 0", NAMES)


@given(st.lists(st.text(st.characters(exclude_characters="`"), min_size=1), min_size=2, max_size=5, unique=True))
def test_any_name_without_a_backtick_can_be_quoted(names):
    first, second, *_ = names
    (one,) = read_statement(f"`{first}`~`{second}` != 0", names)
    assert list(edges_of(one.left)) == [(first, second)]
