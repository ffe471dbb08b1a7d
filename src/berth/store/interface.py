"""What a store holds and promises. Knows no clock, no file format and nothing of scheduling.

Every time is in Unix seconds and passed in by the caller. Every writing method returns only once its effect
is durable, and raises `StoreUnavailable`, with nothing changed, when it can't be made so.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple, Protocol

import msgspec

from berth.errors import BerthError

Operation = Literal["add", "remove"]
RequestState = Literal["waiting", "planned", "applied", "failed"]


class StoreError(BerthError):
    """Anything that a store refuses or cannot do."""


class StoreUnavailable(StoreError):
    """The store can't be read or written at present: locked, full, read-only. Nothing was changed."""

    def __init__(self, path: object, reason: str) -> None:
        super().__init__(f"store {path} is not available: {reason}")
        self.reason = reason


class StoreVersionError(StoreError):
    """The file is a newer Berth's store, or no Berth store at all."""


class StoreInUse(StoreError):
    """Another process serves from this store."""


class IdempotencyConflict(StoreError):
    """The idempotency key came before, with another body."""

    def __init__(self, key: str) -> None:
        super().__init__(f"idempotency key {key!r} was used before with a different body")


class RoundError(StoreError):
    """The round is not in a state in which this can be done; a mistake of the caller."""


class RoundFinished(RoundError):
    """The round is finished already; it is never finished twice."""

    def __init__(self, number: int) -> None:
        super().__init__(f"round {number} is finished already")


class Entry(msgspec.Struct, frozen=True):
    """One element of a posted list: add or remove ``number`` pods of a service."""

    operation: Operation
    namespace: str
    service: str
    number: int
    workload: str | None = None
    force: bool = False


class IdempotencyKey(msgspec.Struct, frozen=True):
    """A client's key, and a digest of the body that it came with."""

    key: str
    digest: bytes


class Accepted(msgspec.Struct, frozen=True):
    """The request that stands in the queue; ``repeated`` if its idempotency key had put it there before."""

    request: str
    repeated: bool


class Decided(msgspec.Struct, frozen=True):
    """What became of one single-pod operation; ``reason`` is None where all went well."""

    operation: Operation
    namespace: str
    service: str
    pod: str | None = None
    node: str | None = None
    reason: str | None = None


class Request(msgspec.Struct, frozen=True):
    """One accepted list, as it stands now. It goes through one round; a retry is a request of its own.

    ``retry_of`` is the request that this one takes up again, ``retried_as`` the one that takes this one up. A
    request that a round has taken is ``waiting`` until the round's plan is recorded.
    """

    id: str
    received: float
    state: RequestState
    entries: tuple[Entry, ...]
    round: int | None = None
    decisions: tuple[Decided, ...] = ()
    retry_of: str | None = None
    retried_as: str | None = None


class OpenRound(msgspec.Struct, frozen=True):
    """The round under way: the requests it took, in order of arrival, and its plan once that is recorded."""

    number: int
    began: float
    requests: tuple[Request, ...]
    plan: bytes | None = None


class Outcome(msgspec.Struct, frozen=True):
    """A request's end in its round. ``requeue`` waits again, as a new request; a retry has none."""

    request: str
    state: Literal["applied", "failed"]
    decisions: tuple[Decided, ...] = ()
    requeue: tuple[Entry, ...] = ()


class StoredObject(NamedTuple):
    """A cluster object; ``namespace`` is empty where the kind has none."""

    kind: str
    namespace: str
    name: str
    body: bytes


class ObjectChange(NamedTuple):
    """A cluster object as it is from now on; ``body`` None deletes it."""

    kind: str
    namespace: str
    name: str
    body: bytes | None


class RoundResult(msgspec.Struct, frozen=True):
    """All that a finished round leaves behind, written together or not at all.

    ``outcomes`` names each request of the round once. ``added``, ``removed`` and ``failed`` count decisions.
    ``changes`` are empty where the cluster is not the store's own.
    """

    plan: bytes
    outcomes: Sequence[Outcome]
    added: int
    removed: int
    failed: int
    tie_counter: int
    changes: Sequence[ObjectChange] = ()


class RoundSummary(msgspec.Struct, frozen=True):
    """A round in a list. ``planned`` and ``finished`` are None, the counts 0, until it comes to that."""

    number: int
    began: float
    planned: float | None
    finished: float | None
    added: int
    removed: int
    failed: int


