"""Volumes that are bound when their first consumer is: taken when a node is decided on, bound before the pod is.

Source: 1.36, ``plugins/volumebinding`` (``AssumePodVolumes``, ``BindPodVolumes``). What was written to the API server is not
taken back when it fails, as upstream: the claim's controllers see to it.
"""

import asyncio
import time
from dataclasses import dataclass, field
from typing import Any, ClassVar

import msgspec

from berth.cluster.arrays import NONE
from berth.cluster.cluster import Cluster, Incoming
from berth.live.api_errors import ApiError, ConnectionLostError, CredentialsError
from berth.live.client import ApiClient, Repeat
from berth.live.preparing import PrepareError
from berth.objects.storage import PersistentVolume, PersistentVolumeClaim
from berth.plugins.volume_binding import BindingRules, bindings
from berth.plugins.volume_binding.claims import BIND_COMPLETED, claim_names, tell_apart
from berth.plugins.volume_binding.rules import SELECTED_NODE

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
BIND_TIMEOUT_S = 600.0
_LOOK_AGAIN_S = 0.5
_TOLD_S = 5.0

Object = PersistentVolume | PersistentVolumeClaim


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    uid: str = ""
    annotations: dict[str, str] | None = None


class _Reference(msgspec.Struct):
    uid: str = ""
    namespace: str = ""
    name: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    claim_ref: _Reference | None = None
    volume_name: str = ""


class _Found(msgspec.Struct):
    metadata: _Meta
    spec: _Spec


_decoder = msgspec.json.Decoder(_Found)


@dataclass(slots=True)
class _Reserved:
    """What is taken for a pod.

    Attributes
    ----------
    claims : tuple of str
        The names of the claims that are to be bound.
    changed : list of (object, object)
        What changes: as it was, and as it shall be.
    provisioned : set of str
        The claims that a volume is to be provisioned for.
    """

    claims: tuple[str, ...]
    changed: list[tuple[Object, Object]] = field(default_factory=list)
    provisioned: set[str] = field(default_factory=set)


