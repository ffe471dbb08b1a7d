import numpy as np
import pytest

from berth.cluster.cluster import Cluster
from berth.framework.plugin import BatchKind
from berth.objects.base import ObjectMeta
from berth.objects.nodes import Node
from berth.objects.storage import PersistentVolume
from berth.plugins.volume_zone import VolumeZone, in_zones_of
from tests.plugins.volume_cases import ZONE_LABELS, Json, a_cluster, answer, golden

PLUGINS = {
    "1.10": VolumeZone(class_annotation=False, binding_mode_required=False),
    "1.13": VolumeZone(),
    "1.17": VolumeZone(unbound='PersistentVolumeClaim was not found: "{name}"'),
}
GOLDEN = golden("volumes.jsonl.gz")
ZONE, REGION = ZONE_LABELS
CONFLICT = "node(s) had no available volume zone"


def a_case(volume_labels: dict[str, str] | None, **claim: str) -> Json:
    nodes = {"n1": {ZONE: "a", REGION: "r"}, "n2": {ZONE: "b"}, "n3": {}}
    volume = {"metadata": {"name": "v", "labels": volume_labels or {}}}
    claims = [{"metadata": {"name": "c", "namespace": "default"}, "spec": claim}]
    return {
        "nodes": [{"metadata": {"name": name, "labels": labels}} for name, labels in nodes.items()],
        "pod": {
            "metadata": {"name": "incoming"},
            "spec": {"volumes": [{"name": "x", "persistentVolumeClaim": {"claimName": "c"}}]},
        },
        "persistentVolumes": [] if volume_labels is None else [volume],
        "persistentVolumeClaims": claims if claim else [],
        "storageClasses": [
            {"metadata": {"name": "wait"}, "volumeBindingMode": "WaitForFirstConsumer"},
            {"metadata": {"name": "now"}, "volumeBindingMode": "Immediate"},
            {"metadata": {"name": "unset"}},
        ],
    }


@pytest.mark.parametrize(("release", "plugin"), PLUGINS.items())
def test_answers_are_those_of_the_release(release: str, plugin: VolumeZone) -> None:
    records = [record for record in GOLDEN if record["release"] == release]
    assert len(records) >= 150
    for record in records:
        got = answer(plugin, record["case"])
        assert got == record["predicates"]["NoVolumeZoneConflict"], record["case"]["id"]


@pytest.mark.parametrize(
    ("labels", "failing"),
    [
        ({}, []),
        ({ZONE: "a"}, ["n2"]),
        ({ZONE: "a__b"}, []),
        ({ZONE: "c"}, ["n1", "n2"]),
        # n2 has a zone and no region: it is asked for one nevertheless.
        ({REGION: "r"}, ["n2"]),
        ({ZONE: "__a"}, []),
    ],
)
def test_a_node_must_be_in_a_zone_of_the_volume(labels: dict[str, str], failing: list[str]) -> None:
    assert answer(VolumeZone(), a_case(labels, volumeName="v")) == {name: [CONFLICT] for name in failing}


@pytest.mark.parametrize(
    ("case", "expected"),
    [
        (a_case({}), {"error": 'persistentvolumeclaim "c" not found'}),
        (a_case(None, volumeName="v"), {"error": 'persistentvolume "v" not found'}),
        (a_case(None, storageClassName="wait"), {}),
        (a_case(None, storageClassName="now"), {"error": 'PersistentVolumeClaim is not bound: "c"'}),
        (
            a_case(None, storageClassName="unset"),
            {"error": 'VolumeBindingMode not set for StorageClass "unset"'},
        ),
    ],
)
def test_claims_without_a_volume(case: Json, expected: Json) -> None:
    assert answer(VolumeZone(), case) == expected


def test_only_labels_move_the_verdicts() -> None:
    plugin = VolumeZone()
    cluster, pod = a_cluster(a_case({ZONE: "a"}, volumeName="v"))
    incoming = cluster.incoming(pod)
    state, version = plugin.prepare(incoming, cluster), cluster.log.version
    assert plugin.batch(state, np.ones(3, dtype=np.bool_)) is BatchKind.CONSTANT
    cluster.assume(incoming, 0)
    changes = cluster.log.since(version)
    assert changes is not None
    rows = plugin.mend(state, changes)
    assert isinstance(rows, np.ndarray)
    assert not rows.size
    cluster.put_node(Node(metadata=ObjectMeta(name="n2", labels={ZONE: "a"})))
    changes = cluster.log.since(version)
    assert changes is not None
    assert plugin.mend(state, changes) is None


def test_a_volume_without_zones_is_everywhere() -> None:
    cluster = Cluster()
    cluster.put_node(Node(metadata=ObjectMeta(name="n")))
    assert in_zones_of(PersistentVolume(), cluster.nodes.labels).tolist() == [True]
