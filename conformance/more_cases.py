"""What cases.py does not draw: odd storage, migrated volumes, volumes of one pod alone, spread constraints by own labels.

Each feature is drawn from a random stream of its own and changes a finished case, so that the cases of a seed stay as they
are without it. A feature is drawn only where --features names it.
"""

import hashlib
import random
from typing import Any

FEATURES = (
    "odd_storage",
    "capacities",
    "migration",
    "attachments",
    "ephemeral",
    "read_write_once_pod",
    "spread_more",
    "service_more",
)
Json = dict[str, Any]
EBS, PD, OTHER = "ebs.csi.aws.com", "pd.csi.storage.gke.io", "a.rather.long.name.of.a.driver.example.com"
DRIVERS = (EBS, PD, "disk.csi.azure.com", "cinder.csi.openstack.org", OTHER)
IN_TREE = tuple(f"kubernetes.io/{name}" for name in ("aws-ebs", "gce-pd", "azure-disk", "cinder"))
GATES = ("CSIMigrationAWS", "CSIMigrationGCE", "CSIMigrationAzureDisk", "CSIMigrationOpenStack")
LIMIT_KEYS = (
    "attachable-volumes-aws-ebs", "attachable-volumes-gce-pd", "attachable-volumes-azure-disk",
    "attachable-volumes-cinder", *(f"attachable-volumes-csi-{driver}" for driver in DRIVERS[:4]),
    f"attachable-volumes-csi-{OTHER[:23]}{hashlib.sha1(OTHER.encode(), usedforsecurity=False).hexdigest()[:16]}",
)  # fmt: skip
OLD_ZONE, NEW_ZONE = "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"


