"""Statements about edges: their grammar, a parser, and their probabilities and values over the draws.

The parser is written by hand: a name may hold any character, and general parsers would need it quoted. Text is
parsed by this grammar, and never evaluated by Python::

    statement   =  comparison { "and" comparison }
    comparison  =  sum ( ">" | "<" | ">=" | "<=" | "==" | "!=" ) sum
    sum         =  ["-"] term { ("+" | "-") term }
    term        =  number  |  [ number "*" ] ( edge | "|" sum "|" )
    edge        =  name "~" name

A name is the longest known one that matches, so ``HLA-A``, ``x.1`` and even ``T > 3`` need no quotes. A plus or
minus after a name takes a blank before it: ``T~HLA-2`` is about a variable ``HLA-2``, never ``T~HLA`` minus 2.
Backticks quote a name, where it would be ambiguous: ```a b`~`c-d```.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Hashable, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from functools import reduce
from typing import Any, NoReturn, TypeAlias

import numpy as np
import xarray as xr

from markovblanket.contracts import Array
from markovblanket.posterior import edges

Name = Hashable
Edge: TypeAlias = tuple[Name, Name]

NUMBER = re.compile(r"(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
RELATION = re.compile(r">=|<=|==|!=|>|<")
AND, PLUS_MINUS, TIMES, BAR = re.compile(r"and\b"), re.compile(r"[-+]"), re.compile(r"\*"), re.compile(r"\|")
QUOTED = re.compile(r"`([^`]*)`")
TILDE = re.compile(r"\s*~")
# What may follow the second name of an edge, and what an unknown first or second name looks like.
BREAK = re.compile(r"$|[\s<>=!|]")
FIRST_WORD, SECOND_WORD = re.compile(r"[^~<>=!|*]+(?=~)"), re.compile(r"[^\s<>=!|]+")
# The functions of the relations of a comparison.
RELATIONS: dict[str, Any] = {
    ">": operator.gt,
    "<": operator.lt,
    ">=": operator.ge,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
# The quantities of an edge that a statement may be about.
QUANTITIES = ("partial_correlation", "precision")


# Parsed statements ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Magnitude:
    """The absolute value of a sum, ``|sum|``."""

    inner: Sum


@dataclass(frozen=True)
class Term:
    """A factor times an edge or a magnitude; just a number if there is neither."""

    factor: float
    of: Edge | Magnitude | None = None


Sum: TypeAlias = tuple[Term, ...]


@dataclass(frozen=True)
class Comparison:
    """A comparison of two sums, such as ``left > right``."""

    left: Sum
    relation: str
    right: Sum


def read_statement(text: str, names: Iterable[Name]) -> list[Comparison]:
    """Parse a statement: comparisons joined by ``and``.

    Examples
    --------
    >>> read_statement("T~HLA-A > 0.5", ["T", "HLA", "HLA-A"])
    [Comparison(left=(Term(factor=1.0, of=('T', 'HLA-A')),), relation='>', right=(Term(factor=0.5, of=None),))]
    """
    reader = Reader(text, names)
    found = [reader.comparison()]
    while reader.take(AND):
        found.append(reader.comparison())
    reader.finish("compare once, and join comparisons by 'and'")
    if not any(any(edges_of(side)) for one in found for side in (one.left, one.right)):
        reader.fail("it contains no edge")
    return found


def read_sum(text: str, names: Iterable[Name]) -> Sum:
    """Parse a sum of terms, without a comparison.

    Examples
    --------
    >>> read_sum("2 * T~HGF - T~`a b`", ["T", "HGF", "a b"])
    (Term(factor=2.0, of=('T', 'HGF')), Term(factor=-1.0, of=('T', 'a b')))
    """
    reader = Reader(text, names)
    found = reader.sum()
    reader.finish("a contrast is a sum of edges without a comparison; that is for probability()")
    if not any(edges_of(found)):
        reader.fail("it contains no edge")
    return found


def edges_of(terms: Sum) -> Iterator[Edge]:
    """Yield every edge of a sum, those between bars included."""
    for term in terms:
        if isinstance(term.of, Magnitude):
            yield from edges_of(term.of.inner)
        elif term.of is not None:
            yield term.of


# The parser -------------------------------------------------------------------------------------------


class Reader:
    """A parser from left to right: each method reads what it is named after, or raises a ValueError."""

    def __init__(self, text: str, names: Iterable[Name]) -> None:
        self.text, self.at = text, 0
        self.names = {str(name): name for name in names}
        self.longest_first = sorted(self.names, key=len, reverse=True)

    def comparison(self) -> Comparison:
        """Read a comparison, ``sum relation sum``."""
        left = self.sum()
        relation = self.take(RELATION)
        if relation is None:
            self.fail(f"a comparison (> < >= <= == !=) is expected before {self.rest!r}")
        return Comparison(left, relation[0], self.sum())

    def sum(self) -> Sum:
        """Read a sum, terms with their signs."""
        terms = [self.term(self.take(PLUS_MINUS))]
        while sign := self.take(PLUS_MINUS):
            terms.append(self.term(sign))
        return tuple(terms)

    def term(self, sign: re.Match[str] | None) -> Term:
        """Read a term; an edge is tried before a number, as names may begin with digits or be numbers."""
        factor = -1.0 if sign is not None and sign[0] == "-" else 1.0
        quantity = self.quantity()
        if quantity is None and (number := self.take(NUMBER)):
            factor *= float(number[0])
            if self.take(TIMES) is None:
                return Term(factor)
            quantity = self.quantity()
        return Term(factor, quantity) if quantity is not None else self.fail_at_term()

    def quantity(self) -> Edge | Magnitude | None:
        """Read an edge or a sum between bars; None if neither comes next."""
        first = self.name(TILDE)
        if first is not None:
            self.take(TILDE)
            second = self.name(BREAK)
            return (first[0], self.unknown(SECOND_WORD) if second is None else second[0])
        if self.take(BAR) is None:
            return None
        inner = self.sum()
        if self.take(BAR) is None:
            self.fail(f"a closing bar is expected before {self.rest!r}")
        return Magnitude(inner)

    def name(self, before: re.Pattern[str]) -> tuple[Name] | None:
        """Read the longest known name that ends ``before`` a pattern, or a quoted name; None if there is none."""
        self.skip()
        for name in self.longest_first:
            if self.text.startswith(name, self.at) and before.match(self.text, self.at + len(name)):
                self.at += len(name)
                return (self.names[name],)
        quoted = self.take(QUOTED)
        if quoted is None:
            return None
        return (self.names[quoted[1]],) if quoted[1] in self.names else self.fail_to_know(quoted[1])

    # Small steps, and errors --------------------------------------------------------------------

    @property
    def rest(self) -> str:
        """The text that is not read yet."""
        return self.text[self.at :].strip()

    def skip(self) -> None:
        """Move on to the next character that is not blank."""
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Read what matches a pattern, after blanks; None if it does not come next."""
        self.skip()
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return found

    def finish(self, otherwise: str) -> None:
        """Raise a ValueError if text is left over."""
        if self.rest:
            self.fail(f"{self.rest!r} is left over: {otherwise}")

    def fail_at_term(self) -> NoReturn:
        """Raise a ValueError as neither an edge nor a number comes next."""
        if FIRST_WORD.match(self.rest):
            self.unknown(FIRST_WORD)
        self.fail(f"an edge such as A~B, or a number, is expected before {self.rest!r}")

    def unknown(self, word: re.Pattern[str]) -> NoReturn:
        """Raise a ValueError as no known name comes next."""
        found = word.match(self.rest)
        if found is None:
            self.fail(f"a name is expected before {self.rest!r}")
        self.fail_to_know(found[0].strip())

    def fail_to_know(self, name: str) -> NoReturn:
        """Raise a ValueError about an unknown name, with similar names, and a hint on plus and minus."""
        near = get_close_matches(name, list(self.names), n=3)
        hint = f"; did you mean {' or '.join(map(repr, near))}?" if near else ""
        sign = " (a plus or minus after a name takes a blank before it)" if re.search(r".[-+]", name) else ""
        self.fail(f"no variable is named {name!r}{hint}{sign}")

    def fail(self, what: str) -> NoReturn:
        """Raise a ValueError that quotes the text and says what is wrong with it."""
        raise ValueError(f"{self.text!r}: {what}")


