"""``berth run``: a live scheduler with its health and metrics, from start to graceful end."""

import asyncio
import gc
import logging
import os
import signal
import socket
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import Any

from berth.cluster.accounting import Accounting
from berth.cluster.cluster import Cluster
from berth.config.configured import Configured
from berth.config.settings import Settings
from berth.live.client import ApiClient, Limits
from berth.live.credentials import Credentials
from berth.live.live_cluster import LiveCluster
from berth.live.rights import (
    RightsMissingError,
    in_words,
    missing_rights,
    module_rights,
    scheduler_rights,
)
from berth.live.scheduler import LiveScheduler
from berth.live.volumes import VolumePreparation
from berth.scheduling.queueing import Backoff
from berth.scheduling.ties import TieBreaker
from berth.service.live_module import LiveModule
from berth.service.probes import make_probes
from berth.service.server import GuestServer, make_server
from berth.service.warming import warm_up_profile
from berth.store.interface import Store

log = logging.getLogger(__name__)

CONNECTIONS = 128


@dataclass(frozen=True, slots=True)
class ModuleSetup:
    """What the scheduling module runs with.

    Attributes
    ----------
    settings : Settings
        As `berth.service.live.live_settings` returns them.
    bound : socket
        Where ``/schedulePod`` is served.
    """

    settings: Settings
    store: Store
    bound: socket.socket


@dataclass(frozen=True, slots=True)
class LiveSetup:
    """What a live scheduler runs with.

    Attributes
    ----------
    bound : socket
        Where health and metrics are served.
    say : callable
        Shows a line to whoever has started it.
    module : ModuleSetup, optional
        Of the scheduling module, if it runs beside.
    grace_s : float
        How long what is under way may take to end. [s]
    """

    credentials: Credentials
    configured: Configured
    accounting: Accounting
    ties: TieBreaker
    bound: socket.socket
    say: Callable[[str], None]
    module: ModuleSetup | None = None
    grace_s: float = 20.0
    sync_s: float = 300.0


async def run_live(setup: LiveSetup) -> None:
    """Schedule until a signal comes, end what is under way, and return. A second signal ends the process at once.

    Raises
    ------
    BerthError
        The API server can't be reached, or does not allow what is needed.
    """
    stopping = _on_signals()
    async with ApiClient(setup.credentials, Limits(connections=CONNECTIONS)) as client:
        rights = scheduler_rights() + (module_rights() if setup.module else ())
        missing = await missing_rights(client, dict.fromkeys(rights))
        if missing:
            raise RightsMissingError(in_words(missing))
        live = LiveCluster(client, Cluster(setup.accounting))
        module = _module(client, live, setup)
        scheduler = _scheduler(client, live, setup, module)
        server = make_server(make_probes(lambda: _troubles(live), scheduler.metrics.text), GuestServer)
        serving = asyncio.create_task(server.serve(sockets=[setup.bound]))
        try:
            async with live:
                try:
                    await _first_of(stopping.wait(), _schedule(live, scheduler, setup, module))
                finally:
                    if not await scheduler.finish(setup.grace_s):
                        log.warning("not all that was under way has ended within %g s", setup.grace_s)
        finally:
            server.should_exit = True
            await serving


def _module(client: ApiClient, live: LiveCluster, setup: LiveSetup) -> LiveModule | None:
    if setup.module is None:
        return None
    names = tuple(setup.configured.profiles)
    where = f"the cluster at {setup.credentials.url}"
    return LiveModule(live, client, setup.module.store, setup.module.settings, names, description=where)


def _scheduler(
    client: ApiClient, live: LiveCluster, setup: LiveSetup, module: LiveModule | None
) -> LiveScheduler:
    configured = setup.configured
    warm_up_profile(next(iter(configured.profiles.values())))
    return LiveScheduler(
        client,
        live,
        configured.profiles,
        reservations=module.reservations if module else None,
        preparations=(VolumePreparation(client, live, configured.profiles),),
        backoff=Backoff(configured.initial_backoff_s, configured.longest_backoff_s),
        ties=setup.ties,
    )


async def _schedule(
    live: LiveCluster, scheduler: LiveScheduler, setup: LiveSetup, module: LiveModule | None
) -> None:
    await live.wait_synced(setup.sync_s)
    # What has been made by now stays: the collector need not stop everything to look through it again and again.
    gc.collect()
    gc.freeze()
    cluster, waiting = live.cluster, sum(scheduler.queue.pending.values())
    setup.say(f"{len(cluster.nodes)} nodes and {len(cluster.pods)} pods, of which {waiting} wait for us")
    if module is None or setup.module is None:
        await _first_of(live.wait(), scheduler.run())
        return
    await module.start(scheduler.release)
    server = make_server(module.app, GuestServer)
    serving = asyncio.create_task(server.serve(sockets=[setup.module.bound]))
    try:
        await _first_of(live.wait(), scheduler.run())
    finally:
        # The round under way is broken off: the next start takes it up where it stands.
        server.should_exit = True
        await serving


async def _first_of(*ways: Coroutine[Any, Any, Any]) -> None:
    """Wait until one of several things ends; the others are cancelled. Raises what it raised."""
    tasks = [asyncio.create_task(way) for way in ways]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()


def _troubles(live: LiveCluster) -> list[str]:
    if not live.synced:
        return ["the cluster is being listed"]
    reflectors = live.reflectors.items()
    return [f"{kind} can't be followed: {each.trouble}" for kind, each in reflectors if each.trouble]


def _on_signals() -> asyncio.Event:
    """Return what is set by the first signal."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()

    def take(sign: signal.Signals) -> None:
        if stopping.is_set():
            os._exit(128 + sign)
        log.info("%s: ending", sign.name)
        stopping.set()

    for sign in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(sign, take, sign)
    return stopping
