"""Whatever the order of calls and restarts, the store equals a model of a few plain lists."""

import tempfile
from pathlib import Path

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from berth.store.interface import Entry, ObjectChange, Outcome
from berth.store.sqlite import SqliteStore
from tests.store.builders import NOON, a_change, a_key, a_result, an_entry, an_object

KEEP_ROUNDS = 3
names = st.sampled_from("abcd")
changes = st.lists(st.builds(a_change, names, st.none() | st.sampled_from(["1", "2"])), max_size=4)


class StoreMachine(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.open()
        self.store.save_objects([an_object("a")], "state")
        self.objects = {"a": b"{}"}
        self.n_requests = 0
        self.keys: dict[str, str] = {}
        self.retries: set[str] = set()
        self.waiting: list[str] = []
        self.taken: list[str] = []
        self.under_way: int | None = None
        self.has_plan = False
        self.n_rounds = 0
        self.finished: dict[int, list[str]] = {}
        self.tie_counter = 0

    def open(self) -> None:
        self.store = SqliteStore(Path(self.folder.name) / "berth.db", keep_rounds=KEEP_ROUNDS)

    def teardown(self) -> None:
        self.store.close()
        self.folder.cleanup()

    def next_id(self) -> str:
        self.n_requests += 1
        self.waiting.append(f"r-{self.n_requests:06d}")
        return self.waiting[-1]

    @rule()
    def restart(self) -> None:
        self.store.close()
        self.open()

    @rule(key=st.none() | names)
    def submit(self, key: str | None) -> None:
        accepted = self.store.submit([an_entry()], NOON, None if key is None else a_key(key))
        assert accepted.repeated == (key in self.keys)
        expected = self.keys[key] if key in self.keys else self.next_id()
        assert accepted.request == expected
        if key is not None:
            self.keys[key] = expected

    @precondition(lambda self: self.under_way is None)
    @rule()
    def begin(self) -> None:
        taken = self.store.begin_round(NOON)
        assert (taken is None) == (not self.waiting)
        if taken is None:
            return
        self.n_rounds += 1
        assert taken.number == self.n_rounds
        self.under_way, self.taken, self.waiting = taken.number, self.waiting, []

    @precondition(lambda self: self.under_way is not None and not self.has_plan)
    @rule()
    def abandon(self) -> None:
        assert self.under_way is not None
        self.store.abandon_round(self.under_way)
        self.under_way, self.taken, self.waiting = None, [], self.taken + self.waiting

    @precondition(lambda self: self.under_way is not None and not self.has_plan)
    @rule()
    def plan(self) -> None:
        assert self.under_way is not None
        self.store.record_plan(self.under_way, b"plan", NOON)
        self.has_plan = True

    @precondition(lambda self: self.has_plan)
    @rule(made=changes, fails=st.booleans())
    def finish(self, made: list[ObjectChange], fails: bool) -> None:
        assert self.under_way is not None
        outcomes = []
        for request in self.taken:
            requeue: tuple[Entry, ...] = ()
            if fails and request not in self.retries:
                requeue = (an_entry(),)
                self.retries.add(self.next_id())
            outcomes.append(Outcome(request, "failed" if fails else "applied", requeue=requeue))
        self.tie_counter += len(made)
        result = a_result(outcomes, changes=made, tie_counter=self.tie_counter)
        self.store.finish_round(self.under_way, result, NOON)
        for change in made:
            if change.body is None:
                self.objects.pop(change.name, None)
            else:
                self.objects[change.name] = change.body
        self.finished[self.under_way] = self.taken
        self.under_way, self.taken, self.has_plan = None, [], False

    @invariant()
    def equals_the_model(self) -> None:
        kept = sorted(self.finished, reverse=True)[:KEEP_ROUNDS]
        ended = [request for number in kept for request in self.finished[number]]
        known = sorted([*ended, *self.taken, *self.waiting], reverse=True)
        assert [request.id for request in self.store.requests()] == known
        assert self.store.waiting_count() == len(self.waiting)
        under_way = [] if self.under_way is None else [self.under_way]
        assert [summary.number for summary in self.store.rounds()] == under_way + kept
        found = self.store.unfinished_round()
        assert (None if found is None else found.number) == self.under_way
        assert ([] if found is None else [request.id for request in found.requests]) == self.taken
        assert [(o.name, o.body) for o in self.store.objects()] == list(self.objects.items())
        assert self.store.tie_counter() == self.tie_counter


TestStore = StoreMachine.TestCase
TestStore.settings = settings(max_examples=25, stateful_step_count=30, deadline=None)
