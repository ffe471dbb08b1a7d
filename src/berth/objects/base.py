"""What all objects share: metadata, owner references, label selectors. Field names are Kubernetes' own, in snake case."""

from datetime import datetime
from typing import Literal

import msgspec

Quantity = str | int | float
"""A resource quantity as it stands in the object: ``"500m"``, ``"2Gi"``, or a bare JSON number."""

ResourceList = dict[str, Quantity]


class KubernetesStruct(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True, kw_only=True):
    """A struct that decodes from Kubernetes' JSON: camel case, unknown fields ignored."""


class OwnerReference(KubernetesStruct, frozen=True):
    """Who made the object; at most one owner has ``controller`` set."""

    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(KubernetesStruct, frozen=True):
    """Metadata of an object, as far as scheduling reads it."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: tuple[OwnerReference, ...] = ()
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    generation: int = 0

    def controller(self) -> OwnerReference | None:
        """Return the owner that controls the object, if any."""
        return next((owner for owner in self.owner_references if owner.controller), None)


SelectorOperator = Literal["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"]


class LabelSelectorRequirement(KubernetesStruct, frozen=True):
    """One line of ``matchExpressions``; ``Gt`` and ``Lt`` are for nodes' labels only."""

    key: str
    operator: SelectorOperator
    values: tuple[str, ...] = ()


class LabelSelector(KubernetesStruct, frozen=True):
    """A label selector; empty it matches everything. Absent (None where it is used) it matches nothing."""

    match_labels: dict[str, str] = {}
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()
