"""When a watch has seen pods come and be bound."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import msgspec

from berth.errors import BerthError
from berth.live.bench.world import watch_path
from berth.live.client import ApiClient

_IDLE_S = 150.0


class StalledError(BerthError):
    """What is measured does not go on."""


class _Meta(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Object(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Event(msgspec.Struct):
    type: str
    object: _Object


_decoder = msgspec.json.Decoder(_Event)


class Sightings:
    """Pods of one namespace by name, in the order in which they were seen.

    Attributes
    ----------
    added, bound : dict of str to float
        When a pod was seen first, and when on a node first. [monotonic seconds]
    resource_version : str
        Of the last event: from there on a watch goes on.
    """

    def __init__(self) -> None:
        self.added: dict[str, float] = {}
        self.bound: dict[str, float] = {}
        self.resource_version = ""
        self._rest = b""
        self._error: BerthError | None = None
        self._news = asyncio.Event()

    def take(self, data: bytes, now: float) -> None:
        """Take some bytes of a watch.

        Raises
        ------
        StalledError
            The watch tells of an error.
        """
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            event = _decoder.decode(line)
            name = event.object.metadata.name
            if event.type == "ERROR":
                raise StalledError(f"the watch has failed: {line.decode('utf-8', 'replace')}")
            self.resource_version = event.object.metadata.resource_version
            if event.type in ("ADDED", "MODIFIED"):
                self.added.setdefault(name, now)
                if event.object.spec.node_name:
                    self.bound.setdefault(name, now)
        self._news.set()

    def begin(self) -> str:
        """Begin another watch; return the version from which it goes on."""
        self._rest = b""
        return self.resource_version

    def fail(self, error: BerthError) -> None:
        """Nothing more will be seen; whoever waits is told."""
        self._error = error
        self._news.set()

    async def until(self, condition: Callable[[], bool], stalled_s: float) -> None:
        """Wait until a condition holds that what is seen may bring about.

        Raises
        ------
        StalledError
            No pod comes and none is bound for so long. [s]
        BerthError
            The watch was lost.
        """
        seen, since = self._n_seen(), time.monotonic()
        while not condition():
            if self._error is not None:
                raise self._error
            self._news.clear()
            try:
                async with asyncio.timeout(1.0):
                    await self._news.wait()
            except TimeoutError:
                pass
            if self._n_seen() != seen:
                seen, since = self._n_seen(), time.monotonic()
            elif time.monotonic() - since > stalled_s:
                n_added, n_bound = seen
                raise StalledError(
                    f"nothing has happened for {stalled_s:g} s: {n_added} pods, {n_bound} bound"
                )

    def _n_seen(self) -> tuple[int, int]:
        return len(self.added), len(self.bound)


@asynccontextmanager
async def watching(client: ApiClient, namespace: str) -> AsyncIterator[Sightings]:
    """Watch a namespace's pods."""
    sightings = Sightings()

    async def follow() -> None:
        try:
            while True:  # the API server ends the watches of those who are slow to read
                path = watch_path(namespace, sightings.begin())
                async with client.watch(path, idle_s=_IDLE_S) as chunks:
                    async for chunk in chunks:
                        sightings.take(chunk, time.monotonic())
        except BerthError as error:
            sightings.fail(error)

    following = asyncio.create_task(follow())
    try:
        yield sightings
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
