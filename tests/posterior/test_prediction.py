"""Predictions of every kind, for rows of which not everything is known."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr
from scipy import stats

import markovblanket as mb
from markovblanket.model.copula.new_rows import Completion
from markovblanket.posterior.observed import Observed
from markovblanket.posterior.prediction import Fit, _assemble
from markovblanket.tables.columns import Column
from markovblanket.tables.table import read

pytestmark = pytest.mark.filterwarnings("ignore::markovblanket.ConvergenceWarning")
QUICK = {"chains": 2, "warmup": 30, "draws": 40, "seed": 5, "progress": False}
N, QUERY, ALARM = 70, ["outcome", "stage", "score", "marker"], 1e-7
STAGES, DOSES = ["I", "II", "III"], np.array([0, 1, 2, 5, 8])


def clinic(n, seed, missing=0.0) -> pd.DataFrame:
    """A query of every kind that hangs on ``dose`` and ``gene``, and two columns of noise."""
    rng = np.random.default_rng(seed)
    Z = rng.standard_normal((n, 8))
    frame = pd.DataFrame(
        {
            "outcome": np.where(Z[:, 0] + 0.5 * Z[:, 2] > 0, "sick", "healthy"),
            "stage": np.array(STAGES)[np.searchsorted([-0.9, 0.9], 1.5 * Z[:, 0] + Z[:, 3])],
            "score": np.searchsorted([-1, 0, 1], Z[:, 1] + 0.5 * Z[:, 4]) + 1,
            "marker": np.exp(0.5 * (Z[:, 0] + Z[:, 1] + 0.3 * Z[:, 5])),
            "dose": DOSES[np.searchsorted([-1.2, -0.4, 0.4, 1.2], Z[:, 0])],
            "gene": np.sinh(Z[:, 1]),
            "sex": np.where(Z[:, 6] > 0, "f", "m"),
            "other": Z[:, 7],
        }
    )
    return frame.mask(rng.random(frame.shape) < missing)


@pytest.fixture(scope="module", params=["auto", "rank"])
def posterior(request):
    return mb.estimate(clinic(N, 0, 0.1), QUERY, margins=request.param, kinds={"stage": STAGES}, **QUICK)


NEW = clinic(40, 1, 0.25).drop(columns=QUERY)


@pytest.fixture(scope="module")
def prediction(posterior):
    return posterior.predict(NEW, seed=1)


@pytest.fixture(scope="module")
def brief(posterior):
    return posterior.predict(NEW, draws=10, seed=1)


# Levels and numbers -----------------------------------------------------------------------------------


def test_probabilities_are_a_law_over_the_levels(prediction):
    assert list(prediction.probabilities) == ["outcome", "stage", "score"]
    for name, levels in (("outcome", ["healthy", "sick"]), ("stage", STAGES), ("score", [1, 2, 3, 4])):
        table = prediction.probabilities[name]
        assert table.columns.tolist() == levels
        assert table.index.equals(NEW.index)
        assert table.min(axis=None) >= 0
        np.testing.assert_allclose(table.sum(axis=1), 1, rtol=1e-12)


def departures(draws, table):
    """How far levels are drawn from their probabilities, in sds: over all rows, and where they are likelier.

    Given the probabilities of each sample the counts are sums of independent indicators, whose variance is at most
    that of binomial ones with the mean probability.
    """
    for level in table.columns:
        p, count = table[level].to_numpy(), (draws == level).sum(axis=0)
        for weight in (np.ones(len(p)), p - p.mean()):
            variance = len(draws) * np.sum(weight**2 * p * (1 - p))
            yield float(weight @ (count - len(draws) * p) / np.sqrt(variance))


def test_levels_are_drawn_as_often_as_their_probabilities_say(prediction):
    """18 normal deviates within 5.4 sds: an alarm rate of 1e-6."""
    for name, table in prediction.probabilities.items():
        assert np.abs(list(departures(prediction.draws[name].values, table))).max() < 5.4, name


def test_the_probabilities_of_other_rows_are_noticed(prediction):
    for name, table in prediction.probabilities.items():
        shifted = table.set_axis(np.roll(table.index, 1)).sort_index()
        assert np.abs(list(departures(prediction.draws[name].values, shifted))).max() > 5.4, name


def test_draws_are_values_that_the_column_can_take(prediction):
    table = clinic(N, 0, 0.1)
    for name in ("outcome", "stage", "score"):
        assert set(prediction.draws[name].values.ravel()) == set(table[name].dropna()), name
    marker = prediction.draws["marker"].values
    assert marker.dtype == float
    assert (marker.min(), marker.max()) == (table["marker"].min(), table["marker"].max())


def test_means_are_those_of_the_levels_numbers(prediction):
    assert prediction.mean.columns.tolist() == QUERY
    assert prediction.mean[["outcome", "stage"]].isna().all(axis=None)
    np.testing.assert_allclose(prediction.mean["score"], prediction.probabilities["score"] @ [1, 2, 3, 4])
    np.testing.assert_allclose(prediction.mean["marker"], prediction.draws["marker"].mean("sample"))


def test_the_summary_has_a_row_for_every_cell(prediction):
    summary = prediction.summary(level=0.8)
    assert summary.index.tolist() == [(row, name) for row in NEW.index for name in QUERY]
    stage, score = (summary.xs(name, level="query") for name in ("stage", "score"))
    marker = summary.xs("marker", level="query")
    table = prediction.probabilities["stage"]
    assert (stage["likeliest"].to_numpy() == table.idxmax(axis=1).to_numpy()).all()
    np.testing.assert_array_equal(stage["probability"], table.max(axis=1))
    assert stage[["mean", "sd", "lower", "upper"]].isna().all(axis=None)
    assert set(score["lower"]) | set(score["upper"]) <= {1, 2, 3, 4}
    variance = prediction.probabilities["score"] @ [1, 4, 9, 16] - prediction.mean["score"] ** 2
    np.testing.assert_allclose(score["sd"] ** 2, variance)
    quantiles = np.quantile(prediction.draws["marker"].values, [0.1, 0.9], axis=0)
    np.testing.assert_allclose(marker[["lower", "upper"]].T, quantiles)
    assert marker["likeliest"].isna().all()


def test_what_is_known_of_a_row_tells_its_query(posterior):
    """High doses mean sick and stage III; a dose never given lies between those beside it; a gap in the middle."""
    new = pd.DataFrame({"dose": [0, 2, 3, 5, 8, 100, None], "gene": 0.0, "sex": "f", "other": 0.0})
    told = posterior.predict(new, draws=40, seed=3).probabilities
    sick = told["outcome"]["sick"].to_numpy()
    assert sick[0] < 0.2
    assert sick[4] > 0.8
    assert sick[1] < sick[2] < sick[3]
    assert sick[5] > sick[4] - 0.02  # beyond all doses, so at least like the highest
    assert 0.25 < sick[6] < 0.8
    assert told["stage"]["III"][4] > 0.5 > 0.1 > told["stage"]["III"][0]


# Forms, seeds, files ----------------------------------------------------------------------------------


def same(one, other):
    pd.testing.assert_frame_equal(one.summary(), other.summary())
    for name in QUERY:
        xr.testing.assert_identical(one.draws[name], other.draws[name])
    for name, table in one.probabilities.items():
        pd.testing.assert_frame_equal(table, other.probabilities[name])


def as_csv(tmp_path):
    NEW.to_csv(tmp_path / "new.csv", index=False)
    return tmp_path / "new.csv"


FORMS = {
    "polars": lambda _: pl.from_pandas(NEW),
    "array": lambda _: NEW.to_numpy(object),
    "csv": as_csv,
    "other columns, in another order": lambda _: NEW.iloc[:, ::-1].assign(stage="unknown", note="free text"),
    "objects": lambda _: NEW.astype(object),
}


@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
def test_rows_in_any_form_are_predicted_alike(posterior, brief, form, tmp_path):
    same(brief, posterior.predict(form(tmp_path), draws=10, seed=1))


def test_a_saved_posterior_predicts_the_same(posterior, brief, tmp_path):
    posterior.save(tmp_path / "run")
    same(brief, mb.load(tmp_path / "run").predict(NEW, draws=10, seed=1))


def test_another_seed_gives_other_draws_of_the_same_law(posterior, prediction, brief):
    other = posterior.predict(NEW, draws=10, seed=2)
    assert (other.draws["marker"] != brief.draws["marker"]).mean() > 0.9
    for name, table in prediction.probabilities.items():
        assert (table - other.probabilities[name]).abs().mean(axis=None) < 0.1, name


def test_there_are_never_more_draws_than_the_posterior_has(prediction, brief):
    assert prediction.draws["stage"].sizes["sample"] == 80
    assert brief.draws["stage"].sizes["sample"] == 10


def test_rows_keep_their_names(posterior):
    named = NEW.head(3).set_axis(["ann", "bob", "cy"])
    prediction = posterior.predict(named, draws=5)
    for index in (
        prediction.mean.index,
        prediction.draws["stage"]["row"].values,
        prediction.probabilities["stage"].index,
    ):
        assert list(index) == ["ann", "bob", "cy"]


def test_a_column_that_was_not_given_is_asked_for(posterior):
    with pytest.raises(ValueError, match="variable 'gene' is not a column of the table"):
        posterior.predict(NEW.drop(columns="gene"))


# Against algebra --------------------------------------------------------------------------------------

NAMES = ["y", "z", "a", "b", "c", "d"]
LOADINGS = np.array([1.0, -0.7, 0.9, -0.8, 0.6, 0.5])
SIGMA = 0.5 * np.eye(6) + np.outer(LOADINGS, LOADINGS)
PATTERNS = {"complete": [], "one gap": [3], "three gaps": [2, 3, 5], "nothing known": [2, 3, 4, 5]}
ROW = np.array([1.0, -0.5, 1.2, 0.3])


def conditional(covariance, gaps, row=ROW):
    """Mean and covariance of the first two variables given those of the others that are known."""
    known = [k for k in range(2, 6) if k not in gaps]
    beta = np.linalg.solve(covariance[np.ix_(known, known)], covariance[np.ix_(known, [0, 1])]).T
    return beta @ row[np.array(known, dtype=int) - 2], covariance[:2, :2] - beta @ covariance[
        np.ix_(known, [0, 1])
    ]


def rows_with(gaps, copies, mean=0.0, sd=1.0):
    row = np.where(np.isin(np.arange(2, 6), gaps), np.nan, ROW * sd + mean)
    return np.tile(row, (copies, 1))


@pytest.mark.parametrize("gaps", PATTERNS.values(), ids=PATTERNS)
def test_with_a_known_precision_the_law_is_exact(gaps, monkeypatch):
    """Nothing but W given: the last of 30 draws of 4000 equal rows; Kolmogorov-Smirnov at 1e-7 each."""
    W, J = np.linalg.inv(SIGMA), np.array(gaps, dtype=int)
    K = np.setdiff1d(np.arange(2, 6), J)
    W22 = np.linalg.inv(SIGMA[2:, 2:])  # the precision of the rest alone: W22.1
    parts = W22[np.ix_(J - 2, J - 2)], W22[np.ix_(K - 2, J - 2)]
    monkeypatch.setattr(Completion, "draw_precision", lambda *_: parts)
    table = pd.DataFrame(np.random.default_rng(0).standard_normal((20, 6)) * 3 + 7, columns=NAMES)
    whole = Observed.of(read(table, NAMES[:2]).as_mixed(), "gaussian", [], np.empty((1, 30, 20, 0)))
    fit = Fit(np.tile(W[:2, :2], (1, 30, 1, 1)), np.tile(W[:2, 2:], (1, 30, 1, 1)), whole)
    mean, sd = table.mean().to_numpy(), table.std(ddof=0).to_numpy()
    new = rows_with(gaps, 4000, mean[2:], sd[2:])
    drawn = fit.predict(np.random.default_rng(1), new, 30, np.arange(len(new))).draws
    X1 = np.column_stack([drawn[name].values[-1] for name in NAMES[:2]])
    X1 = (X1 - mean[:2]) / sd[:2]
    expected, covariance = conditional(SIGMA, gaps)
    for weight in (np.array([1.0, 0]), np.array([0, 1.0]), np.array([1.0, 1.0]), np.array([1.0, -1.0])):
        law = stats.norm(weight @ expected, np.sqrt(weight @ covariance @ weight))
        assert stats.kstest(X1 @ weight, law.cdf).pvalue > ALARM


def test_the_law_of_the_gaps_has_the_degrees_of_freedom_of_the_fit(posterior, monkeypatch):
    heard = []

    def draw_precision(self, rng, X_J):
        heard.append((self.degrees, self.ridge, *X_J.shape, self.X_K.shape[1]))
        return np.eye(len(self.J)), np.zeros((len(self.K), len(self.J)))

    monkeypatch.setattr(Completion, "draw_precision", draw_precision)
    posterior.predict(NEW, draws=3)
    assert NEW.isna().any().all()
    prior = posterior.observed.rest_prior
    assert heard == [(prior.degrees + N - 1, prior.ridge, N, 4, 0)] * 3


@pytest.fixture(scope="module")
def many():
    """700 rows of ``N(0, SIGMA)``, in other units, and a fit with a flat prior."""
    X = np.random.default_rng(8).multivariate_normal(np.zeros(6), SIGMA, 700) * [2, 1, 3, 1, 0.1, 5] + [
        10,
        0,
        5,
        -5,
        0,
        1,
    ]
    table = pd.DataFrame(X, columns=NAMES)
    options = QUICK | {"margins": "gaussian", "warmup": 100, "draws": 200}
    return table, mb.estimate(table, NAMES[:2], prior=mb.Normal(scale=100.0), **options)


def moments(prediction, name, copies=40):
    """Mean and variance of each block of equal rows, the first draws left out."""
    draws = prediction.draws[name].values[40:]
    blocks = draws.reshape(len(draws), -1, copies)
    return blocks.mean(axis=(0, 2)), blocks.var(axis=(0, 2))


def test_many_rows_make_the_gaps_integrate_out_as_dense_algebra_has_it(many):
    """Blocks of 40 equal rows. The posterior is nearly a point, the flat prior's own: ``(S + I) / n``.

    Over seeds the means are off by 0.01 sds and the variances by 0.015: ten standard errors are allowed, or seven.
    """
    table, posterior = many
    mean, sd = table.mean().to_numpy(), table.std(ddof=0).to_numpy()
    X = (table.to_numpy() - mean) / sd
    near = (X.T @ X + np.eye(6)) / len(X)
    new = np.vstack([rows_with(gaps, 40, mean[2:], sd[2:]) for gaps in PATTERNS.values()])
    prediction = posterior.predict(pd.DataFrame(new, columns=NAMES[2:]), seed=4)
    laws = [conditional(near, gaps) for gaps in PATTERNS.values()]
    for i, name in enumerate(NAMES[:2]):
        found_mean, found_variance = moments(prediction, name)
        expected_sd = np.sqrt([covariance[i, i] for _, covariance in laws])
        z = ((found_mean - mean[i]) / sd[i] - [law[0][i] for law in laws]) / expected_sd
        assert np.abs(z).max() < 0.1, (name, z)
        np.testing.assert_allclose(found_variance / (sd[i] * expected_sd) ** 2, 1, atol=0.1)


def test_complete_rows_of_a_gaussian_fit_are_predicted_by_the_regression(many):
    table, posterior = many
    new = table[NAMES[2:]].head(5)
    X2 = (new - table.mean()[NAMES[2:]]) / table.std(ddof=0)[NAMES[2:]]
    expected = X2.to_numpy() @ posterior.coefficients.to_numpy().T * table.std(ddof=0).to_numpy()[:2]
    np.testing.assert_allclose(posterior.predict(new, draws=5).mean, expected + table.mean().to_numpy()[:2])


def test_cells_that_are_missing_where_others_are_high_do_not_shift_the_prediction():
    """Of g only the lower half is known, the mean of which is not that of g, nor of y: the truth is ``g / 1.09``.

    By the regression of 500 rows it is known to 0.05; a mean taken to be that of the known cells is off by 0.7.
    """
    rng = np.random.default_rng(0)
    x, noise = rng.standard_normal(500), 0.3 * rng.standard_normal((500, 2))
    table = pd.DataFrame({"y": x + noise[:, 0], "g": x + noise[:, 1], "x": x, "z": rng.standard_normal(500)})
    g = np.array([-1.5, -0.8, -0.3])
    for gap, asked in (("g", pd.DataFrame({"g": g})), ("y", pd.DataFrame({"x": g / 1.09}))):
        known = table.assign(**{gap: table[gap].where(x < 0)})
        posterior = mb.estimate(known, ["y"], **QUICK | {"warmup": 100, "draws": 100})
        drawn = posterior.predict(asked.reindex(columns=["g", "x", "z"]), seed=1).mean["y"]
        assert np.abs(drawn - g / 1.09).max() < 0.2, gap


# Held-out rows ----------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("margins", ["auto", "rank"])
def test_held_out_rows_are_predicted_as_surely_as_claimed(margins):
    """Two tables of 200 rows, 150 more held out of each, gaps in both.

    For every query column the mean of ``1{level} - p``, and the same where p is above its mean, within five sds of
    a binomial mean to which the share of 200 rows adds its own: an alarm rate below 1e-5. So do 80 % intervals.
    """
    kinds = ["binary", "ordinal", "count", "continuous"] * 2
    errors, claims, inside = [], [], []
    for seed in (1, 2):
        sim = mb.simulate(rows=350, query=4, rest=4, kinds=kinds, density=0.5, missing=0.1, seed=seed)
        options = QUICK | {"warmup": 150, "draws": 200}
        fit = mb.estimate(sim.table.head(200), sim.query, margins=margins, **options)
        new, truth = sim.table.tail(150), sim.complete.tail(150)
        prediction = fit.predict(new[sim.table.columns[4:]], seed=1)
        for name, table in prediction.probabilities.items():
            level = table.columns[len(table.columns) // 2]
            claims.append(table.loc[:, level:].sum(axis=1).to_numpy())
            errors.append((truth[name] >= level).to_numpy() - claims[-1])
        summary = prediction.summary(level=0.8).xs(sim.query[3], level="query")
        inside.append((summary["lower"] <= truth[sim.query[3]]) & (truth[sim.query[3]] <= summary["upper"]))
    for error, p in zip(errors, claims, strict=True):
        for weight in (np.ones(150), p > p.mean(), p < p.mean()):
            m = weight.sum()
            sd = np.sqrt(np.mean((p * (1 - p))[weight > 0]) * (1 / m + 1 / 200))
            assert abs(weight @ error / m) < 5 * sd
    covered = np.mean(inside)
    assert abs(covered - 0.8) < 5 * np.sqrt(0.16 * (1 / 300 + 1 / 400))


# Odd rows and names ----------------------------------------------------------------------------------------


def test_rows_may_share_a_name(posterior):
    new = pd.concat([NEW.head(2), NEW.head(2)])
    assert posterior.predict(new, draws=5).summary().index.tolist() == [
        (row, name) for row in (0, 1, 0, 1) for name in QUERY
    ]


def test_a_query_variable_may_have_any_name():
    made = _assemble([Column("row", "continuous", np.zeros(3))], [np.zeros((5, 2))], {}, np.arange(2))
    assert made.draws["row"].shape == (5, 2)


def test_no_draws_at_all_are_refused(posterior):
    with pytest.raises(ValueError, match="draws=0"):
        posterior.predict(NEW, draws=0)


def test_the_mean_of_a_complete_row_does_not_depend_on_the_gaps_of_others(many):
    table, posterior = many
    new = table[NAMES[2:]].head(5)
    alone = posterior.predict(new, draws=5, seed=0).mean
    holed = new.copy()
    holed.iloc[4, 0] = np.nan
    together = posterior.predict(holed, draws=5, seed=0).mean
    np.testing.assert_allclose(together.head(4), alone.head(4), rtol=1e-9)


def test_the_first_draws_are_as_wide_as_the_later_ones():
    """Rows of which nothing is known: 2000 draws of a variable of variance 1, within 10 sds of their variance."""
    rng = np.random.default_rng(0)
    common = rng.standard_normal((300, 1))
    X = np.sqrt(0.97) * common + np.sqrt(0.03) * rng.standard_normal((300, 6))
    table = pd.DataFrame(
        np.column_stack([common + 0.2 * rng.standard_normal((300, 1)), X]), columns=list("yabcdef")
    )
    posterior = mb.estimate(table, ["y"], margins="gaussian", **QUICK)
    new = pd.DataFrame(np.full((2000, 6), np.nan), columns=list("abcdef"))
    drawn = posterior.predict(new, draws=10, seed=1).draws["y"].values
    ratio = drawn.var(axis=1) / table["y"].var()
    assert ratio.min() > 1 - 10 * np.sqrt(2 / 2000)
