"""Which failures no removal of pods would mend: upstream's UnschedulableAndUnresolvable."""

from typing import Any

from msgspec.structs import replace

from berth.cluster.cluster import Cluster
from berth.framework.plugin import FITS, FilterPlugin
from berth.objects.base import LabelSelector
from berth.objects.pods import Pod, PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from berth.plugins.inter_pod_affinity import MatchInterPodAffinity, Rules
from berth.plugins.node_ports import NodePorts
from berth.plugins.node_resources_fit import NodeResourcesFit
from berth.plugins.node_unschedulable import NodeUnschedulable
from berth.plugins.pod_topology_spread import SpreadFilter
from tests.builders import HOST, a_cluster, a_node, a_pod

WEB = {"app": "web"}
BY_WEB = PodAffinity(
    required=(PodAffinityTerm(label_selector=LabelSelector(match_labels=WEB), topology_key=HOST),)
)


def verdicts(plugin: FilterPlugin[Any], cluster: Cluster, pod: Pod) -> list[str]:
    state = plugin.prepare(cluster.incoming(pod), cluster)
    codes = plugin.filter(state)
    beyond = plugin.beyond_help(state, codes)
    return [
        "fits" if code == FITS else "beyond help" if lost else "open"
        for code, lost in zip(codes.tolist(), beyond.tolist(), strict=True)
    ]


def test_of_nodes_alone_everything_is() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2", unschedulable=True))
    assert verdicts(NodeUnschedulable(), cluster, a_pod()) == ["fits", "beyond help"]


def test_of_resources_what_the_node_does_not_have_at_all() -> None:
    pods = [a_pod(f"p{i}", node=f"n{i}", cpu="1") for i in range(4)]
    nodes = (
        a_node("n0", cpu="4"),
        a_node("n1", cpu="2"),
        a_node("n2", cpu="1"),
        a_node("n3", cpu="4", pods=1),
    )
    assert verdicts(NodeResourcesFit(), a_cluster(*nodes, pods=pods), a_pod(cpu="2")) == [
        "fits",
        "open",
        "beyond help",
        "open",
    ]


def test_host_ports_can_be_freed() -> None:
    cluster = a_cluster(a_node("n1"), pods=[a_pod("p", node="n1", host_ports=(80,))])
    assert verdicts(NodePorts(), cluster, a_pod(host_ports=(80,))) == ["open"]


def test_of_spreading_a_label_that_is_missing() -> None:
    constraint = TopologySpreadConstraint(
        topology_key="rack",
        when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_labels=WEB),
    )
    nodes = (a_node("n1", labels={"rack": "a"}), a_node("n2", labels={"rack": "b"}), a_node("n3"))
    cluster = a_cluster(*nodes, pods=[a_pod("p", node="n1", labels=WEB)])
    pod = a_pod(labels=WEB)
    pod = replace(pod, spec=replace(pod.spec, topology_spread_constraints=(constraint,)))
    assert verdicts(SpreadFilter(), cluster, pod) == ["open", "fits", "beyond help"]


def test_of_company_what_the_pod_needs_but_not_whom_it_shuns() -> None:
    cluster = a_cluster(a_node("n1"), a_node("n2"), pods=[a_pod("p", node="n1", labels=WEB)])
    plugin = MatchInterPodAffinity(Rules.TODAY)
    assert verdicts(plugin, cluster, a_pod(affinity=BY_WEB)) == ["fits", "beyond help"]
    assert verdicts(plugin, cluster, a_pod(anti_affinity=BY_WEB)) == ["open", "fits"]
