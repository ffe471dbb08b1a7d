"""Which changes may help a pod that a plugin turned away; and that none that does is ever said not to."""

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from msgspec.structs import replace

from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.modern_accounting import ModernAccounting
from berth.framework.changes import (
    Action,
    Change,
    node_changes,
    object_change,
    own_changes,
    pod_changes,
)
from berth.framework.csi_migration import MIGRATED_PLUGINS
from berth.framework.plugin import FITS, FilterPlugin
from berth.objects.base import LabelSelector, ObjectMeta
from berth.objects.nodes import Node
from berth.objects.pods import (
    AWSElasticBlockStore,
    CSIVolume,
    GCEPersistentDisk,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
    Volume,
)
from berth.objects.storage import (
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeDriver,
    CSINodeSpec,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TopologySelectorTerm,
    VolumeAttachment,
    VolumeAttachmentSpec,
    VolumeNodeResources,
)
from berth.objects.workloads import Namespace
from berth.releases import RELEASES
from berth.releases.profiles import provider_profile
from berth.releases.release import Options
from berth.scheduling.evaluation import Evaluation
from tests.builders import HOST, a_node, a_pod

PROFILE = provider_profile(RELEASES["1.36"], Options())
PLUGINS: dict[str, FilterPlugin[Any]] = {each.name: each.plugin for each in PROFILE.filters}
REGION = "region"
POD, NODE = a_pod("p"), a_node("n")


def is_helped(name: str, pod: Pod, *changes: Change, cluster: Cluster | None = None) -> bool:
    """Whether one of the changes is worth another look at the pod that the plugin of the name turned away."""
    plugin = PLUGINS[name]
    cluster = cluster or Cluster(ModernAccounting())
    hint = plugin.hint(cluster.incoming(pod), cluster)
    return any(
        change.action in plugin.wakes_on.get(change.resource, Action.NOTHING) and hint(change)
        for change in changes
    )


def by_node(name: str, pod: Pod, old: Node | None, new: Node | None) -> bool:
    return is_helped(name, pod, *node_changes(old, new))


def by_pod(name: str, pod: Pod, old: Pod | None, new: Pod | None, *namespaces: Namespace) -> bool:
    cluster = Cluster(ModernAccounting())
    for namespace in namespaces:
        cluster.put(namespace)
    seen = [None if each is None else cluster.incoming(each) for each in (old, new)]
    return is_helped(name, pod, *pod_changes(*seen), cluster=cluster)


def by_own(name: str, old: Pod, new: Pod) -> bool:
    cluster = Cluster(ModernAccounting())
    changes = own_changes(cluster.incoming(old), cluster.incoming(new))
    return is_helped(name, new, *changes, cluster=cluster)


def by_object(name: str, pod: Pod, old: Any, new: Any) -> bool:
    change = object_change(old, new)
    assert change is not None
    return is_helped(name, pod, change)


def meta(name: str, namespace: str = "", **more: Any) -> ObjectMeta:
    return ObjectMeta(name=name, namespace=namespace, **more)


def with_volumes(*volumes: Volume, **more: Any) -> Pod:
    pod = a_pod("p", **more)
    return replace(pod, spec=replace(pod.spec, volumes=volumes))


# -- nodes -----------------------------------------------------------------------------------------------------


def test_node_unschedulable() -> None:
    name, cordoned = "NodeUnschedulable", a_node("n", unschedulable=True)
    assert by_node(name, POD, None, NODE)
    assert not by_node(name, POD, None, cordoned)
    assert by_node(name, POD, cordoned, NODE)
    assert not by_node(name, POD, NODE, cordoned)
    assert not by_node(name, POD, cordoned, replace(cordoned, spec=replace(cordoned.spec, taints=())))
    assert by_own(name, POD, a_pod("p", tolerations=["node.kubernetes.io/unschedulable:NoSchedule"]))
    assert not by_own(name, POD, a_pod("p", tolerations=["spot:NoSchedule"]))


