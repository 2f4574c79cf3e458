"""The widened block, written once from its mathematics, and the problems that its sampler is calibrated on.

::

    W11, W12, hyper  ∝  1{W11 > 0} exp -1/2 tr(W11 + U W12 W21)  x  prod ss(w_ij)  x  hyperprior
    X1 | X2, W11, W12  ~  N(-X2 W21 U, U), row by row, X2 held fixed

with a spike and slab of its own for pairs with a query variable, and for pairs without one: zero with probability
``1 - pi``, times ``(1 - theta_i)(1 - theta_k)`` within the block, where theta are propensities, the slab's
variance that of the class times ``s_i s_j``, where s are relative precisions. The joint prior is the definition,
so the hyperparameters' own prior is what remains of the hyperprior after the rejection.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from markovblanket.contracts import ChainState, Hyper, Problem
from markovblanket.model import scatter
from markovblanket.model._pair_classes import HYPER_NAMES
from markovblanket.model.network_sweep import WidenedBlanket
from markovblanket.priors import SpikeSlab
from markovblanket.solvers import Dual
from statistical import reference
from statistical.calibration import p_of_equal_means, state_of
from statistical.reference import Array, Generator, Theta

LEARNED = SpikeSlab(edges=2.0, gaps=2.0, shape=4.0, rate=2.0)
GIVEN = SpikeSlab(inclusion=0.4, slab=0.6)


def touching(P: int, p: int) -> Array:
    """Whether a pair of the block has a query variable, P x P."""
    query = np.arange(P) < p
    return query[:, None] | query


def precisions(variables: int) -> Array:
    """Relative precisions of the query, of the candidates, and of all others."""
    return np.geomspace(0.5, 3.0, variables)[np.argsort(np.arange(variables) * 0.618 % 1)]


@dataclass(frozen=True, slots=True)
class Held(WidenedBlanket):
    """The package's sampler with the hyperparameters of each class of pairs held at given values."""

    held: Hyper

    def _draw_hyper(self, rng: Generator, state: ChainState) -> tuple[Hyper, Array]:
        return self.held, state.T


def draw_hyper(rng: Generator, size: int, prior: SpikeSlab, classes: int, held: Hyper) -> dict[str, Array]:
    """Inclusion probability and slab of each class of pairs from the hyperprior, or as given; all of them."""
    if held:
        return {name: np.full(size, value) for name, value in held.items()}
    hyper = {}
    for inclusion, slab in list(HYPER_NAMES.values())[:classes]:
        hyper[inclusion] = rng.beta(prior.edges, prior.gaps or 1.0, size)
        hyper[slab] = prior.rate / rng.gamma(prior.shape, size=size)
        if prior.inclusion is not None:
            hyper[inclusion] = np.full(size, prior.inclusion)
        if prior.slab is not None:
            hyper[slab] = np.full(size, prior.slab)
    return hyper


def draw_propensities(rng: Generator, size: int, P: int, prior: SpikeSlab, held: Hyper) -> Array:
    """Propensities, (size, 1, P), from a fifth of the inclusion's beta prior, or held; none if that is given."""
    if prior.inclusion is not None:
        return np.zeros((size, 0, 0))
    if held:
        return np.tile(np.resize(PROPENSITIES, P), (size, 1, 1))
    return np.minimum(rng.beta(prior.edges / 5, (prior.gaps or 1.0) / 5, (size, 1, P)), 1 - 2.0**-53)


