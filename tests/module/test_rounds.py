"""Rounds: what is decided, that it can be taken back, and what it leaves when it is applied."""

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.cluster.accounting import Accounting
from berth.cluster.cluster import Cluster
from berth.config.priorities import ADD_PRIORITIES
from berth.module.apply import Applied, ObjectKey, apply_round
from berth.module.changes import Change, Operation, WorkloadName
from berth.module.plan import PlannedDecision
from berth.module.planner import Planner
from berth.module.removal import REMOVAL_PRIORITIES
from berth.module.rounds import Round, Rules
from berth.objects.base import LabelSelector, ObjectMeta
from berth.objects.pods import PodAffinity, PodAffinityTerm
from berth.objects.storage import PersistentVolumeClaim, PersistentVolumeClaimSpec, StorageClass
from berth.releases.module import MODULE_1_36, addition_profile
from berth.scheduling.ties import TieBreaker
from tests.builders import (
    HOST,
    a_cluster,
    a_deployment,
    a_node,
    a_pod,
    a_replication_controller,
    a_service,
    a_stateful_set,
    replica_set_of,
)
from tests.cluster.model import columns_of
from tests.scheduling.worlds import PROFILE

REMOVE = dict.fromkeys(REMOVAL_PRIORITIES, 1)
RULES = Rules(PROFILE, REMOVE)
PENDING = Rules(PROFILE, REMOVE, keep_pending=True)
TODAY = Rules(
    addition_profile(dict.fromkeys(ADD_PRIORITIES, 1), module=MODULE_1_36),
    REMOVE,
    MODULE_1_36.removal,
    binding=MODULE_1_36.binding,
)


def a_planner(cluster: Cluster, rules: Rules = RULES, counter: int = 0) -> Planner:
    return Planner(cluster, rules, TieBreaker("round-robin", counter=counter))


def a_change(operation: Operation, service: str, number: int, workload: WorkloadName | None = None) -> Change:
    return Change(f"r-{operation}-{service}", operation, "default", service, number, workload)


def a_claim(name: str) -> PersistentVolumeClaim:
    """A claim that waits for the first pod's node."""
    spec = PersistentVolumeClaimSpec(storage_class_name="late", access_modes=("ReadWriteOnce",))
    return PersistentVolumeClaim(metadata=ObjectMeta(name=name, namespace="default"), spec=spec)


def add(service: str, number: int = 1, workload: WorkloadName | None = None) -> Change:
    return a_change("add", service, number, workload)


def remove(service: str, number: int = 1, workload: WorkloadName | None = None) -> Change:
    return a_change("remove", service, number, workload)


def decided(cluster: Cluster, *changes: Change, rules: Rules = RULES) -> list[PlannedDecision]:
    planner = a_planner(cluster, rules)
    return planner.plan(1, planner.decide(changes)).decisions


def reasons(cluster: Cluster, *changes: Change, rules: Rules = RULES) -> list[str | None]:
    return [decision.reason for decision in decided(cluster, *changes, rules=rules)]


DB_CLASS = StorageClass(
    metadata=ObjectMeta(name="late"), provisioner="x", volume_binding_mode="WaitForFirstConsumer"
)


def a_shop(n_nodes: int = 3, pods: str = "6", accounting: Accounting | None = None) -> Cluster:
    """Services of a Deployment, a StatefulSet with claims and one without, bare pods, a DaemonSet, and nothing."""
    web, db, queue = (
        a_deployment("web", replicas=2, cpu="500m"),
        a_stateful_set("db", replicas=2, claim_templates=["data"], memory="1Gi"),
        a_stateful_set("queue", replicas=1, host_ports=[80]),
    )
    web_set = replica_set_of(web)
    made = [
        a_pod("web-1-a", labels=web_set.spec.template.metadata.labels, owner=web_set, node="n1", cpu="500m", created=1),
        a_pod("web-1-b", labels=web_set.spec.template.metadata.labels, owner=web_set, node="n2", cpu="500m", created=2),
        a_pod("db-0", labels={"app": "db"}, owner=db, node="n1", memory="1Gi", claims=["data-db-0"]),
        a_pod("db-1", labels={"app": "db"}, owner=db, node="n2", memory="1Gi", claims=["data-db-1"]),
        a_pod("queue-0", labels={"app": "queue"}, owner=queue, node="n1", host_ports=[80]),
        a_pod("bare-x", labels={"app": "bare"}, node="n2", cpu="100m", created=3),
        a_pod("agent-1", labels={"app": "agent"}, owner="DaemonSet/agent", node="n1"),
        a_pod("waiting", labels={"app": "bare"}, phase="Pending"),
    ]  # fmt: skip
    return a_cluster(
        *(a_node(f"n{i + 1}", pods=pods, zone="ab"[i % 2]) for i in range(n_nodes)),
        pods=made,
        services=[a_service(name) for name in ("web", "db", "queue", "bare", "agent", "nothing")],
        objects=[web, web_set, db, queue, DB_CLASS],
        accounting=accounting,
    )


