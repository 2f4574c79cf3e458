"""Predictive checks: quiet where the model holds, loud where a known way of failing was built in."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import markovblanket as mb

pytestmark = pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
QUICK = {"chains": 2, "warmup": 100, "draws": 150, "seed": 5, "progress": False}


def table(make, n=400):
    """``y`` made from ``x1`` and noise, with three bystanders."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((n, 4))
    return pd.DataFrame(X, columns=["x1", "x2", "x3", "x4"]).assign(y=make(X[:, 0], rng.standard_normal(n)))


def checks(frame, margins="gaussian", **options):
    """Probabilities by check."""
    posterior = mb.estimate(frame, ["y"], margins=margins, **QUICK | options)
    return posterior.check(seed=1).set_index("check")


@pytest.mark.parametrize("margins", ["gaussian", "auto"])
def test_quiet_where_the_model_holds(margins):
    """Probabilities within (0.001, 0.999): over tables, five checks would raise an alarm once in a hundred."""
    found = checks(table(lambda x, e: x + e), margins)
    assert found["probability"].between(0.001, 0.999).all()
    assert (found["lower"] < found["upper"]).all()


FAILURES = {
    "curvature": lambda x, e: x + 0.5 * x**2 + e,
    "uneven spread": lambda x, e: x + np.exp(0.7 * x) * e,
    "tails": lambda x, e: x + np.sign(e) * np.abs(e) ** 2.5,
    "skewness": lambda x, e: x + np.exp(e),
}


@pytest.mark.parametrize("check", FAILURES)
def test_loud_where_it_does_not(check):
    found = checks(table(FAILURES[check])).loc[check]
    assert found["probability"] == 0 or found["probability"] == 1
    assert not found["lower"] < found["observed"] < found["upper"]


def test_levels_are_checked_by_what_they_are():
    frame = table(lambda x, e: x + e)
    frame["y"] = np.where(frame["y"] > 0.3, "yes", "no")
    found = checks(frame.mask(np.random.default_rng(0).random(frame.shape) < 0.1), "auto")
    assert "surprise" in found.index
    assert 0 < found.loc["surprise", "observed"] < np.log(2)
    assert found["probability"].between(0.001, 0.999).all()


def test_a_scatter_matrix_has_no_rows_to_check():
    posterior = mb.estimate(scatter=np.eye(3) * 10, n=10, query=[0], **QUICK)
    with pytest.raises(ValueError, match="a predictive check needs the rows of a table"):
        posterior.check()
