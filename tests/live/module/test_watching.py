"""Waiting for what comes about, and doing many things at once."""

import asyncio

import pytest

from berth.live.module.watching import Watching, each


def test_whoever_waits_looks_again_when_something_is_heard() -> None:
    async def scenario() -> None:
        watching, come = Watching(), [0]
        waiting = asyncio.create_task(watching.until_all(lambda: come[0], 2, 30.0))
        for n in (1, 2):
            await asyncio.sleep(0)
            assert not waiting.done()
            come[0] = n
            watching.hear()
        assert await waiting

    asyncio.run(scenario())


def test_waiting_ends_when_nothing_comes() -> None:
    async def scenario() -> None:
        watching = Watching()
        assert not await watching.until(lambda: False, 0.01)
        assert await watching.until(lambda: True, 0.0)

    asyncio.run(scenario())


def test_all_jobs_are_done_a_few_dozen_at_a_time() -> None:
    async def scenario() -> None:
        under_way, most, done = 0, 0, []

        async def job(i: int) -> None:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            await asyncio.sleep(0)
            under_way -= 1
            done.append(i)

        await each(job(i) for i in range(100))
        assert sorted(done) == list(range(100))
        assert 1 < most <= 32

    asyncio.run(scenario())


def test_the_first_failure_ends_them_all() -> None:
    async def scenario() -> None:
        done = []

        async def job(i: int) -> None:
            if i == 1:
                raise ValueError("broken")
            await asyncio.sleep(0)
            done.append(i)

        with pytest.raises(ValueError, match="broken"):
            await each(job(i) for i in range(1000))
        await asyncio.sleep(0.01)
        assert len(done) < 100

    asyncio.run(scenario())
