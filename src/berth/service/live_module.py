"""The module on a live cluster, as one thing to start and stop beside the scheduler."""

import asyncio
from collections.abc import Callable, Collection, Iterable

from fastapi import FastAPI

from berth.config.settings import Settings
from berth.live.client import ApiClient
from berth.live.live_cluster import LiveCluster
from berth.live.module.watching import Patience
from berth.live.reservations import Reservations
from berth.service.app import make_app
from berth.service.live import LiveRounds
from berth.service.origin import Clock, wall_clock
from berth.service.running import Service, assemble_on
from berth.store.interface import Store


class LiveModule:
    """Rounds on a cluster that is followed, and the HTTP application that takes requests for them.

    Made before the scheduler, which gets its `reservations`; started once the cluster is synced, before the scheduler
    runs; ended once the scheduler decides no more. The application begins with rounds when it is served, and ends with it.

    Parameters
    ----------
    settings : Settings
        As `berth.service.live.live_settings` returns them.
    scheduler_names : collection of str
        The scheduler's.

    Attributes
    ----------
    rounds : LiveRounds
    service : Service
    app : FastAPI
        `/schedulePod`, `/plan`, `/rounds` and all else of `docs/http.md`.
    """

    def __init__(
        self,
        live: LiveCluster,
        client: ApiClient,
        store: Store,
        settings: Settings,
        scheduler_names: Collection[str],
        *,
        clock: Clock = wall_clock,
        patience: Patience | None = None,
        description: str = "a live cluster",
    ) -> None:
        self.rounds = LiveRounds(
            live,
            client,
            store,
            settings,
            clock,
            scheduler_names=scheduler_names,
            patience=patience,
            description=description,
        )
        self.service: Service = assemble_on(self.rounds, settings, store, clock=clock)
        self.app: FastAPI = make_app(self.service)

    @property
    def reservations(self) -> Reservations:
        """What the scheduler asks before it decides."""
        return self.rounds.reservations

    async def start(self, release: Callable[[Iterable[str]], None]) -> None:
        """Take up the round that was under way when the last process ended.

        Parameters
        ----------
        release : callable
            `berth.live.scheduler.LiveScheduler.release`.
        """
        self.rounds.reservations.release = release
        await self.rounds.prepare()

    async def stop(self) -> None:
        """Break off the round under way, and close the store; the application does so, too, when it ends."""
        await asyncio.to_thread(self.service.stop)
