"""Stores give back exactly what they were given."""

from __future__ import annotations

import numpy as np
import pytest

from markovblanket.chains.stores import Chain, KeepDraws, KeepSummary, MemoryStore
from markovblanket.chains.streaming import Moments
from markovblanket.chains.zarr_store import KeepOnDisk
from markovblanket.contracts import ChainState, Draw, SweepInfo


def a_draw(k: int, q: int = 5, *, inclusion: bool = False) -> Draw:
    rng = np.random.default_rng(k)
    W11, W12, diagonal, explained = (rng.random(shape) + 0.1 for shape in ((2, 2), (2, q), (q,), (2,)))
    found = rng.random((2, 2 + q)) if inclusion else None
    info = SweepInfo(k, 1e-6 * k, 1.0)
    return Draw(W11 + np.eye(2), W12, diagonal, explained, {"gamma": 10.0 + k}, info, inclusion=found)


def test_memory_store_keeps_every_quantity_of_every_draw():
    store, draws = MemoryStore(4), [a_draw(k) for k in range(4)]
    for draw in draws:
        store.append(draw)
    kept = store.collect()
    for name in ("W11", "W12", "W22_diagonal", "explained"):
        np.testing.assert_array_equal(kept[name], [getattr(draw, name) for draw in draws])
    np.testing.assert_array_equal(kept["gamma"], [10.0, 11.0, 12.0, 13.0])
    np.testing.assert_array_equal(kept["iterations"], [0, 1, 2, 3])
    np.testing.assert_array_equal(kept["residual"], [0, 1e-6, 2e-6, 3e-6])


def test_a_half_filled_store_gives_only_what_came():
    store = MemoryStore(10)
    store.append(a_draw(3))
    kept = store.collect()
    np.testing.assert_array_equal(kept["W12"], a_draw(3).W12[None])


def test_the_store_copies_so_later_changes_do_not_reach_it():
    store, draw = MemoryStore(1), a_draw(1)
    store.append(draw)
    before = draw.W12.copy()
    draw.W12[:] = 0
    np.testing.assert_array_equal(store.collect()["W12"][0], before)


# Averages ---------------------------------------------------------------------------------------------


def made_keep(kind, draws, folder):
    """What is kept of a run, by one of the three ways."""
    if kind == "draws":
        return KeepDraws(draws)
    summary = KeepSummary(draws, grown=(4,) if draws > 4 else ())
    if kind == "summary":
        return summary
    pytest.importorskip("zarr")
    return KeepOnDisk(folder / "draws.zarr", summary)


def made_stores(keep, q, chains=2):
    """A store for each chain, as after a warm-up of one state."""
    moments = Moments.empty((2, q))
    moments.add(np.full((2, q), 0.1))
    # Candidates may be in the block of a state, so that it has another shape than what is kept.
    state = ChainState(np.eye(3), np.ones((3, 4)), np.ones((3, 4)), {"gamma": 1.0})
    return keep.stores([Chain(np.random.default_rng(k), state, moments) for k in range(chains)])


@pytest.mark.parametrize("q", [5, 0])
@pytest.mark.parametrize("kind", ["draws", "summary", "disk"])
def test_inclusions_are_averaged_over_the_draws_of_each_chain_also_if_a_run_grows(kind, q, tmp_path):
    def draws(chain):
        return [a_draw(100 * chain + k, q, inclusion=True) for k in range(10)]

    expected = [np.mean([draw.inclusion for draw in draws(chain)], axis=0) for chain in (0, 1)]
    short, longer = made_keep(kind, 4, tmp_path), made_keep(kind, 10, tmp_path)
    records, first = [], made_stores(short, q)
    for chain, store in enumerate(first):
        for draw in draws(chain)[:4]:
            store.append(draw)
        records.append(store.pack())
    half = short.gather([store.collect() for store in first])["average_inclusion"]
    np.testing.assert_allclose(half[1], np.mean([draw.inclusion for draw in draws(1)[:4]], axis=0))
    stores = made_stores(longer, q)
    for chain, (store, record) in enumerate(zip(stores, records, strict=True)):
        store.unpack(record)
        for draw in draws(chain)[4:]:
            store.append(draw)
    found = longer.gather([store.collect() for store in stores])
    np.testing.assert_allclose(found["average_inclusion"], expected)
    np.testing.assert_array_equal(found["W11"][1], [draw.W11 for draw in draws(1)])


@pytest.mark.parametrize("kind", ["draws", "summary", "disk"])
def test_draws_without_inclusions_have_no_average(kind, tmp_path):
    keep = made_keep(kind, 2, tmp_path)
    stores = made_stores(keep, 5)
    for store in stores:
        store.append(a_draw(1))
        store.append(a_draw(2))
    assert not [name for name in keep.gather([store.collect() for store in stores]) if name.startswith("average_")]


def test_an_average_is_not_changed_by_what_becomes_of_a_draw():
    store, draw = MemoryStore(1), a_draw(1, inclusion=True)
    store.append(draw)
    before = draw.inclusion.copy()
    draw.inclusion[:] = 0
    np.testing.assert_array_equal(store.collect()["average_inclusion"], before)