def test_node_name() -> None:
    assert by_node("NodeName", POD, None, NODE)
    assert not by_node("NodeName", POD, NODE, a_node("n", labels={"a": "1"}))


def test_taint_toleration() -> None:
    name, pod, spot = (
        "TaintToleration",
        a_pod("p", tolerations=["a:NoSchedule"]),
        a_node("n", taints=["b:NoExecute"]),
    )
    assert by_node(name, pod, None, a_node("n", taints=["a:NoSchedule"]))
    assert not by_node(name, pod, None, spot)
    assert by_node(name, pod, spot, NODE)
    assert not by_node(name, pod, spot, a_node("n", taints=["b:NoExecute", "a:NoSchedule"]))
    assert not by_node(name, pod, NODE, a_node("n", taints=["a:NoSchedule"]))
    assert by_node(name, pod, spot, a_node("n", taints=["b:PreferNoSchedule"]))
    assert by_own(name, POD, pod)


def test_node_affinity() -> None:
    name, pod = "NodeAffinity", a_pod("p", node_selector={"disk": "ssd"})
    ssd = a_node("n", labels={"disk": "ssd"})
    assert by_node(name, pod, None, ssd)
    assert not by_node(name, pod, None, NODE)
    assert by_node(name, pod, NODE, ssd)
    assert not by_node(name, pod, ssd, NODE)
    assert not by_node(name, pod, ssd, a_node("n", labels={"disk": "ssd", "a": "1"}))


def test_node_ports() -> None:
    name, pod = "NodePorts", a_pod("p", host_ports=[80])
    assert by_pod(name, pod, a_pod("o", node="n", host_ports=[80, 81]), None)
    assert not by_pod(name, pod, a_pod("o", node="n", host_ports=[81]), None)
    assert not by_pod(name, pod, a_pod("o", node="n"), None)
    assert not by_pod(name, pod, None, a_pod("o", node="n", host_ports=[80]))
    assert by_node(name, pod, None, NODE)
    assert not by_node(name, pod, NODE, a_node("n", cpu="9"))


def test_node_resources_fit_and_nodes() -> None:
    name, pod = "NodeResourcesFit", a_pod("p", cpu="2")
    assert by_node(name, pod, None, NODE)
    assert not by_node(name, pod, None, a_node("n", cpu="1"))
    assert not by_node(name, pod, None, a_node("n", pods=0))
    assert by_node(name, pod, a_node("n", cpu="2"), NODE)
    assert not by_node(name, pod, NODE, a_node("n", cpu="3"))
    assert not by_node(name, pod, NODE, a_node("n", memory="64Gi"))
    assert not by_node(name, pod, a_node("n", cpu="500m"), a_node("n", cpu="1"))
    assert by_node(name, pod, NODE, a_node("n", pods=111))
    assert by_node(name, POD, NODE, a_node("n", pods=111))
    assert not by_node(name, POD, NODE, a_node("n", cpu="9"))
    gpu = a_pod("p", requests={"example.com/gpu": "1"})
    assert by_node(name, gpu, NODE, a_node("n", example_com__gpu="1"))
    assert not by_node(
        name, gpu, a_node("n", example_com__gpu="1"), a_node("n", cpu="9", example_com__gpu="1")
    )


def test_node_resources_fit_and_pods() -> None:
    name, pod = "NodeResourcesFit", a_pod("p", cpu="2")
    big, small = a_pod("o", node="n", cpu="2", memory="2Gi"), a_pod("o", node="n", cpu="1", memory="2Gi")
    assert by_pod(name, pod, a_pod("o", node="n"), None)
    assert by_pod(name, pod, big, small)
    assert not by_pod(name, pod, small, big)
    assert not by_pod(name, a_pod("p", memory="1Gi"), big, small)
    assert not by_pod(name, pod, None, small)
    assert by_own(name, pod, a_pod("p", cpu="1"))
    assert not by_own(name, pod, a_pod("p", cpu="2", labels={"a": "1"}))


