"""What does not fit into memory is not tried."""

import pytest

from berth.sim import memory
from berth.sim.memory import TooLargeError, available, check, estimate
from berth.sim.workload_files import Size


def test_a_cluster_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 1 << 30)
    check("x", Size(5_000, 150_000, 10_000))


def test_a_cluster_that_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: (1 << 30) - 1)
    with pytest.raises(TooLargeError) as caught:
        check("huge", Size(100_000, 5_000_000, 1_000_000))
    assert str(caught.value) == (
        "huge: 100,000 nodes, 5,000,000 pods there and 1,000,000 to come need about 4,384 MB, "
        "but 1,024 MB are free"
    )


def test_where_nobody_says_how_much_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: None)
    check("huge", Size(10**8, 10**8, 10**8))


def test_this_machine_says() -> None:
    left = available()
    assert left is None or 0 <= left < 1 << 50
    assert estimate(Size(10, 0, 10)) < estimate(Size(10, 1, 10)) < estimate(Size(11, 1, 10))
