"""Networks, rows and scores of `markovblanket.simulate`.

Seeds are fixed. Over seeds, a statistical check would raise a false alarm with probability 1e-7 (exactly, or
by a limit theorem), except the check of the density, at 4.5 standard errors: 7e-6. Thresholds on the share of
edges at hubs, on the ratio of variances and on single covariances are round numbers far from what is measured;
they have no stated rate.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import linalg, stats

from markovblanket.simulation import Score, network, score, simulate
from markovblanket.simulation.networks import _gaussian_rows

ALARM = 1e-7


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def adjacency(W):
    return (W != 0) & ~np.eye(len(W), dtype=bool)


def mean_propensity(density):
    return 1 - np.sqrt(1 - density)


# --- how many edges, and where -----------------------------------------------------------------------------


def density_variance(N, density, hubs):
    """Variance of one network's share of edges; pairs covary only through an end that they share."""
    m = mean_propensity(density)
    pairs, sharing = N * (N - 1) / 2, N * (N - 1) * (N - 2)
    covariance = (1 - m) ** 2 * hubs * m * (1 - m)
    return (pairs * density * (1 - density) + sharing * covariance) / pairs**2


@pytest.mark.parametrize("hubs", [0.0, 0.2, 0.7])
@pytest.mark.parametrize("density", [0.05, 0.4])
def test_expected_density_is_the_option(density, hubs):
    rng, N, repeats = generator(1), 25, 800
    pairs = N * (N - 1) / 2
    shares = [
        np.triu(adjacency(network(rng, N, density=density, hubs=hubs)), 1).sum() / pairs for _ in range(repeats)
    ]
    error = np.sqrt(density_variance(N, density, hubs) / repeats)
    assert abs(np.mean(shares) - density) < 4.5 * error
    # power: with E pi = density instead, the same rule has up to twice the edges
    either = 1 - (1 - density) ** 2
    assert abs(either - density) > 9 * error


def degree_law(N, density, hubs):
    """P(0, ..., N-1 neighbours): a pair is declined by both ends, so non-neighbours thin a beta-binomial."""
    m = mean_propensity(density)
    total = 1 / hubs - 1
    k = np.arange(N)
    own = stats.betabinom.pmf(k, N - 1, total * (1 - m), total * m)
    return (own @ stats.binom.pmf(k[None, :], k[:, None], 1 - m))[::-1]


def degrees(seed, N, density, hubs, node, repeats=3000):
    """The degree of one node in independent networks."""
    rng = generator(seed)
    return [adjacency(network(rng, N, density=density, hubs=hubs))[node].sum() for _ in range(repeats)]


def fit(sample, law):
    """Chi-square p-value of counts against a law, cells pooled from the right until 5 are expected."""
    expected, observed = len(sample) * law, np.bincount(sample, minlength=len(law))
    cut = int(np.flatnonzero(expected[::-1].cumsum()[::-1] >= 5)[-1])
    pooled = [np.append(x[:cut], x[cut:].sum()) for x in (observed, expected)]
    return stats.chisquare(*pooled).pvalue


@pytest.mark.parametrize(("node", "hubs"), [(0, 0.2), (0, 0.5), (-1, 0.5)])  # no node is special
def test_degrees_follow_their_law_and_have_hubs(node, hubs):
    N, density = 20, 0.2
    sample = degrees(2, N, density, hubs, node)
    assert fit(sample, degree_law(N, density, hubs)) > ALARM
    assert fit(sample, stats.binom.pmf(np.arange(N), N - 1, density)) < 1e-30
    assert np.var(sample) > 2 * (N - 1) * density * (1 - density)


def test_without_hubs_degrees_are_binomial():
    N, density = 20, 0.2
    sample = degrees(3, N, density, 0.0, 0)
    assert fit(sample, stats.binom.pmf(np.arange(N), N - 1, density)) > ALARM
    assert fit(sample, degree_law(N, density, 0.2)) < 1e-30


def test_ten_of_a_hundred_variables_hold_most_edges():
    def share(W):
        A = adjacency(W)
        largest = np.argsort(-A.sum(axis=0))[:10]
        return 1 - np.delete(np.delete(A, largest, 0), largest, 1).sum() / A.sum()

    rng = generator(4)
    assert np.median([share(network(rng, 100)) for _ in range(40)]) > 0.7
    assert np.median([share(network(rng, 100, hubs=0.0)) for _ in range(40)]) < 0.4