def test_node_declared_features() -> None:
    name = "NodeDeclaredFeatures"
    declaring = replace(NODE, status=replace(NODE.status, declared_features=("x",)))
    assert by_node(name, POD, None, NODE)
    assert by_node(name, POD, NODE, declaring)
    assert not by_node(name, POD, NODE, a_node("n", cpu="9"))
    needy = replace(POD, spec=replace(POD.spec, host_network=True, host_users=False))
    assert by_own(name, needy, POD)
    assert not by_own(name, POD, a_pod("p", labels={"a": "1"}))


def test_what_is_not_supported_is_helped_by_nothing() -> None:
    for name in ("DynamicResources", "GangScheduling"):
        assert not by_node(name, POD, None, NODE)


# -- pods ------------------------------------------------------------------------------------------------------


def about(*apps: str, namespace_selector: LabelSelector | None = None, key: str = REGION) -> PodAffinity:
    """Terms that each select pods of an app."""
    return PodAffinity(
        required=tuple(
            PodAffinityTerm(
                label_selector=LabelSelector(match_labels={app: "1"}),
                topology_key=key,
                namespace_selector=namespace_selector,
            )
            for app in apps
        )
    )


def of(*apps: str, namespace: str = "default", **more: Any) -> Pod:
    return a_pod("o", node="n", namespace=namespace, labels=dict.fromkeys(apps, "1"), **more)


def test_inter_pod_affinity_and_company() -> None:
    name, pod = "InterPodAffinity", a_pod("p", affinity=about("web", "db"))
    assert by_pod(name, pod, None, of("web", "db"))
    assert not by_pod(name, pod, None, of("web"))
    assert not by_pod(name, pod, None, of("web", "db", namespace="other"))
    assert by_pod(name, pod, of("web"), of("web", "db"))
    assert not by_pod(name, pod, of("web", "db"), of("web", "db", "more"))
    assert not by_pod(name, pod, of("web", "db"), of("web"))
    assert not by_pod(name, pod, of("web", "db"), None)
    itself = a_pod("p", labels={"web": "1"}, affinity=about("web"))
    assert by_pod(name, itself, of("web"), None)


def test_inter_pod_affinity_and_pods_to_be_kept_away_from() -> None:
    name, pod = "InterPodAffinity", a_pod("p", labels={"app": "1"}, anti_affinity=about("web", "db"))
    assert by_pod(name, pod, of("web"), None)
    assert by_pod(name, pod, of("web", "db"), of("db"))
    assert not by_pod(name, pod, of("x"), None)
    assert not by_pod(name, pod, of("x"), of("web"))
    assert not by_pod(name, pod, None, of("web"))
    assert by_pod(name, pod, of("x", anti_affinity=about("app")), None)
    assert not by_pod(name, pod, of("x", anti_affinity=about("other")), None)
    assert not by_pod(name, pod, of("x", anti_affinity=about("app"), namespace="other"), None)
    assert by_own(name, a_pod("p"), a_pod("p", labels={"a": "1"}))


def test_inter_pod_affinity_and_namespaces() -> None:
    name = "InterPodAffinity"
    team = LabelSelector(match_labels={"team": "a"})
    pod = a_pod("p", affinity=about("web", namespace_selector=team))
    ours = Namespace(metadata=meta("ours", labels={"team": "a"}))
    assert by_pod(name, pod, None, of("web", namespace="ours"), ours)
    assert not by_pod(name, pod, None, of("web", namespace="theirs"), ours)
    assert by_object(name, pod, Namespace(metadata=meta("ours")), ours)
    assert not by_object(name, a_pod("p", affinity=about("web")), Namespace(metadata=meta("ours")), ours)


