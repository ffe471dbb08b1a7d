"""Kept evaluations of volume limits, service affinity and spreading, mended through any history, equal fresh ones."""

from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.cluster.cluster import Cluster
from berth.framework.profile import NamedFilter, Profile, WeightedScore
from berth.objects.nodes import Node
from berth.objects.pods import Pod
from berth.objects.storage import CSINode, PersistentVolume, PersistentVolumeClaim, VolumeAttachment
from berth.objects.workloads import Service
from berth.plugins.no_disk_conflict import VolumeRestrictions
from berth.plugins.pod_topology_spread import EVEN_PODS, EvenPodsScore, SpreadFilter, SpreadScore
from berth.plugins.service_affinity import ServiceAffinity, ServiceAntiAffinity
from berth.releases.counted_volumes import volume_counts_1_13, volume_counts_1_17, volume_limits_1_36
from berth.releases.release import Options
from berth.scheduling.evaluation import Evaluation

Json = dict[str, Any]
N_NODES = 4
HOST, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
OPTIONS = Options(feature_gates={"CSIMigrationAWS": True})
PROFILES = {
    "1.13": Profile(
        filters=(
            NamedFilter("MaxEBSVolumeCount", volume_counts_1_13()["MaxEBSVolumeCount"](OPTIONS)),
            NamedFilter("MaxCSIVolumeCountPred", volume_counts_1_13()["MaxCSIVolumeCountPred"](OPTIONS)),
            NamedFilter("CheckServiceAffinity", ServiceAffinity((ZONE, "disk"))),
        ),
        scores=(WeightedScore("ServiceAntiAffinity", ServiceAntiAffinity(ZONE, 10), 1),),
    ),
    "1.17": Profile(
        filters=(
            NamedFilter("MaxEBSVolumeCount", volume_counts_1_17()["MaxEBSVolumeCount"](OPTIONS)),
            NamedFilter("MaxCSIVolumeCountPred", volume_counts_1_17()["MaxCSIVolumeCountPred"](OPTIONS)),
            NamedFilter("EvenPodsSpread", SpreadFilter(EVEN_PODS)),
        ),
        scores=(WeightedScore("EvenPodsSpreadPriority", EvenPodsScore(), 1),),
    ),
    "1.36": Profile(
        filters=(
            NamedFilter("NodeVolumeLimits", volume_limits_1_36()),
            NamedFilter("VolumeRestrictions", VolumeRestrictions()),
            NamedFilter("PodTopologySpread", SpreadFilter()),
        ),
        scores=(WeightedScore("PodTopologySpread", SpreadScore(), 1),),
    ),
}

volumes: st.SearchStrategy[Json] = st.one_of(
    st.builds(lambda k: {"awsElasticBlockStore": {"volumeID": f"vol-{k}"}}, st.integers(1, 3)),
    st.builds(lambda k: {"persistentVolumeClaim": {"claimName": f"claim-{k}"}}, st.integers(1, 4)),
    st.just({"ephemeral": {}}),
    st.just({"persistentVolumeClaim": {"claimName": ""}}),
)
selectors = st.sampled_from([{"matchLabels": {"app": "web"}}, {}, None])
constraints = st.builds(
    lambda key, action, skew, selector, domains: {
        "topologyKey": key,
        "whenUnsatisfiable": action,
        "maxSkew": skew,
        "labelSelector": selector,
        "minDomains": domains,
    },
    st.sampled_from([HOST, ZONE, "disk"]),
    st.sampled_from(["DoNotSchedule", "ScheduleAnyway"]),
    st.integers(1, 2),
    selectors,
    st.sampled_from([None, 3]),
)


def a_pod(app: str, mounted: list[Json], spread: list[Json]) -> Pod:
    spec: Json = {"volumes": [{"name": f"v{i}", **v} for i, v in enumerate(mounted)]}
    if spread:
        spec["topologySpreadConstraints"] = spread
    labels = {"app": app} if app else {}
    return msgspec.convert(
        {"metadata": {"name": "p", "uid": "u", "namespace": "default", "labels": labels}, "spec": spec}, Pod
    )


pods = st.builds(
    a_pod,
    st.sampled_from(["web", "db", ""]),
    st.lists(volumes, max_size=3),
    st.lists(constraints, max_size=2),
)
zones = st.sampled_from(["a", "b", None])
steps = st.one_of(
    st.tuples(st.just("assume"), pods, st.integers(0, N_NODES - 1)),
    st.tuples(st.just("more of the shape"), st.none(), st.integers(0, N_NODES - 1)),
    st.tuples(st.just("forget"), st.none(), st.integers(0, 20)),
    st.tuples(st.just("relabel"), zones, st.integers(0, N_NODES - 1)),
    st.tuples(st.just("mend"), st.none(), st.just(0)),
)


