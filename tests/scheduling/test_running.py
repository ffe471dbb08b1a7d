"""Runs of a board: what they stop for, and what is told of them. `tests.scheduling.test_batch` has the rest."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.batch_kernels import BATCH
from berth.scheduling.board import LEVEL, MISSING, N_DONE, Layout, NoClasses, new_board
from berth.scheduling.running import placed_before, run_board
from berth.scheduling.ties import TieBreaker


@given(st.lists(st.integers(0, 5)))
def test_how_often_each_position_had_been_chosen_before(chosen: list[int]) -> None:
    wanted = [chosen[:i].count(position) for i, position in enumerate(chosen)]
    assert placed_before(np.array(chosen, dtype=np.int32)).tolist() == wanted


@pytest.mark.usefixtures("compiled_loops")
@pytest.mark.parametrize("is_compiled", [True, False])
@pytest.mark.parametrize("n", [5, 50])
def test_a_run_ends_where_nothing_more_is_supplied(is_compiled: bool, n: int) -> None:
    # The second position is the better one, and what it is worth after two placements nobody knows.
    levels = np.array([[1, 3], [1, 2], [1, MISSING]], dtype=np.int32)
    part, ties, asked = NoClasses(np.zeros(2, dtype=np.int64)), TieBreaker(counter=7), []
    with BATCH.using(BATCH.load() if is_compiled else None):
        board = new_board(Layout.of(part, np.arange(2)), np.arange(2), levels, n, ties.counter)
        board = run_board(
            board, part, np.zeros(1, np.int64), n, ties, lambda board, status: asked.append(status)
        )
    assert board.chosen[: board.state[N_DONE]].tolist() == [1, 1]
    assert (asked, ties.counter) == ([LEVEL], 9)
