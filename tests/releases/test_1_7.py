"""1.7, worked by hand: there is no oracle of it."""

import json

import pytest

from tests.releases.worlds import HOSTNAME, ZONE, Json, a_node, a_pod, ask

ALPHA = "volume.alpha.kubernetes.io/node-affinity"
DEFAULT_PRIORITIES = {
    "SelectorSpreadPriority", "InterPodAffinityPriority", "LeastRequestedPriority", "BalancedResourceAllocation",
    "NodePreferAvoidPodsPriority", "NodeAffinityPriority", "TaintTolerationPriority",
}  # fmt: skip


def condition(kind: str, status: str) -> Json:
    return {"conditions": [{"type": kind, "status": status}]}


UNFIT = [
    a_node("down", **condition("Ready", "Unknown")),
    a_node("full", **condition("OutOfDisk", "True")),
    a_node("offline", **condition("NetworkUnavailable", "True")),
    a_node("cordoned", unschedulable=True),
]


def test_unfit_nodes_are_left_out_of_everything() -> None:
    answer = ask("1.7", a_pod(requests={"cpu": "8"}), [*UNFIT, a_node("n1"), a_node("n2")])
    assert answer["message"] == "0/2 nodes are available: 2 Insufficient cpu."
    assert set(answer["failed"]) == {"n1", "n2"}
    assert set(answer["predicates"]["PodFitsResources"]) == {"n1", "n2"}


def test_without_any_fit_node_there_is_no_node_at_all() -> None:
    assert ask("1.7", a_pod(), UNFIT)["error"] == "no nodes available to schedule pods"


def test_a_node_is_asked_every_predicate() -> None:
    node = a_node("n1", taints=[{"key": "a", "effect": "NoSchedule"}], **condition("DiskPressure", "True"))
    pod = a_pod(requests={"cpu": "8"}, nodeSelector={"disk": "ssd"})
    assert ask("1.7", pod, [node])["failed"]["n1"] == [
        "Insufficient cpu",
        "node(s) didn't match node selector",
        "node(s) had taints that the pod didn't tolerate",
        "node(s) had disk pressure",
    ]


def test_there_are_the_predicates_and_priorities_of_the_time() -> None:
    answer = ask("1.7", a_pod(), [a_node("n1")])
    assert "CheckNodeCondition" not in answer["predicates"]
    assert "CheckVolumeBinding" not in answer["predicates"]
    assert set(answer["priorities"]) >= DEFAULT_PRIORITIES
    default = {
        name: scores["n1"] for name, scores in answer["priorities"].items() if name in DEFAULT_PRIORITIES
    }
    avoids = default.pop("NodePreferAvoidPodsPriority")
    assert answer["weighted"] == {"n1": 10_000 * avoids + sum(default.values())}


def shunning(key: str) -> Json:
    term = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": key}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 10, "podAffinityTerm": term}]}
    return {"podAntiAffinity": preferred}


@pytest.mark.parametrize(
    ("release", "scores"),
    [
        # n1 shares its own name with the pod, n2 its zone, n3 its region; n4 shares nothing. Counted once each.
        ("1.7", {"n1": 0, "n2": 0, "n3": 0, "n4": 10}),
        ("1.10", {"n1": 0, "n2": 0, "n3": 0, "n4": 0}),
    ],
)
def test_an_empty_topology_key_means_host_zone_or_region(release: str, scores: dict[str, int]) -> None:
    region = ZONE.replace("zone", "region")
    nodes = [
        a_node("n1", labels={ZONE: "a", region: "r"}),
        a_node("n2", labels={ZONE: "a"}),
        a_node("n3", labels={ZONE: "b", region: "r"}),
        a_node("n4", labels={ZONE: "c", region: "s"}),
    ]
    answer = ask(release, a_pod(affinity=shunning("")), nodes, [a_pod("there", "n1")])
    assert answer["priorities"]["InterPodAffinityPriority"] == scores


def volume(affinity: str) -> Json:
    return {"metadata": {"name": "v", "annotations": {ALPHA: affinity}}, "spec": {}}


def term(key: str, *values: str) -> Json:
    return {"matchExpressions": [{"key": key, "operator": "In", "values": list(values)}]}


def required(*terms: Json) -> str:
    return json.dumps({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}})


CONFLICT = ["node(s) had volume node affinity conflict"]


@pytest.mark.parametrize(
    ("affinity", "failing"),
    [
        ("", set()),
        ("{}", set()),
        (required(term(HOSTNAME, "n1")), {"n2", "n3"}),
        # Every term must be met, not any of them.
        (required(term(HOSTNAME, "n1", "n2"), term("disk", "ssd")), {"n1", "n3"}),
        (required({}), {"n1", "n2", "n3"}),
        ("no json", {"n1", "n2", "n3"}),
        (required({"matchExpressions": [{"key": "disk", "operator": "In"}]}), {"n1", "n2", "n3"}),
    ],
)
def test_volumes_say_in_an_annotation_where_they_are(affinity: str, failing: set[str]) -> None:
    claim = {"metadata": {"name": "c", "namespace": "default"}, "spec": {"volumeName": "v"}}
    pod = a_pod(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}])
    nodes = [a_node("n1"), a_node("n2", labels={"disk": "ssd"}), a_node("n3", labels={"disk": "ssd"})]
    more = {"persistentVolumes": [volume(affinity)], "persistentVolumeClaims": [claim]}
    answer = ask("1.7", pod, nodes, **more)
    assert answer["predicates"]["NoVolumeNodeConflict"] == dict.fromkeys(sorted(failing), CONFLICT)
    assert answer["failed"] == dict.fromkeys(sorted(failing), CONFLICT)
    off = ask("1.7", pod, nodes, **more, options={"featureGates": {"PersistentLocalVolumes": False}})
    assert off["failed"] == {}


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ([], 'PersistentVolumeClaim was not found: "c"'),
        ([{"spec": {}}], 'PersistentVolumeClaim is not bound: "c"'),
        ([{"spec": {"volumeName": "v"}}], 'PersistentVolume not found: "v"'),
    ],
)
def test_a_claim_without_a_volume_is_an_error(claims: list[Json], text: str) -> None:
    named = [{"metadata": {"name": "c", "namespace": "default"}} | claim for claim in claims]
    pod = a_pod(volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "c"}}])
    answer = ask("1.7", pod, [a_node("n1")], persistentVolumeClaims=named)
    assert answer["predicates"]["NoVolumeNodeConflict"] == {"error": text}
    assert answer["error"] == text


def test_services_alone_count_for_service_spreading() -> None:
    nodes, pods = [a_node("n1"), a_node("n2")], [a_pod("there", "n1")]
    replicas = {"metadata": {"name": "r"}, "spec": {"selector": {"matchLabels": {"app": "web"}}}}
    answer = ask("1.7", a_pod(), nodes, pods, replicaSets=[replicas])
    assert answer["priorities"]["SelectorSpreadPriority"] == {"n1": 0, "n2": 10}
    assert answer["priorities"]["ServiceSpreadingPriority"] == {"n1": 10, "n2": 10}
    later = ask("1.10", a_pod(), nodes, pods, replicaSets=[replicas])
    assert later["priorities"]["ServiceSpreadingPriority"] == {"n1": 0, "n2": 10}
