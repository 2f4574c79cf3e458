"""Tables with moving columns: exact draws of parameters and of all columns, and what is watched of both.

The model is the whole one, ``X ~ N(1 m', W^-1)`` with ``W22.1 ~ Wishart_q(q+1, I/RIDGE)``, so draws of all of it
are exact, and a sweep from them must leave their joint law alone. The means m have a flat prior, so only what does
not change when a column is shifted has a law: all columns are centred before anything is watched.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import special

from markovblanket.contracts import ChainState, Problem, Sampler
from markovblanket.model.copula._margins import Margin
from markovblanket.model.copula.latent import Copula, centred
from markovblanket.model.network_sweep import WidenedBlanket
from markovblanket.model.rest_prior import RestPrior
from markovblanket.model.sweep import Blanket
from markovblanket.priors import SpikeSlab
from markovblanket.solvers import Dual
from statistical import networks, reference
from statistical.calibration import p_of_equal_means, state_of
from statistical.cases import PRIORS, SOLVERS
from statistical.reference import Array, Generator, Theta

RIDGE = 2.0
# The moving columns lie far from zero: nothing may depend on their means.
SHIFT = 2.0

Margins = Callable[[Generator, Array], Margin]
Change = Callable[[Copula], Copula]


@dataclass(frozen=True)
class Start:
    """A state drawn from the joint law, its sampler, and the latent columns of the sampler."""

    state: ChainState
    sampler: Sampler[ChainState]
    source: Copula


def draw_columns(rng: Generator, theta: Theta, n: int) -> Array:
    """All columns, n x (p + q), centred, given the parameters."""
    W11, W12 = theta.W11[0], theta.W12[0]
    q = W12.shape[1]
    G = rng.standard_normal((q + 1, q))
    W22 = G.T @ G / RIDGE + W12.T @ np.linalg.solve(W11, W12)  # Wishart_q(q+1, I/RIDGE) plus the rest
    W = np.block([[W11, W12], [W12.T, W22]])
    return centred(np.linalg.solve(np.linalg.cholesky(W).T, rng.standard_normal((len(W), n))).T)


def copula_of(X: Array, p: int, q: int, margins: dict[int, Margin], collapsed: bool | None) -> Copula:
    """The copula whose first p columns are the query, with these margins of moving columns; q will be the rest."""
    X = X.copy()
    X[:, list(margins)] += SHIFT
    query = {k: margin for k, margin in margins.items() if k < p}
    rest = {k - p: margin for k, margin in margins.items() if k >= p}
    return Copula(X[:, :p], X[:, p:], query, rest, RestPrior(q + 1, RIDGE), collapsed)


def same(source: Copula) -> Copula:
    """No change."""
    return source


@dataclass(frozen=True)
class Paper:
    """The paper's block: p query variables, q others, n rows; which columns move, and how."""

    size: tuple[int, int, int]
    prior: str
    moving: tuple[int, ...]
    margin: Margins
    solver: str = "dual"
    collapsed: bool | None = False
    spoil: Change = same

    def draw(self, rng: Generator) -> Start:
        """Exact."""
        (p, q, n), (prior, mixture) = self.size, PRIORS[self.prior]
        theta = reference.draw_prior(rng, 1, p, q, mixture)
        X = draw_columns(rng, theta, n)
        margins = {k: self.margin(rng, X[:, k]) for k in self.moving}
        source = self.spoil(copula_of(X, p, q, margins, self.collapsed))
        problem = Problem(source.scatter(source.start()), prior, SOLVERS[self.solver], source)
        return Start(replace(state_of(theta, 0), columns=source.start()), Blanket(problem), source)


@dataclass(frozen=True)
class Network:
    """The widened block: p query variables, c candidates, q others, n rows.

    Positions of the moving columns count the query, the candidates and then the others; in the table, the
    candidates come after all others.
    """

    size: tuple[int, int, int, int]
    prior: SpikeSlab
    moving: tuple[int, ...]
    margin: Margins
    collapsed: bool | None = False
    spoil: Change = same

    def draw(self, rng: Generator) -> Start:
        """Exact."""
        p, c, q, n = self.size
        theta = networks.draw_prior(rng, 1, p + c, p, q, self.prior, {})
        X = draw_columns(rng, theta, n)
        order = np.r_[np.arange(p), p + c + np.arange(q), p + np.arange(c)]
        margins = {int(np.flatnonzero(order == k)[0]): self.margin(rng, X[:, k]) for k in self.moving}
        table = self.spoil(copula_of(X[:, order], p, q, margins, self.collapsed))
        problem = Problem(table.scatter(table.start()), self.prior, Dual(), table)
        sampler = WidenedBlanket.of(problem, q + np.arange(c), networks.precisions(p + c + q)[order])
        source = sampler.problem.latent
        assert isinstance(source, Copula)
        return Start(replace(state_of(theta, 0), columns=source.start()), sampler, source)


