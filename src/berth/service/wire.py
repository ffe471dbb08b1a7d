"""The body of ``POST /schedulePod`` and its answers: read, checked, written. Knows nothing of HTTP."""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

from berth.cluster.cluster import Cluster
from berth.errors import BerthError, NotFoundError
from berth.module.changes import Change, FieldError, read_pod_list
from berth.module.services import ServiceError, check_change

MAX_SHOWN_ERRORS = 1000
_SHOWN_LENGTH = 200
_EXACT_INTEGERS = 2**53  # up to which every JSON reader agrees


class BodyError(BerthError):
    """The body is no JSON text."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why nothing of a list is queued.

    Attributes
    ----------
    missing : bool
        All that is wrong is that something named is not there.
    """

    errors: list[FieldError]
    message: str
    missing: bool = False


@dataclass(frozen=True, slots=True)
class Checked:
    """A body that was read: its changes, or why there are none."""

    changes: Sequence[Change]
    refusal: Refusal | None = None


def read_json(body: bytes) -> object:
    """Decode a JSON text.

    Raises
    ------
    BodyError
        It is none.
    """
    try:
        return json.loads(body.decode(), parse_constant=_no_constant)
    except UnicodeDecodeError as error:
        raise BodyError(f"the body is not UTF-8: byte {error.start}") from None
    except RecursionError:
        raise BodyError("the body is nested too deeply") from None
    except json.JSONDecodeError as error:
        where = f"line {error.lineno}, column {error.colno}"
        raise BodyError(f"the body is not JSON: {error.msg}, {where}") from None
    except ValueError as error:  # a number with thousands of digits, or NaN
        raise BodyError(f"the body is not JSON: {error}") from None


def check_body(body: bytes, cluster: Cluster, request: str, max_number: int) -> Checked:
    """Read a body and check all its entries, against the cluster too."""
    try:
        decoded = read_json(body)
    except BodyError as error:
        found = body[:_SHOWN_LENGTH].decode(errors="replace")
        return Checked((), Refusal([FieldError("", found, "a JSON object with podList")], str(error)))
    changes, errors = read_pod_list(decoded, request, max_number)
    missing = not errors
    for i, change in enumerate(changes):
        wrong = None if change is None else _not_there(cluster, change, f"podList[{i}]")
        if wrong is not None:
            errors.append(wrong[0])
            missing &= wrong[1]
    if not errors:
        return Checked([change for change in changes if change is not None])
    return Checked((), Refusal(errors, _message(errors), missing))


def errors_as_json(errors: Sequence[FieldError]) -> list[dict[str, object]]:
    """Return mistakes as they are answered: a value that is long or odd is told in short."""
    return [
        {"path": error.path, "value": shown(error.value), "expected": error.expected}
        for error in errors[:MAX_SHOWN_ERRORS]
    ]


def as_json(value: object) -> bytes:
    """Encode an answer; text that is no Unicode (lone surrogates) is escaped like all that is not ASCII."""
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def shown(value: object) -> object:
    """Return a client's value such that every JSON reader can take it, cut where it is long."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        return value if abs(value) <= _EXACT_INTEGERS else _cut(str(value))
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, str):
        return _cut(value)
    try:
        text = json.dumps(value, allow_nan=False)
    except (ValueError, RecursionError):
        return "…"
    return value if len(text) <= _SHOWN_LENGTH else _cut(text)


def _not_there(cluster: Cluster, change: Change, path: str) -> tuple[FieldError, bool] | None:
    """Tell what is wrong with the names of a change, and whether it is that something is not there."""
    service = cluster.objects.services.get(change.namespace, change.service)
    try:
        check_change(cluster, change)
    except NotFoundError as error:
        if service is None:
            expected = f"a service in namespace {_cut(change.namespace)}"
            return FieldError(f"{path}.serviceName", change.service, expected), True
        return FieldError(f"{path}.workload", str(change.workload), f"a workload: {error}"), True
    except ServiceError as error:
        if service is not None and service.spec.selector:
            expected = f"a workload that the service selects: {error}"
            return FieldError(f"{path}.workload", str(change.workload), expected), False
        expected = f"a service with a selector: {error}"
        return FieldError(f"{path}.serviceName", change.service, expected), False
    return None


def _message(errors: Sequence[FieldError]) -> str:
    first = errors[0]
    place = first.path or "the body"
    text = f"{place}: {json.dumps(shown(first.value))} is not {first.expected}"
    return text if len(errors) == 1 else f"{text} (and {len(errors) - 1} more)"


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN_LENGTH else f"{text[:_SHOWN_LENGTH]}…"


def _no_constant(name: str) -> object:
    raise ValueError(f"{name} is no JSON value")
