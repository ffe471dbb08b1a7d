"""From JSON bytes to structs. A ``null`` counts as absent, as it does in Kubernetes."""

import hashlib
from typing import Any, TypeVar

import msgspec

from berth.objects.workloads import Deployment, ReplicaSet

HASH_LABEL = "pod-template-hash"
"""The label by which a Deployment tells its ReplicaSets' pods apart."""

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
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    decoded: T
    try:
        decoded = decoder.decode(data)
    except msgspec.ValidationError:
        # Nulls are rare, and fields declared optional one by one would burden every reader: drop them and try again.
        decoded = decoder.decode(msgspec.json.encode(without_nulls(msgspec.json.decode(data))))
    if isinstance(decoded, Deployment | ReplicaSet) and not decoded.spec.template_digest:
        spec = msgspec.structs.replace(decoded.spec, template_digest=_template_digest(data))
        return msgspec.structs.replace(decoded, spec=spec)
    return decoded


class _TemplateSpec(msgspec.Struct):
    template: dict[str, Any] | None = None


class _WithTemplate(msgspec.Struct):
    spec: _TemplateSpec


def _template_digest(data: bytes | msgspec.Raw) -> str:
    try:
        template: Any = without_nulls(msgspec.json.decode(data, type=_WithTemplate).spec.template or {})
    except msgspec.ValidationError:
        return ""
    labels = template.get("metadata", {}).get("labels", {})
    labels.pop(HASH_LABEL, None)
    return hashlib.blake2b(msgspec.json.encode(template, order="sorted"), digest_size=16).hexdigest()


def without_nulls(value: object) -> object:
    """Return JSON-like data with every key whose value is null left out."""
    if isinstance(value, dict):
        return {key: without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [without_nulls(item) for item in value if item is not None]
    return value
