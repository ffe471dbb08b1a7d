"""Rarer things that happen to cases, drawn from a stream of their own: what the features draw stays as it is.

Used by cases.py with --odd; each case suffers about a third of them.
"""

import json
import random

AVOID = "scheduler.alpha.kubernetes.io/preferAvoidPods"
IMAGES = (
    "registry.local/web:1",
    "registry.local:5000/web",
    "registry.local:5000/web:1",
    "registry.local:5000/web:latest",
    "web",
    "web:latest",
    "library/web",
    "registry.local/web@sha256:00000000",
    "db:3",
    "db:3.1",
    "",
)
LABELS = ("disk", "gpu", "rank", "absent", "kubernetes.io/hostname")
RESOURCES = (
    "example.com/gpu",
    "hugepages-2Mi",
    "alpha.kubernetes.io/nvidia-gpu",
    "kubernetes.io/thing",
    "ephemeral-storage",
    "storage",
    "pods",
    "cpu",
    "memory",
)
SIZES = (0, 1, 23 << 20, 300 << 20, 999 << 20, 2 << 30)
SHAPES = (
    [(0, 10), (100, 0)],
    [(50, 7)],
    [(0, 0), (30, 10), (31, 0), (100, 10)],
    [(10, 9), (97, 2)],
    [(1, 1), (2, 10), (99, 3)],
)
CONTROLLERS = (
    ("ReplicationController", "uid-rc-web"),
    ("ReplicaSet", "uid-rs-api"),
    ("StatefulSet", "uid-ss-db"),
)


