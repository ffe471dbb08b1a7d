"""The shipped demo cluster keeps what it promises. Arithmetic of its own, on the plain JSON."""

import gzip
import json
import subprocess
import sys
from collections import Counter, defaultdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from berth.sim.demo import demo_snapshot

Json = dict[str, Any]
ROOT = Path(__file__).parents[2]
ZONE = "topology.kubernetes.io/zone"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
SERVICES = {
    ("shop", "web"), ("shop", "api"), ("shop", "cache"), ("data", "db"), ("data", "queue"),
    ("data", "search"), ("media", "transcode"), ("media", "thumbs"),
    ("platform", "log-agent"), ("platform", "mail"),
}  # fmt: skip
SUFFIXES = {"m": 1, "Ki": 1000 * 2**10, "Mi": 1000 * 2**20, "Gi": 1000 * 2**30}


@pytest.fixture(scope="module")
def kinds() -> dict[str, list[Json]]:
    found: dict[str, list[Json]] = defaultdict(list)
    listed = json.loads(demo_snapshot())
    assert (listed["kind"], listed["apiVersion"]) == ("List", "v1")
    for item in listed["items"]:
        found[item["kind"]].append(item)
    return found


@pytest.fixture
def nodes(kinds: dict[str, list[Json]]) -> dict[str, Json]:
    return {node["metadata"]["name"]: node for node in kinds["Node"]}


@pytest.fixture
def pods(kinds: dict[str, list[Json]]) -> list[Json]:
    return kinds["Pod"]


def thousandths(text: str) -> int:
    for suffix, factor in SUFFIXES.items():
        if text.endswith(suffix):
            return int(text.removesuffix(suffix)) * factor
    return int(text) * 1000


def requests(pod: Json) -> Counter[str]:
    total: Counter[str] = Counter({"pods": 1000})
    for container in pod["spec"]["containers"]:
        total.update({name: thousandths(q) for name, q in container["resources"]["requests"].items()})
    for container in pod["spec"].get("initContainers", []):
        total |= Counter({name: thousandths(q) for name, q in container["resources"]["requests"].items()})
    return total


def key(item: Json) -> tuple[str, str]:
    return item["metadata"].get("namespace", ""), item["metadata"]["name"]


def matches(selector: Json, pod: Json) -> bool:
    return all(pod["metadata"].get("labels", {}).get(name) == value for name, value in selector.items())


def conditions(item: Json) -> dict[str, str]:
    return {c["type"]: c["status"] for c in item["status"]["conditions"]}


def node_of(pod: Json) -> str | None:
    name: str | None = pod["spec"].get("nodeName")
    return name


def test_counts(kinds: dict[str, list[Json]]) -> None:
    assert {kind: len(items) for kind, items in kinds.items()} == {
        "Namespace": 5, "PriorityClass": 3, "StorageClass": 2, "Node": 50, "CSINode": 50, "Service": 10,
        "PersistentVolume": 22, "PersistentVolumeClaim": 22, "PodDisruptionBudget": 4, "Deployment": 6,
        "ReplicaSet": 8, "StatefulSet": 3, "DaemonSet": 1, "ReplicationController": 1, "Job": 1, "Pod": 400,
    }  # fmt: skip


def test_names_and_uids_are_unique(kinds: dict[str, list[Json]]) -> None:
    everything = [item for items in kinds.values() for item in items]
    assert len({(item["kind"], *key(item)) for item in everything}) == len(everything)
    assert len({item["metadata"]["uid"] for item in everything}) == len(everything)


def test_nodes_stand_in_three_zones_and_five_pools(nodes: dict[str, Json]) -> None:
    labels = [node["metadata"]["labels"] for node in nodes.values()]
    assert len({label[ZONE] for label in labels}) == 3
    assert all(label[ZONE] == label[OLD_ZONE] for label in labels)
    pools = Counter(label["example.com/pool"] for label in labels)
    assert pools == {"control": 3, "general": 24, "memory": 9, "gpu": 5, "spot": 9}
    assert [label["kubernetes.io/hostname"] for label in labels] == list(nodes)


