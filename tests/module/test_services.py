import msgspec
import pytest

from berth.cluster.cluster import Cluster
from berth.errors import NotFoundError
from berth.module.changes import Change, WorkloadName
from berth.module.services import (
    ServiceError,
    check_change,
    find_service,
    members,
    replicas,
    resolve_workload,
)
from berth.objects.pods import Pod
from berth.objects.workloads import Workload
from tests.builders import (
    a_cluster,
    a_deployment,
    a_node,
    a_pod,
    a_replica_set,
    a_replication_controller,
    a_service,
    a_stateful_set,
    replica_set_of,
)

WEB = {"app": "web"}
SERVICE = a_service("web")


def resolved(cluster: Cluster, override: WorkloadName | None = None) -> str | None:
    workload = resolve_workload(cluster, SERVICE, override)
    return None if workload is None else f"{type(workload).__name__}/{workload.metadata.name}"


def web_pod(name: str, **more: object) -> Pod:
    return a_pod(name, labels=WEB, **more)  # type: ignore[arg-type]


def test_which_pods_are_a_services() -> None:
    cluster = a_cluster(
        a_node("n1"),
        pods=[
            web_pod("placed", node="n1"),
            web_pod("waiting", phase="Pending"),
            web_pod("lost", node="gone"),
            web_pod("done", node="n1", phase="Succeeded"),
            web_pod("broken", node="n1", phase="Failed"),
            web_pod("going", node="n1", terminating=True),
            web_pod("elsewhere", namespace="shop", node="n1"),
            a_pod("other", node="n1", labels={"app": "db"}),
        ],
    )
    found = members(cluster, SERVICE)
    names = [[cluster.pods.names[i] for i in pods] for pods in (found.own, found.telling)]
    assert names == [["placed", "waiting"], ["placed", "waiting", "going"]]


def test_services_are_found_by_name() -> None:
    cluster = a_cluster(services=[SERVICE])
    assert find_service(cluster, "default", "web") is SERVICE
    with pytest.raises(NotFoundError, match="there is no service shop/web"):
        find_service(cluster, "shop", "web")


def test_the_deployment_above_the_pods_replica_set() -> None:
    deployment = a_deployment("web", replicas=1)
    owner = replica_set_of(deployment)
    cluster = a_cluster(a_node("n1"), pods=[web_pod("a", owner=owner)], objects=[deployment, owner])
    assert resolved(cluster) == "Deployment/web"


def test_a_replica_set_whose_deployment_is_not_there_stands_for_itself() -> None:
    owner = a_replica_set("web-1", owner="Deployment/web")
    cluster = a_cluster(pods=[web_pod("a", owner=owner)], objects=[owner])
    assert resolved(cluster) == "ReplicaSet/web-1"


@pytest.mark.parametrize("make", [a_replica_set, a_stateful_set, a_replication_controller])
def test_workloads_that_control_pods_themselves(make: object) -> None:
    workload = make("web")  # type: ignore[operator]
    cluster = a_cluster(pods=[web_pod("a", owner=workload)], objects=[workload])
    assert resolved(cluster) == f"{type(workload).__name__}/web"


def test_of_several_the_one_with_most_replicas_then_by_name_then_by_kind() -> None:
    small, large = a_stateful_set("a", replicas=2), a_stateful_set("z", replicas=3)
    pods = [web_pod("a-0", owner=small), web_pod("z-0", owner=large)]
    assert resolved(a_cluster(pods=pods, objects=[small, large])) == "StatefulSet/z"

    # Absent replicas count as 1.
    absent, one = a_stateful_set("b"), a_stateful_set("a", replicas=1)
    pods = [web_pod("a-0", owner=one), web_pod("b-0", owner=absent)]
    assert replicas(absent) == 1
    assert resolved(a_cluster(pods=pods, objects=[absent, one])) == "StatefulSet/a"

    same: list[Workload] = [a_replication_controller("w"), a_stateful_set("w"), a_replica_set("w")]
    pods = [web_pod(f"p{i}", owner=owner) for i, owner in enumerate(same)]
    assert resolved(a_cluster(pods=pods, objects=same)) == "ReplicaSet/w"