# -- what is decided ---------------------------------------------------------------------------------------------------


def test_removals_are_decided_before_additions_and_each_sees_those_before_it() -> None:
    cluster = a_cluster(
        a_node("n1", pods="1"),
        pods=[a_pod("old-1", labels={"app": "old"}, node="n1")],
        services=[a_service("old"), a_service("new")],
        objects=[a_deployment("new")],
    )
    first, second = decided(cluster, add("new", 2), remove("old"))[0:2]
    assert (first.operation, first.pod, first.node, first.request) == (
        "remove",
        "old-1",
        "n1",
        "r-remove-old",
    )
    assert (second.operation, second.pod, second.node) == ("add", None, "n1")
    assert second.feasible == 1
    assert set(second.scores) == {weighted.name for weighted in PROFILE.scores}


def test_what_cannot_be_added_or_removed_fails_once_for_each_pod() -> None:
    cluster = a_shop()
    agent = "service default/agent belongs to DaemonSet agent: its pods can't be added or removed"
    assert reasons(cluster, add("agent", 2), remove("agent")) == [agent] * 3
    nothing = "service default/nothing has no workload and no pod to copy"
    assert reasons(cluster, add("nothing", 2)) == [nothing] * 2
    assert reasons(cluster, remove("nothing", 2)) == ["service default/nothing has no pod left to remove"] * 2
    assert reasons(cluster, add("unknown", 2)) == ["there is no service default/unknown"] * 2
    assert reasons(cluster, remove("unknown")) == ["there is no service default/unknown"]
    gone = WorkloadName("Deployment", "gone")
    assert reasons(cluster, add("web", 1, gone)) == ["there is no deployment/gone in namespace default"]


def test_fewer_pods_than_asked() -> None:
    cluster = a_shop()
    left = "service default/bare has no pod left to remove"
    made = decided(cluster, remove("bare", 4))
    assert [(d.pod, d.reason) for d in made] == [
        ("waiting", None),
        ("bare-x", None),
        (None, left),
        (None, left),
    ]
    waiting = made[0]
    assert (waiting.node, waiting.score, waiting.scores, waiting.feasible) == (None, None, {}, 0)


def test_no_node_left() -> None:
    cluster = a_cluster(a_node("n1", pods="1"), services=[a_service("web")], objects=[a_deployment("web")])
    full = "0/1 nodes are available: 1 Insufficient pods."
    assert reasons(cluster, add("web", 3)) == [None, full, full]


def test_a_broken_template_fails_with_its_text_and_leaves_no_claim() -> None:
    db = a_stateful_set("db", claim_templates=["data"], cpu="much")
    cluster = a_cluster(a_node("n1"), services=[a_service("db")], objects=[db, DB_CLASS])
    before = columns_of(cluster)
    texts = reasons(cluster, add("db", 2))
    assert len(texts) == 2
    assert all(text is not None and "'much'" in text for text in texts)
    assert columns_of(cluster) == before


def test_an_absent_claim_counts_as_unbound() -> None:
    cluster = a_shop()
    assert reasons(cluster, add("db")) == ["pod has unbound immediate PersistentVolumeClaims"]
    assert cluster.objects.persistent_volume_claims.all() == []


def with_late_claims(accounting: Accounting | None = None) -> Cluster:
    """The shop with a StatefulSet of whose claims volumes are made once a node is chosen."""
    cluster = a_shop(accounting=accounting)
    db = cluster.objects.stateful_sets.get("default", "db")
    assert db is not None
    (claim,) = db.spec.volume_claim_templates
    late = replace(claim, spec=replace(claim.spec, storage_class_name="late"))
    cluster.put(replace(db, spec=replace(db.spec, volume_claim_templates=(late,))))
    return cluster


def test_each_stateful_pod_has_claims_of_its_own() -> None:
    cluster = with_late_claims()
    planner = a_planner(cluster)
    before = columns_of(cluster)
    made = planner.decide([add("db", 2)])
    assert [decision.reason for decision in planner.plan(1, made).decisions] == [None, None]
    claims = cluster.objects.persistent_volume_claims
    assert sorted(claim.metadata.name for claim in claims.all()) == ["data-db-2", "data-db-3"]
    planner.undo(made, 0)
    assert columns_of(cluster) == before


