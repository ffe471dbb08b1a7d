import json

import pytest

from berth.plugins.node_prefer_avoid_pods import controllers_avoided
from tests.releases.worlds import AVOID, Json, a_node, a_pod, ask

RC, RS, SET = ("ReplicationController", "rc"), ("ReplicaSet", "rs"), ("StatefulSet", "ss")


def avoiding(*controllers: tuple[str, str], **more: object) -> str:
    entries: list[Json] = [
        {"podSignature": {"podController": {"kind": kind, "uid": uid} | more}} for kind, uid in controllers
    ]
    return json.dumps({"preferAvoidPods": entries})


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        ("", set()),
        ("{", set()),
        ("[]", set()),
        ("null", set()),
        ('{"preferAvoidPods": null}', set()),
        ('{"preferAvoidPods": [null, {}, {"podSignature": {}}]}', set()),
        (avoiding(RC, RS), {RC, RS}),
        (avoiding(RS).upper().replace("REPLICASET", "ReplicaSet").replace('"RS"', '"rs"'), {RS}),
        (avoiding(RC, controller="yes"), set()),
        (avoiding(RC, controller=False, unknown=[1]), {RC}),
        ('{"preferAvoidPods": [{"evictionTime": "yesterday"}]}', set()),
    ],
)
def test_annotations_are_read_as_go_reads_them(annotation: str, expected: set[tuple[str, str]]) -> None:
    assert controllers_avoided(annotation) == expected


@pytest.mark.parametrize(
    ("owner", "score"), [(None, 10), (RC, 10), (RS, 0), (SET, 10), (("ReplicaSet", "other"), 10)]
)
def test_only_pods_of_that_controller_are_kept_away(owner: tuple[str, str] | None, score: int) -> None:
    nodes = [a_node("n1", annotations={AVOID: avoiding(RS, SET)}), a_node("n2")]
    answer = ask("1.13", a_pod(owner=owner), nodes)
    assert answer["priorities"]["NodePreferAvoidPodsPriority"] == {"n1": score, "n2": 10}