class VolumePreparation:
    """Binds claims that wait for their first consumer; a `berth.live.preparing.Preparation`.

    Parameters
    ----------
    timeout_s : float
        So long a claim may take to be bound. [s]
    """

    name: ClassVar[str] = "VolumeBinding"

    def __init__(self, client: ApiClient, cluster: Cluster, timeout_s: float = BIND_TIMEOUT_S) -> None:
        self._client = client
        self._cluster = cluster
        self._timeout_s = timeout_s
        self._rules = BindingRules.of_1_36()
        self._reserved: dict[str, _Reserved] = {}

    def concerns(self, pod: Incoming) -> bool:
        """Tell whether a pod has a claim that is to be bound with it."""
        return bool(pod.info.spec.volumes) and bool(self._delayed(pod))

    def reserve(self, pod: Incoming, node_name: str) -> None:
        """Take volumes in the cluster, so that the next pod finds them taken."""
        reserved = self._reserved[pod.uid] = _Reserved(
            tuple(claim.metadata.name for claim in self._delayed(pod))
        )
        row = self._cluster.nodes.row(node_name)
        for new in bindings(pod, self._cluster, row, self._rules):
            old = self._current(new)
            assert old is not None  # it was found there a moment ago
            reserved.changed.append((old, new))
            if isinstance(new, PersistentVolumeClaim):
                reserved.provisioned.add(new.metadata.name)
            self._cluster.put(new)

    def unreserve(self, pod: Incoming) -> None:
        """Give back what was taken, but for what the API server has told of since."""
        reserved = self._reserved.pop(pod.uid, None)
        for old, new in reserved.changed if reserved else ():
            if self._current(new) is new:
                self._cluster.put(old)

    def settle(self, pod: Incoming) -> None:
        """Forget what was taken: it is the pod's."""
        self._reserved.pop(pod.uid, None)

    async def prepare(self, pod: Incoming, node_name: str) -> None:
        """Have the claims bound, and wait until they are."""
        reserved = self._reserved[pod.uid]
        try:
            for _, new in reserved.changed:
                if isinstance(new, PersistentVolume):
                    await self._claim_volume(new)
                else:
                    await self._select_node(new, node_name)
        except (ApiError, ConnectionLostError, CredentialsError, msgspec.DecodeError) as error:
            words = error.message if isinstance(error, ApiError) else str(error)
            raise PrepareError(f"binding volumes: {words}") from error
        since = time.monotonic()
        while not self._are_bound(pod, node_name, reserved, time.monotonic() - since):
            if time.monotonic() - since > self._timeout_s:
                raise PrepareError("binding volumes: context deadline exceeded")
            await asyncio.sleep(_LOOK_AGAIN_S)

    # -- what is there -----------------------------------------------------------------------------------------------

    def _delayed(self, pod: Incoming) -> list[PersistentVolumeClaim]:
        names = claim_names(pod, self._rules)
        return tell_apart(pod.namespace, names, self._cluster.objects, self._rules).delayed

    def _current(self, item: Object) -> Object | None:
        objects, meta = self._cluster.objects, item.metadata
        if isinstance(item, PersistentVolume):
            return objects.persistent_volumes.get("", meta.name)
        return objects.persistent_volume_claims.get(meta.namespace, meta.name)

    def _are_bound(self, pod: Incoming, node_name: str, reserved: _Reserved, waited_s: float) -> bool:
        if self._cluster.nodes.row(node_name) == NONE:
            raise PrepareError(f'binding volumes: node "{node_name}" not found')
        known = self._cluster.pods.find(pod.namespace_id, pod.name)
        if known == NONE or self._cluster.pods.uids[known] != pod.uid:
            raise PrepareError("binding volumes: pod does not exist any more")
        for name in reserved.claims:
            claim = self._cluster.objects.persistent_volume_claims.get(pod.namespace, name)
            if claim is None:
                raise PrepareError(f'binding volumes: persistentvolumeclaim "{name}" not found')
            meta = claim.metadata
            if not claim.spec.volume_name or BIND_COMPLETED not in meta.annotations:
                # A provisioner that can't takes the node away again. What is told at first may be of before it was selected.
                is_refused = name in reserved.provisioned and meta.annotations.get(SELECTED_NODE) != node_name
                if is_refused and waited_s > _TOLD_S:
                    raise PrepareError(f'binding volumes: provisioning failed for PVC "{name}"')
                return False
        return True

    # -- what is written ---------------------------------------------------------------------------------------------

    async def _claim_volume(self, volume: PersistentVolume) -> None:
        """Write the claim into a volume, unless it has another one by now."""
        path = f"/api/v1/persistentvolumes/{volume.metadata.name}"
        found = _decoder.decode(await self._client.get(path))
        ref, had = volume.spec.claim_ref, found.spec.claim_ref
        assert ref is not None
        if had is not None and (
            (had.namespace, had.name) != (ref.namespace, ref.name) or had.uid not in ("", ref.uid)
        ):
            raise PrepareError(f'binding volumes: volume "{volume.metadata.name}" is taken')
        if had is not None and had.uid:
            return
        meta: dict[str, Any] = {"resourceVersion": found.metadata.resource_version}
        if had is None:
            meta["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": ref.namespace,
            "name": ref.name,
            "uid": ref.uid,
        }
        await self._client.patch(
            path, {"metadata": meta, "spec": {"claimRef": claim}}, repeat=Repeat.IF_REFUSED
        )

    async def _select_node(self, claim: PersistentVolumeClaim, node_name: str) -> None:
        """Write the node into a claim, for whoever provisions its volume, unless it has another one by now."""
        meta = claim.metadata
        path = f"/api/v1/namespaces/{meta.namespace}/persistentvolumeclaims/{meta.name}"
        found = _decoder.decode(await self._client.get(path))
        selected = (found.metadata.annotations or {}).get(SELECTED_NODE, node_name)
        if found.metadata.uid != meta.uid or selected != node_name:
            raise PrepareError(f'binding volumes: another node is selected for PVC "{meta.name}"')
        if found.spec.volume_name:
            return
        changed = {
            "resourceVersion": found.metadata.resource_version,
            "annotations": {SELECTED_NODE: node_name},
        }
        await self._client.patch(path, {"metadata": changed}, repeat=Repeat.IF_REFUSED)
