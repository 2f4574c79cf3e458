"""The scikit-learn door: its manners, and answers that are known.

Seeds are fixed. Over seeds, a comparison with a closed form would raise a false alarm with probability 1e-7.
"""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse, stats
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import markovblanket as mb
from markovblanket.fitting import sklearn_estimator
from markovblanket.fitting.estimate import estimate
from markovblanket.fitting.sklearn_estimator import _integer_seed, _target_names

# A few dozen sweeps are enough for most of what is checked here, and the package rightly complains about them.
short = pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
ALARM = 1e-7


def quick(**settings) -> mb.MarkovBlanket:
    return mb.MarkovBlanket(**{"chains": 1, "warmup": 50, "draws": 50, "random_state": 0} | settings)


def flat(**settings) -> mb.MarkovBlanket:
    """A prior so wide that the posterior has a closed form (see `closed_form`)."""
    return quick(prior=mb.Normal(scale=1e4), chains=2, **{"warmup": 100, "draws": 500} | settings)


def linear(rows=200, noise=1.0):
    """Two targets of four features, nothing near standardised; names in no alphabetical order."""
    rng = np.random.default_rng(5)
    X = (rng.standard_normal((rows, 4)) + rng.standard_normal((rows, 1))) * [1, 20, 0.1, 3] + [5, -100, 0, 1]
    truth = np.array([[1.0, 0, -3, 0], [0, 0.05, 0, 1]])
    Y = X @ truth.T + [10, -2] + noise * rng.standard_normal((rows, 2)) * [1, 4]
    return pd.DataFrame(X, columns=["d", "a", "c", "b"]), pd.DataFrame(Y, columns=["late", "early"])


def closed_form(X, Y, new):
    """Coefficients, their posterior sd and the predictive sd under a flat prior on W12, on the scale of the data.

    Integrating W12 out leaves ``W11 ~ Wishart_p(n + q + p + 1, R^-1)`` with ``R = B - S12 A^-1 S21``, so
    ``E U = R / (n + q)``; and ``-U W12 | W11`` has mean ``S12 A^-1`` and row covariances ``u_ii A^-1``.
    """
    X, Y, new = (np.asarray(part) for part in (X, Y, new))
    X2, X1 = ((Z - Z.mean(axis=0)) / Z.std(axis=0) for Z in (X, Y))
    inverse = np.linalg.inv(X2.T @ X2 + np.eye(X.shape[1]))
    beta = X1.T @ X2 @ inverse
    u = np.diag(X1.T @ X1 + np.eye(Y.shape[1]) - beta @ X2.T @ X1) / (len(X) + X.shape[1])
    z = (new - X.mean(axis=0)) / X.std(axis=0)
    leverage = np.einsum("ij,jk,ik->i", z, inverse, z)
    scale = Y.std(axis=0)[:, None] / X.std(axis=0)
    return (
        beta * scale,
        np.sqrt(np.outer(u, np.diag(inverse))) * scale,
        np.sqrt(np.outer(1 + leverage, u)) * Y.std(0),
    )


@pytest.fixture(scope="module")
def clinic():
    return mb.simulate(rows=1000, query=3, rest=20, density=0.1, seed=6)


@pytest.fixture(scope="module")
def fitted(clinic):
    """A fit of the clinic with its data: frames in, several targets."""
    X, Y = clinic.table.drop(columns=clinic.query), clinic.table[clinic.query]
    return quick(chains=2, warmup=200, draws=200).fit(X, Y), X, Y


# --- scikit-learn's own checks, none expected to fail ------------------------------------------------------