class Oddities:
    """Makes one case odd."""

    def __init__(self, seed: str, case: dict, minor: int):
        self.rng = random.Random(seed)
        self.case = case
        self.minor = minor

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def some(self, items, low, high):
        return self.rng.sample(list(items), min(len(items), self.rng.randint(low, high)))

    def apply(self) -> None:
        makers = [
            self.images,
            self.avoidance,
            self.ratio,
            self.limits,
            self.selectors,
            self.gates,
            self.conditions,
            self.name,
            self.labels,
            self.resources,
            self.claims,
            self.terms,
            self.taints,
            self.owner,
        ]
        for make in self.rng.sample(makers, self.rng.randint(2, 6)):
            make()

    @property
    def containers(self) -> list:
        pods = [self.case["pod"], *self.case["pods"]]
        return [
            c for pod in pods for kind in ("containers", "initContainers") for c in pod["spec"].get(kind, [])
        ]

    def images(self) -> None:
        for node in self.case["nodes"]:
            node["status"]["images"] = [
                {"names": self.some(IMAGES, 1, 4), "sizeBytes": self.rng.choice(SIZES)}
                for _ in range(self.rng.randint(0, 5))
            ]
        for container in self.case["pod"]["spec"]["containers"]:
            container["image"] = self.rng.choice(IMAGES)

    def avoidance(self) -> None:
        def entry(**controller):
            return {"podSignature": {"podController": controller}}

        web, api = (
            {"kind": "ReplicationController", "uid": "uid-rc-web"},
            {"kind": "ReplicaSet", "uid": "uid-rs-api"},
        )
        texts = [
            "",
            "{",
            "null",
            "[]",
            "{}",
            "7",
            '{"preferAvoidPods": null}',
            '{"preferAvoidPods": {}}',
            json.dumps({"PREFERAVOIDPODS": [{"PodSignature": {"podcontroller": web}}]}),
        ]
        lists = (
            [entry(**web), entry(**api)],
            [entry(**web, controller=False)],
            [entry(kind="ReplicaSet", uid="uid-rc-web")],
            [entry(**web) | {"evictionTime": "2026-01-01T00:00:00Z"}],
            [entry(**api, controller="yes")],
            [entry(**api), {"reason": 7}],
            [entry(kind="StatefulSet", uid="uid-ss-db"), entry(**api, unknown=[1])],
        )
        texts += [json.dumps({"preferAvoidPods": entries, "more": 1}) for entries in lists]
        for node in self.case["nodes"]:
            node["metadata"]["annotations"] = {AVOID: self.rng.choice(texts), "other": "x"}
        self.owner()

    def owner(self) -> None:
        kind, uid = self.rng.choice(CONTROLLERS)
        self.case["pod"]["metadata"]["ownerReferences"] = [
            {"apiVersion": "v1", "kind": "Job", "name": "first", "uid": "uid-job", "controller": False},
            {"apiVersion": "apps/v1", "kind": kind, "name": "x", "uid": uid, "controller": self.chance(0.9)},
        ]

    def ratio(self) -> None:
        if self.minor < 11:
            return
        resources = [{"name": name, "weight": self.rng.randint(1, 5)} for name in self.some(RESOURCES, 0, 4)]
        self.case["options"]["requestedToCapacityRatio"] = {
            "shape": [{"utilization": u, "score": s} for u, s in self.rng.choice(SHAPES)],
            "resources": resources,
        }

    def limits(self) -> None:
        spec = self.case["pod"]["spec"]
        if self.chance(0.5):
            spec["initContainers"] = [{"name": "i", "image": "web", "resources": {}}]
        for container in [*spec["containers"], *spec.get("initContainers", [])]:
            amounts = {"cpu": ("0", "900m", "4", "16", "31"), "memory": ("0", "1Gi", "16Gi", "30G", "60Gi")}
            container["resources"]["limits"] = {
                n: self.rng.choice(amounts[n]) for n in self.some(amounts, 0, 2)
            }

    def selectors(self) -> None:
        def meta(name):
            return {
                "name": name,
                "namespace": self.rng.choice(("default", "default", "prod")),
                "uid": f"uid-{name}",
            }

        plain = ({}, None, {"app": "web"}, {"app": "web", "tier": "front"}, {"tier": "back"}, {"app": "db"})
        label = (
            None,
            {},
            {"matchLabels": {"app": "web"}},
            {"matchExpressions": [{"key": "app", "operator": "Exists"}]},
            {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["back"]}]},
            {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]},
            {"matchLabels": {"tier": "front"}},
        )

        def named(kind, n, choices):
            return [
                {
                    "kind": kind,
                    "metadata": meta(f"{kind.lower()}-{i}"),
                    "spec": {"selector": self.rng.choice(choices)},
                }
                for i in range(self.rng.randint(0, n))
            ]

        self.case["services"] = named("Service", 3, plain)
        self.case["replicationControllers"] = named("ReplicationController", 2, plain)
        self.case["replicaSets"] = named("ReplicaSet", 2, label)
        self.case["statefulSets"] = named("StatefulSet", 2, label)
        for pod in self.case["pods"]:
            if self.chance(0.1):
                pod["metadata"]["labels"] = {}

    def gates(self) -> None:
        gates = {
            10: ["TaintNodesByCondition"],
            13: ["TaintNodesByCondition"],
            17: ["EvenPodsSpread", "ResourceLimitsPriorityFunction"],
        }.get(self.minor, [])
        self.case["options"]["featureGates"] = {gate: self.chance(0.5) for gate in gates}

    def conditions(self) -> None:
        kinds = (
            "Ready",
            "OutOfDisk",
            "NetworkUnavailable",
            "MemoryPressure",
            "DiskPressure",
            "PIDPressure",
            "Odd",
        )
        for node in self.case["nodes"]:
            if self.chance(0.5):
                node["status"]["conditions"] = [
                    {
                        "type": self.rng.choice(kinds),
                        "status": self.rng.choice(("True", "False", "False", "Unknown", "")),
                    }
                    for _ in range(self.rng.randint(0, 4))
                ]

    def name(self) -> None:
        self.case["pod"]["spec"]["nodeName"] = self.rng.choice(("node-0", "node-1", "nowhere"))

    def labels(self) -> None:
        options = self.case["options"]
        options["labelsPresence"] = {"labels": self.some(LABELS, 0, 3), "presence": self.chance(0.5)}
        options["labelPreference"] = {"label": self.rng.choice(LABELS), "presence": self.chance(0.5)}

    def resources(self) -> None:
        names = self.some(RESOURCES[:4], 1, 3)
        for node in self.case["nodes"]:
            for name in names:
                if self.chance(0.7):
                    node["status"]["allocatable"][name] = str(self.rng.randint(0, 6))
        for container in self.containers:
            requests = container["resources"].setdefault("requests", {})
            for name in names:
                if self.chance(0.3):
                    requests[name] = str(self.rng.randint(0, 3))

    def claims(self) -> None:
        if self.chance(0.3):
            volumes = self.case["pod"]["spec"].setdefault("volumes", [])
            name = self.rng.choice(("gone", "claim-0", "claim-1"))
            volumes.append({"name": "odd", "persistentVolumeClaim": {"claimName": name}})
        for claim in self.case.get("persistentVolumeClaims", []):
            if self.chance(0.1):
                claim["metadata"]["deletionTimestamp"] = "2026-01-01T01:00:00Z"

    def terms(self) -> None:
        odd = (
            {},
            {"matchExpressions": []},
            {"matchExpressions": [{"key": "rank", "operator": "Gt", "values": ["3", "4"]}]},
            {"matchExpressions": [{"key": "disk", "operator": "In", "values": []}]},
            {"matchExpressions": [{"key": "rank", "operator": "Gt", "values": ["-1"]}]},
            {"matchExpressions": [{"key": "disk", "operator": "Exists", "values": ["ssd"]}]},
            {"matchExpressions": [{"key": "a b", "operator": "Exists"}]},
            {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]},
            {"matchExpressions": [{"key": "rank", "operator": "Lt", "values": ["5"]}]},
        )
        affinity = self.case["pod"]["spec"].setdefault("affinity", {}).setdefault("nodeAffinity", {})
        affinity["requiredDuringSchedulingIgnoredDuringExecution"] = {
            "nodeSelectorTerms": self.some(odd, 0, 3)
        }
        if self.chance(0.5):
            # Those that can't be read make a priority fail, over which releases up to 1.13 may crash.
            terms = self.some(odd if self.minor > 13 and self.chance(0.2) else odd[7:], 1, 2)
            affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
                {"weight": self.rng.choice((0, 1, 50)), "preference": term} for term in terms
            ]

    def taints(self) -> None:
        for node in self.case["nodes"]:
            if self.chance(0.5):
                node["spec"]["taints"] = [
                    {
                        "key": self.rng.choice(("a", "b", "")),
                        "value": self.rng.choice(("", "x")),
                        "effect": self.rng.choice(("NoSchedule", "NoExecute", "PreferNoSchedule", "Odd", "")),
                    }
                    for _ in range(self.rng.randint(1, 3))
                ]
            if self.chance(0.2):
                node["spec"]["unschedulable"] = True
        self.case["pod"]["spec"]["tolerations"] = [
            {
                "key": self.rng.choice(("a", "b", "", "node.kubernetes.io/unschedulable")),
                "operator": self.rng.choice(("Equal", "Exists", "", "Odd")),
                "value": self.rng.choice(("", "x")),
                "effect": self.rng.choice(("NoSchedule", "NoExecute", "PreferNoSchedule", "")),
            }
            for _ in range(self.rng.randint(0, 4))
        ]
