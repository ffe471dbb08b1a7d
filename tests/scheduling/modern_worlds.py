"""Random clusters and pods for the default profile of 1.36: spreading above all, by default and by constraints."""

from functools import partial
from typing import Any

from hypothesis import strategies as st
from msgspec.structs import replace

from berth.cluster.cluster import Cluster
from berth.cluster.modern_accounting import ModernAccounting
from berth.objects.base import LabelSelector
from berth.objects.nodes import Node
from berth.objects.pods import (
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from berth.releases import RELEASES
from berth.releases.profiles import provider_profile
from berth.releases.release import Options
from tests.builders import HOST, a_node, a_pod, a_service
from tests.scheduling.worlds import maybe, node_affinities, renamed

MODERN = provider_profile(RELEASES["1.36"], Options())
ZONE = "topology.kubernetes.io/zone"
NODE_NAMES = tuple(f"n{i}" for i in range(40))

WEB, DB = LabelSelector(match_labels={"app": "web"}), LabelSelector(match_labels={"app": "db"})

KEYS = st.sampled_from([HOST, ZONE, "rack", "unit"])
"""Of the last, nearly every node has a value of its own."""

constraint = partial(
    st.builds,
    TopologySpreadConstraint,
    max_skew=st.sampled_from([1, 2, 5]),
    topology_key=KEYS,
    label_selector=st.sampled_from([WEB, WEB, DB, LabelSelector()]),
    node_affinity_policy=st.sampled_from([None, "Ignore"]),
    node_taints_policy=st.sampled_from([None, "Honor"]),
)
soft_constraints = constraint(when_unsatisfiable=st.just("ScheduleAnyway"))
hard_constraints = constraint(
    when_unsatisfiable=st.just("DoNotSchedule"), min_domains=st.sampled_from([None, None, 2, 5])
)
terms = st.builds(
    PodAffinityTerm,
    label_selector=st.sampled_from([WEB, WEB, DB, LabelSelector(), None]),
    topology_key=KEYS,
    namespaces=st.sampled_from([(), (), ("default",), ("other",)]),
    namespace_selector=st.sampled_from([None, None, None, LabelSelector()]),
)
preferences = st.lists(
    st.builds(WeightedPodAffinityTerm, weight=st.sampled_from([1, 7, 100]), pod_affinity_term=terms),
    max_size=2,
).map(tuple)
required_terms = st.sampled_from([0, 0, 0, 1, 1, 2]).flatmap(
    lambda n: st.lists(terms, min_size=n, max_size=n).map(tuple)
)
company = st.one_of(st.none(), st.builds(PodAffinity, required=required_terms, preferred=preferences))


def _pod(constraints: tuple[TopologySpreadConstraint, ...], **values: Any) -> Pod:
    pod = a_pod(**values)
    return replace(pod, spec=replace(pod.spec, topology_spread_constraints=constraints))


social_pods: st.SearchStrategy[Pod] = st.builds(
    _pod,
    st.one_of(
        st.just(()),
        st.lists(st.one_of(hard_constraints, hard_constraints, soft_constraints), max_size=3).map(tuple),
    ),
    labels=st.sampled_from([{"app": "web"}, {"app": "web"}, {"app": "db"}]),
    cpu=st.sampled_from([None, "50m", "300m"]),
    memory=st.sampled_from([None, "100Mi"]),
    host_ports=st.sampled_from([(), (), (), (80,)]),
    node_affinity=maybe(node_affinities),
    affinity=company,
    anti_affinity=company,
)
"""Pods that want, or shun, the company of others, or must be spread."""


modern_pods: st.SearchStrategy[Pod] = st.builds(
    _pod,
    st.one_of(st.just(()), st.just(()), st.lists(soft_constraints, max_size=3).map(tuple)),
    labels=st.sampled_from([{"app": "web"}, {"app": "web"}, {"app": "db"}, {}]),
    cpu=st.sampled_from([None, "50m", "300m", "1500m"]),
    memory=st.sampled_from([None, "100Mi", "900Mi"]),
    host_ports=st.sampled_from([(), (), (), (80,)]),
    node_selector=st.sampled_from([{}, {}, {"disk": "ssd"}]),
    node_affinity=maybe(node_affinities),
    tolerations=st.lists(st.sampled_from(["spot:PreferNoSchedule", "spot:NoSchedule"]), max_size=1),
)

labels = st.fixed_dictionaries(
    {},
    optional={
        "disk": st.sampled_from(["ssd", "1"]),
        ZONE: st.sampled_from(["a", "b", "b", ""]),
        "rack": st.sampled_from(["r1", "r2"]),
        "unit": st.just("1"),
    },
)


@st.composite
def modern_nodes(draw: st.DrawFn, name: str) -> Node:
    node = a_node(
        name,
        cpu=draw(st.sampled_from(["1", "2", "4"])),
        memory=draw(st.sampled_from(["2Gi", "4Gi", "64Gi"])),
        pods=draw(st.sampled_from(["1", "2", "6", "110"])),
        labels=draw(labels),
        taints=draw(st.lists(st.sampled_from(["spot:PreferNoSchedule", "spot:NoSchedule"]), max_size=1)),
    )
    if draw(st.sampled_from([False, False, False, True])):
        its_labels = {key: value for key, value in node.metadata.labels.items() if key != HOST}
        node = replace(node, metadata=replace(node.metadata, labels=its_labels))
    return node


@st.composite
def modern_clusters(draw: st.DrawFn, existing: st.SearchStrategy[Pod] = modern_pods) -> Cluster:
    """Nodes of few kinds (so that many tie), in any order, with a few pods and services."""
    cluster = Cluster(ModernAccounting())
    n_nodes = draw(st.integers(1, len(NODE_NAMES)))
    kinds = [draw(modern_nodes("kind")) for _ in range(draw(st.integers(1, 4)))]
    names = draw(st.permutations(NODE_NAMES[:n_nodes]))
    for name in names:
        kind = draw(st.sampled_from(kinds))
        its_labels = dict(kind.metadata.labels)
        if HOST in its_labels:
            its_labels[HOST] = name
        if "unit" in its_labels and draw(st.sampled_from([True, True, False])):
            its_labels["unit"] = name
        cluster.put_node(replace(kind, metadata=replace(kind.metadata, name=name, labels=its_labels)))
    for service in draw(st.sampled_from([(), (a_service("web"),), (a_service("web"), a_service("db"))])):
        cluster.put(service)
    for i, pod in enumerate(draw(st.lists(existing, max_size=8))):
        placed = replace(pod, spec=replace(pod.spec, node_name=draw(st.sampled_from(names))))
        cluster.put_pod(renamed(placed, f"p{i}"))
    return cluster
