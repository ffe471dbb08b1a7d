"""What Berth writes beside bindings: events, pods' status, victims of preemption."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from aiohttp import web

from berth.cluster.cluster import Incoming
from berth.live.client import ApiClient
from berth.live.intake import Waiting
from berth.live.preempting import Eviction, Preemptor
from berth.live.recorder import NOTE_BYTES, Recorder, Reference, shortened
from berth.live.statuses import Status, StatusWriter
from tests.builders import a_cluster, a_pod
from tests.live.fake_api import Answer, a_client, answer, refusal, serving

POD: Incoming = a_cluster().incoming(a_pod("p"))
AT = 1_700_000_000.5
EVENTS = "/apis/events.k8s.io/v1/namespaces/default/events"
STATUS = "/api/v1/namespaces/default/pods/p/status"


def at_noon() -> datetime:
    return datetime(2026, 3, 1, 12, tzinfo=UTC)


def hearing(bodies: list[dict[str, Any]], then: Answer) -> Answer:
    async def give(request: web.Request) -> web.StreamResponse:
        bodies.append(json.loads(await request.read() or b"{}"))
        return await then(request)

    return give


def in_turn(
    folder: Path, test: Callable[[ApiClient], Awaitable[None]], *script: Answer
) -> tuple[list[str], list[dict[str, Any]]]:
    """Run a test against an API server; return what that was asked, and the bodies."""

    async def run() -> tuple[list[str], list[dict[str, Any]]]:
        bodies: list[dict[str, Any]] = []
        async with serving() as api, a_client(folder, api.url) as client:
            api.script = [hearing(bodies, each) for each in script]
            await test(client)
            return api.asked, bodies

    return asyncio.run(run())


# -- events ---------------------------------------------------------------------------------------------------------------


def test_events_have_upstreams_words_and_names_of_their_own(tmp_path: Path) -> None:
    async def record(client: ApiClient) -> None:
        recorder = Recorder(client, n_workers=1, clock=lambda: AT)
        recorder.start()
        recorder.scheduled(POD, "n1")
        recorder.preempted(Reference("other", "victim", "uid-v"), POD, "n1")
        assert await recorder.drain(5.0)
        await recorder.stop()

    asked, bodies = in_turn(tmp_path, record, answer(201), answer(201))
    assert asked == [f"POST {EVENTS}", f"POST {EVENTS.replace('default', 'other')}"]
    scheduled, preempted = bodies
    assert scheduled["note"] == "Successfully assigned default/p to n1"
    assert scheduled["eventTime"] == "2023-11-14T22:13:20.500000Z"
    assert scheduled["regarding"] == {
        "kind": "Pod", "apiVersion": "v1", "namespace": "default", "name": "p", "uid": "uid-p",
    }  # fmt: skip
    assert (preempted["type"], preempted["reason"], preempted["action"]) == (
        "Normal",
        "Preempted",
        "Preempting",
    )
    assert preempted["note"] == "Preempted by pod uid-p on node n1"
    assert (preempted["regarding"]["name"], preempted["related"]["name"]) == ("victim", "p")
    first, second = (body["metadata"]["name"].rpartition(".")[2] for body in bodies)
    assert int(second, 16) == int(first, 16) + 1  # though no time has gone by


def test_a_failure_that_repeats_is_counted_until_the_event_is_gone(tmp_path: Path) -> None:
    async def record(client: ApiClient) -> None:
        recorder = Recorder(client, n_workers=1, clock=lambda: AT)
        recorder.start()
        for _ in range(4):
            recorder.failed(POD, "no node")
        assert await recorder.drain(5.0)
        await recorder.stop()

    asked, bodies = in_turn(tmp_path, record, answer(201), answer(), refusal(404), answer(201), answer())
    name = bodies[0]["metadata"]["name"]
    again = bodies[3]["metadata"]["name"]
    assert asked == [
        f"POST {EVENTS}", f"PATCH {EVENTS}/{name}", f"PATCH {EVENTS}/{name}", f"POST {EVENTS}", f"PATCH {EVENTS}/{again}",
    ]  # fmt: skip
    assert [body["series"]["count"] for body in (bodies[1], bodies[4])] == [2, 2]


def test_too_many_events_are_dropped_and_counted(tmp_path: Path) -> None:
    dropped: list[None] = []

    async def record(client: ApiClient) -> None:
        recorder = Recorder(client, most=2, n_workers=1, on_dropped=lambda: dropped.append(None))
        for _ in range(5):
            recorder.scheduled(POD, "n1")
        recorder.start()
        assert await recorder.drain(5.0)
        await recorder.stop()

    asked, _ = in_turn(tmp_path, record, answer(201), refusal(403))
    assert len(asked) == 2
    assert len(dropped) == 3 + 1


def test_notes_are_no_longer_than_the_api_lets_them_be() -> None:
    assert shortened("short") == "short"
    long = shortened("é" * NOTE_BYTES)
    assert long.endswith("é ...")
    assert NOTE_BYTES - 1 <= len(long.encode()) <= NOTE_BYTES


# -- status ---------------------------------------------------------------------------------------------------------------


def written(
    folder: Path, waiting: dict[str, Waiting], *statuses: Status, script: int = 1
) -> list[dict[str, Any]]:
    async def write(client: ApiClient) -> None:
        writer = StatusWriter(client, waiting, now=at_noon)
        writer.start()
        for status in statuses:
            writer.put(POD, status)
            assert await writer.drain(5.0)
        await writer.stop()

    asked, bodies = in_turn(folder, write, *[answer()] * script)
    assert asked == [f"PATCH {STATUS}"] * len(bodies)
    return bodies


def test_a_status_is_written_where_it_changes(tmp_path: Path) -> None:
    waiting = {"uid-p": Waiting(generation=3, is_told=False)}
    no_node, full = (Status("Unschedulable", message, None) for message in ("no node", "full"))
    first, second = written(tmp_path, waiting, no_node, no_node, full, script=2)
    assert first == {
        "metadata": {"uid": "uid-p"},
        "status": {
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "no node",
                    "observedGeneration": 3,
                    "lastProbeTime": None,
                    "lastTransitionTime": "2026-03-01T12:00:00Z",
                }
            ]
        },
    }
    (condition,) = second["status"]["conditions"]
    assert condition["message"] == "full"
    assert "lastTransitionTime" not in condition


def test_a_pod_that_was_told_before_keeps_its_time(tmp_path: Path) -> None:
    waiting = {"uid-p": Waiting(generation=1, is_told=True)}
    (body,) = written(tmp_path, waiting, Status("Unschedulable", "no node", "n1"))
    assert "lastTransitionTime" not in body["status"]["conditions"][0]
    assert body["status"]["nominatedNodeName"] == "n1"


def test_a_nomination_is_taken_back_alone(tmp_path: Path) -> None:
    (body,) = written(tmp_path, {"uid-p": Waiting(1, True)}, Status("", "", ""))
    assert body["status"] == {"nominatedNodeName": None}


def test_nothing_is_written_of_pods_that_wait_no_longer(tmp_path: Path) -> None:
    assert written(tmp_path, {}, Status("Unschedulable", "no node", None)) == []


# -- preemption -----------------------------------------------------------------------------------------------------------


def preempting(folder: Path, *script: Answer) -> tuple[list[str], list[dict[str, Any]], list[str], int]:
    failed: list[str] = []
    events = 0

    async def preempt(client: ApiClient) -> None:
        nonlocal events
        recorder = Recorder(client)  # not started: events wait
        preemptor = Preemptor(client, recorder, failed.append, now=at_noon)
        preemptor.put(Eviction(POD, "n1", (Reference("default", "v", "uid-v"),)))
        assert await preemptor.drain(5.0)
        events = recorder.n_waiting

    asked, bodies = in_turn(folder, preempt, *script)
    return asked, bodies, failed, events


def test_a_victim_is_told_and_deleted(tmp_path: Path) -> None:
    asked, (told, options), failed, events = preempting(tmp_path, answer(), answer())
    path = "/api/v1/namespaces/default/pods/v"
    assert asked == [f"PATCH {path}/status", f"DELETE {path}"]
    (condition,) = told["status"]["conditions"]
    assert (condition["type"], condition["reason"]) == ("DisruptionTarget", "PreemptionByScheduler")
    assert condition["message"] == "default-scheduler: preempting to accommodate a higher priority pod"
    assert (told["metadata"]["uid"], options) == ("uid-v", {"preconditions": {"uid": "uid-v"}})
    assert (failed, events) == ([], 1)


def test_a_victim_that_is_gone_already_is_no_failure(tmp_path: Path) -> None:
    _, _, failed, events = preempting(tmp_path, refusal(404))
    assert (failed, events) == ([], 0)


def test_a_victim_that_can_t_be_deleted_lets_the_pod_be_tried_again(tmp_path: Path) -> None:
    _, _, failed, events = preempting(tmp_path, answer(), refusal(403))
    assert (failed, events) == (["uid-p"], 0)
