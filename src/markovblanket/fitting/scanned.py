"""What a scan has found: one table of edges, one graph, and a table of its fits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np
import pandas as pd

from markovblanket.chains.snapshots import Record
from markovblanket.posterior import edges as edgetable
from markovblanket.posterior import html
from markovblanket.posterior.summaries import likelier, take
from markovblanket.tables.names import Name

# Of an edge, as in the tables of a posterior.
NUMBERS = (
    "weight",
    "sd",
    "lower",
    "upper",
    "partial_correlation",
    "sign_probability",
    "inclusion",
    "inclusion_other",
    "rhat",
    "ess",
)
RULES = ("or", "and")


@dataclass(frozen=True, eq=False, repr=False)
class Scan:
    """What a scan has found.

    Attributes
    ----------
    seen : pandas.DataFrame
        A row for each look at a pair, in the order of the fits: those that were ``selected`` by their fit as
        :meth:`Posterior.edges` and ``query_edges`` do it, and all others with a probability of inclusion of at
        least 0.05. ``fit`` is a row of ``fits``; else as :meth:`Posterior.edges` has them.
    fits : pandas.DataFrame
        A row per set of query variables: ``query``, how many ``edges`` were selected, mean ``r2`` of the query
        given the rest, worst ``rhat``, smallest ``ess``, whether it has ``converged``, and the ``seed`` with which
        :func:`estimate` gives the same (with ``keep="summary"`` and the options of the scan).
    variables : tuple
        All variables of the table.
    """

    seen: pd.DataFrame
    fits: pd.DataFrame
    variables: tuple[Name, ...]

    def __repr__(self) -> str:
        return f"<Scan: {len(self.fits)} fits, {len(self.variables)} variables, {len(self.edges())} edges>"

    def _repr_html_(self) -> str:
        """For notebooks: how many, whether the chains agree, and the surest edges."""
        edges, bad = self.edges(), int((~self.fits["converged"]).sum())
        facts = [f"{len(edges):,} edges selected from either end", f"{len(self.edges('and')):,} from every end"]
        title = f"Markov blankets of {len(self.fits):,} sets among {len(self.variables):,} variables"
        told = f"NOT CONVERGED: {bad:,} of {len(self.fits):,} fits." if bad else "The chains of every fit agree."
        return html.card(html.heading(title, facts), html.verdict(not bad, told), html.edges(edges))

    def edges(self, rule: str = "or") -> pd.DataFrame:
        """The selected edges, one row for each pair, surest first.

        Parameters
        ----------
        rule : str
            An edge may be seen by several fits, such as one from each of its ends. ``"or"``: selected by any of
            them. ``"and"``: by all of them (both rules: Meinshausen and Bühlmann 2006).

        Returns
        -------
        pandas.DataFrame
            As :meth:`Posterior.edges`, from the fit that is surest; ``inclusion_other`` is the largest probability
            that any other look gave; ``ends`` of its ``looks`` have selected it.

        References
        ----------
        Meinshausen, N. and Bühlmann, P. (2006). High-dimensional graphs and variable selection with the lasso.
        Annals of Statistics 34, 1436-1462.
        """
        if rule not in RULES:
            raise ValueError(f"rule={rule!r}: known are {', '.join(map(repr, RULES))}")
        pairs = self._paired()
        wanted = pairs["ends"] == pairs["looks"] if rule == "and" else pairs["ends"] > 0
        return pairs[wanted].reset_index(drop=True)

    def graph(self, rule: str = "or") -> nx.Graph:
        """The same as one network, ready for GraphML; a node says whether its variable was asked for."""
        asked = dict.fromkeys(name for query in self.fits["query"] for name in query)
        return edgetable.graph(list(asked), self.edges(rule))

    def _paired(self) -> pd.DataFrame:
        """A row per pair that was seen: that of the surest look, with what the others say."""
        pair = [frozenset(ends) for ends in zip(self.seen["query"], self.seen["variable"], strict=True)]
        seen = self.seen.assign(pair=pair, likelier=likelier(self.seen))
        best = ["selected", "likelier", "sign_probability"]
        seen = seen.sort_values(best, ascending=False, kind="stable", na_position="last")
        first = ~seen["pair"].duplicated()
        known = seen[~first].groupby("pair")["likelier"].max()
        surest = seen[first].set_index("pair")
        surest["inclusion_other"] = np.fmax(surest["inclusion_other"], known.reindex(surest.index))
        surest["ends"] = seen.groupby("pair")["selected"].sum()
        surest["looks"] = self._looks(surest)
        dropped = ["selected", "likelier", "fit"]
        return surest.drop(columns=dropped).reset_index(drop=True)

    def _looks(self, pairs: pd.DataFrame) -> list[int]:
        """How many fits have looked at each pair: those of which either end was a query variable."""
        asked: dict[Name, set[int]] = {}
        for k, query in enumerate(self.fits["query"]):
            for name in query:
                asked.setdefault(name, set()).add(k)
        ends = zip(pairs["query"], pairs["variable"], strict=True)
        return [len(asked.get(a, set()) | asked.get(b, set())) for a, b in ends]


def gathered(
    found: Sequence[Record], sets: Sequence[tuple[Name, ...]], seeds: Sequence[int], names: tuple[Name, ...]
) -> Scan:
    """The tables of all fits, from what each has found."""
    lengths = [len(record["i"]) for record in found]
    column = {
        name: np.concatenate([record[name] for record in found]) for name in ("i", "j", "selected", *NUMBERS)
    }
    seen = pd.DataFrame({"fit": np.repeat(np.arange(len(found)), lengths)})
    seen["query"], seen["variable"] = (pd.Series(take(names, column.pop(end))) for end in ("i", "j"))
    fits = {
        "query": list(sets),
        "edges": [int(record["selected"].sum()) for record in found],
        "r2": [float(record["r2"].mean()) for record in found],
    }
    quality = np.array([record["quality"] for record in found])
    fits |= {"rhat": quality[:, 0], "ess": quality[:, 1], "converged": quality[:, 2] == 1, "seed": list(seeds)}
    return Scan(seen.assign(**column), pd.DataFrame(fits), names)
