import msgspec
import pytest

from berth.cluster.cluster import Cluster
from berth.module.changes import WorkloadName
from berth.module.services import ServiceError, members
from berth.module.templates import (
    Pattern,
    copy_of,
    current_replica_set,
    highest_ordinal,
    next_ordinal,
    ordinal,
    pattern_of,
    stateful_pod,
)
from berth.objects.base import ObjectMeta
from berth.objects.pods import Volume
from berth.objects.workloads import Deployment, ReplicaSet, Workload
from tests.builders import (
    a_cluster,
    a_deployment,
    a_node,
    a_pod,
    a_replica_set,
    a_service,
    a_stateful_set,
    a_template,
    at,
    replica_set_of,
)

WEB = {"app": "web"}
SERVICE = a_service("web")


def pattern(cluster: Cluster, workload: Workload | None = None) -> Pattern:
    return pattern_of(cluster, SERVICE, workload, members(cluster, SERVICE))


def created(replica_set: ReplicaSet, seconds: int) -> ReplicaSet:
    meta = msgspec.structs.replace(replica_set.metadata, creation_timestamp=at(seconds))
    return msgspec.structs.replace(replica_set, metadata=meta)


def with_cpu(deployment: Deployment, cpu: str) -> Deployment:
    template = a_template(deployment.spec.template.metadata.labels, cpu=cpu)
    return msgspec.structs.replace(
        deployment, spec=msgspec.structs.replace(deployment.spec, template=template)
    )


def test_the_current_replica_set_is_the_newest_with_the_deployments_template() -> None:
    deployment = with_cpu(a_deployment("web"), "1")
    sets = [
        created(replica_set_of(deployment, "old"), 10),
        created(replica_set_of(deployment, "new"), 20),
        created(replica_set_of(with_cpu(deployment, "2"), "other"), 30),
        created(a_replica_set("stranger", owner="Deployment/db"), 40),
        created(a_replica_set("bare"), 50),
    ]
    cluster = a_cluster(objects=[deployment, *sets])
    found = current_replica_set(cluster, deployment)
    assert found is not None
    assert found.metadata.name == "web-new"
    # None has the template yet: the newest.
    found = current_replica_set(cluster, with_cpu(deployment, "3"))
    assert found is not None
    assert found.metadata.name == "web-other"
    assert current_replica_set(a_cluster(), deployment) is None


def test_of_equally_new_replica_sets_the_first_by_name() -> None:
    deployment = a_deployment("web")
    cluster = a_cluster(
        objects=[deployment, replica_set_of(deployment, "b"), replica_set_of(deployment, "a")]
    )
    found = current_replica_set(cluster, deployment)
    assert found is not None
    assert found.metadata.name == "web-a"


def test_a_deployments_pod_has_its_template_and_its_replica_sets_hash() -> None:
    deployment = with_cpu(a_deployment("web"), "3")
    owner = replica_set_of(with_cpu(deployment, "1"), "x1")
    made = pattern(a_cluster(objects=[deployment, owner]), deployment)
    assert made.controller == WorkloadName("ReplicaSet", "web-x1")
    assert made.base_name == "web-x1"
    assert made.pod.metadata.labels == {"app": "web", "pod-template-hash": "x1"}
    assert made.pod.metadata.namespace == "default"
    assert made.pod.spec == deployment.spec.template.spec
    (reference,) = made.pod.metadata.owner_references
    assert (reference.kind, reference.name, reference.uid) == ("ReplicaSet", "web-x1", "uid-web-x1")
    assert reference.controller


def test_a_deployment_without_replica_sets_controls_its_pod_itself() -> None:
    deployment = a_deployment("web")
    made = pattern(a_cluster(objects=[deployment]), deployment)
    assert made.controller == WorkloadName("Deployment", "web")
    assert made.pod.metadata.labels == WEB


def test_a_copy_of_the_newest_pod() -> None:
    cluster = a_cluster(
        a_node("n1"),
        pods=[
            a_pod("old", labels=WEB, node="n1", created=10, cpu="1"),
            a_pod("new-b", labels=WEB, node="n1", created=20, cpu="2"),
            a_pod("new-a", labels=WEB | {"x": "y"}, node="n1", created=20, cpu="3", owner="Node/n1"),
            a_pod("going", labels=WEB, created=30, terminating=True),
            a_pod("lost", labels=WEB, created=40, node="gone"),
        ],
    )
    made = pattern(cluster)
    assert (made.base_name, made.controller) == ("new-a", None)
    assert made.pod.metadata == ObjectMeta(namespace="default", labels=WEB | {"x": "y"})
    assert made.pod.spec.node_name == ""
    assert made.pod.spec.containers[0].resources.requests == {"cpu": "3"}
    assert copy_of(cluster, 0).spec.containers[0].resources.requests == {"cpu": "1"}


def test_neither_a_workload_nor_a_pod() -> None:
    with pytest.raises(ServiceError) as refused:
        pattern(a_cluster())
    assert str(refused.value) == "service default/web has no workload and no pod to copy"


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("db-0", 0),
        ("db-12", 12),
        ("my-db-007", 7),
        ("db", -1),
        ("db-", -1),
        ("db-x", -1),
        ("db-1x", -1),
        ("db-٣", -1),
    ],
)
def test_ordinals(name: str, number: int) -> None:
    assert ordinal(name) == number


def test_ordinals_are_counted_among_all_pods_that_are_not_terminating() -> None:
    db = a_stateful_set("db")
    cluster = a_cluster(
        a_node("n1"),
        objects=[db],
        pods=[
            a_pod("db-1", owner=db, node="n1"),
            a_pod("db-9", owner=db, terminating=True),
            a_pod("db-3", owner=db, phase="Succeeded"),
            a_pod("db-2", owner=db, node="gone"),
            a_pod("db-7", owner=db, namespace="shop"),
            a_pod("db-8"),
            a_pod("db-6", owner="StatefulSet/db2"),
        ],
    )
    number, pod = highest_ordinal(cluster, "default", "db")
    assert (number, cluster.pods.names[pod]) == (3, "db-3")
    assert next_ordinal(cluster, db) == 4
    assert next_ordinal(cluster, a_stateful_set("new")) == 0


def test_a_stateful_pod_and_its_claims() -> None:
    db = a_stateful_set("db", claim_templates=["data", "log"], namespace="shop", cpu="1")
    template = db.spec.template
    volumes = (Volume(name="tmp"), Volume(name="data"))  # the template's claim takes the place of the second
    template = msgspec.structs.replace(template, spec=msgspec.structs.replace(template.spec, volumes=volumes))
    db = msgspec.structs.replace(db, spec=msgspec.structs.replace(db.spec, template=template))
    pod, claims = stateful_pod(pattern(a_cluster(objects=[db]), db), db, 3)
    assert pod.metadata.name == "db-3"
    assert pod.metadata.labels == {"app": "db", "statefulset.kubernetes.io/pod-name": "db-3"}
    assert [(c.metadata.namespace, c.metadata.name) for c in claims] == [
        ("shop", "data-db-3"),
        ("shop", "log-db-3"),
    ]
    used = {
        v.name: v.persistent_volume_claim and v.persistent_volume_claim.claim_name for v in pod.spec.volumes
    }
    assert used == {"tmp": None, "data": "data-db-3", "log": "log-db-3"}