def test_taints_cordon_and_the_lost_node(nodes: dict[str, Json]) -> None:
    taints = Counter((t["key"], t["effect"]) for n in nodes.values() for t in n["spec"].get("taints", []))
    assert taints == {
        ("node-role.kubernetes.io/control-plane", "NoSchedule"): 3, ("nvidia.com/gpu", "NoSchedule"): 5,
        ("example.com/spot", "PreferNoSchedule"): 9, ("node.kubernetes.io/unschedulable", "NoSchedule"): 1,
        ("node.kubernetes.io/unreachable", "NoSchedule"): 1,
        ("node.kubernetes.io/unreachable", "NoExecute"): 1,
    }  # fmt: skip
    assert [name for name, node in nodes.items() if node["spec"].get("unschedulable")] == ["general-b-8"]
    assert [n for n, node in nodes.items() if conditions(node)["Ready"] != "True"] == ["general-c-8"]
    gpus = sum(int(node["status"]["allocatable"].get("nvidia.com/gpu", 0)) for node in nodes.values())
    assert gpus == 10


def test_pods_are_on_nodes_that_exist_and_one_on_none(nodes: dict[str, Json], pods: list[Json]) -> None:
    assert [key(pod) for pod in pods if node_of(pod) is None] == [("data", "reindex-all")]
    assert {node_of(pod) for pod in pods} - {None} == set(nodes)


def test_no_node_is_overcommitted(nodes: dict[str, Json], pods: list[Json]) -> None:
    requested: dict[str | None, Counter[str]] = defaultdict(Counter)
    for pod in pods:
        if pod["status"]["phase"] != "Succeeded":
            requested[node_of(pod)].update(requests(pod))
    for name, node in nodes.items():
        allocatable = {r: thousandths(q) for r, q in node["status"]["allocatable"].items()}
        assert all(total <= allocatable[r] for r, total in requested[name].items()), name


def test_the_pod_without_a_node_fits_on_none(nodes: dict[str, Json], pods: list[Json]) -> None:
    (lone,) = [pod for pod in pods if node_of(pod) is None]
    most = max(thousandths(node["status"]["allocatable"]["cpu"]) for node in nodes.values())
    assert requests(lone)["cpu"] > most
    assert conditions(lone)["PodScheduled"] == "False"


def test_phases_and_readiness(pods: list[Json]) -> None:
    assert Counter(pod["status"]["phase"] for pod in pods) == {"Running": 396, "Pending": 3, "Succeeded": 1}
    not_ready = [p for p in pods if p["status"]["phase"] == "Running" and conditions(p)["Ready"] == "False"]
    assert Counter(p["metadata"]["labels"]["app"] for p in not_ready) == {"api": 2, "log-agent": 1}
    restarts = [max(c["restartCount"] for c in p["status"]["containerStatuses"]) for p in not_ready]
    assert len([count for count in restarts if count > 5]) == 2


def test_only_the_agent_is_on_the_lost_node(pods: list[Json]) -> None:
    there = [pod["metadata"]["labels"]["app"] for pod in pods if node_of(pod) == "general-c-8"]
    assert there == ["log-agent"]


def test_taints_are_tolerated(nodes: dict[str, Json], pods: list[Json]) -> None:
    for pod in pods:
        node = nodes.get(node_of(pod) or "")
        for taint in node["spec"].get("taints", []) if node else []:
            if taint["effect"] != "PreferNoSchedule" and "timeAdded" not in taint:
                tolerated = [t.get("key", taint["key"]) for t in pod["spec"]["tolerations"]]
                assert taint["key"] in tolerated, key(pod)


