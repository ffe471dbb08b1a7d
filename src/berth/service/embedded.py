"""The embedded cluster: loaded from a snapshot or the store, changed by rounds, looked at by everybody else.

Threads may share it: a lock lets one round or dry run at a time change the cluster.
"""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from berth.cluster.cluster import Cluster
from berth.config.settings import Settings
from berth.module.apply import apply_round
from berth.module.changes import Change
from berth.module.plan import Plan
from berth.module.planner import Planner
from berth.module.services import ServiceError, resolve_workload
from berth.service.assembly import empty_cluster, make_planner
from berth.service.nodes import ClusterView, view_of
from berth.service.origin import Clock, Origin
from berth.service.results import changes_of, failed_result, result_of
from berth.service.rounds import Insist, NotReadyError, Stopped
from berth.sources.writer import cluster_objects, load_objects
from berth.store.interface import OpenRound, RoundError, RoundFinished, RoundResult, Store, StoredObject

log = logging.getLogger(__name__)

BUSY_SECONDS = 5.0
"""How long a dry run or a look at the nodes waits for a round to end."""

_TRIED_SERVICES = 50
_NO_EXAMPLE = ("NAMESPACE", "SERVICE")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A cluster that rounds can be decided on."""

    cluster: Cluster
    planner: Planner


class EmbeddedCluster:
    """The cluster that a store keeps.

    Attributes
    ----------
    notice : str
        What the user should know of where the state comes from; empty if there is nothing to say.
    example : (str, str) or None
        Namespace and name of a service of which pods can be added, to try things on; None until it is loaded.
    """

    def __init__(self, store: Store, origin: Origin, settings: Settings, clock: Clock) -> None:
        self.origin = origin
        self.notice = ""
        self.example: tuple[str, str] | None = None
        self._store = store
        self._settings = settings
        self._clock = clock
        self._lock = threading.Lock()
        self._loaded: Loaded | None = None
        self._view: ClusterView | None = None
        self._spoilt = False

    @property
    def description(self) -> str:
        """Where the cluster comes from."""
        return self.origin.description

    # -- start -------------------------------------------------------------------------------------------------------

    def open(self, *, reset: bool = False) -> None:
        """Load the cluster, from the store if that holds one; else it is loaded anew and saved there.

        Raises
        ------
        BerthError
            It can't be loaded, or the store can't be written.
        """
        held = self._store.held_state()
        if held is not None and not reset:
            self.notice = self._what_is_held(held)
            log.log(logging.INFO if held == self.origin.description else logging.WARNING, "%s", self.notice)
            self.reload()
            return
        cluster = self.origin.load()
        if held is not None:
            log.warning("--reset: dropping the state that the store holds, of %s", held)
            self._store.reset()
        with self._lock:  # a dry run changes the cluster for a while: not now
            self._take(cluster)
            log.info("saving the state of %s in the store", self.origin.description)
            rows = (StoredObject(*row) for row in cluster_objects(cluster))
            self._store.save_objects(rows, self.origin.description)

    def reload(self) -> None:
        """Load the cluster anew from the store: as the last finished round left it."""
        self._spoilt = True
        self._take(load_objects(self._store.objects(), empty_cluster(self._settings)))
        self._spoilt = False

    def _take(self, cluster: Cluster) -> None:
        counter = self._store.tie_counter()
        planner = make_planner(cluster, self._settings, self.origin.profiles, counter)
        self._loaded, self._view = Loaded(cluster, planner), None
        self.example = example_in(cluster)

    def _what_is_held(self, held: str) -> str:
        if held == self.origin.description:
            return f"The store holds the state of {held} as earlier rounds left it: it wins, until --reset."
        return (
            f"The store holds the state of {held}, not of {self.origin.description}: "
            "the store's state is used all the same. Start with --reset to drop it, or with another --store."
        )

    def troubles(self) -> list[str]:
        """Return nothing: once it is loaded, it can be asked."""
        return []

    def interrupt(self) -> None:
        """Do nothing: a round under way is soon through."""

    # -- rounds ------------------------------------------------------------------------------------------------------

    def carry_out(self, taken: OpenRound, insist: Insist) -> RoundResult:
        """Decide a round that the store has begun, apply it and write down its result.

        All of it hangs on the store's state and on when the round began: a round that is found half way after a
        crash is decided alike, for nothing of it was applied.

        Raises
        ------
        Stopped
            The service ends, and the store could not be written.
        """
        with self._lock:
            try:
                result = self._decide(taken)
                self._write_down(taken, result, insist)
            except Stopped:
                raise
            except Exception:
                log.exception("round %d failed: its requests fail, the cluster stays as it was", taken.number)
                insist(self.reload)
                result = failed_result(
                    taken, "internal error: see the log", self._ready().planner.ties.counter
                )
                self._write_down(taken, result, insist)
            self._view = None
            return result

    def _decide(self, taken: OpenRound) -> RoundResult:
        loaded = self._clean()
        planner, began = loaded.planner, datetime.fromtimestamp(taken.began, UTC)
        planner.set_forecast(self.origin.feed.delta(loaded.cluster, began))
        decided = planner.decide(changes_of(taken))
        plan = planner.plan(taken.number, decided).written()
        applied = apply_round(decided, taken.number, int(taken.began))
        return result_of(taken, plan, decided, applied)

    def _write_down(self, taken: OpenRound, result: RoundResult, insist: Insist) -> None:
        # The plan is on record before anybody sees the cluster changed: the lock is held until the round is finished.
        insist(lambda: self._record(taken.number, result.plan))
        insist(lambda: self._finish(taken.number, result))

    def _record(self, number: int, plan: bytes) -> None:
        try:
            self._store.record_plan(number, plan, self._clock().timestamp())
        except RoundError:
            # Recorded before a crash, or by a try whose commit was reported as failed: the result has the final plan.
            found = self._store.unfinished_round()
            if found is None or found.number != number or found.plan is None:
                raise

    def _finish(self, number: int, result: RoundResult) -> None:
        try:
            self._store.finish_round(number, result, self._clock().timestamp())
        except RoundFinished:
            log.warning("round %d was written down by a try that had been reported as failed", number)

    # -- looks -------------------------------------------------------------------------------------------------------

    @property
    def loaded(self) -> bool:
        """Whether there is a cluster yet."""
        return self._loaded is not None

    @property
    def cluster(self) -> Cluster:
        """The cluster; only its services and workloads may be read without the lock.

        Raises
        ------
        NotReadyError
            It is not loaded yet.
        """
        return self._ready().cluster

    def dry_run(self, number: int, changes: Sequence[Change]) -> Plan:
        """Plan a round on the cluster as it is now, which stays as it is.

        Raises
        ------
        NotReadyError
            The cluster is not loaded yet, or a round takes long.
        """
        with self._held():
            loaded = self._clean()
            try:
                loaded.planner.set_forecast(self.origin.feed.delta(loaded.cluster, self._clock()))
                return loaded.planner.dry_run(number, changes).written()
            except Exception:
                self.reload()
                raise

    def view(self) -> ClusterView:
        """Return the nodes as the last round left them; while a round takes long, as the one before it did.

        Raises
        ------
        NotReadyError
            The cluster is not loaded yet, or nobody has looked at it before this round.
        """
        view = self._view
        if view is None:
            with self._held():
                view = self._view = view_of(self._clean().cluster)
        return view

    def _ready(self) -> Loaded:
        if self._loaded is None:
            raise NotReadyError(f"{self.origin.description} is being loaded")
        return self._loaded

    def _clean(self) -> Loaded:
        """Return the cluster, loaded anew if something had left it half changed."""
        if self._spoilt:
            self.reload()
        return self._ready()

    @contextmanager
    def _held(self) -> Iterator[None]:
        self._ready()
        if not self._lock.acquire(timeout=BUSY_SECONDS):
            raise NotReadyError("a round is under way, or the cluster is being saved")
        try:
            yield
        finally:
            self._lock.release()


def example_in(cluster: Cluster) -> tuple[str, str]:
    """Return namespace and name of a service of which pods can be added."""
    for service in cluster.objects.services.all()[:_TRIED_SERVICES]:
        with suppress(ServiceError):
            if service.spec.selector and resolve_workload(cluster, service) is not None:
                return service.metadata.namespace, service.metadata.name
    return _NO_EXAMPLE