def test_claims_are_bound_by_the_rules_of_the_release() -> None:
    """Two pods of a Deployment share a claim that waits: 1.36 pins the second to the first one's node, 1.13 gives up."""
    claim = a_claim("shared")
    for rules, accounting, second in (
        (RULES, None, "pod has unbound immediate PersistentVolumeClaims"),
        (TODAY, MODULE_1_36.accounting, None),
    ):
        cluster = a_cluster(
            *(a_node(f"n{i}") for i in (1, 2, 3)),
            services=[a_service("web")],
            objects=[a_deployment("web", claims=["shared"]), DB_CLASS, claim],
            accounting=accounting,
        )
        made = decided(cluster, add("web", 2), rules=rules)
        assert [decision.reason for decision in made] == [None, second]
        if second is None:
            assert made[0].node == made[1].node
            assert [decision.feasible for decision in made] == [3, 1]


def test_what_comes_counts_as_the_release_counts_it() -> None:
    """A sidecar asks for a core in 1.36; in 1.13 it is an init container, of which the larger counts."""
    deployment = a_deployment("web", cpu="1", init={"cpu": "1"})
    (sidecar,) = deployment.spec.template.spec.init_containers
    spec = replace(
        deployment.spec.template.spec, init_containers=(replace(sidecar, restart_policy="Always"),)
    )
    template = replace(deployment.spec.template, spec=spec)
    deployment = replace(deployment, spec=replace(deployment.spec, template=template))
    for rules, accounting, n in ((RULES, None, 4), (TODAY, MODULE_1_36.accounting, 2)):
        cluster = a_cluster(
            a_node("n1", cpu="4"),
            services=[a_service("web")],
            objects=[deployment],
            accounting=accounting,
        )
        assert reasons(cluster, add("web", 5), rules=rules).count(None) == n


def test_progress_is_told_after_each_change() -> None:
    told: list[tuple[int, int]] = []
    a_planner(a_shop()).decide([add("web", 2), remove("bare", 5)], lambda n, total: told.append((n, total)))
    assert told == [(5, 7), (7, 7)]


def test_what_is_refused_fails_when_it_is_its_turn() -> None:
    cluster = a_shop()
    changes = [add("web", 2), remove("web"), add("web")]
    planner = a_planner(cluster)
    plan = planner.dry_run(1, changes, refusals={0: "not now"})
    found = [(d.operation, d.reason) for d in plan.decisions]
    assert found == [("remove", None), ("add", "not now"), ("add", "not now"), ("add", None)]
    counter = planner.ties.counter
    assert planner.dry_run(1, [changes[1], changes[2]]).decisions[1].node == plan.decisions[3].node
    assert planner.ties.counter == counter


def test_pods_that_shun_each_other_see_those_before_them() -> None:
    apart = PodAffinity(
        required=(
            PodAffinityTerm(label_selector=LabelSelector(match_labels={"app": "a"}), topology_key=HOST),
        )
    )
    cluster = a_cluster(
        a_node("n1"),
        a_node("n2"),
        services=[a_service("a")],
        objects=[a_deployment("a", anti_affinity=apart)],
    )
    made = decided(cluster, add("a", 3))
    assert sorted(str(decision.node) for decision in made) == ["None", "n1", "n2"]


# -- undone ------------------------------------------------------------------------------------------------------------

changes = st.lists(
    st.builds(
        a_change,
        st.sampled_from(["add", "remove"]),
        st.sampled_from(["web", "db", "queue", "bare", "agent", "nothing", "unknown"]),
        st.integers(1, 8),
    ),
    max_size=5,
)


@settings(max_examples=80)
@given(
    changes,
    st.sampled_from([RULES, PENDING, TODAY]),
    st.sampled_from([a_shop, with_late_claims]),
    st.integers(0, 3),
)
def test_a_dry_run_leaves_cluster_and_counter_alone(
    asked: list[Change], rules: Rules, make: Callable[[], Cluster], counter: int
) -> None:
    cluster = make()
    planner = a_planner(cluster, rules, counter)
    before = columns_of(cluster)
    columns = planner.dry_run(1, asked)
    plan = columns.written()
    assert plan.failed == columns.failed
    assert columns_of(cluster) == before
    assert planner.ties.counter == counter
    assert plan.added + plan.removed + plan.failed == len(plan.decisions) == sum(c.number for c in asked)
    # And nothing that was kept has gone stale: asked again, and asked of a fresh cluster, it says the same.
    assert planner.dry_run(1, asked).written() == plan
    assert a_planner(make(), planner.rules, counter).dry_run(1, asked).written() == plan


