"""What a watch has seen."""

import asyncio
import json

import pytest

from berth.errors import BerthError
from berth.live.bench.sightings import Sightings, StalledError


def line(type_: str, name: str, node_name: str = "", version: str = "1") -> bytes:
    spec = {"nodeName": node_name} if node_name else {}
    item = {"metadata": {"name": name, "resourceVersion": version}, "spec": spec}
    return json.dumps({"type": type_, "object": item}).encode() + b"\n"


def test_the_first_time_counts_however_the_bytes_are_cut() -> None:
    data = line("ADDED", "a") + line("MODIFIED", "a", "n", "2") + line("MODIFIED", "a", "n", "3")
    for cut in range(len(data)):
        seen = Sightings()
        seen.take(data[:cut], 1.0)
        first = dict(seen.added), dict(seen.bound)
        seen.take(data[cut:], 2.0)
        ends = [len(line("ADDED", "a")), len(line("ADDED", "a") + line("MODIFIED", "a", "n", "2"))]
        assert seen.added == {"a": 1.0 if cut >= ends[0] else 2.0}
        assert seen.bound == {"a": 1.0 if cut >= ends[1] else 2.0}
        assert first == ({"a": 1.0} if cut >= ends[0] else {}, {"a": 1.0} if cut >= ends[1] else {})
        assert seen.resource_version == "3"


def test_bookmarks_and_deleted_pods_are_no_sightings() -> None:
    seen = Sightings()
    seen.take(line("BOOKMARK", "", version="7") + line("DELETED", "a", "n", "8"), 1.0)
    assert (seen.added, seen.bound, seen.resource_version) == ({}, {}, "8")


def test_a_watch_that_goes_on_forgets_half_a_line() -> None:
    seen = Sightings()
    seen.take(line("ADDED", "a", version="5") + line("ADDED", "b", version="6")[:10], 1.0)
    assert seen.begin() == "5"
    seen.take(line("ADDED", "b", version="6"), 2.0)
    assert seen.added == {"a": 1.0, "b": 2.0}


def test_an_error_in_the_watch() -> None:
    with pytest.raises(StalledError, match="too old"):
        Sightings().take(b'{"type":"ERROR","object":{"kind":"Status","message":"too old"}}\n', 1.0)


def test_waiting_in_vain_and_for_a_watch_that_is_lost() -> None:
    async def wait() -> None:
        seen = Sightings()
        with pytest.raises(StalledError, match="0 pods, 0 bound"):
            await seen.until(lambda: False, stalled_s=0.0)
        waiting = asyncio.create_task(seen.until(lambda: False, stalled_s=60.0))
        await asyncio.sleep(0)
        seen.fail(BerthError("lost"))
        with pytest.raises(BerthError, match="lost"):
            await waiting

    asyncio.run(wait())
