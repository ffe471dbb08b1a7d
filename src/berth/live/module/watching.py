"""Waiting for the cluster to become what a step wants it to be."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any

_REST = 10.0
"""So many times as long as a look has taken nobody looks again."""
_AT_ONCE = 32


async def each(jobs: Iterable[Coroutine[Any, Any, object]]) -> None:
    """Do many things, a few dozen at a time; the first failure ends them all, and is raised."""
    waiting = iter(jobs)

    async def worker() -> None:
        for job in waiting:
            await job

    workers = [asyncio.create_task(worker()) for _ in range(_AT_ONCE)]
    try:
        await asyncio.gather(*workers)
    finally:
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)


@dataclass(frozen=True, slots=True)
class Patience:
    """How long is waited. [seconds]

    Attributes
    ----------
    appear_s : float
        For the next of the pods that were asked for to come and be bound.
    leave_s : float
        For the next of the chosen pods to go.
    settle_s : float
        For a controller to know what was written before.
    pause_s : float
        Between what we have seen of pods' deletion costs and the change of replicas: the controller sees them by a watch
        of its own, and nothing tells when.
    retry_s : float
        Between tries while the API server can't be asked.
    """

    appear_s: float = 60.0
    leave_s: float = 60.0
    settle_s: float = 10.0
    pause_s: float = 0.5
    retry_s: float = 2.0


class Watching:
    """Wakes those who wait for something, whenever anything has changed."""

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] = set()

    def hear(self) -> None:
        """Have everybody look again."""
        for waiter in self._waiting:
            if not waiter.done():
                waiter.set_result(None)
        self._waiting.clear()

    async def until(self, come_about: Callable[[], bool], timeout_s: float) -> bool:
        """Wait until something has come about; tell whether it has."""
        return await self.until_all(lambda: int(come_about()), 1, timeout_s)

    async def until_all(self, count: Callable[[], int], n: int, timeout_s: float) -> bool:
        """Wait until a count has come to ``n``; tell whether it has. Whenever it grows, the time starts anew."""
        best, deadline = -1, 0.0
        while True:
            began = time.monotonic()
            found = count()
            now = time.monotonic()
            spent_s = now - began
            if found >= n:
                return True
            if found > best:
                best, deadline = found, now + timeout_s
            left_s = deadline - now
            if left_s <= 0:
                return False
            waiter = asyncio.get_running_loop().create_future()
            self._waiting.add(waiter)
            try:
                await asyncio.wait({waiter}, timeout=left_s)
            finally:
                self._waiting.discard(waiter)
            await asyncio.sleep(_REST * spent_s)  # many events may have come to one look
