"""Names, uids, chances and times that are the same in every run.

Everything hangs on a hash of what it is for, not on a random generator: a change to one workload leaves the
others' names alone, and no Python release can change the bytes.
"""

import hashlib
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

Json = dict[str, Any]

# When the snapshot was "taken"; object times count back from here.
TAKEN = datetime(2025, 9, 1, 12, 0, tzinfo=UTC)
HOUR = 60
DAY = 24 * HOUR
# What Kubernetes makes suffixes of: no vowels, and no digits that look like one.
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def digest(*parts: object) -> bytes:
    return hashlib.sha256("/".join(map(str, parts)).encode()).digest()


def uid(*parts: object) -> str:
    return str(uuid.UUID(bytes=digest("uid", *parts)[:16], version=4))


def suffix(length: int, *parts: object) -> str:
    return "".join(ALPHABET[byte % len(ALPHABET)] for byte in digest("suffix", *parts)[:length])


def chance(*parts: object) -> float:
    """A number in [0, 1) that looks random."""
    return int.from_bytes(digest("chance", *parts)[:4], "big") / 2**32


def ago(minutes: float) -> str:
    """The RFC 3339 time so many minutes before the snapshot was taken."""
    return (TAKEN - timedelta(seconds=round(minutes * 60))).strftime("%Y-%m-%dT%H:%M:%SZ")


def metadata(kind: str, name: str, namespace: str = "", *, age: float = 90 * DAY, **more: Any) -> Json:
    """Object metadata; ``more`` are further fields such as labels. The age is in minutes."""
    made: Json = {"creationTimestamp": ago(age), "name": name}
    if namespace:
        made["namespace"] = namespace
    version = int.from_bytes(digest("version", kind, namespace, name)[:4], "big") % 90_000_000 + 10_000_000
    made |= {"resourceVersion": str(version), "uid": uid(kind, namespace, name)}
    return made | {key: value for key, value in more.items() if value}


def owned_by(api_version: str, owner: Json) -> list[Json]:
    return [
        {
            "apiVersion": api_version,
            "blockOwnerDeletion": True,
            "controller": True,
            "kind": owner["kind"],
            "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"],
        }
    ]
