"""The store in one SQLite file. What its methods promise is written at `berth.store.interface.Store`."""

import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from berth.store.database import Database
from berth.store.interface import (
    Accepted,
    Decided,
    Entry,
    IdempotencyConflict,
    IdempotencyKey,
    ObjectChange,
    OpenRound,
    Outcome,
    Request,
    RequestState,
    RoundError,
    RoundFinished,
    RoundRecord,
    RoundResult,
    RoundSummary,
    StoredObject,
    StoreUnavailable,
)
from berth.store.lock import ProcessLock

_REQUEST = "SELECT seq, received, state, entries, round, decisions, retry_of, retried_as FROM requests"
_SUMMARY = "number, began, planned, finished, added, removed, failed"
_LARGEST_INTEGER = 2**63 - 1  # of SQLite
_TIE_COUNTER = "tieCounter"
_STATE = "state"  # the held state's description; no row: none is held
_encode = msgspec.json.encode
_entries = msgspec.json.Decoder(tuple[Entry, ...])
_decided = msgspec.json.Decoder(tuple[Decided, ...])


class SqliteStore:
    """A `berth.store.interface.Store` in one SQLite file, held by one process.

    Parameters
    ----------
    path
        The file; it and its folder are made where they are missing.
    keep_rounds
        How many finished rounds are kept, with their requests.
    key_lifetime
        How long an idempotency key is remembered. [s]
    timeout
        How long a call waits for a lock before it raises `StoreUnavailable`. [s]

    Raises
    ------
    StoreInUse
        Another process holds the store.
    StoreVersionError
        A newer Berth made it, or another program.
    StoreUnavailable
        It can't be opened.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        keep_rounds: int = 1_000,
        key_lifetime: float = 24 * 3600.0,
        timeout: float = 5.0,
    ) -> None:
        self._keep_rounds = keep_rounds
        self._key_lifetime = key_lifetime
        # One name per file, so that a relative path or a link is locked as the same.
        resolved = Path(path).resolve()
        try:
            resolved.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreUnavailable(resolved, f"its folder can't be made: {error.strerror}") from error
        self._lock = ProcessLock(resolved)
        try:
            self._database = Database(resolved, timeout)
        except BaseException:
            self._lock.release()
            raise

    def __enter__(self) -> "SqliteStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if not self._database.is_closed:
            self._database.close()
            self._lock.release()

    # The queue

    def submit(self, entries: Sequence[Entry], now: float, key: IdempotencyKey | None = None) -> Accepted:
        with self._database.write() as db:
            if key is not None:
                db.execute("DELETE FROM idempotency_keys WHERE received <= ?", (now - self._key_lifetime,))
                if (earlier := self._find_key(db, key, now)) is not None:
                    return earlier
            seq = _enqueue(db, entries, now)
            if key is not None:
                db.execute(
                    "INSERT INTO idempotency_keys (key, digest, received, request) VALUES (?, ?, ?, ?)",
                    (key.key, key.digest, now, seq),
                )
        return Accepted(_id(seq), repeated=False)

    def recall(self, key: IdempotencyKey, now: float) -> Accepted | None:
        with self._database.read() as db:
            return self._find_key(db, key, now)

    def _find_key(self, db: sqlite3.Connection, key: IdempotencyKey, now: float) -> Accepted | None:
        row = db.execute(
            "SELECT digest, request FROM idempotency_keys WHERE key = ? AND received > ?",
            (key.key, now - self._key_lifetime),
        ).fetchone()
        if row is None:
            return None
        digest, seq = row
        if digest != key.digest:
            raise IdempotencyConflict(key.key)
        return Accepted(_id(seq), repeated=True)

    def request(self, request_id: str) -> Request | None:
        seq = _seq(request_id)
        if seq is None:
            return None
        with self._database.read() as db:
            row = db.execute(f"{_REQUEST} WHERE seq = ?", (seq,)).fetchone()
        return None if row is None else _request(row)

    def requests(self, state: RequestState | None = None, limit: int = 100) -> list[Request]:
        where, values = ("", ()) if state is None else ("WHERE state = ?", (state,))
        with self._database.read() as db:
            rows = db.execute(f"{_REQUEST} {where} ORDER BY seq DESC LIMIT ?", (*values, limit)).fetchall()
        return [_request(row) for row in rows]

    def waiting_count(self) -> int:
        with self._database.read() as db:
            (count,) = db.execute("SELECT count(*) FROM requests WHERE round IS NULL").fetchone()
        return int(count)

    # Rounds

    def begin_round(self, now: float) -> OpenRound | None:
        with self._database.write() as db:
            if (open_round := _open_round(db)) is not None:
                raise RoundError(f"round {open_round.number} is under way: there is one round at a time")
            if db.execute("SELECT 1 FROM requests WHERE round IS NULL LIMIT 1").fetchone() is None:
                return None
            number = db.execute("INSERT INTO rounds (began) VALUES (?)", (now,)).lastrowid
            db.execute("UPDATE requests SET round = ? WHERE round IS NULL", (number,))
            return _open_round(db)

    def record_plan(self, number: int, plan: bytes, now: float) -> None:
        with self._database.write() as db:
            if _has_plan(db, number):
                raise RoundError(f"round {number} has a plan already")
            db.execute("UPDATE rounds SET plan = ?, planned = ? WHERE number = ?", (plan, now, number))
            db.execute("UPDATE requests SET state = 'planned' WHERE round = ?", (number,))

    def note(self, number: int, notes: Mapping[str, bytes]) -> None:
        with self._database.write() as db:
            _has_plan(db, number)  # there is such a round, and it is under way
            db.executemany(
                "INSERT INTO notes (round, key, body) VALUES (?, ?, ?)"
                " ON CONFLICT (round, key) DO UPDATE SET body = excluded.body",
                [(number, key, body) for key, body in notes.items()],
            )

    def notes(self, number: int) -> dict[str, bytes]:
        with self._database.read() as db:
            return dict(db.execute("SELECT key, body FROM notes WHERE round = ?", (number,)))

    def finish_round(self, number: int, result: RoundResult, now: float) -> None:
        with self._database.write() as db:
            if not _has_plan(db, number):
                raise RoundError(f"round {number} has no recorded plan: it can be abandoned, not finished")
            _check_outcomes(db, number, result.outcomes)
            for outcome in result.outcomes:
                _write_outcome(db, outcome, now)
            _write_changes(db, result.changes)
            _set_meta(db, _TIE_COUNTER, result.tie_counter)
            db.execute("DELETE FROM notes WHERE round = ?", (number,))
            db.execute(
                "UPDATE rounds SET plan = ?, finished = ?, added = ?, removed = ?, failed = ?"
                " WHERE number = ?",
                (result.plan, now, result.added, result.removed, result.failed, number),
            )
            self._prune(db)

    def abandon_round(self, number: int) -> None:
        with self._database.write() as db:
            if _has_plan(db, number):
                raise RoundError(f"round {number} has a recorded plan: it can be finished, not abandoned")
            db.execute("UPDATE requests SET round = NULL WHERE round = ?", (number,))
            db.execute("DELETE FROM rounds WHERE number = ?", (number,))
            db.execute("DELETE FROM notes WHERE round = ?", (number,))

    def unfinished_round(self) -> OpenRound | None:
        with self._database.read() as db:
            return _open_round(db)

    def rounds(self, limit: int = 100, before: int | None = None) -> list[RoundSummary]:
        below = _LARGEST_INTEGER if before is None else min(before, _LARGEST_INTEGER)
        with self._database.read() as db:
            rows = db.execute(
                f"SELECT {_SUMMARY} FROM rounds WHERE number < ? ORDER BY number DESC LIMIT ?", (below, limit)
            ).fetchall()
        return [RoundSummary(*row) for row in rows]

    def round(self, number: int) -> RoundRecord | None:
        if not 0 < number <= _LARGEST_INTEGER:
            return None
        with self._database.read() as db:
            row = db.execute(f"SELECT plan, {_SUMMARY} FROM rounds WHERE number = ?", (number,)).fetchone()
            requests = db.execute(
                "SELECT seq FROM requests WHERE round = ? ORDER BY seq", (number,)
            ).fetchall()
        if row is None:
            return None
        plan, *summary = row
        return RoundRecord(RoundSummary(*summary), tuple(_id(seq) for (seq,) in requests), plan)

    def _prune(self, db: sqlite3.Connection) -> None:
        row = db.execute(
            "SELECT number FROM rounds WHERE finished IS NOT NULL ORDER BY number DESC LIMIT 1 OFFSET ?",
            (self._keep_rounds,),
        ).fetchone()
        if row is not None:
            db.execute("DELETE FROM requests WHERE round <= ?", row)
            db.execute("DELETE FROM rounds WHERE number <= ?", row)

    def tie_counter(self) -> int:
        with self._database.read() as db:
            return int(_meta(db, _TIE_COUNTER) or 0)

    # The cluster's state

    def save_objects(self, objects: Iterable[StoredObject], description: str) -> None:
        with self._database.write() as db:
            db.execute("DELETE FROM objects")
            db.executemany("INSERT INTO objects (kind, namespace, name, body) VALUES (?, ?, ?, ?)", objects)
            _set_meta(db, _STATE, description)
        self._database.truncate_log()

    def held_state(self) -> str | None:
        with self._database.read() as db:
            description = _meta(db, _STATE)
        return None if description is None else str(description)

    def objects(self) -> Iterator[StoredObject]:
        query = "SELECT kind, namespace, name, body FROM objects ORDER BY seq"
        return map(StoredObject._make, self._database.stream(query))

    def reset(self) -> None:
        with self._database.write() as db:
            db.execute("DELETE FROM objects")
            db.execute("DELETE FROM meta WHERE key = ?", (_STATE,))
        self._database.truncate_log()


def _id(seq: int) -> str:
    return f"r-{seq:06d}"


def _seq(request_id: str) -> int | None:
    """Return the number in an id; None for what `_id` would not have written."""
    if re.fullmatch(r"r-[0-9]{6,18}", request_id) is None:
        return None
    seq = int(request_id[2:])
    return seq if _id(seq) == request_id else None


def _request(row: Sequence[Any]) -> Request:
    seq, received, state, entries, number, decisions, retry_of, retried_as = row
    return Request(
        id=_id(seq),
        received=received,
        state=state,
        entries=_entries.decode(entries),
        round=number,
        decisions=_decided.decode(decisions),
        retry_of=None if retry_of is None else _id(retry_of),
        retried_as=None if retried_as is None else _id(retried_as),
    )


def _enqueue(
    db: sqlite3.Connection, entries: Sequence[Entry], now: float, retry_of: int | None = None
) -> int:
    seq = db.execute(
        "INSERT INTO requests (received, state, entries, retry_of) VALUES (?, 'waiting', ?, ?)",
        (now, _encode(entries), retry_of),
    ).lastrowid
    assert seq is not None  # an INSERT has one
    return seq


def _open_round(db: sqlite3.Connection) -> OpenRound | None:
    row = db.execute("SELECT number, began, plan FROM rounds WHERE finished IS NULL").fetchone()
    if row is None:
        return None
    number, began, plan = row
    requests = db.execute(f"{_REQUEST} WHERE round = ? ORDER BY seq", (number,))
    return OpenRound(number, began, tuple(_request(request) for request in requests), plan)


def _has_plan(db: sqlite3.Connection, number: int) -> bool:
    """Tell whether the round, which has to be under way, has a recorded plan."""
    row = db.execute("SELECT planned, finished FROM rounds WHERE number = ?", (number,)).fetchone()
    if row is None:
        raise RoundError(f"there is no round {number}")
    planned, finished = row
    if finished is not None:
        raise RoundFinished(number)
    return planned is not None


def _check_outcomes(db: sqlite3.Connection, number: int, outcomes: Sequence[Outcome]) -> None:
    rows = db.execute("SELECT seq, retry_of FROM requests WHERE round = ?", (number,))
    retry_of = {_id(seq): first for seq, first in rows}
    told = [outcome.request for outcome in outcomes]
    if sorted(told) != sorted(retry_of):
        odd = sorted(set(told) ^ set(retry_of)) or sorted({name for name in told if told.count(name) > 1})
        raise RoundError(f"round {number} needs one outcome for each of its requests; see {', '.join(odd)}")
    for outcome in outcomes:
        if outcome.requeue and retry_of[outcome.request] is not None:
            raise RoundError(f"{outcome.request} is a retry already: it can't be queued again")


def _write_outcome(db: sqlite3.Connection, outcome: Outcome, now: float) -> None:
    seq = _seq(outcome.request)
    retried_as = _enqueue(db, outcome.requeue, now, retry_of=seq) if outcome.requeue else None
    db.execute(
        "UPDATE requests SET state = ?, decisions = ?, retried_as = ? WHERE seq = ?",
        (outcome.state, _encode(outcome.decisions), retried_as, seq),
    )


def _write_changes(db: sqlite3.Connection, changes: Sequence[ObjectChange]) -> None:
    if changes and _meta(db, _STATE) is None:
        raise RoundError("no cluster state is held that could change")
    # One by one, in their order: an object may go and come again under its name.
    for kind, namespace, name, body in changes:
        if body is None:
            db.execute(
                "DELETE FROM objects WHERE kind = ? AND namespace = ? AND name = ?", (kind, namespace, name)
            )
        else:
            db.execute(
                "INSERT INTO objects (kind, namespace, name, body) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (kind, namespace, name) DO UPDATE SET body = excluded.body",
                (kind, namespace, name, body),
            )


def _meta(db: sqlite3.Connection, key: str) -> Any:
    row = db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else row[0]


def _set_meta(db: sqlite3.Connection, key: str, value: str | int) -> None:
    db.execute("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", (key, value))