@short
@pytest.mark.filterwarnings("ignore:No features were selected:UserWarning")
@parametrize_with_checks([quick(warmup=20, draws=20)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


# --- known answers -----------------------------------------------------------------------------------------


@short
def test_strongest_true_edges_are_in_the_support(clinic, fitted):
    model = fitted[0]
    # A partial correlation of 0.3 is nine standard errors from zero at 1000 rows.
    strong = clinic.truth[clinic.truth["partial_correlation"].abs() > 0.3]
    assert strong["query"].nunique() > 1
    assert set(strong["variable"]) <= set(model.get_feature_names_out())
    assert not model.support_.all()


@short
@pytest.mark.parametrize("rule", [{}, {"level": 0.5}, {"fdr": 0.2}, {"inclusion": 0.2}])
def test_support_is_the_union_of_the_blankets(rule):
    X, Y = linear(noise=4.0)
    model = quick(**rule).fit(X, Y)
    rule = {{"inclusion": "probability"}.get(name, name): value for name, value in rule.items()}
    edges = model.posterior_.edges(**rule)
    union = set(edges["variable"]) - set(Y.columns)  # other targets are no features
    assert set(X.columns[model.support_]) == union == set(X.columns[model.get_support(indices=True)])


@short
def test_rules_differ():
    """Or the test above would not notice a rule that is dropped."""
    X, Y = linear(noise=4.0)
    sizes = [quick(**rule).fit(X, Y).support_.sum() for rule in ({"inclusion": 0.99}, {"inclusion": 0.02})]
    assert sizes == sorted(set(sizes))


@short
def test_predict_is_the_posterior_mean(fitted):
    model, X, _ = fitted
    np.testing.assert_allclose(model.predict(X), model.posterior_.predict(X, draws=2, seed=0).mean, rtol=1e-9)


@short
def test_coefficients_are_unstandardised_in_the_order_of_the_names():
    X, Y = linear()
    model = quick().fit(X, Y)
    assert model.posterior_.query == ["late", "early"]
    assert model.posterior_.variables == ["d", "a", "c", "b"]
    for i, target in enumerate(Y):
        beta = model.posterior_.coefficients.loc[target]
        expected = [beta[name] * Y[target].std(ddof=0) / X[name].std(ddof=0) for name in X]
        np.testing.assert_allclose(model.coef_[i], expected, rtol=1e-12)
        np.testing.assert_allclose(model.intercept_[i], Y[target].mean() - X.mean() @ expected, rtol=1e-9)


@short
def test_flat_prior_gives_the_closed_form_coefficients():
    """The draws of ``-U W12`` are independent here: each sweep draws W12 afresh given W11."""
    X, Y = linear()
    model = flat().fit(X, Y)
    mean, sd, _ = closed_form(X, Y, X)
    z = (model.coef_ - mean) / (sd / np.sqrt(1000))
    assert np.abs(z).max() < stats.norm.isf(ALARM / 2 / z.size)


@short
def test_flat_prior_gives_the_closed_form_predictive_sd():
    """Far rows, where the uncertain coefficients dominate, and the middle, where the residual does."""
    X, Y = linear()
    far = pd.DataFrame(X.mean().to_numpy() + np.outer([0, 1, 60], X.std()), columns=X.columns)
    mean, sd = flat().fit(X, Y).predict(far, return_std=True)
    expected = closed_form(X, Y, far)[2]
    assert sd.shape == mean.shape == (3, 2)
    # An sd estimated from 1000 independent draws has a relative error of 1/sqrt(2000).
    np.testing.assert_allclose(sd[2], expected[2], rtol=stats.norm.isf(ALARM / 4) / np.sqrt(2000))
    # u_ii itself varies by sqrt(2 / 204); 200 of the 1000 draws are independent, at least.
    np.testing.assert_allclose(sd[:2], expected[:2], rtol=stats.norm.isf(ALARM / 4) * np.sqrt(2 / 204 / 200) / 2)
    assert (sd[2] > 4 * sd[0]).all()


@short
def test_flat_prior_and_many_rows_approach_least_squares():
    X, Y = linear(rows=5000)
    model, ols = flat(draws=200).fit(X, Y), LinearRegression().fit(X, Y)
    assert np.abs(model.predict(X) - ols.predict(X)).max() < 0.02 * Y.to_numpy().std(axis=0).min()
    assert model.score(X, Y) == pytest.approx(ols.score(X, Y), abs=1e-3)
    assert model.score(X, Y) == pytest.approx(r2_score(Y, model.predict(X)), rel=1e-12)


@short
def test_one_target_in_one_or_two_dimensions():
    X, Y = linear()
    series, column = quick().fit(X, Y["late"]), quick().fit(X, Y[["late"]])
    assert series.coef_.shape == (4,)
    assert column.coef_.shape == (1, 4)
    assert isinstance(series.intercept_, float)
    np.testing.assert_array_equal(series.coef_, column.coef_[0])
    for one, two in zip(series.predict(X, return_std=True), column.predict(X, return_std=True), strict=True):
        np.testing.assert_array_equal(one[:, None], two)


# --- seeds -------------------------------------------------------------------------------------------------


@short
def test_an_integer_random_state_is_the_seed_of_estimate():
    X, Y = linear()
    settings = {"chains": 1, "warmup": 50, "draws": 50}
    posterior = estimate(
        pd.concat([Y, X], axis=1), list(Y), margins="gaussian", seed=11, progress=False, **settings
    )
    model = mb.MarkovBlanket(random_state=11, **settings).fit(X, Y)
    np.testing.assert_array_equal(model.posterior_.W12, posterior.W12)
    np.testing.assert_array_equal(model.fit(X, Y).posterior_.W12, posterior.W12)
    assert (model.set_params(random_state=12).fit(X, Y).posterior_.W12 != posterior.W12).any()


def test_a_generator_draws_the_seed():
    one, two = np.random.RandomState(3), np.random.RandomState(3)
    first, second = _integer_seed(one), _integer_seed(one)
    assert first != second
    assert [_integer_seed(two), _integer_seed(two)] == [first, second]
    assert _integer_seed(None) != _integer_seed(None)
    assert _integer_seed(np.int64(7)) == 7
    with pytest.raises(ValueError, match="cannot be used to seed"):
        _integer_seed("monday")


# --- company -----------------------------------------------------------------------------------------------


@short
def test_at_the_end_of_a_pipeline():
    """Scaling X changes nothing but rounding: columns are standardised anyway."""
    X, Y = linear()
    scaled = make_pipeline(StandardScaler(), quick(prior="normal")).fit(X, Y)
    np.testing.assert_allclose(scaled.predict(X), quick(prior="normal").fit(X, Y).predict(X), rtol=1e-6)


@short
def test_as_a_selector_in_a_pipeline():
    X, Y = linear(noise=4.0)
    pipeline = make_pipeline(quick(), LinearRegression()).fit(X, Y)
    kept = X.loc[:, pipeline[0].support_].to_numpy()
    assert 0 < kept.shape[1] < X.shape[1]
    np.testing.assert_allclose(pipeline.predict(X), LinearRegression().fit(kept, Y).predict(kept), rtol=1e-9)


@short
def test_grid_search_prefers_a_sensible_prior():
    X, Y = linear()
    grid = {"prior": [mb.Laplace(gamma=1e6), "normal"]}
    search = GridSearchCV(quick(), grid, cv=2, error_score="raise").fit(X, Y)
    assert search.best_params_ == {"prior": "normal"}
    assert search.cv_results_["mean_test_score"][0] < 0.1 < 0.5 < search.best_score_


@short
def test_frames_out(fitted):
    model, X, _ = fitted
    framed = pickle.loads(pickle.dumps(model)).set_output(transform="pandas").transform(X)
    pd.testing.assert_frame_equal(framed, X.loc[:, model.support_])
    back = pd.DataFrame(model.inverse_transform(framed.to_numpy()), columns=X.columns)
    pd.testing.assert_frame_equal(back, X * model.support_, check_exact=True)


@short
def test_polars_frames_in():
    X, Y = linear()
    model = quick().fit(pl.from_pandas(X), pl.from_pandas(Y))
    assert model.posterior_.query == list(Y)
    np.testing.assert_array_equal(model.coef_, quick().fit(X, Y).coef_)


@short
def test_pickles_whole(fitted):
    model, X, _ = fitted
    copy = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))
    pd.testing.assert_frame_equal(copy.posterior_.edges(), model.posterior_.edges())