# Probabilities and values over the draws --------------------------------------------------------------


def probability(draws: xr.Dataset, statement: str, of: str) -> float:
    """Return the share of draws in which every comparison of a statement holds."""
    compared = [
        RELATIONS[one.relation](values_of(draws, one.left, of), values_of(draws, one.right, of))
        for one in read_statement(statement, names_of(draws))
    ]
    return float(np.mean(reduce(np.logical_and, compared)))


def contrast(draws: xr.Dataset, expression: str, of: str) -> xr.DataArray:
    """Return the value of a sum of edges in each draw: (chain, draw)."""
    values = values_of(draws, read_sum(expression, names_of(draws)), of)
    coords = {dim: draws[dim].values for dim in ("chain", "draw")}
    return xr.DataArray(values, coords=coords, dims=("chain", "draw"), name=expression)


def names_of(draws: xr.Dataset) -> list[Hashable]:
    """Return the names of all variables, those of the query first."""
    return [*draws["query"].values.tolist(), *draws["variable"].values.tolist()]


def values_of(draws: xr.Dataset, terms: Sum, of: str) -> Array:
    """Return the value of a sum in each draw."""
    values = np.zeros((draws.sizes["chain"], draws.sizes["draw"]))
    for term in terms:
        values = values + term.factor * value_of(draws, term, of)
    return values


def value_of(draws: xr.Dataset, term: Term, of: str) -> Array | float:
    """Return the values that the factor of a term multiplies."""
    if term.of is None:
        return 1.0
    if isinstance(term.of, Magnitude):
        return np.abs(values_of(draws, term.of.inner, of))
    return edge_values(draws, term.of, of)


def edge_values(draws: xr.Dataset, edge: Edge, of: str) -> Array:
    """Return the partial correlation or the entry of the precision matrix of an edge in each draw.

    Its ends may be in either order.
    """
    if of not in QUANTITIES:
        raise ValueError(f"of={of!r}: known are {', '.join(map(repr, QUANTITIES))}")
    query = draws["query"].values.tolist()
    first, second = edge if edge[0] in query else edge[::-1]
    if first == second or first not in query:
        why = "no variable is connected to itself" if first == second else "neither of them is a query variable"
        raise ValueError(f"{edge[0]}~{edge[1]} is not an edge of this posterior: {why}")
    return np.asarray(edges.draws_of_edge(draws, first, second, of).values, dtype=float)
