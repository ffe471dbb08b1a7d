"""The round loop: a thread that carries out what waits in the queue, one round after another."""

import logging
import threading
import time
from collections.abc import Callable
from datetime import timedelta

from berth.errors import BerthError
from berth.service.metrics import Metrics
from berth.service.origin import Clock
from berth.service.rounds import Rounds, Stopped
from berth.store.interface import OpenRound, RoundResult, Store, StoreUnavailable

log = logging.getLogger(__name__)

RETRY_SECONDS = 0.5
BACK_OFF_SECONDS = 5.0
"""After a round that could not even be failed."""


class RoundLoop:
    """Rounds in a thread of their own.

    Attributes
    ----------
    trouble : str
        Why rounds don't get on at present; empty if they do.
    failure : BerthError or None
        Why the cluster could not be loaded; the loop has ended then.
    """

    def __init__(
        self,
        store: Store,
        rounds: Rounds,
        metrics: Metrics,
        clock: Clock,
        interval: timedelta,
    ) -> None:
        self.trouble = ""
        self.failure: BerthError | None = None
        self._store = store
        self._rounds = rounds
        self._metrics = metrics
        self._clock = clock
        self._interval = interval.total_seconds()
        self._waiting = threading.Event()
        self._stopping = threading.Event()
        self._ready = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def ready(self) -> bool:
        """Whether the cluster is loaded and saved, so that rounds can be carried out."""
        return self._ready.is_set()

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def start(
        self,
        *,
        reset: bool = False,
        on_ready: Callable[[], None] = lambda: None,
        on_failure: Callable[[], None] = lambda: None,
    ) -> None:
        """Load the cluster, then carry out rounds; all in the background."""
        self._thread = threading.Thread(
            target=self._run, args=(reset, on_ready, on_failure), name="rounds", daemon=True
        )
        self._thread.start()

    def wake(self) -> None:
        """Tell that a request waits."""
        self._waiting.set()

    def stop(self) -> None:
        """Let the round under way end, or break off where it can be taken up again, and the thread with it."""
        self._stopping.set()
        self._waiting.set()
        self._rounds.interrupt()
        if self._thread is not None:
            self._thread.join()

    def wait_until_ready(self, timeout: float) -> bool:
        """Wait for the cluster to be loaded and saved; tell whether it is. [s]"""
        return self._ready.wait(timeout)

    # -- the thread --------------------------------------------------------------------------------------------------

    def _run(self, reset: bool, on_ready: Callable[[], None], on_failure: Callable[[], None]) -> None:
        try:
            self._rounds.open(reset=reset)
            on_ready()
        except Exception as error:
            if not isinstance(error, BerthError):
                log.exception("the cluster can't be loaded")
            self.failure = error if isinstance(error, BerthError) else BerthError(str(error))
            on_failure()
            return
        self._ready.set()
        self._waiting.set()  # what an earlier process left
        while not self._stopping.is_set():
            self._waiting.wait()
            self._waiting.clear()
            try:
                self._empty_queue()
            except Stopped:
                return
            except Exception:
                self.trouble = "a round could not be written down: see the log"
                log.exception("%s; trying again", self.trouble)
                self._stopping.wait(BACK_OFF_SECONDS)
                self._waiting.set()

    def _empty_queue(self) -> None:
        """Carry out rounds until no request waits."""
        while not self._stopping.is_set():
            started = time.monotonic()
            taken = self._take()
            if taken is None:
                return
            result = self._rounds.carry_out(taken, self._insist)
            self.trouble = ""
            self._report(taken, result, time.monotonic() - started)
            self._stopping.wait(started + self._interval - time.monotonic())

    def _take(self) -> OpenRound | None:
        taken: list[OpenRound | None] = []
        self._insist(lambda: taken.append(self._begin()))
        return taken[-1]

    def _begin(self) -> OpenRound | None:
        found = self._store.unfinished_round()
        if found is not None:  # of a process that died, or begun by a try that was reported as failed
            log.info("round %d was begun and not finished: it is carried out now", found.number)
            return found
        return self._store.begin_round(self._clock().timestamp())

    def _insist(self, action: Callable[[], None]) -> None:
        while True:
            try:
                action()
            except StoreUnavailable as error:
                if self.trouble != str(error):
                    self.trouble = str(error)
                    log.error("%s; trying until it is", error)
                if self._stopping.wait(RETRY_SECONDS):
                    raise Stopped("the service ends") from error
            else:
                self.trouble = ""
                return

    def _report(self, taken: OpenRound, result: RoundResult, seconds: float) -> None:
        self._metrics.observe_round(result, seconds)
        log.info(
            "round %d: %d requests, %d added, %d removed, %d failed, %.0f ms",
            taken.number,
            len(taken.requests),
            result.added,
            result.removed,
            result.failed,
            seconds * 1000,
        )