@pytest.mark.parametrize("hubs", [0.0, 0.3])
def test_extreme_densities(hubs):
    assert np.array_equal(network(generator(), 6, density=0, hubs=hubs), 0.1 * np.eye(6))
    assert adjacency(network(generator(), 6, density=1, hubs=hubs)).sum() == 30


# --- weights and diagonal ----------------------------------------------------------------------------------


def test_weights_are_uniform_in_magnitude_with_fair_signs():
    W = network(generator(5), 300, weights=(0.3, 1.0))
    edges = W[np.triu(adjacency(W))]
    magnitude, positive = np.abs(edges), edges > 0
    assert magnitude.min() >= 0.3
    assert magnitude.max() <= 1.0
    assert stats.kstest(magnitude, stats.uniform(0.3, 0.7).cdf).pvalue > ALARM
    assert stats.binomtest(int(positive.sum()), len(edges)).pvalue > ALARM
    assert stats.ks_2samp(magnitude[positive], magnitude[~positive]).pvalue > ALARM
    assert stats.kstest(magnitude, stats.uniform(0.2, 0.8).cdf).pvalue < ALARM  # the check can fail


@pytest.mark.parametrize("margin", [0.01, 0.1, 2.0])
def test_smallest_eigenvalue_is_the_margin(margin):
    W = network(generator(6), 60, margin=margin)
    assert np.array_equal(W, W.T)
    assert np.ptp(np.diag(W)) == 0
    np.testing.assert_allclose(np.linalg.eigvalsh(W)[0], margin, rtol=0, atol=1e-12)


def test_unit_variances_change_scales_only():
    W, V = (network(generator(7), 50, unit_variances=unit) for unit in (False, True))
    np.testing.assert_allclose(np.diag(np.linalg.inv(V)), 1, rtol=1e-10)
    np.testing.assert_allclose(V, V.T, rtol=1e-14)
    assert np.array_equal(V != 0, W != 0)
    scaled = [M / np.sqrt(np.outer(np.diag(M), np.diag(M))) for M in (W, V)]
    np.testing.assert_allclose(*scaled, rtol=1e-12)


# --- rows --------------------------------------------------------------------------------------------------


