"""Extenders of a Policy or a KubeSchedulerConfiguration: read and checked. Knows nothing of calling them."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from berth.config.document import At

_FIELDS = (
    "urlPrefix", "filterVerb", "preemptVerb", "prioritizeVerb", "weight", "bindVerb", "enableHTTPS", "tlsConfig",
    "httpTimeout", "nodeCacheCapable", "managedResources", "ignorable",
)  # fmt: skip
_TLS_FIELDS = ("insecure", "serverName", "certFile", "keyFile", "caFile", "certData", "keyData", "caData")
_LARGEST = 2**63 - 1
_EXTENDED_RESOURCE = re.compile(
    r"(?=[^/]{1,253}/)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"
    r"/(?=.{1,63}\Z)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
)


@dataclass(frozen=True, slots=True)
class Extender:
    """A service that kube-scheduler asks over HTTP; a verb that is empty is not asked for."""

    url_prefix: str
    filter_verb: str
    preempt_verb: str
    prioritize_verb: str
    bind_verb: str
    weight: int
    node_cache_capable: bool
    ignorable: bool
    managed_resources: tuple[str, ...]


def read_extenders(at: At) -> tuple[Extender, ...]:
    """Read all extenders; note every mistake."""
    seen: set[str] = set()
    extenders = tuple(_extender(item, seen) for item in at.items("extenders"))
    n_binders = sum(bool(extender.bind_verb) for extender in extenders)
    if n_binders > 1:
        at.wrong(f"only one extender with a bindVerb; there are {n_binders}")
    return extenders


def extender_notes(extenders: Iterable[Extender]) -> list[str]:
    """Say that extenders are not asked."""
    urls = ", ".join(extender.url_prefix or "(without urlPrefix)" for extender in extenders)
    return [f"extenders are not available yet and are not asked: {urls}"] if urls else []


def is_extended_resource(name: str) -> bool:
    """Tell whether a name is one of an extended resource, ``example.com/gpu``."""
    return (
        _EXTENDED_RESOURCE.fullmatch(name) is not None
        and "kubernetes.io/" not in name
        and not name.startswith("requests.")
    )


def _extender(at: At, seen: set[str]) -> Extender:
    fields = at.fields(_FIELDS, "field of an extender", any_case=True)
    prioritize = fields["prioritizeVerb"].text()
    low = 1 if prioritize else -_LARGEST
    weight = fields["weight"].integer(0, low, _LARGEST, "a positive weight")
    if prioritize and not fields["weight"].given:
        fields["weight"].wrong("a positive weight, as there is a prioritizeVerb", show=False)
    fields["tlsConfig"].fields(_TLS_FIELDS, "field of tlsConfig", any_case=True)
    fields["enableHTTPS"].boolean()
    return Extender(
        url_prefix=fields["urlPrefix"].text(),
        filter_verb=fields["filterVerb"].text(),
        preempt_verb=fields["preemptVerb"].text(),
        prioritize_verb=prioritize,
        bind_verb=fields["bindVerb"].text(),
        weight=weight,
        node_cache_capable=fields["nodeCacheCapable"].boolean(),
        ignorable=fields["ignorable"].boolean(),
        managed_resources=tuple(
            _resource(item, seen) for item in fields["managedResources"].items("resources")
        ),
    )


def _resource(at: At, seen: set[str]) -> str:
    fields = at.fields(("name", "ignoredByScheduler"), "field of a managed resource", any_case=True)
    fields["ignoredByScheduler"].boolean()
    name = fields["name"].text("an extended resource such as example.com/gpu", required=True)
    if name and not is_extended_resource(name):
        fields["name"].wrong("an extended resource such as example.com/gpu")
    elif name in seen:
        fields["name"].wrong("each managed resource once, over all extenders")
    seen.add(name)
    return name
