"""The fields of a row, checked one by one: names, times, amounts. All mistakes of a row are noted."""

import math
import re
from collections.abc import Callable
from datetime import datetime
from decimal import Decimal
from difflib import get_close_matches
from functools import lru_cache

from berth.module.loads import ServiceName, time_us
from berth.objects.quantities import QuantityError, milli_value, value
from berth.sources.mistakes import Mistakes
from berth.sources.rows import Row

# A space for the T is RFC 3339 too, and what data frames write.
_RFC_3339 = re.compile(
    r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(?:\.\d+)?(?:[Zz]|[+-](?:[01]\d|2[0-3]):[0-5]\d)", re.ASCII
)
_A_TIME = "a time with a zone, such as 2026-03-01T12:00:00Z"
_NOT_FINITE = re.compile(r"[+-]?(?:nan|inf|infinity)", re.IGNORECASE)


class Fields:
    """One row's fields; a method returns ``None`` where the field is absent or wrong, and notes what is."""

    def __init__(self, row: Row, mistakes: Mistakes) -> None:
        self._place, self._values = row
        self._mistakes = mistakes

    def wrong(self, field: str, expected: str) -> None:
        """Note a mistake of one field, or of the row where ``field`` is empty."""
        self._mistakes.add(self._place, field, self._values.get(field), expected)

    def only(self, known: tuple[str, ...]) -> None:
        """Note the fields that are not known, each with the nearest that is."""
        for field in self._values:
            if field not in known:
                near = get_close_matches(field.lower(), known, n=1)
                hint = f"; did you mean {near[0]}?" if near else ""
                self._mistakes.add(self._place, field, None, f"one of the fields {', '.join(known)}{hint}")

    def has(self, field: str) -> bool:
        """Whether the row has the field."""
        return self._values.get(field) is not None

    def text(self, field: str) -> str | None:
        """A name."""
        found = self._required(field, "a name")
        if isinstance(found, str) and found:
            return found
        if found is not None:
            self.wrong(field, "a name")
        return None

    def service(self) -> ServiceName | None:
        """``namespace`` and ``service`` together."""
        namespace, service = self.text("namespace"), self.text("service")
        return ServiceName(namespace, service) if namespace and service else None

    def time_us(self, field: str) -> int | None:
        """A time, in microseconds since 1970."""
        found = self._required(field, _A_TIME)
        time = _time(found) if isinstance(found, str) else None
        if time is None and found is not None:
            self.wrong(field, _A_TIME)
        return time

    def load_milli_cpu(self) -> float | None:
        """``cpu`` in milli cores; a gap is NaN, which counts for nothing, like a negative load."""
        return self._load("cpu", "cores, such as 0.25 or 250m", 3, milli_value)

    def load_memory_bytes(self) -> float | None:
        """``memory`` in bytes; a gap is NaN, as for ``cpu``."""
        return self._load("memory", "bytes, such as 1048576 or 1Mi", 0, value)

    def whole_milli_cpu(self) -> int | None:
        """``cpu`` in milli cores, if it is there, rounded up as Kubernetes does."""
        return self._amount("cpu", "cores, 0 or more, such as 0.25 or 250m", milli_value)

    def whole_memory_bytes(self) -> int | None:
        """``memory`` in bytes, if it is there, rounded up as Kubernetes does."""
        return self._amount("memory", "bytes, 0 or more, such as 1048576 or 1Mi", value)

    def _required(self, field: str, expected: str) -> object:
        found = self._values.get(field)
        if found is None:
            self._mistakes.add(self._place, field, None, f"{expected}, but it is missing")
        return found

    def _load(self, field: str, expected: str, exponent: int, parse: Callable[[str], int]) -> float | None:
        if field in self._values and self._values[field] is None:
            return math.nan  # data frames write NaN as null or as an empty cell
        found = self._required(field, expected)
        number = _number(found)
        if number is not None:
            # Decimal, for 1.001 cores are 1001 milli, and 1.001 * 1000 is not 1001 in floats.
            return float(number.scaleb(exponent)) if number.is_finite() else float(number)
        try:
            if isinstance(found, str):
                return float(parse(found))
        except (QuantityError, OverflowError):
            pass
        if found is not None:
            self.wrong(field, expected)
        return None

    def _amount(self, field: str, expected: str, parse: Callable[[str], int]) -> int | None:
        found = self._values.get(field)
        number = _number(found)
        text = format(number, "f") if number is not None and abs(number.adjusted()) < 40 else found
        try:
            amount = parse(text) if isinstance(text, str) else -1
        except QuantityError:
            amount = -1
        if amount >= 0:
            return amount
        if found is not None:
            self.wrong(field, expected)
        return None


def _number(found: object) -> Decimal | None:
    """A number, or a text that is nothing but one, as it was written; ``None`` for all else."""
    if isinstance(found, bool):
        return None
    if isinstance(found, int | float):
        return Decimal(repr(found))
    if not isinstance(found, str) or not found.isascii() or "_" in found:
        return None
    if _NOT_FINITE.fullmatch(found):
        return Decimal(found)
    try:
        return Decimal(found) if math.isfinite(float(found)) else None
    except ValueError:
        return None


@lru_cache(maxsize=4096)
def _time(text: str) -> int | None:
    if _RFC_3339.fullmatch(text) is None:
        return None
    try:
        return time_us(datetime.fromisoformat(text.upper()))
    except ValueError:
        return None