def covariance_fit(X, W):
    """P-value of ``X'X ~ Wishart_N(n, W^-1)``, exact for every n.

    Whitened, it is ``Wishart_N(n, I)``, whose Cholesky factor has independent entries: standard normal off
    the diagonal, and squared ``chi2_(n-k)`` on it (k = 0, ..., N-1). Turned normal, their squares sum to a
    chi2.
    """
    n, N = X.shape
    values, vectors = np.linalg.eigh(W)
    Z = X @ (vectors * np.sqrt(values))
    T = np.linalg.cholesky(Z.T @ Z)
    law = stats.chi2(n - np.arange(N))
    upper = law.sf(np.diag(T) ** 2)
    total = np.sum(T[np.tril_indices(N, -1)] ** 2) + np.sum(stats.norm.isf(upper) ** 2)
    return stats.chi2(N * (N + 1) // 2).sf(total)


@pytest.mark.parametrize("unit", [False, True])
def test_sample_covariance_is_the_inverse(unit):
    rng = generator(8)
    W = network(rng, 12, density=0.3, unit_variances=unit)
    X = _gaussian_rows(rng, 5000, W)
    assert covariance_fit(X, W) > ALARM
    np.testing.assert_allclose(X.T @ X / 5000, np.linalg.inv(W), atol=0.2 * np.abs(np.linalg.inv(W)).max())
    error = np.sqrt(np.diag(np.linalg.inv(W)) / 5000)
    assert np.all(np.abs(X.mean(axis=0)) < stats.norm.isf(ALARM / 24) * error)


def test_covariance_check_catches_wrong_samplers():
    rng = generator(9)
    W = network(rng, 12, density=0.3)
    L, Z = np.linalg.cholesky(W), rng.standard_normal((5000, 12))
    transposed, no_inverse = linalg.solve_triangular(L, Z.T, lower=True).T, Z @ L.T
    assert covariance_fit(transposed, W) < 1e-30
    assert covariance_fit(no_inverse, W) < 1e-30
    assert covariance_fit(1.05 * _gaussian_rows(rng, 5000, W), W) < ALARM


def test_whitened_rows_are_normal():
    rng = generator(10)
    W = network(rng, 12, density=0.3)
    Z = _gaussian_rows(rng, 2000, W) @ np.linalg.cholesky(W)
    assert stats.kstest(Z.ravel(), "norm").pvalue > ALARM


def regressed_correlation(X, i, j):
    """The sample's partial correlation by its definition: correlate what the other columns leave over."""
    others = np.delete(X, [i, j], axis=1)
    left = X[:, [i, j]] - others @ np.linalg.lstsq(others, X[:, [i, j]])[0]
    return np.corrcoef(left.T)[0, 1]


def test_true_partial_correlations_are_those_of_the_sample():
    rows, query, rest = 20000, 3, 5
    simulated = simulate(rows, query, rest, density=0.5, seed=11)
    table, columns = pd.concat([simulated.truth, simulated.query_edges]), list(simulated.table.columns)
    X = simulated.table.to_numpy()
    sample = [
        regressed_correlation(X, columns.index(a), columns.index(b))
        for a, b in zip(table["query"], table["variable"], strict=True)
    ]
    rho = table["partial_correlation"].to_numpy()
    z = (np.arctanh(sample) - np.arctanh(rho)) * np.sqrt(rows - (query + rest - 2) - 3)
    bound = stats.norm.isf(ALARM / (2 * len(z)))
    assert np.abs(z).max() < bound
    flipped = (np.arctanh(sample) + np.arctanh(rho)) * np.sqrt(rows)
    assert np.abs(flipped).max() > bound  # a sign slip would be seen


# --- the door ----------------------------------------------------------------------------------------------


def test_truth_agrees_with_the_precision_matrix():
    simulated = simulate(20, 4, 11, density=0.3, seed=12)
    W = pd.DataFrame(simulated.W, simulated.table.columns, simulated.table.columns)
    rest = [name for name in simulated.table if name not in simulated.query]
    truth = simulated.truth
    assert list(truth) == ["query", "variable", "weight", "partial_correlation", "edge"]
    assert list(zip(truth["query"], truth["variable"], strict=True)) == [
        (a, b) for a in simulated.query for b in rest
    ]
    for table in (truth, simulated.query_edges):
        for row in table.itertuples():
            w = W.loc[row.query, row.variable]
            assert row.weight == w
            assert row.edge == (w != 0)
            scale = np.sqrt(W.loc[row.query, row.query] * W.loc[row.variable, row.variable])
            assert row.partial_correlation == pytest.approx(-w / scale)
    assert not np.signbit(truth["partial_correlation"][~truth["edge"]]).any()
    assert 0 < truth["edge"].sum() < len(truth)
    assert simulated.blanket == {a: [b for b in rest if W.loc[a, b] != 0] for a in simulated.query}


def test_query_edges_hold_each_pair_once():
    simulated = simulate(5, 3, 2, density=0.9, seed=13)
    table = simulated.query_edges
    assert list(zip(table["query"], table["variable"], strict=True)) == [
        ("Q1", "Q2"),
        ("Q1", "Q3"),
        ("Q2", "Q3"),
    ]
    assert simulate(5, 1, 2, seed=13).query_edges.empty


def test_names_sort_in_column_order():
    simulated = simulate(2, 12, 150, seed=14)
    names = list(simulated.table)
    assert names == sorted(names)
    assert (names[0], names[11], names[12], names[-1]) == ("Q01", "Q12", "V001", "V150")
    assert simulated.query == names[:12]


def test_a_query_variable_is_no_more_a_hub_than_another():
    """Degrees of a query and of another variable have one law; signs of their difference are fair."""
    differences = []
    for seed in np.random.SeedSequence(15).spawn(600):
        A = adjacency(simulate(1, 3, 20, density=0.2, seed=seed).W)
        differences.append(int(A[0].sum()) - int(A[-1].sum()))
    untied = [d for d in differences if d]
    assert stats.binomtest(sum(d > 0 for d in untied), len(untied)).pvalue > ALARM


def test_the_seed_fixes_everything():
    first, again, other = (simulate(30, 2, 6, seed=seed) for seed in (16, 16, 17))
    pd.testing.assert_frame_equal(first.table, again.table)
    assert np.array_equal(first.W, again.W)
    assert not np.array_equal(first.table.to_numpy(), other.table.to_numpy())


def test_no_seed_means_fresh_entropy_and_no_global_state():
    np.random.seed(0)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    assert not np.array_equal(simulate(3, 2, 6).table.to_numpy(), simulate(3, 2, 6).table.to_numpy())
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_more_rows_come_from_the_same_network():
    few, many = (simulate(rows, 2, 6, seed=18) for rows in (10, 500))
    assert np.array_equal(few.W, many.W)
    np.testing.assert_allclose(many.table.iloc[:10], few.table, rtol=1e-10)


def test_unit_variances_rescale_the_same_rows():
    raw, unit = (simulate(50, 2, 6, seed=19, unit_variances=flag) for flag in (False, True))
    deviation = np.sqrt(np.diag(np.linalg.inv(raw.W)))
    np.testing.assert_allclose(unit.table * deviation, raw.table, rtol=1e-9)


def test_changing_the_table_leaves_the_latent_rows_alone():
    simulated = simulate(5, 1, 2, seed=20)
    pd.testing.assert_frame_equal(simulated.table, simulated.latent)
    simulated.table.iloc[0, 0] = np.nan
    assert simulated.latent.notna().all(axis=None)
    with pytest.raises(AttributeError):
        simulated.W = np.eye(3)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rows": 0}, "rows must be at least 1, not 0"),
        ({"query": 0}, "query must be at least 1"),
        ({"rest": -1}, "rest must be at least 1"),
        ({"density": 1.1}, r"density must lie in \[0, 1\]"),
        ({"density": -0.1}, "density"),
        ({"density": np.nan}, "density"),
        ({"hubs": 1.0}, r"hubs must lie in \[0, 1\)"),
        ({"hubs": -0.2}, "hubs"),
        ({"weights": (0.0, 1.0)}, "weights must be"),
        ({"weights": (1.0, 0.3)}, "weights"),
        ({"weights": (0.3, np.inf)}, "weights"),
        ({"margin": 0.0}, "margin must be positive"),
        ({"margin": np.nan}, "margin"),
    ],
)
def test_nonsense_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        simulate(**{"rows": 5, "query": 1, "rest": 2, "seed": 0, **options})


