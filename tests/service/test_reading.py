"""What is only read: nodes, health, metrics, the page, OpenAPI."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families
from pydantic import BaseModel

from berth.cluster.cluster import Cluster
from berth.service import schemas
from berth.service.page import render
from berth.service.suggestion import curl_line
from tests.builders import a_cluster, a_node, a_service
from tests.service.worlds import Client, adding, an_origin, removing, serving


def test_nodes_tell_what_is_requested_of_them(client: Client) -> None:
    nodes = client.get("/nodes").json()["nodes"]
    assert [node["name"] for node in nodes] == ["n1", "n2", "n3"]
    assert nodes[0] == {
        "name": "n1",
        "ready": True,
        "schedulable": True,
        "pods": 1,
        "requested": {"cpu": "500m", "memory": "0", "ephemeral-storage": "0", "pods": "1"},
        "allocatable": {"cpu": "4", "memory": "8Gi", "ephemeral-storage": "100Gi", "pods": "110"},
    }
    client.settle(adding("3"))
    assert sum(node["pods"] for node in client.get("/nodes").json()["nodes"]) == 6


def test_nodes_tell_their_state(tmp_path: Path) -> None:
    def load() -> Cluster:
        return a_cluster(
            a_node("cordoned", unschedulable=True),
            a_node("lost", conditions={"Ready": "Unknown"}),
            a_node("bare", conditions={}),
        )

    with serving(tmp_path, origin=an_origin(load)) as client:
        nodes = client.get("/nodes").json()["nodes"]
        told = [(node["name"], node["ready"], node["schedulable"]) for node in nodes]
        assert told == [("bare", False, True), ("cordoned", True, False), ("lost", False, True)]


def metrics(client: Client) -> dict[str, float]:
    return {
        sample.name
        + "".join(f"/{value}" for key, value in sorted(sample.labels.items()) if key != "le"): sample.value
        for family in text_string_to_metric_families(client.get("/metrics").text)
        for sample in family.samples
    }


def test_metrics_count_what_happens(client: Client) -> None:
    before = metrics(client)
    assert before["berth_decisions_total/add/failed"] == 0
    assert before["berth_queue_length"] == 0
    client.settle(adding("2"), removing("3"))
    client.schedule(adding("0"))
    found = metrics(client)
    assert found["berth_decisions_total/add/done"] == 2
    assert found["berth_decisions_total/remove/done"] == 2
    assert found["berth_decisions_total/remove/failed"] == 1
    assert found["berth_rounds_total"] == found["berth_round_duration_seconds_count"] == 1
    assert found["berth_nodes_without_forecast"] == 3
    assert found["berth_requests_total/accepted"] == found["berth_requests_total/applied"] == 1
    assert found["berth_requests_total/refused"] == 1


class Page(HTMLParser):
    """Every tag that is opened and not void is closed; nothing is loaded from elsewhere."""

    omitted = {"meta", "th", "td", "tr"}  # void, or closed by what follows

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.words: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        assert tag not in ("script", "img", "link", "iframe", "b0rk")
        assert "src" not in dict(attrs)
        if tag not in self.omitted:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self.omitted:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_the_page_shows_the_cluster_and_its_rounds(client: Client) -> None:
    client.settle(adding("2"), removing("3"))
    answer = client.get("/")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    words = " ".join(Page(answer.text).words)
    assert "Round 1" in words
    assert "service shop/web has no pod left to remove" in words
    assert "n3" in words
    assert curl_line(str(client.base_url).rstrip("/"), "shop", "web") in words


def test_the_page_escapes_all_that_it_is_told(tmp_path: Path) -> None:
    evil = "<b0rk>&\"'"
    with serving(
        tmp_path, origin=an_origin(lambda: a_cluster(a_node(evil), services=[a_service(evil)]), evil)
    ) as client:
        client.settle(adding("1", f"default/{evil}"))
        page = Page(client.get("/").text)
        assert any(evil in words for words in page.words)
        client.headers["host"] = "<b0rk>"
        Page(client.get("/").text)


def test_the_page_is_there_without_a_cluster() -> None:
    text = render(
        url="http://x", description="d", example=("a", "b"), view=None, rounds=[], notices=["loading"]
    )
    assert "loading" in Page(text).words


@pytest.mark.parametrize("path", ["/schedulePod", "/plan"])
def test_openapi_describes_bodies_and_refusals(client: Client, path: str) -> None:
    described = client.get("/openapi.json").json()
    operation = described["paths"][path]["post"]
    body = operation["requestBody"]["content"]["application/json"]["schema"]
    assert body["properties"]["podList"]["items"]["required"] == [
        "operation",
        "namespace",
        "serviceName",
        "number",
    ]
    assert {"200", "400", "404", "413", "503"} <= set(operation["responses"])
    assert "HTTPValidationError" not in described["components"]["schemas"]


def test_answers_are_as_openapi_describes_them(client: Client) -> None:
    body = {"podList": [adding("2"), removing("3")]}
    planned = client.post("/plan", json=body).json()
    accepted = client.schedule(*body["podList"]).json()
    request = client.ended(accepted["requestId"])
    described: list[tuple[type[BaseModel], Any]] = [
        (schemas.PlanAnswer, planned),
        (schemas.Accepted, accepted),
        (schemas.RequestAnswer, request),
        (schemas.RoundList, client.get("/rounds").json()),
        (schemas.RoundAnswer, client.get("/rounds/1").json()),
        (schemas.NodeList, client.get("/nodes").json()),
        (schemas.Health, client.get("/readyz").json()),
        (schemas.Refused, client.schedule(adding("0")).json()),
    ]
    for model, answer in described:
        assert model.model_validate(answer).model_dump() == answer
