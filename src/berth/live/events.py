"""What reflectors tell of the API server's objects."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from berth.cluster.pods import PodValues
from berth.objects.base import KubernetesStruct
from berth.objects.pod_records import PodRecord


@dataclass(slots=True)
class Event:
    """An object came, changed or went. An object that went and came again under its name makes two events.

    Attributes
    ----------
    kind, namespace, name, uid : str
        The namespace is empty for cluster-scoped kinds.
    item : PodRecord or struct, optional
        As it is now; as it was last where it was deleted. None if its deletion was found out afterwards, by listing, or if
        it can't be read.
    old : struct, optional
        As the cluster had it; not for nodes and pods, of which it has columns.
    values, before : PodValues, optional
        A pod's row as it is now, and as it was; None where it is not in the cluster.
    changed : bool
        Whether the cluster has changed by it.
    """

    type: Literal["ADDED", "MODIFIED", "DELETED"]
    kind: str
    namespace: str
    name: str
    uid: str
    item: PodRecord | KubernetesStruct | None = None
    old: KubernetesStruct | None = None
    changed: bool = False
    values: PodValues | None = None
    before: PodValues | None = None


Handler = Callable[[Event], None]
"""Called in order, between two decisions and never in the midst of one; it must not wait."""
