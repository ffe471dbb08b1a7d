"""Measures live schedulers one after another, on one control plane, each on pods of its own and in a process of its own."""

import asyncio
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from berth.errors import BerthError
from berth.live.bench import world
from berth.live.bench.sightings import Sightings, StalledError, watching
from berth.live.bench.usage import usage_of
from berth.live.client import ApiClient, Limits
from berth.live.credentials import Credentials
from berth.sim.control_plane.binaries import Binaries
from berth.sim.control_plane.plane import ControlPlane
from berth.sim.control_plane.processes import Process, free_port

PER_SECOND = 100.0
"""How many pods arrive a second where latency is measured."""
MOST_ARRIVING = 1_000
_STALLED_S = 60.0
_SETTLE_S = 180.0
_LOOK_EVERY_S = 0.5
_QUIET_S = 5.0
_IDLE_SHARE = 0.1
_REQUEST_S = 900.0  # deleting all pods is one request


@dataclass(frozen=True, slots=True)
class LiveSize:
    """How much is measured."""

    nodes: int
    pods: int
    rounds: int

    @property
    def arriving(self) -> int:
        """How many pods arrive one after another, for latency."""
        return min(self.pods, MOST_ARRIVING)


class TooManyPodsError(BerthError):
    """The nodes have no room for all pods."""


@dataclass(frozen=True, slots=True)
class Figures:
    """What one of those that are measured took; medians over the rounds, of memory the peak.

    Attributes
    ----------
    pods_per_second : float
        Of pods that waited: from the first to the last that a watch saw bound.
    cpu_ms_per_pod : float
        Of its process and children, from the first bound until all events are written; what its watches bring included.
    peak_rss_mb : float
        Of its process and children. [MB of 2^20 bytes]
    events : float
        That were written.
    p50_ms, p99_ms : float or None
        From when a watch sees a pod come to when it sees it bound, with `PER_SECOND` arriving; None where nothing decides.
    load_average : float
        Of the machine, over the last minute, when it was through.
    """

    pods_per_second: float
    cpu_ms_per_pod: float
    peak_rss_mb: float
    events: float
    p50_ms: float | None
    p99_ms: float | None
    load_average: float


@dataclass(frozen=True, slots=True)
class Contender:
    """One that is measured.

    Attributes
    ----------
    start : callable
        Given the control plane and a namespace with pods that wait, starts it.
    scheduler : str
        The name that its pods give.
    decides : bool
        Whether it takes pods that arrive later.
    """

    name: str
    scheduler: str
    start: Callable[[ControlPlane, str], Process]
    decides: bool = True


def contenders(size: LiveSize, *, kube_scheduler: bool) -> list[Contender]:
    """Return what is measured, in this order."""
    found = [
        Contender("bind_loop", "nobody", partial(_start_bind_loop, size=size), decides=False),
        Contender("berth", "berth", _start_berth),
    ]
    if kube_scheduler:
        found.append(
            Contender("kube_scheduler", "default-scheduler", lambda plane, _: plane.start_scheduler())
        )
    return found


def measure_live(
    binaries: Callable[[], Binaries], size: LiveSize, wanted: Sequence[Contender], say: Callable[[str], None]
) -> dict[str, Figures]:
    """Measure, and return the figures by name.

    Parameters
    ----------
    binaries : callable
        Gives the control plane's programs; it may take minutes, and is called when all else is right.

    Raises
    ------
    TooManyPodsError
        There is no room for so many pods.
    BerthError
        The control plane does not come up, or what is measured does not go on.
    """
    most = size.nodes * world.PODS_PER_NODE
    if size.pods + size.arriving > most:
        raise TooManyPodsError(
            f"--pods: expected at most {most - size.arriving:,} on {size.nodes:,} nodes "
            f"(with {size.arriving:,} that arrive later), got {size.pods:,}"
        )
    with (
        tempfile.TemporaryDirectory(prefix="berth-live-") as folder,
        _running(binaries(), Path(folder)) as plane,
    ):
        found = asyncio.run(_measure_all(plane, size, wanted, say))
    return {name: summary(rounds) for name, rounds in found.items()}


@contextmanager
def _running(binaries: Binaries, folder: Path) -> Iterator[ControlPlane]:
    plane = ControlPlane(binaries, folder)
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()


async def _measure_all(
    plane: ControlPlane, size: LiveSize, wanted: Sequence[Contender], say: Callable[[str], None]
) -> dict[str, list[Figures]]:
    found: dict[str, list[Figures]] = {contender.name: [] for contender in wanted}
    async with ApiClient(Credentials(plane.kubeconfig), Limits(total_s=_REQUEST_S)) as client:
        say(f"making {size.nodes:,} nodes")
        await world.make_nodes(client, size.nodes)
        for contender in wanted:
            if contender.decides:
                say(f"a first start, which does not count: {contender.name}")
                await _start_once(plane, contender)
        for i in range(size.rounds):
            for contender in wanted:
                say(f"round {i + 1} of {size.rounds}: {contender.name}")
                namespace = f"{contender.name.replace('_', '-')}-{i}"
                await world.make_namespace(client, namespace)
                found[contender.name].append(await _measure(client, plane, contender, namespace, size))
                await world.clear(client, namespace)
    return found


