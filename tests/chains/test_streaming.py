"""Streamed statistics are those of the draws, and merging chains is pooling their draws."""

from __future__ import annotations

import numpy as np
import pytest

from markovblanket.chains.streaming import LEAST_NONZERO_STATES, Bins, EdgeStream, Layout, Moments, merge
from markovblanket.contracts import Draw
from support.known_draws import INFO, chain_stream, made_draws, partial_correlations, streamed, warm


def halves(W12):
    """First half, second half, and the draw between them if there is one, along a new second axis."""
    n, h = W12.shape[1], W12.shape[1] // 2
    return [W12[:, :h], W12[:, n - h :], W12[:, h : n - h]][: 2 + n % 2]


@pytest.mark.parametrize("draws", [1, 2, 3, 4, 7, 100, 101, 1000, 1023, 2**16, 2**16 + 1])
def test_a_layout_uses_every_draw_in_one_part_and_the_last_in_whole_batches(draws):
    layout = Layout(draws)
    parts = np.array([layout.part(k) for k in range(draws)])
    assert np.bincount(parts, minlength=len(layout.parts)).tolist() == list(layout.parts)
    assert layout.batch % 2 == 0
    assert layout.unbatched + layout.batch * layout.batches == draws
    assert layout.unbatched < layout.batch
    assert np.iinfo(layout.counter).max >= draws


@pytest.mark.parametrize("draws", [1, 2, 5, 64, 205])
def test_a_stream_adds_up_what_the_draws_hold(draws):
    made = made_draws(draws=draws)
    W12, found = made["W12"], streamed(made)
    partial, w_ii = partial_correlations(made), np.einsum("...ii->...i", made["W11"])
    np.testing.assert_array_equal(found["positive"], (W12 > 0).sum(axis=1))
    np.testing.assert_array_equal(found["negative"], (W12 < 0).sum(axis=1))
    close = {"rtol": 1e-12, "atol": 1e-10}
    np.testing.assert_allclose(found["sum"], np.stack([x.sum(axis=1) for x in halves(W12)], axis=1), **close)
    squares = np.stack([(x**2).sum(axis=1) for x in halves(W12)], axis=1)
    np.testing.assert_allclose(found["squares"], squares, **close)
    np.testing.assert_allclose(found["partial_sum"], partial.sum(axis=1), **close)
    np.testing.assert_allclose(found["partial_squares"], (partial**2).sum(axis=1), **close)
    np.testing.assert_allclose(found["regression_sum"], -(W12 / w_ii[..., None]).sum(axis=1), **close)
    np.testing.assert_allclose(found["coefficient_sum"], -np.linalg.solve(made["W11"], W12).sum(axis=1), **close)


