import json
from typing import Any

import pytest

from berth.module.changes import (
    BadRequestError,
    Change,
    WorkloadName,
    parse_number,
    parse_pod_list,
    parse_workload,
)

GOOD: dict[str, Any] = {"operation": 1, "namespace": "shop", "serviceName": "web", "number": "3"}


def errors_of(body: object, **limits: int) -> list[tuple[str, str]]:
    with pytest.raises(BadRequestError) as refused:
        parse_pod_list(body, **limits)  # type: ignore[arg-type]
    assert str(refused.value) == "; ".join(map(str, refused.value.errors))
    return [(error.path, error.expected) for error in refused.value.errors]


def test_a_good_list() -> None:
    body = {"podList": [GOOD, GOOD | {"operation": 2, "number": 4, "workload": "sts/db"}]}
    assert parse_pod_list(body, "r-1") == [
        Change("r-1", "add", "shop", "web", 3),
        Change("r-1", "remove", "shop", "web", 4, WorkloadName("StatefulSet", "db")),
    ]


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("1", 1), ("10000", 10_000), (3, 3), (10_000, 10_000),
        ("0", None), ("10001", None), (0, None), (-1, None), (10_001, None), ("-1", None), ("+3", None), ("03", None),
        ("\uff13", None), ("٣", None), ("3.0", None), (3.0, None), ("3.5", None), (True, None), (None, None), ("", None),
        (" 3", None), ("3 ", None), ("3\n", None), ("1e2", None), ("1_0", None), ("9" * 5000, None), (10**30, None),
        ([3], None), ({}, None),
    ],
)  # fmt: skip
def test_numbers(value: object, number: int | None) -> None:
    assert parse_number(value) == number
    assert parse_number(value, 2) == (number if number is not None and number <= 2 else None)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("deployment/web", WorkloadName("Deployment", "web")),
        ("Deployment/web", WorkloadName("Deployment", "web")),
        ("deploy/web", WorkloadName("Deployment", "web")),
        ("rs/web-1", WorkloadName("ReplicaSet", "web-1")),
        ("replicaset/web-1", WorkloadName("ReplicaSet", "web-1")),
        ("sts/db", WorkloadName("StatefulSet", "db")),
        ("rc/old", WorkloadName("ReplicationController", "old")),
        ("daemonset/agent", None),
        ("deployment", None),
        ("deployment/", None),
        ("/web", None),
        ("deployment/a/b", None),
        ("", None),
        (3, None),
        (None, None),
    ],
)
def test_workloads(text: object, name: WorkloadName | None) -> None:
    assert parse_workload(text) == name
    if name is not None:
        assert parse_workload(str(name)) == name


@pytest.mark.parametrize("body", [None, [], "podList", 3, [GOOD]])
def test_a_body_that_is_no_object(body: object) -> None:
    assert errors_of(body) == [("", "an object with podList")]


@pytest.mark.parametrize("entries", [None, [], {}, "x", 3])
def test_a_list_that_is_none_or_empty(entries: object) -> None:
    assert errors_of({"podList": entries}) == [("podList", "a list of at least one change")]
    assert errors_of({}) == [("podList", "a list of at least one change")]


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"operation": 3}, "operation"),
        ({"operation": 0}, "operation"),
        ({"operation": "1"}, "operation"),
        ({"operation": 1.0}, "operation"),
        ({"operation": True}, "operation"),
        ({"operation": None}, "operation"),
        ({"operation": [1]}, "operation"),
        ({"namespace": ""}, "namespace"),
        ({"namespace": 3}, "namespace"),
        ({"namespace": None}, "namespace"),
        ({"serviceName": ""}, "serviceName"),
        ({"serviceName": ["web"]}, "serviceName"),
        ({"number": "0"}, "number"),
        ({"number": True}, "number"),
        ({"workload": "pod/web"}, "workload"),
        ({"workload": None}, "workload"),
        ({"podCount": 3}, "podCount"),
    ],
)
def test_one_mistake_is_told_with_its_path(change: dict[str, Any], path: str) -> None:
    assert [where for where, _ in errors_of({"podList": [GOOD, GOOD | change]})] == [f"podList[1].{path}"]


def test_all_mistakes_are_told_at_once() -> None:
    found = errors_of({"podlist": [], "podList": [{}, 7, GOOD | {"number": 0, "x": 1}]})
    assert [path for path, _ in found] == [
        "podlist",
        "podList[0].operation",
        "podList[0].namespace",
        "podList[0].serviceName",
        "podList[0].number",
        "podList[1]",
        "podList[2].x",
        "podList[2].number",
    ]


def test_the_limit_is_in_the_words() -> None:
    assert errors_of({"podList": [GOOD]}, max_number=2) == [
        ("podList[0].number", 'a whole number from 1 to 2, such as "3"')
    ]


def test_errors_hold_the_value() -> None:
    with pytest.raises(BadRequestError) as refused:
        parse_pod_list(json.loads('{"podList": [{"operation": 9}]}'))
    assert str(refused.value.errors[0]) == "podList[0].operation: 9 is not 1 (add) or 2 (remove)"


@pytest.mark.parametrize(("value", "force"), [(True, True), (False, False)])
def test_force(value: object, force: bool) -> None:
    entry = {"operation": 1, "namespace": "shop", "serviceName": "web", "number": 1}
    assert [change.force for change in parse_pod_list({"podList": [entry]})] == [False]
    assert [change.force for change in parse_pod_list({"podList": [entry | {"force": value}]})] == [force]


@pytest.mark.parametrize("value", ["true", 1, None])
def test_force_is_true_or_false(value: object) -> None:
    entry = {"operation": 1, "namespace": "shop", "serviceName": "web", "number": 1, "force": value}
    with pytest.raises(BadRequestError) as caught:
        parse_pod_list({"podList": [entry]})
    assert [error.path for error in caught.value.errors] == ["podList[0].force"]