def test_inter_pod_affinity_and_nodes() -> None:
    name, pro, anti = (
        "InterPodAffinity",
        a_pod("p", affinity=about("web")),
        a_pod("p", anti_affinity=about("web")),
    )
    here, there = a_node("n", labels={REGION: "a"}), a_node("n", labels={REGION: "b"})
    assert by_node(name, pro, None, here)
    assert not by_node(name, pro, None, NODE)
    assert by_node(name, pro, NODE, here)
    assert by_node(name, pro, here, there)
    assert not by_node(name, pro, here, NODE)
    assert by_node(name, anti, None, NODE)
    assert by_node(name, POD, None, NODE)
    assert by_node(name, anti, here, NODE)
    assert by_node(name, anti, here, there)
    assert not by_node(name, anti, NODE, here)
    assert not by_node(name, anti, here, a_node("n", labels={REGION: "a", "x": "1"}))


def spread(*constraints: TopologySpreadConstraint, **more: Any) -> Pod:
    pod = a_pod("p", **more)
    return replace(pod, spec=replace(pod.spec, topology_spread_constraints=constraints))


def evenly(app: str, key: str = REGION, **more: Any) -> TopologySpreadConstraint:
    return TopologySpreadConstraint(
        topology_key=key,
        when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_labels={app: "1"}),
        **more,
    )


def test_pod_topology_spread_and_pods() -> None:
    name, pod = "PodTopologySpread", spread(evenly("web"), evenly("db"))
    assert by_pod(name, pod, None, of("web"))
    assert by_pod(name, pod, of("db"), None)
    assert not by_pod(name, pod, of("x"), None)
    assert not by_pod(name, pod, of("db", namespace="other"), None)
    assert by_pod(name, pod, of("web"), of("db"))
    assert not by_pod(name, pod, of("web", "db"), of("web", "db", "x"))
    assert by_own(name, pod, spread(evenly("web"), evenly("db"), labels={"web": "1"}))
    assert not by_own(name, pod, spread(evenly("web"), evenly("db"), labels={"x": "1"}))
    tolerant = spread(evenly("web", node_taints_policy="Honor"), tolerations=["a:NoSchedule"])
    assert by_own(name, spread(evenly("web", node_taints_policy="Honor")), tolerant)
    assert not by_own(name, spread(evenly("web")), spread(evenly("web"), tolerations=["a:NoSchedule"]))


def test_pod_topology_spread_and_nodes() -> None:
    name, pod = "PodTopologySpread", spread(evenly("web"), evenly("web", HOST))
    here, there = a_node("n", labels={REGION: "a"}), a_node("n", labels={REGION: "b"})
    assert by_node(name, pod, None, here)
    assert not by_node(name, pod, None, NODE)
    assert by_node(name, pod, here, None)
    assert not by_node(name, pod, NODE, None)
    assert by_node(name, pod, here, there)
    assert by_node(name, pod, here, NODE)
    assert by_node(name, pod, here, a_node("n", labels={REGION: "a"}, taints=["a:NoSchedule"]))
    assert not by_node(name, pod, here, a_node("n", labels={REGION: "a", "x": "1"}))
    assert not by_node(name, pod, NODE, a_node("n", taints=["a:NoSchedule"]))


# -- volumes ---------------------------------------------------------------------------------------------------


def a_claim(name: str = "c", namespace: str = "default", **more: Any) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(metadata=meta(name, namespace), **more)


CLAIMING = a_pod("p", claims=["c"])
EPHEMERAL = with_volumes(Volume(name="e", ephemeral={}))


def test_volume_restrictions() -> None:
    name = "VolumeRestrictions"
    disk = with_volumes(Volume(gce_persistent_disk=GCEPersistentDisk(pd_name="d")))
    other = with_volumes(Volume(gce_persistent_disk=GCEPersistentDisk(pd_name="e")), node="n")
    assert by_pod(name, disk, with_volumes(*disk.spec.volumes, node="n"), None)
    assert by_pod(name, disk, with_volumes(*disk.spec.volumes, node="n", namespace="other"), None)
    assert not by_pod(name, disk, other, None)
    assert by_pod(name, CLAIMING, a_pod("o", node="n", claims=["c"]), None)
    assert not by_pod(name, CLAIMING, a_pod("o", node="n", claims=["c"], namespace="other"), None)
    assert not by_pod(name, CLAIMING, a_pod("o", node="n", claims=["x"]), None)
    assert by_object(name, CLAIMING, None, a_claim())
    assert not by_object(name, CLAIMING, None, a_claim("x"))
    assert not by_object(name, CLAIMING, None, a_claim(namespace="other"))
    assert not by_object(name, CLAIMING, a_claim(), a_claim())
    assert by_node(name, CLAIMING, None, NODE)


