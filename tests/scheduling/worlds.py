"""Random clusters and pods that touch every plugin of the module's profile."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.cluster.cluster import Cluster
from berth.objects.base import LabelSelector, LabelSelectorRequirement
from berth.objects.nodes import Node
from berth.objects.pods import (
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    WeightedPodAffinityTerm,
)
from berth.releases.module import addition_profile
from berth.scheduling.evaluation import Evaluation
from tests.builders import HOST, ZONE, a_cluster, a_node, a_pod, a_replica_set, a_service

WEIGHTS = {
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 2,
    "SelectorSpreadPriority": 3,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 2,
    "InterPodAffinityPriority": 1,
    "NodeLoadForecastPriority": 1,
    "MostRequestedPriority": 0,
}
PROFILE = addition_profile(WEIGHTS)
NODE_NAMES = tuple(f"n{i}" for i in range(7))

conditions = st.sampled_from(
    [
        {"Ready": "True"},
        {"Ready": "True"},
        {"Ready": "True"},
        {},
        {"Ready": "Unknown"},
        {"Ready": "True", "MemoryPressure": "True"},
        {"Ready": "True", "DiskPressure": "True", "PIDPressure": "False"},
        {"Ready": "True", "NetworkUnavailable": "True", "PIDPressure": "True"},
    ]
)


def nodes(name: str, zones: st.SearchStrategy[str | None]) -> st.SearchStrategy[Node]:
    return st.builds(
        a_node,
        st.just(name),
        cpu=st.sampled_from(["0", "1", "2", "16"]),
        memory=st.sampled_from(["1Gi", "4Gi", "64Gi"]),
        pods=st.sampled_from(["1", "4", "30", "110"]),
        zone=zones,
        labels=st.dictionaries(
            st.sampled_from(["disk", "rank"]), st.sampled_from(["1", "2", "ssd"]), max_size=2
        ),
        taints=st.lists(
            st.sampled_from(
                ["spot:PreferNoSchedule", "old:PreferNoSchedule", "spot:NoSchedule", "bad=x:NoExecute"]
            ),
            max_size=2,
            unique=True,
        ),
        unschedulable=st.sampled_from([False, False, False, False, True]),
        conditions=conditions,
        example_com__gpu=st.sampled_from(["0", "3"]),
    )


no_zones: st.SearchStrategy[str | None] = st.none()
some_zones = st.sampled_from(["a", "b", "b", None])


@st.composite
def node_lists(draw: st.DrawFn) -> list[Node]:
    zones = draw(st.sampled_from([no_zones, some_zones]))
    n_nodes = draw(st.integers(1, len(NODE_NAMES)))
    return [draw(nodes(name, zones)) for name in NODE_NAMES[:n_nodes]]


expressions = st.builds(
    lambda key, operator, value: LabelSelectorRequirement(
        key=key,
        operator=operator,
        values=() if operator in ("Exists", "DoesNotExist") else (value,),
    ),
    st.sampled_from(["disk", "rank", ZONE]),
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]),
    st.sampled_from(["1", "2"]),
)
node_terms = st.builds(
    NodeSelectorTerm,
    match_expressions=st.lists(expressions, min_size=1, max_size=2).map(tuple),
)
node_affinities = st.builds(
    NodeAffinity,
    required=st.one_of(
        st.none(),
        st.none(),
        st.lists(node_terms, max_size=2).map(lambda terms: NodeSelector(node_selector_terms=tuple(terms))),
    ),
    preferred=st.lists(
        st.builds(PreferredSchedulingTerm, weight=st.integers(1, 100), preference=node_terms), max_size=2
    ).map(tuple),
)
pod_terms = st.builds(
    PodAffinityTerm,
    label_selector=st.sampled_from(
        [
            LabelSelector(match_labels={"app": "web"}),
            LabelSelector(match_labels={"app": "db"}),
            LabelSelector(),
        ]
    ),
    topology_key=st.sampled_from([HOST, ZONE]),
)
pod_affinities = st.builds(
    PodAffinity,
    required=st.lists(pod_terms, max_size=1).map(tuple),
    preferred=st.lists(
        st.builds(WeightedPodAffinityTerm, weight=st.integers(1, 100), pod_affinity_term=pod_terms),
        max_size=1,
    ).map(tuple),
)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Mostly None."""
    return st.one_of(st.none(), st.none(), st.none(), strategy)


pods: st.SearchStrategy[Pod] = st.builds(
    a_pod,
    namespace=st.sampled_from(["default", "default", "other"]),
    labels=st.sampled_from([{"app": "web"}, {"app": "db"}, {}]),
    phase=st.sampled_from(["Running", "Running", "Pending", "Succeeded"]),
    terminating=st.sampled_from([False, False, True]),
    node=st.sampled_from([*NODE_NAMES, ""]),
    cpu=st.sampled_from([None, "0", "50m", "500m", "1500m"]),
    memory=st.sampled_from([None, "0", "100Mi", "900Mi"]),
    requests=st.sampled_from([{}, {}, {"example.com/gpu": "1"}, {"ephemeral-storage": "9Gi"}]),
    init=st.sampled_from([None, None, {"cpu": "1"}, {"example.com/gpu": "2"}]),
    host_ports=st.sampled_from([(), (), (), (80,), (80, 443)]),
    node_selector=st.sampled_from([{}, {}, {}, {"disk": "ssd"}]),
    node_affinity=maybe(node_affinities),
    affinity=maybe(pod_affinities),
    anti_affinity=maybe(pod_affinities),
    tolerations=st.lists(
        st.sampled_from(["spot:NoSchedule", "spot:PreferNoSchedule", "bad:NoExecute"]),
        max_size=3,
        unique=True,
    ),
)


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Nodes with pods, forecasts, services, and a ReplicaSet."""
    its_nodes = draw(node_lists())
    its_pods = draw(st.lists(pods, max_size=8))
    for i, pod in enumerate(its_pods):
        its_pods[i] = renamed(pod, f"p{i}")
    services = draw(st.sampled_from([(), (a_service("web"),), (a_service("web"), a_service("db"))]))
    objects = draw(st.sampled_from([(), (a_replica_set("db"),)]))
    cluster = a_cluster(*its_nodes, pods=its_pods, services=services, objects=objects)
    deltas = draw(
        st.lists(
            st.sampled_from([-1.0, -0.25, 0.0, 0.1, 0.7]), min_size=len(its_nodes), max_size=len(its_nodes)
        )
    )
    cluster.set_load_delta(np.array(deltas))
    return cluster


def renamed(pod: Pod, name: str) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, name=name))


def contents(evaluation: Evaluation) -> dict[str, object]:
    """All that an evaluation says, in words and scores where codes are the plugins' own."""
    alive = np.flatnonzero(evaluation.cluster.nodes.alive)
    feasible = np.flatnonzero(evaluation.fits)
    said: dict[str, object] = {
        "fits": evaluation.fits.tolist(),
        "error": evaluation.error(),
        "unschedulable": str(evaluation.unschedulable()),
    }
    for i, named in enumerate(evaluation.profile.filters):
        codes = evaluation.codes[i]
        said[named.name] = [evaluation.reasons(i, int(codes[row])) if codes[row] else () for row in alive]
    for weighted, state, raw, column in zip(
        evaluation.profile.scores,
        evaluation.score_states,
        evaluation.raw,
        evaluation.normalized(feasible),
        strict=True,
    ):
        said[weighted.name] = (raw[alive].tolist(), column.tolist(), weighted.plugin.error(state))
    return said
