"""Long runs against posteriors that are known in closed form or by quadrature.

Means, variances, sign probabilities and logarithms are compared with their Monte Carlo error; the whole suite
raises a false alarm once in 100 000 runs. Every check is also shown to fail: the same draws must disagree with
the answer to a question that differs a little (a row more, another prior).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from known_answers.cases import BATCHES, gaussian_data, run, runs, with_a_row_more
from known_answers.exact import (
    Array,
    Data,
    FlatPrior,
    GivenScalar,
    Quadrature,
    scalar_blocks,
    scalar_blocks_and_rate,
    whitened_residual,
)
from known_answers.monte_carlo import Estimate, assert_agree, assert_disagree, estimates, known
from markovblanket.contracts import Prior, Solver
from markovblanket.priors import Laplace, Normal

Laws = tuple[Quadrature, list[Quadrature]]
# p = q = 1: two or three dimensions, by quadrature

PAIR = gaussian_data(1, n=4, p=1, q=1)


def normal_laws(nodes: int = 24) -> Laws:
    def law(data: Data, scale: float) -> Quadrature:
        return scalar_blocks(data, lambda w: -(w**2) / (2 * scale**2), nodes)

    return law(PAIR, 0.5), [law(with_a_row_more(PAIR), 0.5), law(PAIR, 0.5 * np.sqrt(2))]


def laplace_laws(nodes: int = 24) -> Laws:
    def law(data: Data, gamma: float) -> Quadrature:
        return scalar_blocks(data, lambda w: -gamma * np.abs(w), nodes)

    return law(PAIR, 3.0), [law(with_a_row_more(PAIR), 3.0), law(PAIR, 6.0)]


def learned_laws(nodes: int = 16) -> Laws:
    def law(data: Data, shape: float) -> Quadrature:
        return scalar_blocks_and_rate(data, shape, 0.5, nodes)

    return law(PAIR, 2.0), [law(with_a_row_more(PAIR), 2.0), law(PAIR, 3.0)]


SCALAR: dict[str, tuple[Prior, Callable[..., Laws]]] = {
    "normal": (Normal(scale=0.5), normal_laws),
    "laplace": (Laplace(gamma=3.0), laplace_laws),
    "laplace, rate learned": (Laplace(shape=2.0, rate=0.5), learned_laws),
}


def scalar_features(x: Mapping[str, Array], centre: Mapping[str, float]) -> dict[str, Array]:
    """What is compared, at draws or at the nodes of a quadrature."""
    variances = {f"var {name}": (value - centre[name]) ** 2 for name, value in x.items()}
    logarithms = {f"log {name}": np.log(value) for name, value in x.items() if name != "w12"}
    sign = {"w12 > 0": (x["w12"] > 0).astype(float), "w11 w12": x["w11"] * x["w12"]}
    return {**x, **variances, **logarithms, **sign}


def exact_features(law: Quadrature, centre: Mapping[str, float]) -> dict[str, Estimate]:
    """Their expectations by quadrature."""
    features = scalar_features(law.points, centre)
    return known({name: law.mean(value) for name, value in features.items()})


@pytest.mark.parametrize("case", SCALAR)
@runs
def test_two_scalars(case: str, solver: Solver, draws: int) -> None:
    prior, laws = SCALAR[case]
    law, wrong = laws()
    centre = {name: law.mean(value) for name, value in law.points.items()}
    kept = run(PAIR, prior, solver, draws)
    x = {"w11": kept["W11"][..., 0, 0], "w12": kept["W12"][..., 0, 0]}
    x |= {"gamma": kept["gamma"]} if "gamma" in kept else {}
    found = estimates(scalar_features(x, centre), BATCHES)
    assert_agree(found, exact_features(law, centre))
    for other in wrong:
        assert_disagree(found, exact_features(other, centre))


@pytest.mark.parametrize("laws", [normal_laws, laplace_laws, learned_laws])
def test_quadrature_has_converged(laws: Callable[..., Laws]) -> None:
    """A coarser rule gives the same answer, to far below any Monte Carlo error."""
    fine, coarse = laws()[0], laws(nodes=12)[0]
    centre = {name: fine.mean(value) for name, value in fine.points.items()}
    answers = [[e.value for e in exact_features(law, centre).values()] for law in (fine, coarse)]
    np.testing.assert_allclose(answers[1], answers[0], rtol=1e-6, atol=1e-8)


def test_rate_integrates_out() -> None:
    """Summed over gamma, the rule in three dimensions has the prior ``(rate + |w|)^-(shape+1)`` in two."""
    flat = scalar_blocks(PAIR, lambda w: -3.0 * np.log(0.5 + np.abs(w)))
    learned = learned_laws()[0]
    for name in ("w11", "w12"):
        assert learned.mean(learned.points[name]) == pytest.approx(flat.mean(flat.points[name]), rel=1e-7)


# p = 1, normal prior: W12 integrated out

ROW = gaussian_data(2, n=5, p=1, q=3)


def row_features(w11: Array, W12: Array, centre: GivenScalar) -> dict[str, Array]:
    """Means of w11, log w11 and W12, and every product of two deviations of W12."""
    d = W12 - centre.mean
    means = {f"w12[{j}]": W12[..., j] for j in range(3)}
    products = {f"cov w12[{i}, {j}]": d[..., i] * d[..., j] for i in range(3) for j in range(i + 1)}
    return {"w11": w11, "log w11": np.log(w11)} | means | products


def exact_row(answer: GivenScalar, centre: GivenScalar) -> dict[str, Estimate]:
    """The same, from the normal law of W12 given w11."""
    x, shift = answer.law.points["w11"], answer.mean - centre.mean
    products = answer.cov + np.outer(shift, shift)
    means = {f"w12[{j}]": answer.mean[j] for j in range(3)}
    covariances = {f"cov w12[{i}, {j}]": products[i, j] for i in range(3) for j in range(i + 1)}
    return known({"w11": answer.law.mean(x), "log w11": answer.law.mean(np.log(x))} | means | covariances)


@runs
def test_row_with_normal_prior(solver: Solver, draws: int) -> None:
    """Twice as many draws as elsewhere: a row more is seen in w11 alone, whose draws depend on each other most."""
    answer = GivenScalar.of(ROW, scale=0.7)
    kept = run(ROW, Normal(scale=0.7), solver, 2 * draws)
    found = estimates(row_features(kept["W11"][..., 0, 0], kept["W12"][..., 0, :], answer), BATCHES)
    assert_agree(found, exact_row(answer, answer))
    for wrong in (GivenScalar.of(with_a_row_more(ROW), 0.7), GivenScalar.of(ROW, 0.7 * np.sqrt(2))):
        assert_disagree(found, exact_row(wrong, answer))


def test_row_agrees_with_pair() -> None:
    """For q = 1 the two references are the same law, by one and by two integrals."""
    one, two = GivenScalar.of(PAIR, 0.5), normal_laws()[0]
    assert one.mean[0] == pytest.approx(two.mean(two.points["w12"]), rel=1e-9)
    assert one.cov[0, 0] == pytest.approx(two.mean((two.points["w12"] - one.mean[0]) ** 2), rel=1e-9)


# a prior so wide that the conjugate Wishart answer holds: scale 1e4 moves it by less than 1e-6 of itself

BLOCKS = gaussian_data(3, n=8, p=2, q=3)
ENTRIES = [(i, j) for i in range(2) for j in range(i, 5)]


def wishart_features(W11: Array, W12: Array, data: Data, centre: FlatPrior) -> dict[str, Array]:
    """Entries of W11 and W12, their squared deviations, log|W11|, and the whitened residual of W12 | W11."""
    W = np.concatenate([W11, W12], axis=-1)
    Z = whitened_residual(W11, W12, data)
    out = {f"w[{i}, {j}]": W[..., i, j] for i, j in ENTRIES}
    out |= {f"var w[{i}, {j}]": (W[..., i, j] - centre.mean(i, j)) ** 2 for i, j in ENTRIES}
    out |= {f"z[{i}, {j}]": Z[..., i, j] for i, j in product(range(2), range(3))}
    out |= {f"z[{i}, {j}]^2": Z[..., i, j] ** 2 for i, j in product(range(2), range(3))}
    return out | {"log|W11|": np.linalg.slogdet(W11)[1], "z z'": (Z[..., 0, :] * Z[..., 1, :]).sum(axis=-1)}


def exact_wishart(answer: FlatPrior, centre: FlatPrior) -> dict[str, Estimate]:
    """The same, from the Wishart law."""
    out = {f"w[{i}, {j}]": answer.mean(i, j) for i, j in ENTRIES}
    shift = {(i, j): answer.mean(i, j) - centre.mean(i, j) for i, j in ENTRIES}
    out |= {f"var w[{i}, {j}]": answer.variance(i, j) + shift[i, j] ** 2 for i, j in ENTRIES}
    out |= {f"z[{i}, {j}]": 0.0 for i, j in product(range(2), range(3))}
    out |= {f"z[{i}, {j}]^2": 1.0 for i, j in product(range(2), range(3))}
    return known(out | {"log|W11|": answer.mean_log_det, "z z'": 0.0})


@runs
def test_flat_prior_is_wishart(solver: Solver, draws: int) -> None:
    answer = FlatPrior.of(BLOCKS)
    kept = run(BLOCKS, Normal(scale=1e4), solver, draws)
    found = estimates(wishart_features(kept["W11"], kept["W12"], BLOCKS, answer), BATCHES)
    assert_agree(found, exact_wishart(answer, answer))
    for wrong in (replace(answer, df=answer.df + 1.5), replace(answer, df=BLOCKS.n + 3)):  # q forgotten
        assert_disagree(found, exact_wishart(wrong, answer))
