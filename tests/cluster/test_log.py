from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.cluster.log import ChangeLog, PodChange

LENGTH = 4

entries = st.one_of(
    st.builds(
        PodChange,
        row=st.integers(0, 3),
        pod=st.integers(0, 9),
        namespace_id=st.just(0),
        spec_id=st.just(0),
        labels_id=st.integers(0, 1),
        terminating=st.just(False),
        sign=st.sampled_from([-1, 1]),
    ),
    st.integers(0, 3),
    st.none(),
)


def note(log: ChangeLog, entry: PodChange | int | None) -> None:
    if entry is None:
        log.everything()
    elif isinstance(entry, int):
        log.node(entry)
    else:
        log.pod(entry)


def net(changes: Iterable[PodChange]) -> dict[PodChange, int]:
    """How many pods more of each kind: those that came less those that went."""
    counts: Counter[PodChange] = Counter()
    for change in changes:
        counts[change._replace(pod=0, sign=1)] += change.sign
    return {change: n for change, n in counts.items() if n}


@given(st.lists(entries, max_size=12))
def test_changes_since_every_version(history: list[PodChange | int | None]) -> None:
    log = ChangeLog(LENGTH)
    versions = [log.version]
    for entry in history:
        note(log, entry)
        versions.append(log.version)
    for i, version in enumerate(versions):
        later = history[i:]
        changes = log.since(version)
        if None in later or len(later) > LENGTH:
            assert (changes, log.rows_since(version)) == (None, None)
            continue
        assert changes is not None
        assert changes.rows.tolist() == sorted(
            {e if isinstance(e, int) else e.row for e in later if e is not None}
        )
        assert log.rows_since(version) == set(changes.rows.tolist())
        assert net(changes.pods) == net(e for e in later if isinstance(e, PodChange))
        assert sum(map(abs, net(changes.pods).values())) == len(changes.pods)  # pairs have cancelled out
        assert changes.nodes == any(isinstance(e, int) for e in later)


@pytest.mark.parametrize("n", [LENGTH, LENGTH + 1])
def test_what_lies_too_far_back_is_not_known(n: int) -> None:
    log = ChangeLog(LENGTH)
    for row in range(n):
        log.node(row)
    changes = log.since(0)
    assert (changes is None) is (n > LENGTH)
    assert log.since(log.version - 1) is not None


def test_each_row_stands_once() -> None:
    log = ChangeLog()
    for row in (3, 1, 3):
        log.node(row)
    changes = log.since(0)
    assert changes is not None
    assert Counter(changes.rows.tolist()) == {1: 1, 3: 1}


def told(log: ChangeLog, version: int) -> tuple[list[int], list[PodChange], bool] | None:
    changes = log.since(version)
    return None if changes is None else (changes.rows.tolist(), changes.pods, changes.nodes)


@given(
    st.lists(entries, max_size=5), st.lists(st.lists(entries, max_size=6), min_size=1, max_size=3), entries
)
def test_what_was_kept_of_a_state_that_is_restored_holds(
    first: list[PodChange | int | None],
    undone: list[list[PodChange | int | None]],
    last: PodChange | int | None,
) -> None:
    log = ChangeLog(LENGTH)
    for entry in first:
        note(log, entry)
    versions = []
    for plan in undone:
        versions.append(log.version)
        for entry in plan:
            note(log, entry)
        log.restored(versions[-1])
    for version in versions:
        assert told(log, version) == told(log, log.version) == ([], [], False)
    now = log.version
    note(log, last)
    for version in versions:
        assert told(log, version) == told(log, now)


def test_versions_that_are_as_now_are_remembered_up_to_a_number() -> None:
    log = ChangeLog(LENGTH)
    first = log.version
    for n in range(100):
        version = log.version
        log.everything()
        log.restored(version)
        assert (log.since(first) is not None) is (n < 64)
