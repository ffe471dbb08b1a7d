"""What the module is asked for: a ``podList``, checked entry by entry, all mistakes at once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from berth.errors import BerthError

Operation = Literal["add", "remove"]
OPERATIONS: dict[int, Operation] = {1: "add", 2: "remove"}
MAX_NUMBER = 10_000

_KEYS = ("operation", "namespace", "serviceName", "number", "workload", "force")
_NUMBER = re.compile(r"[1-9][0-9]{0,17}", re.ASCII)
_SHORT_KINDS = {
    "deploy": "deployment",
    "rs": "replicaset",
    "sts": "statefulset",
    "rc": "replicationcontroller",
}
WORKLOAD_KINDS = {
    "deployment": "Deployment",
    "replicaset": "ReplicaSet",
    "statefulset": "StatefulSet",
    "replicationcontroller": "ReplicationController",
}


@dataclass(frozen=True, slots=True)
class WorkloadName:
    """A workload within the service's namespace; ``kind`` as Kubernetes spells it (``Deployment``)."""

    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind.lower()}/{self.name}"


@dataclass(frozen=True, slots=True)
class Change:
    """So many pods of a service to add or to remove.

    Attributes
    ----------
    request : str
        The id of the request that it came with.
    force : bool
        Also where something else sets the workload's replicas (a HorizontalPodAutoscaler).
    """

    request: str
    operation: Operation
    namespace: str
    service: str
    number: int
    workload: WorkloadName | None = None
    force: bool = False


@dataclass(frozen=True, slots=True)
class FieldError:
    """One mistake: where, what was found there, and what was expected."""

    path: str
    value: object
    expected: str

    def __str__(self) -> str:
        return f"{self.path}: {self.value!r} is not {self.expected}"


class BadRequestError(BerthError, ValueError):
    """A ``podList`` with mistakes; nothing of it is queued."""

    def __init__(self, errors: list[FieldError]) -> None:
        self.errors = errors
        super().__init__("; ".join(map(str, errors)))


def parse_pod_list(body: object, request: str = "", max_number: int = MAX_NUMBER) -> list[Change]:
    """Check a decoded request body and return its changes.

    Raises
    ------
    BadRequestError
        With every mistake that was found.
    """
    changes, errors = read_pod_list(body, request, max_number)
    if errors:
        raise BadRequestError(errors)
    return [change for change in changes if change is not None]


def read_pod_list(
    body: object, request: str = "", max_number: int = MAX_NUMBER
) -> tuple[list[Change | None], list[FieldError]]:
    """Read a decoded request body: its entries in their places, None for those with mistakes, and all mistakes."""
    errors: list[FieldError] = []
    if not isinstance(body, Mapping):
        return [], [FieldError("", body, "an object with podList")]
    errors += [FieldError(str(key), body[key], "a known key (podList)") for key in body if key != "podList"]
    entries = body.get("podList")
    if not isinstance(entries, list) or not entries:
        errors.append(FieldError("podList", entries, "a list of at least one change"))
        return [], errors
    changes = [
        _parse_entry(entry, f"podList[{i}]", request, max_number, errors) for i, entry in enumerate(entries)
    ]
    return changes, errors


def parse_workload(text: object) -> WorkloadName | None:
    """Read ``deployment/web``, kubectl's short kinds included; None if it is no such thing."""
    if not isinstance(text, str):
        return None
    kind, slash, name = text.partition("/")
    kind = _SHORT_KINDS.get(kind.lower(), kind.lower())
    if not slash or not name or "/" in name or kind not in WORKLOAD_KINDS:
        return None
    return WorkloadName(WORKLOAD_KINDS[kind], name)


def parse_number(value: object, max_number: int = MAX_NUMBER) -> int | None:
    """Read how many pods: an integer, or its digits as text; None if it is neither or out of range."""
    if isinstance(value, str):
        number = int(value) if _NUMBER.fullmatch(value) else 0
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    else:
        return None
    return number if 1 <= number <= max_number else None


def _parse_entry(
    entry: object, path: str, request: str, max_number: int, errors: list[FieldError]
) -> Change | None:
    if not isinstance(entry, Mapping):
        errors.append(FieldError(path, entry, "an object"))
        return None
    n_before = len(errors)
    for key in entry:
        if key not in _KEYS:
            errors.append(FieldError(f"{path}.{key}", entry[key], f"a known key ({', '.join(_KEYS)})"))
    code = entry.get("operation")
    operation = OPERATIONS.get(code) if isinstance(code, int) and not isinstance(code, bool) else None
    if operation is None:
        errors.append(FieldError(f"{path}.operation", code, "1 (add) or 2 (remove)"))
    names = [_text(entry, path, key, errors) for key in ("namespace", "serviceName")]
    number = parse_number(entry.get("number"), max_number)
    if number is None:
        expected = f'a whole number from 1 to {max_number}, such as "3"'
        errors.append(FieldError(f"{path}.number", entry.get("number"), expected))
    workload = parse_workload(entry["workload"]) if "workload" in entry else None
    if "workload" in entry and workload is None:
        kinds = ", ".join(WORKLOAD_KINDS)
        errors.append(FieldError(f"{path}.workload", entry["workload"], f"KIND/NAME with a kind of {kinds}"))
    force = entry.get("force", False)
    if not isinstance(force, bool):
        errors.append(FieldError(f"{path}.force", force, "true or false"))
    if len(errors) > n_before or operation is None or number is None:
        return None
    return Change(request, operation, names[0], names[1], number, workload, force is True)


def _text(entry: Mapping[str, object], path: str, key: str, errors: list[FieldError]) -> str:
    value = entry.get(key)
    if isinstance(value, str) and value:
        return value
    errors.append(FieldError(f"{path}.{key}", value, "a name"))
    return ""
