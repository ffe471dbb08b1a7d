import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.cluster import Cluster
from berth.scheduling.queueing import Backoff, QueuedPod
from berth.scheduling.queueing.backoff import NEVER
from tests.scheduling.queueing.worlds import waiting

POD = waiting(Cluster(), "a")


def queued(unschedulable: int = 0, errors: int = 0, timestamp: float = 100.0) -> QueuedPod:
    return QueuedPod(POD, timestamp, 1, unschedulable_count=unschedulable, consecutive_errors=errors)


@pytest.mark.parametrize(
    ("count", "wait"), [(0, NEVER), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (2000, 10)]
)
def test_waits_double_up_to_the_longest(count: int, wait: float) -> None:
    assert Backoff().ends(queued(unschedulable=count)) == 100 + wait
    assert Backoff().ends(queued(errors=count)) == 100 + wait


def test_errors_in_a_row_go_before_all_other_failures() -> None:
    assert Backoff().ends(queued(unschedulable=4, errors=2)) == 102


def test_without_a_longest_wait_nobody_waits() -> None:
    assert not Backoff(longest=0).is_waiting(queued(unschedulable=3), 0)


def test_an_initial_wait_above_the_longest_is_cut() -> None:
    assert Backoff(initial=20, longest=3).ends(queued(unschedulable=1)) == 103


@given(st.integers(0, 12), st.floats(0, 1000), st.floats(0, 1000))
def test_a_wait_is_over_with_the_window_that_it_ends_in(count: int, timestamp: float, now: float) -> None:
    pod = queued(unschedulable=count, timestamp=timestamp)
    wait = min(2 ** (count - 1), 10) if count else None
    # Upstream: !backoffTime.Truncate(second).Before(now.Truncate(second))
    assert Backoff().is_waiting(pod, now) == (wait is not None and int(timestamp + wait) >= int(now))
