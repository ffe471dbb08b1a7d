from pathlib import Path

import msgspec
import numpy as np
import pytest

from berth.cluster.cluster import Cluster
from berth.cluster.modern_accounting import ModernAccounting
from berth.sources.checks import SnapshotError
from berth.sources.snapshot import load_snapshot
from berth.sources.writer import cluster_objects, load_objects, pod_object, write_snapshot


def nodes_by_name(cluster: Cluster) -> dict[str, object]:
    """All that is kept of nodes and of what lies on them, free of ids."""
    rows = {cluster.nodes.names[row]: row for row in np.flatnonzero(cluster.nodes.alive).tolist()}
    return {
        name: (
            cluster.nodes.get(row),
            cluster.requested.get(row),
            int(cluster.nonzero_milli_cpu[row]),
            int(cluster.nonzero_memory[row]),
        )
        for name, row in rows.items()
    }


def pods_by_name(cluster: Cluster) -> dict[tuple[str, str], object]:
    """All that is kept of pods, free of ids."""
    labels = cluster.label_sets.all()
    pods: dict[tuple[str, str], object] = {}
    for pod in np.flatnonzero(cluster.pods.alive).tolist():
        values = cluster.pods.get(pod)
        name = cluster.namespaces.items[values.namespace_id], values.name
        row = int(cluster.pods.node_row[pod])
        pods[name] = (
            values.uid,
            cluster.specs.key(values.spec_id),
            labels[values.labels_id],
            cluster.owner_sets.items[values.owner_id],
            cluster.pods.node_names.items[values.node_name_id] if values.node_name_id >= 0 else None,
            cluster.nodes.names[row] if row >= 0 else None,
            (values.phase, values.ready, values.terminating, values.created, values.ready_since),
            (values.deletion_cost, values.restarts, values.started, values.preempted),
        )
    return pods


def equal(left: Cluster, right: Cluster) -> None:
    assert nodes_by_name(left) == nodes_by_name(right)
    assert pods_by_name(left) == pods_by_name(right)
    for kind, shelf in left.objects.by_kind().items():
        assert shelf.all() == right.objects.by_kind()[kind].all(), kind
    assert left.n_homeless == right.n_homeless


NODE = """
apiVersion: v1
kind: Node
metadata:
  name: n1
  labels: {zone: a}
  annotations: {other: dropped, scheduler.alpha.kubernetes.io/preferAvoidPods: "{}"}
spec: {unschedulable: true, taints: [{key: spot, value: "yes", effect: NoSchedule}]}
status:
  allocatable: {cpu: 3900m, memory: 7Gi, pods: 110, example.com/gpu: 2, ephemeral-storage: 10G}
  conditions: [{type: Ready, status: "True"}]
  images: [{names: [example/web:1], sizeBytes: 5}]
"""
PODS = """
apiVersion: v1
kind: Pod
metadata:
  name: web-1
  namespace: shop
  uid: u1
  labels: {app: web}
  creationTimestamp: 2025-11-05T10:15:00Z
  annotations: {controller.kubernetes.io/pod-deletion-cost: "-7"}
  ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: web, uid: r1, controller: true}]
spec:
  nodeName: n1
  containers: [{name: c, image: "example/web:1", resources: {requests: {cpu: 100m}}, ports: [{hostPort: 80}]}]
status:
  phase: Running
  conditions:
  - {type: Ready, status: "True", lastTransitionTime: 2025-11-05T10:16:00Z}
  - {type: DisruptionTarget, status: "True", reason: PreemptionByScheduler}
  containerStatuses: [{restartCount: 3}]
  startTime: 2025-11-05T10:15:30Z
---
apiVersion: v1
kind: Pod
metadata: {name: web-2, namespace: shop, deletionTimestamp: 2025-11-05T10:15:00Z}
spec: {nodeName: gone, containers: [{name: c}]}
status: {phase: Succeeded, conditions: [{type: Ready, status: "False"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-3}
spec: {containers: [{name: c}]}
"""
OTHERS = """
apiVersion: v1
kind: Service
metadata: {name: web, namespace: shop}
spec: {selector: {app: web}}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec: {replicas: 2, selector: {matchLabels: {app: db}}, template: {spec: {containers: [{name: c}]}}}
---
apiVersion: storage.k8s.io/v1
kind: StorageClass
metadata: {name: fast}
provisioner: example.com/fast
volumeBindingMode: WaitForFirstConsumer
"""


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    file = tmp_path / "cluster.yaml"
    file.write_text("\n---\n".join((PODS, NODE, OTHERS)))
    return load_snapshot([file]).cluster


