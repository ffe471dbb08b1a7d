"""Worked by hand: limits of volumes, pods of a service together, pods spread over domains."""

from typing import Any

import msgspec
import numpy as np
import pytest

from berth.cluster.cluster import Cluster
from berth.framework.csi_migration import Migration, NotTranslatable
from berth.framework.plugin import FilterPlugin
from berth.objects.nodes import Node
from berth.objects.pods import Pod
from berth.objects.storage import PersistentVolume
from berth.objects.workloads import Service
from berth.plugins.pod_topology_spread import SpreadFilter, SpreadScore
from berth.plugins.pod_topology_spread.logarithm import log
from berth.plugins.pod_topology_spread.scoring import round_half_away
from berth.plugins.service_affinity import ServiceAffinity, ServiceAntiAffinity
from berth.plugins.volume_limits import EBS_DISK, DiskCounter, MaxVolumeCount, read_max_volumes
from berth.plugins.volume_limits.counting import limit_key

Json = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"


def a_cluster(*nodes: tuple[str, Json, Json]) -> Cluster:
    cluster = Cluster()
    for name, labels, allocatable in nodes:
        node = {"metadata": {"name": name, "labels": labels}, "status": {"allocatable": allocatable}}
        cluster.put_node(msgspec.convert(node, Node))
    return cluster


def a_pod(name: str, node: str = "", *, disks: tuple[str, ...] = (), **spec: Any) -> Pod:
    spec |= {"nodeName": node, "volumes": [{"awsElasticBlockStore": {"volumeID": disk}} for disk in disks]}
    meta = {"name": name, "namespace": "default", "labels": {"app": "web"}}
    return msgspec.convert({"metadata": meta, "spec": spec}, Pod)


def fits(plugin: FilterPlugin[Any], cluster: Cluster, pod: Pod) -> list[bool]:
    state = plugin.prepare(cluster.incoming(pod), cluster)
    return (plugin.filter(state) == 0).tolist()


def test_node_says_how_many_disks_it_takes() -> None:
    cluster = a_cluster(
        ("none", {}, {"attachable-volumes-aws-ebs": "0"}),
        ("one", {}, {"attachable-volumes-aws-ebs": "1"}),
        ("shared", {}, {"attachable-volumes-aws-ebs": "1"}),
        ("silent", {}, {}),
    )
    cluster.put_pod(a_pod("a", "one", disks=("vol-1",)))
    cluster.put_pod(a_pod("b", "shared", disks=("vol-2",)))
    cluster.put_pod(a_pod("c", "silent", disks=("vol-1",)))
    plugin = MaxVolumeCount(DiskCounter(EBS_DISK), limit=39)
    assert fits(plugin, cluster, a_pod("p", disks=("vol-2",))) == [False, False, True, True]
    assert fits(plugin, cluster, a_pod("p")) == [True] * 4


def test_instance_types_take_fewer_disks() -> None:
    types = ["m5.large", "m4.large", "c5d.9xlarge", "t3.micro", "at3", "z1d.large"]
    label = "beta.kubernetes.io/instance-type"
    cluster = a_cluster(*((f"n{i}", {label: kind}, {}) for i, kind in enumerate(types)))
    plugin = MaxVolumeCount(DiskCounter(EBS_DISK), limit=39, nitro_limit=25)
    many = a_pod("p", disks=tuple(f"vol-{i}" for i in range(26)))
    assert fits(plugin, cluster, many) == [False, True, False, False, False, False]


@pytest.mark.parametrize(
    ("text", "expected"), [("7", 7), ("+7", 7), ("0", None), ("-1", None), ("7.0", None), ("", None)]
)
def test_limit_of_the_environment(text: str, expected: int | None) -> None:
    assert read_max_volumes(text) == expected


def test_long_driver_names_are_cut() -> None:
    assert limit_key("ebs.csi.aws.com") == "attachable-volumes-csi-ebs.csi.aws.com"
    assert len(limit_key("a" * 40)) == len("attachable-volumes-csi-") + 39