@short
def test_clone_keeps_settings_and_forgets_the_fit():
    model = quick(prior=mb.Laplace(gamma=3), level=0.8)
    copy = clone(model.fit(*linear()))
    assert copy.get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        copy.get_support()


def test_default_settings_are_those_of_estimate():
    asked = mb.MarkovBlanket().get_params()
    default = estimate.__kwdefaults__
    shared = asked.keys() & default.keys() - {"progress"}
    assert shared == {"prior", "solver", "candidates", "chains", "warmup", "draws", "thin", "n_jobs", "keep"}
    assert {name: asked[name] for name in shared} == {name: default[name] for name in shared}
    assert asked["random_state"] is default["seed"] is None


# --- names -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "names"),
    [
        (np.zeros(2), ["y__"]),
        (np.zeros((2, 2)), ["y0_", "y1_"]),
        ([0.0, 1.0], ["y__"]),
        (pd.Series([0.0, 1.0]), ["y__"]),
        (pd.Series([0.0, 1.0], name=0), ["0"]),
        (pl.Series([0.0, 1.0]), ["y__"]),
        (pl.Series("age", [0.0, 1.0]), ["age"]),
        (pd.DataFrame({"b": [0.0, 1.0], "a": [0.0, 1.0]}), ["b", "a"]),
        (pd.DataFrame(np.zeros((2, 2))), ["0", "1"]),
    ],
)
def test_names_of_targets(y, names):
    assert _target_names(y, np.shape(y), {"y", "y_", "y0"}) == names


