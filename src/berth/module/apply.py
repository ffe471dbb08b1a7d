"""Carry out a round on an embedded cluster: new pods get names and run, replicas follow."""

import hashlib
from collections import Counter
from dataclasses import dataclass

import msgspec

from berth.cluster.arrays import NONE
from berth.cluster.cluster import Cluster
from berth.module.changes import WorkloadName
from berth.module.rounds import Added, Round
from berth.module.services import (
    WORKLOAD_KINDS,
    controlled_by,
    controller_of_owners,
    find_workload,
    name_of,
    replicas,
)
from berth.module.templates import POD_NAME_LABEL, Pattern, highest_ordinal
from berth.objects.base import OwnerReference
from berth.objects.workloads import Workload

_SUFFIX_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_MAX_BASE_LENGTH = 58
"""With the suffix 63, as in Kubernetes: a pod's name is its hostname."""
_RUNNING, _PENDING = 2, 1


@dataclass(frozen=True, slots=True)
class ObjectKey:
    """An object that a round touched; ``exists`` is False for one that it took away."""

    kind: str
    namespace: str
    name: str
    exists: bool = True


@dataclass(frozen=True, slots=True)
class Applied:
    """What a round did to an embedded cluster.

    Attributes
    ----------
    touched : list of ObjectKey
        Every object that changed, each once.
    created : list of str or None
        For each decision the name of the pod that it made, None where it made none.
    """

    touched: list[ObjectKey]
    created: list[str | None]


def apply_round(decided: Round, number: int, now: int) -> Applied:
    """Make what a round assumed the cluster's state.

    The names of new pods hang on the round's number and their place in it alone: the same round, applied again after a
    crash, makes the same pods.

    Parameters
    ----------
    now : int
        When the new pods are created. [seconds since 1970]
    """
    cluster = decided.cluster
    touched: dict[tuple[str, str, str], bool] = {}
    created: list[str | None] = []
    ordinals: dict[tuple[int, str], int] = {}
    for planned, effect in zip(decided.planned, decided.effects, strict=True):
        changed: list[Workload] = []
        namespace, index = planned.change.namespace, len(created)
        if isinstance(effect, Added):
            names = [
                _create(cluster, effect, pod, f"{number}/{index + i}", ordinals, now)
                for i, pod in enumerate(effect.pods.tolist())
            ]
            created += names
            touched |= {("Pod", namespace, name): True for name in names}
            for claim in effect.claims:
                touched["PersistentVolumeClaim", claim.metadata.namespace, claim.metadata.name] = True
            for _, after in (change for bound in effect.bound for change in bound):
                meta = after.metadata
                touched[type(after).__name__, meta.namespace, meta.name] = True
            changed = _scale(cluster, namespace, effect.pattern.controller, planned.n)
        elif effect is not None:
            touched |= {("Pod", namespace, name): False for name in effect.names}
            for owner_id, n in Counter(effect.columns["owner_id"].tolist()).items():
                controller = controller_of_owners(cluster, owner_id)
                if controller is not None:
                    changed += _scale(cluster, namespace, WorkloadName(controller.kind, controller.name), -n)
        for workload in changed:
            touched[type(workload).__name__, namespace, workload.metadata.name] = True
        created += [None] * (index + planned.n - len(created))
    return Applied([ObjectKey(*key, exists) for key, exists in touched.items()], created)


def _create(
    cluster: Cluster, added: Added, pod: int, seed: str, ordinals: dict[tuple[int, str], int], now: int
) -> str:
    """Put a pod that was only planned into the cluster as one that runs, or waits for a node; return its name."""
    values = cluster.pods.get(pod)
    namespace = cluster.namespaces.items[values.namespace_id]
    name = _name_of(cluster, added, values.namespace_id, seed, ordinals)
    placed = values.node_name_id != NONE
    labels_id = values.labels_id
    if _is_stateful(added.pattern):
        labels = cluster.label_sets.get(labels_id) | {POD_NAME_LABEL: name}
        labels_id = cluster.labels_id(msgspec.json.encode(labels))
    cluster.forget(pod)
    namesake = cluster.pods.find(values.namespace_id, name)
    if namesake != NONE and cluster.pods.get(namesake).terminating:
        # A StatefulSet's pod comes once the one that had its ordinal has gone.
        cluster.remove_pod(namesake)
    cluster.add_pod(
        msgspec.structs.replace(
            values,
            name=name,
            uid=_digest(f"uid/{namespace}/{name}/{seed}").hex()[:32],
            labels_id=labels_id,
            phase=_RUNNING if placed else _PENDING,
            ready=placed,
            ready_since=now if placed else 0,
            created=now,
        )
    )
    return name


def _name_of(
    cluster: Cluster, added: Added, namespace_id: int, seed: str, ordinals: dict[tuple[int, str], int]
) -> str:
    """Return the name of a new pod: a StatefulSet's next ordinal, else the pattern's name and five letters."""
    if added.name or not _is_stateful(added.pattern):
        return added.name or _new_name(cluster, added.pattern, namespace_id, seed)
    base = added.pattern.base_name
    highest = ordinals.get((namespace_id, base))
    if highest is None:
        highest = highest_ordinal(cluster, cluster.namespaces.items[namespace_id], base)[0]
    ordinals[namespace_id, base] = highest + 1
    return f"{base}-{highest + 1}"


def _is_stateful(pattern: Pattern) -> bool:
    return pattern.controller is not None and pattern.controller.kind == "StatefulSet"


def _new_name(cluster: Cluster, pattern: Pattern, namespace_id: int, seed: str) -> str:
    attempt = 0
    while True:
        digest = _digest(f"{pattern.base_name}/{seed}/{attempt}")
        suffix = "".join(_SUFFIX_LETTERS[byte % len(_SUFFIX_LETTERS)] for byte in digest[:_SUFFIX_LENGTH])
        name = f"{pattern.base_name}-"[:_MAX_BASE_LENGTH] + suffix
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