def propose(rng: Generator, size: int, P: int, p: int, q: int, prior: SpikeSlab, held: Hyper) -> Theta:
    """Hyperparameters, then all entries independently; ``W11`` need not be positive definite."""
    hyper = draw_hyper(rng, size, prior, 2 if p < P else 1, held)
    (inclusion, slab), (others_inclusion, others_slab) = (
        [hyper.get(name, hyper[default]) for name, default in zip(names, HYPER_NAMES[0], strict=True)]
        for names in HYPER_NAMES.values()
    )
    mask = np.hstack([touching(P, p), np.repeat(np.arange(P)[:, None] < p, q, axis=1)])
    theta = draw_propensities(rng, size, P, prior, held)
    probability = np.where(mask, inclusion[:, None, None], others_inclusion[:, None, None])
    if theta.size:
        declined = (1 - theta) * (1 - theta.swapaxes(1, 2))
        probability[:, :, :P] = 1 - (1 - probability[:, :, :P]) * declined
    units = precisions(P + q)
    variance = np.where(mask, slab[:, None, None], others_slab[:, None, None]) * np.outer(units[:P], units)
    W = np.sqrt(variance) * rng.standard_normal((size, P, P + q)) * (rng.random((size, P, P + q)) < probability)
    upper = np.triu(W[:, :, :P], 1)
    W11 = upper + upper.swapaxes(1, 2) + np.eye(P) * rng.exponential(2.0, (size, 1, P))
    given = {HYPER_NAMES[k][n] for k in HYPER_NAMES for n, x in enumerate((prior.inclusion, prior.slab)) if x}
    learned = {name: value for name, value in hyper.items() if name not in given}
    return Theta(W11, W[:, :, P:], theta, learned)


def draw_prior(rng: Generator, size: int, P: int, p: int, q: int, prior: SpikeSlab, held: Hyper) -> Theta:
    """Proposals accepted if positive definite, with probability ``exp -1/2 tr(U W12 W21)``."""
    accepted: list[Theta] = []
    while sum(map(len, accepted)) < size:
        proposal = propose(rng, 4 * size + 100, P, p, q, prior, held)
        positive = np.linalg.eigvalsh(proposal.W11)[:, 0] > 0
        proposal = proposal.map(lambda x, keep=positive: x[keep])
        cost = 0.5 * reference.quadratic(np.linalg.inv(proposal.W11), proposal.W12, None)
        keep = rng.exponential(size=len(proposal)) > cost
        accepted.append(proposal.map(lambda x, keep=keep: x[keep]))
    return reference.concatenate(accepted).map(lambda x: x[:size])


@dataclass(frozen=True)
class NetworkCase:
    """A problem to calibrate on: p query variables, c candidates, q others with a fixed X2, and n rows.

    ``held`` are hyperparameters of each class of pairs that are given, if any; ``kind`` is the sampler: the
    package's, or one with a mistake.
    """

    name: str
    prior: SpikeSlab
    size: tuple[int, int, int, int]
    spread: float = 1.0
    held: Hyper = field(default_factory=dict)
    kind: Callable[..., WidenedBlanket] = Held
    X2: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        p, c, q, n = self.size
        sizes = self.spread * np.geomspace(1 / 2, 2, q) if q else np.ones(0)
        mixing = np.eye(q) + 0.5 * np.eye(q, k=1)
        X2 = np.random.default_rng([p, c, q, n]).standard_normal((n, q)) @ mixing * sizes
        object.__setattr__(self, "X2", X2)

    def __str__(self) -> str:
        return self.name

    @property
    def P(self) -> int:
        """Number of variables in the block."""
        return self.size[0] + self.size[1]

    def generator(self, purpose: int) -> Generator:
        """Random numbers of this case's own."""
        return np.random.default_rng([purpose, *self.name.encode()])

    def draw_joint(self, rng: Generator, size: int) -> tuple[Theta, Array]:
        """Exact draws of parameters and of the columns of the block."""
        theta = draw_prior(rng, size, self.P, self.size[0], self.size[2], self.prior, self.held)
        return theta, reference.draw_data(rng, theta, self.X2)

    def sampler(self, X1: Array) -> WidenedBlanket:
        """What the package makes of one data set; in the table, the candidates come after all others."""
        p, c, q, _ = self.size
        table = scatter.from_columns(X1[:, :p], np.hstack([self.X2, X1[:, p:]]))
        in_table = np.r_[np.arange(p), p + c + np.arange(q), p + np.arange(c)]
        problem = Problem(table, self.prior, Dual())
        right = WidenedBlanket.of(problem, q + np.arange(c), precisions(p + c + q)[in_table])
        if self.kind is Held and not self.held:
            return right
        return self.kind(*(getattr(right, name) for name in WidenedBlanket.__slots__), self.held)

    def functionals(self, theta: Theta, X1: Array) -> dict[str, Array]:
        """What is watched of parameters and data, by name."""
        return functionals(theta, X1, self.X2, self.size[0])


