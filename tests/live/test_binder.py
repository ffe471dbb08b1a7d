"""Bindings that go wrong: what has become of them is found out, and nobody is bound twice or lost."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar

import pytest

from berth.cluster.cluster import Incoming
from berth.live import binder as binder_module
from berth.live.binder import Binder, BinderLimits, Binding
from berth.live.preparing import PrepareError
from berth.live.state import ClusterState
from berth.scheduling.queueing import QueuedPod
from tests.builders import a_cluster, a_node, a_pod
from tests.live.fake_api import Answer, FakeApi, a_client, answer, cut, refusal, serving
from tests.live.test_state import event

POST = "POST /api/v1/namespaces/default/pods/p/binding"
GET = "GET /api/v1/namespaces/default/pods/p"


@dataclass
class World:
    """A pending pod p, assumed on n1, and what is told of it."""

    api: FakeApi
    binder: Binder
    state: ClusterState
    binding: Binding
    told: list[str] = field(default_factory=list)

    def held(self) -> list[int]:
        cluster = self.state.cluster
        return [cluster.requested.get(cluster.nodes.row(name))["cpu"] for name in ("n1", "n2")]

    async def bind(self) -> None:
        self.binder.put(self.binding)
        assert await self.binder.drain(5.0)


class Preparing:
    name: ClassVar[str] = "Disks"

    def __init__(self, error: str = "") -> None:
        self._error = error

    def concerns(self, pod: Incoming) -> bool:
        return pod.name == "p"

    def reserve(self, pod: Incoming, node_name: str) -> None:
        raise AssertionError

    def unreserve(self, pod: Incoming) -> None:
        raise AssertionError

    def settle(self, pod: Incoming) -> None:
        raise AssertionError

    async def prepare(self, pod: Incoming, node_name: str) -> None:
        await asyncio.sleep(0)
        if self._error:
            raise PrepareError(self._error)


def in_a_world(
    folder: Path,
    test: Callable[[World], Awaitable[None]],
    *script: Answer,
    preparing: Preparing | None = None,
    limits: BinderLimits | None = None,
) -> World:
    async def run() -> World:
        async with serving() as api, a_client(folder, api.url) as client:
            api.script = list(script)
            state = ClusterState(a_cluster(a_node("n1"), a_node("n2")))
            cluster, pod = state.cluster, a_pod("p", cpu="1")
            state.apply(event("ADDED", "Pod", "p", "uid-p", pod))
            incoming = cluster.incoming(pod)
            state.expect("uid-p", cluster.assume(incoming, cluster.nodes.row("n1")))
            told: list[str] = []
            binder = Binder(
                client,
                state,
                on_bound=lambda binding, seconds: told.append("bound"),
                on_failed=lambda binding, why: told.append(f"failed: {why}"),
                on_gone=lambda binding: told.append("gone"),
                preparations=[preparing] if preparing else (),
                limits=limits,
            )
            world = World(api, binder, state, Binding(QueuedPod(incoming, 0.0, 0), "n1", 0.0), told)
            binder.start()
            await test(world)
            await binder.stop()
            return world

    return asyncio.run(run())


def as_it_is(node: str = "", uid: str = "uid-p") -> Answer:
    return answer(body={"metadata": {"uid": uid}, "spec": {"nodeName": node}})


@pytest.mark.parametrize(
    ("script", "told", "held"),
    [
        ([answer(201)], "bound", [1000, 0]),
        # Nobody knows whether it was carried out: it was, or was not, or the pod is another one's by now.
        ([cut, as_it_is("n1")], "bound", [1000, 0]),
        ([refusal(504), as_it_is("n1")], "bound", [1000, 0]),
        ([refusal(500), as_it_is()], 'failed: running Bind plugin "DefaultBinder": no!', [0, 0]),
        ([cut, refusal(404)], 'failed: running Bind plugin "DefaultBinder": ', [0, 0]),
        ([cut, as_it_is("n1", "uid-2")], 'failed: running Bind plugin "DefaultBinder": ', [0, 0]),
        # The pod has a node already: ours, by a request whose answer was lost, or another one.
        ([refusal(409), as_it_is("n1")], "bound", [1000, 0]),
        ([refusal(409), as_it_is("n2"), as_it_is("n2")], "gone", [0, 0]),
        ([refusal(409), as_it_is(), as_it_is()], 'failed: running Bind plugin "DefaultBinder": no!', [0, 0]),
        ([refusal(404)], "gone", [0, 0]),
        ([refusal(403)], 'failed: running Bind plugin "DefaultBinder": no!', [0, 0]),
        # Too many requests: it has done nothing, and is repeated.
        ([refusal(429), answer(201)], "bound", [1000, 0]),
    ],
)
def test_what_became_of_a_binding(tmp_path: Path, script: list[Answer], told: str, held: list[int]) -> None:
    world = in_a_world(tmp_path, World.bind, *script)
    (said,) = world.told
    assert said.startswith(told)
    assert world.held() == held
    assert world.state.is_expected("uid-p") == (said == "bound")
    assert not world.api.script


def test_the_question_is_repeated_until_there_is_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binder_module, "_ASK_AGAIN_S", 0.0)
    world = in_a_world(tmp_path, World.bind, cut, *[refusal(503)] * 7, as_it_is("n1"))
    assert world.told == ["bound"]
    assert world.api.asked.count(POST) == 1
    assert world.api.asked.count(GET) == 8


def test_the_watch_may_be_quicker_than_the_answer(tmp_path: Path) -> None:
    async def bind(world: World) -> None:
        world.binder.put(world.binding)
        while not world.api.asked:
            await asyncio.sleep(0.01)
        world.state.apply(event("MODIFIED", "Pod", "p", "uid-p", a_pod("p", cpu="1", node="n1")))
        proceed.set()
        assert await world.binder.drain(5.0)

    proceed = asyncio.Event()

    async def late(request: object) -> object:
        await proceed.wait()
        raise ConnectionResetError

    world = in_a_world(tmp_path, bind, late)  # type: ignore[arg-type]
    assert world.told == ["bound"]
    assert world.held() == [1000, 0]
    assert world.api.asked == [POST]


def test_a_pod_that_is_settled_before_its_turn_is_not_bound(tmp_path: Path) -> None:
    async def bind(world: World) -> None:
        world.state.apply(event("DELETED", "Pod", "p", "uid-p"))
        await world.bind()

    world = in_a_world(tmp_path, bind)
    assert (world.told, world.api.asked, world.held()) == (["gone"], [], [0, 0])


def test_nobody_is_bound_to_a_node_that_is_gone(tmp_path: Path) -> None:
    async def bind(world: World) -> None:
        world.state.apply(event("DELETED", "Node", "n1", ""))
        await world.bind()

    world = in_a_world(tmp_path, bind)
    assert (world.told, world.api.asked) == (['failed: node "n1" is gone'], [])
    assert not world.state.is_expected("uid-p")


@pytest.mark.parametrize(
    ("found", "is_expected"), [(as_it_is("n1"), True), (as_it_is(), False), (refusal(404), False)]
)
def test_a_pod_whose_binding_no_watch_tells_of_is_asked_for(
    tmp_path: Path, found: Answer, is_expected: bool
) -> None:
    async def bind(world: World) -> None:
        await world.bind()
        await world.binder.confirm()

    world = in_a_world(tmp_path, bind, answer(201), found, limits=BinderLimits(unconfirmed_s=-1.0))
    assert world.told == ["bound"]
    assert world.api.asked == [POST, GET]
    assert world.state.is_expected("uid-p") == is_expected


@pytest.mark.parametrize(
    ("error", "told"), [("", "bound"), ("no disk", 'failed: running PreBind plugin "Disks": no disk')]
)
def test_a_pod_is_made_ready_before_it_is_bound(tmp_path: Path, error: str, told: str) -> None:
    async def bind(world: World) -> None:
        world.binder.put(world.binding)
        assert world.binder.n_preparing == 1
        while not world.told:
            await asyncio.sleep(0.01)

    world = in_a_world(tmp_path, bind, answer(201), preparing=Preparing(error))
    assert world.told == [told]
    assert world.api.asked == ([] if error else [POST])
