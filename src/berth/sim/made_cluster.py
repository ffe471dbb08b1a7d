"""The objects of a workload file at one size: nodes, services, and pods as templates with an order.

Everything follows from file, size and seed. Knows nothing of Berth's cluster: another scheduler can be given the same.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from random import Random

import numpy as np
from numpy.typing import NDArray

from berth.sim.recipe import HOSTNAME, ZONE, JsonObject
from berth.sim.workload_files import EACH, CreateNodes, CreatePods, Placed, Size, WorkloadFile

SEED = 1


@dataclass(frozen=True, slots=True)
class PodStream:
    """Pods that come one after another.

    Attributes
    ----------
    templates : list of Pod
        Complete but for the name.
    order : int32[n_pods]
        The template of each pod.
    n_extra : int
        How many of them come besides those that the size counts; they are of the last template.
    """

    templates: list[JsonObject]
    order: NDArray[np.int32]
    placed: Placed
    n_extra: int = 0

    def n_counted(self, n: int) -> int:
        """Return how many of the first ``n`` count."""
        first = self.order[:n]
        return len(first) - (int((first == len(self.templates) - 1).sum()) if self.n_extra else 0)


@dataclass(frozen=True, slots=True)
class MadeCluster:
    """What a workload is measured with. Existing pod i of a stream placed in turn is on node i modulo the nodes."""

    file: WorkloadFile
    size: Size

    def nodes(self) -> Iterator[JsonObject]:
        """Yield the nodes."""
        width = len(str(max(self.size.nodes - 1, 0)))
        for i in range(self.size.nodes):
            yield _node(self.file.nodes, i, f"node-{i:0{width}d}")

    def existing(self) -> list[PodStream]:
        """Return the pods that are there before anything is measured, an item an operation."""
        creates = [create for create in self.file.pods if not create.measured]
        share, left = divmod(self.size.existing, max(len(creates), 1))
        return [_stream(create, share + (i < left), self._seed(i)) for i, create in enumerate(creates)]

    def measured(self) -> PodStream:
        """Return the pods that are measured."""
        return _stream(self.file.pods[-1], self.size.pods, self._seed(-1))

    def services(self) -> list[JsonObject]:
        """Return a Service for each app of those that are to have one."""
        found: dict[tuple[str, str], JsonObject] = {}
        for create in self.file.pods:
            if create.has_service:
                n = self.size.pods if create.measured else self.size.existing
                for template in _templates(create, n):
                    service = _service(template)
                    found[service["metadata"]["namespace"], service["metadata"]["name"]] = service
        return list(found.values())

    def namespaces(self) -> list[JsonObject]:
        """Return the namespaces that pods are in."""
        names = sorted({create.namespace for create in self.file.pods})
        labels = "kubernetes.io/metadata.name"
        return [
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {labels: name}}}
            for name in names
        ]

    def _seed(self, i: int) -> list[int]:
        return [SEED, i + 1]


def _node(create: CreateNodes, i: int, name: str) -> JsonObject:
    labels = {HOSTNAME: name}
    step = 1
    for key, values in create.labels.items():
        labels[key] = values[i // step % len(values)]
        step *= len(values)
    meta = create.template.get("metadata") or {}
    node = create.template | {
        "apiVersion": "v1",
        "metadata": {**meta, "name": name, "labels": {**(meta.get("labels") or {}), **labels}},
    }
    taints = [rule.taint for rule in create.taints if i % rule.every == rule.first]
    if taints:
        node["spec"] = {**(node.get("spec") or {}), "taints": taints}
    return node


def _stream(create: CreatePods, n: int, seed: list[int]) -> PodStream:
    templates = _templates(create, n)
    draw = np.random.default_rng(seed)
    if create.n_shapes == EACH:
        order = np.arange(n)
    elif create.order == "runs":
        order = np.arange(n) * len(templates) // max(n, 1)
    else:
        order = draw.integers(len(templates), size=n)
    n_extra = 0
    if create.churn:
        after = np.arange(create.churn.every, n + 1, create.churn.every)
        n_extra = len(after)
        order = np.insert(order, after, len(templates))
        templates = [*templates, _in_namespace(create.churn.template, create.namespace)]
    return PodStream(templates, order.astype(np.int32), create.placed, n_extra)


def _templates(create: CreatePods, n: int) -> list[JsonObject]:
    if create.template is not None:
        return [_in_namespace(create.template, create.namespace)]
    random = Random(f"shapes {SEED}")
    n_shapes = n if create.n_shapes == EACH else create.n_shapes
    return [_in_namespace(_shape(random, i), create.namespace) for i in range(n_shapes)]


def _in_namespace(template: JsonObject, namespace: str) -> JsonObject:
    meta = template.get("metadata") or {}
    return template | {"apiVersion": "v1", "metadata": {**meta, "namespace": namespace}}


def _service(template: JsonObject) -> JsonObject:
    meta = template["metadata"]
    name = "-".join(["s", *sorted(str(value) for value in meta["labels"].values())])
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": meta["namespace"]},
        "spec": {"selector": meta["labels"]},
    }


def _shape(random: Random, i: int) -> JsonObject:
    """Draw a pod: a third has a node selector, two fifths tolerate a taint, a half prefers some nodes."""
    requests = {"cpu": f"{50 * random.randint(1, 30)}m", "memory": f"{64 * random.randint(1, 48)}Mi"}
    spec: JsonObject = {"containers": [{"name": "c", "image": "x:1", "resources": {"requests": requests}}]}
    match random.randrange(6):
        case 0:
            spec["nodeSelector"] = {"disk": "ssd"}
        case 1:
            spec["nodeSelector"] = {"pool": f"pool-{random.randrange(5)}"}
    match random.randrange(5):
        case 0:
            tolerated = {"key": "dedicated", "operator": "Equal", "value": "batch", "effect": "NoSchedule"}
            spec["tolerations"] = [tolerated]
        case 1:
            spec["tolerations"] = [{"key": "spot", "operator": "Exists"}]
    if random.random() < 0.5:
        terms = [_preferred(random, ZONE, f"zone-{random.randrange(3)}")]
        if random.random() < 0.5:
            terms.append(_preferred(random, "disk", "ssd"))
        spec["affinity"] = {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": terms}}
    return {"kind": "Pod", "metadata": {"labels": {"app": f"x-{i}"}}, "spec": spec}


def _preferred(random: Random, key: str, value: str) -> JsonObject:
    expression = {"key": key, "operator": "In", "values": [value]}
    return {"weight": random.randint(1, 100), "preference": {"matchExpressions": [expression]}}
