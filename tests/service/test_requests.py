"""What is refused, with what words; nothing of it gets into the queue."""

import json
import socket
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from berth.service.wire import BodyError, read_json, shown
from tests.service.worlds import Client, adding, removing, serving, settings_with


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """One service for all: each test sees to it that its queue stays empty."""
    with serving(tmp_path_factory.mktemp("service")) as client:
        yield client


@pytest.fixture
def client(running: Client) -> Iterator[Client]:
    yield running
    assert running.service.store.requests() == []


NUMBER = 'a whole number from 1 to 10000, such as "3"'
FULLWIDTH_1 = "\uff11"
KEYS = "a known key (operation, namespace, serviceName, number, workload, force)"


def mistakes(answer: Any) -> list[tuple[str, Any, str]]:
    return [(error["path"], error["value"], error["expected"]) for error in answer.json()["errors"]]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "the body is not JSON"),
        (b"podList", "the body is not JSON"),
        (b'{"podList": [', "the body is not JSON"),
        (b'{"podList": []} x', "the body is not JSON"),
        (b'{"podList": NaN}', "NaN is no JSON value"),
        (b'{"podList": \xff}', "not UTF-8: byte 12"),
        ('{"podList": []}'.encode("utf-16"), "not UTF-8"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"podList": ' + b"9" * 5000 + b"}", "the body is not JSON"),
    ],
)
@pytest.mark.parametrize("path", ["/schedulePod", "/plan"])
def test_what_is_no_json_is_refused(client: Client, path: str, body: bytes, message: str) -> None:
    answer = client.post(path, content=body)
    assert answer.status_code == 400
    assert answer.json()["isSucceed"] is False
    assert message in answer.json()["message"]
    assert [error["path"] for error in answer.json()["errors"]] == [""]


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ([], ("", [], "an object with podList")),
        (None, ("", None, "an object with podList")),
        ({}, ("podList", None, "a list of at least one change")),
        ({"podList": []}, ("podList", [], "a list of at least one change")),
        ({"podList": {}}, ("podList", {}, "a list of at least one change")),
        ({"podList": [7]}, ("podList[0]", 7, "an object")),
        ({"podList": [adding()], "dryRun": True}, ("dryRun", True, "a known key (podList)")),
        ({"podList": [adding(number=0)]}, ("podList[0].number", 0, NUMBER)),
        *(
            ({"podList": [adding(), adding(number=number)]}, ("podList[1].number", number, NUMBER))
            for number in (
                "0",
                "-1",
                -1,
                "+3",
                "03",
                "3.5",
                3.5,
                3.0,
                "1e3",
                " 3",
                "3\n",
                FULLWIDTH_1,
                "",
                "x",
                None,
                True,
                [3],
                {"n": 3},
                "10001",
                10_001,
                "9" * 18,
            )
        ),
        ({"podList": [adding(number="9" * 300)]}, ("podList[0].number", "9" * 200 + "…", NUMBER)),
        ({"podList": [adding(number=10**30)]}, ("podList[0].number", str(10**30), NUMBER)),
        *(
            (
                {"podList": [adding() | {"operation": code}]},
                ("podList[0].operation", code, "1 (add) or 2 (remove)"),
            )
            for code in (0, 3, -1, "1", True, None, 1.0, [1])
        ),
        ({"podList": [adding() | {"namespace": 7}]}, ("podList[0].namespace", 7, "a name")),
        ({"podList": [adding() | {"namespace": ""}]}, ("podList[0].namespace", "", "a name")),
        ({"podList": [adding() | {"serviceName": None}]}, ("podList[0].serviceName", None, "a name")),
        ({"podList": [adding() | {"podName": "x"}]}, ("podList[0].podName", "x", KEYS)),
        (
            {"podList": [adding(service="shop/outside")]},
            (
                "podList[0].serviceName",
                "outside",
                "a service with a selector: service shop/outside has no selector",
            ),
        ),
        (
            {"podList": [adding(workload="statefulset/db")]},
            (
                "podList[0].workload",
                "statefulset/db",
                "a workload that the service selects: service shop/web does not select statefulset/db",
            ),
        ),
    ],
)
@pytest.mark.parametrize("path", ["/schedulePod", "/plan"])
def test_a_mistake_is_told_with_its_path(client: Client, path: str, body: Any, expected: Any) -> None:
    answer = client.post(path, content=json.dumps(body))
    assert answer.status_code == 400
    assert answer.json()["isSucceed"] is False
    assert mistakes(answer) == [expected]


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (adding(service="shop/nosuch"), ("podList[0].serviceName", "nosuch", "a service in namespace shop")),
        (adding(service="nosuch/web"), ("podList[0].serviceName", "web", "a service in namespace nosuch")),
        (adding(service="shop/\ud800"), ("podList[0].serviceName", "\ud800", "a service in namespace shop")),
        (
            removing(workload="deployment/nosuch"),
            (
                "podList[0].workload",
                "deployment/nosuch",
                "a workload: there is no deployment/nosuch in namespace shop",
            ),
        ),
    ],
)
def test_what_is_not_there_is_not_found(client: Client, change: Any, expected: Any) -> None:
    answer = client.post("/schedulePod", content=json.dumps({"podList": [change]}))
    assert answer.status_code == 404
    assert mistakes(answer) == [expected]


