"""The checks: does the sampler leave the joint law of parameters and data alone, and does it find the posterior?

All three start from exact draws of the joint law (:mod:`statistical.reference`) and return p-values by name:

``joint_test``
    Draw parameters and data, sweep a few times *from the true parameters*. If every conditional is right, the
    pair (parameters, data) keeps its law. The change of a bounded score is averaged over replications
    (paired, so the data's spread cancels), and the last state is compared with an independent sample.
``geweke_test``
    The same, with new data drawn after every sweep (Geweke 2004): small errors add up along the path. Many
    independent paths give the Monte Carlo error, whatever their autocorrelation.
``rank_test``
    Simulation-based calibration (Talts et al. 2018): the rank of the truth among thinned draws of a chain that
    starts elsewhere; so this one also covers the start, the warm-up and the mixing.

References: J. Geweke (2004), Getting it right, JASA 99. A. Gandy and J. Scott (2020), Unit testing for MCMC,
arXiv:2001.06465. S. Talts et al. (2018), Validating Bayesian inference algorithms with simulation-based
calibration, arXiv:1804.06788.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
from scipy import stats

from markovblanket.contracts import ChainState, Prior, Problem, Sampler, Solver
from markovblanket.model import scatter
from markovblanket.model.sweep import Blanket
from statistical import reference
from statistical.reference import Array, Generator, Mixture, Theta

# The whole suite raises a false alarm once in 100 000 runs: every check gets an equal share of that, and every
# p-value of a check an equal share of the check's. CHECKS bounds the number of calls of `assert_calibrated`.
FALSE_ALARM = 1e-5
CHECKS = 400
REFERENCE_DRAWS = 10_000


@dataclass(frozen=True)
class Case:
    """A problem to calibrate on: the package's prior and solver, the same prior by its law, and a fixed X2."""

    name: str
    prior: Prior
    mixture: Mixture
    solver: Solver
    size: tuple[int, int, int]
    spread: float = 1.0
    X2: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        p, q, n = self.size
        sizes = self.spread * np.geomspace(1 / 3, 3, q)  # from columns the prior decides to ones the data do
        mixing = np.eye(q) + 0.5 * np.eye(q, k=1)
        X2 = np.random.default_rng([p, q, n]).standard_normal((n, q)) @ mixing * sizes
        object.__setattr__(self, "X2", X2)

    def __str__(self) -> str:
        return self.name

    def generator(self, purpose: int) -> Generator:
        """Random numbers of this case's own."""
        return np.random.default_rng([purpose, *self.name.encode()])

    def draw_joint(self, rng: Generator, size: int) -> tuple[Theta, Array]:
        """Exact draws of parameters and data."""
        theta = reference.draw_prior(rng, size, *self.size[:2], self.mixture)
        return theta, reference.draw_data(rng, theta, self.X2)

    def sampler(self, X1: Array) -> Sampler[ChainState]:
        """What the package makes of one data set."""
        return Blanket(Problem(scatter.from_columns(X1, self.X2), self.prior, self.solver))

    def functionals(self, theta: Theta, X1: Array) -> dict[str, Array]:
        """What is watched of parameters and data, by name."""
        return functionals(theta, X1, self.X2)


# ---------------------------------------------------------------------------------------------- functionals


def functionals(theta: Theta, X1: Array, X2: Array) -> dict[str, Array]:
    """What is watched: parameters, and parameters coupled with the data they were drawn from."""
    S11, S12, S22 = X1.swapaxes(1, 2) @ X1, X1.swapaxes(1, 2) @ X2, X2.T @ X2
    W11, W12, T, U = theta.W11, theta.W12, theta.T, np.linalg.inv(theta.W11)
    A, R = S22 + np.eye(len(S22)), X1 + X2 @ W12.swapaxes(1, 2) @ U
    edge, positive_T = W12 != 0, np.where(T > 0, T, 1.0)
    residual = (R**2).sum(axis=1) / np.einsum("rii->ri", U)
    watched = {
        "log|W11|": np.linalg.slogdet(W11)[1],
        "tr W11": np.trace(W11, axis1=1, axis2=2),
        "W11 first": W11[:, 0, 0],
        "W11 last": W11[:, -1, -1],
        "W11 corner": W11[:, 0, -1],
        "U first": U[:, 0, 0],
        "W12 first": W12[:, 0, 0],
        "W12 last": W12[:, -1, -1],
        "W12 row end": np.abs(W12[:, 0, -1]),
        "W12 column end": np.abs(W12[:, -1, 0]),
        "|W12|": np.abs(W12).sum((1, 2)),
        "|W12|^2": (W12**2).sum((1, 2)),
        "W12 row product": W12[:, 0, 0] * W12[:, 0, -1],
        "W12 column product": W12[:, 0, 0] * W12[:, -1, 0],
        "tr UG": reference.quadratic(U, W12, A),
        "<W12, S12>": np.einsum("rij,rij->r", W12, S12),
        "w s first": W12[:, 0, 0] * S12[:, 0, 0],
        "w s last": W12[:, -1, -1] * S12[:, -1, -1],
        "tr W11 S11": np.einsum("rij,rij->r", W11, S11),
        "W11 S11 corner": W11[:, 0, -1] * S11[:, 0, -1],
        "likelihood": reference.log_likelihood(theta, S11, S12, S22, len(X2)),
        "residual first": residual[:, 0],
        "residual last": residual[:, -1],
        "t first": T[:, 0, 0],
        "t row end": T[:, 0, -1],
        "log T": np.log(positive_T).sum((1, 2)),
        "w^2/t": (W12**2 / positive_T).sum((1, 2)),
        "edges": edge.sum((1, 2)),
        "edges of the first": edge[:, 0].sum(axis=1),
        "edge first": edge[:, 0, 0],
        "edge last": edge[:, -1, -1],
        "edge row product": edge[:, 0, 0] & edge[:, 0, -1],
        **{f"{name} edges": value * edge.sum((1, 2)) for name, value in theta.hyper.items() if not edge.all()},
        **{f"{name} |W12|": value * np.abs(W12).sum((1, 2)) for name, value in theta.hyper.items()},
        **{f"{name}^2 T": value**2 * T.sum((1, 2)) for name, value in theta.hyper.items()},
        **theta.hyper,
    }
    return {name: value for name, value in watched.items() if np.ptp(value.astype(float)) > 0}


