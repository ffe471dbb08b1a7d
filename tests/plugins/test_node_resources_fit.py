import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from berth.framework.plugin import BatchKind
from berth.objects.pods import Pod
from berth.plugins.node_resources_fit import NodeResourcesFit
from tests.builders import a_cluster, a_node, a_pod
from tests.plugins.asking import batch, reasons

PLUGIN = NodeResourcesFit()


def test_the_last_crumb_fits_and_not_one_more() -> None:
    cluster = a_cluster(
        a_node("n1", cpu="2", memory="2Gi", pods=2), pods=[a_pod("a", node="n1", cpu="1500m", memory="1Gi")]
    )
    assert reasons(PLUGIN, cluster, a_pod(cpu="500m", memory="1Gi")) == [()]
    assert reasons(PLUGIN, cluster, a_pod(cpu="501m", memory="1Gi")) == [("Insufficient cpu",)]
    too_much = a_pod(cpu="501m", memory="1025Mi", requests={"ephemeral-storage": "1Ti"})
    assert reasons(PLUGIN, cluster, too_much) == [
        ("Insufficient cpu", "Insufficient memory", "Insufficient ephemeral-storage")
    ]


def test_every_pod_takes_a_place_for_pods() -> None:
    cluster = a_cluster(a_node("n1", pods=1), pods=[a_pod("a", node="n1")])
    assert reasons(PLUGIN, cluster, a_pod(cpu="9")) == [("Insufficient pods", "Insufficient cpu")]


def test_a_pod_that_asks_for_nothing_fits_on_an_overcommitted_node() -> None:
    cluster = a_cluster(a_node("n1", cpu="1"), pods=[a_pod("a", node="n1", cpu="2")])
    assert reasons(PLUGIN, cluster, a_pod()) == [()]
    assert reasons(PLUGIN, cluster, a_pod(memory="1Mi")) == [("Insufficient cpu",)]


def test_init_containers_count_for_the_pod_that_comes_but_not_for_those_that_run() -> None:
    cluster = a_cluster(a_node("n1", cpu="2"), pods=[a_pod("a", node="n1", cpu="1", init={"cpu": "2"})])
    assert reasons(PLUGIN, cluster, a_pod(cpu="1")) == [()]
    assert reasons(PLUGIN, cluster, a_pod(cpu="500m", init={"cpu": "1500m"})) == [("Insufficient cpu",)]


def test_extended_resources_are_told_by_name_in_the_order_of_names() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2", example_com__gpu="1"))
    pod = a_pod(requests={"hugepages-2Mi": "2Mi", "example.com/gpu": "1", "a.example.com/x": "1"})
    first, second = reasons(PLUGIN, cluster, pod)
    assert first == (
        "Insufficient a.example.com/x",
        "Insufficient example.com/gpu",
        "Insufficient hugepages-2Mi",
    )
    assert second == ("Insufficient a.example.com/x", "Insufficient hugepages-2Mi")


def test_a_resource_that_a_node_knows_later() -> None:
    cluster = a_cluster(a_node("n1"))
    pod = a_pod(requests={"example.com/gpu": "1"})
    assert reasons(PLUGIN, cluster, pod) == [("Insufficient example.com/gpu",)]
    cluster.put_node(a_node("n1", example_com__gpu="1"))
    assert reasons(PLUGIN, cluster, pod) == [()]


amounts = st.integers(0, 4)
names = ("cpu", "memory", "ephemeral-storage", "example.com/gpu")
requests = st.dictionaries(st.sampled_from(names), amounts.map(str), max_size=4)
pods = st.builds(lambda asked, init: a_pod(requests=asked, init=init), requests, requests)


@given(
    st.lists(st.tuples(amounts, amounts, amounts, amounts, st.integers(0, 3)), min_size=1, max_size=4),
    st.lists(st.tuples(pods, st.integers(0, 3)), max_size=6),
    pods,
    st.integers(0, 2),
)
def test_equals_the_scalar_rule(
    nodes: list[tuple[int, int, int, int, int]], placed: list[tuple[Pod, int]], pod: Pod, ahead: int
) -> None:
    """The rule for one node, by resource; ``ahead`` pods like the incoming one are on each node already."""

    def asked(pod: Pod, *, running: bool) -> dict[str, int]:
        main = {k: int(v) for k, v in pod.spec.containers[0].resources.requests.items()}
        if running or not pod.spec.init_containers:
            return main
        first = {k: int(v) for k, v in pod.spec.init_containers[0].resources.requests.items() if int(v) > 0}
        return {k: max(main.get(k, 0), first.get(k, 0)) for k in (*main, *first)}

    def scalar(row: int) -> list[str]:
        *offers, room = nodes[row]
        there = [asked(p, running=True) for p, where in placed if where % len(nodes) == row]
        there += [asked(pod, running=True)] * ahead
        short = ["pods"] if len(there) + 1 > room else []
        wanted = asked(pod, running=False)
        if any(wanted.get(name) for name in names[:3]) or names[3] in wanted:
            for name, offer in zip(names, offers, strict=True):
                total = sum(each.get(name, 0) for each in there) + wanted.get(name, 0)
                if (name in names[:3] or name in wanted) and total > offer:
                    short.append(name)
        return [f"Insufficient {name}" for name in short]

    cluster = a_cluster(
        *(
            a_node(
                f"n{i}", cpu=str(c), memory=str(m), ephemeral_storage=str(e), example_com__gpu=str(g), pods=n
            )
            for i, (c, m, e, g, n) in enumerate(nodes)
        )
    )
    for each, where in placed:
        cluster.assume(cluster.incoming(each), where % len(nodes))
    state = PLUGIN.prepare(cluster.incoming(pod), cluster)
    codes = PLUGIN.filter(state, placed=ahead)
    rows = np.arange(len(nodes))
    assert codes.tolist() == PLUGIN.filter(state, rows, np.full(len(nodes), ahead)).tolist()
    assert [list(PLUGIN.reasons(state, code)) for code in codes.tolist()] == [
        scalar(row) for row in rows.tolist()
    ]
    assert batch(PLUGIN, cluster, pod) is BatchKind.LOCAL
