"""A cluster that follows a real one: what the rest of Berth sees of the API server's objects."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable
from random import Random
from types import TracebackType
from typing import Self

from berth.cluster.cluster import Cluster
from berth.errors import BerthError
from berth.live.client import ApiClient
from berth.live.events import Event, Handler
from berth.live.reflector import Pace, Reflector
from berth.live.resources import RESOURCES
from berth.live.state import ClusterState


class NotSyncedError(BerthError):
    """Not all kinds could be listed in time."""


class LiveCluster:
    """Nodes, pods and all else that scheduling reads, kept as the API server has them; an async context manager.

    All happens on the event loop's thread: between two ``await`` the cluster stands still.

    Attributes
    ----------
    cluster : Cluster
        To be read by anyone; pods are assumed in it, all else is changed by events alone.
    state : ClusterState
        Where assumed pods are told of.
    reflectors : dict of str to Reflector
        By kind; their ``trouble`` and ``n_lists`` tell how they fare.
    """

    def __init__(
        self,
        client: ApiClient,
        cluster: Cluster | None = None,
        *,
        kinds: Iterable[str] = tuple(RESOURCES),
        pace: Pace | None = None,
        random: Random | None = None,
    ) -> None:
        self.cluster = cluster if cluster is not None else Cluster()
        self.state = ClusterState(self.cluster)
        self.reflectors = {
            kind: Reflector(client, RESOURCES[kind], self._handle, pace, random) for kind in kinds
        }
        self._handlers: defaultdict[str, list[Handler]] = defaultdict(list)
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    def subscribe(self, kind: str, handler: Handler) -> None:
        """Have a handler told of a kind's events from now on, each after the cluster has heard of it."""
        self._handlers[kind].append(handler)

    def start(self) -> None:
        """Begin to follow."""
        self._tasks = [
            asyncio.create_task(reflector.run(), name=f"reflector of {kind}")
            for kind, reflector in self.reflectors.items()
        ]

    @property
    def synced(self) -> bool:
        """Whether all kinds have been listed once."""
        return all(reflector.synced.is_set() for reflector in self.reflectors.values())

    async def wait_synced(self, timeout_s: float = 60.0) -> None:
        """Wait until all kinds have been listed once.

        Raises
        ------
        NotSyncedError
            That takes longer; the message has the kinds, and what is wrong with them.
        """
        waiting = asyncio.create_task(self._all_synced())
        await asyncio.wait({waiting, *self._tasks}, timeout=timeout_s, return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        for task in self._tasks:
            if task.done():
                task.result()
        if self.synced:
            return
        late = [
            f"{kind} ({reflector.trouble or 'no answer yet'})"
            for kind, reflector in self.reflectors.items()
            if not reflector.synced.is_set()
        ]
        raise NotSyncedError(f"not listed within {timeout_s:g} s: {', '.join(late)}")

    async def _all_synced(self) -> None:
        for reflector in self.reflectors.values():
            await reflector.synced.wait()

    async def wait(self) -> None:
        """Wait until stopped; raises what a handler raised, for the cluster is not followed any more then."""
        await asyncio.gather(*self._tasks)

    async def stop(self) -> None:
        """End all watches. The cluster stays as it is."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    def tell(self, event: Event) -> None:
        """Tell those who have subscribed of what the cluster has heard of."""
        for handler in self._handlers[event.kind]:
            handler(event)

    def _handle(self, event: Event) -> None:
        self.state.apply(event)
        self.tell(event)