def csi_node(*limits: tuple[str, int | None], **annotations: str) -> CSINode:
    drivers = tuple(
        CSINodeDriver(name=driver, allocatable=VolumeNodeResources(count=count)) for driver, count in limits
    )
    return CSINode(metadata=meta("n", annotations=annotations), spec=CSINodeSpec(drivers=drivers))


def test_node_volume_limits() -> None:
    name = "NodeVolumeLimits"
    assert by_object(name, CLAIMING, None, csi_node())
    assert by_object(name, CLAIMING, csi_node(("d", 1)), csi_node(("d", 2)))
    assert by_object(name, CLAIMING, csi_node(), csi_node(("d", 2)))
    assert not by_object(name, CLAIMING, csi_node(("d", 2)), csi_node(("d", 1), ("e", None)))
    assert by_pod(name, CLAIMING, a_pod("o", node="n", claims=["x"]), None)
    assert by_pod(name, CLAIMING, replace(EPHEMERAL, metadata=meta("o")), None)
    assert not by_pod(name, CLAIMING, a_pod("o", node="n"), None)
    assert by_object(name, CLAIMING, None, a_claim())
    assert by_object(name, EPHEMERAL, None, a_claim("p-e"))
    assert not by_object(name, CLAIMING, None, a_claim("x"))
    attached = VolumeAttachment(metadata=meta("a"), spec=VolumeAttachmentSpec(attacher="ebs.csi.aws.com"))
    inline = with_volumes(Volume(aws_elastic_block_store=AWSElasticBlockStore(volume_id="v")))
    assert by_object(name, CLAIMING, attached, None)
    assert by_object(name, inline, attached, None)
    assert not by_object(name, with_volumes(Volume(csi=CSIVolume(driver="x"))), attached, None)
    assert by_node(name, CLAIMING, None, NODE)
    assert not by_node(name, CLAIMING, NODE, a_node("n", cpu="9"))


def a_class(mode: str | None = None, *values: str) -> StorageClass:
    topologies = (TopologySelectorTerm(),) * len(values)
    return StorageClass(metadata=meta("fast"), volume_binding_mode=mode, allowed_topologies=topologies)


def test_volume_binding() -> None:
    name = "VolumeBinding"
    assert by_object(name, CLAIMING, None, a_class())
    assert by_object(name, CLAIMING, a_class(), a_class(None, "a"))
    assert not by_object(name, CLAIMING, a_class(), a_class("Immediate"))
    assert by_object(name, CLAIMING, None, a_claim())
    assert by_object(name, CLAIMING, a_claim(), a_claim())
    assert by_object(name, EPHEMERAL, a_claim("p-e"), a_claim("p-e"))
    assert not by_object(name, CLAIMING, None, a_claim("x"))
    assert by_object(name, CLAIMING, None, PersistentVolume(metadata=meta("v")))
    assert by_node(name, CLAIMING, NODE, a_node("n", labels={"a": "1"}))
    assert not by_node(name, CLAIMING, NODE, a_node("n", cpu="9"))
    assert by_object(name, CLAIMING, None, csi_node())
    assert by_object(name, CLAIMING, csi_node(), csi_node(**{MIGRATED_PLUGINS: "x"}))
    assert not by_object(name, CLAIMING, csi_node(), csi_node(("d", 1)))


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [((None, "1Gi"), (None, "2Gi"), True), ((None, "2Gi"), (None, "1Gi"), False), ((None, None), (None, "1Gi"), True),
     (("1Gi", "9Gi"), ("2Gi", "9Gi"), True), (("1Gi", "1Gi"), ("1Gi", "9Gi"), False), (("1Gi", None), (None, None), False)],
)  # fmt: skip
def test_volume_binding_and_capacity(
    before: tuple[str | None, str | None], after: tuple[str | None, str | None], expected: bool
) -> None:
    old, new = (
        CSIStorageCapacity(metadata=meta("c"), maximum_volume_size=size, capacity=capacity)
        for size, capacity in (before, after)
    )
    assert by_object("VolumeBinding", CLAIMING, old, new) == expected
    assert by_object("VolumeBinding", CLAIMING, None, new)


