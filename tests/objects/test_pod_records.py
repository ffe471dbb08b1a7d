"""Pods taken in as bytes get the ids that decoded ones get."""

import json
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.cluster import Cluster
from berth.objects.decode import decode
from berth.objects.pod_records import decode_record, record_of
from berth.objects.pods import Pod

TOKEN = {"name": "kube-api-access-x7k2p", "projected": {"sources": []}}

containers = st.fixed_dictionaries(
    {"name": st.sampled_from(["main", "side"])},
    optional={
        "image": st.sampled_from(["web:1", ""]),
        "imagePullPolicy": st.just("Always"),
        "resources": st.sampled_from([{}, {"requests": {"cpu": "1"}}, {"limits": {"memory": 5}}]),
        "ports": st.sampled_from([[], [{"hostPort": 80, "name": "http"}], [{"containerPort": 80}]]),
    },
)
specs = st.fixed_dictionaries(
    {"containers": st.lists(containers, max_size=2)},
    optional={
        "nodeName": st.sampled_from(["n1", "n2"]),
        "initContainers": st.lists(containers, max_size=1),
        "tolerations": st.just([{"operator": "Exists", "tolerationSeconds": 300}]),
        "volumes": st.sampled_from(
            [[], [TOKEN], [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]]
        ),
        "priority": st.integers(0, 3),
        "nodeSelector": st.just({"disk": "ssd"}),
        "hostNetwork": st.booleans(),
        "affinity": st.sampled_from([{}, {"podAntiAffinity": {}}]),
    },
)
pods = st.builds(
    lambda spec, labels: {"metadata": {"name": "p", "namespace": "shop", "labels": labels}, "spec": spec},
    specs,
    st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2),
)


def raw(pod: dict[str, Any], **dumps: Any) -> bytes:
    return json.dumps(pod, **dumps).encode()


@given(st.lists(pods, min_size=1, max_size=4))
def test_a_record_and_a_decoded_pod_have_the_same_ids(given_pods: list[dict[str, Any]]) -> None:
    cluster = Cluster()
    for pod in given_pods:
        decoded = decode(raw(pod), Pod)
        from_bytes = cluster.values_of(decode_record(raw(pod)))
        spaced = cluster.values_of(decode_record(raw(pod, indent=1)))
        from_pod = cluster.values_of(record_of(decoded))
        incoming = cluster.incoming(decoded)
        assert from_bytes == spaced == from_pod
        assert incoming.shape[:5] == (
            from_bytes.namespace_id,
            from_bytes.labels_id,
            from_bytes.spec_id,
            from_bytes.owner_id,
            from_bytes.node_name_id,
        )


def with_volume(*volumes: dict[str, Any], node: str = "") -> bytes:
    return raw({"metadata": {"name": "p"}, "spec": {"nodeName": node, "volumes": list(volumes)}})


def spec_id(cluster: Cluster, pod: bytes) -> int:
    return cluster.values_of(decode_record(pod)).spec_id


def test_random_volume_names_do_not_split_shapes() -> None:
    cluster = Cluster()
    ids = {spec_id(cluster, with_volume(TOKEN | {"name": f"token-{i}"}, node=f"n{i}")) for i in range(3)}
    assert len(ids) == 1
    assert cluster.incoming(decode(with_volume(TOKEN), Pod)).spec_id in ids


def test_claims_tell_shapes_apart() -> None:
    cluster = Cluster()
    claims = [{"name": "data", "persistentVolumeClaim": {"claimName": name}} for name in ("a", "b")]
    assert spec_id(cluster, with_volume(claims[0])) != spec_id(cluster, with_volume(claims[1]))


def test_an_ephemeral_volume_keeps_its_name_for_its_claim_is_called_after_it() -> None:
    cluster = Cluster()
    volumes: list[dict[str, Any]] = [
        {"name": name, "ephemeral": {"volumeClaimTemplate": {}}} for name in ("a", "b")
    ]
    ids = [spec_id(cluster, with_volume(volume)) for volume in volumes]
    assert ids[0] != ids[1]
    assert [cluster.specs[i].spec.volumes[0].name for i in ids] == ["a", "b"]
    assert cluster.incoming(decode(with_volume(volumes[0]), Pod)).spec_id == ids[0]


def test_nulls_in_a_record_count_as_absent() -> None:
    full = {
        "metadata": {"name": "p", "labels": None, "ownerReferences": None, "annotations": None},
        "spec": {"nodeName": None, "containers": None, "volumes": None, "affinity": None},
        "status": {"conditions": None, "containerStatuses": [{"restartCount": None}], "phase": None},
    }
    cluster = Cluster()
    given_nulls = cluster.values_of(decode_record(raw(full)))
    assert given_nulls == cluster.values_of(decode_record(raw({"metadata": {"name": "p"}, "spec": {}})))


def test_what_is_read_of_metadata_and_status() -> None:
    pod = {
        "metadata": {
            "name": "web-1",
            "namespace": "shop",
            "uid": "u",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "deletionTimestamp": "2026-01-02T00:00:00Z",
            "annotations": {"controller.kubernetes.io/pod-deletion-cost": "-5", "other": "x"},
        },
        "spec": {"nodeName": "n1"},
        "status": {
            "phase": "Pending",
            "conditions": [
                {"type": "Initialized", "status": "False"},
                {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:10Z"},
            ],
            "containerStatuses": [{"restartCount": 2}, {"restartCount": 7}, {}],
        },
    }
    values = Cluster().values_of(decode_record(raw(pod)))
    assert (values.name, values.uid, values.phase) == ("web-1", "u", 1)
    assert (values.ready, values.terminating, values.restarts) == (True, True, 7)
    assert values.ready_since - values.created == 10
    assert values.deletion_cost == -5


def test_a_pod_without_a_namespace_is_in_default() -> None:
    cluster = Cluster()
    record = cluster.values_of(decode_record(b'{"metadata":{"name":"p"},"spec":{}}'))
    incoming = cluster.incoming(msgspec.convert({"metadata": {"name": "p"}}, Pod))
    assert incoming.namespace == "default"
    assert incoming.namespace_id == record.namespace_id
