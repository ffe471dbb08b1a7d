from typing import Any

import msgspec
import numpy as np
import pytest

from berth.cluster.cluster import Cluster
from berth.framework.plugin import BatchKind
from berth.framework.profile import NamedFilter, Profile
from berth.objects.storage import PersistentVolume, PersistentVolumeClaim
from berth.plugins.volume_binding import BindingRules, SelectedNode, VolumeBinding, bindings
from berth.scheduling.evaluation import Evaluation
from tests.plugins.volume_cases import Json, a_cluster, answer, golden, read

RULES = {
    "1.10": BindingRules(
        missing_claim='error getting PVC "{name}": persistentvolumeclaim "{name}" not found',
        unbound="pod has unbound PersistentVolumeClaims",
        selected_node=SelectedNode.IGNORED,
        prebound_counts=True,
        binding_mode_required=False,
        match_fields=False,
        volume_modes=False,
        available_only=False,
        provisions=False,
    ),
    "1.13": BindingRules(),
    "1.17": BindingRules(selected_node=SelectedNode.PINNED, sought_by_annotation=True),
}
GOLDEN = golden("volumes.jsonl.gz")
NODE_CONFLICT = "node(s) had volume node affinity conflict"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def a_volume(name: str, size: str, *hosts: str, **spec: Any) -> Json:
    spec = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "local",
    } | spec
    if hosts:
        expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(hosts)}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    return {"metadata": {"name": name}, "spec": spec, "status": {"phase": "Available"}}


def a_claim(name: str, size: str, annotations: dict[str, str] | None = None, **spec: Any) -> Json:
    spec = {"resources": {"requests": {"storage": size}}, "storageClassName": "local"} | spec
    meta = {"name": name, "namespace": "default", "uid": f"uid-{name}", "annotations": annotations or {}}
    return {"metadata": meta, "spec": spec | {"accessModes": ["ReadWriteOnce"]}}


def a_case(
    volumes: list[Json], claims: list[Json], *used: str, provisioner: str = "kubernetes.io/no-provisioner"
) -> Json:
    hosts = ("n1", "n2", "n3")
    return {
        "nodes": [{"metadata": {"name": h, "labels": {"kubernetes.io/hostname": h}}} for h in hosts],
        "pod": {
            "metadata": {"name": "incoming"},
            "spec": {"volumes": [{"name": c, "persistentVolumeClaim": {"claimName": c}} for c in used]},
        },
        "persistentVolumes": volumes,
        "persistentVolumeClaims": claims,
        "storageClasses": [
            {
                "metadata": {"name": "local"},
                "provisioner": provisioner,
                "volumeBindingMode": "WaitForFirstConsumer",
            }
        ],
    }


@pytest.mark.parametrize(("release", "rules"), RULES.items())
def test_answers_are_those_of_the_release(release: str, rules: BindingRules) -> None:
    plugin = VolumeBinding(rules)
    records = [record for record in GOLDEN if record["release"] == release]
    assert len(records) >= 150
    for record in records:
        got = answer(plugin, record["case"])
        assert got == record["predicates"]["CheckVolumeBinding"], record["case"]["id"]


def test_a_pod_without_claims_fits() -> None:
    case = a_case([], [])
    assert answer(VolumeBinding(), case) == {}
    cluster, pod = a_cluster(case)
    state = VolumeBinding().prepare(cluster.incoming(pod), cluster)
    assert VolumeBinding().batch(state, np.ones(3, dtype=np.bool_)) is BatchKind.CONSTANT


def test_a_cluster_may_have_no_nodes() -> None:
    case = a_case([a_volume("v", "1Gi", "n1")], [a_claim("c", "1Gi")], "c") | {"nodes": []}
    assert answer(VolumeBinding(), case) == {}


def test_a_bound_claim_needs_its_volume() -> None:
    claim = a_claim("c", "1Gi", BOUND, volumeName="v")
    case = a_case([a_volume("v", "1Gi", "n1", "n3")], [claim], "c")
    assert answer(VolumeBinding(), case) == {"n2": [NODE_CONFLICT]}


def test_two_claims_need_two_volumes() -> None:
    # n1 has one volume, n2 two of which only one is large enough for each, n3 two that both would do.
    volumes = [
        a_volume("v1", "5Gi", "n1"),
        a_volume("v2", "5Gi", "n2"),
        a_volume("v3", "1Gi", "n2"),
        a_volume("v4", "5Gi", "n3"),
        a_volume("v5", "6Gi", "n3"),
    ]
    claims = [a_claim("large", "4Gi"), a_claim("small", "1Gi")]
    assert answer(VolumeBinding(), a_case(volumes, claims, "large", "small")) == {"n1": [BIND_CONFLICT]}
    assert answer(VolumeBinding(), a_case(volumes, claims, "large", "large")) == {
        "n1": [BIND_CONFLICT],
        "n2": [BIND_CONFLICT],
    }


def test_what_is_not_there_is_provisioned() -> None:
    case = a_case([a_volume("v", "1Gi", "n1")], [a_claim("c", "2Gi")], "c", provisioner="ebs.csi.aws.com")
    assert answer(VolumeBinding(), case) == {}
    (storage_class,) = case["storageClasses"]
    expression = {"key": "kubernetes.io/hostname", "values": ["n2"]}
    storage_class["allowedTopologies"] = [{"matchLabelExpressions": [expression]}]
    assert answer(VolumeBinding(), case) == {"n1": [BIND_CONFLICT], "n3": [BIND_CONFLICT]}