def test_migrated_volumes_have_the_names_of_their_driver() -> None:
    def volume(labels: Json, **source: Any) -> PersistentVolume:
        return msgspec.convert({"metadata": {"labels": labels}, "spec": source}, PersistentVolume)

    today, old = Migration.of_1_36(), Migration.of_1_17({})
    disk = volume({ZONE: "us-east1-b__us-east1-c"}, gcePersistentDisk={"pdName": "d"})
    assert today.translated(disk) == "projects/UNSPECIFIED/regions/us-east1/disks/d"
    assert old.translated(disk) == "projects/UNSPECIFIED/zones/UNSPECIFIED/disks/d"
    assert today.translated(volume({}, awsElasticBlockStore={"volumeID": "aws://a/vol-1"})) == "vol-1"
    with pytest.raises(NotTranslatable):
        today.translated(volume({}, awsElasticBlockStore={"volumeID": "aws://a/x"}))


def test_service_stays_where_its_first_pod_is() -> None:
    cluster = a_cluster(("a", {ZONE: "x"}, {}), ("b", {ZONE: "x"}, {}), ("c", {ZONE: "y"}, {}), ("d", {}, {}))
    plugin, pod = ServiceAffinity((ZONE,)), a_pod("p")
    cluster.put_pod(a_pod("first", "a"))
    assert fits(plugin, cluster, pod) == [True] * 4
    service = {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": {"app": "web"}}}
    cluster.put(msgspec.convert(service, Service))
    assert fits(plugin, cluster, pod) == [True, True, False, False]
    assert fits(plugin, cluster, a_pod("p", nodeSelector={ZONE: "y"})) == [False, False, True, False]


def test_service_keeps_apart_by_share() -> None:
    cluster = a_cluster(("a", {ZONE: "x"}, {}), ("b", {ZONE: "y"}, {}), ("c", {ZONE: "y"}, {}), ("d", {}, {}))
    service = {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": {"app": "web"}}}
    cluster.put(msgspec.convert(service, Service))
    for name, node in (("1", "a"), ("2", "b"), ("3", "c"), ("4", "d")):
        cluster.put_pod(a_pod(name, node))
    plugin, rows = ServiceAntiAffinity(ZONE, 10), np.arange(4)
    state = plugin.prepare(cluster.incoming(a_pod("p")), cluster)
    # Of 4 pods 1 is in x, 2 are in y: 7.5 and 5, cut off.
    assert plugin.normalize(state, plugin.score(state, rows), rows).tolist() == [7, 5, 5, 0]


def test_pod_may_not_skew_zones() -> None:
    cluster = a_cluster(("a", {ZONE: "x"}, {}), ("b", {ZONE: "y"}, {}), ("c", {}, {}))
    cluster.put_pod(a_pod("1", "a"))
    one = {
        "topologyKey": ZONE,
        "maxSkew": 1,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    plugin = SpreadFilter()
    pod = a_pod("p", topologySpreadConstraints=[one])
    assert fits(plugin, cluster, pod) == [False, True, False]
    # With 3 domains wanted and 2 there, the emptiest counts as empty.
    cluster.put_pod(a_pod("2", "b"))
    assert fits(plugin, cluster, pod) == [True, True, False]
    wide = a_pod("p", topologySpreadConstraints=[one | {"minDomains": 3}])
    assert fits(plugin, cluster, wide) == [False, False, False]


def test_services_spread_by_default() -> None:
    cluster = a_cluster(
        *((n, {ZONE: z, "kubernetes.io/hostname": n}, {}) for n, z in (("a", "x"), ("b", "y")))
    )
    service = {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": {"app": "web"}}}
    cluster.put_pod(a_pod("1", "a"))
    plugin, rows = SpreadScore(), np.arange(2)

    def scores() -> list[int]:
        state = plugin.prepare(cluster.incoming(a_pod("p")), cluster)
        return plugin.normalize(state, plugin.score(state, rows), rows).tolist()

    assert scores() == [0, 0]
    cluster.put(msgspec.convert(service, Service))
    # Raw: a has 2 ln 4 + 2 + 4 = 8.77, b has 6: 9 and 6, of which 100 (9 + 6 - s) / 9.
    assert scores() == [66, 100]


def test_rounding_and_logarithm_are_go_s() -> None:
    assert round_half_away(np.array([0.5, 1.5, 2.4999, 0.49999999999999994])).tolist() == [1, 2, 2, 0]
    # Where the C library's last bit is another one.
    assert log(3.0).hex() == "0x1.193ea7aad030ap+0"
