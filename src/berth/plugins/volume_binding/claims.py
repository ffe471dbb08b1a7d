"""A pod's claims, told apart: bound, to be bound where the pod goes, or an error. Knows no nodes."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from berth.cluster.cluster import Incoming
from berth.cluster.objects import ClusterObjects
from berth.objects.selectors import SelectorError
from berth.objects.storage import (
    WAIT_FOR_FIRST_CONSUMER,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    storage_class_of,
)
from berth.plugins.volume_binding.rules import SELECTED_NODE, BindingRules, SelectedNode

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"


def claim_names(pod: Incoming, rules: BindingRules) -> tuple[str, ...]:
    """Return the names of a pod's claims in the order of its volumes."""
    if not (rules.ephemeral and pod.info.has_ephemeral):
        return pod.info.claims
    names = []
    for volume in pod.info.spec.volumes:
        if volume.persistent_volume_claim:
            names.append(volume.persistent_volume_claim.claim_name)
        elif volume.ephemeral is not None:
            names.append(f"{pod.name}-{volume.name}")
    return tuple(names)


def what_is_amiss(pod: Incoming, objects: ClusterObjects) -> str | None:
    """Return what is wrong with the first claim that is missing, lost, going or another pod's (1.36)."""
    for volume in pod.info.spec.volumes:
        if volume.persistent_volume_claim:
            name = volume.persistent_volume_claim.claim_name
        elif volume.ephemeral is not None:
            name = f"{pod.name}-{volume.name}"
        else:
            continue
        claim = objects.persistent_volume_claims.get(pod.namespace, name)
        if claim is None:
            if volume.persistent_volume_claim:
                return f'persistentvolumeclaim "{name}" not found'
            waiting = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
            return f'{waiting} "{name}"'
        if claim.status.phase == "Lost":
            gone = claim.spec.volume_name
            return f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{gone}"'
        if claim.metadata.deletion_timestamp is not None:
            return f'persistentvolumeclaim "{name}" is being deleted'
        owner = claim.metadata.controller()
        if not volume.persistent_volume_claim and (owner is None or owner.uid != pod.uid):
            what = f"PVC {pod.namespace}/{name} was not created for pod {pod.namespace}/{pod.name}"
            return f"{what} (pod is not owner)"
    return None


@dataclass(slots=True)
class PodClaims:
    """A pod's claims in the order of its volumes; a claim that is used twice stands there twice.

    Attributes
    ----------
    bound, delayed : list of PersistentVolumeClaim
        Those with a volume, and those whose class waits for the pod's node.
    classes : list of StorageClass
        Of the delayed ones.
    error : str
        Why the pod can't be judged at all; empty if it can.
    """

    bound: list[PersistentVolumeClaim] = field(default_factory=list)
    delayed: list[PersistentVolumeClaim] = field(default_factory=list)
    classes: list[StorageClass] = field(default_factory=list)
    error: str = ""


def tell_apart(
    namespace: str, names: Sequence[str], objects: ClusterObjects, rules: BindingRules
) -> PodClaims:
    """Look up the claims of a pod and tell them apart; the first error in their order counts."""
    told = PodClaims()
    unbound = False
    for name in names:
        claim = objects.persistent_volume_claims.get(namespace, name)
        if claim is None:
            return PodClaims(error=rules.missing_claim.format(key=f"{namespace}/{name}", name=name))
        if _is_bound(claim, rules):
            told.bound.append(claim)
            continue
        storage_class = objects.storage_classes.get("", storage_class_of(claim))
        if storage_class is None or (
            rules.selected_node is SelectedNode.UNBOUND and SELECTED_NODE in claim.metadata.annotations
        ):
            unbound = True
        elif storage_class.volume_binding_mode is None and rules.binding_mode_required:
            return PodClaims(error=f'VolumeBindingMode not set for StorageClass "{storage_class_of(claim)}"')
        elif storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER and not claim.spec.volume_name:
            told.delayed.append(claim)
            told.classes.append(storage_class)
        else:
            unbound = True
    return PodClaims(error=rules.unbound) if unbound else told


def spec_class_of(item: PersistentVolumeClaim | PersistentVolume) -> str:
    """Return the name of the storage class as the spec has it, empty if it has none."""
    return item.spec.storage_class_name or ""


def selector_refused(claim: PersistentVolumeClaim, error: SelectorError) -> str:
    """Return upstream's text for a claim's selector that is none; of bad keys and values, our own."""
    if error.path.endswith(".operator"):
        why = f'"{error.value}" is not a valid pod selector operator'
    elif error.expected.startswith("at least one"):
        why = "for 'in', 'notin' operators, values set can't be empty"
    elif error.expected.startswith("empty"):
        why = "values set must be empty for exists and does not exist"
    else:
        why = str(error)
    meta = claim.metadata
    return f"error creating internal label selector for claim: {meta.namespace}/{meta.name}: {why}"


def _is_bound(claim: PersistentVolumeClaim, rules: BindingRules) -> bool:
    if not claim.spec.volume_name:
        return False
    return rules.prebound_counts or BIND_COMPLETED in claim.metadata.annotations
