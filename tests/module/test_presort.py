from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.cluster import Cluster
from berth.module.changes import Change, Operation, WorkloadName
from berth.module.loads import ServiceName
from berth.module.presort import PodSize, pod_size, presort
from berth.module.profile import Intensity, ServiceProfile
from berth.objects.workloads import Workload
from tests.builders import a_cluster, a_deployment, a_node, a_pod, a_service, a_stateful_set

CPU, MEMORY = Intensity.CPU, Intensity.MEMORY
SERVICES = tuple("abcd")
GI = 1 << 30


def a_change(service: str, number: int = 1, operation: Operation = "add", request: str = "r") -> Change:
    return Change(request, operation, "default", service, number)


def a_profile(
    service: str, intensity: Intensity | None = None, cpu: int | None = None, memory: int | None = None
) -> tuple[ServiceName, ServiceProfile]:
    name = ServiceName("default", service)
    return name, ServiceProfile(name, intensity, cpu, memory)


def order(changes: Iterable[Change], *profiles: tuple[ServiceName, ServiceProfile]) -> str:
    cluster = a_cluster(a_node("n1"), services=[a_service(name) for name in SERVICES])
    return "".join(change.request for change in presort(cluster, list(changes), dict(profiles)))


def test_removals_come_first() -> None:
    changes = [a_change("a", request="1"), a_change("b", operation="remove", request="2")]
    assert order(changes, a_profile("a", CPU, 100, 0), a_profile("b", CPU, 1, 0)) == "21"


def test_the_larger_relative_size_comes_first_whatever_the_resource() -> None:
    # cpu: 300 and 100 of 300 + 3 × 100; memory: 1 of 1, since it is alone.
    changes = [a_change("a", 3, request="1"), a_change("b", request="2"), a_change("c", request="3")]
    profiles = a_profile("a", CPU, 100, 0), a_profile("b", CPU, 300, 0), a_profile("c", MEMORY, 0, 1)
    assert order(changes, *profiles) == "321"


def test_a_sum_holds_only_what_has_the_same_operation() -> None:
    # Adding: a is 100 of 400. Removing, b would be next to nothing beside a's 300 if these counted.
    changes = [
        a_change("a", request="1"),
        a_change("b", 3, request="2"),
        a_change("b", operation="remove", request="3"),
        a_change("c", operation="remove", request="4"),
    ]
    profiles = a_profile("a", CPU, 100, 0), a_profile("b", CPU, 100, 0), a_profile("c", CPU, 101, 0)
    assert order(changes, *profiles) == "4312"


def test_ties_keep_the_order_of_arrival_and_a_sum_of_zero_is_size_zero() -> None:
    changes = [a_change(name, request=name) for name in "abcd"]
    profiles = a_profile("a", CPU, 0, 0), a_profile("b", MEMORY, 9, 0), a_profile("c", CPU, 0, 5)
    assert order(changes, *profiles) == "abcd"
    assert order(changes, *profiles, a_profile("d", CPU, 1, 0)) == "dabc"


def test_sizes_are_exact() -> None:
    # As floats the two relative sizes are the same.
    changes = [a_change("a", request="1"), a_change("b", request="2")]
    assert order(changes, a_profile("a", CPU, 10**17, 0), a_profile("b", CPU, 10**17 + 1, 0)) == "21"


@given(
    st.lists(
        st.tuples(st.sampled_from(SERVICES), st.integers(1, 5), st.sampled_from(["add", "remove"])),
        max_size=7,
    ),
    st.lists(
        st.tuples(st.sampled_from([CPU, MEMORY]), st.integers(0, 4), st.integers(0, 4)),
        min_size=4,
        max_size=4,
    ),
)
def test_the_order_is_that_of_single_pods(
    asked: list[tuple[str, int, Operation]], sizes: list[tuple[Intensity, int, int]]
) -> None:
    """Sum over single-pod operations one by one, sort those, and see the requests in the order of their first."""
    profile = dict(zip(SERVICES, sizes, strict=True))
    changes = [a_change(s, n, op, request=str(i)) for i, (s, n, op) in enumerate(asked)]
    singles = [change for change in changes for _ in range(change.number)]

    def amount(change: Change) -> int:
        intensity, cpu, memory = profile[change.service]
        return cpu if intensity is CPU else memory

    def size(change: Change) -> float:
        total = sum(
            amount(other)
            for other in singles
            if (other.operation, profile[other.service][0]) == (change.operation, profile[change.service][0])
        )
        return amount(change) / total if total else 0.0

    wanted = sorted(singles, key=lambda change: (change.operation == "add", -size(change)))
    got = order(changes, *(a_profile(name, *values) for name, values in profile.items()))
    assert list(got) == list(dict.fromkeys(change.request for change in wanted))


