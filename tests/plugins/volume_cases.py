"""Cases in the oracle protocol: made into clusters, and drawn at random with a taste for odd storage.

python -m tests.plugins.volume_cases SEED COUNT > cases.jsonl
"""

import gzip
import json
import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from berth.cluster.cluster import Cluster
from berth.framework.plugin import FITS, FilterPlugin
from berth.objects.decode import decode
from berth.objects.nodes import Node
from berth.objects.pods import Pod
from berth.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

T = TypeVar("T")
Json = dict[str, Any]
DATA = Path(__file__).parent / "data"
HOST, ZONE, RANK = "kubernetes.io/hostname", "topology.kubernetes.io/zone", "rank"
ZONE_LABELS = ("failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region")
BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
CLASSES = ("fast", "now", "local", "topo", "modeless", "bare")


def a_cluster(case: Json) -> tuple[Cluster, Pod]:
    """Make the cluster and the incoming pod of a case, completed as the API server would have."""
    cluster = Cluster()
    for node in case["nodes"]:
        cluster.put_node(read(node, Node))
    for pod in case.get("pods") or ():
        cluster.put_pod(read(_with_namespace(pod), Pod))
    for volume in case.get("persistentVolumes") or ():
        cluster.put(read(volume, PersistentVolume))
    for claim in case.get("persistentVolumeClaims") or ():
        meta = _with_namespace(claim)["metadata"]
        uid = f"persistentvolumeclaim/{meta['namespace']}/{meta['name']}"
        cluster.put(read(claim | {"metadata": {"uid": uid} | meta}, PersistentVolumeClaim))
    for storage_class in case.get("storageClasses") or ():
        cluster.put(read(storage_class, StorageClass))
    return cluster, read(_with_namespace(case["pod"]), Pod)


def read(item: Json, kind: type[T]) -> T:
    return decode(json.dumps(item).encode(), kind)


def answer(plugin: FilterPlugin[Any], case: Json) -> Json:
    """Answer as the protocol does: the reasons of the nodes that fail, or the first error of any."""
    cluster, pod = a_cluster(case)
    state = plugin.prepare(cluster.incoming(pod), cluster)
    codes = plugin.filter(state)
    assert np.array_equal(codes[::2], plugin.filter(state, np.arange(len(codes))[::2]))
    failed: Json = {}
    for node in case["nodes"]:
        name = node["metadata"]["name"]
        code = int(codes[cluster.nodes.row(name)])
        if code < FITS:
            return {"error": plugin.reasons(state, code)[0]}
        if code > FITS:
            failed[name] = list(plugin.reasons(state, code))
    return failed


def golden(name: str) -> list[Json]:
    """Read records of a release, a case, and what the release's own predicates answer."""
    with gzip.open(DATA / name, "rt") as lines:
        return [json.loads(line) for line in lines]


def _with_namespace(item: Json) -> Json:
    return item | {"metadata": {"namespace": "default"} | item["metadata"]}


