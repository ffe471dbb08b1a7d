"""The columns against the twin in plain Python, on small crowded clusters."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.objects.base import LabelSelector, LabelSelectorRequirement, ObjectMeta
from berth.objects.nodes import Node
from berth.objects.pods import Pod, PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from berth.objects.workloads import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.preemption import Nomination, Preemption, preempt
from tests.builders import HOST, a_node, a_pod
from tests.scheduling.modern_worlds import MODERN, ZONE
from tests.scheduling.preemption.twin import Twin, World

apps = st.sampled_from([{"app": "web"}, {"app": "db"}, {}])
selectors = st.sampled_from(
    [
        LabelSelector(match_labels={"app": "web"}),
        LabelSelector(match_labels={"app": "db"}),
    ]
)
terms = st.builds(
    lambda selector, key: PodAffinity(required=(PodAffinityTerm(label_selector=selector, topology_key=key),)),
    selectors,
    st.sampled_from([HOST, ZONE]),
)
constraints = st.builds(
    TopologySpreadConstraint,
    max_skew=st.sampled_from([1, 2]),
    topology_key=st.sampled_from([HOST, ZONE]),
    when_unsatisfiable=st.just("DoNotSchedule"),
    label_selector=selectors,
)
rarely_terms = st.one_of(st.none(), st.none(), st.none(), terms)
rarely_ports = st.sampled_from([(), (), (), (80,)])


@st.composite
def node_lists(draw: st.DrawFn) -> tuple[Node, ...]:
    return tuple(
        a_node(
            f"n{i}",
            cpu=draw(st.sampled_from(["1", "2"])),
            memory="1Gi",
            pods=draw(st.sampled_from(["3", "110"])),
            labels=draw(st.sampled_from([{ZONE: "a"}, {ZONE: "b"}, {}])),
            taints=draw(st.sampled_from([(), (), (), ("spot:NoSchedule",)])),
        )
        for i in range(draw(st.integers(1, 4)))
    )


@st.composite
def placed(draw: st.DrawFn, name: str, node: str, taken: set[tuple[str, int]]) -> Pod:
    ports = tuple(port for port in draw(rarely_ports) if (node, port) not in taken)
    taken.update((node, port) for port in ports)
    return a_pod(
        name,
        node=node,
        labels=draw(apps),
        priority=draw(st.sampled_from([-5, 0, 0, 5, 100])),
        started=draw(st.sampled_from([0, 1, 2, 3])),
        cpu=draw(st.sampled_from(["100m", "400m", "800m"])),
        memory=draw(st.sampled_from([None, "300Mi"])),
        host_ports=ports,
        anti_affinity=draw(rarely_terms),
    )


@st.composite
def budgets(draw: st.DrawFn, name: str) -> PodDisruptionBudget:
    anything = LabelSelector(
        match_expressions=(LabelSelectorRequirement(key="app", operator="NotIn", values=("x",)),)
    )
    disrupted: dict[str, object] = dict.fromkeys(draw(st.lists(st.sampled_from(["p0", "p1"]), max_size=1)))
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace=draw(st.sampled_from(["default", "default", "other"]))),
        spec=PodDisruptionBudgetSpec(
            selector=draw(st.one_of(selectors, st.sampled_from([anything, LabelSelector(), None])))
        ),
        status=PodDisruptionBudgetStatus(
            disruptions_allowed=draw(st.integers(0, 2)), disrupted_pods=disrupted
        ),
    )


@st.composite
def worlds(draw: st.DrawFn) -> World:
    nodes = draw(node_lists())
    names = st.sampled_from([node.metadata.name for node in nodes])
    taken: set[tuple[str, int]] = set()
    pods = tuple(draw(placed(f"p{i}", draw(names), taken)) for i in range(draw(st.integers(0, 9))))
    nominated = tuple(
        (
            a_pod(f"w{i}", labels=draw(apps), priority=draw(st.sampled_from([0, 10, 20])), cpu="300m"),
            draw(names),
        )
        for i in range(draw(st.sampled_from([0, 0, 1, 2])))
    )
    some = tuple(draw(budgets(f"b{i}")) for i in range(draw(st.sampled_from([0, 0, 1, 2]))))
    return World(nodes, pods, some, nominated)


@st.composite
def incoming(draw: st.DrawFn) -> Pod:
    pod = a_pod(
        "incoming",
        labels=draw(apps),
        priority=10,
        cpu=draw(st.sampled_from(["500m", "900m", "1500m"])),
        memory=draw(st.sampled_from([None, "500Mi"])),
        host_ports=draw(rarely_ports),
        anti_affinity=draw(rarely_terms),
        affinity=draw(rarely_terms),
    )
    some: Any = draw(st.one_of(st.just(()), st.just(()), st.lists(constraints, min_size=1, max_size=2)))
    return replace(pod, spec=replace(pod.spec, topology_spread_constraints=tuple(some)))


@settings(max_examples=150)
@given(worlds(), incoming())
def test_decides_as_the_twin_does(world: World, pod: Pod) -> None:
    cluster = world.cluster()
    twin = Twin(world, pod)
    if any(twin.failure(world.pods, node.metadata.name) is None for node in world.nodes):
        return
    evaluation = Evaluation(MODERN, cluster.incoming(pod), cluster)
    nominations = [Nomination(cluster.incoming(other), node) for other, node in world.nominated]
    decision = preempt(cluster.incoming(pod), evaluation, nominations)
    got = None
    if isinstance(decision, Preemption):
        names = [cluster.pods.names[victim] for victim in decision.victims]
        got = cluster.nodes.names[decision.row], names, decision.n_violations
    assert got == twin.best()


@settings(max_examples=50)
@given(worlds(), incoming())
def test_leaves_the_cluster_as_it_was(world: World, pod: Pod) -> None:
    cluster = world.cluster()
    evaluation = Evaluation(MODERN, cluster.incoming(pod), cluster)
    nominations = [Nomination(cluster.incoming(other), node) for other, node in world.nominated]
    before = [cluster.pods.get(i) for i in range(len(world.pods))], cluster.pods.node_row.tolist()
    amounts = [cluster.requested.get(row) for row in range(cluster.nodes.n_rows)]
    try:
        preempt(cluster.incoming(pod), evaluation, nominations)
    except ValueError:
        return
    n = len(world.pods)
    assert ([cluster.pods.get(i) for i in range(n)], cluster.pods.node_row.tolist()[:n]) == before
    assert [cluster.requested.get(row) for row in range(cluster.nodes.n_rows)] == amounts
    evaluation.mend()
    fresh = Evaluation(MODERN, cluster.incoming(pod), cluster)
    assert evaluation.fits.tolist() == fresh.fits.tolist()
    assert [c.tolist() for c in evaluation.codes] == [c.tolist() for c in fresh.codes]
    assert [c.tolist() for c in evaluation.raw] == [c.tolist() for c in fresh.raw]
