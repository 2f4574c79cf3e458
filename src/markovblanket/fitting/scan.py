""":func:`scan`, which fits many sets of query variables of one table, and :class:`Scan`, its results.

Each set is fitted on its own by a worker. With a folder, every fit has a file there, and a scan that was stopped
is resumed by the same call. The results are one table of edges, one graph, and a table of the fits.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import joblib
import networkx as nx
import numpy as np
import pandas as pd

from markovblanket._determinism import checked_seed, one_thread
from markovblanket._files import DamagedError, sha256_of_text
from markovblanket.chains import snapshots
from markovblanket.chains.processes import all_done, delayed, shipped
from markovblanket.chains.progress import counted
from markovblanket.chains.run import Schedule, require_count, require_jobs
from markovblanket.chains.snapshots import Record
from markovblanket.contracts import Array, Prior, Solver
from markovblanket.fitting.data import fingerprint_of, from_mixed_table, read_undivided
from markovblanket.fitting.estimate import chosen, problem_of
from markovblanket.fitting.keep import Keeping
from markovblanket.fitting.run_folder import RunFolder, seed_in
from markovblanket.fitting.task import Task, described
from markovblanket.posterior import html
from markovblanket.posterior.edges import COLUMNS, directions, graph, once
from markovblanket.posterior.posterior import Posterior
from markovblanket.posterior.summaries import take
from markovblanket.priors import PRIORS
from markovblanket.solvers import SOLVERS
from markovblanket.tables.columns import Column
from markovblanket.tables.names import Name, names_asked, split
from markovblanket.tables.table import MixedTable, about

EACH = "each"
# Pairs that are not selected are recorded too if their probability of inclusion is at least this.
LEAST_INCLUSION_RECORDED = 0.05
# Columns of numbers that a fit records of an edge, as in the tables of a posterior.
NUMBERS = (
    "probability",
    "partial_correlation",
    "lower",
    "upper",
    "bayes_factor",
    "rhat",
    "ess",
    "sign_probability",
)
RULES = ("or", "and")


def scan(
    table: Any,
    queries: str | Iterable[Any] = EACH,
    *,
    prior: str | Prior = "spike-slab",
    margins: str = "auto",
    kinds: Mapping[Any, Any] | None = None,
    solver: str | Solver = "dual",
    chains: int = 2,
    warmup: int = 500,
    draws: int = 1000,
    thin: int = 1,
    seed: int | None = None,
    n_jobs: int | None = None,
    out: str | Path | None = None,
    progress: bool = True,
) -> Scan:
    """Estimate many blankets of one table: those of every variable, or of many sets of query variables.

    Each set has a fit of its own, as by :func:`estimate`, with all other columns as the other variables. So if
    every variable is a query, each edge is estimated from both of its ends.

    Parameters
    ----------
    table : pandas or polars frame, numpy.ndarray, or path
        As for :func:`estimate`; read once, and sent to each worker once.
    queries : "each", or list of names and of lists of names
        The sets of query variables; every variable by itself if ``"each"``.
    prior, margins, kinds, solver, chains, warmup, draws, thin
        Options of each fit, as for :func:`estimate`.
    seed : int, optional
        The same seed gives the same numbers, for any number of jobs and interruptions, and any backend.
    n_jobs : int, optional
        Fits run at the same time, by joblib: within ``joblib.parallel_config(backend="dask")``, on a Dask cluster.
    out : str or path, optional
        A folder for the results of each fit, from which a scan that was stopped is resumed by the same call.
    progress : bool
        Whether to show a bar, on a terminal or in a notebook.

    Returns
    -------
    Scan
        One table of edges, one graph, and a table of the fits.

    Examples
    --------
    >>> import markovblanket as mb
    >>> made = mb.simulate(rows=200, query=1, rest=5, density=0.4, seed=0)
    >>> found = mb.scan(made.table, seed=1, warmup=100, draws=300)
    >>> found
    <Scan: 6 fits, 6 variables, 9 edges>
    >>> sorted(found.graph("and").neighbors("Q1")), made.blanket["Q1"]
    (['V3', 'V4'], ['V3', 'V4'])
    """
    require_count("chains", chains, 1)
    require_jobs(n_jobs)
    whole, sets = _understood(table, queries, margins, kinds)
    fits = Fits.of(
        whole,
        margins=margins,
        prior=chosen(prior, PRIORS, "prior", Prior),
        solver=chosen(solver, SOLVERS, "solver", Solver),
        schedule=Schedule(warmup, draws, thin),
        chains=chains,
    )
    with _opened(out, fits, sets, seed_in(out, checked_seed(seed))) as (seeds, files):
        found = fits.run(sets, seeds, n_jobs, files, progress)
    return _gathered(found, sets, seeds, whole.order)


# The question -----------------------------------------------------------------------------------------


def _understood(
    table: Any, queries: str | Iterable[Any], margins: str, kinds: Mapping[Any, Any] | None
) -> tuple[MixedTable, list[tuple[Name, ...]]]:
    """The table with typed columns, and the sets of query variables, checked."""
    if isinstance(queries, str) and queries != EACH:
        raise ValueError(f"queries={queries!r}: {EACH!r}, or a list of names and of lists of names")
    asked = [] if isinstance(queries, str) else [names_asked(query) for query in queries]
    with one_thread:  # as in the chains: the last bits must not depend on the number of cores
        whole = read_undivided(table, [name for query in asked for name in query], margins, kinds)
    if isinstance(queries, str):
        asked = [(name,) for name in whole.order]
    sets = [split(whole.order, query)[0] for query in asked]
    _refuse_odd(sets)
    return whole, sets


def _refuse_odd(sets: Sequence[tuple[Name, ...]]) -> None:
    """Refuse an empty list of sets, and a set that occurs twice."""
    if not sets:
        raise ValueError("queries is empty: name at least one set of variables")
    seen: set[frozenset[Name]] = set()
    for query in map(frozenset, sets):
        if query in seen:
            raise ValueError(f"queries has {', '.join(map(str, sorted(query, key=str)))} more than once")
        seen.add(query)


# The fits ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FitFile:
    """The file with the results of one fit; its mark identifies the scan and the fit."""

    path: Path
    mark: str

    def read(self) -> Record | None:
        """The results of the fit; None if the file is absent or damaged, since the fit can be run again."""
        try:
            return snapshots.read_marked(self.path, self.mark)
        except DamagedError:
            return None

    def write(self, found: Record) -> None:
        """Write the results of the fit to the file."""
        snapshots.write(self.path, snapshots.marked(found, self.mark))


@dataclass(frozen=True, eq=False, kw_only=True)
class Fits:
    """The table and the options that all fits of a scan have in common.

    ``cells`` are the values of all columns, a row per column, in one array that processes on one machine share.
    """

    cells: Array
    columns: tuple[Column, ...]
    rows: Any
    margins: str
    prior: Prior
    solver: Solver
    schedule: Schedule
    chains: int

    @classmethod
    def of(cls, table: MixedTable, **options: Any) -> Fits:
        """The fits of a table; ``options`` are the fields that are not about it."""
        cells = np.array([column.values for column in table.columns])
        bare = tuple(replace(column, values=np.empty(0)) for column in table.columns)
        return cls(cells=cells, columns=bare, rows=table.rows, **options)

    @property
    def table(self) -> MixedTable:
        """The table, from ``columns`` and ``cells``."""
        columns = tuple(replace(column, values=x) for column, x in zip(self.columns, self.cells, strict=True))
        names = tuple(column.name for column in columns)
        return MixedTable(columns, (), names, names, self.rows)

    def run(
        self,
        sets: Sequence[tuple[Name, ...]],
        seeds: Sequence[int],
        n_jobs: int | None,
        files: Sequence[FitFile | None],
        progress: bool,
    ) -> list[Record]:
        """The results of each fit: read from its file if that exists, otherwise computed by a worker."""
        done: dict[int, Record] = {}

        def tasks() -> list[Any]:
            done.update(
                {k: record for k, file in enumerate(files) if file and (record := file.read()) is not None}
            )
            left = [k for k in range(len(sets)) if k not in done]
            return [delayed(_numbered)(k, self, sets[k], seeds[k], files[k]) for k in left]

        with shipped(self), counted(len(sets), progress, "scan", "fits") as reach:
            done |= all_done(tasks, n_jobs, lambda count: reach(len(done) + count))
        for k, file in enumerate(files):
            if file is not None and not file.path.is_file():  # a worker on another machine does not see the folder
                file.write(done[k])
        return [done[k] for k in range(len(sets))]

    def posterior(self, query: tuple[Name, ...], seed: int) -> Posterior:
        """The posterior of one set of query variables, computed within this process."""
        with one_thread, joblib.parallel_config(backend="sequential"):
            data = from_mixed_table(about(self.table, query), self.margins)
            problem = problem_of(data, self.prior, self.solver)
            task = Task(
                problem=problem,
                data=data,
                settings=described(data, {"prior": problem.prior, "solver": problem.solver}),
                schedule=self.schedule,
                keeping=Keeping("summary", "summary", "as asked"),
                chains=self.chains,
                seeds=np.random.SeedSequence(seed),
            )
            return task.sampled(None, progress=False)


def _numbered(k: int, fits: Fits, query: tuple[Name, ...], seed: int, file: FitFile | None) -> tuple[int, Record]:
    """The number of a fit and its results, which are also written to its file, if it has one."""
    found = _record(fits.posterior(query, seed), {column.name: j for j, column in enumerate(fits.columns)})
    if file is not None and file.path.parent.is_dir():
        with suppress(OSError):  # the process that gathers the results writes them, or says why it cannot
            file.write(found)
    return k, found


def _record(posterior: Posterior, place: Mapping[Name, int]) -> Record:
    """The edges that are selected or likely, by positions in the table, and how well the chains agree."""
    selected = posterior.selected()
    likely = posterior.inclusion.to_numpy() >= LEAST_INCLUSION_RECORDED
    table = posterior.edges_at(*once(selected.to_numpy() | likely), detail=True)
    table["selected"] = [selected.at[pair] for pair in zip(table["query"], table["variable"], strict=True)]
    diagnosed = posterior.diagnostics()
    quality = [diagnosed.table["rhat"].max(), diagnosed.table[["ess_bulk", "ess_tail"]].min(axis=None)]
    return {
        "i": np.array([place[name] for name in table["query"]], dtype=np.int64),
        "j": np.array([place[name] for name in table["variable"]], dtype=np.int64),
        "selected": table["selected"].to_numpy(dtype=bool),
        **{name: table[name].to_numpy(dtype=float) for name in NUMBERS},
        "r2": posterior.r2()["mean"].to_numpy(),
        "quality": np.array([*quality, diagnosed.converged], dtype=float),
    }


# The folder -------------------------------------------------------------------------------------------


@contextmanager
def _opened(
    out: str | Path | None, fits: Fits, sets: Sequence[tuple[Name, ...]], seed: int | None
) -> Iterator[tuple[list[int], list[FitFile | None]]]:
    """A seed for each fit, with which ``estimate`` gives the same numbers; and a file for each, with ``out``."""
    sequence = np.random.SeedSequence(seed)
    seeds = [_seed_of(child) for child in sequence.spawn(len(sets))]
    if out is None:
        yield seeds, [None] * len(sets)
        return
    with RunFolder(Path(out)).held() as folder:
        saver = folder.begin(_plan(fits, sets, sequence), lambda folder, mark: None)
        folder.fits.mkdir(exist_ok=True)
        yield seeds, [FitFile(folder.fits / f"{k}.npz", f"{saver.identity} fit {k}") for k in range(len(sets))]


def _seed_of(child: np.random.SeedSequence) -> int:
    """The seed of one fit, a whole number of 128 bits."""
    return int.from_bytes(child.generate_state(4).tobytes(), "little")


def _plan(fits: Fits, sets: Sequence[tuple[Name, ...]], seeds: np.random.SeedSequence) -> dict[str, Any]:
    """The plan of a scan: everything its numbers depend on."""
    table = fits.table
    first = from_mixed_table(about(table, sets[0]), fits.margins)
    data = replace(first, fingerprint=fingerprint_of(fits.cells))
    settings = described(data, {"prior": fits.prior, "solver": fits.solver})
    names = {
        "variables": sha256_of_text(repr(table.order)),
        "queries": sha256_of_text(repr(sets)),
        "scan": len(sets),
    }
    run_by = {"chains": fits.chains, "seed": str(seeds.entropy)}
    return {**settings, **asdict(fits.schedule), **names, **run_by, "keep": {"kept": "scan"}, "grown": []}


# The results ------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Scan:
    """The results of a scan.

    Attributes
    ----------
    seen : pandas.DataFrame
        A row for each pair in each fit, in the order of the fits: pairs that are ``selected`` by their fit, as by
        :meth:`Posterior.edges`, and all others with a probability of at least 0.05. ``fit`` is a row of ``fits``;
        the other columns are those of :meth:`Posterior.edges`, and ``sign_probability``.
    fits : pandas.DataFrame
        A row per set of query variables: ``query``, how many ``edges`` were selected, mean ``r2`` of the query
        given the others, worst ``rhat``, smallest ``ess``, whether it has ``converged``, and the ``seed`` with
        which :func:`estimate` gives the same (with ``keep="summary"`` and the options of the scan).
    variables : tuple
        All variables of the table.
    """

    seen: pd.DataFrame
    fits: pd.DataFrame
    variables: tuple[Name, ...]

    def __repr__(self) -> str:
        return f"<Scan: {len(self.fits)} fits, {len(self.variables)} variables, {len(self.edges())} edges>"

    def _repr_html_(self) -> str:
        """An HTML summary for notebooks: number of edges, whether the chains agree, and the surest edges."""
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
            An edge may be estimated by several fits, such as one from each of its ends. ``"or"``: selected by any
            of them. ``"and"``: selected by all of them (both rules: Meinshausen and Bühlmann 2006).

        Returns
        -------
        pandas.DataFrame
            The columns of :meth:`Posterior.edges`, from the surest fit, and ``sign_probability``; ``looks``
            is the number of fits that estimate the edge, and ``ends`` the number of those that select it.

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
        """The selected edges as one graph, ready for GraphML; a node says whether it is a query variable."""
        asked = dict.fromkeys(name for query in self.fits["query"] for name in query)
        return graph(list(asked), self.edges(rule))

    def _paired(self) -> pd.DataFrame:
        """A row per recorded pair, from its surest fit, with the numbers of fits that estimate and select it."""
        pair = [frozenset(ends) for ends in zip(self.seen["query"], self.seen["variable"], strict=True)]
        seen = self.seen.assign(pair=pair)
        best = ["selected", "probability", "sign_probability"]
        seen = seen.sort_values(best, ascending=False, kind="stable", na_position="last")
        first = ~seen["pair"].duplicated()
        surest = seen[first].set_index("pair")
        surest["ends"] = seen.groupby("pair")["selected"].sum()
        surest["looks"] = self._looks(surest)
        return surest.drop(columns=["selected", "fit"]).reset_index(drop=True)

    def _looks(self, pairs: pd.DataFrame) -> list[int]:
        """The number of fits that estimate each pair: those with either end as a query variable."""
        asked: dict[Name, set[int]] = {}
        for k, query in enumerate(self.fits["query"]):
            for name in query:
                asked.setdefault(name, set()).add(k)
        ends = zip(pairs["query"], pairs["variable"], strict=True)
        return [len(asked.get(a, set()) | asked.get(b, set())) for a, b in ends]


def _gathered(
    found: Sequence[Record], sets: Sequence[tuple[Name, ...]], seeds: Sequence[int], names: tuple[Name, ...]
) -> Scan:
    """The results of a scan, from those of each fit."""
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
    seen = seen.assign(**column, direction=directions(column["partial_correlation"]))
    shown = ["fit", *COLUMNS, "sign_probability", "selected"]
    return Scan(seen[shown], pd.DataFrame(fits), names)
