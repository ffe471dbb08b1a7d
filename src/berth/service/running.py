"""The running service, apart from HTTP: lists are taken into the queue, plans are made, health is told."""

import hashlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from berth.config.settings import Settings
from berth.service.embedded import EmbeddedCluster
from berth.service.loop import RoundLoop
from berth.service.metrics import Metrics
from berth.service.origin import Clock, Origin, wall_clock
from berth.service.results import entry_of
from berth.service.rounds import NotReadyError, Rounds
from berth.service.wire import Refusal, as_json, check_body, errors_as_json
from berth.store.interface import Accepted, IdempotencyConflict, IdempotencyKey, Store, StoreUnavailable

log = logging.getLogger(__name__)

MAX_KEY_LENGTH = 255
_TROUBLE_SECONDS = 10.0
_JSON = {"content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Answer:
    """A status, a body and the headers that belong to them."""

    status: int
    body: bytes
    headers: dict[str, str] = field(default_factory=lambda: dict(_JSON))


@dataclass(slots=True)
class Service:
    """Everything that a running service consists of.

    Attributes
    ----------
    on_ready, on_failure : callable
        Called once the cluster is loaded and saved, or could not be loaded; `RoundLoop.failure` says why.
    """

    settings: Settings
    store: Store
    rounds: Rounds
    loop: RoundLoop
    metrics: Metrics
    clock: Clock
    reset: bool = False
    on_ready: Callable[[], None] = lambda: None
    on_failure: Callable[[], None] = lambda: None
    _store_trouble: str = ""
    _trouble_until: float = 0.0

    def start(self) -> None:
        """Load the cluster and carry out rounds, in the background."""
        self.loop.start(reset=self.reset, on_ready=self.on_ready, on_failure=self.on_failure)

    def stop(self) -> None:
        """Let the round under way end, then close the store."""
        self.loop.stop()
        self.store.close()

    def submit(self, body: bytes, key: str | None) -> Answer:
        """Put a list into the queue, once it is checked."""
        if key is not None and not 0 < len(key) <= MAX_KEY_LENGTH:
            return self._count(
                "refused", refused(400, f"Idempotency-Key: expected 1 to {MAX_KEY_LENGTH} characters")
            )
        known = None if key is None else IdempotencyKey(key, hashlib.sha256(body).digest())
        try:
            return self._submit(body, known)
        except IdempotencyConflict as error:
            return self._count("refused", refused(422, str(error)))
        except StoreUnavailable as error:
            self._store_trouble, self._trouble_until = str(error), time.monotonic() + _TROUBLE_SECONDS
            return self._count("unavailable", unavailable(str(error)))
        except NotReadyError as error:
            return self._count("unavailable", unavailable(str(error)))

    def _submit(self, body: bytes, key: IdempotencyKey | None) -> Answer:
        now = self.clock().timestamp()
        if key is not None and (earlier := self.store.recall(key, now)) is not None:
            return self._count("repeated", _accepted(earlier))
        checked = check_body(body, self.rounds.cluster, "", self.settings.module.max_number)
        if checked.refusal is not None:
            return self._count("refused", _refusal(checked.refusal))
        accepted = self.store.submit([entry_of(change) for change in checked.changes], now, key)
        self._trouble_until = 0.0
        self.loop.wake()
        return self._count("repeated" if accepted.repeated else "accepted", _accepted(accepted))

    def plan(self, body: bytes) -> Answer:
        """Plan a list as if it were the next round, and queue nothing."""
        try:
            checked = check_body(body, self.rounds.cluster, "dry-run", self.settings.module.max_number)
            if checked.refusal is not None:
                return _refusal(checked.refusal)
            last = self.store.rounds(limit=1)
            plan = self.rounds.dry_run(last[0].number + 1 if last else 1, checked.changes)
        except (NotReadyError, StoreUnavailable) as error:
            return unavailable(str(error))
        return Answer(200, msgspec.json.encode(plan))

    def troubles(self) -> list[str]:
        """Return why the service can't do its work at present; empty if it can."""
        found = []
        if not self.loop.ready:
            found.append(f"{self.rounds.description} is being loaded and saved")
        elif not self.loop.alive:
            found.append("the round loop has ended")
        if self.loop.ready:
            found += self.rounds.troubles()
        if self.loop.trouble:
            found.append(self.loop.trouble)
        elif time.monotonic() < self._trouble_until:
            found.append(self._store_trouble)
        try:
            self.store.waiting_count()
        except StoreUnavailable as error:
            if str(error) not in found:
                found.append(str(error))
        return found

    def _count(self, result: str, answer: Answer) -> Answer:
        self.metrics.count_request(result)
        return answer


def assemble(
    settings: Settings, store: Store, origin: Origin, *, clock: Clock = wall_clock, reset: bool = False
) -> Service:
    """Put a service together; nothing runs yet."""
    return assemble_on(
        EmbeddedCluster(store, origin, settings, clock), settings, store, clock=clock, reset=reset
    )


def assemble_on(
    rounds: Rounds, settings: Settings, store: Store, *, clock: Clock = wall_clock, reset: bool = False
) -> Service:
    """Put a service together that carries out its rounds on a cluster; nothing runs yet."""
    metrics = Metrics()
    loop = RoundLoop(store, rounds, metrics, clock, settings.module.round_interval)
    return Service(settings, store, rounds, loop, metrics, clock, reset)


def refused(status: int, message: str) -> Answer:
    """Return an answer that refuses, with nothing but a sentence."""
    return Answer(status, as_json({"isSucceed": False, "message": message, "errors": []}))


def unavailable(message: str) -> Answer:
    """Return the answer that asks to try again."""
    body = as_json({"isSucceed": False, "message": message, "errors": []})
    return Answer(503, body, {**_JSON, "retry-after": "1"})


def _accepted(accepted: Accepted) -> Answer:
    return Answer(200, as_json({"isSucceed": True, "requestId": accepted.request}))


def _refusal(refusal: Refusal) -> Answer:
    body = {"isSucceed": False, "message": refusal.message, "errors": errors_as_json(refusal.errors)}
    return Answer(404 if refusal.missing else 400, as_json(body))