def test_all_mistakes_are_told_at_once(client: Client) -> None:
    answer = client.schedule(
        adding(),
        adding("0") | {"operation": 7},
        adding(service="shop/nosuch"),
        {},
        removing(workload="pod/x", extra=1),
    )
    assert answer.status_code == 400
    assert [path for path, _, _ in mistakes(answer)] == [
        "podList[1].operation",
        "podList[1].number",
        "podList[3].operation",
        "podList[3].namespace",
        "podList[3].serviceName",
        "podList[3].number",
        "podList[4].extra",
        "podList[4].workload",
        "podList[2].serviceName",
    ]
    assert "(and 8 more)" in answer.json()["message"]


def test_a_flood_of_mistakes_is_told_in_part(client: Client) -> None:
    answer = client.post("/schedulePod", json={"podList": [1] * 100_000})
    assert answer.status_code == 400
    assert len(answer.json()["errors"]) == 1000
    assert "(and 99999 more)" in answer.json()["message"]


def test_a_body_that_is_too_large_is_refused(client: Client) -> None:
    answer = client.post("/schedulePod", content=b" " * (1024 * 1024 + 1))
    assert answer.status_code == 413
    assert answer.json()["message"] == "the body is larger than 1048576 bytes"
    assert answer.json()["isSucceed"] is False


def test_a_body_without_a_length_is_read_no_further_than_it_may_be(client: Client) -> None:
    sent = []

    def chunks() -> Iterator[bytes]:
        for _ in range(10_000):
            sent.append(1)
            yield b" " * 64 * 1024

    with suppress(httpx.WriteError):  # where the connection was closed before all was written
        assert client.post("/schedulePod", content=chunks()).status_code == 413
    assert len(sent) < 1000


def test_a_body_of_just_the_limit_is_read(client: Client) -> None:
    body = json.dumps({"podList": []}).encode()
    assert client.post("/schedulePod", content=body.ljust(1024 * 1024)).status_code == 400


def test_a_client_that_goes_away_does_no_harm(client: Client) -> None:
    address = (client.base_url.host, client.base_url.port)
    with socket.create_connection(address) as half:
        half.sendall(b"POST /schedulePod HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{")
    assert client.get("/healthz").status_code == 200


@pytest.mark.parametrize("path", ["/schedulePod", "/plan"])
def test_a_web_page_of_another_origin_may_not_post(client: Client, path: str) -> None:
    body = {"podList": [adding()]}
    assert client.post(path, json=body, headers={"Origin": "https://example.com"}).status_code == 403
    own = str(client.base_url).rstrip("/")
    assert client.post("/plan", json=body, headers={"Origin": own}).status_code == 200


@pytest.mark.parametrize("key", ["", "k" * 256])
def test_an_idempotency_key_has_a_length(client: Client, key: str) -> None:
    answer = client.schedule(adding(), Idempotency_Key=key)
    assert answer.status_code == 400
    assert answer.json()["message"].startswith("Idempotency-Key: expected 1 to 255 characters")


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/rounds/0", 404),
        ("/rounds/1", 404),
        ("/rounds/x", 404),
        ("/rounds/-1", 404),
        ("/rounds/" + "9" * 5000, 404),
        (f"/rounds/{FULLWIDTH_1}", 404),
        ("/requests/r-000001", 404),
        ("/requests/x", 404),
        ("/requests/%ff%00", 404),
        ("/nosuch", 404),
        ("/docs", 404),
        ("/schedulePod", 405),
        ("/rounds?limit=0", 422),
        ("/rounds?limit=x", 422),
        ("/rounds?limit=1001", 422),
        ("/rounds?before=0", 422),
        ("/rounds?before=" + "9" * 5000, 422),
        ("/rounds?before=" + "9" * 30, 200),
    ],
)
def test_what_can_not_be_read_is_told_in_words(client: Client, path: str, status: int) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    if status != 200:
        assert answer.json()["isSucceed"] is False
        assert answer.json()["message"]


