"""Scaling and choosing as loops, against what NumPy makes of the feasible rows."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.framework.normalize import Scaling, scale_one, scale_to_maximum
from berth.scheduling.look_kernels import LOOK

scores = st.one_of(st.integers(-9, 9), st.integers(0, 200), st.integers(-(1 << 52), 1 << 52))
rows = st.lists(st.tuples(scores, st.booleans()), min_size=1, max_size=9)
scalings = st.builds(Scaling, st.sampled_from([0, 10, 100]), st.booleans())


@pytest.fixture(scope="module", params=["plain", "compiled"])
def kernels(request: pytest.FixtureRequest) -> Any:
    if request.param == "plain":
        return LOOK.plain
    pytest.importorskip("numba")
    return LOOK.load()


@given(rows=rows, scaling=scalings, weight=st.integers(-3, 3))
def test_scaled_scores_are_added(
    kernels: Any, rows: list[tuple[int, bool]], scaling: Scaling, weight: int
) -> None:
    raw, fits = (np.array(column) for column in zip(*rows, strict=True))
    total = np.arange(len(raw))
    highest = kernels.add_scaled(raw, fits, weight, *scaling, total)
    expected = scale_to_maximum(raw[fits], scaling)
    assert (total - np.arange(len(raw)))[fits].tolist() == (weight * expected).tolist()
    assert [scale_one(score, highest, scaling) for score in raw[fits].tolist()] == expected.tolist()


@given(rows=st.lists(st.tuples(st.integers(-2, 2), st.booleans()), max_size=9))
def test_the_best_feasible_rows_are_chosen(kernels: Any, rows: list[tuple[int, bool]]) -> None:
    total, fits = np.array([0, *(t for t, _ in rows)]), np.array([True, *(f for _, f in rows)])
    tied = np.empty(len(total), dtype=np.intp)
    best, n_tied, n_feasible = kernels.choose(total, fits, tied)
    assert (best, n_feasible) == (total[fits].max(), fits.sum())
    assert tied[:n_tied].tolist() == np.flatnonzero(fits & (total == best)).tolist()
