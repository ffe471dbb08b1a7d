"""What Berth has to be allowed to do on an API server, and what of it it is not."""

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from berth.errors import BerthError
from berth.live.client import ApiClient
from berth.live.resources import RESOURCES

_PATH = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"


class RightsMissingError(BerthError):
    """Not all that is needed is allowed; a line for each kind."""


@dataclass(frozen=True, slots=True)
class Right:
    """A verb on a resource such as ``pods/binding``; the empty group is the core one."""

    verb: str
    group: str
    resource: str


def scheduler_rights() -> tuple[Right, ...]:
    """Return all that a live scheduler needs."""
    found = []
    for resource in RESOURCES.values():
        _, _, rest = resource.path.partition("/")
        parts = rest.split("/")
        group = parts[1] if parts[0] == "apis" else ""
        found += [Right(verb, group, parts[-1]) for verb in ("list", "watch")]
    found += [
        Right("get", "", "pods"),
        Right("delete", "", "pods"),
        Right("create", "", "pods/binding"),
        Right("patch", "", "pods/status"),
        Right("get", "", "persistentvolumes"),
        Right("patch", "", "persistentvolumes"),
        Right("get", "", "persistentvolumeclaims"),
        Right("patch", "", "persistentvolumeclaims"),
        Right("create", "events.k8s.io", "events"),
        Right("patch", "events.k8s.io", "events"),
    ]
    return tuple(found)


class _Status(msgspec.Struct):
    allowed: bool = False


class _Review(msgspec.Struct):
    status: _Status = msgspec.field(default_factory=_Status)


async def missing_rights(client: ApiClient, rights: Iterable[Right]) -> list[Right]:
    """Return those of the rights that we don't have, over all namespaces.

    Raises
    ------
    berth.live.api_errors.ApiError, berth.live.api_errors.ConnectionLostError
        The API server doesn't say.
    """

    async def is_allowed(right: Right) -> bool:
        resource, _, subresource = right.resource.partition("/")
        wanted = {"verb": right.verb, "group": right.group, "resource": resource, "subresource": subresource}
        answer = await client.post(_PATH, {"spec": {"resourceAttributes": wanted}})
        return msgspec.json.decode(answer, type=_Review).status.allowed

    asked = tuple(rights)
    allowed = await asyncio.gather(*map(is_allowed, asked))
    return [right for right, is_ours in zip(asked, allowed, strict=True) if not is_ours]


def in_words(missing: Iterable[Right]) -> str:
    """Return missing rights, a line for each resource: what an RBAC role has to allow."""
    verbs: dict[tuple[str, str], list[str]] = {}
    for right in missing:
        verbs.setdefault((right.group, right.resource), []).append(right.verb)
    lines = [
        f"may not {', '.join(names)} {resource}" + (f" ({group})" if group else "")
        for (group, resource), names in verbs.items()
    ]
    return "\n".join(["rights are missing, over all namespaces:", *lines])