def a_node(i: int, zone: str | None) -> Node:
    labels = {HOST: f"n{i}", "disk": "sh"[i % 2]} | ({ZONE: zone} if zone else {})
    allocatable = {"attachable-volumes-aws-ebs": str(i), "attachable-volumes-csi-ebs.csi.aws.com": "1"}
    node = {"metadata": {"name": f"n{i}", "labels": labels}, "status": {"allocatable": allocatable}}
    return msgspec.convert(node, Node)


def a_world() -> Cluster:
    cluster = Cluster()
    for i in range(N_NODES):
        cluster.put_node(a_node(i, "ab"[i % 2]))
    drivers = [{"name": "ebs.csi.aws.com", "allocatable": {"count": 2}}]
    migrated = {"storage.alpha.kubernetes.io/migrated-plugins": "kubernetes.io/aws-ebs"}
    for i in range(2):
        meta = {"name": f"n{i}", "annotations": migrated if i else {}}
        cluster.put(msgspec.convert({"metadata": meta, "spec": {"drivers": drivers}}, CSINode))
    for k in range(1, 4):
        source = {"csi": {"driver": "ebs.csi.aws.com", "volumeHandle": f"vol-{k}"}}
        in_tree = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
        volume = {"metadata": {"name": f"pv-{k}"}, "spec": in_tree if k == 3 else source}
        cluster.put(msgspec.convert(volume, PersistentVolume))
        claim = {
            "metadata": {"name": f"claim-{k}", "namespace": "default"},
            "spec": {"volumeName": f"pv-{k}", "accessModes": ["ReadWriteOncePod"] if k == 2 else []},
        }
        cluster.put(msgspec.convert(claim, PersistentVolumeClaim))
    attachment = {"attacher": "ebs.csi.aws.com", "nodeName": "n0", "source": {"persistentVolumeName": "pv-1"}}
    cluster.put(msgspec.convert({"metadata": {"name": "va"}, "spec": attachment}, VolumeAttachment))
    service = {"metadata": {"name": "s", "namespace": "default"}, "spec": {"selector": {"app": "web"}}}
    cluster.put(msgspec.convert(service, Service))
    return cluster


def answers(evaluation: Evaluation) -> list[object]:
    rows = np.arange(N_NODES)
    reasons = [
        [evaluation.reasons(i, code) if code else () for code in codes.tolist()]
        for i, codes in enumerate(evaluation.codes)
    ]
    return [reasons, [column.tolist() for column in evaluation.normalized(rows)]]


@pytest.mark.parametrize("release", PROFILES)
@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(pod=pods, history=st.lists(steps, max_size=20))
def test_mended_evaluation_equals_a_fresh_one(
    release: str, pod: Pod, history: list[tuple[str, Any, int]]
) -> None:
    cluster = a_world()
    incoming = cluster.incoming(pod)
    kept = Evaluation(PROFILES[release], incoming, cluster)
    placed: list[int] = []
    for what, thing, number in [*history, ("mend", None, 0)]:
        if what == "assume":
            placed.append(cluster.assume(cluster.incoming(thing), number))
        elif what == "more of the shape":
            placed.append(cluster.assume(incoming, number))
        elif what == "forget" and placed:
            cluster.forget(placed.pop(number % len(placed)))
        elif what == "relabel":
            cluster.put_node(a_node(number, thing))
        elif what == "mend":
            kept.mend()
            cluster_derived, cluster.derived = cluster.derived, {}
            fresh = Evaluation(PROFILES[release], incoming, cluster)
            wanted = answers(fresh)
            cluster.derived = cluster_derived
            assert answers(kept) == wanted


def test_volumes_are_kept_by_pod_and_two_alike_are_not_one() -> None:
    cluster = a_world()
    disk = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
    unreadable = cluster.incoming(a_pod("db", [{"persistentVolumeClaim": {"claimName": ""}}], []))
    asking = cluster.incoming(a_pod("web", [disk], []))
    first = cluster.assume(unreadable, 0)
    kept = Evaluation(PROFILES["1.36"], asking, cluster)
    answers(kept)
    cluster.forget(first)
    cluster.assume(asking, 0)  # takes the first one's id
    cluster.forget(cluster.assume(unreadable, 0))
    kept.mend()
    cluster_derived, cluster.derived = cluster.derived, {}
    wanted = answers(Evaluation(PROFILES["1.36"], asking, cluster))
    cluster.derived = cluster_derived
    assert answers(kept) == wanted