def test_volume_binding_and_drivers() -> None:
    counting, silent = (
        CSIDriver(metadata=meta("d"), spec=CSIDriverSpec(storage_capacity=told)) for told in (True, False)
    )
    inline = with_volumes(Volume(csi=CSIVolume(driver="d")))
    assert by_object("VolumeBinding", inline, counting, silent)
    assert not by_object("VolumeBinding", inline, silent, counting)
    assert not by_object("VolumeBinding", CLAIMING, counting, silent)


def test_volume_zone() -> None:
    name = "VolumeZone"
    zone = "topology.kubernetes.io/zone"

    def in_zones(text: str) -> PersistentVolume:
        return PersistentVolume(metadata=meta("v", labels={zone: text}))

    assert by_object(name, CLAIMING, None, a_class("WaitForFirstConsumer"))
    assert not by_object(name, CLAIMING, None, a_class("Immediate"))
    assert by_object(name, CLAIMING, a_claim(), a_claim())
    assert not by_object(name, CLAIMING, None, a_claim("x"))
    assert by_object(name, CLAIMING, None, in_zones("a"))
    assert by_object(name, CLAIMING, in_zones("a"), in_zones("b"))
    assert not by_object(name, CLAIMING, in_zones("a__b"), in_zones("b__a"))
    assert by_node(name, CLAIMING, None, NODE)


# -- no change that helps is said not to -----------------------------------------------------------------------

APPS = ("web", "db")
affinities = st.one_of(
    st.none(), st.lists(st.sampled_from(APPS), min_size=1, max_size=2).map(lambda a: about(*a))
)
label_sets = st.dictionaries(st.sampled_from(APPS), st.just("1"), max_size=2)


@st.composite
def some_pods(draw: st.DrawFn, name: str, node: str = "") -> Pod:
    pod = a_pod(
        name,
        labels=draw(label_sets),
        namespace=draw(st.sampled_from(["default", "default", "other"])),
        cpu=draw(st.sampled_from([None, "1", "3"])),
        host_ports=draw(st.sampled_from([(), (80,), (80, 81)])),
        affinity=draw(affinities),
        anti_affinity=draw(affinities),
        node_selector=draw(st.sampled_from([{}, {}, {REGION: "a"}])),
        tolerations=draw(st.sampled_from([(), ("spot:NoSchedule",)])),
        node=node,
    )
    disks = draw(st.sampled_from([(), (Volume(gce_persistent_disk=GCEPersistentDisk(pd_name="d")),)]))
    constraints = draw(st.sampled_from([(), (evenly("web"),), (evenly("db"), evenly("web", HOST))]))
    return replace(pod, spec=replace(pod.spec, topology_spread_constraints=constraints, volumes=disks))


@st.composite
def some_nodes(draw: st.DrawFn, name: str) -> Node:
    return a_node(
        name,
        cpu=draw(st.sampled_from(["1", "2", "4"])),
        pods=draw(st.sampled_from([1, 2, 9])),
        labels=draw(st.sampled_from([{}, {REGION: "a"}, {REGION: "b"}])),
        taints=draw(st.sampled_from([(), ("spot:NoSchedule",), ("spot:NoExecute",)])),
        unschedulable=draw(st.booleans()),
    )


