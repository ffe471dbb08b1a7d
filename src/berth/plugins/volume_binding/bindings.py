"""What becomes of volumes and claims once a pod is placed: the next pod finds them taken. Changes nothing."""

import msgspec

from berth.cluster.cluster import Cluster, Incoming
from berth.objects.storage import ObjectReference, PersistentVolume, PersistentVolumeClaim
from berth.plugins.volume_binding.claims import claim_names, tell_apart
from berth.plugins.volume_binding.matching import VolumeMatcher, asked_storage
from berth.plugins.volume_binding.reach import VolumeReach
from berth.plugins.volume_binding.rules import SELECTED_NODE, BindingRules


def bindings(
    pod: Incoming, cluster: Cluster, row: int, rules: BindingRules
) -> list[PersistentVolume | PersistentVolumeClaim]:
    """Return the objects that change when a pod is placed on a row where it fits, as they are then.

    Upstream's ``AssumePodVolumes``: a volume that is taken names its claim, a claim to be provisioned names
    the node. Put into the cluster they count; the old ones put again take that back.
    """
    claims = tell_apart(pod.namespace, claim_names(pod, rules), cluster.objects, rules)
    matcher = VolumeMatcher(
        cluster.objects.persistent_volumes.all(), VolumeReach(cluster.nodes, rules), rules
    )
    changed: list[PersistentVolume | PersistentVolumeClaim] = []
    for claim in sorted(claims.delayed, key=asked_storage):
        if rules.pins(claim.metadata.annotations):
            continue
        matcher.match(claim)
        volume = matcher.chosen_on(row)
        if volume is not None:
            changed.append(_bound_to(volume, claim))
        elif rules.provisions:
            changed.append(_selected_for(claim, cluster.nodes.names[row]))
    return changed


def _bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    meta = claim.metadata
    ref = ObjectReference(namespace=meta.namespace, name=meta.name, uid=meta.uid)
    return msgspec.structs.replace(volume, spec=msgspec.structs.replace(volume.spec, claim_ref=ref))


def _selected_for(claim: PersistentVolumeClaim, node_name: str) -> PersistentVolumeClaim:
    annotations = claim.metadata.annotations | {SELECTED_NODE: node_name}
    meta = msgspec.structs.replace(claim.metadata, annotations=annotations)
    return msgspec.structs.replace(claim, metadata=meta)
