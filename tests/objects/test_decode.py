import msgspec
import pytest

from berth.objects.decode import decode, without_nulls
from berth.objects.nodes import Node
from berth.objects.pods import Pod
from berth.objects.workloads import Deployment, Service


def test_unknown_fields_are_passed_over() -> None:
    pod = decode(
        b'{"kind":"Pod","metadata":{"name":"a","new":{"x":[1]}},"spec":{"dnsPolicy":"Default"}}', Pod
    )
    assert pod.metadata.name == "a"


def test_a_null_counts_as_absent_wherever_it_stands() -> None:
    pod = decode(
        b"""{"metadata":{"name":"a","labels":null,"ownerReferences":[{"kind":"Job","controller":null}],
            "creationTimestamp":null},
            "spec":{"containers":[{"name":"c","resources":null,"ports":null}],"initContainers":null,
                    "affinity":{"nodeAffinity":null},"tolerations":[null],"hostNetwork":null,"priority":null},
            "status":null}""",
        Pod,
    )
    assert pod.metadata.labels == {}
    assert pod.metadata.owner_references[0].controller is False
    assert pod.spec.containers[0].resources.requests == {}
    assert pod.spec.init_containers == ()
    assert pod.spec.tolerations == ()
    assert pod.status.phase == ""
    assert decode(b'{"spec":null}', Service).spec.selector is None
    assert decode(b'{"metadata":{"name":"n"},"spec":{"taints":null}}', Node).spec.taints == ()


def test_nulls_are_dropped_at_every_depth() -> None:
    assert without_nulls({"a": None, "b": [None, {"c": None, "d": 0}], "e": ""}) == {"b": [{"d": 0}], "e": ""}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"metadata":{"name":3}}', r"Expected `str`, got `int` - at `\$.metadata.name`"),
        (b'{"metadata":{"labels":{"a":1}}}', r"Expected `str`, got `int` - at `\$.metadata.labels\[...\]`"),
        (b'{"spec":{"containers":{}}}', r"Expected `array`, got `object` - at `\$.spec.containers`"),
        (
            b'{"spec":{"containers":[{"ports":[{"hostPort":"80"}]}]}}',
            r"Expected `int`, got `str` - at `\$.spec.containers\[0\].ports\[0\].hostPort`",
        ),
        (b'{"spec":{"containers":null,"hostNetwork":"yes"}}', r"at `\$.spec.hostNetwork`"),
        (
            b'{"metadata":{"creationTimestamp":"yesterday"}}',
            r"Invalid RFC3339 encoded datetime - at `\$.metadata.creationTimestamp`",
        ),
        (
            b'{"spec":{"affinity":{"nodeAffinity":{"requiredDuringSchedulingIgnoredDuringExecution":'
            b'{"nodeSelectorTerms":[{"matchExpressions":[{"key":"a","operator":"Equals"}]}]}}}}}',
            r"Invalid enum value 'Equals' - at `.*matchExpressions\[0\].operator`",
        ),
        (b"[]", "Expected `object`, got `array`"),
    ],
)
def test_wrong_types_are_told_with_their_path(text: bytes, message: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=message):
        decode(text, Pod)


def test_what_is_no_json_is_told() -> None:
    with pytest.raises(msgspec.DecodeError):
        decode(b'{"metadata":', Pod)


def test_templates_are_told_apart_by_all_that_stands_in_them() -> None:
    def digest(template: bytes) -> str:
        return decode(b'{"spec":{"template":' + template + b"}}", Deployment).spec.template_digest

    plain = digest(b'{"metadata":{"labels":{"a":"b"}},"spec":{"dnsPolicy":"Default"}}')
    assert plain
    assert plain == digest(
        b'{"spec":{"dnsPolicy":"Default"},"metadata":{"labels":{"pod-template-hash":"x","a":"b"},"annotations":null}}'
    )
    assert plain != digest(b'{"metadata":{"labels":{"a":"b"}},"spec":{"dnsPolicy":"None"}}')
    assert plain != digest(
        b'{"metadata":{"labels":{"a":"b"},"annotations":{"restarted":"1"}},"spec":{"dnsPolicy":"Default"}}'
    )