class StorageCases:
    """Draws cases; no two volumes have the same size, since upstream is random there."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.chance: Callable[[float], bool] = lambda p: self.rng.random() < p
        self.n_nodes = 0
        self.n_claims = 0
        self.zoned = False

    def pick(self, *items: Any) -> Any:
        return self.rng.choice(items)

    def some(self, items: Any, low: int, high: int) -> list[Any]:
        items = list(items)
        return self.rng.sample(items, min(len(items), self.rng.randint(low, high)))

    def case(self, number: int) -> Json:
        self.n_nodes, self.n_claims = self.rng.randint(2, 10), self.rng.randint(1, 4)
        self.zoned = self.chance(0.5)
        sizes = self.rng.sample(
            ("900Mi", "1Gi", "1100M", "2Gi", "2500m", "3G", "4Gi", "5Gi", "8Gi", "10Gi", "1Ti"), 8
        )
        n_volumes = self.rng.randint(2, 8)
        free_refs = [f"claim-{k}" for k in range(self.n_claims)]
        self.rng.shuffle(free_refs)
        volumes = [self.volume(k, sizes[k], free_refs) for k in range(n_volumes)]
        return {
            "id": f"storage-{number}",
            "nodes": [self.node(i) for i in range(self.n_nodes)],
            "pods": [],
            "pod": self.pod(),
            "persistentVolumes": volumes,
            "persistentVolumeClaims": [self.claim(k, n_volumes) for k in range(self.n_claims)],
            "storageClasses": [self.storage_class(name) for name in CLASSES if self.chance(0.98)],
        }

    def node(self, i: int) -> Json:
        labels = {HOST: f"node-{i}"} if self.chance(0.95) else {}
        if self.chance(0.8):
            labels |= {ZONE: self.pick("a", "b"), RANK: self.pick("1", "2", "10", "x")}
        if self.zoned:
            labels |= {key: self.pick("a", "b", "c") for key in ZONE_LABELS if self.chance(0.7)}
        return {"metadata": {"name": f"node-{i}", "labels": labels}}

    def pod(self) -> Json:
        names = [f"claim-{k}" for k in range(self.n_claims + self.chance(0.03))]
        used = self.some(names, 1, 4)
        if self.chance(0.05):
            used.append(used[0])
        volumes = [{"name": f"v{i}", "persistentVolumeClaim": {"claimName": c}} for i, c in enumerate(used)]
        return {"metadata": {"name": "incoming"}, "spec": {"containers": [], "volumes": volumes}}

    def expression(self) -> Json:
        key = self.pick(HOST, HOST, HOST, ZONE, ZONE, RANK, "absent")
        values = {HOST: [f"node-{i}" for i in range(self.n_nodes)], ZONE: ["a", "b"], RANK: ["1", "2", "10"]}
        operator = self.pick("In", "In", "In", "In", "NotIn", "Exists", "DoesNotExist")
        if key == RANK and self.chance(0.7):
            operator = self.pick("Gt", "Lt")
        drawn = self.some(values.get(key, ["x"]), 1, 1 if operator in ("Gt", "Lt") else 5)
        if operator in ("Exists", "DoesNotExist") and self.chance(0.9):
            drawn = []
        if self.chance(0.02):
            drawn = self.pick([], ["-1"], ["a b"])
        return {"key": key, "operator": operator, "values": drawn}

    def affinity(self) -> Json:
        if self.chance(0.05):
            return {"required": {"nodeSelectorTerms": []}} if self.chance(0.5) else {}
        terms = []
        for _ in range(self.pick(1, 1, 1, 2)):
            term: Json = {"matchExpressions": [self.expression() for _ in range(self.pick(1, 1, 1, 1, 1, 2))]}
            if self.chance(0.05):
                term["matchFields"] = [
                    {"key": "metadata.name", "operator": self.pick("In", "NotIn"), "values": ["node-0"]}
                ]
            if self.chance(0.03):
                term = {}
            terms.append(term)
        affinity: Json = {"required": {"nodeSelectorTerms": terms}}
        return affinity

    def class_fields(self, *usual: str) -> tuple[Json, Json]:
        """Draw what metadata and spec say of an object's class."""
        name = self.pick(*usual) if self.chance(0.95) else self.pick(*CLASSES, "gone", "")
        meta = {BETA_CLASS: self.pick("local", "fast", "topo")} if self.chance(0.04) else {}
        return meta, {"storageClassName": name} if self.chance(0.98) else {}

    def volume(self, k: int, size: str, free_refs: list[str]) -> Json:
        annotations, spec = self.class_fields("local", "topo", "fast")
        spec["capacity"] = {"storage": size} if self.chance(0.98) else {}
        spec["accessModes"] = self.pick(
            ["ReadWriteOnce"], ["ReadWriteOnce", "ReadOnlyMany"], ["ReadOnlyMany"]
        )
        if self.chance(0.6):
            spec["nodeAffinity"] = self.affinity()
        if self.chance(0.2):
            spec["volumeMode"] = self.pick("Block", "Filesystem")
        if self.chance(0.3) and free_refs:
            name = free_refs.pop()
            spec["claimRef"] = {
                "namespace": self.pick("default", "default", "default", "other"),
                "name": name,
            }
            if self.chance(0.6):
                spec["claimRef"]["uid"] = self.pick(f"uid-{name}", f"uid-{name}", f"uid-{name}", "uid-old")
        labels = {"app": self.pick("web", "db")}
        if self.zoned and self.chance(0.6):
            labels[self.pick(*ZONE_LABELS)] = self.pick("a", "b", "a__b", "b__c", "b__c", "__a", "")
        meta = {"name": f"pv-{k}", "labels": labels, "annotations": annotations}
        if self.chance(0.05):
            meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        phase = self.pick("Available", "Available", "Available", "Available", "Bound", "Released", "")
        return {"metadata": meta, "spec": spec, "status": {"phase": phase}}

    def claim(self, k: int, n_volumes: int) -> Json:
        annotations, spec = self.class_fields("local", "local", "local", "topo", "topo", "fast", "bare")
        spec["accessModes"] = self.pick(
            ["ReadWriteOnce"], ["ReadWriteOnce"], ["ReadOnlyMany", "ReadWriteOnce"], []
        )
        request = self.pick("0", "1Gi", "1Gi", "1000Mi", "2500m", "2Gi", "4Gi", "9Gi")
        spec["resources"] = {"requests": {"storage": request}} if self.chance(0.95) else {}
        if self.chance(0.15):
            spec["volumeMode"] = self.pick("Block", "Filesystem")
        if self.chance(0.3):
            spec["selector"] = self.pick(
                {},
                {"matchLabels": {"app": "web"}},
                {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["web"]}]},
                {"matchExpressions": [{"key": "other", "operator": "DoesNotExist"}]},
            )
        if self.chance(0.02):
            operator, values = self.pick(("In", []), ("Exists", ["x"]), ("Gt", ["1"]))
            spec["selector"] = {"matchExpressions": [{"key": "app", "operator": operator, "values": values}]}
        if self.chance(0.25) and n_volumes:
            spec["volumeName"] = f"pv-{self.rng.randrange(n_volumes + self.chance(0.1))}"
            if self.chance(0.95):
                annotations["pv.kubernetes.io/bind-completed"] = "yes"
        if self.chance(0.04):
            annotations["volume.kubernetes.io/selected-node"] = "node-0"
        meta = {
            "name": f"claim-{k}",
            "namespace": "default",
            "uid": f"uid-claim-{k}",
            "annotations": annotations,
        }
        if self.chance(0.03):
            meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return {"metadata": meta, "spec": spec}

    def storage_class(self, name: str) -> Json:
        made: Json = {"metadata": {"name": name}, "provisioner": "ebs.csi.aws.com"}
        if name != "modeless":
            made["volumeBindingMode"] = "Immediate" if name == "now" else "WaitForFirstConsumer"
        if name in ("local", "bare"):
            made["provisioner"] = "kubernetes.io/no-provisioner" if name == "local" else ""
        if name == "topo":
            made["allowedTopologies"] = [self.topology() for _ in range(self.pick(0, 1, 1, 1, 2))]
        return made

    def topology(self) -> Json:
        hosts = [f"node-{i}" for i in range(self.n_nodes)]
        expressions = []
        for _ in range(self.pick(0, 1, 1, 1, 1, 1, 2)):
            key = self.pick(HOST, ZONE)
            expressions.append({"key": key, "values": self.some(hosts if key == HOST else ("a", "b"), 0, 4)})
        return {"matchLabelExpressions": expressions}


if __name__ == "__main__":
    cases = StorageCases(int(sys.argv[1]))
    for i in range(int(sys.argv[2])):
        print(json.dumps(cases.case(i)))
