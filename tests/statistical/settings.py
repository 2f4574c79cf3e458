"""Small settings for exact checks of the sweep, and an ear at the door of the functions it calls."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from markovblanket.contracts import ChainState
from markovblanket.model import scatter
from markovblanket.model.scatter import FactorScatter
from markovblanket.priors import Laplace
from statistical.reference import Array, ExponentialScales, FixedScales, Mixture, Theta, log_joint

SIZES = [(2, 3, 6), (3, 4, 20), (1, 3, 5), (3, 2, 5), (2, 6, 4), (2, 3, 1)]
LEARNED, LEARNED_LAW = Laplace(shape=3.5, rate=0.7), ExponentialScales(shape=3.5, rate=0.7)
NORMAL_LAW = FixedScales(scale=0.7)
GIVEN, GIVEN_LAW = Laplace(gamma=1.7), ExponentialScales(gamma=1.7)


@dataclass(frozen=True)
class Setting:
    """Some data, two states, and the joint log density of a state with the data."""

    X1: Array
    X2: Array
    one: ChainState
    other: ChainState

    @property
    def scatter(self) -> FactorScatter:
        return scatter.from_columns(self.X1, self.X2)

    def log_joint(self, state: ChainState, law: Mixture = LEARNED_LAW) -> float:
        hyper = {name: np.array([value]) for name, value in state.hyper.items()}
        theta = Theta(state.W11[None], state.W12[None], state.T[None], hyper)
        S11, S12, S22 = self.X1.T @ self.X1, self.X1.T @ self.X2, self.X2.T @ self.X2
        return float(log_joint(theta, S11[None], S12[None], S22, len(self.X2), law)[0])

    def log_without_scales(self, state: ChainState, law: ExponentialScales = LEARNED_LAW) -> float:
        """With T integrated out: ``p(T, ...) / p(T | ...)``, whose denominator has a test of its own."""
        gamma, D = state.hyper["gamma"] if law.gamma is None else law.gamma, 1 / state.T
        log_D = stats.invgauss.logpdf(D, gamma / np.abs(state.W12) / gamma**2, scale=gamma**2)
        return self.log_joint(state, law) - float((log_D + 2 * np.log(D)).sum())

    def log_without_rate(self, state: ChainState) -> float:
        """With gamma integrated out as well."""
        shape, rate = state.W12.size + LEARNED.shape, np.abs(state.W12).sum() + LEARNED.rate
        return self.log_without_scales(state) - float(
            stats.gamma.logpdf(state.hyper["gamma"], shape, scale=1 / rate)
        )

    def gain(self, law: ExponentialScales = LEARNED_LAW, **parts: object) -> float:
        """How much the joint log density grows from ``one`` to ``one`` with other parts."""
        return self.log_joint(replace(self.one, **parts), law) - self.log_joint(self.one, law)


def random_state(rng: np.random.Generator, p: int, q: int) -> ChainState:
    Z = rng.standard_normal((p + 3, p))
    T = rng.exponential(0.5, (p, q))
    return ChainState(Z.T @ Z, rng.standard_normal((p, q)), T, {"gamma": float(rng.gamma(3.0))})


def make_setting(size: tuple[int, int, int]) -> Setting:
    p, q, n = size
    rng = np.random.default_rng(size)
    X1, X2 = rng.standard_normal((n, p)), rng.standard_normal((n, q)) * np.geomspace(0.3, 3, q)
    return Setting(X1, X2, random_state(rng, p, q), random_state(rng, p, q))


class Listener:
    """Stands in for a function: keeps its calls, gives the answers it was told, the last one for ever."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.calls: list[tuple] = []

    def __call__(self, *arguments: object, **named: object) -> object:
        self.calls.append(arguments)
        return self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]


def rescaled(state: ChainState, log_r: Array) -> ChainState:
    root = np.exp(log_r / 2)
    return replace(state, W11=state.W11 * np.outer(root, root), W12=state.W12 * root[:, None] ** 2)