@short
def test_arrays_get_scikit_learns_names():
    X, Y = linear()
    model = quick().fit(X.to_numpy(), Y.to_numpy())
    assert model.posterior_.variables == ["x0", "x1", "x2", "x3"]
    assert model.posterior_.query == ["y0", "y1"]
    assert model.get_feature_names_out().tolist() == np.array(model.posterior_.variables)[model.support_].tolist()


# --- refusals ----------------------------------------------------------------------------------------------


def bad(change):
    """The linear data with one thing wrong."""
    X, Y = linear(rows=20)
    return change(X, Y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X, Y: (X.assign(a=1.0), Y), "column 'a' is constant"),
        (lambda X, Y: (X, Y["late"].to_numpy() * 0), "column 'y' is constant"),
        (lambda X, Y: (X, Y.rename(columns={"late": "a"})), "duplicate column names: 'a'"),
        (lambda X, Y: (X.assign(a=np.nan), Y), "Input X contains NaN"),
        (lambda X, Y: (X, Y.assign(late=np.inf)), "contains infinity"),
        (lambda X, Y: (X, Y[:-1]), "inconsistent numbers of samples"),
        (lambda X, Y: (X[:1], Y[:1]), "1 sample"),
        (lambda X, Y: (X, None), "requires y to be passed"),
    ],
)
def test_data_that_cannot_be_modelled(change, message):
    with pytest.raises(ValueError, match=message):
        quick().fit(*bad(change))


@pytest.mark.parametrize("change", [lambda X, Y: (sparse.csr_array(X), Y), lambda X, Y: (X, sparse.csr_array(Y))])
def test_sparse_data_are_refused(change):
    with pytest.raises(TypeError, match="dense data is required"):
        quick().fit(*bad(change))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"level": 0.9, "fdr": 0.1}, "one of them"),
        ({"level": 1.5}, "level=1.5"),
        ({"fdr": 0.0}, "fdr=0.0"),
        ({"inclusion": 2.0}, "probability=2.0"),
    ],
)
def test_a_bad_rule_is_refused_before_anything_runs(settings, message, monkeypatch):
    monkeypatch.setattr(sklearn_estimator, "estimate", lambda *_, **__: pytest.fail("sampled"))
    with pytest.raises(ValueError, match=message):
        quick(**settings).fit(*linear())


@short
def test_an_empty_blanket_warns_as_scikit_learn_does():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((60, 3)), rng.standard_normal(60)
    model = quick(level=0.9999).fit(X, y)
    with pytest.warns(UserWarning, match="No features were selected"):
        assert model.transform(X).shape == (60, 0)
    assert model.predict(X).shape == (60,)


def test_without_scikit_learn_only_the_estimator_is_missing():
    code = """
import sys
sys.modules["sklearn"] = None  # as if it were not installed
import markovblanket as mb
mb.estimate
try:
    mb.MarkovBlanket
except ImportError as error:
    assert "pip install markovblanket[sklearn]" in str(error), error
else:
    raise AssertionError("no ImportError")
"""
    outcome = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert outcome.returncode == 0, outcome.stderr


@short
def test_a_summary_regresses_and_selects_like_the_draws():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((50, 6))
    y = X[:, 0] - X[:, 3] + 0.5 * rng.standard_normal(50)
    how = {"chains": 2, "warmup": 50, "draws": 100, "random_state": 1}
    full, summary = (mb.MarkovBlanket(keep=keep, **how).fit(X, y) for keep in ("draws", "summary"))
    np.testing.assert_allclose(summary.predict(X), full.predict(X), rtol=1e-8)
    np.testing.assert_array_equal(summary.get_support(), full.get_support())
    with pytest.raises(ValueError, match=r'keep="draws"'):
        summary.predict(X, return_std=True)
