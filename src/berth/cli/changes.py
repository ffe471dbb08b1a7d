"""What is asked for on the command line: ``--add shop/web=3``, ``--remove …``, ``--requests FILE``; all checked."""

import json
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path

from berth.cli.errors import Mistakes
from berth.cluster.cluster import Cluster
from berth.errors import BerthError, NotFoundError
from berth.module.changes import (
    BadRequestError,
    Change,
    Operation,
    parse_number,
    parse_pod_list,
    parse_workload,
)
from berth.module.services import check_change

CHANGE_FORM = "NAMESPACE/SERVICE[@KIND/NAME]=NUMBER, such as shop/web=3"
_N_NEAR = 3


@dataclass(frozen=True, slots=True)
class Asked:
    """A change, and where it was asked for: ``--add shop/web=3``, ``requests.json: podList[0]``."""

    place: str
    change: Change


class ChangeTextError(BerthError, ValueError):
    """A change on the command line that can't be read."""

    def __init__(self, flag: str, text: str, expected: str) -> None:
        super().__init__(f"{flag} {text}: expected {expected}")


def parse_change(operation: Operation, text: str, max_number: int) -> Asked:
    """Read ``shop/web=3`` or ``shop/web@deployment/web=3``.

    Raises
    ------
    ChangeTextError
        It is no such thing.
    """
    flag = f"--{operation}"
    names, equals, digits = text.rpartition("=")
    service_name, at, workload_text = names.partition("@")
    namespace, _, service = service_name.partition("/")
    if not equals or not namespace or not service or "/" in service:
        raise ChangeTextError(flag, text, CHANGE_FORM)
    number = parse_number(digits, max_number)
    if number is None:
        raise ChangeTextError(flag, text, f"a whole number from 1 to {max_number} after the =")
    workload = parse_workload(workload_text) if at else None
    if at and workload is None:
        raise ChangeTextError(flag, text, "a workload such as deployment/web after the @")
    return Asked(f"{flag} {text}", Change("", operation, namespace, service, number, workload))


def read_requests(path: Path, max_number: int) -> list[Asked]:
    """Read a file with the body of a request, ``{"podList": [...]}``; ``-`` is standard input.

    Raises
    ------
    BerthError
        With all that is wrong with it.
    """
    try:
        data = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
        body = json.loads(data)
    except OSError as error:
        raise BerthError(f"{path}: can't be read: {error.strerror}") from None
    except json.JSONDecodeError as error:
        raise BerthError(f"{path}, line {error.lineno}: no JSON: {error.msg}") from None
    except (ValueError, RecursionError):
        raise BerthError(f"{path}: no JSON") from None
    try:
        changes = parse_pod_list(body, max_number=max_number)
    except BadRequestError as error:
        raise BerthError("\n".join(f"{path}: {mistake}" for mistake in error.errors)) from None
    return [Asked(f"{path}: podList[{index}]", change) for index, change in enumerate(changes)]


def numbered(asked: Sequence[Asked]) -> list[Asked]:
    """Give each change a request id of its own: r-01, r-02, …"""
    return [replace(one, change=replace(one.change, request=f"r-{i:02}")) for i, one in enumerate(asked, 1)]


def check_all(cluster: Cluster, asked: Iterable[Asked], mistakes: Mistakes) -> None:
    """Check that all services and workloads are there; note those that are not, with names that come near."""
    for one in asked:
        try:
            check_change(cluster, one.change)
        except NotFoundError as error:
            mistakes.lines.append(f"{one.place}: {error}{_hint(cluster, one.change)}")
        except BerthError as error:
            mistakes.lines.append(f"{one.place}: {error}")


def _hint(cluster: Cluster, change: Change) -> str:
    services = [f"{s.metadata.namespace}/{s.metadata.name}" for s in cluster.objects.services.all()]
    name = f"{change.namespace}/{change.service}"
    if name in services:
        near = [text for text in _workloads(cluster, change) if change.workload]
    else:
        elsewhere = [service for service in services if service.partition("/")[2] == change.service]
        near = [*elsewhere, *get_close_matches(name, services, n=_N_NEAR)]
    near = list(dict.fromkeys(near))[:_N_NEAR]
    return f"; did you mean {' or '.join(near)}?" if near else ""


def _workloads(cluster: Cluster, change: Change) -> list[str]:
    shelves = cluster.objects.by_kind()
    kinds = ("Deployment", "ReplicaSet", "StatefulSet", "ReplicationController")
    names = [f"{k.lower()}/{w.metadata.name}" for k in kinds for w in shelves[k].within(change.namespace)]
    return get_close_matches(str(change.workload), names, n=_N_NEAR)
