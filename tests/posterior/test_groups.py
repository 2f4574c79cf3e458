"""Near-duplicates share an edge, and are reported together."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import markovblanket as mb
from markovblanket.posterior import _groups

pytestmark = pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
QUICK = {"chains": 2, "warmup": 200, "draws": 400, "seed": 1, "progress": False}


@pytest.fixture(scope="module")
def table():
    """Of a and b, copies but for a little noise, one is connected to the query; c is, too; the others are not."""
    rng = np.random.default_rng(3)
    X = pd.DataFrame(rng.standard_normal((150, 8)), columns=list("abcdefgh"))
    X["b"] = -X["a"] + 0.02 * rng.standard_normal(150)
    return X.assign(y=X["a"] + 0.8 * X["c"] + rng.standard_normal(150), z=rng.standard_normal(150))


@pytest.mark.parametrize("keep", ["draws", "summary"])
def test_copies_share_an_edge_that_is_sure(table, keep):
    """Groups count draws, and an inclusion is averaged: of 800 draws they differ by 0.018 at one sd, at most."""
    posterior = mb.estimate(table, ["y", "z"], keep=keep, **QUICK)
    group = posterior.groups().iloc[0]
    assert (group["query"], set(group["variables"])) == ("y", {"a", "b"})
    a, b = posterior.inclusion.loc["y", ["a", "b"]]
    assert group["probability"] > 0.99 > 0.9 > group["likeliest"]
    assert group["likeliest"] == pytest.approx(max(a, b), abs=0.054)
    shares = [(posterior.edge_draws("y", name) != 0).mean().item() for name in ("a", "b")]
    assert group["likeliest"] == max(shares)
    assert group["probability"] <= sum(shares)
    assert posterior.groups(similar=0.99999).empty
    assert posterior.groups(least=0.95).empty


def test_only_variables_whose_draws_were_kept_are_grouped(table):
    posterior = mb.estimate(table, ["y", "z"], keep="summary", named=[("y", "a"), ("y", "c")], **QUICK)
    assert posterior.groups().empty


def test_a_continuous_prior_has_no_groups(table):
    posterior = mb.estimate(table, ["y", "z"], prior="laplace", **QUICK)
    assert posterior.groups().empty
    assert posterior.groups().columns.tolist() == ["query", "variables", "probability", "likeliest"]


def test_a_scatter_matrix_does_not_tell(table):
    X = table.to_numpy() - table.to_numpy().mean(axis=0)
    posterior = mb.estimate(scatter=X.T @ X, n=150, query=[8, 9], **QUICK)
    with pytest.raises(ValueError, match="near-duplicates needs the rows"):
        posterior.groups()


def test_leaders_gather_those_like_them_and_nobody_is_in_two_groups():
    size = np.array([[1.0, 0.8, 0.1, 0.75], [0.8, 1.0, 0.9, 0.1], [0.1, 0.9, 1.0, 0.2], [0.75, 0.1, 0.2, 1.0]])
    found = list(_groups.around_leaders(np.array([0.2, 0.5, 0.1, 0.3]), size, 0.7))
    assert found == [[1, 0, 2], [3]]