def scores(watched: dict[str, Array], exact: dict[str, Array]) -> dict[str, Array]:
    """Bounded versions: a value's place among ``exact`` ones, and how far that is from the middle."""
    result = {}
    for name, value in watched.items():
        place = np.searchsorted(np.sort(exact[name]), value) / len(exact[name])
        result[f"{name}, location"] = place
        result[f"{name}, spread"] = np.abs(2 * place - 1)
    return result


# ----------------------------------------------------------------------------------------------- the checks


def joint_test(rng: Generator, case: Case, replications: int, sweeps: int) -> dict[str, float]:
    """P-values of "sweeps from exact draws leave the joint law of parameters and data alone"."""
    theta, X1 = case.draw_joint(rng, replications)
    paths, data = zip(*(follow(rng, case, theta, X1, r, sweeps) for r in range(replications)), strict=True)
    exact = case.functionals(*case.draw_joint(rng, REFERENCE_DRAWS))
    before = scores(case.functionals(theta, X1), exact)
    after, last = summarise(case, paths, data, exact)
    return {name: p_of_equal_means(after[name] - before[name]) for name in before} | p_of_same_law(last, exact)


def geweke_test(rng: Generator, case: Case, paths: int, sweeps: int) -> dict[str, float]:
    """P-values of "sweeps alternating with new data leave the joint law of parameters and data alone"."""
    theta, X1 = case.draw_joint(rng, paths)
    walks = (follow(rng, case, theta, X1, r, sweeps, refresh=True) for r in range(paths))
    parameters, data = zip(*walks, strict=True)
    exact = case.functionals(*case.draw_joint(rng, REFERENCE_DRAWS))
    mean, last = summarise(case, parameters, data, exact)
    expected = scores(case.functionals(*case.draw_joint(rng, REFERENCE_DRAWS)), exact)
    p_values = {name: p_of_equal_means(mean[name], expected[name]) for name in mean}
    return p_values | p_of_same_law(last, exact)


def rank_test(rng: Generator, case: Case, replications: int, draws: int = 7) -> dict[str, float]:
    """P-values of "the truth ranks uniformly among draws of the posterior"."""
    thin = thinning(rng, case)
    theta, X1 = case.draw_joint(rng, replications)
    ranks: dict[str, list[int]] = {}
    for r in range(replications):
        chain = posterior_draws(rng, case, X1[r], thin, draws)
        both = reference.concatenate([theta.map(lambda x, r=r: x[r : r + 1]), chain])
        watched = case.functionals(both, np.repeat(X1[r : r + 1], draws + 1, axis=0))
        for name, value in watched.items():
            ranks.setdefault(name, []).append(rank_of_first(rng, value))
    return {name: p_of_uniform_ranks(np.array(rank), draws + 1) for name, rank in ranks.items()}


# ------------------------------------------------------------------------------------------------ the parts


def rank_of_first(rng: Generator, values: Array) -> int:
    """How many of the others lie below the first, equal ones put in random order."""
    below, equal = int((values[1:] < values[0]).sum()), int((values[1:] == values[0]).sum())
    return below + int(rng.integers(equal + 1)) if equal else below


def state_of(theta: Theta, r: int) -> ChainState:
    """Draw ``r`` as a state of the sampler."""
    hyper = {name: float(value[r]) for name, value in theta.hyper.items()}
    return ChainState(theta.W11[r], theta.W12[r], theta.T[r], hyper)


def stacked(states: list[ChainState]) -> Theta:
    """States of the sampler as a batch."""
    hyper = {name: np.array([state.hyper[name] for state in states]) for name in states[0].hyper}
    W11, W12, T = (np.stack([getattr(state, name) for state in states]) for name in ("W11", "W12", "T"))
    return Theta(W11, W12, T, hyper)