def test_terminating_pods_tell_but_ended_and_lost_ones_do_not() -> None:
    db, old = (
        a_stateful_set("db", labels=WEB, replicas=1),
        a_stateful_set("old", labels={"app": "old"}, replicas=9),
    )
    objects = [db, old]
    pods = [
        web_pod("old-0", owner=old, phase="Succeeded"),
        web_pod("old-1", owner=old, phase="Failed"),
        web_pod("old-2", owner=old, node="gone"),
        web_pod("db-0", owner=db, terminating=True),
    ]
    assert resolved(a_cluster(pods=pods, objects=objects)) == "StatefulSet/db"
    assert resolved(a_cluster(pods=pods[:3], objects=objects)) == "StatefulSet/db"  # by its template


def test_without_pods_the_templates_tell() -> None:
    deployment = a_deployment("web", replicas=0)
    owned = replica_set_of(deployment, replicas=5)  # counts as its Deployment
    other = a_deployment("db", replicas=9)
    elsewhere = a_deployment("web", namespace="shop", replicas=9)
    cluster = a_cluster(objects=[deployment, owned, other, elsewhere])
    assert resolved(cluster) == "Deployment/web"
    cluster.put(a_stateful_set("web", replicas=1))
    assert resolved(cluster) == "StatefulSet/web"
    assert resolved(a_cluster(objects=[other])) is None


def test_pods_without_a_workload() -> None:
    assert resolved(a_cluster(pods=[web_pod("bare")], objects=[a_deployment("web")])) is None
    # Nor is one whose controller is not known by now.
    assert resolved(a_cluster(pods=[web_pod("a", owner="ReplicaSet/gone")])) is None


def test_pods_of_other_kinds() -> None:
    cluster = a_cluster(pods=[web_pod("a", owner="DaemonSet/agent"), web_pod("b", owner="Job/zip")])
    message = "service default/web belongs to DaemonSet agent: its pods can't be added or removed"
    with pytest.raises(ServiceError) as refused:
        resolved(cluster)
    assert str(refused.value) == message


def test_pods_of_other_kinds_beside_a_workload() -> None:
    owner = a_stateful_set("web")
    cluster = a_cluster(
        pods=[web_pod("a", owner="DaemonSet/agent"), web_pod("web-0", owner=owner)], objects=[owner]
    )
    assert resolved(cluster) == "StatefulSet/web"


def test_the_requests_workload_overrides() -> None:
    web, db = a_stateful_set("web", replicas=5), a_deployment("db", labels=WEB)
    cluster = a_cluster(pods=[web_pod("web-0", owner=web)], objects=[web, db])
    assert resolved(cluster, WorkloadName("Deployment", "db")) == "Deployment/db"
    with pytest.raises(NotFoundError, match="there is no deployment/gone in namespace default"):
        resolved(cluster, WorkloadName("Deployment", "gone"))


def test_changes_are_checked_before_they_are_queued() -> None:
    headless = msgspec.structs.replace(
        a_service("ext"), spec=msgspec.structs.replace(SERVICE.spec, selector=None)
    )
    empty = msgspec.structs.replace(a_service("all"), spec=msgspec.structs.replace(SERVICE.spec, selector={}))
    cluster = a_cluster(
        services=[SERVICE, headless, empty], objects=[a_deployment("web"), a_deployment("db")]
    )

    def check(service: str, workload: WorkloadName | None = None) -> None:
        check_change(cluster, Change("r", "add", "default", service, 1, workload))

    check("web")
    check("web", WorkloadName("Deployment", "web"))
    with pytest.raises(NotFoundError, match="there is no service default/gone"):
        check("gone")
    with pytest.raises(NotFoundError, match="there is no statefulset/web in namespace default"):
        check("web", WorkloadName("StatefulSet", "web"))
    with pytest.raises(ServiceError, match="service default/web does not select deployment/db"):
        check("web", WorkloadName("Deployment", "db"))
    for name in ("ext", "all"):
        with pytest.raises(ServiceError, match=f"service default/{name} has no selector"):
            check(name)
