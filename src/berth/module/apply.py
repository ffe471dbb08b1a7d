"""Carry out a round on an embedded cluster: new pods get names and run, replicas follow."""

import hashlib
from dataclasses import dataclass

import msgspec

from berth.cluster.cluster import Cluster
from berth.module.changes import WorkloadName
from berth.module.rounds import Added, Removed, Round
from berth.module.services import WORKLOAD_KINDS, controlled_by, find_workload, name_of, replicas
from berth.module.templates import Pattern
from berth.objects.base import OwnerReference
from berth.objects.workloads import Workload

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_RUNNING, _PENDING = 2, 1


@dataclass(frozen=True, slots=True)
class ObjectKey:
    """An object that a round touched; ``exists`` is False for one that it took away."""

    kind: str
    namespace: str
    name: str
    exists: bool = True


def apply_round(decided: Round, number: int, now: int) -> list[ObjectKey]:
    """Make what a round assumed the cluster's state.

    The names of new pods hang on the round's number and their place in it alone: the same round, applied again after a
    crash, makes the same pods.

    Parameters
    ----------
    now : int
        When the new pods are created. [seconds since 1970]

    Returns
    -------
    list of ObjectKey
        Everything touched, each once.
    """
    cluster = decided.cluster
    touched: dict[tuple[str, str, str], bool] = {}
    for index, effect in enumerate(decided.effects):
        if isinstance(effect, Added):
            namespace, name = _create(cluster, effect, f"{number}/{index}", now)
            touched["Pod", namespace, name] = True
            for claim in effect.claims:
                touched["PersistentVolumeClaim", claim.metadata.namespace, claim.metadata.name] = True
            changed = _scale(cluster, namespace, effect.pattern.controller, 1)
        elif isinstance(effect, Removed):
            namespace = cluster.namespaces.items[effect.values.namespace_id]
            touched["Pod", namespace, effect.values.name] = False
            changed = _scale(cluster, namespace, effect.controller, -1)
        else:
            continue
        for workload in changed:
            touched[type(workload).__name__, namespace, workload.metadata.name] = True
    return [ObjectKey(*key, exists) for key, exists in touched.items()]


def created_names(decided: Round) -> list[str | None]:
    """Return for each decision of an applied round the name of the pod that it made, None for all others."""
    names = decided.cluster.pods.names
    return [names[effect.pod] if isinstance(effect, Added) else None for effect in decided.effects]


def _create(cluster: Cluster, added: Added, seed: str, now: int) -> tuple[str, str]:
    pods = cluster.pods
    namespace_id = int(pods.column("namespace_id")[added.pod])
    namespace = cluster.namespaces.items[namespace_id]
    name = added.name or _new_name(cluster, added.pattern, namespace_id, seed)
    pods.rename(added.pod, name, _digest(f"uid/{namespace}/{name}/{seed}").hex()[:32])
    placed = int(pods.node_row[added.pod]) >= 0
    pods.column("phase")[added.pod] = _RUNNING if placed else _PENDING
    pods.column("ready")[added.pod] = placed
    pods.column("ready_since")[added.pod] = now if placed else 0
    pods.column("created")[added.pod] = now
    return namespace, name


def _new_name(cluster: Cluster, pattern: Pattern, namespace_id: int, seed: str) -> str:
    attempt = 0
    while True:
        digest = _digest(f"{pattern.base_name}/{seed}/{attempt}")
        suffix = "".join(_SUFFIX_LETTERS[byte % len(_SUFFIX_LETTERS)] for byte in digest[:_SUFFIX_LENGTH])
        name = f"{pattern.base_name}-{suffix}"
        if cluster.pods.find(namespace_id, name) < 0:
            return name
        attempt += 1


def _scale(cluster: Cluster, namespace: str, controller: WorkloadName | None, by: int) -> list[Workload]:
    """Change the replicas of a controller, and of the Deployment above it; return what was changed."""
    found = (
        find_workload(cluster, namespace, controller)
        if controller and controller.kind in WORKLOAD_KINDS
        else None
    )
    if found is None or controller is None:
        return []
    above = controlled_by(cluster, namespace, OwnerReference(kind=controller.kind, name=controller.name))
    chain = [found] if above is None or name_of(above) == controller else [found, above]
    changed: list[Workload] = []
    for workload in chain:
        spec = msgspec.structs.replace(workload.spec, replicas=max(0, replicas(workload) + by))
        scaled: Workload = msgspec.structs.replace(workload, spec=spec)
        # Put on the shelf past the log: no plugin reads replicas.
        cluster.objects.shelf(scaled).put(scaled)
        changed.append(scaled)
    return changed


def _digest(text: str) -> bytes:
    return hashlib.blake2b(text.encode(), digest_size=16).digest()