def functionals(theta: Theta, X1: Array, X2: Array, p: int) -> dict[str, Array]:
    """Parameters, by class of pair, and parameters coupled with the data they were drawn from."""
    W11, W12, U = theta.W11, theta.W12, np.linalg.inv(theta.W11)
    S11, S12, S22 = X1.swapaxes(1, 2) @ X1, X1.swapaxes(1, 2) @ X2, X2.T @ X2
    P, residual = W11.shape[1], X1 + X2 @ W12.swapaxes(1, 2) @ U
    watched = {
        "log|W11|": np.linalg.slogdet(W11)[1],
        "tr W11": np.trace(W11, axis1=1, axis2=2),
        "W11 first": W11[:, 0, 0],
        "W11 last": W11[:, -1, -1],
        "U first": U[:, 0, 0],
        "U last": U[:, -1, -1],
        "tr W11 S11": np.einsum("rij,rij->r", W11, S11),
        "likelihood": reference.log_likelihood(theta, S11, S12, S22, len(X2)),
        "residual first": (residual[:, :, 0] ** 2).sum(1) / U[:, 0, 0],
        "residual last": (residual[:, :, -1] ** 2).sum(1) / U[:, -1, -1],
        **theta.hyper,
    }
    for i, k in {(0, 1), (0, P - 1), (P - 2, P - 1)} if P > 1 else ():
        watched |= entry(f"w{i}{k}", W11[:, i, k], S11[:, i, k])
    for j in {0, X2.shape[1] - 1} if X2.shape[1] else ():
        watched |= entry(f"first's {j}", W12[:, 0, j], S12[:, 0, j])
        watched |= entry(f"last's {j}", W12[:, -1, j], S12[:, -1, j])
    if X2.shape[1]:
        watched["tr UG"] = reference.quadratic(U, W12, S22 + np.eye(len(S22)))
        watched["<W12, S12>"] = np.einsum("rij,rij->r", W12, S12)
        watched["edges of both blocks"] = (W11[:, 0, 1:] != 0).sum(1) * (W12[:, 0] != 0).sum(1)
    watched |= by_class(W11, W12, p, theta.hyper)
    if theta.T.size:
        watched |= of_propensities(theta.T[:, 0], W11, W12)
    return {name: value for name, value in watched.items() if np.ptp(value.astype(float)) > 0}


def of_propensities(propensity: Array, W11: Array, W12: Array) -> dict[str, Array]:
    """The propensities of the first and the last variable of the block, and with the edges of both."""
    watched = {}
    for name, i in (("first", 0), ("last", -1)):
        edges = (W11[:, i] != 0).sum(1) - 1
        watched[f"edges of the {name} outside"] = propensity[:, i] * (W12[:, i] != 0).sum(1)
        watched |= {f"edges of the {name}": edges, f"propensity of the {name}": propensity[:, i]}
        watched[f"propensity and edges of the {name}"] = propensity[:, i] * edges
    watched["both propensities"] = propensity[:, 0] * propensity[:, -1]
    return watched


def entry(name: str, w: Array, s: Array) -> dict[str, Array]:
    """An entry, whether it is there, and with its scatter."""
    return {
        name: w,
        f"{name} there": (w != 0).astype(float),
        f"{name} s": w * s,
        f"{name} of |s|": (w != 0) * abs(s),
    }