@pytest.mark.parametrize("draws", [2, 3, 7, 64, 205])
def test_batches_are_the_last_draws_cut_in_equal_pieces(draws):
    made, layout = made_draws(draws=draws), Layout(draws)
    found = streamed(made)
    d = made["W12"][:, layout.unbatched :]
    whole = d.reshape(d.shape[0], layout.batches, layout.batch, *d.shape[2:]).sum(axis=2)
    half = d.reshape(d.shape[0], 2 * layout.batches, layout.batch // 2, *d.shape[2:]).sum(axis=2)
    np.testing.assert_allclose(found["batch_sum"], whole.sum(axis=1), atol=1e-9)
    np.testing.assert_allclose(found["batch_squares"], (whole**2).sum(axis=1), rtol=1e-11, atol=1e-9)
    np.testing.assert_allclose(found["half_batch_squares"], (half**2).sum(axis=1), rtol=1e-11, atol=1e-9)


def test_a_histogram_counts_every_draw_but_zeros_once():
    """The bins are narrow here, so that underflow and overflow hold some."""
    made = made_draws()
    partial = partial_correlations(made)
    bins = warm(partial).bins(Layout(205).bins)
    bins = Bins(bins.centre, 4 * bins.per_width)
    found = streamed(made, bins)
    for i, j in np.ndindex(2, 7):
        w = partial[..., i, j].ravel()
        w = w[w != 0]
        edges = bins.centre[i, j] + (np.arange(65) - 32) / bins.per_width[i, j]
        expected = np.histogram(w, [-np.inf, *edges, np.inf])[0]
        np.testing.assert_array_equal(found["histogram"][i, j], expected)
        assert found["lowest"][i, j] == pytest.approx(min(edges[0], w.min(initial=np.inf)))
        assert found["highest"][i, j] == pytest.approx(max(edges[-1], w.max(initial=-np.inf)))
    assert found["histogram"][1:, :, [0, -1]].sum() > 100


def test_merging_chains_is_pooling_their_draws():
    made = made_draws(draws=200)
    bins = warm(partial_correlations(made)).bins(64)
    pooled = {name: array.reshape(1, -1, *array.shape[2:]) for name, array in made.items()}
    apart, together = streamed(made, bins), chain_stream(pooled, 0, bins)
    for name in ("histogram", "lowest", "highest", "centre"):
        np.testing.assert_array_equal(apart[name], together[name], err_msg=name)
    for name in ("positive", "negative"):
        np.testing.assert_array_equal(apart[name].sum(axis=0), together[name], err_msg=name)
    for name in ("sum", "squares"):
        np.testing.assert_allclose(apart[name].sum(axis=(0, 1)), together[name].sum(axis=0), rtol=1e-9, atol=1e-9)


def test_counts_of_many_chains_do_not_overflow():
    """Two chains whose histograms together exceed what two bytes can count."""
    part = {"histogram": np.full((1, 1, 66), 40_000, np.uint16), "positive": np.ones((1, 1), np.uint16)}
    merged = merge([dict(part), {name: array.copy() for name, array in part.items()}], 50_000)
    assert (merged["histogram"] == 80_000).all()
    assert Layout(2**16).counter == np.uint32
    assert Layout(2**16 - 1).counter == np.uint16


# Bins and kept edges ----------------------------------------------------------------------------------


def test_bins_reach_four_standard_deviations_about_the_mean_of_the_nonzero_draws():
    W12 = made_draws(draws=400)["W12"]
    bins = warm(W12).bins(64)
    w = W12[..., 0, 1].ravel()
    w = w[w != 0]
    assert bins.centre[0, 1] == pytest.approx(w.mean())
    assert 64 / bins.per_width[0, 1] == pytest.approx(8 * w.std())


def test_an_edge_hardly_ever_seen_takes_the_scale_of_its_query():
    states = np.random.default_rng(0).normal(3, 0.5, (100, 2, 4))
    states[:, 0, 0] = 0.0
    states[LEAST_NONZERO_STATES - 1 :, 0, 1] = 0.0
    bins = warm(states[None]).bins(64)
    row = states[:, 0][states[:, 0] != 0]
    for j in (0, 1):
        assert bins.centre[0, j] == 0
        assert 64 / bins.per_width[0, j] == pytest.approx(8 * np.sqrt(np.mean(row**2)))
    assert bins.centre[1, 0] == pytest.approx(states[:, 1, 0].mean())


def test_bins_exist_even_where_nothing_was_ever_seen():
    moments = Moments.empty((2, 3))
    moments.add(np.zeros((2, 3)))
    bins = moments.bins(64)
    assert np.isfinite(bins.per_width).all()
    assert (bins.per_width > 0).all()


def test_the_surest_signs_are_kept_and_equally_sure_ones_by_strength():
    rng = np.random.default_rng(1)
    states = 0.5 * rng.standard_normal((200, 2, 5))
    states[:, 0, 3] += 3
    states[:, 1, 2] -= 30
    states[:, 1, 4] += 0.5
    states[20:, 0, 0] = 0.0  # always of one sign when not zero, but seldom that
    states[:20, 0, 0] = 1.0
    first, second, third = warm(states[None]).surest(3).tolist()
    assert (first, second, third) == ([1, 2], [0, 3], [1, 4])
    assert len(warm(states[None]).surest(100)) == 10


def test_moments_of_chains_pool():
    W12 = made_draws()["W12"]
    pooled = Moments.pooled([warm(chain[None]) for chain in W12])
    whole = warm(W12)
    np.testing.assert_array_equal(pooled.positive, whole.positive)
    np.testing.assert_allclose(pooled.squares, whole.squares)
    assert pooled.seen == whole.seen == 615


@pytest.mark.parametrize("draws", [4, 1001, 2**16])
def test_at_most_forty_numbers_an_edge(draws):
    """All that a chain holds of its edges: statistics, bins, and the W12 and T where it stands."""
    p, q = 3, 50
    stream = EdgeStream(Layout(draws), Bins(np.zeros((p, q)), np.ones((p, q))))
    stream.add(Draw(np.eye(p), np.ones((p, q)), np.ones(q), np.ones(p), {}, INFO))
    held = [*stream.sums.values(), *stream.counts.values(), stream.bins.centre, stream.bins.per_width]
    assert sum(array.nbytes for array in held) / (p * q) + 2 * 8 <= 40 * 8
