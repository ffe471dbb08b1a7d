import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.framework.plugin import BatchKind
from berth.objects.pods import Container, Pod, PodSpec, ResourceRequirements
from berth.plugins.node_conditions import (
    DISK_PRESSURE,
    MEMORY_PRESSURE,
    NETWORK_UNAVAILABLE,
    NOT_READY,
    OUT_OF_DISK,
    PID_PRESSURE,
    UNSCHEDULABLE,
    CheckNodeCondition,
    CheckNodePressure,
    is_best_effort,
)
from tests.builders import a_cluster, a_node, a_pod
from tests.plugins.asking import batch, reasons

BEST_EFFORT, BURSTABLE = a_pod(), a_pod(cpu="1")


@pytest.mark.parametrize(
    ("conditions", "told"),
    [
        ({}, ()),
        ({"Ready": "True"}, ()),
        ({"Ready": "False"}, (NOT_READY,)),
        ({"Ready": "Unknown"}, (NOT_READY,)),
        ({"Ready": "True", "OutOfDisk": "True"}, (OUT_OF_DISK,)),
        ({"Ready": "True", "OutOfDisk": "Unknown"}, (OUT_OF_DISK,)),
        ({"NetworkUnavailable": "True"}, (NETWORK_UNAVAILABLE,)),
        ({"NetworkUnavailable": "False", "OutOfDisk": "False"}, ()),
        ({"MemoryPressure": "True", "Fancy": "Unknown"}, ()),
        (
            {"NetworkUnavailable": "Unknown", "OutOfDisk": "True", "Ready": "False"},
            (NETWORK_UNAVAILABLE, OUT_OF_DISK, NOT_READY),
        ),
    ],
)
def test_what_a_node_says_of_itself(conditions: dict[str, str], told: tuple[str, ...]) -> None:
    cluster = a_cluster(
        a_node("n1", conditions=conditions),
        a_node("n2"),
        a_node("n3", conditions=conditions, unschedulable=True),
    )
    assert reasons(CheckNodeCondition(), cluster, BEST_EFFORT) == [told, (), (*told, UNSCHEDULABLE)]


@given(
    st.lists(
        st.dictionaries(
            st.sampled_from(["Ready", "OutOfDisk", "NetworkUnavailable", "MemoryPressure", "Other"]),
            st.sampled_from(["True", "False", "Unknown"]),
        ),
        min_size=1,
        max_size=5,
    )
)
def test_conditions_equal_the_scalar_rule(nodes: list[dict[str, str]]) -> None:
    def scalar(conditions: dict[str, str]) -> set[str]:
        told = set()
        if conditions.get("Ready", "True") != "True":
            told.add(NOT_READY)
        if conditions.get("OutOfDisk", "False") != "False":
            told.add(OUT_OF_DISK)
        if conditions.get("NetworkUnavailable", "False") != "False":
            told.add(NETWORK_UNAVAILABLE)
        return told

    cluster = a_cluster(*(a_node(f"n{i}", conditions=each) for i, each in enumerate(nodes)))
    got = reasons(CheckNodeCondition(), cluster, BEST_EFFORT)
    assert [set(each) for each in got] == [scalar(each) for each in nodes]


@pytest.mark.parametrize(
    ("plugin", "condition", "pod", "concerns"),
    [
        (DISK_PRESSURE, "DiskPressure", BURSTABLE, True),
        (PID_PRESSURE, "PIDPressure", BURSTABLE, True),
        (MEMORY_PRESSURE, "MemoryPressure", BURSTABLE, False),
        (MEMORY_PRESSURE, "MemoryPressure", BEST_EFFORT, True),
    ],
)
def test_pressure(plugin: CheckNodePressure, condition: str, pod: Pod, concerns: bool) -> None:
    cluster = a_cluster(
        *(a_node(f"n{status}", conditions={condition: status}) for status in ("True", "False", "Unknown")),
        a_node("n"),
    )
    assert reasons(plugin, cluster, pod) == [(plugin.reason,) if concerns else (), (), (), ()]
    assert batch(plugin, cluster, pod) is BatchKind.CONSTANT


@pytest.mark.parametrize(
    ("requests", "limits", "best_effort"),
    [
        ({}, {}, True),
        ({"cpu": "0", "memory": "0"}, {"cpu": "0"}, True),
        ({"ephemeral-storage": "1Gi", "example.com/gpu": "1"}, {}, True),
        ({"cpu": "1m"}, {}, False),
        ({}, {"memory": "1"}, False),
    ],
)
def test_best_effort(requests: dict[str, str], limits: dict[str, str], best_effort: bool) -> None:
    resources = ResourceRequirements(requests=dict(requests), limits=dict(limits))
    assert is_best_effort(PodSpec(containers=(Container(), Container(resources=resources)))) is best_effort
    # Init containers are not asked.
    assert is_best_effort(PodSpec(init_containers=(Container(resources=resources),)))
