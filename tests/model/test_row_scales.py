"""The compiled moves of row factors: the same as the plain slice steps, step for step."""

from __future__ import annotations

import numpy as np
import pytest

from markovblanket.contracts import RowLaw
from markovblanket.model import _row_scales
from markovblanket.variates import slice

LAWS = {
    "given, linear": lambda rng, p: RowLaw(np.full(p, 6.0), rng.gamma(2, size=p), np.zeros(p)),
    "given, quadratic": lambda rng, p: RowLaw(np.arange(p) + 0.0, np.zeros(p), rng.gamma(2, size=p)),
    "learned, linear": lambda rng, p: RowLaw(np.full(p, 6.0), rng.gamma(2, size=p), np.zeros(p), 6.0 * p + 2, 0.1),
    "learned, quadratic": lambda rng, p: RowLaw(np.arange(p) + 1.0, np.zeros(p), rng.gamma(2, size=p), 9.0, 0.5),
    "nothing": lambda rng, p: RowLaw(np.zeros(p), np.zeros(p), np.zeros(p)),
}


def plain(rng, power, M, s, law):
    """The same moves by the general slice sampler, from the whole density."""

    def log_density(log_r):
        root = np.exp(log_r / 2)
        return power * log_r.sum() - 0.5 * root @ M @ root - root**2 @ s + law.log_density(root**2)

    log_r, p = np.zeros(len(s)), len(s)
    for direction in [*np.eye(p), np.ones(p)][: p + (p > 1)]:
        along = lambda u, x=log_r, e=direction: log_density(x + u * e)  # noqa: E731
        log_r = log_r + direction * slice.step(rng, 0.0, along, width=_row_scales.SLICE_WIDTH)
    return np.exp(log_r)


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("p", [1, 2, 5])
def test_compiled_moves_are_the_plain_ones(name, p):
    for seed in range(20):
        setup = np.random.default_rng([p, seed])
        Z, law = setup.standard_normal((p + 8, p)), LAWS[name](setup, p)
        arguments = 7.5, Z.T @ Z + 20 * np.eye(p), setup.standard_normal(p), law
        found = _row_scales.draw(np.random.default_rng(seed), *arguments)
        np.testing.assert_allclose(found, plain(np.random.default_rng(seed), *arguments), rtol=1e-9)
        assert (found != 1).all()