@settings(max_examples=40)
@given(changes, changes, st.sampled_from([RULES, PENDING, TODAY]))
def test_a_round_after_an_applied_one_sees_its_pods(
    first: list[Change], second: list[Change], rules: Rules
) -> None:
    cluster = with_late_claims()
    planner = a_planner(cluster, rules)
    apply_round(planner.decide(first), 1, now=100)
    twin = a_planner(copy.deepcopy(cluster), planner.rules, planner.ties.counter)
    assert planner.dry_run(2, second).written() == twin.dry_run(2, second).written()


@settings(max_examples=60)
@given(
    changes, st.sampled_from([with_late_claims, lambda accounting: a_shop(5, "9", accounting)]), st.booleans()
)
def test_many_asked_for_at_once_are_decided_as_one_at_a_time(
    asked: list[Change], make: Callable[[Accounting | None], Cluster], is_today: bool
) -> None:
    rules, accounting = (TODAY, MODULE_1_36.accounting) if is_today else (RULES, None)
    single = [dataclasses.replace(change, number=1) for change in asked for _ in range(change.number)]
    made, one_by_one = (decided(make(accounting), *changes, rules=rules) for changes in (asked, single))
    assert made == one_by_one


def test_dry_runs_take_no_more_room_with_each() -> None:
    cluster = a_shop()
    planner = a_planner(cluster)
    for _ in range(3):
        planner.dry_run(1, [add("web", 12), remove("web", 2), remove("bare", 2)])
    assert len(cluster.pods.names) <= 8 + 12