class TestAccepted:
    """What is taken, each on a service of its own."""

    @pytest.mark.parametrize("number", ["3", 3])
    def test_a_number_is_text_or_an_integer(self, tmp_path: Path, number: object) -> None:
        with serving(tmp_path) as client:
            answer = client.schedule(adding(number))
            assert (answer.status_code, answer.json()) == (200, {"isSucceed": True, "requestId": "r-000001"})

    def test_a_workload_may_be_named(self, tmp_path: Path) -> None:
        with serving(tmp_path) as client:
            for name in ("deployment/web", "deploy/web", "replicaset/web-1"):
                assert client.settle(adding(workload=name))["state"] == "applied"

    def test_the_content_type_does_not_matter(self, tmp_path: Path) -> None:
        with serving(tmp_path) as client:
            body = json.dumps({"podList": [adding()]})
            for kind in (
                "application/x-www-form-urlencoded",
                "text/plain",
                "application/json; charset=utf-8",
            ):
                answer = client.post("/schedulePod", content=body, headers={"Content-Type": kind})
                assert answer.json()["isSucceed"] is True

    def test_the_largest_number_is_a_setting(self, tmp_path: Path) -> None:
        with serving(tmp_path, settings=settings_with(module__maxNumber=3)) as client:
            assert client.schedule(adding("4")).status_code == 400
            assert client.schedule(adding("3")).status_code == 200


class TestIdempotency:
    """A repeated key."""

    def test_a_repetition_gets_the_first_answer_and_queues_nothing(self, tmp_path: Path) -> None:
        with serving(tmp_path) as client:
            first = client.schedule(adding(), Idempotency_Key="k")
            client.ended("r-000001")
            again = client.schedule(adding(), Idempotency_Key="k")
            assert again.json() == first.json() == {"isSucceed": True, "requestId": "r-000001"}
            assert len(client.service.store.requests()) == 1
        with serving(tmp_path) as client:
            assert client.schedule(adding(), Idempotency_Key="k").json() == first.json()
            assert client.schedule(adding(), Idempotency_Key="other").json()["requestId"] == "r-000002"

    def test_a_key_with_another_body_is_a_conflict(self, tmp_path: Path) -> None:
        with serving(tmp_path) as client:
            client.schedule(adding(), Idempotency_Key="k")
            answer = client.schedule(adding("2"), Idempotency_Key="k")
            assert answer.status_code == 422
            assert answer.json()["isSucceed"] is False
            assert "used before with a different body" in answer.json()["message"]
            assert len(client.service.store.requests()) == 1

    def test_a_refused_list_does_not_use_up_its_key(self, tmp_path: Path) -> None:
        with serving(tmp_path) as client:
            assert client.schedule(adding("0"), Idempotency_Key="k").status_code == 400
            assert client.schedule(adding("1"), Idempotency_Key="k").status_code == 200


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
near_misses = st.fixed_dictionaries(
    {},
    optional={
        "operation": st.sampled_from([1, 2, 3, "1", None]) | json_values,
        "namespace": st.sampled_from(["shop", "nosuch", ""]) | json_values,
        "serviceName": st.sampled_from(["web", "outside", "nosuch"]) | json_values,
        "number": st.sampled_from(["0", "x", 0, -1, 2.5]) | json_values,
        "workload": st.sampled_from(["deployment/web", "statefulset/db", "x"]) | json_values,
        "more": json_values,
    },
)


@given(body=json_values | st.fixed_dictionaries({"podList": st.lists(near_misses, max_size=3)}))
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_body_is_answered(running: Client, body: Any) -> None:
    answer = running.post("/plan", content=json.dumps(body))
    assert answer.status_code in (200, 400, 404)
    assert (answer.status_code == 200) == ("decisions" in answer.json())


@given(json_values)
def test_every_value_can_be_shown(value: Any) -> None:
    told = shown(value)
    text = json.dumps(told, allow_nan=False)
    assert len(text) < 2000
    if isinstance(value, bool | None) or (isinstance(value, str) and len(value) <= 200):
        assert told == value


@given(st.binary(max_size=40) | st.text(max_size=40).map(lambda text: text.encode(errors="surrogatepass")))
def test_any_bytes_are_json_or_refused(body: bytes) -> None:
    with suppress(BodyError):
        read_json(body)