def test_a_network_needs_a_variable():
    with pytest.raises(ValueError, match="variables must be at least 1"):
        network(generator(), 0)
    assert network(generator(), 1).tolist() == [[0.1]]


# --- the score ---------------------------------------------------------------------------------------------

TRUTH = {"a": 0.5, "b": -0.5, "c": 0.8, "d": -0.9, "e": 0.0, "f": 0.0}


def pairs(weights):
    return pd.DataFrame(
        [("Q", variable, weight) for variable, weight in weights.items()],
        columns=["query", "variable", "weight"],
    )


@pytest.mark.parametrize(
    ("inferred", "counts", "precision", "recall", "f1"),
    [
        ({"a": 9.0, "b": -0.1, "c": 0.1, "d": -2.0}, (4, 0, 0, 0), 1, 1, 1),
        ({"a": 1.0, "b": -1.0, "e": 1.0}, (2, 1, 2, 0), 2 / 3, 1 / 2, 4 / 7),
        ({"a": 1.0, "b": 1.0}, (1, 0, 3, 1), 1, 1 / 4, 2 / 5),  # wrong sign: recall falls, precision stays
        ({"a": 1.0, "b": 1.0, "f": -1.0}, (1, 1, 3, 1), 1 / 2, 1 / 4, 1 / 3),
        ({"a": 1.0, "b": 0.0}, (1, 0, 3, 1), 1, 1 / 4, 2 / 5),  # a weight of 0 has no sign
        ({"a": -1.0, "b": 1.0}, (0, 0, 4, 2), 1, 0, 0),  # nothing but wrong signs is an empty selection
        ({"e": 1.0, "f": -1.0}, (0, 2, 4, 0), 0, 0, 0),
        ({}, (0, 0, 4, 0), 1, 0, 0),
    ],
)
def test_score_of_hand_made_selections(inferred, counts, precision, recall, f1):
    result = score(pairs(TRUTH), pairs(inferred))
    assert result == Score(*counts)
    assert (result.precision, result.recall, result.f1) == pytest.approx((precision, recall, f1))


def test_score_without_true_edges():
    truth = pairs({"a": 0.0, "b": 0.0})
    nothing, something = score(truth, pairs({})), score(truth, pairs({"a": 0.4}))
    assert (nothing.precision, nothing.recall, nothing.f1) == (1, 1, 1)
    assert (something.precision, something.recall, something.f1) == (0, 1, 0)