def by_class(W11: Array, W12: Array, p: int, hyper: dict[str, Array]) -> dict[str, Array]:
    """Numbers and sizes of the entries of each class, in each block, and with the class's hyperparameters."""
    upper, watched = np.triu(W11, 1), {}
    parts = {0: (upper[:, :p], W12[:, :p]), 1: (upper[:, p:, p:], W12[:, p:])}
    for kind, (inside, outside) in parts.items():
        edges, squares = ((f(inside) + f(outside)) for f in (lambda W: (W != 0).sum((1, 2)), square_sum))
        watched[f"edges {kind}"], watched[f"squares {kind}"] = edges, squares
        watched[f"edges inside {kind}"] = (inside != 0).sum((1, 2))
        watched |= {f"{name} edges {kind}": value * edges for name, value in hyper.items()}
        watched |= {f"{name} squares {kind}": value * squares for name, value in hyper.items()}
    return watched


def square_sum(W: Array) -> Array:
    """Sum of squares of each matrix."""
    return (W**2).sum((1, 2))


def inclusion_test(rng: Generator, case: NetworkCase, replications: int) -> dict[str, float]:
    """P-values of "the conditional probabilities of a sweep have the expectation of the edges".

    For every pair of the block; given the data, too, both have the same expectation.
    """
    theta, X1 = case.draw_joint(rng, replications)
    found = []
    for r in range(replications):
        state, _ = case.sampler(X1[r]).sweep(rng, state_of(theta, r))
        found.append(state.inclusion)
    surplus = np.stack(found) - (theta.W11 != 0)
    weight = np.arctan(np.abs(X1.swapaxes(1, 2) @ X1))
    pairs = [(i, k) for i in range(case.P) for k in range(i + 1, case.P)]
    p_values = {f"{i}~{k}": p_of_equal_means(surplus[:, i, k]) for i, k in pairs}
    return p_values | {f"{i}~{k}, s": p_of_equal_means((surplus * weight)[:, i, k]) for i, k in pairs}


# Hyperparameters that differ much between pairs with a query variable, and pairs without one.
UNLIKE = {"inclusion": 0.15, "slab": 1.5, "inclusion_others": 0.6, "slab_others": 0.3}
TIED = {"inclusion": 0.3, "slab": 2.0, "inclusion_others": 0.9, "slab_others": 2.0}
# Propensities that differ much between variables.
PROPENSITIES = np.array([0.05, 0.5, 0.0, 0.3, 0.1, 0.6])
# p, c, q, n: the whole network or a rest; n above and below the number of variables.
WHOLE, WHOLE_FEW_ROWS, ALL_QUERY = (1, 2, 0, 12), (2, 2, 0, 3), (3, 0, 0, 10)
BLOCK, BLOCK_FEW_ROWS, NO_CANDIDATES = (1, 2, 2, 12), (2, 1, 3, 4), (2, 0, 3, 8)
LARGE, LARGE_BLOCK = (1, 5, 0, 12), (2, 2, 3, 12)
SIZES = (WHOLE, WHOLE_FEW_ROWS, ALL_QUERY, BLOCK, BLOCK_FEW_ROWS, NO_CANDIDATES)


def case(prior: str, size: tuple[int, int, int, int], spread: float = 1.0) -> NetworkCase:
    """A problem by the names of its parts: hyperparameters given, given by class, or learned."""
    law, held = (GIVEN if prior == "given" else LEARNED), {"unlike": UNLIKE, "tied": TIED}.get(prior, {})
    return NetworkCase(f"network {prior}-{size}-{spread:g}", law, size, spread, held)


QUICK = [
    case("learned", WHOLE),
    case("unlike", WHOLE_FEW_ROWS),
    case("learned", BLOCK),
    case("given", BLOCK_FEW_ROWS),
]
THOROUGH = [case(prior, size) for prior in ("given", "learned") for size in SIZES]
THOROUGH += [case("unlike", LARGE), case("unlike", LARGE_BLOCK), case("learned", BLOCK, spread=10.0)]
RANKED = [case("learned", WHOLE_FEW_ROWS), case("learned", BLOCK), case("given", BLOCK_FEW_ROWS)]
