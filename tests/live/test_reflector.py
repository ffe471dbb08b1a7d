"""A reflector against an API server that forgets, breaks off, falls silent and talks nonsense."""

import asyncio
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from berth.cluster.cluster import Cluster
from berth.live.backoff import Backoff
from berth.live.events import Event
from berth.live.live_cluster import LiveCluster, NotSyncedError
from berth.live.reflector import Pace, Reflector
from berth.live.resources import RESOURCES
from berth.objects.pod_records import PodRecord
from tests.live.fake_api import (
    Answer,
    FakeApi,
    a_client,
    a_list,
    an_event,
    an_object,
    answer,
    cut,
    refusal,
    serving,
    silence,
    stream,
)

FAST = Pace(page=2, idle_s=30, first_delay_s=0.001, longest_delay_s=0.002, absent_s=0.001)
GONE = refusal(410, "Expired")
GONE_EVENT = an_event("ERROR", {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})


def told(script: list[Answer], folder: Path, n_asked: int, pace: Pace = FAST, kind: str = "Service") -> Any:
    """What a reflector tells until it has asked so many times; the server, the events in words, and the reflector."""

    async def run() -> tuple[FakeApi, list[str], Reflector]:
        events: list[str] = []

        def note(event: Event) -> None:
            events.append(f"{event.type} {event.name} {event.uid.removeprefix('uid-')}")

        async with serving() as api, a_client(folder, api.url) as client:
            api.script = list(script)
            reflector = Reflector(client, RESOURCES[kind], note, pace)
            task = asyncio.create_task(reflector.run())
            while len(api.asked) < n_asked:
                await asyncio.sleep(0.001)
                if task.done():
                    break
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            return api, events, reflector

    return asyncio.run(run())


def test_lists_in_pages_then_watches_on_from_there(tmp_path: Path) -> None:
    script = [
        a_list(5, an_object("a", 1), an_object("b", 2), rest="x+/="),
        a_list(5, an_object("c", 3)),
        stream(
            an_event("MODIFIED", an_object("a", 6)),
            an_event("DELETED", an_object("b", 7)),
            an_event("ADDED", an_object("d", 8)),
            an_event("BOOKMARK", an_object("", 20)),
        ),
    ]
    api, events, reflector = told(script, tmp_path, 4)
    assert api.asked[:2] == [
        "GET /api/v1/services?limit=2",
        "GET /api/v1/services?limit=2&continue=x%2B%2F%3D",
    ]
    assert api.watches() == ["5", "20"]
    assert events == ["ADDED a a", "ADDED b b", "ADDED c c", "MODIFIED a a", "DELETED b b", "ADDED d d"]
    assert "allowWatchBookmarks=true" in api.asked[2]
    assert 300 <= int(api.asked[2].split("timeoutSeconds=")[1]) <= 600
    assert reflector.synced.is_set()
    assert (reflector.n_lists, reflector.trouble) == (1, "")


@pytest.mark.parametrize(
    "gone", [GONE, stream(GONE_EVENT), stream(an_event("MODIFIED", an_object("a", 6)), GONE_EVENT)]
)
def test_a_version_that_is_forgotten_is_listed_anew_and_what_is_gone_is_told(
    tmp_path: Path, gone: Answer
) -> None:
    script = [
        a_list(5, an_object("a", 1), an_object("b", 2)),
        gone,
        a_list(9, an_object("b", 2), an_object("c", 8)),
    ]
    api, events, reflector = told(script, tmp_path, 4)
    assert [event for event in events if event != "MODIFIED a a"] == [
        "ADDED a a", "ADDED b b", "MODIFIED b b", "ADDED c c", "DELETED a a",
    ]  # fmt: skip
    assert api.watches() == ["5", "9"]
    assert reflector.n_lists == 2


