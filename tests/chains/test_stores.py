"""Stores give back exactly what they were given."""

from __future__ import annotations

import numpy as np

from markovblanket.chains.stores import MemoryStore
from markovblanket.contracts import Draw, SweepInfo


def a_draw(k: int) -> Draw:
    rng = np.random.default_rng(k)
    matrices = (rng.standard_normal(shape) for shape in ((2, 2), (2, 5), (5,), (2,)))
    return Draw(*matrices, hyper={"gamma": 10.0 + k}, info=SweepInfo(k, 1e-6 * k, 1.0))


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