def test_a_dry_run_that_is_broken_off_leaves_the_cluster_alone() -> None:
    cluster = a_shop()
    planner = a_planner(cluster)
    before = columns_of(cluster)

    def stop(n: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        planner.dry_run(1, [add("web", 2)], stop)
    assert columns_of(cluster) == before
    assert planner.ties.counter == 0


# -- applied -----------------------------------------------------------------------------------------------------------


def applied(cluster: Cluster, *asked: Change, rules: Rules = RULES, number: int = 7) -> tuple[Round, Applied]:
    decided_round = a_planner(cluster, rules).decide(asked)
    return decided_round, apply_round(decided_round, number, now=1000)


def reasons_of(made: Round) -> list[str | None]:
    return [planned.reason for planned in made.planned for _ in range(planned.n)]


def replicas_of(cluster: Cluster) -> dict[str, Any]:
    kinds = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")
    return {
        f"{kind}/{item.metadata.name}": item.spec.replicas
        for kind in kinds
        for item in cluster.objects.by_kind()[kind].all()
    }


def pod_names(cluster: Cluster) -> list[str]:
    return sorted(cluster.pods.names[i] for i in np.flatnonzero(cluster.pods.alive))


def test_replicas_of_the_deployment_and_its_replica_set_follow() -> None:
    cluster = a_shop()
    _, done = applied(cluster, add("web", 3), remove("web", 1))
    assert replicas_of(cluster)["Deployment/web"] == 4
    assert replicas_of(cluster)["ReplicaSet/web-1"] == 4
    assert {(key.kind, key.name) for key in done.touched if key.kind != "Pod"} == {
        ("Deployment", "web"),
        ("ReplicaSet", "web-1"),
    }
    gone = [key.name for key in done.touched if not key.exists]
    assert len(gone) == 1
    assert not set(gone) & set(pod_names(cluster))


def test_new_pods_run_with_names_and_uids_of_their_own() -> None:
    cluster = a_shop()
    _, done = applied(cluster, add("web", 3))
    names = [name for name in done.created if name]
    assert len(set(names)) == 3
    assert all(name.startswith("web-1-") and len(name) == len("web-1-") + 5 for name in names)
    uids = set()
    for name in names:
        values = cluster.pods.get(cluster.pods.find(cluster.namespaces.id("default"), name))
        assert (values.phase, values.ready, values.created, values.ready_since) == (2, True, 1000, 1000)
        (owner,) = cluster.owner_sets.items[values.owner_id]
        assert (owner.kind, owner.name) == ("ReplicaSet", "web-1")
        uids.add(values.uid)
    assert len(uids) == 3


def test_names_hang_on_the_rounds_number_and_the_place_in_it_alone() -> None:
    first, again, other = (applied(a_shop(), add("web", 3), number=n)[1].created for n in (7, 7, 8))
    assert first == again
    assert not set(first) & set(other)


def test_a_name_that_is_taken_is_not_given_again() -> None:
    wanted = applied(a_shop(), add("web", 2))[1].created[0]
    cluster = a_shop()
    cluster.put_pod(a_pod(str(wanted), node="n3"))
    created = applied(cluster, add("web", 2))[1].created
    assert wanted not in created
    assert len(set(created)) == 2


def test_names_stay_short_enough_for_a_hostname() -> None:
    long = "x" * 70
    cluster = a_cluster(a_node("n1"), services=[a_service(long[:60])])
    cluster.put(a_deployment(long, labels={"app": long[:60]}))
    (name,) = applied(cluster, add(long[:60]))[1].created
    assert name is not None
    assert len(name) == 63
    assert name[:58] == "x" * 58 or name[:58].endswith("-")


def test_stateful_pods_are_called_by_their_ordinals() -> None:
    cluster = with_late_claims()
    _, done = applied(cluster, add("db", 2), add("queue", 2))
    assert sorted(str(name) for name in done.created) == ["db-2", "db-3", "queue-1", "queue-2"]
    assert replicas_of(cluster)["StatefulSet/db"] == 4
    assert ObjectKey("PersistentVolumeClaim", "default", "data-db-3") in done.touched
    pod = cluster.pods.find(cluster.namespaces.id("default"), "queue-2")
    labels = cluster.label_sets.get(int(cluster.pods.column("labels_id")[pod]))
    assert labels == {"app": "queue", "statefulset.kubernetes.io/pod-name": "queue-2"}


@pytest.mark.parametrize("service", ["db", "queue"])
def test_a_stateful_pod_takes_the_place_of_the_one_that_goes(service: str) -> None:
    cluster = with_late_claims()
    name = {"db": "db-2", "queue": "queue-1"}[service]
    owner = cluster.objects.stateful_sets.get("default", service)
    cluster.put_pod(a_pod(name, labels={"app": service}, owner=owner, node="n3", cpu="1", terminating=True))
    n_before = len(cluster.pods)
    _, done = applied(cluster, add(service))
    assert done.created == [name]
    assert len(cluster.pods) == n_before  # a name is one pod's: the old one has gone
    pod = cluster.pods.find(cluster.namespaces.id("default"), name)
    assert not cluster.pods.get(pod).terminating
    assert [key for key in done.touched if key.kind == "Pod"] == [ObjectKey("Pod", "default", name)]


def test_a_stateful_set_gives_and_takes_the_last_ordinal() -> None:
    cluster = a_shop()
    applied(cluster, add("queue"))
    (removal,) = decided(cluster, remove("queue"))
    assert removal.pod == "queue-1"


def test_bare_pods_are_copied_and_nothing_is_scaled() -> None:
    cluster = a_shop()
    before = replicas_of(cluster)
    _, done = applied(cluster, add("bare", 2), remove("bare", 1))
    assert replicas_of(cluster) == before
    created = [name for name in done.created if name]
    assert len(created) == 2
    assert all(name.startswith("bare-x-") for name in created)


def test_a_replication_controller_is_scaled() -> None:
    controller = a_replication_controller("old")
    pod = a_pod("old-1", labels={"app": "old"}, owner=controller, node="n1")
    cluster = a_cluster(a_node("n1"), pods=[pod], services=[a_service("old")], objects=[controller])
    applied(cluster, add("old", 2))
    assert replicas_of(cluster) == {"ReplicationController/old": 3}
    applied(cluster, remove("old", 3), number=8)
    assert replicas_of(cluster) == {"ReplicationController/old": 0}


def test_where_nothing_fits_replicas_stay_unless_pods_may_wait() -> None:
    full = "0/3 nodes are available: 3 Insufficient pods."
    failing = a_shop(pods="3")
    made, done = applied(failing, add("web", 4))
    assert reasons_of(made)[3:] == [full]
    assert replicas_of(failing)["Deployment/web"] == 5
    assert done.created[3] is None

    waiting = a_shop(pods="3")
    made, done = applied(waiting, add("web", 4), rules=PENDING)
    assert reasons_of(made)[3:] == [full]
    assert replicas_of(waiting)["Deployment/web"] == 6
    pod = waiting.pods.get(waiting.pods.find(waiting.namespaces.id("default"), str(done.created[3])))
    assert (pod.phase, pod.ready, pod.node_name_id, pod.ready_since) == (1, False, -1, 0)
    # A pod that waits is the first to leave.
    assert decided(waiting, remove("web"))[0].pod == done.created[3]