def watched(state: ChainState, source: Copula) -> dict[str, Array]:
    """Parameters, cells, and the scatter they enter; through arctan, so that means exist."""
    assert state.columns is not None
    X1, X2, W12 = centred(state.columns.X1), centred(state.columns.X2), state.W12
    U, q = np.linalg.inv(state.W11), W12.shape[1]
    residual = X1 + X2 @ W12.T @ U
    values = {
        "log|W11|": np.linalg.slogdet(state.W11)[1],
        "W11 first": state.W11[0, 0],
        "W11 last": state.W11[-1, -1],
        "W11 corner": state.W11[0, -1],
        "edges inside": np.count_nonzero(np.triu(state.W11, 1)),
        "S11": X1[:, 0] @ X1[:, 0],
        "S11 last": X1[:, -1] @ X1[:, -1],
        "S11 cross": X1[:, 0] @ X1[:, -1],
        "tr W11 S11": np.vdot(state.W11, X1.T @ X1),
        "residual": residual[:, 0] @ residual[:, 0] * state.W11[0, 0],
        "residual cross": residual[:, 0] @ X1[:, -1],
        **{f"cell {i} of {k}": X1[i, k] for k, m in source.query.items() for i in m.rows[[0, -1]]},
        **{
            f"missing of {k}": X1[m.missing, k].mean() * np.sqrt(state.W11[k, k])
            for k, m in source.query.items()
            if len(m.missing)
        },
        **{f"cell {i} of {j}'": X2[i, j] for j, m in source.rest.items() for i in m.rows[[0, -1]]},
        **state.hyper,
    }
    if q:
        values |= cross(X1, X2, W12, U, source)
    return {name: np.arctan([value, abs(value)]) for name, value in values.items()}


def cross(X1: Array, X2: Array, W12: Array, U: Array, source: Copula) -> dict[str, float]:
    """What is watched of ``W12`` and the columns of the rest."""
    S12, S22 = X1.T @ X2, X2.T @ X2
    pulls = [X2[m.missing, j] @ (X1[m.missing] @ W12[:, j]) for j, m in source.rest.items()]
    return {
        **{f"W12 {j}": W12[0, j] for j in range(len(S22))},
        **{f"w s {j}": W12[0, j] * S12[0, j] for j in range(len(S22))},
        "W12 last": W12[-1, -1],
        "edges": np.count_nonzero(W12),
        "|W12|^2": (W12**2).sum(),
        "edge of both": W12[0, 0] * W12[-1, 0],
        "<W12, S12>": np.vdot(W12, S12),
        "tr U W12 W21": np.trace(U @ W12 @ W12.T),
        "S12": S12[0, 0],
        "S12 last": S12[-1, -1],
        "S22": S22[0, 0],
        "S22 cross": S22[0, -1],
        "log|A|": np.linalg.slogdet(S22 + np.eye(len(S22)))[1],
        "gaps and the query's pull": float(sum(pulls)),
    }


def at_unit_scale(start: Start) -> tuple[Start, float]:
    """The state with its one column of unit scale at mean square 1, and its weight there.

    The state is a draw with that column at any length r along its direction u. With f the density of all columns,
    weights ``f(sqrt(n) u) / int r^(n-2) f(r u) dr`` make draws of the posterior at mean square 1 of them.
    """
    state, (of_query, k) = start.state, unit_column(start.source)
    assert state.columns is not None
    X1, X2 = centred(state.columns.X1), centred(state.columns.X2)
    block = X1 if of_query else X2
    n, u = len(X1), block[:, k] / np.linalg.norm(block[:, k])
    log_r = np.linspace(-4.0, 5.0, 500)
    lengths, density = np.append(np.exp(log_r), np.sqrt(n)), []
    for r in lengths:
        block[:, k] = r * u
        density.append(log_density(state, X1, X2))  # the last one as it is to be
    logs = np.array(density)
    along = logs[:-1] + (n - 1) * log_r
    columns = replace(state.columns, X1=X1, X2=X2, inverse=None)
    return replace(start, state=replace(state, columns=columns)), float(
        np.exp(logs[-1] - special.logsumexp(along))
    )


def unit_column(source: Copula) -> tuple[bool, int]:
    """Whether the only column of unit scale is in the block, and its position there or in the rest."""
    found = [(True, k) for k, margin in source.query.items() if margin.unit]
    found += [(False, j) for j, margin in source.rest.items() if margin.unit]
    (only,) = found
    return only


def log_density(state: ChainState, X1: Array, X2: Array) -> float:
    """Log density of centred columns given the block, ``W22.1`` integrated out, up to a constant."""
    q, W11 = X2.shape[1], state.W11
    residual = X1 + X2 @ np.linalg.solve(W11, state.W12).T
    of_rest = np.linalg.slogdet(RIDGE * np.eye(len(X2)) + X2 @ X2.T)[1] if q else 0.0
    return float(-0.5 * np.vdot(residual @ W11, residual) - 0.5 * (q + len(X2)) * of_rest)


def has_unit_scale(source: Copula) -> bool:
    """Whether any column is at mean square 1."""
    return any(margin.unit for margin in (*source.query.values(), *source.rest.values()))


def p_values(
    rng: Generator, case: Paper | Network, replications: int, sweeps: int, refreshes: int = 1
) -> dict[str, float]:
    """P-values of "sweeps, and then the columns alone, leave the joint law alone".

    It ends on the columns, because the parameters, drawn last, would cover up for wrong ones.
    """
    changes: dict[str, list[Array]] = {}
    for _ in range(replications):
        start, weight = case.draw(rng), 1.0
        if has_unit_scale(start.source):
            start, weight = at_unit_scale(start)
        state, before = start.state, watched(start.state, start.source)
        for _ in range(sweeps):
            state, _ = start.sampler.sweep(rng, state)
        for _ in range(refreshes):
            state = replace(state, columns=start.source.refresh(rng, state))
        for name, value in watched(state, start.source).items():
            changes.setdefault(name, []).append(weight * (value - before[name]))
    return {
        f"{name}, {what}": p_of_equal_means(np.array(values)[:, k])
        for name, values in changes.items()
        for k, what in enumerate(("location", "spread"))
        if np.ptp(np.array(values)[:, k]) > 0
    }
