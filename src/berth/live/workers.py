"""A fixed number of workers on one line of jobs. Knows not what they do."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

log = logging.getLogger(__name__)

Job = TypeVar("Job")


class Workers(Generic[Job]):
    """Carries out jobs, so many at once, in the order in which they were put.

    Parameters
    ----------
    work : callable
        Carries one out; what it raises is logged, and ends no worker.
    n_workers : int
        So many at once.
    """

    def __init__(self, name: str, work: Callable[[Job], Awaitable[None]], n_workers: int) -> None:
        self._name = name
        self._work = work
        self._n_workers = n_workers
        self._jobs: asyncio.Queue[Job] = asyncio.Queue()
        self._tasks: list[asyncio.Task[None]] = []
        self.n_under_way = 0

    def start(self) -> None:
        """Begin to work."""
        self._tasks = [asyncio.create_task(self._run(), name=self._name) for _ in range(self._n_workers)]

    def put(self, job: Job) -> None:
        """Have a job done."""
        self._jobs.put_nowait(job)

    @property
    def n_waiting(self) -> int:
        """How many jobs no worker has begun."""
        return self._jobs.qsize()

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left to do."""
        return not self.n_under_way and self._jobs.empty()

    async def drain(self, timeout_s: float) -> bool:
        """Wait until nothing is left to do; False if that takes longer."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._jobs.join()
        except TimeoutError:
            return False
        return True

    async def stop(self) -> None:
        """End at once: jobs under way are cut off, those that wait are dropped."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()

    async def _run(self) -> None:
        while True:
            job = await self._jobs.get()
            self.n_under_way += 1
            try:
                await self._work(job)
            except Exception:
                log.exception("%s: unexpected failure", self._name)
            finally:
                self.n_under_way -= 1
                self._jobs.task_done()
