"""Timestamps as integers to sort by. Their text is read by msgspec's own ``datetime`` decoding."""

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def epoch_microseconds(when: datetime | None) -> int:
    """Return the microseconds since 1970, exactly; 0 for a time that is not set.

    Parameters
    ----------
    when : datetime or None
        With a time zone, as in every timestamp of the API.

    Raises
    ------
    TypeError
        If ``when`` has no time zone.
    """
    return 0 if when is None else (when - _EPOCH) // _MICROSECOND
