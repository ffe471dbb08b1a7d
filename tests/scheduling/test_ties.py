import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.scheduling.ties import TieBreaker

RANK = np.array([3, 0, 2, 1])  # rows 1, 3, 2, 0 in the order of names


def taken(ties: TieBreaker, *rows: int, n: int = 1) -> list[int]:
    return [ties.take(np.array(rows, dtype=np.intp), RANK) for _ in range(n)]


def test_round_robin_goes_on_from_decision_to_decision() -> None:
    ties = TieBreaker()
    assert taken(ties, 0, 1, 2, n=4) == [1, 2, 0, 1]
    assert taken(ties, 3) == [3]  # a single node counts as well
    assert ties.counter == 5
    assert taken(ties, 0, 1, n=2) == [0, 1]


def test_by_name() -> None:
    ties = TieBreaker("name")
    assert taken(ties, 0, 2, 3, n=2) == [3, 3]
    assert ties.counter == 2


def test_random_hangs_on_seed_and_counter_alone() -> None:
    choices = taken(TieBreaker("random", seed=3), 0, 1, 2, 3, n=40)
    assert set(choices) == {0, 1, 2, 3}
    assert taken(TieBreaker("random", seed=3), 0, 1, 2, 3, n=40) == choices
    assert taken(TieBreaker("random", seed=4), 0, 1, 2, 3, n=40) != choices
    assert taken(TieBreaker("random", seed=3, counter=30), 0, 1, 2, 3, n=10) == choices[30:]


@pytest.mark.parametrize("rule", ["round-robin", "name"])
@given(st.permutations(range(4)), st.integers(1, 4), st.integers(0, 50))
def test_rows_are_counted_in_the_order_of_names(rule: str, ranks: list[int], n: int, counter: int) -> None:
    rank, tied = np.array(ranks), np.arange(n)
    ties = TieBreaker("name" if rule == "name" else "round-robin", counter=counter)
    by_name = sorted(range(n), key=ranks.__getitem__)
    assert ties.take(tied, rank) == by_name[0 if rule == "name" else counter % n]
    assert ties.counter == counter + 1
