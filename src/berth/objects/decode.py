"""From JSON bytes to structs. A ``null`` counts as absent, as it does in Kubernetes."""

from typing import Any, TypeVar

import msgspec

T = TypeVar("T")


_decoders: dict[object, msgspec.json.Decoder[Any]] = {}


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
        decoder = _decoders.get(kind)
        if decoder is None:
            decoder = _decoders[kind] = msgspec.json.Decoder(kind)
        decoded: T = decoder.decode(data)
        return decoded
    except msgspec.ValidationError:
        # Nulls are rare, and fields declared optional one by one would burden every reader: drop them and try again.
        plain = msgspec.json.decode(data)
        return msgspec.convert(without_nulls(plain), kind)


def without_nulls(value: object) -> object:
    """Return JSON-like data with every key whose value is null left out."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value if item is not None]
    return value
