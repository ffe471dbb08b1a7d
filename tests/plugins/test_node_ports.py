from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.framework.plugin import BatchKind
from berth.objects.pods import Container, ContainerPort, Pod
from berth.plugins.node_ports import NodePorts
from tests.builders import a_cluster, a_node, a_pod
from tests.plugins.asking import batch, fits, reasons

PLUGIN = NodePorts()
Port = tuple[int, str, str]


def with_ports(*ports: Port, name: str = "", node: str = "") -> Pod:
    """A pod with (host port, protocol, IP)."""
    container = Container(
        ports=tuple(ContainerPort(host_port=port, protocol=p, host_ip=ip) for port, p, ip in ports)
    )
    pod = a_pod(name, node=node)
    return replace(pod, spec=replace(pod.spec, containers=(container,)))


def conflict(taken: Port, wanted: Port) -> bool:
    cluster = a_cluster(a_node("n1"), pods=[with_ports(taken, name="a", node="n1")])
    return fits(PLUGIN, cluster, with_ports(wanted)) == [False]


def test_conflicts() -> None:
    assert conflict((80, "TCP", ""), (80, "TCP", ""))
    assert conflict((80, "", ""), (80, "TCP", "0.0.0.0"))  # absent: TCP, on all addresses
    assert conflict((80, "TCP", "0.0.0.0"), (80, "TCP", "10.0.0.1"))
    assert conflict((80, "TCP", "10.0.0.1"), (80, "TCP", ""))
    assert conflict((80, "TCP", "10.0.0.1"), (80, "TCP", "10.0.0.1"))
    assert not conflict((80, "TCP", "10.0.0.1"), (80, "TCP", "10.0.0.2"))
    assert not conflict((80, "UDP", ""), (80, "TCP", ""))
    assert not conflict((80, "TCP", ""), (81, "TCP", ""))
    assert not conflict((0, "TCP", ""), (0, "TCP", ""))  # takes none of the node's


def test_the_reason_and_what_is_free_again() -> None:
    pod = with_ports((80, "", ""))
    cluster = a_cluster(a_node("n1"), a_node("n2"), pods=[with_ports((80, "", ""), name="a", node="n1")])
    told = ("node(s) didn't have free ports for the requested pod ports",)
    assert reasons(PLUGIN, cluster, pod) == [told, ()]
    cluster.remove_pod(0)
    assert reasons(PLUGIN, cluster, pod) == [(), ()]


def test_only_a_pod_with_ports_closes_nodes_as_it_is_placed() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2"))
    assert batch(PLUGIN, cluster, a_pod()) is BatchKind.CONSTANT
    pod = with_ports((80, "", ""))
    assert batch(PLUGIN, cluster, pod) is BatchKind.LOCAL
    state = PLUGIN.prepare(cluster.incoming(pod), cluster)
    assert PLUGIN.filter(state, placed=1).tolist() == [1, 1]


ips = st.sampled_from(["", "0.0.0.0", "1.1.1.1", "2.2.2.2"])
protocols = st.sampled_from(["TCP", "UDP", ""])
ports = st.lists(st.tuples(st.sampled_from([80, 81]), protocols, ips), max_size=3)


@given(st.lists(ports, max_size=4), ports)
def test_equals_the_scalar_rule(taken: list[list[Port]], wanted: list[Port]) -> None:
    def clash(a: Port, b: Port) -> bool:
        (port, protocol, ip), (other_port, other_protocol, other_ip) = a, b
        every = ("", "0.0.0.0")
        same_ip = ip in every or other_ip in every or ip == other_ip
        return port == other_port and (protocol or "TCP") == (other_protocol or "TCP") and same_ip

    nodes = [a_node("n0"), a_node("n1")]
    pods = [with_ports(*each, name=f"p{i}", node=f"n{i % 2}") for i, each in enumerate(taken)]
    free = [
        not any(clash(port, want) for each in taken[row::2] for port in each for want in wanted)
        for row in (0, 1)
    ]
    assert fits(PLUGIN, a_cluster(*nodes, pods=pods), with_ports(*wanted)) == free
