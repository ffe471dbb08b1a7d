"""What becomes of volumes and claims once a pod is placed: the next pod finds them taken. Changes nothing."""

from dataclasses import dataclass

import msgspec

from berth.cluster.cluster import Cluster, Incoming
from berth.objects.storage import ObjectReference, PersistentVolume, PersistentVolumeClaim
from berth.plugins.volume_binding.claims import claim_names, tell_apart
from berth.plugins.volume_binding.matching import VolumeMatcher, asked_storage
from berth.plugins.volume_binding.reach import VolumeReach
from berth.plugins.volume_binding.rules import SELECTED_NODE, BindingRules


@dataclass(frozen=True, slots=True)
class Choice:
    """What a claim that waits for its pod's node gets there; without a volume one is to be provisioned."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume | None = None


def waits_for_node(pod: Incoming, cluster: Cluster, rules: BindingRules) -> bool:
    """Tell whether a pod has claims that are bound where it goes."""
    names = claim_names(pod, rules)
    return bool(names and tell_apart(pod.namespace, names, cluster.objects, rules).delayed)


def choices(pod: Incoming, cluster: Cluster, row: int, rules: BindingRules) -> list[Choice]:
    """Return what a pod's claims get on a row where it fits, the smallest first."""
    claims = tell_apart(pod.namespace, claim_names(pod, rules), cluster.objects, rules)
    matcher = VolumeMatcher(
        cluster.objects.persistent_volumes.all(), VolumeReach(cluster.nodes, rules), rules
    )
    found = []
    for claim in sorted(claims.delayed, key=asked_storage):
        if rules.pins(claim.metadata.annotations):
            found.append(Choice(claim))
            continue
        matcher.match(claim)
        found.append(Choice(claim, matcher.chosen_on(row)))
    return found


def bindings(
    pod: Incoming, cluster: Cluster, row: int, rules: BindingRules
) -> list[PersistentVolume | PersistentVolumeClaim]:
    """Return the objects that change when a pod is placed on a row where it fits, as they are then.

    Upstream's ``AssumePodVolumes``: a volume that is taken names its claim, a claim to be provisioned names
    the node. Put into the cluster they count; the old ones put again take that back.
    """
    changed: list[PersistentVolume | PersistentVolumeClaim] = []
    for choice in choices(pod, cluster, row, rules):
        if choice.volume is not None:
            changed.append(bound_to(choice.volume, choice.claim))
        elif rules.provisions and not rules.pins(choice.claim.metadata.annotations):
            changed.append(selected_for(choice.claim, cluster.nodes.names[row]))
    return changed


def bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """Return a volume as it is once it names a claim."""
    meta = claim.metadata
    ref = ObjectReference(namespace=meta.namespace, name=meta.name, uid=meta.uid)
    return msgspec.structs.replace(volume, spec=msgspec.structs.replace(volume.spec, claim_ref=ref))


def selected_for(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    """Return a claim as it is once it names the node where its volume shall be."""
    annotations = claim.metadata.annotations | {SELECTED_NODE: node_name}
    meta = msgspec.structs.replace(claim.metadata, annotations=annotations)
    return msgspec.structs.replace(claim, metadata=meta)
