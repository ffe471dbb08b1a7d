import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.framework.plugin import BatchKind
from berth.plugins.resource_allocation import (
    Kernel,
    ResourceAllocation,
    balanced_allocation,
    least_requested,
    most_requested,
)
from tests.builders import a_cluster, a_node, a_pod
from tests.plugins.asking import batch, scores

LEAST, MOST, BALANCED = (
    ResourceAllocation(kernel, 10) for kernel in (least_requested, most_requested, balanced_allocation)
)


def all_three(
    cpu: str | None, memory: str | None, *, held_cpu: str = "0", held_memory: str = "0"
) -> list[int]:
    """LeastRequested, MostRequested and Balanced of a node of 4 cores and 4 Gi, with a pod on it and one to come."""
    cluster = a_cluster(
        a_node("n1", cpu="4", memory="4Gi"), pods=[a_pod("a", node="n1", cpu=held_cpu, memory=held_memory)]
    )
    pod = a_pod(cpu=cpu, memory=memory)
    return [scores(plugin, cluster, pod)[0] for plugin in (LEAST, MOST, BALANCED)]


def test_hand_worked() -> None:
    assert all_three("1", "2Gi") == [6, 3, 7]  # (7 + 5) / 2, (2 + 5) / 2, 1 - |1/4 - 1/2|
    assert all_three("1", "2Gi", held_cpu="1", held_memory="1Gi") == [3, 6, 7]
    assert all_three("4", "4Gi") == [0, 10, 0]  # full is not balanced
    assert all_three("4001m", "1Gi") == [3, 1, 0]  # what is overfull scores 0 by itself
    assert all_three("0", "0") == [10, 0, 10]


def test_defaults_for_silent_containers() -> None:
    # 100m of 4 cores, 200 MiB of 4 GiB.
    assert all_three(None, None) == [9, 0, 9]


def test_a_node_that_offers_nothing() -> None:
    cluster = a_cluster(a_node("n1", cpu="0", memory="0"))
    assert [scores(plugin, cluster, a_pod(cpu="0", memory="0")) for plugin in (LEAST, MOST, BALANCED)] == [
        [0]
    ] * 3


@pytest.mark.parametrize("plugin", [LEAST, MOST, BALANCED])
def test_pods_ahead_count_as_if_they_were_there(plugin: ResourceAllocation) -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2", cpu="2"))
    pod = cluster.incoming(a_pod(cpu="300m", memory="1Gi"))
    state = plugin.prepare(pod, cluster)
    ahead = plugin.score(state, np.array([0, 1]), np.array([2, 3])).tolist()
    for row, n in ((0, 2), (1, 3)):
        for _ in range(n):
            cluster.assume(pod, row)
    assert plugin.score(plugin.prepare(pod, cluster)).tolist() == ahead
    assert batch(plugin, cluster, a_pod()) is BatchKind.LOCAL


def scalar(kernel: Kernel, cpu: int, cpu_of: int, memory: int, memory_of: int, top: int) -> int:
    """1.13's rule in Python's integers and floats."""
    if kernel is balanced_allocation:
        shares = [
            used / offered if offered else 1.0 for used, offered in ((cpu, cpu_of), (memory, memory_of))
        ]
        return 0 if max(shares) >= 1 else int((1 - abs(shares[0] - shares[1])) * float(top))
    parts = []
    for used, offered in ((cpu, cpu_of), (memory, memory_of)):
        left = used if kernel is most_requested else offered - used
        parts.append(left * top // offered if offered and used <= offered else 0)
    return sum(parts) // 2


amounts = st.one_of(st.integers(0, 20), st.integers(0, 2**45))


@pytest.mark.parametrize("kernel", [least_requested, most_requested, balanced_allocation])
@given(st.lists(st.tuples(amounts, amounts, amounts, amounts), min_size=1), st.sampled_from([10, 100]))
def test_kernels_equal_the_scalar_rule(
    kernel: Kernel, rows: list[tuple[int, int, int, int]], top: int
) -> None:
    columns = np.array(rows, dtype=np.int64).T
    got = kernel(columns[0], columns[1], columns[2], columns[3], top)
    assert got.tolist() == [scalar(kernel, *row, top) for row in rows]