def test_a_volume_that_names_the_claim_is_the_only_choice() -> None:
    ref = {"namespace": "default", "name": "c"}
    volumes = [a_volume("reserved", "9Gi", "n1", claimRef=ref), a_volume("free", "1Gi")]
    assert answer(VolumeBinding(), a_case(volumes, [a_claim("c", "1Gi")], "c")) == {
        "n2": [BIND_CONFLICT],
        "n3": [BIND_CONFLICT],
    }


def test_both_reasons_stand_in_order() -> None:
    claims = [a_claim("c", "1Gi", BOUND, volumeName="v"), a_claim("d", "1Gi")]
    case = a_case([a_volume("v", "1Gi", "n1") | {"status": {"phase": "Bound"}}], claims, "c", "d")
    assert answer(VolumeBinding(), case) == {
        "n1": [BIND_CONFLICT],
        "n2": [NODE_CONFLICT, BIND_CONFLICT],
        "n3": [NODE_CONFLICT, BIND_CONFLICT],
    }


@pytest.mark.parametrize(
    ("claims", "text"),
    [
        ([], 'error getting PVC "default/c": could not find v1.PersistentVolumeClaim "default/c"'),
        ([a_claim("c", "1Gi", BOUND, volumeName="gone")], 'could not find v1.PersistentVolume "gone"'),
        ([a_claim("c", "1Gi", volumeName="v")], "pod has unbound immediate PersistentVolumeClaims"),
        ([a_claim("c", "1Gi", storageClassName="gone")], "pod has unbound immediate PersistentVolumeClaims"),
        (
            [
                a_claim(
                    "c", "1Gi", selector={"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}
                )
            ],
            "error creating internal label selector for claim: default/c: "
            "for 'in', 'notin' operators, values set can't be empty",
        ),
    ],
)
def test_errors(claims: list[Json], text: str) -> None:
    assert answer(VolumeBinding(), a_case([], claims, "c")) == {"error": text}


def an_evaluation(case: Json) -> tuple[Evaluation, Cluster]:
    cluster, pod = a_cluster(case)
    profile = Profile((NamedFilter("CheckVolumeBinding", VolumeBinding()),), ())
    return Evaluation(profile, cluster.incoming(pod), cluster), cluster


def test_verdicts_are_mended() -> None:
    case = a_case([a_volume("v", "1Gi", "n1")], [a_claim("c", "1Gi")], "c")
    evaluation, cluster = an_evaluation(case)
    assert evaluation.fits.tolist() == [True, False, False]
    cluster.assume(evaluation.pod, 1)
    evaluation.mend()
    assert evaluation.fits.tolist() == [True, False, False]
    node = cluster.nodes.get(2)
    labels = {"kubernetes.io/hostname": "n1"}
    cluster.put_node(
        msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, labels=labels))
    )
    evaluation.mend()
    assert evaluation.fits.tolist() == [True, False, True]
    cluster.put(read(a_volume("w", "2Gi"), PersistentVolume))
    evaluation.mend()
    assert evaluation.fits.all()


def test_claims_that_will_be_bound_go_one_at_a_time() -> None:
    everywhere = np.ones(3, dtype=np.bool_)
    plugin = VolumeBinding()
    evaluation, cluster = an_evaluation(a_case([a_volume("v", "1Gi", "n1")], [a_claim("c", "1Gi")], "c"))
    assert plugin.batch(evaluation.filter_states[0], everywhere) is BatchKind.SERIAL
    cluster.put(read(a_claim("c", "1Gi", BOUND, volumeName="v"), PersistentVolumeClaim))
    evaluation.mend()
    assert plugin.batch(evaluation.filter_states[0], everywhere) is BatchKind.CONSTANT


def test_a_volume_that_is_taken_is_gone_for_the_next_pod() -> None:
    volumes = [a_volume("v1", "1Gi", "n1"), a_volume("v2", "1Gi", "n2"), a_volume("v3", "5Gi", "n2")]
    case = a_case(volumes, [a_claim("c", "1Gi"), a_claim("d", "1Gi")], "c")
    first, cluster = an_evaluation(case)
    assert first.fits.tolist() == [True, True, False]
    _, other = a_cluster(case | {"pod": a_case([], [], "d")["pod"]})
    second = Evaluation(first.profile, cluster.incoming(other), cluster)
    for row, left in ((1, [True, True, False]), (0, [False, True, False])):
        before = list(cluster.objects.persistent_volumes.all())
        (taken,) = bindings(first.pod, cluster, row, BindingRules())
        assert taken.metadata.name == f"v{row + 1}"
        cluster.put(taken)
        second.mend()
        assert second.fits.tolist() == left
        for volume in before:
            cluster.put(volume)


def test_a_claim_that_will_be_provisioned_names_the_node() -> None:
    evaluation, cluster = an_evaluation(a_case([], [a_claim("c", "1Gi")], "c", provisioner="ebs.csi.aws.com"))
    (claim,) = bindings(evaluation.pod, cluster, 2, BindingRules())
    assert claim.metadata.annotations == {"volume.kubernetes.io/selected-node": "n3"}
    cluster.put(claim)
    evaluation.mend()
    assert evaluation.error() == "pod has unbound immediate PersistentVolumeClaims"
    pinned = VolumeBinding(RULES["1.17"])
    assert pinned.filter(pinned.prepare(evaluation.pod, cluster)).tolist() == [2, 2, 0]
    assert bindings(evaluation.pod, cluster, 2, RULES["1.17"]) == []