def test_no_pod_came_to_the_cordoned_node_since(nodes: dict[str, Json], pods: list[Json]) -> None:
    (taint,) = nodes["general-b-8"]["spec"]["taints"]
    there = [pod["metadata"]["creationTimestamp"] for pod in pods if node_of(pod) == "general-b-8"]
    assert len(there) > 1
    assert max(there) < taint["timeAdded"]


def test_node_selectors_and_required_pools_hold(nodes: dict[str, Json], pods: list[Json]) -> None:
    pools = {name: node["metadata"]["labels"]["example.com/pool"] for name, node in nodes.items()}
    where: dict[str, set[str]] = defaultdict(set)
    for pod in pods:
        if name := node_of(pod):
            where[pod["metadata"]["labels"]["app"]].add(pools[name])
    assert where["transcode"] == {"gpu"}
    assert where["db"] == where["search"] == {"memory"}


def test_required_anti_affinity_and_host_ports_hold(pods: list[Json]) -> None:
    for app in ("db", "log-agent"):
        hosts = [node_of(pod) for pod in pods if pod["metadata"]["labels"]["app"] == app]
        assert len(set(hosts)) == len(hosts) > 5


def test_required_affinity_holds(nodes: dict[str, Json], pods: list[Json]) -> None:
    zones: dict[str, set[str]] = defaultdict(set)
    for pod in pods:
        if name := node_of(pod):
            zones[pod["metadata"]["labels"]["app"]].add(nodes[name]["metadata"]["labels"][ZONE])
    assert zones["cache"] <= zones["api"]


def test_affinity_comes_in_all_its_forms(pods: list[Json]) -> None:
    forms = {
        (form, kind.removesuffix("DuringSchedulingIgnoredDuringExecution"))
        for pod in pods
        if pod["metadata"]["labels"]["app"] != "log-agent"
        for form, terms in pod["spec"].get("affinity", {}).items()
        for kind in terms
    }
    sides = ("nodeAffinity", "podAffinity", "podAntiAffinity")
    assert forms == {(form, kind) for form in sides for kind in ("required", "preferred")}


def test_services_select_pods(kinds: dict[str, list[Json]], pods: list[Json]) -> None:
    assert {key(service) for service in kinds["Service"]} == SERVICES
    for service in kinds["Service"]:
        mine = [p for p in pods if key(p)[0] == key(service)[0] and matches(service["spec"]["selector"], p)]
        assert mine, key(service)


def test_owners_exist_and_count_their_pods(kinds: dict[str, list[Json]], pods: list[Json]) -> None:
    owned: Counter[str] = Counter()
    by_uid = {item["metadata"]["uid"]: item for items in kinds.values() for item in items}
    for child in pods + kinds["ReplicaSet"]:
        for reference in child["metadata"].get("ownerReferences", []):
            owner = by_uid[reference["uid"]]
            assert (owner["kind"], owner["metadata"]["name"]) == (reference["kind"], reference["name"])
            assert reference["controller"] is True
            assert owner["metadata"]["namespace"] == child["metadata"]["namespace"]
            selector = owner["spec"]["selector"]
            assert matches(selector.get("matchLabels", selector), child)
            owned[reference["uid"]] += 1
    for kind in ("ReplicaSet", "StatefulSet", "ReplicationController"):
        for owner in kinds[kind]:
            count = owned[owner["metadata"]["uid"]]
            assert owner["status"]["replicas"] == owner["spec"]["replicas"] == count
    assert sum(not pod["metadata"].get("ownerReferences") for pod in pods) == 3


def test_ready_replicas_are_those_of_the_pods(kinds: dict[str, list[Json]], pods: list[Json]) -> None:
    ready: Counter[str] = Counter()
    for pod in pods:
        for reference in pod["metadata"].get("ownerReferences", []):
            ready[reference["uid"]] += conditions(pod).get("Ready") == "True"
    for kind in ("ReplicaSet", "StatefulSet", "ReplicationController"):
        for owner in kinds[kind]:
            assert owner["status"]["readyReplicas"] == ready[owner["metadata"]["uid"]]