def test_versions_that_are_forgotten_at_once_are_not_listed_without_a_pause(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    delays: list[float] = []
    original = Backoff.next_s

    def note(self: Backoff, at_least_s: float | None = None) -> float:
        delays.append(original(self, at_least_s))
        return delays[-1]

    monkeypatch.setattr(Backoff, "next_s", note)
    pace = Pace(first_delay_s=0.001, longest_delay_s=1)
    good = stream(an_event("BOOKMARK", an_object("", 6)), GONE_EVENT)
    told([a_list(5), GONE] * 4 + [a_list(5), good], tmp_path, 11, pace)
    for delay, base in zip(delays, (1, 2, 4, 8, 1), strict=True):
        assert base / 2 <= 1000 * delay <= base


def test_an_object_that_went_and_came_again_unseen_is_another_one(tmp_path: Path) -> None:
    script = [
        a_list(5, an_object("a", 1)),
        GONE,
        a_list(9, an_object("a", 8, uid="2")),
        stream(
            an_event("DELETED", an_object("a", 10, uid="2")), an_event("DELETED", an_object("a", 10, uid="2"))
        ),
    ]
    _, events, _ = told(script, tmp_path, 5)
    assert events == ["ADDED a a", "DELETED a a", "ADDED a 2", "DELETED a 2"]


def test_a_page_token_that_is_too_old_leads_to_one_whole_list(tmp_path: Path) -> None:
    script = [
        a_list(5, an_object("a", 1), an_object("b", 2), rest="x"),
        GONE,
        a_list(7, an_object("b", 2), an_object("c", 6)),
    ]
    api, events, _ = told(script, tmp_path, 4)
    assert api.asked[2] == "GET /api/v1/services?limit=0"
    assert events == ["ADDED a a", "ADDED b b", "MODIFIED b b", "ADDED c c", "DELETED a a"]
    assert api.watches() == ["7"]


@pytest.mark.parametrize(
    "fault",
    [
        stream(an_event("ADDED", an_object("b", 6)), then="silence"),
        stream(an_event("ADDED", an_object("b", 6)), b'{"type": "ADDED", "object": {"metada'),
        stream(an_event("ADDED", an_object("b", 6)), b"<html>\n"),
        stream(an_event("ADDED", an_object("b", 6)), an_event("ERROR", {"code": 500, "message": "no!"})),
    ],
    ids=["silence", "half a line", "garbage", "error"],
)
def test_a_watch_goes_on_where_it_broke(tmp_path: Path, fault: Answer) -> None:
    pace = Pace(idle_s=0.1, first_delay_s=0.001, longest_delay_s=0.002)
    script = [a_list(5, an_object("a", 1)), fault, stream(an_event("DELETED", an_object("a", 7)))]
    api, events, reflector = told(script, tmp_path, 4, pace)
    assert events == ["ADDED a a", "ADDED b b", "DELETED a a"]
    assert api.watches() == ["5", "6", "7"]
    assert reflector.n_lists == 1


@pytest.mark.parametrize("fault", [cut, refusal(503), refusal(429)])
def test_an_api_server_that_is_unwell_is_asked_again(tmp_path: Path, fault: Answer) -> None:
    script = [answer(body=b"garbage"), a_list(5, an_object("a", 1)), fault, fault]
    api, events, reflector = told(script, tmp_path, 5)
    assert events == ["ADDED a a"]
    assert api.watches() == ["5"] * 3
    assert reflector.n_lists == 1


@pytest.mark.parametrize("refused", [refusal(504, "Timeout"), stream(b"nonsense\n")])
def test_a_version_that_is_refused_again_and_again_is_listed_anew(tmp_path: Path, refused: Answer) -> None:
    script = [a_list(5, an_object("a", 1)), refused, refused, refused, a_list(3)]
    api, events, _ = told(script, tmp_path, 6)
    assert events == ["ADDED a a", "DELETED a a"]
    assert api.watches() == ["5", "5", "5", "3"]


def test_a_kind_that_the_api_server_does_not_know_has_no_objects(tmp_path: Path) -> None:
    script = [a_list(5, an_object("a", 1)), GONE, refusal(404), refusal(404), a_list(7, an_object("b", 6))]
    api, events, reflector = told(script, tmp_path, 6)
    assert events == ["ADDED a a", "DELETED a a", "ADDED b b"]
    assert api.watches() == ["5", "7"]
    assert reflector.synced.is_set()


def test_what_can_t_be_read_is_told_without_its_contents(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    broken = an_object("a", 1, spec={"selector": {"app": 7}})
    _, events, _ = told([a_list(5, broken, an_object("b", 2))], tmp_path, 2)
    assert events == ["ADDED a a", "ADDED b b"]
    assert "Service default/a can't be read: " in caplog.text


def test_pods_with_nulls_are_read_one_by_one(tmp_path: Path) -> None:
    pod = an_object("a", 1, spec={"nodeName": "n", "containers": [{"name": "c"}], "initContainers": None})
    seen: list[Any] = []
    resource = RESOURCES["Pod"]
    page = resource.page(b'{"metadata":{"resourceVersion":"5"},"items":[%s]}' % encoded(pod))
    seen.append(page.items[0].item)
    seen.append(resource.line(encoded(an_event("ADDED", pod)))[1].item)  # type: ignore[union-attr]
    for record in seen:
        assert isinstance(record, PodRecord)
        assert (record.spec.node_name, record.spec.init_containers) == ("n", [])
    bookmark = an_event("BOOKMARK", an_object("", 9, spec={"containers": None}))
    line = resource.line(encoded(bookmark))
    assert (line.type, line.arrived.resource_version if line.arrived else "") == ("BOOKMARK", "9")
    assert resource.page(b'{"metadata":{"resourceVersion":"5"},"items":null}').items == []


def encoded(item: object) -> bytes:
    return msgspec.json.encode(item)


# -- all kinds together ---------------------------------------------------------------------------------------------------


def follow(folder: Path, script: list[Answer], then: Callable[[LiveCluster], Any], **options: Any) -> Any:
    async def run() -> Any:
        async with serving() as api, a_client(folder, api.url, attempts=1) as client:
            api.script = list(script)
            async with LiveCluster(client, Cluster(), pace=FAST, **options) as live:
                return await then(live)

    return asyncio.run(run())


def test_who_waits_hears_which_kind_is_not_there_and_why(tmp_path: Path) -> None:
    with pytest.raises(NotSyncedError, match=r"0\.2 s: Service \(403 Forbidden: no!\)$"):
        follow(
            tmp_path, [refusal(403, "Forbidden")] * 500, lambda live: live.wait_synced(0.2), kinds=["Service"]
        )
    with pytest.raises(NotSyncedError, match="no answer yet"):
        follow(tmp_path, [silence], lambda live: live.wait_synced(0.1), kinds=["Service"])


def test_a_handler_that_fails_is_not_passed_over(tmp_path: Path) -> None:
    def fail(event: Event) -> None:
        raise RuntimeError(event.name)

    async def until_it_fails(wait: str, live: LiveCluster) -> None:
        live.subscribe("Service", fail)
        await getattr(live, wait)()

    for wait in ("wait", "wait_synced"):
        with pytest.raises(RuntimeError, match="a"):
            follow(
                tmp_path,
                [a_list(5, an_object("a", 1))],
                partial(until_it_fails, wait),
                kinds=["Service"],
            )


def test_handlers_hear_after_the_cluster_what_it_had_and_whether_it_changed(tmp_path: Path) -> None:
    events: list[Event] = []

    async def listen(live: LiveCluster) -> None:
        live.subscribe("Service", events.append)
        await live.wait_synced()
        while len(events) < 4:
            await asyncio.sleep(0.001)

    def a_service(version: int, app: str) -> dict[str, Any]:
        return an_object("a", version, spec={"selector": {"app": app}})

    watch = stream(
        an_event("MODIFIED", a_service(6, "old")),
        an_event("MODIFIED", a_service(7, "new")),
        an_event("DELETED", a_service(8, "new")),
    )
    follow(tmp_path, [a_list(5, a_service(1, "old")), watch], listen, kinds=["Service"])
    assert [(event.type, event.changed) for event in events] == [
        ("ADDED", True), ("MODIFIED", False), ("MODIFIED", True), ("DELETED", True),
    ]  # fmt: skip
    assert events[2].old == events[0].item
    assert events[3].old == events[2].item
