"""A round is killed, or loses its API server, before and after each of its steps: nothing is lost, nothing is done twice."""

import asyncio
import contextlib
import dataclasses
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from berth.live.api_errors import ConnectionLostError
from berth.live.client import JSON, ApiClient, Repeat
from berth.live.credentials import Credentials
from berth.sim.control_plane.plane import ControlPlane
from berth.store.interface import RoundResult
from berth.store.sqlite import SqliteStore
from tests.live.module.shop import QUICK, Shop, workload
from tests.live.module.test_additions import run
from tests.live.module.test_removals import make_unready
from tests.live.real import path_of, until

N_PODS = 4


class Killed(BaseException):
    """The process is no more."""


class Fuse:
    """Kills at the n-th point, and whoever comes later: the process is gone."""

    def __init__(self, n: int) -> None:
        self.left = n

    @property
    def is_blown(self) -> bool:
        return self.left < 0

    def point(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise Killed


class Loss(Fuse):
    """Loses one answer, the n-th."""

    def point(self) -> None:
        self.left -= 1
        if self.left == -1:
            raise ConnectionLostError("lost", was_sent=True)


class FusedClient(ApiClient):
    """Writes are points to be killed at."""

    fuse: Fuse

    async def request(
        self, method: str, path: str, body: object = b"", *, repeat: Repeat, content_type: str = JSON
    ) -> bytes:
        if method == "GET":
            return await super().request(method, path, body, repeat=repeat, content_type=content_type)
        self.fuse.point()
        answer = await super().request(method, path, body, repeat=repeat, content_type=content_type)
        self.fuse.point()
        return answer


class FusedStore:
    """So are commits."""

    def __init__(self, store: SqliteStore, fuse: Fuse) -> None:
        self._store, self._fuse = store, fuse

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def note(self, number: int, notes: Mapping[str, bytes]) -> None:
        self._committing(lambda: self._store.note(number, notes))

    def record_plan(self, number: int, plan: bytes, now: float) -> None:
        self._committing(lambda: self._store.record_plan(number, plan, now))

    def finish_round(self, number: int, result: RoundResult, now: float) -> None:
        self._committing(lambda: self._store.finish_round(number, result, now))

    def _committing(self, action: Callable[[], None]) -> None:
        self._fuse.point()
        action()
        self._fuse.point()


async def killed_at(shop: Shop, point: int, plane: ControlPlane) -> bool:
    """Carry out what waits, killed at a point, then from where it stood; tell whether it came to that."""
    await shop.stop()
    fuse = Fuse(point)
    async with FusedClient(Credentials(plane.kubeconfig)) as client:
        client.fuse = fuse
        await shop.start(client, FusedStore(shop.store, fuse))  # type: ignore[arg-type]
        with contextlib.suppress(Killed):
            await shop.round()
        await shop.stop()
    await shop.start()
    if shop.store.unfinished_round() is not None:
        await shop.round()
    return fuse.is_blown


@pytest.mark.parametrize("way", ["add", "by deletion"])
def test_answers_that_are_lost(plane: ControlPlane, tmp_path: Path, way: str) -> None:
    async def scenario(shop: Shop) -> None:
        shop.patience = dataclasses.replace(QUICK, pause_s=0.2)
        await shop.create("ReplicaSet", workload("web", N_PODS))
        await shop.ready(N_PODS)
        await shop.stop()
        async with FusedClient(Credentials(plane.kubeconfig)) as client:
            client.fuse = Loss(1000)
            await shop.start(client)
            for point in range(20):
                if way == "by deletion":
                    await frail_sibling(shop)
                client.fuse = Loss(point)
                before = await shop.pods()
                request = shop.submit("add" if way == "add" else "remove", 2)
                await shop.round()
                await came_out(shop, way, request, before, point)
                if not client.fuse.is_blown:
                    assert point >= 2
                    return
                await as_before(shop)
        raise AssertionError("there is no end of it")

    run(plane, tmp_path, scenario)


async def frail_sibling(shop: Shop) -> None:
    """A pod that the service does not select, and that is not ready: a ReplicaSet would take it first."""
    pods = sorted(await shop.pods())
    await shop.client.patch(
        path_of("Service", shop.namespace, "web"), {"spec": {"selector": {"app": "web", "sound": "yes"}}}
    )
    await make_unready(shop, pods[0])
    for name in pods[1:]:
        labels = {"metadata": {"labels": {"sound": "yes"}}}
        await shop.client.patch(path_of("Pod", shop.namespace, name), labels)
    await shop.ready(N_PODS - 1, n_not_ready=1)


@pytest.mark.parametrize("points", [range(7), range(7, 14), range(14, 40)])
@pytest.mark.parametrize("way", ["add", "by cost", "by deletion"])
def test_killed_anywhere(plane: ControlPlane, tmp_path: Path, way: str, points: range) -> None:
    async def scenario(shop: Shop) -> None:
        shop.patience = dataclasses.replace(QUICK, pause_s=0.2)
        await shop.create("ReplicaSet", workload("web", N_PODS))
        await shop.ready(N_PODS)
        for point in points:
            if way == "by deletion":
                await frail_sibling(shop)
            if not await check(shop, way, point, plane):
                assert point > 10
                return
            await as_before(shop)

    run(plane, tmp_path, scenario)


async def check(shop: Shop, way: str, point: int, plane: ControlPlane) -> bool:
    """Have two pods come or go, with a kill at a point; tell whether there was one."""
    before = await shop.pods()
    request = shop.submit("add" if way == "add" else "remove", 2)
    killed = await killed_at(shop, point, plane)
    await came_out(shop, way, request, before, point)
    return killed


async def as_before(shop: Shop) -> None:
    """As many pods as at first, all of them new, and the service selects them again."""
    path = path_of("ReplicaSet", shop.namespace, "web")
    for n in (0, N_PODS):
        await shop.client.patch(path, {"spec": {"replicas": n}})
        await shop.ready(n)
    await shop.client.patch(
        path_of("Service", shop.namespace, "web"), {"spec": {"selector": {"sound": None}}}
    )
    await asyncio.sleep(0.2)


async def came_out(shop: Shop, way: str, request: str, before: Mapping[str, object], point: int) -> None:
    """What was asked for is done, once."""
    found = shop.store.request(request)
    assert found is not None
    assert [d.reason for d in found.decisions] == [None, None], point
    pods = shop.live.cluster.pods
    wanted = N_PODS + (2 if way == "add" else -2)
    await until(lambda: len(pods) == wanted, f"{wanted} pods after a kill at point {point}")
    after = await shop.pods()
    if way == "add":
        assert set(before) < set(after)
        assert {d.pod for d in found.decisions} == set(after) - set(before)
    else:
        assert set(after) == set(before) - {d.pod for d in found.decisions}
    assert await shop.replicas("ReplicaSet") == wanted
    assert int(shop.live.cluster.requested.of(3).sum()) == wanted