def size_of(cluster: Cluster, change: Change, *profiles: tuple[ServiceName, ServiceProfile]) -> PodSize:
    return pod_size(cluster, change, dict(profiles))


def test_what_a_profile_does_not_know_comes_from_the_template() -> None:
    deployment = a_deployment("a", cpu="100m", memory="1Gi", init={"cpu": "2"})
    cluster = a_cluster(
        a_node("n1", cpu="10", memory="10Gi"), services=[a_service("a")], objects=[deployment]
    )
    change = a_change("a")
    assert size_of(cluster, change) == PodSize(CPU, 2000, GI)  # 20 % of cpu, 10 % of memory
    assert size_of(cluster, change, a_profile("a", MEMORY)) == PodSize(MEMORY, 2000, GI)
    assert size_of(cluster, change, a_profile("a", cpu=5)) == PodSize(CPU, 5, GI)
    assert size_of(cluster, change, a_profile("a", memory=0)) == PodSize(CPU, 2000, 0)
    # Which resource it is hungry for is told by requests, not by the profile's use.
    assert size_of(cluster, change, a_profile("a", cpu=0, memory=99 * GI)).intensity is CPU


def test_the_larger_share_tells_the_appetite_and_cpu_on_a_tie() -> None:
    def appetite(cpu: str | None, memory: str | None) -> Intensity:
        deployment = a_deployment("a", cpu=cpu, memory=memory)
        nodes = a_node("n1", cpu="6", memory="6Gi"), a_node("n2", cpu="4", memory="4Gi")
        return size_of(
            a_cluster(*nodes, services=[a_service("a")], objects=[deployment]), a_change("a")
        ).intensity

    assert appetite("1", "1Gi") is CPU
    assert appetite("1", "1025Mi") is MEMORY
    assert appetite(None, "1") is MEMORY
    assert appetite(None, None) is CPU  # nothing is assumed for a silent container


def test_removed_nodes_offer_nothing() -> None:
    deployment = a_deployment("a", cpu="1", memory="2Gi")
    cluster = a_cluster(a_node("n1", cpu="1", memory="4Gi"), a_node("n2", cpu="99", memory="1Gi"))
    for item in (a_service("a"), deployment):
        cluster.put(item)
    assert size_of(cluster, a_change("a")).intensity is MEMORY
    cluster.remove_node("n2")
    assert size_of(cluster, a_change("a")).intensity is CPU
    cluster.remove_node("n1")
    assert size_of(cluster, a_change("a")) == PodSize(CPU, 1000, 2 * GI)


def test_without_a_workload_the_newest_pod_tells_and_without_pods_nothing() -> None:
    pods = [
        a_pod("old", labels={"app": "a"}, node="n1", cpu="9", created=5),
        a_pod("new", labels={"app": "a"}, node="n1", cpu="1", created=6),
    ]
    cluster = a_cluster(a_node("n1"), pods=pods, services=[a_service("a"), a_service("b")])
    assert size_of(cluster, a_change("a")).milli_cpu == 1000
    assert size_of(cluster, a_change("b")) == PodSize(CPU, 0, 0)
    assert size_of(cluster, a_change("unknown")) == PodSize(CPU, 0, 0)


def test_pods_of_a_daemon_set_tell_too() -> None:
    pod = a_pod("x", labels={"app": "a"}, node="n1", cpu="1", owner="DaemonSet/x")
    cluster = a_cluster(a_node("n1"), pods=[pod], services=[a_service("a")])
    assert size_of(cluster, a_change("a")).milli_cpu == 1000


def test_the_workload_that_a_request_names_tells() -> None:
    named = WorkloadName("StatefulSet", "small")
    objects: list[Workload] = [
        a_deployment("a", cpu="2", replicas=3),
        a_stateful_set("small", labels={"app": "a"}, cpu="1"),
    ]
    cluster = a_cluster(a_node("n1"), services=[a_service("a")], objects=objects)
    assert size_of(cluster, a_change("a")).milli_cpu == 2000
    assert size_of(cluster, Change("r", "add", "default", "a", 1, named)).milli_cpu == 1000
