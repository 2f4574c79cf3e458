"""Missing cells in all blocks: sweeps keep the joint law of parameters and of all columns, observed or not.

Which cells are missing does not depend on their values.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from markovblanket.contracts import ChainState, Columns
from markovblanket.model.copula._fixed_columns import MovingScatter
from markovblanket.model.copula._margins import Gaps
from markovblanket.model.copula._rest_columns import Rest, draw, row_inverse
from markovblanket.model.copula.latent import Copula
from statistical.calibration import CHECKS, FALSE_ALARM, assert_calibrated, overall
from statistical.cases import SOLVERS
from statistical.latent_columns import Network, Paper, p_values
from statistical.networks import GIVEN, LEARNED
from statistical.test_levels import thirds

# The size, and which columns have gaps.
FEW, ALL, WIDE, LATE = (
    ((2, 4, 8), (0, 2, 3)),
    ((2, 3, 8), (0, 2, 3, 4)),
    ((1, 6, 4), (0, 2, 5)),
    ((2, 3, 4), (0,)),
)
# Of the widened block: a query variable, a candidate and two others; or no others at all.
BLOCK, WHOLE, FEW_ROWS = ((1, 2, 2, 8), (0, 1, 3, 4)), ((1, 2, 0, 8), (0, 1)), ((2, 1, 4, 5), (0, 2, 3, 5))


def half(rng, x):
    """Half of the column is missing."""
    return Gaps(np.sort(rng.choice(len(x), (len(x) + 1) // 2, replace=False)))


def most(rng, x):
    """All cells but one are missing."""
    return Gaps(np.arange(len(x) - 1))


@pytest.mark.parametrize("collapsed", [False, True])
@pytest.mark.parametrize("case", [FEW, ALL], ids=str)
def test_sweeps_with_gaps_keep_the_joint_law(case, collapsed):
    size, moving = case
    paper = Paper(size, "laplace", moving, half, collapsed=collapsed)
    assert_calibrated(p_values(np.random.default_rng(1), paper, replications=400, sweeps=2))


@pytest.mark.slow
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("prior", ["laplace", "learned"])
@pytest.mark.parametrize("case", [FEW, ALL, WIDE, LATE], ids=str)
def test_sweeps_with_gaps_keep_the_joint_law_closely(case, prior, solver):
    collapsed = solver == "dual"  # either way of filling the gaps with every prior and shape
    size, moving = case
    paper = Paper(size, prior, moving, half, solver, collapsed)
    assert_calibrated(p_values(np.random.default_rng(2), paper, replications=1500, sweeps=2))


@pytest.mark.parametrize(("case", "collapsed"), [(BLOCK, False), (WHOLE, None), (FEW_ROWS, True)], ids=str)
def test_sweeps_of_the_widened_block_with_gaps_keep_the_joint_law(case, collapsed):
    size, moving = case
    network = Network(size, LEARNED, moving, half, collapsed)
    assert_calibrated(p_values(np.random.default_rng(3), network, replications=400, sweeps=2))


@pytest.mark.slow
@pytest.mark.parametrize("prior", [GIVEN, LEARNED], ids=["given", "learned"])
@pytest.mark.parametrize("collapsed", [False, True])
@pytest.mark.parametrize("case", [BLOCK, WHOLE, FEW_ROWS], ids=str)
def test_sweeps_of_the_widened_block_with_gaps_keep_the_joint_law_closely(case, collapsed, prior):
    size, moving = case
    network = Network(size, prior, moving, half, collapsed)
    assert_calibrated(p_values(np.random.default_rng(4), network, replications=3000, sweeps=2))


# Planted ----------------------------------------------------------------------------------------------


class NoNoise(Copula):
    """``X_K W22.1_KJ`` at its mean, without its noise."""

    def _draw_W22(self, rng, X_J):
        W_JJ, _ = Copula._draw_W22(self, rng, X_J)
        Q, weight = self._fixed.hat
        return W_JJ, -Q @ (weight[:, None] * (Q.T @ X_J)) @ W_JJ


class OtherDegrees(Copula):
    """``W22.1_JJ`` with as many degrees of freedom too few as there are rows."""

    def _draw_W22(self, rng, X_J):
        W_JJ, cross = Copula._draw_W22(self, rng, X_J)
        return W_JJ * self.rest_prior.degrees / self._degrees, cross


class ForgottenQuery(Copula):
    """``W22.1`` in place of ``W22``: the part that goes through the query is lost."""

    def _refresh_rest(self, rng, X1, X2, M, state):
        unlinked = ChainState(state.W11, np.zeros_like(state.W12), state.T, state.hyper, state.columns)
        return Copula._refresh_rest(self, rng, X1, X2, 0 * M, unlinked)


class StaleQuery(Copula):
    """The sd of a query column where its variance belongs."""

    def refresh_query(self, rng, X1, M, W11):
        return Copula.refresh_query(self, rng, X1, M, W11**2)


class OtherCollapsedDegrees(Copula):
    """The t law of a column with as many degrees of freedom too few as there are rows."""

    @property
    def _degrees(self):
        return self.rest_prior.degrees


class ForgottenCollapsedQuery(Copula):
    """A column filled given the rest alone, without what the query says."""

    def refresh(self, rng, state):
        return Copula.refresh(self, rng, replace(state, W12=1e-9 * state.W12))


class StaleInverse(Copula):
    """Every column given the others as they were before the sweep, not as they are."""

    def _refresh_integrated(self, rng, columns, fit, state):
        first, X2 = row_inverse(columns.X2, self.rest_prior.ridge), columns.X2
        U = np.linalg.inv(state.W11)
        for k in range(len(self.rest)):
            rest = Rest.of(X2, first, fit, self._degrees, 1)
            draw(rng, rest, columns.X1, state.W12, U, self._moving_rest, np.array([k]))
            X2 = rest.X2T.T
        return Columns(columns.X1, X2)


class AllRowsCount(Copula):
    """n for n - 1 in the scatter."""

    def scatter(self, columns) -> MovingScatter:
        right = Copula.scatter(self, columns)
        return replace(right, n=right.n + 1)


class AllRowsCountInTheRest(Copula):
    """n for n - 1 in the degrees of freedom of ``W22.1``."""

    @property
    def _degrees(self):
        return self.rest_prior.degrees + len(self.X2)


class NoIntercept(Copula):
    """Cells of a query column drawn as if its mean were zero."""

    noise = 0.0
    drawn = False

    def refresh_query(self, rng, X1, M, W11):
        X1 = X1.copy()
        for k, margin in self.query.items():
            residual = (M[:, k] + X1 @ W11[k]) / W11[k, k]
            spread = self.noise * rng.standard_normal() / np.sqrt(len(X1) * W11[k, k])
            intercept = residual.mean() + spread if self.drawn else 0.0
            mean, rows = X1[:, k] - residual + intercept, margin.missing
            X1[rows, k] = mean[rows] + rng.standard_normal(len(rows)) / np.sqrt(W11[k, k])
        return X1


class InterceptAtItsMean(NoIntercept):
    """The intercept of a query column without its noise."""

    drawn = True


class PlainIntercept(InterceptAtItsMean):
    """No mistake: as the compiled draw."""

    noise = 1.0


def spoilt(bug):
    """The same columns with a mistake."""

    def spoil(source):
        return bug(source.X1, source.X2, source.query, source.rest, source.given_prior, source.collapsed)

    return spoil


@dataclass(frozen=True)
class Bug:
    """A mistake, the problem that shows it, and how many replications, sweeps and refreshed columns it takes."""

    kind: type[Copula]
    case: Paper | Network
    replications: int = 1000
    sweeps: int = 0
    refreshes: int = 1

    def __str__(self):
        return f"{self.kind.__name__}-{type(self.case).__name__}"

    def p_values(self, rng):
        case = replace(self.case, spoil=spoilt(self.kind))
        return p_values(rng, case, self.replications, self.sweeps, self.refreshes)


PAPER = Paper(*FEW[:1], "laplace", FEW[1], half, "dense")
COLLAPSED = replace(PAPER, collapsed=True)
NETWORK, NETWORK_COLLAPSED = (Network(BLOCK[0], GIVEN, BLOCK[1], half, collapsed) for collapsed in (False, True))
# All columns of the rest with levels.
LEVELS_COLLAPSED = Network((1, 1, 4, 6), GIVEN, (2, 3, 4, 5), thirds, collapsed=True)
SMALL = Network((1, 2, 0, 4), GIVEN, (0, 1), most)
BUGS = [
    Bug(OtherDegrees, PAPER),
    Bug(ForgottenQuery, PAPER),
    Bug(StaleQuery, PAPER),
    Bug(OtherCollapsedDegrees, COLLAPSED),
    Bug(ForgottenCollapsedQuery, COLLAPSED),
    Bug(StaleInverse, replace(COLLAPSED, size=ALL[0], moving=ALL[1]), replications=3000),
    Bug(NoIntercept, PAPER, replications=300),
    Bug(OtherDegrees, NETWORK, replications=2000),
    Bug(ForgottenQuery, NETWORK),
    Bug(StaleQuery, NETWORK, replications=2000),
    Bug(OtherCollapsedDegrees, NETWORK_COLLAPSED),
    Bug(OtherCollapsedDegrees, LEVELS_COLLAPSED),
    Bug(ForgottenCollapsedQuery, LEVELS_COLLAPSED, replications=2000),
    Bug(StaleInverse, LEVELS_COLLAPSED, replications=3000),
    Bug(NoIntercept, SMALL, replications=300),
    Bug(InterceptAtItsMean, SMALL, refreshes=12),
    Bug(AllRowsCount, Network((2, 1, 0, 3), GIVEN, (0,), half), replications=2000, sweeps=2),
]
SUBTLE = [
    Bug(NoNoise, Paper((1, 5, 6), "normal", (0, 1, 2), half, "dense"), replications=3500, sweeps=4),
    Bug(AllRowsCountInTheRest, Paper((1, 2, 4), "laplace", (1, 2), half), replications=10_000, refreshes=8),
]


def assert_rejected(bug):
    p, name = overall(bug.p_values(np.random.default_rng(5)))
    assert p < 1e-3 * FALSE_ALARM / CHECKS, f"{bug} slipped through: {p:.1e} of {name}"


@pytest.mark.parametrize("bug", BUGS, ids=str)
def test_planted_bugs_are_rejected(bug):
    assert_rejected(bug)


@pytest.mark.slow
@pytest.mark.parametrize("bug", SUBTLE, ids=str)
def test_subtle_planted_bugs_are_rejected(bug):
    assert_rejected(bug)


def test_the_intercept_drawn_plainly_is_no_mistake():
    assert_calibrated(Bug(PlainIntercept, SMALL, refreshes=12).p_values(np.random.default_rng(6)))
