"""Lines of JSON answered with lines of JSON; what is wrong with a line is an answer too. Knows no kinds of questions."""

from collections.abc import Callable
from typing import Any

import msgspec

from berth.errors import BerthError

Answer = Callable[[bytes], dict[str, Any]]


def answer_line(line: bytes, answer: Answer) -> bytes:
    """Answer a line with another (without its end), ``{"id": …, "error": …}`` where that can't be done."""
    try:
        answered = answer(line)
    except RecursionError:
        answered = {"id": _id_of(line), "error": "nested too deeply"}
    except (BerthError, msgspec.DecodeError) as error:
        answered = {"id": _id_of(line), "error": str(error)}
    return msgspec.json.encode(answered)


def _id_of(line: bytes) -> object:
    """Return the id that a broken line still tells, None if it tells none."""
    try:
        plain = msgspec.json.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return None
    return plain.get("id") if isinstance(plain, dict) else None