def chain(rng: Generator, state: ChainState, sampler: Sampler[ChainState]) -> Iterator[ChainState]:
    """Sweep after sweep."""
    while True:
        state, _ = sampler.sweep(rng, state)
        yield state


def follow(
    rng: Generator, case: Case, theta: Theta, X1: Array, r: int, sweeps: int, refresh: bool = False
) -> tuple[Theta, Array]:
    """The states of ``sweeps`` sweeps from the true parameters, each with the data it was drawn from."""
    state, rows, sampler = state_of(theta, r), X1[r], case.sampler(X1[r])
    states, data = [], []
    for _ in range(sweeps):
        state, _ = sampler.sweep(rng, state)
        states.append(state)
        data.append(rows)
        if refresh:
            rows = reference.draw_data(rng, stacked([state]), case.X2)[0]
            sampler = case.sampler(rows)
    return stacked(states), np.stack(data)


def summarise(
    case: Case, paths: tuple[Theta, ...], data: tuple[Array, ...], exact: dict[str, Array]
) -> tuple[dict[str, Array], dict[str, Array]]:
    """The mean score along every path, and what is watched at its end."""
    watched = case.functionals(reference.concatenate(list(paths)), np.concatenate(data))
    by_path = {name: value.reshape(len(paths), -1) for name, value in watched.items()}
    mean = {name: score.mean(axis=1) for name, score in scores(by_path, exact).items()}
    return mean, {name: value[:, -1] for name, value in by_path.items()}


def posterior_draws(rng: Generator, case: Case, X1: Array, thin: int, draws: int) -> Theta:
    """Thinned draws of a chain from the sampler's own start, after a warm-up as long as five of them.

    With ``thin`` the autocorrelation time, that shrinks the start's bias below 1e-4 of itself.
    """
    sampler = case.sampler(X1)
    states = chain(rng, sampler.start(rng), sampler)
    return stacked(list(islice(states, 5 * thin + thin - 1, (5 + draws) * thin, thin)))


def thinning(rng: Generator, case: Case, chains: int = 6, sweeps: int = 600) -> int:
    """The integrated autocorrelation time of the slowest functional, measured on pilot chains."""
    _, X1 = case.draw_joint(rng, chains)
    watched: dict[str, list[Array]] = {}
    for rows in X1:
        pilot = posterior_draws(rng, case, rows, 1, sweeps)
        for name, value in case.functionals(pilot, np.repeat(rows[None], sweeps, axis=0)).items():
            watched.setdefault(name, []).append(value)
    return math.ceil(max(autocorrelation_time(np.stack(values)) for values in watched.values()))


def autocorrelation_time(values: Array) -> float:
    """``1 + 2 sum_k rho_k`` of the ranks of chains (rows), summed while pairs of neighbours are positive."""
    ranks = stats.rankdata(values, axis=1)
    ranks = ranks - ranks.mean(axis=1, keepdims=True)
    size = ranks.shape[1]
    spectrum = np.abs(np.fft.rfft(ranks, 2 * size, axis=1)) ** 2
    covariance = np.fft.irfft(spectrum, axis=1)[:, :size].mean(axis=0)
    pairs = (covariance / covariance[0])[: size // 2 * 2].reshape(-1, 2).sum(axis=1)
    negative = np.flatnonzero(pairs < 0)
    return float(2 * pairs[: negative[0] if len(negative) else None].sum() - 1)


# ------------------------------------------------------------------------------------------------- p-values


def p_of_equal_means(values: Array, expected: Array | float = 0.0) -> float:
    """Student's test, with the degrees of freedom of ``values`` alone, which are the fewer."""
    error = math.hypot(*(float(np.std(x, ddof=1)) / math.sqrt(len(x)) for x in (values, expected) if np.ndim(x)))
    distance = abs(float(np.mean(values) - np.mean(expected)))
    return float(2 * stats.t.sf(distance / error, len(values) - 1)) if error > 0 else float(distance == 0)


def p_of_same_law(watched: dict[str, Array], exact: dict[str, Array]) -> dict[str, float]:
    """Kolmogorov's and Smirnov's test of two independent samples, by name."""
    return {
        f"{name}, law": float(stats.ks_2samp(value, exact[name], method="asymp").pvalue)
        for name, value in watched.items()
    }


def p_of_uniform_ranks(ranks: Array, levels: int) -> float:
    """Pearson's chi-square test."""
    return float(stats.chisquare(np.bincount(ranks, minlength=levels)).pvalue)


def overall(p_values: dict[str, float]) -> tuple[float, str]:
    """The smallest p-value, corrected for how many there are, and its name; what is no number counts as zero."""
    clean = {name: 0.0 if math.isnan(p) else p for name, p in p_values.items()}
    name = min(clean, key=clean.__getitem__)
    return min(1.0, len(clean) * clean[name]), name


def assert_calibrated(p_values: dict[str, float]) -> None:
    """Fail if a p-value is smaller than the suite's false alarm rate allows."""
    p, name = overall(p_values)
    assert p > FALSE_ALARM / CHECKS, f"{name}: p = {p:.1e}, corrected for {len(p_values)} functionals"