class RoundRecord(msgspec.Struct, frozen=True):
    """A round with its requests' ids, in order of arrival, and its plan: the final one when finished."""

    summary: RoundSummary
    requests: tuple[str, ...]
    plan: bytes | None


class Store(Protocol):
    """The request queue, the record of rounds and the cluster's state.

    A round is begun, planned and finished, or abandoned; there is one at a time. The methods may be called
    from any thread, and each may raise `StoreUnavailable`.
    """

    def submit(self, entries: Sequence[Entry], now: float, key: IdempotencyKey | None = None) -> Accepted:
        """Put a list into the queue.

        Parameters
        ----------
        entries
            What is asked for, checked already.
        now
            When it was received. [s]
        key
            Makes a repetition harmless: the first request's id comes back, and nothing is queued.

        Raises
        ------
        IdempotencyConflict
            The key came before with another digest.
        """
        ...

    def recall(self, key: IdempotencyKey, now: float) -> Accepted | None:
        """Return what the key had been answered before, to be asked before a body is checked anew.

        Raises
        ------
        IdempotencyConflict
            The key came before with another digest.
        """
        ...

    def request(self, request_id: str) -> Request | None:
        """Return the request, or None where there is none (any more)."""
        ...

    def requests(self, state: RequestState | None = None, limit: int = 100) -> list[Request]:
        """Return at most ``limit`` requests, the newest first; all states where none is given."""
        ...

    def waiting_count(self) -> int:
        """Return how many requests wait for a round to take them."""
        ...

    def begin_round(self, now: float) -> OpenRound | None:
        """Take all requests that wait into a new round; None where none waits.

        Raises
        ------
        RoundError
            Another round is under way.
        """
        ...

    def record_plan(self, number: int, plan: bytes, now: float) -> None:
        """Record the plan of the round under way, before anything of it is applied.

        Raises
        ------
        RoundError
            There is no such round, or it has a plan.
        """
        ...

    def note(self, number: int, notes: Mapping[str, bytes]) -> None:
        """Write down, by key, how far the round under way has come; together or not at all. A key's last note holds.

        Raises
        ------
        RoundError
            There is no such round, or it is finished.
        """
        ...

    def notes(self, number: int) -> dict[str, bytes]:
        """Return what was noted of a round; nothing once it is finished or abandoned."""
        ...

    def finish_round(self, number: int, result: RoundResult, now: float) -> None:
        """Write the result of a planned round, in one transaction, and drop the rounds beyond those kept.

        Raises
        ------
        RoundFinished
            It was finished before; the store keeps what it was told then.
        RoundError
            There is no such round, it has no plan, the outcomes are not those of its requests, a retry is to
            be queued again, or there are changes but no state is held.
        """
        ...

    def abandon_round(self, number: int) -> None:
        """Undo a round that has no plan yet: its requests wait again, in their old order.

        Raises
        ------
        RoundError
            There is no such round, or it has a plan.
        """
        ...

    def unfinished_round(self) -> OpenRound | None:
        """Return the round that is under way: asked at start, it is the one to finish or abandon."""
        ...

    def rounds(self, limit: int = 100, before: int | None = None) -> list[RoundSummary]:
        """Return at most ``limit`` rounds, the newest first, all below ``before`` if it is given."""
        ...

    def round(self, number: int) -> RoundRecord | None:
        """Return the round, or None where there is none (any more)."""
        ...

    def tie_counter(self) -> int:
        """Return the tie counter that the last finished round left, 0 before the first."""
        ...

    def save_objects(self, objects: Iterable[StoredObject], description: str) -> None:
        """Replace the cluster's state as a whole; ``description`` says where it comes from.

        ``objects`` names each object once, and is read while the store is locked: it must not use the store.
        """
        ...

    def held_state(self) -> str | None:
        """Return the held state's description, None where no state is held."""
        ...

    def objects(self) -> Iterator[StoredObject]:
        """Iterate over the cluster's state as it is at the first step, in the order in which objects came."""
        ...

    def reset(self) -> None:
        """Drop the cluster's state; the queue, the rounds and the tie counter stay."""
        ...

    def close(self) -> None:
        """Release the store; it is of no use afterwards."""
        ...
