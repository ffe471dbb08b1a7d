"""From JSON bytes to structs. A ``null`` counts as absent, as it does in Kubernetes."""

from functools import cache
from typing import Any, TypeVar, cast

import msgspec

T = TypeVar("T")


@cache
def _decoder(kind: type[Any]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(kind)


def decode(data: bytes | msgspec.Raw, kind: type[T]) -> T:
    """Decode one object.

    Raises
    ------
    msgspec.ValidationError
        A field has the wrong type; the message ends in its path.
    msgspec.DecodeError
        The bytes are no JSON.
    """
    try:
        return cast(T, _decoder(kind).decode(data))
    except msgspec.ValidationError:
        # Nulls are rare, and fields declared optional one by one would burden every reader: drop them and try again.
        plain = msgspec.json.decode(data)
        return cast(T, msgspec.convert(without_nulls(plain), kind))


def without_nulls(value: object) -> object:
    """Return JSON-like data with every key whose value is null left out."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value if item is not None]
    return value