def taken_by(name: str, pod: Incoming, cluster: Cluster) -> dict[str, bool]:
    """By node whether the plugin of the name lets the pod pass."""
    plugin = PLUGINS[name]
    state = plugin.prepare(pod, cluster)
    if plugin.reject(state) is not None:
        return {}
    codes = np.broadcast_to(plugin.filter(state), cluster.nodes.n_rows)
    return {
        node: bool(codes[row] == FITS)
        for row, node in enumerate(cluster.nodes.names)
        if cluster.nodes.alive[row]
    }


def change_a_node(
    data: st.DataObject, cluster: Cluster, nodes: list[Node], _: list[Pod]
) -> tuple[Change, ...]:
    old = data.draw(st.sampled_from([None, *nodes]))
    new = data.draw(some_nodes("new" if old is None else old.metadata.name))
    cluster.put_node(new)
    return node_changes(old, new)


def change_a_pod(
    data: st.DataObject, cluster: Cluster, nodes: list[Node], pods: list[Pod]
) -> tuple[Change, ...]:
    old = data.draw(st.sampled_from([None, *pods]))
    new: Pod | None = None
    if old is None:
        new = data.draw(some_pods("new", data.draw(st.sampled_from(nodes)).metadata.name))
    elif data.draw(st.booleans()):
        new = replace(old, metadata=replace(old.metadata, labels=data.draw(label_sets)))
    if old is not None:
        namespace_id = cluster.namespaces.id(old.metadata.namespace)
        cluster.remove_pod(cluster.pods.find(namespace_id, old.metadata.name))
    if new is not None:
        cluster.put_pod(new)
    seen = [None if each is None else cluster.incoming(each) for each in (old, new)]
    return pod_changes(*seen)


def a_world(data: st.DataObject) -> tuple[Cluster, list[Node], list[Pod]]:
    cluster = Cluster(ModernAccounting())
    nodes = [data.draw(some_nodes(f"n{i}")) for i in range(data.draw(st.integers(1, 3)))]
    for node in nodes:
        cluster.put_node(node)
    where = st.sampled_from(nodes)
    n_pods = data.draw(st.integers(0, 4))
    pods = [data.draw(some_pods(f"o{i}", data.draw(where).metadata.name)) for i in range(n_pods)]
    for pod in pods:
        cluster.put_pod(pod)
    return cluster, nodes, pods


changes_of_worlds = st.sampled_from([change_a_node, change_a_pod])


@given(data=st.data(), change=changes_of_worlds, pod=some_pods("p"))
def test_no_change_that_helps_is_passed_over(data: st.DataObject, change: Any, pod: Pod) -> None:
    cluster, nodes, pods = a_world(data)
    incoming = cluster.incoming(pod)
    before = {name: taken_by(name, incoming, cluster) for name in PLUGINS}
    changes = change(data, cluster, nodes, pods)
    for name, taken in before.items():
        after = taken_by(name, incoming, cluster)
        is_better = any(fits and not taken.get(node, False) for node, fits in after.items())
        if is_better and not all(taken.values()):
            assert is_helped(name, pod, *changes, cluster=cluster), name


@given(data=st.data(), change=changes_of_worlds, pod=some_pods("p"))
def test_a_change_that_makes_room_helps_one_of_those_who_turned_the_pod_away(
    data: st.DataObject, change: Any, pod: Pod
) -> None:
    cluster, nodes, pods = a_world(data)
    evaluation = Evaluation(PROFILE, cluster.incoming(pod), cluster)
    assume(not evaluation.fits.any())
    rejected_by = evaluation.unschedulable().rejected_by
    changes = change(data, cluster, nodes, pods)
    if Evaluation(PROFILE, cluster.incoming(pod), cluster).fits.any():
        assert any(is_helped(name, pod, *changes, cluster=cluster) for name in rejected_by), rejected_by
