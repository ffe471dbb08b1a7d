"""A process that is killed at any moment loses nothing that it acknowledged, and does nothing twice."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from berth.store.sqlite import SqliteStore
from tests.store.killed import carried_out, recover, run_rounds

N_RANDOM_KILLS = 24
# A list's way from submission to result takes about 30 statements; this goes once around, and beyond.
N_STATEMENTS = 36
CHILD = Path(__file__).with_name("killed.py")


def run_child(path: Path, first: int, *, seconds: float | None = None, statement: int | None = None) -> int:
    """Let a process submit from list ``first`` on until it is killed; return how many it acknowledged."""
    command = [sys.executable, "-W", "error", str(CHILD), str(path), str(first)]
    if statement is not None:
        command.append(str(statement))
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "opened\n"
        if seconds is not None:
            time.sleep(seconds)
            child.kill()
        lines = child.stdout.read().splitlines(keepends=True)
        assert child.wait() == -signal.SIGKILL
    acknowledged = [int(line) for line in lines if line.endswith("\n")]
    assert acknowledged == list(range(first, first + len(acknowledged)))
    return len(acknowledged)


def check_each_was_carried_out_once(path: Path, acknowledged: int) -> None:
    with SqliteStore(path, keep_rounds=1_000_000) as store:
        recover(store)
        run_rounds(store)
        counts = carried_out(store)
        assert {counts.pop(f"list-{n}") for n in range(acknowledged)} == {1}
        # The last one may have been killed between the commit and the acknowledgement.
        assert counts in ({}, {f"list-{acknowledged}": 1})
        assert store.unfinished_round() is None
        assert {request.state for request in store.requests(limit=1_000_000)} == {"applied"}
        assert [summary.number for summary in store.rounds(1)] == [store.tie_counter()]


def test_killed_at_random_every_acknowledged_list_is_carried_out_once(path: Path) -> None:
    moments = random.Random(7)
    acknowledged = 0
    for _ in range(N_RANDOM_KILLS):
        # The next process begins with the list that was not acknowledged: its key makes that harmless.
        acknowledged += run_child(path, acknowledged, seconds=moments.uniform(0, 0.12))
    assert acknowledged > N_RANDOM_KILLS
    check_each_was_carried_out_once(path, acknowledged)


def test_killed_before_each_statement_every_acknowledged_list_is_carried_out_once(path: Path) -> None:
    acknowledged = 0
    for statement in range(1, N_STATEMENTS + 1):
        acknowledged += run_child(path, acknowledged, statement=statement)
    assert acknowledged >= N_STATEMENTS - 6
    check_each_was_carried_out_once(path, acknowledged)