class More:
    """Changes cases."""

    def __init__(self, seed: int, release: str, features: tuple[str, ...]) -> None:
        self.rng = random.Random(f"{seed}/{release}/more")
        self.minor = int(release.split(".")[1])
        self.features = [name for name in FEATURES if name in features]

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def pick(self, *items: Any) -> Any:
        return self.rng.choice(items)

    def some(self, items: Any, low: int, high: int) -> list[Any]:
        items = list(items)
        return self.rng.sample(items, min(len(items), self.rng.randint(low, high)))

    def change(self, case: Json) -> None:
        """Change a case."""
        for name in self.features:
            if self.chance(0.75):
                case["features"].append(name)
                getattr(self, name)(case)

    # -- storage ---------------------------------------------------------------------------------------------------

    def odd_storage(self, case: Json) -> None:
        classes = case.setdefault("storageClasses", [])
        for driver in (*IN_TREE[:2], OTHER):
            classes.append({
                "metadata": {"name": driver.rpartition("/")[2]}, "provisioner": driver,
                "volumeBindingMode": "WaitForFirstConsumer",
            })  # fmt: skip
        volumes = case.setdefault("persistentVolumes", [])
        claims = case.setdefault("persistentVolumeClaims", [])
        start = len(claims)
        for k in range(start, start + self.rng.randint(1, 5)):
            name, namespace = f"odd-{k}", self.pick("default", "default", "prod")
            class_name = self.pick("fast", "aws-ebs", "gce-pd", OTHER, "gone", "")
            spec: Json = {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": f"{k + 20}Gi"}},
            }
            meta: Json = {"name": name, "namespace": namespace, "uid": f"uid-{name}"}
            if self.chance(0.1):
                meta["annotations"] = {"volume.beta.kubernetes.io/storage-class": class_name}
            elif class_name or self.chance(0.5):
                spec["storageClassName"] = class_name
            if self.chance(0.8):
                spec["volumeName"] = f"pv-{name}"
                meta.setdefault("annotations", {})["pv.kubernetes.io/bind-completed"] = "yes"
                if self.chance(0.85):
                    volumes.append(self.volume(f"pv-{name}", k, spec.get("storageClassName", "")))
            claims.append({"metadata": meta, "spec": spec, "status": {"phase": "Bound"}})
        everywhere = [c["metadata"] for c in claims]
        for pod in (*case["pods"], case["pod"]):
            if self.chance(0.5):
                self.mount(pod, everywhere, incoming=pod is case["pod"])
        self.limits(case)

    def volume(self, name: str, k: int, class_name: str) -> Json:
        handle = f"vol-{self.rng.randint(1, 5)}"
        source: Json = self.pick(
            {"csi": {"driver": self.pick(*DRIVERS), "volumeHandle": handle}},
            {"csi": {"driver": self.pick(*DRIVERS), "volumeHandle": self.pick(handle, "cin-1", "/az-1", "")}},
            {"awsElasticBlockStore": {"volumeID": self.pick(handle, f"aws://zone-a/{handle}", "aws://zone-a/x")}},
            {"gcePersistentDisk": {"pdName": f"pd-{self.rng.randint(1, 3)}"}},
            {"azureDisk": {"diskName": "az-1", "diskURI": f"/az-{self.rng.randint(1, 2)}",
                           "kind": self.pick("Managed", "Dedicated")}},
            {"cinder": {"volumeID": f"cin-{self.rng.randint(1, 3)}"}},
        )  # fmt: skip
        labels = {}
        if self.chance(0.3):
            zones = self.pick(
                "zone-a", "zone-b", "us-east-a__us-east-b", "us-east-a__us-west-b", "zone-a__zone-b", ""
            )
            labels[self.pick(OLD_ZONE, NEW_ZONE)] = zones
        return {
            "metadata": {"name": name, "labels": labels},
            "spec": source | {"capacity": {"storage": f"{k + 20}Gi"}, "accessModes": ["ReadWriteOnce"],
                              "storageClassName": class_name},
            "status": {"phase": "Bound"},
        }  # fmt: skip

    def mount(self, pod: Json, claims: list[Json], *, incoming: bool) -> None:
        own = [c["name"] for c in claims if c.get("namespace") == pod["metadata"]["namespace"]]
        names = self.some(own, 0, 3)
        if self.chance(0.05 if incoming else 0.15):
            names.append("missing")
        if self.chance(0.01):
            names.append("")
        if names and self.chance(0.1):
            names.append(names[0])
        mounted = pod["spec"].setdefault("volumes", [])
        mounted += [
            {"name": f"o{i}", "persistentVolumeClaim": {"claimName": name}} for i, name in enumerate(names)
        ]
        if self.chance(0.05):
            mounted.append(
                {"name": "e", "awsElasticBlockStore": {"volumeID": self.pick("aws://a/vol-1", "aws://a/x")}}
            )

    def limits(self, case: Json) -> None:
        has_node = {node["metadata"]["name"] for node in case.setdefault("csiNodes", [])}
        for node in case["nodes"]:
            labels, name = node["metadata"]["labels"], node["metadata"]["name"]
            if self.chance(0.3):
                kind = self.pick("m5.large", "c5d.xlarge", "m4.large", "t3.micro", "at3x", "z1d.large", "")
                labels[self.pick("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type")] = (
                    kind
                )
            if self.minor < 22 and self.chance(0.5):
                for key in self.some(LIMIT_KEYS, 1, 4):
                    node["status"]["allocatable"][key] = str(self.pick(0, 1, 1, 2, 3))
            if name not in has_node and self.chance(0.7):
                case["csiNodes"].append({"metadata": {"name": name}, "spec": {"drivers": []}})
        for csi_node in case["csiNodes"]:
            known = {driver["name"] for driver in csi_node["spec"]["drivers"]}
            for driver in self.some([d for d in DRIVERS if d not in known], 0, 3):
                entry: Json = {"name": driver, "nodeID": "x", "topologyKeys": None}
                if self.chance(0.85):
                    entry["allocatable"] = {"count": self.pick(0, 1, 1, 2, 3)} if self.chance(0.9) else {}
                csi_node["spec"]["drivers"].append(entry)

    def capacities(self, case: Json) -> None:
        case["csiDrivers"] = [
            {"metadata": {"name": driver}, "spec": {"storageCapacity": self.chance(0.8)}}
            for driver in (EBS, OTHER)
            if self.chance(0.8)
        ]
        case["csiStorageCapacities"] = [
            {
                "metadata": {"name": f"capacity-{i}", "namespace": "default"},
                "storageClassName": self.pick("fast", "fast", OTHER, "local"),
                "nodeTopology": self.pick(
                    {}, {"matchLabels": {"disk": "ssd"}}, {"matchLabels": {"disk": "hdd"}}
                ),
            }
            | self.pick(
                {"capacity": "3Gi"},
                {"capacity": "40Gi"},
                {"capacity": "40Gi", "maximumVolumeSize": "2Gi"},
                {},
            )
            for i in range(self.rng.randint(0, 4))
        ]
        if case["csiStorageCapacities"] and self.chance(0.1):
            del case["csiStorageCapacities"][0]["nodeTopology"]
        for item in (*case.get("persistentVolumes", ()), *case.get("persistentVolumeClaims", ())):
            if self.chance(0.1):
                item["spec"]["volumeAttributesClassName"] = self.pick("gold", "gold", "silver")
        for claim in case.get("persistentVolumeClaims", ()):
            if self.chance(0.03):
                claim["status"]["phase"] = "Lost"
            elif self.chance(0.03):
                claim["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    def migration(self, case: Json) -> None:
        if self.minor == 17:
            gates = case["options"].setdefault("featureGates", {})
            for gate in self.some(GATES, 1, 4):
                gates[gate] = True
            if self.chance(0.1):
                gates["CSIMigration"] = False
        for csi_node in case.get("csiNodes", ()):
            if self.chance(0.7):
                plugins = ",".join(self.some((*IN_TREE, "kubernetes.io/x"), 0, 4))
                annotations = {"storage.alpha.kubernetes.io/migrated-plugins": plugins}
                csi_node["metadata"].setdefault("annotations", {}).update(annotations)

    def attachments(self, case: Json) -> None:
        volumes = [volume["metadata"]["name"] for volume in case.get("persistentVolumes", ())]
        case["volumeAttachments"] = [
            {"metadata": {"name": f"va-{i}"}, "spec": {
                "attacher": self.pick(*DRIVERS, EBS, EBS, EBS, ""),
                "nodeName": self.pick(*(node["metadata"]["name"] for node in case["nodes"]), "gone"),
                "source": {"persistentVolumeName": self.pick(*volumes, "gone")} if self.chance(0.95) else {}}}
            for i in range(self.rng.randint(1, 2 * len(case["nodes"])))
        ]  # fmt: skip

    def ephemeral(self, case: Json) -> None:
        claims = case.setdefault("persistentVolumeClaims", [])
        volumes = case.setdefault("persistentVolumes", [])
        for pod in (*case["pods"], case["pod"]):
            if not self.chance(0.4):
                continue
            meta = pod["metadata"]
            for i in range(self.rng.randint(1, 2)):
                mounted = pod["spec"].setdefault("volumes", [])
                mounted.insert(
                    self.rng.randint(0, len(mounted)),
                    {"name": f"eph{i}", "ephemeral": {"volumeClaimTemplate": {}}},
                )
                if self.chance(0.1):
                    continue
                name = f"{meta['name']}-eph{i}"
                owner = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "controller": True,
                         "uid": meta["uid"] if self.chance(0.96) else "another"}  # fmt: skip
                claim: Json = {
                    "metadata": {"name": name, "namespace": meta["namespace"], "uid": f"uid-{name}",
                                 "ownerReferences": [owner]},
                    "spec": {"accessModes": ["ReadWriteOnce"], "storageClassName": self.pick("fast", "now", "local"),
                             "resources": {"requests": {"storage": "1Gi"}}},
                    "status": {"phase": "Pending"},
                }  # fmt: skip
                if self.chance(0.7):
                    volumes.append(self.volume(f"pv-{name}", len(volumes), "fast"))
                    claim["spec"]["volumeName"] = f"pv-{name}"
                    claim["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
                claims.append(claim)

    def read_write_once_pod(self, case: Json) -> None:
        claims = case.get("persistentVolumeClaims", ())
        for claim in claims:
            if self.chance(0.5):
                claim["spec"]["accessModes"] = ["ReadWriteOncePod"]
        for pod in (*case["pods"], case["pod"]):
            own = [
                c["metadata"]["name"]
                for c in claims
                if c["metadata"]["namespace"] == pod["metadata"]["namespace"]
            ]
            if self.chance(0.15 if pod is not case["pod"] else 0.8):
                pod["spec"].setdefault("volumes", []).extend(
                    {"name": f"rw{i}", "persistentVolumeClaim": {"claimName": name}}
                    for i, name in enumerate(self.some(own, 1, 2))
                )

    # -- spreading -------------------------------------------------------------------------------------------------

    def spread_more(self, case: Json) -> None:
        for node in case["nodes"]:
            for key in (HOSTNAME, NEW_ZONE):
                if self.chance(0.1):
                    node["metadata"]["labels"].pop(key, None)
        labels = case["pod"]["metadata"]["labels"]
        if self.minor >= 16 and self.chance(0.85):
            keys = self.some((HOSTNAME, NEW_ZONE, "disk", "rank"), 1, 3)
            case["pod"]["spec"]["topologySpreadConstraints"] = [self.constraint(key) for key in keys]
        for pod in case["pods"]:
            if self.chance(0.5):
                pod["metadata"]["labels"] = dict(labels)
                pod["metadata"]["namespace"] = case["pod"]["metadata"]["namespace"]

    def constraint(self, key: str) -> Json:
        selector: Json | None = self.pick(
            {"matchLabels": {"app": self.pick("web", "api", "db")}},
            {"matchExpressions": [{"key": "tier", "operator": self.pick("Exists", "DoesNotExist")}]},
            {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]},
            {}, {}, None,
        )  # fmt: skip
        if self.chance(0.02):
            selector = {"matchExpressions": [{"key": "app", "operator": "In"}]}
        constraint: Json = {
            "maxSkew": self.pick(1, 1, 2, 3, 5), "topologyKey": key,
            "whenUnsatisfiable": self.pick("DoNotSchedule", "ScheduleAnyway"),
        }  # fmt: skip
        if selector is not None:
            constraint["labelSelector"] = selector
        if self.minor >= 30:
            if constraint["whenUnsatisfiable"] == "DoNotSchedule" and self.chance(0.3):
                constraint["minDomains"] = self.rng.randint(1, 5)
            for policy in ("nodeTaintsPolicy", "nodeAffinityPolicy"):
                if self.chance(0.4):
                    constraint[policy] = self.pick("Honor", "Ignore")
            if self.chance(0.3) and selector is not None:
                constraint["matchLabelKeys"] = self.some(("app", "tier", "absent"), 1, 2)
        return constraint

    def service_more(self, case: Json) -> None:
        selector = self.pick(
            {"app": "web"}, {"tier": "front"}, {"app": "api", "tier": "back"}, {}, {"app": "db"}
        )
        name = {"name": "svc-more", "namespace": self.pick("default", "prod")}
        case.setdefault("services", []).insert(0, {"metadata": name, "spec": {"selector": selector}})
        if self.chance(0.2):
            case["services"].append({"metadata": name | {"name": "svc-none"}, "spec": {}})
        if self.minor < 20:
            labels = ("disk", "rank", OLD_ZONE, "absent")
            case["options"]["serviceAffinityLabels"] = self.some(labels, 1, 3)
            case["options"]["serviceAntiAffinityLabel"] = self.pick(*labels)
            if self.chance(0.3):
                case["pod"]["spec"].setdefault("nodeSelector", {})["disk"] = "ssd"
        for pod in case["pods"]:
            if self.chance(0.05):
                pod["spec"]["nodeName"] = "gone"