async def _start_once(plane: ControlPlane, contender: Contender) -> None:
    """Start one and end it, so that what is made once (compiled kernels) is there."""
    process = contender.start(plane, "")
    try:
        await _idle(process)
    except OSError as error:
        raise StalledError(f"{contender.name} has ended: {process.last_words()}") from error
    finally:
        process.stop()


async def _measure(
    client: ApiClient, plane: ControlPlane, contender: Contender, namespace: str, size: LiveSize
) -> Figures:
    async with watching(client, namespace) as seen:
        await world.make_pods(client, namespace, contender.scheduler, size.pods)
        await seen.until(lambda: len(seen.added) == size.pods, _STALLED_S)
        process = contender.start(plane, namespace)
        try:
            await seen.until(lambda: bool(seen.bound), _STALLED_S)
            before = usage_of(process.pid)
            await seen.until(lambda: len(seen.bound) == size.pods, _STALLED_S)
            events = await _events(client, namespace, size.pods)
            after = usage_of(process.pid)
            rate = _rate(list(seen.bound.values()))
            arriving = await _latencies(client, contender, namespace, size, seen) if contender.decides else []
            peak = usage_of(process.pid).peak_rss_mb
        except (StalledError, OSError) as error:
            raise StalledError(f"{contender.name}: {error}\n{process.last_words()}") from error
        finally:
            process.stop()
    percentiles = statistics.quantiles(arriving, n=100, method="inclusive") if len(arriving) > 1 else []
    return Figures(
        pods_per_second=rate,
        cpu_ms_per_pod=(after.cpu_s - before.cpu_s) * 1e3 / size.pods,
        peak_rss_mb=peak,
        events=events,
        p50_ms=percentiles[49] * 1e3 if percentiles else None,
        p99_ms=percentiles[98] * 1e3 if percentiles else None,
        load_average=os.getloadavg()[0],
    )


async def _latencies(
    client: ApiClient, contender: Contender, namespace: str, size: LiveSize, seen: Sightings
) -> list[float]:
    """Return how long each pod that arrives took to be bound. [s]"""
    await world.make_pods_at(client, namespace, contender.scheduler, "late", size.arriving, PER_SECOND)
    await seen.until(lambda: len(seen.bound) == size.pods + size.arriving, _STALLED_S)
    return [
        seen.bound[name] - seen.added[name]
        for name in (world.pod_name(i, "late") for i in range(size.arriving))
    ]


async def _idle(process: Process) -> None:
    """Wait until a process does next to nothing."""
    deadline, last = time.monotonic() + _SETTLE_S, usage_of(process.pid)
    while time.monotonic() < deadline:
        await asyncio.sleep(_QUIET_S)
        now = usage_of(process.pid)
        if now.cpu_s - last.cpu_s < _IDLE_SHARE * _QUIET_S:
            return
        last = now


async def _events(client: ApiClient, namespace: str, n: int) -> int:
    """Wait until ``n`` events are written, or no more of them are; return how many."""
    written, since = 0, time.monotonic()
    while written < n and time.monotonic() - since < _QUIET_S:
        await asyncio.sleep(_LOOK_EVERY_S)
        now = await world.count_events(client, namespace)
        if now != written:
            written, since = now, time.monotonic()
    return written


def _rate(bound: list[float]) -> float:
    return len(bound) / max(bound[-1] - bound[0], 1e-3)


def summary(rounds: Sequence[Figures]) -> Figures:
    """Return the figures of several rounds."""

    def median(values: Sequence[float | None], digits: int) -> float | None:
        told = [value for value in values if value is not None]
        return round(statistics.median(told), digits) if told else None

    return Figures(
        pods_per_second=round(statistics.median(each.pods_per_second for each in rounds), 1),
        cpu_ms_per_pod=round(statistics.median(each.cpu_ms_per_pod for each in rounds), 3),
        peak_rss_mb=round(max(each.peak_rss_mb for each in rounds), 1),
        events=statistics.median(each.events for each in rounds),
        p50_ms=median([each.p50_ms for each in rounds], 2),
        p99_ms=median([each.p99_ms for each in rounds], 2),
        load_average=round(statistics.median(each.load_average for each in rounds), 2),
    )


def _start_bind_loop(plane: ControlPlane, namespace: str, size: LiveSize) -> Process:
    arguments = (plane.kubeconfig, namespace, size.pods, size.nodes)
    return plane.start_python("bind-loop", "-m", "berth.live.bench.bind_loop", *arguments)


def _start_berth(plane: ControlPlane, namespace: str) -> Process:
    listen = f"127.0.0.1:{free_port()}"
    return plane.start_python(
        "berth", "-m", "berth", "run", "--kubeconfig", plane.kubeconfig, "--listen", listen
    )
