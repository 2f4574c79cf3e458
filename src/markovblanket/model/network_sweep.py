"""The widened block: query variables and candidates in one block with exact zeros, seen from both ends of an edge.

The candidates C, variables that may be neighbours of the query Q, join the block: ``W11`` is P x P with P = p + c,
``W12`` is P x q' for the rest. The likelihood is that of the paper's block; the prior has a spike and slab on the
off-diagonal entries of ``W11``, too::

    p(W11, W12)  ∝  1{W11 > 0}  exp(-1/2 tr W11 - 1/2 tr U W12 W21)  prod_{i<k} ss(w_ik)  prod_{i,j} ss(w_ij)

with an inclusion probability and a slab for pairs with a query variable, and another for pairs without one. Every
variable of the block also has a propensity of its own to have neighbours there
(:mod:`markovblanket.model._propensities`), because in many networks a few variables have most of the edges. A
nonzero entry is ``N(0, slab s_i s_j)`` with s the relative precision of each variable, by a first look at the data
(:mod:`markovblanket.model.relative_precisions`): entries of variables that others nearly determine are many times
larger than all others, and one slab for all of them would be too narrow for these. If every variable is in the
block, this is the posterior of the whole network. A sweep draws the rows of ``W12``
(:mod:`markovblanket.priors.spike_slab_sweep`), moves an edge between both blocks, draws the columns of ``W11``
(:mod:`markovblanket.model._block_columns`), and the hyperparameters of each class of pairs.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from markovblanket.contracts import (
    Array,
    ChainState,
    Columns,
    Draw,
    Hyper,
    ImpossibleStateError,
    Indices,
    Problem,
    Scatter,
    SparsePrior,
    SweepInfo,
)
from markovblanket.model import _block_columns
from markovblanket.model._block_relocation import block_given, relocate
from markovblanket.model._column_regression import WITH_QUERY, WITHOUT_QUERY, Block, Law
from markovblanket.model._pair_classes import PairClasses
from markovblanket.model.block_scatter import widened
from markovblanket.model.copula import _scale_moves
from markovblanket.model.relative_precisions import relative_precisions
from markovblanket.priors.spike_slab import draw_rows

# Rows of candidates are visited a few at a time where a pass over all rows of W12 takes more multiplications.
MOST_MULTIPLICATIONS = 2_000_000
# With latent columns, the block is drawn so many times more in a sweep, if it has at most so many variables, or if
# that takes less work than the rows of W12.
REPETITIONS, SMALL_BLOCK = 10, 40


@dataclass(frozen=True, slots=True)
class WidenedBlanket:
    """Sampler of the widened block, to be run by :mod:`markovblanket.chains.run`.

    Parameters
    ----------
    problem : Problem
        The problem of the block: its ``p`` is P.
    p : int
        Number of query variables, the first of the block.
    candidates : numpy.ndarray
        Positions of the candidates, the others of the block, among the variables that are not in the query.
    rest : numpy.ndarray
        Positions of the variables outside the block among the same.
    prior : SparsePrior
        The prior of an entry.
    precisions : numpy.ndarray
        The relative precision s of each variable, first of the block, then of the rest.
    """

    problem: Problem
    p: int
    candidates: Indices
    rest: Indices
    prior: SparsePrior
    precisions: Array

    @classmethod
    def of(cls, problem: Problem, candidates: Indices, precisions: Array | None = None) -> WidenedBlanket:
        """Return the sampler for the problem of the paper's block and the positions of the candidates.

        Relative precisions, in the order of the table, come from the data by default.
        """
        if not isinstance(problem.prior, SparsePrior):
            raise TypeError(f"{type(problem.prior).__name__} has no exact zeros, which a widened block needs")
        rest, p = np.setdiff1d(np.arange(problem.q), candidates), problem.p
        s = relative_precisions(problem.scatter) if precisions is None else precisions
        in_block = np.concatenate([np.arange(p), p + candidates, p + rest])
        return cls(widened(problem, candidates), p, candidates, rest, problem.prior, s[in_block])

    @property
    def inside(self) -> Array:
        """The relative precisions of the variables in the block."""
        return self.precisions[: self.problem.p]

    @property
    def outside(self) -> Array:
        """The relative precisions of the variables outside the block."""
        return self.precisions[self.problem.p :]

    @property
    def variables(self) -> int:
        """Number of all variables of the table, in the block or not."""
        return self.problem.p + self.problem.q

    # The chain --------------------------------------------------------------------------------------------

    def start(self, rng: np.random.Generator) -> ChainState:
        """Draw an over-dispersed initial state: a random sparse graph and random scales."""
        P, q = self.problem.p, self.problem.q
        hyper = self.pairs.start(rng)
        inclusion, slab = self.pairs.values(hyper)
        W, chance = rng.standard_normal((P, P + q)), rng.random((P, P + q))
        for i in range(P):  # row by row, because a row may be long
            spread = np.sqrt(self.pairs.along_row(i, slab) * (self.inside[i] * self.precisions))
            W[i] *= spread * (chance[i] < self.pairs.along_row(i, inclusion))
        W11 = np.triu(W[:, :P], 1)
        W11 = W11 + W11.T
        scale = self.problem.scatter.n / np.diag(self.problem.scatter.B) * np.exp(rng.uniform(-1, 1, P))
        W11 += np.diag(scale + np.abs(W11).sum(axis=0))  # a dominant diagonal: positive definite
        columns = None if self.problem.latent is None else self.problem.latent.start()
        return ChainState(W11, W[:, P:], self.pairs.start_propensities(rng), hyper, columns)

    def sweep(self, rng: np.random.Generator, state: ChainState) -> tuple[ChainState, SweepInfo]:
        """Draw the next state; comments name the conditional distributions."""
        state, scatter = self._refresh(rng, state)  # X  | W, Y  (constant for complete Gaussian data)
        law = self.law(state, scatter)
        W12, changes = self._draw_cross(rng, state, scatter, law)  # W12  | W11, S
        # an edge's place in (W11, W12)  | S
        W11, W12, block = relocate(rng, state.W11.copy(), W12, scatter, law, self.outside)
        inclusion = np.empty_like(W11)
        changes += _block_columns.draw_columns(rng, block, law, inclusion)  # W11  | W12, S
        state = replace(state, W11=block.W, W12=W12)
        if self._draws_again:  # X1  | W, Y and W11  | W12, S
            state, inclusion = self._draw_block_again(rng, state, block, law, inclusion)
        state = self._move_scales(rng, state, scatter, law)  # scales of rows and X1  | W, Y
        self._require_possible(state.W11)
        hyper, T = self._draw_hyper(rng, state)  # hyper  | W11, W12
        return replace(state, hyper=hyper, T=T, inclusion=inclusion), SweepInfo(changes, 0.0, 1.0)

    def _require_possible(self, W11: Array) -> None:
        """Raise an error that names the variable if a diagonal entry of ``W11`` is not positive and finite."""
        diagonal = np.diag(W11)
        impossible = np.flatnonzero(~((diagonal > 0.0) & (diagonal < np.inf)))
        if len(impossible):
            raise ImpossibleStateError(self._place_in_table(int(impossible[0])))

    def _place_in_table(self, position: int) -> int:
        """Return the position in the table, query first, of a variable given by that in the block and the rest."""
        order = np.concatenate([np.arange(self.p), self.p + self.candidates, self.p + self.rest])
        return int(order[position])

    def _refresh(self, rng: np.random.Generator, state: ChainState) -> tuple[ChainState, Scatter]:
        """Draw the latent columns; return the state with them, and their scatter."""
        latent = self.problem.latent
        if latent is None:
            return state, self.problem.scatter
        try:
            columns = latent.refresh(rng, state)
        except ImpossibleStateError as error:
            raise ImpossibleStateError(self._place_in_table(error.position)) from error
        return replace(state, columns=columns), latent.scatter(columns)

    @property
    def _draws_again(self) -> bool:
        """Whether a sweep draws the latent columns of the block and ``W11`` some more times.

        Given its latent column, an edge of a variable with levels comes and goes seldom; where further steps cost
        little beside the rest of a sweep, they are made.
        """
        latent, P = self.problem.latent, self.problem.p
        small = P <= SMALL_BLOCK or self._rows_visited * self._row_work >= REPETITIONS * P**3
        return latent is not None and latent.moves_query and small

    def _draw_block_again(
        self, rng: np.random.Generator, state: ChainState, block: Block, law: Law, inclusion: Array
    ) -> tuple[ChainState, Array]:
        """Draw the latent columns of the block, and then ``W11``, some more times, given everything else.

        ``X2 W21`` and ``G`` stay as they are, so a step costs the same for any number of variables outside. Also
        return the conditional probabilities of all steps, averaged.
        """
        latent, columns, W11 = self.problem.latent, state.columns, state.W11
        assert latent is not None
        assert columns is not None
        X1, linear, total = columns.X1, latent.linear_terms(state), inclusion.copy()
        for _ in range(REPETITIONS):
            X1 = latent.refresh_query(rng, X1, linear, W11)
            again = block_given(W11, block.G)
            B = latent.query_scatter(X1) + np.eye(len(W11))
            _block_columns.draw_columns(rng, again, law._replace(B=B), inclusion)
            W11, total = again.W, total + inclusion
        return replace(state, W11=W11, columns=replace(columns, X1=X1)), total / (1 + REPETITIONS)

    def _move_scales(self, rng: np.random.Generator, state: ChainState, scatter: Scatter, law: Law) -> ChainState:
        """Move the scales of rows of the precision matrix with the latent columns of their variables."""
        latent, columns = self.problem.latent, state.columns
        if latent is None or columns is None or not latent.moves_query:
            return state
        nonzero, W12 = np.flatnonzero(state.W12.any(axis=0)), state.W12
        linear, V = latent.linear_terms(state), scatter.times_factor(W12)
        given = columns.X1, linear, state.W11, inverse(state.W11), W12[:, nonzero], V
        rows = _scale_moves.Rows(*(np.array(array, order="C") for array in given))
        moving = latent.moving_query  # type: ignore[attr-defined]
        _scale_moves.move_some(rng, rows, moving, law, self.outside[nonzero])
        W12[:, nonzero] = rows.W12  # in place: W12 was drawn in this sweep
        return replace(state, W11=rows.W11, W12=W12, columns=replace(columns, X1=rows.X1))

    def _draw_cross(
        self, rng: np.random.Generator, state: ChainState, scatter: Scatter, law: Law
    ) -> tuple[Array, int]:
        """Draw rows of ``W12``; also return the number of entries that became zero or nonzero."""
        if not self.problem.q:
            return state.W12, 0
        kinds = np.where(np.arange(self.problem.p) < self.p, WITH_QUERY, WITHOUT_QUERY)
        U, rows, slab = inverse(state.W11), self._visited(rng), law.slab[kinds] * self.inside
        W12, info = draw_rows(rng, state.W12, U, scatter, np.log(law.odds[kinds]), slab, self.outside, rows)
        return W12, info.iterations

    def _visited(self, rng: np.random.Generator) -> Indices:
        """Draw the rows of ``W12`` that a sweep visits: the query's, and as many others as the work allows."""
        P, most = self.problem.p, self._rows_visited
        if most == P:
            return np.arange(P)
        chosen = rng.choice(np.arange(self.p, P), most - self.p, replace=False)
        return np.concatenate([np.arange(self.p), np.sort(chosen)])

    @property
    def _rows_visited(self) -> int:
        """How many rows of ``W12`` a sweep visits."""
        return min(max(2 * self.p, MOST_MULTIPLICATIONS // max(self._row_work, 1)), self.problem.p)

    @property
    def _row_work(self) -> int:
        """Multiplications of a pass over a row of ``W12``."""
        return self.problem.q * len(self.problem.scatter.F)

    # What the conditional distributions need ----------------------------------------------------------------

    @property
    def pairs(self) -> PairClasses:
        """The classes of pairs, whose hyperparameters are learned."""
        return PairClasses(self.prior, self.p, self.problem.p, self.variables)

    def law(self, state: ChainState, scatter: Scatter) -> Law:
        """Return what the conditionals of ``W11`` need: ``B``, n, and the prior of each pair."""
        inclusion, slab = self.pairs.values(state.hyper)
        propensity = state.T[0] if len(state.T) else np.zeros(self.problem.p)
        odds, own_odds = inclusion / (1.0 - inclusion), propensity / (1.0 - propensity)
        return Law(scatter.B, float(scatter.n), self.p, odds, slab, own_odds, self.inside)

    def _draw_hyper(self, rng: np.random.Generator, state: ChainState) -> tuple[Hyper, Array]:
        """Draw the hyperparameters of each class of pairs, and the propensities, given all entries."""
        return self.pairs.draw(rng, state, self.inside, self.outside)

    # What is kept -----------------------------------------------------------------------------------------

    def derive(self, rng: np.random.Generator, state: ChainState, info: SweepInfo) -> Draw:
        """Return the draw of a state: the query's entries, in the order of the variables in the table."""
        scatter, p = self._scatter(state), self.p
        chi2 = rng.chisquare(scatter.rest_degrees, self.problem.q)
        diagonal = self._W22_diagonal(state, scatter.inverse_diagonal * chi2)
        return Draw(
            W11=state.W11[:p, :p],
            W12=self._in_order(state.W11[:p, p:], state.W12[:p]),
            W22_diagonal=diagonal,
            explained=explained(state.W11, state.W12, scatter, p),
            hyper=state.hyper,
            info=info,
            latent=self._latent(state.columns),
            inclusion=self._inclusion(state),
        )

    def partial_correlations(self, state: ChainState) -> Array:
        """Return the partial correlations of the query with all others, those of the rest with mean ``W22_jj``."""
        scatter, p = self._scatter(state), self.p
        diagonal = self._W22_diagonal(state, scatter.inverse_diagonal * scatter.rest_degrees)
        W12 = self._in_order(state.W11[:p, p:], state.W12[:p])
        return -W12 / np.sqrt(np.outer(np.diag(state.W11)[:p], diagonal))

    def _scatter(self, state: ChainState) -> Scatter:
        """Return the scatter of the current columns."""
        latent = self.problem.latent
        return self.problem.scatter if latent is None or state.columns is None else latent.scatter(state.columns)

    def _W22_diagonal(self, state: ChainState, own: Array) -> Array:
        """Return the diagonal of ``W22``: of candidates from ``W11``, of the rest ``own + diag(W21 U W12)``."""
        columns = np.flatnonzero(state.W12.any(axis=0))
        if len(columns):
            W12 = state.W12[:, columns]
            own[columns] += np.einsum("ij,ij->j", np.linalg.solve(state.W11, W12), W12)
        return self._in_order(np.diag(state.W11)[self.p :], own)

    def _inclusion(self, state: ChainState) -> Array:
        """Return the conditional probabilities of the last sweep, p x d; of the rest, whether an edge is there."""
        assert state.inclusion is not None
        p = self.p
        others = self._in_order(state.inclusion[:p, p:], (state.W12[:p] != 0.0).astype(float))
        return np.hstack([state.inclusion[:p, :p], others])

    def _in_order(self, candidates: Array, rest: Array) -> Array:
        """Return values of candidates and of the rest, along the last axis, in the order of the table."""
        values = np.empty((*candidates.shape[:-1], self.variables - self.p))
        values[..., self.candidates], values[..., self.rest] = candidates, rest
        return values

    def _latent(self, columns: Columns | None) -> Array | None:
        """Return the latent columns, those of the query first, then the others in the order of the table."""
        latent = self.problem.latent
        if latent is None or columns is None:
            return None
        return latent.moving(columns).T[self._moving_order].T

    @property
    def _moving_order(self) -> Indices:
        """The order of the moving columns of the block and of the rest, by their positions in the table."""
        block = np.concatenate([np.arange(self.p), self.p + self.candidates])
        latent = self.problem.latent
        places = [*(block[k] for k in latent.query), *(self.p + self.rest[k] for k in latent.rest)]  # type: ignore[union-attr]
        return np.argsort(places)


def inverse(W11: Array) -> Array:
    """Return the inverse of a symmetric matrix, exactly symmetric."""
    U = np.linalg.inv(W11)
    return (U + U.T) / 2


def explained(W11: Array, W12: Array, scatter: Scatter, p: int) -> Array:
    """Return the variance of each query variable that all other variables explain.

    That of ``-X W_Q' W_QQ^-1`` over the others X, the candidates of the block and the rest, at the current
    columns. Without others it is what the query variables explain of each other.
    """
    if len(W11) == p and not W12.shape[1]:
        return np.diag(np.linalg.inv(W11)) - 1.0 / np.diag(W11)
    slopes = np.linalg.solve(W11[:p, :p], np.hstack([W11[:p, p:], W12[:p]]))
    C, V = slopes[:, : len(W11) - p], scatter.times_factor(slopes[:, len(W11) - p :])
    S_CC = scatter.B[p:, p:] - np.eye(len(W11) - p)
    return (
        np.einsum("ij,ij->i", C @ S_CC + 2 * V @ scatter.Y[p:].T, C) / scatter.n
        + np.einsum("ik,ik->i", V, V) / scatter.n
    )
