"""What a cluster's columns must say, counted from scratch in plain Python."""

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from berth.cluster.arrays import NONE
from berth.cluster.cluster import Cluster


@dataclass
class ModelPod:
    """A pod of the model; ``node`` may be one that is not known, or empty."""

    node: str
    requests: dict[str, int]
    nonzero: tuple[int, int]
    ports: tuple[int, ...]
    has_affinity: bool
    counts: bool


def node_state(cluster: Cluster, row: int) -> dict[str, Any]:
    """All that the cluster has counted up for one node."""
    ports = Counter(
        {
            port: int(by_ip[ip].values[row])
            for (_, port), by_ip in cluster.host_ports._counts.items()
            for ip in by_ip
            if row < by_ip[ip].size and by_ip[ip].values[row]
        }
    )
    return {
        "requested": {name: amount for name, amount in cluster.requested.get(row).items() if amount},
        "nonzero": (int(cluster.nonzero_milli_cpu[row]), int(cluster.nonzero_memory[row])),
        "ports": dict(ports),
    }


def wanted_node_state(pods: list[ModelPod]) -> dict[str, Any]:
    requested: Counter[str] = Counter()
    ports: Counter[int] = Counter()
    for pod in pods:
        requested.update(pod.requests)
        requested["pods"] += 1
        ports.update(pod.ports)
    return {
        "requested": {name: amount for name, amount in requested.items() if amount},
        "nonzero": (sum(p.nonzero[0] for p in pods), sum(p.nonzero[1] for p in pods)),
        "ports": dict(ports),
    }


def columns_of(cluster: Cluster) -> dict[str, Any]:
    """All that a cluster holds by names alone, whatever its row numbers and ids are."""
    pods, nodes = cluster.pods, cluster.nodes
    alive = np.flatnonzero(pods.alive).tolist()
    pod_rows = []
    for pod in alive:
        values = pods.get(pod)
        row = int(pods.node_row[pod])
        pod_rows.append(
            (
                cluster.namespaces.items[values.namespace_id],
                values.name,
                values.uid,
                cluster.specs.key(values.spec_id),
                tuple(sorted(cluster.label_sets.get(values.labels_id).items())),
                cluster.owner_sets.items[values.owner_id],
                pods.node_names.items[values.node_name_id] if values.node_name_id != NONE else None,
                nodes.names[row] if row != NONE else None,
                values.phase,
                values.ready,
                values.terminating,
                values.created,
                values.ready_since,
                values.deletion_cost,
                values.restarts,
            )
        )
    by_node = {}
    for row in np.flatnonzero(nodes.alive).tolist():
        node = nodes.get(row)
        by_node[nodes.names[row]] = (node, node_state(cluster, row), float(cluster.load_delta[row]))
    affinity = sorted(
        (cluster.specs.key(spec_id), sorted(pods.names[pod] for pod in members))
        for spec_id, members in cluster.affinity_pods.items()
        if members
    )
    return {
        "pods": sorted(pod_rows, key=repr),
        "found": sorted(
            name for (_, name), pod in pods._id_of.items() if pods.alive[pod] and pods.names[pod] == name
        ),
        "nodes": by_node,
        "n_homeless": cluster.n_homeless,
        "affinity": affinity,
        "objects": {
            kind: {(i.metadata.namespace, i.metadata.name): i for i in shelf.all()}
            for kind, shelf in cluster.objects.by_kind().items()
        },
    }
