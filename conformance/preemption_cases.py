"""Random cases for preemption: crowded small clusters, and a pod that should go before some of the others."""

import json
import random
from typing import Any

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
PRIORITIES = (-10, -10, 0, 0, 0, 5, 5, 10, 60)
OWN_PRIORITY = 50
APPS = ("web", "db", "cache")
ONE_POD = "ReadWriteOncePod"
MOST_PODS = 12
"""Of a node. More than so many pods are sorted by Go in ways that leave those that tie anywhere."""


def preemption_case(seed: int, number: int) -> dict[str, Any]:
    """Draw a case."""
    return _Case(random.Random(f"preemption {seed} {number}"), f"preemption-{seed}-{number:05d}").draw()


class _Case:
    def __init__(self, rng: random.Random, name: str) -> None:
        self.rng, self.name = rng, name
        self.features = {feature for feature in FEATURES if rng.random() < FEATURES[feature]}
        self.starts: set[tuple[str, int]] = set()
        self.ports: set[tuple[str, int]] = set()

    def on(self, feature: str, chance: float = 1.0) -> bool:
        return feature in self.features and self.rng.random() < chance

    def draw(self) -> dict[str, Any]:
        rng = self.rng
        nodes = [self.node(i) for i in range(rng.randint(1, 6))]
        pods: list[dict[str, Any]] = []
        for node in nodes:
            pods += [self.pod(len(pods) + i, node) for i in range(rng.randint(0, MOST_PODS))]
        if "doubled" in self.features:
            nodes, pods = (
                nodes + [_copy(node, "m") for node in nodes],
                pods + [_copy(pod, "m") for pod in pods],
            )
        rng.shuffle(pods)
        if "nominated" in self.features:
            pods += [self.nominated(i, rng.choice(nodes)) for i in range(rng.randint(1, 3))]
        return {
            "id": self.name,
            "nodes": nodes,
            "pods": pods,
            "pod": self.incoming(nodes),
            "podDisruptionBudgets": [self.budget(i, pods) for i in range(rng.randint(1, 3))]
            if "budgets" in self.features
            else [],
            "persistentVolumeClaims": [
                {"metadata": {"name": f"claim-{i}", "namespace": "default"}, "spec": _claim(i)}
                for i in range(3)
            ],
            "persistentVolumes": [{"metadata": {"name": f"pv-{i}"}, "spec": _volume(i)} for i in range(3)],
            "csiNodes": [self.csi_node(node) for node in nodes] if "claims" in self.features else [],
        }

    def node(self, i: int) -> dict[str, Any]:
        rng = self.rng
        labels = {HOST: f"n{i}"}
        if rng.random() < 0.9:
            labels[ZONE] = rng.choice("ab")
        offered = {
            "cpu": rng.choice(("1", "2", "4")),
            "memory": rng.choice(("1Gi", "4Gi")),
            "pods": rng.choice(("2", "4", "8", "110")),
        }
        if self.on("gpu", 0.7):
            offered["example.com/gpu"] = rng.choice(("1", "4"))
        node: dict[str, Any] = {
            "metadata": {"name": f"n{i}", "labels": labels},
            "spec": {},
            "status": {"allocatable": offered},
        }
        if self.on("taints", 0.3):
            node["spec"]["taints"] = [{"key": "spot", "effect": "NoSchedule"}]
        if self.on("taints", 0.1):
            node["spec"]["unschedulable"] = True
        return node

    def csi_node(self, node: dict[str, Any]) -> dict[str, Any]:
        name = node["metadata"]["name"]
        driver = {
            "name": "csi.example.com",
            "nodeID": name,
            "allocatable": {"count": self.rng.choice((1, 2, 9))},
        }
        return {"metadata": {"name": name}, "spec": {"drivers": [driver]}}

    def spec(self, priority: int) -> dict[str, Any]:
        rng = self.rng
        requests = {}
        if rng.random() < 0.9:
            requests["cpu"] = rng.choice(("100m", "250m", "500m", "900m"))
        if rng.random() < 0.5:
            requests["memory"] = rng.choice(("100Mi", "300Mi", "700Mi"))
        if self.on("gpu", 0.4):
            requests["example.com/gpu"] = "1"
        container: dict[str, Any] = {"name": "main", "resources": {"requests": requests}}
        if self.on("ports", 0.4):
            container["ports"] = [{"containerPort": 80, "hostPort": rng.choice((80, 81))}]
        spec: dict[str, Any] = {"containers": [container], "priority": priority}
        if self.on("volumes", 0.4):
            disk = {"pdName": rng.choice(("disk-1", "disk-2")), "readOnly": rng.random() < 0.3}
            spec["volumes"] = [{"name": "disk", "gcePersistentDisk": disk}]
        if self.on("claims", 0.4):
            claim = {"claimName": f"claim-{rng.randrange(3)}"}
            spec.setdefault("volumes", []).append({"name": "data", "persistentVolumeClaim": claim})
        return spec

    def pod(self, i: int, node: dict[str, Any]) -> dict[str, Any]:
        rng, where = self.rng, node["metadata"]["name"]
        priority = rng.choice(PRIORITIES)
        pod = self.any_pod(f"p{i}", priority)
        pod["spec"]["nodeName"] = where
        # No scheduler lets two pods have one host port of a node; upstream then counts it once.
        for port in pod["spec"]["containers"][0].get("ports", ()):
            if (where, port["hostPort"]) in self.ports:
                del pod["spec"]["containers"][0]["ports"]
            self.ports.add((where, port["hostPort"]))
        pod["status"] = {"phase": "Running"}
        # How upstream orders pods that have not started is nobody's guess: one such pod a node and priority.
        if rng.random() < 0.9 or (where, priority) in self.starts:
            pod["status"]["startTime"] = f"2026-01-01T00:00:{rng.randrange(10):02d}Z"
        else:
            self.starts.add((where, priority))
        if self.on("terminating", 0.3):
            pod["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
            if rng.random() < 0.5:
                reason = rng.choice(
                    ("PreemptionByScheduler", "PreemptionByScheduler", "EvictionByEvictionAPI")
                )
                pod["status"]["conditions"] = [
                    {"type": "DisruptionTarget", "status": "True", "reason": reason}
                ]
        return pod

    def any_pod(self, name: str, priority: int) -> dict[str, Any]:
        rng = self.rng
        metadata: dict[str, Any] = {"name": name, "namespace": rng.choice(("default", "default", "other"))}
        if rng.random() < 0.85:
            metadata["labels"] = {"app": rng.choice(APPS)}
        spec = self.spec(priority)
        if self.on("existing_anti_affinity", 0.3):
            spec["affinity"] = {"podAntiAffinity": self.terms()}
        return {"metadata": metadata, "spec": spec}

    def nominated(self, i: int, node: dict[str, Any]) -> dict[str, Any]:
        pod = self.any_pod(f"nominated-{i}", self.rng.choice((10, 50, 50, 60)))
        pod["status"] = {"nominatedNodeName": node["metadata"]["name"]}
        return pod

    def terms(self) -> dict[str, Any]:
        term = {
            "labelSelector": {"matchLabels": {"app": self.rng.choice(APPS)}},
            "topologyKey": self.rng.choice((HOST, ZONE)),
        }
        return {"requiredDuringSchedulingIgnoredDuringExecution": [term]}

    def incoming(self, nodes: list[dict[str, Any]]) -> dict[str, Any]:
        rng = self.rng
        pod = self.any_pod("incoming", OWN_PRIORITY)
        pod["metadata"]["namespace"] = "default"
        requests = pod["spec"]["containers"][0]["resources"]["requests"]
        requests["cpu"] = rng.choice(("500m", "900m", "1", "1500m", "2", "3"))
        if self.on("taints", 0.5):
            pod["spec"]["tolerations"] = [{"key": "spot", "operator": "Exists"}]
        affinity = pod["spec"].setdefault("affinity", {})
        if "anti_affinity" in self.features:
            affinity["podAntiAffinity"] = self.terms()
        if "affinity" in self.features:
            affinity["podAffinity"] = self.terms()
        if "spread" in self.features:
            pod["spec"]["topologySpreadConstraints"] = [self.constraint() for _ in range(rng.randint(1, 2))]
        if self.on("restricted", 0.8):
            field = {
                "key": "metadata.name",
                "operator": "In",
                "values": [rng.choice(nodes)["metadata"]["name"]],
            }
            required = {"nodeSelectorTerms": [{"matchFields": [field]}]}
            affinity["nodeAffinity"] = {"requiredDuringSchedulingIgnoredDuringExecution": required}
        if self.on("never"):
            pod["spec"]["preemptionPolicy"] = "Never"
        if self.on("own_nomination"):
            pod["status"] = {"nominatedNodeName": rng.choice(nodes)["metadata"]["name"]}
        return pod

    def constraint(self) -> dict[str, Any]:
        found = {
            "maxSkew": self.rng.choice((1, 1, 2)),
            "topologyKey": self.rng.choice((HOST, ZONE)),
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": self.rng.choice(APPS)}},
        }
        if self.rng.random() < 0.2:
            found["minDomains"] = self.rng.randint(1, 3)
        if self.rng.random() < 0.2:
            found["nodeTaintsPolicy"] = "Honor"
        return found

    def budget(self, i: int, pods: list[dict[str, Any]]) -> dict[str, Any]:
        rng = self.rng
        selector = rng.choice(
            (
                {"matchLabels": {"app": rng.choice(APPS)}},
                {"matchLabels": {"app": rng.choice(APPS)}},
                {"matchExpressions": [{"key": "app", "operator": rng.choice(("Exists", "DoesNotExist"))}]},
                {},
                None,
            )
        )
        status: dict[str, Any] = {"disruptionsAllowed": rng.choice((0, 0, 1, 2))}
        if pods and rng.random() < 0.3:
            name = rng.choice(pods)["metadata"]["name"]
            status["disruptedPods"] = {name: "2026-01-01T00:00:00Z"}
        return {
            "metadata": {"name": f"budget-{i}", "namespace": rng.choice(("default", "default", "other"))},
            "spec": {} if selector is None else {"selector": selector},
            "status": status,
        }


FEATURES = {
    "gpu": 0.15,
    "taints": 0.3,
    "ports": 0.2,
    "volumes": 0.2,
    "claims": 0.2,
    "terminating": 0.25,
    "existing_anti_affinity": 0.25,
    "anti_affinity": 0.2,
    "affinity": 0.1,
    "spread": 0.3,
    "nominated": 0.3,
    "own_nomination": 0.25,
    "restricted": 0.1,
    "never": 0.03,
    "budgets": 0.5,
    "doubled": 0.15,
}


def _copy(item: dict[str, Any], prefix: str) -> dict[str, Any]:
    """Return a pod or node under another name, on another node, so that two nodes tie."""
    copy: dict[str, Any] = json.loads(json.dumps(item))
    metadata, spec = copy["metadata"], copy["spec"]
    metadata["name"] = prefix + metadata["name"]
    if HOST in metadata.get("labels", {}):
        metadata["labels"][HOST] = metadata["name"]
    if "nodeName" in spec:
        spec["nodeName"] = prefix + spec["nodeName"]
    return copy


def _claim(i: int) -> dict[str, Any]:
    return {"accessModes": [ONE_POD if i == 0 else "ReadWriteMany"], "volumeName": f"pv-{i}"}


def _volume(i: int) -> dict[str, Any]:
    return {
        "accessModes": [ONE_POD if i == 0 else "ReadWriteMany"],
        "capacity": {"storage": "1Gi"},
        "csi": {"driver": "csi.example.com", "volumeHandle": f"handle-{i}"},
        "claimRef": {"name": f"claim-{i}", "namespace": "default"},
    }
