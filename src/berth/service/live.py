"""Rounds on a real cluster: planned on the cluster as the API server has it, carried out by its controllers.

The round loop's thread drives them; whatever looks at the cluster or changes it happens on the event loop's thread, which
owns the cluster, and between two ``await``: a plan is made on a cluster that stands still, and so are the scheduler's
decisions. Only the store is used from threads.
"""

import asyncio
import logging
import threading
from collections.abc import Collection, Coroutine, Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from berth.cluster.cluster import Cluster, Incoming
from berth.config.settings import Settings
from berth.errors import InputError
from berth.live.api_errors import ApiError, ConnectionLostError, CredentialsError
from berth.live.client import ApiClient
from berth.live.live_cluster import LiveCluster
from berth.live.module.executor import Executor
from berth.live.module.expected import ExpectedPods
from berth.live.module.orders import JournalClosedError, Order, Outcome, Progress, orders_of, with_pods
from berth.live.module.preflight import refusals
from berth.live.module.scales import Scales
from berth.live.module.tools import Tools
from berth.live.module.watching import Patience, Watching
from berth.module.changes import Change
from berth.module.plan import Plan
from berth.module.planner import Planner
from berth.service.assembly import make_planner
from berth.service.embedded import example_in
from berth.service.nodes import ClusterView, view_of
from berth.service.origin import Clock, named_feed, named_profiles
from berth.service.results import changes_of, failed_result, live_result
from berth.service.rounds import Insist, NotReadyError, Stopped
from berth.store.interface import OpenRound, RoundError, RoundFinished, RoundResult, Store

log = logging.getLogger(__name__)

RELEASE = "1.36"
CALL_SECONDS = 10.0
"""How long a dry run or a look at the nodes may take."""

T = TypeVar("T")
_orders = msgspec.json.Decoder(tuple[Order, ...])
_progress = msgspec.json.Decoder(Progress)
_plans = msgspec.json.Decoder(Plan)
_encode = msgspec.json.encode
_ORDERS, _TIES = "orders", "ties"


@dataclass(slots=True)
class Work:
    """A round that was planned: what is to be done, how far that is, and the tie counter after it."""

    plan: bytes
    orders: tuple[Order, ...]
    progress: list[Progress]
    tie_counter: int


def live_settings(settings: Settings) -> Settings:
    """Return the settings with the release that holds on a live cluster, where they name none.

    Raises
    ------
    InputError
        They name another.
    """
    module = settings.module
    if "release" not in module.model_fields_set:
        return settings.model_copy(update={"module": module.model_copy(update={"release": RELEASE})})
    if module.release != RELEASE:
        raise InputError(
            "module.release", module.release, f"{RELEASE!r}, the one that live clusters are planned by"
        )
    return settings


