import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.preemption.victims import NOT_STARTED, in_order

starts = st.one_of(st.integers(1, 5), st.integers(1, 2**40), st.just(NOT_STARTED))
priorities = st.one_of(st.integers(-2, 2), st.integers(-(2**31), 2**31 - 1))


@given(st.lists(st.tuples(st.integers(0, 3), priorities, starts)))
def test_one_number_a_pod_sorts_as_three_keys_do(pods: list[tuple[int, int, int]]) -> None:
    columns = np.array(pods, dtype=np.int64).reshape(-1, 3)
    rows, priority, started = columns.T
    wanted = sorted(range(len(pods)), key=lambda i: (pods[i][0], -pods[i][1], pods[i][2]))
    assert in_order(rows.astype(np.int32), priority, started).tolist() == wanted
