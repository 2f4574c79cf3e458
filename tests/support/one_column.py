"""How a single column of a table is read."""

from __future__ import annotations

import pandas as pd

from markovblanket.tables.table import read_mixed

N = 40


def column(cells, kinds=None, make=pd.DataFrame):
    """How ``cells`` are read beside a column that is surely fine."""
    beside = [k + 0.5 for k in range(len(cells))]
    declared = None if kinds is None else {"x": kinds}
    return read_mixed(make({"x": cells, "beside": beside}), ["x"], declared).columns[0]


def cycle(values, length=N):
    """The values over and over."""
    return [values[k % len(values)] for k in range(length)]
