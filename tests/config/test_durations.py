"""Durations against Go's rules."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.config.durations import format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "microseconds"),
    [
        ("15m", 900_000_000),
        ("1h30m", 5_400_000_000),
        ("500ms", 500_000),
        ("1s", 1_000_000),
        ("0", 0),
        ("0s", 0),
        ("1.5h", 5_400_000_000),
        (".5s", 500_000),
        ("1.s", 1_000_000),
        ("0.1s", 100_000),
        ("3us", 3),
        ("3µs", 3),
        ("3μs", 3),
        ("2000ns", 2),
        ("1m1m", 120_000_000),
    ],
)
def test_reads_what_go_reads(text: str, microseconds: int) -> None:
    assert parse_duration(text) == timedelta(microseconds=microseconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "15",
        "m",
        ".s",
        "-5m",
        "+5m",
        "5 m",
        " 5m",
        "5m ",
        "5M",
        "1d",
        "1ns",
        "\u0661s",
        "1e3s",
        "2562048h",
    ],
)
def test_refuses_the_rest(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        parse_duration(text)


@given(st.timedeltas(min_value=timedelta(0), max_value=timedelta(days=36500)))
def test_what_is_written_is_read_back(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration


def test_writes_the_shortest_form() -> None:
    assert format_duration(timedelta(minutes=90)) == "1h30m"
    assert format_duration(timedelta(milliseconds=1500)) == "1s500ms"
    assert format_duration(timedelta(0)) == "0s"
