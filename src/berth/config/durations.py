"""Durations as Go and Kubernetes write them: ``15m``, ``1h30m``, ``500ms``. Exact."""

import re
from datetime import timedelta
from fractions import Fraction

_PART = re.compile(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)
_FORM = re.compile(rf"(?:{_PART.pattern})+")
_MICROSECONDS = {
    "ns": Fraction(1, 1000),
    "us": Fraction(1),
    "µs": Fraction(1),  # micro sign
    "μs": Fraction(1),  # Greek mu, which Go takes too
    "ms": Fraction(1_000),
    "s": Fraction(1_000_000),
    "m": Fraction(60_000_000),
    "h": Fraction(3_600_000_000),
}
# Go's own limit: an int64 of nanoseconds, about 292 years.
_LIMIT = Fraction(2**63 - 1, 1000)


def parse_duration(text: str) -> timedelta:
    """The duration that ``text`` says; ``ValueError`` where it is none.

    Takes what Go's ``time.ParseDuration`` takes, but for signs and for fractions of a microsecond.
    """
    if text == "0":
        return timedelta(0)
    if _FORM.fullmatch(text) is None:
        raise ValueError(f"{text!r} is not a duration such as 15m")
    total = sum(
        (Fraction(number) * _MICROSECONDS[unit] for number, unit in _PART.findall(text)), start=Fraction(0)
    )
    if total > _LIMIT or total.denominator != 1:
        raise ValueError(f"{text!r} is not a duration such as 15m")
    return timedelta(microseconds=int(total))


def format_duration(duration: timedelta) -> str:
    """The shortest text in whole units that ``parse_duration`` reads back: ``1h30m``, ``500ms``, ``0s``."""
    rest = duration // timedelta(microseconds=1)
    text = ""
    for unit in ("h", "m", "s", "ms", "us"):
        count, rest = divmod(rest, int(_MICROSECONDS[unit]))
        text += f"{count}{unit}" if count else ""
    return text or "0s"