def test_the_current_replica_set_has_the_deployments_template(kinds: dict[str, list[Json]]) -> None:
    counts = {}
    for deployment in kinds["Deployment"]:
        uid = deployment["metadata"]["uid"]
        mine = [r for r in kinds["ReplicaSet"] if r["metadata"]["ownerReferences"][0]["uid"] == uid]
        newest = max(mine, key=lambda r: str(r["metadata"]["creationTimestamp"]))
        current = [r for r in mine if r["spec"]["template"]["spec"] == deployment["spec"]["template"]["spec"]]
        assert current == [newest]
        older = [r["spec"]["replicas"] for r in mine if r is not newest]
        counts[deployment["metadata"]["name"]] = (newest["spec"]["replicas"], older)
        assert newest["spec"]["replicas"] + sum(older) == deployment["spec"]["replicas"]
    assert counts["web"] == (104, [0])
    assert counts["api"] == (56, [4])


def test_pods_are_like_their_template(kinds: dict[str, list[Json]], pods: list[Json]) -> None:
    sets = {r["metadata"]["uid"]: r for r in kinds["ReplicaSet"]}
    for pod in pods:
        for reference in pod["metadata"].get("ownerReferences", []):
            if owner := sets.get(reference["uid"]):
                template = owner["spec"]["template"]
                assert pod["metadata"]["labels"] == template["metadata"]["labels"]
                images = [c["image"] for c in pod["spec"]["containers"]]
                assert images == [c["image"] for c in template["spec"]["containers"]]
                assert pod["spec"].get("affinity") == template["spec"].get("affinity")


def test_claims_are_bound_in_the_pods_zone(
    kinds: dict[str, list[Json]], nodes: dict[str, Json], pods: list[Json]
) -> None:
    volumes = {volume["metadata"]["name"]: volume for volume in kinds["PersistentVolume"]}
    claims = {key(claim): claim for claim in kinds["PersistentVolumeClaim"]}
    for pod in pods:
        for used in pod["spec"]["volumes"]:
            if "persistentVolumeClaim" in used:
                claim = claims.pop((key(pod)[0], used["persistentVolumeClaim"]["claimName"]))
                volume = volumes.pop(claim["spec"]["volumeName"])
                assert volume["spec"]["claimRef"]["uid"] == claim["metadata"]["uid"]
                (term,) = volume["spec"]["nodeAffinity"]["required"]["nodeSelectorTerms"]
                zone = nodes[node_of(pod) or ""]["metadata"]["labels"][ZONE]
                assert term["matchExpressions"][0]["values"] == [zone]
    assert not claims
    assert not volumes


def test_nothing_happened_before_it_was_made(pods: list[Json]) -> None:
    for pod in pods:
        created = pod["metadata"]["creationTimestamp"]
        times = [c["lastTransitionTime"] for c in pod["status"]["conditions"]]
        times += [pod["status"].get("startTime", created)]
        assert min(times) >= created, key(pod)
        assert max(times) <= "2025-09-01T12:00:00Z", key(pod)
        assert datetime.fromisoformat(created) < datetime(2025, 9, 1, 12, tzinfo=UTC)


def test_the_script_makes_the_same_bytes(tmp_path: Path) -> None:
    script = ROOT / "scripts" / "make_demo.py"
    subprocess.run([sys.executable, script, tmp_path], check=True, capture_output=True)
    shipped = ROOT / "src" / "berth" / "demo"
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in shipped.iterdir()}
    for made in tmp_path.iterdir():
        kept = shipped / made.name
        if made.suffix == ".gz":  # another zlib may pack the same bytes otherwise
            assert gzip.decompress(made.read_bytes()) == gzip.decompress(kept.read_bytes())
        else:
            assert made.read_bytes() == kept.read_bytes()
