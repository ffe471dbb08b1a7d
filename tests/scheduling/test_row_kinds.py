"""Rows that no column tells apart are of one kind."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.row_kinds import RowKinds


@given(st.integers(0, 12).flatmap(lambda n: st.lists(st.lists(st.integers(-1, 2), min_size=n, max_size=n))))
def test_kinds_are_as_many_as_there_are_different_rows(columns: list[list[int]]) -> None:
    made = [np.array(column, dtype=np.int64) for column in columns]
    n = len(columns[0]) if columns else 3
    kinds = RowKinds(n)
    by_kind = [kinds.add(column) for column in made]
    rows = list(zip(*columns, strict=True)) if columns else [()] * n
    assert len(kinds.first) == len(set(rows))
    assert kinds.of_row[kinds.first].tolist() == list(range(len(kinds.first)))
    for column, values in zip(made, by_kind, strict=True):
        assert kinds.now(values)[kinds.of_row].tolist() == column.tolist()
