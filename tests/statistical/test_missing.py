"""Missing cells in both blocks: sweeps keep the joint law of parameters and of all columns, observed or not.

The model is the whole one, ``X ~ N(0, W^-1)`` with ``W22.1 ~ Wishart_q(q+1, I/RIDGE)``, so draws of all of it are
exact, and a sweep from them must leave their joint law alone. Which cells are missing does not depend on their
values.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from markovblanket.contracts import ChainState, Problem
from markovblanket.model import sweep
from markovblanket.model.copula._margins import Gaps
from markovblanket.model.copula.latent import Copula
from statistical import reference
from statistical.calibration import assert_calibrated, overall, p_of_equal_means
from statistical.cases import PRIORS, SOLVERS

# p, q, n, and which columns of the rest have gaps; the first query column always has.
FEW, ALL, WIDE, LATE = (2, 4, 8, (0, 1)), (2, 3, 8, (0, 1, 2)), (1, 6, 4, (1, 4)), (2, 3, 4, ())
RIDGE = 2.0
THRESHOLD = 1e-5 / 400  # a share of the suite's false alarm rate


def exact_draw(rng, p, q, n, mixture):
    """Parameters from the prior and all columns given them."""
    theta = reference.draw_prior(rng, 1, p, q, mixture)
    W11, W12 = theta.W11[0], theta.W12[0]
    G = rng.standard_normal((2 * q + 1, q))[: q + 1]
    W22 = G.T @ G / RIDGE + W12.T @ np.linalg.solve(W11, W12)  # Wishart_q(q+1, I/RIDGE) plus the rest
    W = np.block([[W11, W12], [W12.T, W22]])
    X = np.linalg.solve(np.linalg.cholesky(W).T, rng.standard_normal((p + q, n))).T
    hyper = {name: float(value[0]) for name, value in theta.hyper.items()}
    return ChainState(W11, W12, theta.T[0], hyper), X


def with_gaps(rng, X, p, moving, collapsed=False):
    """Half of each moving column is missing."""
    gaps = lambda: Gaps(rng.choice(len(X), (len(X) + 1) // 2, replace=False))  # noqa: E731
    # The proper prior that the tables are drawn from.
    rest = {j: gaps() for j in moving}
    degrees, ridge = (lambda n, q: n + q + 1), (lambda n, q: RIDGE)
    return Copula(X[:, :p], X[:, p:], {0: gaps()}, rest, degrees, collapsed, ridge)


def watched(state, source):
    """Parameters, missing cells, and the scatter they enter; through arctan, so that means exist."""
    X1, X2 = state.columns.X1, state.columns.X2
    cells = {"gap of the query": X1[source.query[0].missing[0], 0]}
    pulls = [X2[m.missing, j] @ (X1[m.missing] @ state.W12[:, j]) for j, m in source.rest.items()]
    cells |= {f"gap of {j}": X2[margin.missing[-1], j] for j, margin in source.rest.items()}
    S12, S22 = X1.T @ X2, X2.T @ X2
    values = {
        "log|W11|": np.linalg.slogdet(state.W11)[1],
        "W12 first": state.W12[0, 0],
        "W12 last": state.W12[-1, -1],
        "|W12|^2": (state.W12**2).sum(),
        "tr U W12 W21": np.trace(np.linalg.solve(state.W11, state.W12 @ state.W12.T)),
        "<W12, S12>": np.vdot(state.W12, S12),
        "S11": X1[:, 0] @ X1[:, 0],
        "S12": S12[0, 0],
        "S22": S22[0, 0],
        "S22 cross": S22[0, -1],
        "log|A|": np.linalg.slogdet(S22 + np.eye(len(S22)))[1],
        "gaps and the query's pull": sum(pulls),
        **cells,
        **state.hyper,
    }
    return {name: np.arctan([value, abs(value)]) for name, value in values.items()}


def p_values(rng, case, prior, solver, replications, sweeps=2, spoil=lambda source: source, collapsed=False):
    law, mixture = PRIORS[prior]
    p, q, n, moving = case
    changes: dict[str, list] = {}
    for _ in range(replications):
        state, X = exact_draw(rng, p, q, n, mixture)
        source = spoil(with_gaps(rng, X, p, moving, collapsed))
        columns = source.start()
        problem = Problem(source.scatter(columns), law, SOLVERS[solver], source)
        state = replace(state, columns=columns)
        before = watched(state, source)
        for _ in range(sweeps):
            state, _ = sweep.sweep(rng, state, problem)
        # End on the columns: the parameters, drawn last, would cover up for wrong ones.
        state = replace(state, columns=source.refresh(rng, state))
        for name, value in watched(state, source).items():
            changes.setdefault(name, []).append(value - before[name])
    return {
        f"{name}, {what}": p_of_equal_means(np.array(values)[:, k])
        for name, values in changes.items()
        for k, what in enumerate(("location", "spread"))
    }


@pytest.mark.parametrize("collapsed", [False, True])
@pytest.mark.parametrize("case", [FEW, ALL], ids=str)
def test_sweeps_with_gaps_keep_the_joint_law(case, collapsed):
    rng = np.random.default_rng(1)
    assert_calibrated(p_values(rng, case, "laplace", "dual", replications=400, collapsed=collapsed))


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("prior", ["laplace", "learned"])
@pytest.mark.parametrize("case", [FEW, ALL, WIDE, LATE], ids=str)
def test_sweeps_with_gaps_keep_the_joint_law_closely(case, prior, solver):
    collapsed = solver == "dual"  # either way of filling the gaps with every prior and shape
    p = p_values(np.random.default_rng(2), case, prior, solver, replications=1500, collapsed=collapsed)
    assert_calibrated(p)


class NoNoise(Copula):
    """Planted: ``X_K W22.1_KJ`` at its mean, without its noise."""

    def _draw_W22(self, rng, X_J):
        W_JJ, _ = super()._draw_W22(rng, X_J)
        Q, weight = self._fixed.hat
        return W_JJ, -Q @ (weight[:, None] * (Q.T @ X_J)) @ W_JJ


class OtherDegrees(Copula):
    """Planted: ``W22.1_JJ`` with n degrees of freedom too few."""

    def _draw_W22(self, rng, X_J):
        W_JJ, cross = super()._draw_W22(rng, X_J)
        q = self.X2.shape[1]
        return W_JJ * (q + 1) / (len(X_J) + q + 1), cross


class ForgottenQuery(Copula):
    """Planted: ``W22.1`` in place of ``W22``: the part that goes through the query is lost."""

    def _refresh_rest(self, rng, X1, X2, M, state):
        unlinked = ChainState(state.W11, np.zeros_like(state.W12), state.T, state.hyper, state.columns)
        return super()._refresh_rest(rng, X1, X2, 0 * M, unlinked)


class StaleQuery(Copula):
    """Planted: the sd of a query column where its variance belongs."""

    def _refresh_query(self, rng, X1, M, W11):
        return super()._refresh_query(rng, X1, M, W11**2)


class OtherCollapsedDegrees(Copula):
    """Planted: the t law of a column with n degrees of freedom too few."""

    def refresh(self, rng, state):
        return Copula.refresh(replace(self, degrees=lambda n, q: q + 1), rng, state)


class ForgottenCollapsedQuery(Copula):
    """Planted: a column filled given the rest alone, without what the query says."""

    def refresh(self, rng, state):
        return Copula.refresh(self, rng, replace(state, W12=1e-9 * state.W12))


def assert_rejected(bug, case, prior, replications, sweeps, collapsed=False):
    def spoil(source):
        return bug(source.X1, source.X2, source.query, source.rest, source.degrees, collapsed, source.ridge)

    rng = np.random.default_rng(3)
    p, name = overall(p_values(rng, case, prior, "dense", replications, sweeps, spoil))
    assert p < 1e-3 * THRESHOLD, f"{bug.__name__} slipped through: {p:.1e} of {name}"


@pytest.mark.parametrize("bug", [OtherDegrees, ForgottenQuery, StaleQuery])
def test_planted_bugs_are_rejected(bug):
    assert_rejected(bug, FEW, "laplace", replications=1000, sweeps=0)


@pytest.mark.parametrize("bug", [OtherCollapsedDegrees, ForgottenCollapsedQuery])
def test_planted_bugs_are_rejected_where_the_rest_is_integrated_out(bug):
    assert_rejected(bug, FEW, "laplace", replications=1000, sweeps=0, collapsed=True)


@pytest.mark.slow
def test_a_subtle_planted_bug_is_rejected():
    assert_rejected(NoNoise, (1, 5, 6, (0, 1)), "normal", replications=3500, sweeps=4)