class LiveRounds:
    """Rounds on a `LiveCluster` (`berth.service.rounds.Rounds`).

    `prepare` is awaited on the cluster's event loop once that is synced, and before the scheduler decides anything; all else
    is for other threads.

    Parameters
    ----------
    live : LiveCluster
        Begun with a cluster that counts as the settings want it (`berth.service.assembly.empty_cluster`).
    settings : Settings
        As `live_settings` returns them.
    scheduler_names : collection of str
        Those under which Berth schedules on this cluster.

    Attributes
    ----------
    reservations : ExpectedPods
        What the scheduler asks before it decides.
    """

    notice = ""

    def __init__(
        self,
        live: LiveCluster,
        client: ApiClient,
        store: Store,
        settings: Settings,
        clock: Clock,
        *,
        scheduler_names: Collection[str] = ("berth",),
        patience: Patience | None = None,
        description: str = "a live cluster",
    ) -> None:
        self.description = description
        self.reservations = ExpectedPods(live.cluster, self._fits)
        self._live = live
        self._store = store
        self._settings = settings
        self._clock = clock
        self._feed = named_feed(settings)
        self._profiles = named_profiles(settings)
        self._round = 0
        self._insist: Insist = lambda action: action()
        watching = Watching()
        self._executor = Executor(
            Tools(
                live.cluster,
                client,
                Scales(client, self),
                self.reservations,
                watching,
                self,
                patience or Patience(),
                tuple(scheduler_names),
            )
        )
        self._planner: Planner | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._prepared, self._ended = threading.Event(), threading.Event()
        self._running: Future[Any] | None = None
        self._work: Work | None = None
        live.subscribe("Pod", self.reservations.hear)
        live.subscribe("Pod", lambda event: watching.hear())

    # -- on the event loop -------------------------------------------------------------------------------------------

    async def prepare(self) -> None:
        """Take up a round that was under way when the last process ended: what it expects is known from now on."""
        self._loop = asyncio.get_running_loop()
        counter = await asyncio.to_thread(self._store.tie_counter)
        self._planner = make_planner(self._live.cluster, self._settings, self._profiles, counter)
        found = await asyncio.to_thread(self._store.unfinished_round)
        if found is not None and found.plan is not None:
            self._work = await asyncio.to_thread(self._noted, found)
            self._executor.expect(self._work.orders)
        self._prepared.set()

    async def note(self, order: Order, progress: Progress) -> None:
        """Write down how far an order has come (`berth.live.module.orders.Journal`)."""
        number, body = self._round, _encode(progress)
        try:
            await asyncio.to_thread(self._insist, lambda: self._store.note(number, {_key_of(order): body}))
        except Stopped as error:
            raise JournalClosedError(str(error)) from error

    def _fits(self, pod: Incoming, row: int) -> bool:
        return self._ready().fits(pod, row)

    async def _decide(self, taken: OpenRound) -> Work:
        changes = changes_of(taken)
        refused = await self._executor.refusals(changes)
        planner, cluster = self._ready(), self._live.cluster
        # From here on nothing waits: the cluster stands still, and is as it was when this is through.
        planner.set_forecast(self._feed.delta(cluster, self._clock()))
        counter, version = planner.ties.counter, cluster.log.version
        decided = planner.decide(changes, refusals=refused)
        try:
            plan = planner.plan(taken.number, decided).written()
            orders = orders_of(decided)
            after = planner.ties.counter
        finally:
            planner.undo(decided, counter)
            cluster.log.restored(version)
        orders = with_pods(orders, cluster)
        planner.ties.counter = after
        self._executor.expect(orders)
        return Work(_encode(plan), tuple(orders), [Progress() for _ in orders], after)

    async def _carry_out(self, work: Work) -> dict[int, Outcome]:
        return await self._executor.carry_out(work.orders, work.progress)

    async def _dry_run(self, number: int, changes: Sequence[Change]) -> Plan:
        refused = await refusals(changes, self._executor.tools)
        planner = self._ready()
        planner.set_forecast(self._feed.delta(self._live.cluster, self._clock()))
        return planner.dry_run(number, changes, refusals=refused).written()

    async def _view(self) -> ClusterView:
        return view_of(self._live.cluster)

    # -- on the round loop's thread ----------------------------------------------------------------------------------

    def open(self, *, reset: bool = False) -> None:
        """Wait until the cluster is prepared. There is no state of our own that a reset could drop."""
        del reset
        while not self._prepared.wait(0.1):
            if self._ended.is_set():
                raise Stopped("the service ends")

    def interrupt(self) -> None:
        """Break off the round under way: the next start takes it up where it stands."""
        self._ended.set()
        running = self._running
        if running is not None:
            running.cancel()

    def carry_out(self, taken: OpenRound, insist: Insist) -> RoundResult:
        """Plan a round, unless it has a plan, carry it out from where it stands, and write down its result.

        Raises
        ------
        Stopped
            The service ends before the round does.
        """
        self._round, self._insist = taken.number, insist
        work = self._planned(taken, insist)
        if work is None:
            result = failed_result(taken, "internal error: see the log", self._ready().ties.counter)
            self._record(taken.number, result.plan, insist)
        else:
            outcomes = self._call(self._carry_out(work))
            result = live_result(taken, _plans.decode(work.plan), outcomes, work.tie_counter)
        insist(lambda: self._finish(taken.number, result))
        self._work = None
        return result

    def _planned(self, taken: OpenRound, insist: Insist) -> Work | None:
        """Return what is to be done, written down; None if the round can't even be planned."""
        if self._work is None and taken.plan is not None:
            insist(lambda: self._take_up(taken))
        elif self._work is None:
            try:
                self._work = self._call(self._decide(taken))
            except (Stopped, NotReadyError):
                raise
            except Exception:
                log.exception("round %d failed: its requests fail, the cluster stays as it was", taken.number)
                return None
        work = self._work
        assert work is not None
        if taken.plan is None:
            # The orders come first: a plan that is on record is carried out, and never made anew.
            notes = {_ORDERS: _encode(work.orders), _TIES: _encode(work.tie_counter)}
            insist(lambda: self._store.note(taken.number, notes))
            self._record(taken.number, work.plan, insist)
        return work

    def _take_up(self, taken: OpenRound) -> None:
        work = self._noted(taken)
        self._call(self._expect(work))
        self._work = work

    async def _expect(self, work: Work) -> None:
        self._executor.expect(work.orders)

    def _noted(self, taken: OpenRound) -> Work:
        notes = self._store.notes(taken.number)
        orders = _orders.decode(notes.get(_ORDERS, b"[]"))
        progress = [
            _progress.decode(body) if (body := notes.get(_key_of(order))) else Progress() for order in orders
        ]
        assert taken.plan is not None
        return Work(taken.plan, orders, progress, int(notes.get(_TIES, b"0")))

    def _record(self, number: int, plan: bytes, insist: Insist) -> None:
        def record() -> None:
            try:
                self._store.record_plan(number, plan, self._clock().timestamp())
            except RoundError:
                found = self._store.unfinished_round()
                if found is None or found.number != number or found.plan is None:
                    raise

        insist(record)

    def _finish(self, number: int, result: RoundResult) -> None:
        try:
            self._store.finish_round(number, result, self._clock().timestamp())
        except RoundFinished:
            log.warning("round %d was written down by a try that had been reported as failed", number)

    # -- looks -------------------------------------------------------------------------------------------------------

    @property
    def cluster(self) -> Cluster:
        """The cluster; only its services and workloads may be read from other threads.

        Raises
        ------
        NotReadyError
            It is not synced yet.
        """
        self._ready()
        return self._live.cluster

    @property
    def example(self) -> tuple[str, str] | None:
        """Namespace and name of a service of which pods can be added."""
        return example_in(self._live.cluster) if self._prepared.is_set() else None

    def troubles(self) -> list[str]:
        """Return what is wrong with the API server, as its watches and the round under way find it."""
        found = [
            f"{kind}: {reflector.trouble}"
            for kind, reflector in self._live.reflectors.items()
            if reflector.trouble
        ]
        return [*found, self._executor.trouble] if self._executor.trouble else found

    def dry_run(self, number: int, changes: Sequence[Change]) -> Plan:
        """Plan a round on the cluster as it is now.

        Raises
        ------
        NotReadyError
            The cluster can't be asked now.
        """
        self._ready()
        return self._ask(self._dry_run(number, changes))

    def view(self) -> ClusterView:
        """Look at the nodes.

        Raises
        ------
        NotReadyError
            The cluster can't be asked now.
        """
        self._ready()
        return self._ask(self._view())

    def _ready(self) -> Planner:
        if self._planner is None:
            raise NotReadyError(f"{self.description} is being listed")
        return self._planner

    # -- from thread to event loop -----------------------------------------------------------------------------------

    def _submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        if self._loop is None or self._loop.is_closed():
            work.close()
            raise NotReadyError(f"{self.description} is not followed")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def _ask(self, work: Coroutine[Any, Any, T]) -> T:
        future = self._submit(work)
        try:
            return future.result(CALL_SECONDS)
        except TimeoutError:
            future.cancel()
            raise NotReadyError(f"{self.description} does not answer") from None
        except (ApiError, ConnectionLostError, CredentialsError) as error:
            raise NotReadyError(f"{self.description} can't be asked: {error}") from error

    def _call(self, work: Coroutine[Any, Any, T]) -> T:
        """Do a part of a round; `interrupt` breaks it off."""
        future = self._running = self._submit(work)
        if self._ended.is_set():
            future.cancel()
        try:
            return future.result()
        except (CancelledError, JournalClosedError) as error:
            raise Stopped("the service ends") from error
        finally:
            self._running = None


def _key_of(order: Order) -> str:
    return f"{order.operation}/{order.namespace}/{order.workload}/{order.controller}"