def test_score_of_the_truth_is_perfect_whatever_the_row_order():
    simulated = simulate(5, 4, 20, density=0.3, seed=21)
    edges = simulated.truth.query("edge").sample(frac=1, random_state=0)
    assert score(simulated.truth, edges) == Score(len(edges), 0, 0, 0)
    assert score(simulated.truth, edges.iloc[:0]) == Score(0, 0, len(edges), 0)
    flipped = edges.assign(weight=-edges["weight"])
    assert score(simulated.truth, flipped) == Score(0, 0, len(edges), len(edges))
    among = simulated.query_edges
    assert score(among, among.query("edge")).f1 == 1


def test_score_refuses_what_cannot_be_compared():
    truth = pairs(TRUTH)
    with pytest.raises(ValueError, match=r"edges has the pairs \[\('Q', 'z'\)\], which truth does not have"):
        score(truth, pairs({"a": 1.0, "z": 1.0}))
    with pytest.raises(ValueError, match=r"edges has the pairs \[\('Q', 'a'\)\] more than once"):
        score(truth, pd.concat([pairs({"a": 1.0})] * 2))
    with pytest.raises(ValueError, match="edges has no weight for the pairs"):
        score(truth, pairs({"a": np.nan}))
    with pytest.raises(ValueError, match=r"edges lacks the columns \['weight'\]"):
        score(truth, truth.drop(columns="weight"))


# Kinds and gaps -------------------------------------------------------------------------------------------


def test_mixed_columns_are_increasing_functions_of_the_latent_ones():
    data = simulate(rows=400, query=4, rest=12, kinds="mixed", seed=3)
    for name, kind in data.kinds.items():
        z, y = data.latent[name].to_numpy(), data.complete[name].to_numpy()
        assert (np.diff(y[np.argsort(z)]) >= 0).all(), name
        levels = np.unique(y)
        assert {
            "continuous": len(levels) == 400,
            "binary": levels.tolist() == [0, 1],
            "ordinal": levels.tolist() == list(range(1, len(levels) + 1)) and 3 <= len(levels) <= 6,
            "count": levels.min() >= 0 and (levels == levels.astype(int)).all() and len(levels) > 3,
        }[kind], (name, kind)
    for names in (data.query, [name for name in data.kinds if name not in data.query]):
        assert {data.kinds[name] for name in names} == {"continuous", "binary", "ordinal", "count"}


def test_kinds_change_neither_the_network_nor_the_latent_rows():
    plain, mixed = (simulate(rows=30, query=2, rest=6, kinds=kinds, seed=4) for kinds in ("continuous", "mixed"))
    pd.testing.assert_frame_equal(plain.latent, mixed.latent)
    np.testing.assert_array_equal(plain.W, mixed.W)
    pd.testing.assert_frame_equal(plain.table, plain.latent)


def test_cells_go_missing_at_the_rate_asked_for_and_at_random():
    """4,000 and 2,000 cells: 6 binomial sds, once in 10^8."""
    data = simulate(rows=400, query=4, rest=6, missing=0.2, seed=5)
    gone = data.table.isna().to_numpy()
    assert gone.mean() == pytest.approx(0.2, abs=6 * np.sqrt(0.16 / gone.size))
    high = data.latent.to_numpy() > 0
    assert gone[high].mean() == pytest.approx(0.2, abs=6 * np.sqrt(0.16 / high.sum()))
    pd.testing.assert_frame_equal(data.table, data.complete.mask(data.table.isna()))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"missing": 1.0}, r"missing must lie in \[0, 1\), not 1.0"),
        ({"kinds": "nominal"}, r"kinds has \['nominal'\]; known are 'mixed', 'continuous'"),
        ({"kinds": ["binary"]}, "kinds has 1 entries for 5 columns"),
    ],
)
def test_impossible_kinds_and_gaps_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        simulate(rows=10, query=2, rest=3, **options)


def test_the_table_of_edges_of_a_posterior_is_scored_by_its_partial_correlations():
    simulated = simulate(rows=50, query=3, rest=20, density=0.3, seed=1)
    edges = simulated.truth.query("edge")
    known = edges[["query", "variable", "partial_correlation"]]
    assert score(simulated.truth, known).found == len(edges)
    turned = known.assign(partial_correlation=-known["partial_correlation"])
    assert score(simulated.truth, turned).wrong_sign == len(edges)
