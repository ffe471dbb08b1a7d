import itertools
from datetime import datetime

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.objects.times import epoch_microseconds


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("null", 0),
        ('"1970-01-01T00:00:00Z"', 0),
        ('"2024-02-29T12:00:00.000001Z"', 1_709_208_000_000_001),
        ('"2024-02-29T14:00:00+02:00"', 1_709_208_000_000_000),
        ('"0001-01-01T00:00:00Z"', -62_135_596_800_000_000),
    ],
)
def test_timestamps_of_the_api(text: str, expected: int) -> None:
    assert epoch_microseconds(msgspec.json.decode(text, type=datetime | None)) == expected


@given(st.lists(st.datetimes(timezones=st.timezones()), max_size=5))
def test_order_is_that_of_time(times: list[datetime]) -> None:
    by_micros = sorted(times, key=epoch_microseconds)
    assert all(not later < earlier for earlier, later in itertools.pairwise(by_micros))


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(TypeError):
        epoch_microseconds(datetime(2024, 1, 1))