def test_a_written_cluster_loads_as_an_equal_one(cluster: Cluster, tmp_path: Path) -> None:
    with (tmp_path / "again.json").open("wb") as file:
        assert write_snapshot(cluster, file) == 7
    again = load_snapshot([tmp_path / "again.json"]).cluster
    equal(cluster, again)
    assert again.nodes.meta(0).annotations == {"scheduler.alpha.kubernetes.io/preferAvoidPods": "{}"}


def test_rows_of_a_database_load_as_an_equal_one(cluster: Cluster) -> None:
    rows = list(cluster_objects(cluster))
    assert [row[:3] for row in rows][-3:] == [
        ("Pod", "shop", "web-1"),
        ("Pod", "shop", "web-2"),
        ("Pod", "default", "web-3"),
    ]
    equal(cluster, load_objects(rows))


RESIZED = """
apiVersion: v1
kind: Pod
metadata: {name: web-1, namespace: shop}
spec:
  nodeName: n1
  containers: [{name: c, resources: {requests: {cpu: 100m}}}, {name: d}]
  initContainers: [{name: i, restartPolicy: Always, resources: {requests: {cpu: 100m}}}]
  resources: {requests: {memory: 1Gi}}
status:
  phase: Running
  conditions: [{type: Ready, status: "True"}, {type: PodResizePending, status: "True", reason: Infeasible}]
  containerStatuses:
  - {name: c, restartCount: 2, resources: {requests: {cpu: 300m}}, allocatedResources: {cpu: 500m}}
  - {name: d, restartCount: 1}
  initContainerStatuses: [{name: i, resources: {requests: {cpu: 700m}}}]
  resources: {requests: {memory: 2Gi}}
  allocatedResources: {memory: 3Gi}
"""


def test_what_the_status_says_of_resources_is_kept_where_the_release_reads_it(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("\n---\n".join((RESIZED, NODE)))
    cluster = load_snapshot([tmp_path / "cluster.yaml"], Cluster(ModernAccounting())).cluster
    assert cluster.requested.of(0).tolist() == [500 + 700]
    assert cluster.requested.of(1).tolist() == [3 << 30]
    rows = list(cluster_objects(cluster))
    equal(cluster, load_objects(rows, Cluster(ModernAccounting())))
    pod = msgspec.json.decode(rows[-1][3])
    assert "resizing" not in pod["spec"]
    assert [status["name"] for status in pod["status"]["initContainerStatuses"]] == ["i"]
    assert load_objects(rows).requested.of(0).tolist() == [100]


def test_pods_that_are_only_planned_are_left_out(cluster: Cluster) -> None:
    pod = cluster.pods.find(cluster.namespaces.id("shop"), "web-1")
    values = cluster.pods.get(pod)
    values.name = ""
    cluster.add_pod(values)
    assert sum(row[0] == "Pod" for row in cluster_objects(cluster)) == 3


def test_a_hole_in_the_tables_is_left_out(cluster: Cluster) -> None:
    cluster.remove_pod(0)
    cluster.remove_node("n1")
    equal(cluster, load_objects(cluster_objects(cluster)))


def test_a_single_pod(cluster: Cluster) -> None:
    pod = cluster.pods.find(cluster.namespaces.id("shop"), "web-1")
    item = msgspec.json.decode(pod_object(cluster, pod))
    assert item["metadata"]["name"] == "web-1"
    assert item["metadata"]["creationTimestamp"] == "2025-11-05T10:15:00Z"
    assert item["spec"]["nodeName"] == "n1"


def test_broken_rows_are_told() -> None:
    with pytest.raises(SnapshotError, match=r"saved state: Pod shop/a: spec\.containers"):
        load_objects(
            [("Pod", "shop", "a", b'{"kind":"Pod","metadata":{"name":"a","namespace":"shop"},"spec":{}}')]
        )


@pytest.mark.parametrize("name", ["openshift-aws", "kurl-support-bundle"])
def test_a_real_cluster_written_and_loaded_is_equal(name: str, real_snapshots: Path, tmp_path: Path) -> None:
    cluster = load_snapshot([real_snapshots / name]).cluster
    with (tmp_path / "again").open("wb") as file:
        write_snapshot(cluster, file)
    equal(cluster, load_snapshot([tmp_path / "again"]).cluster)
    equal(cluster, load_objects(cluster_objects(cluster)))
