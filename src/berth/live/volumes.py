"""Binds the claims that wait for their pod's node: taken with the decision, written before the binding, waited for.

What is written are a volume's claim, and the node of a claim that is to be provisioned; the volume controller and
provisioners do the rest, and the watch tells of it.

Source: 1.36, ``volumebinding/binder.go`` (``AssumePodVolumes``, ``BindPodVolumes``, ``RevertAssumedPodVolumes``).
"""

import asyncio
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn

import msgspec

from berth.cluster.arrays import NONE
from berth.cluster.cluster import Incoming
from berth.framework.csi_migration import NotTranslatable
from berth.framework.profile import Profile
from berth.live.api_errors import ApiError, ConnectionLostError, CredentialsError
from berth.live.assumed import Key, is_older, key_of
from berth.live.client import ApiClient
from berth.live.events import Event
from berth.live.live_cluster import LiveCluster
from berth.live.preparing import PrepareError
from berth.objects.storage import PersistentVolume, PersistentVolumeClaim
from berth.plugins.volume_binding import BIND_COMPLETED, SELECTED_NODE, VolumeBinding
from berth.plugins.volume_binding.bindings import bound_to, choices, selected_for, waits_for_node
from berth.plugins.volume_binding.reach import is_reached
from berth.scheduling.turns import scheduler_of

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
_TROUBLE = (ApiError, ConnectionLostError, CredentialsError, msgspec.DecodeError)


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Written(msgspec.Struct):
    metadata: _Meta


_decoder = msgspec.json.Decoder(_Written)


@dataclass(eq=False, slots=True)
class _Taken:
    """A volume or claim as it shall be; `version` is the one that this was decided on, `written` the one that is so."""

    claim: PersistentVolumeClaim
    volume: PersistentVolume | None = None
    version: str = ""
    written: str = ""

    @property
    def item(self) -> PersistentVolume | PersistentVolumeClaim:
        return self.claim if self.volume is None else self.volume


@dataclass(eq=False, slots=True)
class _Job:
    """A pod, its node, and what it takes there: volumes first, as upstream, then claims."""

    pod: Incoming
    node_name: str
    plugin: VolumeBinding
    taken: list[_Taken]
    news: asyncio.Event = field(default_factory=asyncio.Event)

    def concerned(self) -> Iterator[Key]:
        """Yield whose events may end the wait."""
        yield "Pod", self.pod.namespace, self.pod.name
        yield "Node", "", self.node_name
        yield "CSINode", "", self.node_name
        for taken in self.taken:
            yield key_of(taken.claim)
            if taken.volume is not None:
                yield key_of(taken.volume)


class VolumePreparation:
    """VolumeBinding's part after the decision, for the pods of profiles that have it.

    Parameters
    ----------
    profiles : dict of scheduler name to Profile
    """

    name: ClassVar[str] = VolumeBinding.name

    def __init__(self, client: ApiClient, live: LiveCluster, profiles: Mapping[str, Profile]) -> None:
        self._client = client
        self._live = live
        self._cluster = live.cluster
        self._objects = live.state.objects
        self._plugins = {
            name: each.plugin
            for name, profile in profiles.items()
            for each in profile.filters
            if isinstance(each.plugin, VolumeBinding)
        }
        self._jobs: dict[str, _Job] = {}
        self._waiting: defaultdict[Key, set[_Job]] = defaultdict(set)
        for kind in ("Pod", "Node", "CSINode", "PersistentVolume", "PersistentVolumeClaim"):
            live.subscribe(kind, self._hear)

    # -- with the decision -------------------------------------------------------------------------------------------

    def concerns(self, pod: Incoming) -> bool:
        """Tell whether a pod has claims that are bound where it goes."""
        if not pod.info.spec.volumes:
            return False
        plugin = self._plugins.get(scheduler_of(pod))
        return plugin is not None and waits_for_node(pod, self._cluster, plugin.rules)

    def reserve(self, pod: Incoming, node_name: str) -> None:
        """Have all see what a pod's claims get on its node."""
        plugin, row = self._plugins[scheduler_of(pod)], self._cluster.nodes.row(node_name)
        chosen = {each.claim.metadata.name: each for each in choices(pod, self._cluster, row, plugin.rules)}
        taken = [
            _Taken(selected_for(each.claim, node_name))
            if each.volume is None
            else _Taken(each.claim, _prebound(each.volume, each.claim))
            for each in chosen.values()
        ]
        for each in taken:
            each.version = self._objects.assume(each.item)
        job = _Job(pod, node_name, plugin, sorted(taken, key=lambda each: each.volume is None))
        self._jobs[pod.uid] = job
        for key in job.concerned():
            self._waiting[key].add(job)

    def unreserve(self, pod: Incoming) -> None:
        """Give back what was taken for a pod, if anything was and it was not written: the watch tells of the rest."""
        job = self._leave(pod)
        for taken in job.taken if job else ():
            restored = None if taken.written else self._objects.restore(key_of(taken.item), taken.version)
            if restored is not None:
                self._live.tell(restored)

    def settle(self, pod: Incoming) -> None:
        """Forget a pod: its claims are bound, and the watch has told of it."""
        self._leave(pod)

    def _leave(self, pod: Incoming) -> _Job | None:
        job = self._jobs.pop(pod.uid, None)
        for key in job.concerned() if job else ():
            jobs = self._waiting[key]
            jobs -= {job}
            if not jobs:
                del self._waiting[key]
        return job

    # -- before the binding ------------------------------------------------------------------------------------------

    async def prepare(self, pod: Incoming, node_name: str) -> None:
        """Write what a pod takes, and wait until its claims are bound.

        Raises
        ------
        PrepareError
            That failed, was undone, or took too long; in upstream's words. What is written stays.
        """
        job = self._jobs[pod.uid]
        for taken in job.taken:
            await self._write(taken, node_name)
        try:
            async with asyncio.timeout(job.plugin.bind_timeout_s):
                while not self._are_bound(job):
                    job.news.clear()
                    await job.news.wait()
        except TimeoutError:
            raise PrepareError("binding volumes: context deadline exceeded") from None
        except NotTranslatable as error:
            raise PrepareError(f"binding volumes: failed to translate pv to csi: {error}") from error

    async def _write(self, taken: _Taken, node_name: str) -> None:
        now = self._objects.told(key_of(taken.item))
        if now is not None and _is_so(now.item, taken.item):
            return
        meta = {"resourceVersion": taken.version, "uid": taken.item.metadata.uid}
        try:
            answer = await self._client.patch(_path_of(taken.item), self._patch(taken, meta, node_name))
            taken.written = _decoder.decode(answer).metadata.resource_version
        except _TROUBLE as error:
            raise PrepareError(error.message if isinstance(error, ApiError) else str(error)) from error

    def _patch(self, taken: _Taken, meta: dict[str, Any], node_name: str) -> dict[str, Any]:
        if taken.volume is None:
            return {"metadata": meta | {"annotations": {SELECTED_NODE: node_name}}}
        claim = self._objects.told(key_of(taken.claim))
        ref = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": taken.claim.metadata.namespace,
            "name": taken.claim.metadata.name,
            "uid": taken.claim.metadata.uid,
            "resourceVersion": claim.version if claim else "",
        }
        annotations = taken.volume.metadata.annotations
        if BOUND_BY_CONTROLLER in annotations:
            meta = meta | {"annotations": {BOUND_BY_CONTROLLER: annotations[BOUND_BY_CONTROLLER]}}
        return {"metadata": meta, "spec": {"claimRef": ref}}

    # -- waiting -----------------------------------------------------------------------------------------------------

    def _hear(self, event: Event) -> None:
        if not self._waiting:
            return
        keys = [(event.kind, event.namespace, event.name)]
        if isinstance(event.item, PersistentVolume) and event.item.spec.claim_ref is not None:
            ref = event.item.spec.claim_ref
            keys.append(("PersistentVolumeClaim", ref.namespace, ref.name))
        for key in keys:
            for job in self._waiting.get(key, ()):
                job.news.set()

    def _are_bound(self, job: _Job) -> bool:
        """Tell whether all that was taken is bound, as the API server has it.

        Raises
        ------
        PrepareError
            It will not be.
        """
        row = self._cluster.nodes.row(job.node_name)
        if row == NONE:
            _fail(f'failed to get node "{job.node_name}": node "{job.node_name}" not found')
        pods, pod = self._cluster.pods, job.pod
        known = pods.find(pod.namespace_id, pod.name)
        if known == NONE or pods.uids[known] != pod.uid:
            _fail(f'pod does not exist any more: pod "{pod.name}" not found')
        return all(
            self._is_provisioned(job, row, taken)
            if taken.volume is None
            else self._is_bound(job, row, taken, taken.volume)
            for taken in job.taken
        )

    def _is_bound(self, job: _Job, row: int, taken: _Taken, volume: PersistentVolume) -> bool:
        told = self._objects.told(key_of(volume))
        if told is None or not isinstance(told.item, PersistentVolume):
            _fail(f'failed to check binding: persistentvolumes "{volume.metadata.name}" not found')
        claim, _ = self._claim(taken, "failed to check binding")
        if is_older(told.version, taken.written):
            return False
        self._check_reach(told.item, job, row)
        ref = told.item.spec.claim_ref
        if ref is None or not ref.uid:
            _fail(f'ClaimRef got reset for pv "{volume.metadata.name}"')
        return _is_fully_bound(claim)

    def _is_provisioned(self, job: _Job, row: int, taken: _Taken) -> bool:
        claim, version = self._claim(taken, "failed to check provisioning pvc")
        if is_older(version, taken.written):
            return False
        name, annotations = claim.metadata.name, claim.metadata.annotations
        if not annotations:
            _fail(f'selectedNode annotation reset for PVC "{name}"')
        if annotations.get(SELECTED_NODE) != job.node_name:
            _fail(f'provisioning failed for PVC "{name}"')
        if claim.spec.volume_name:
            told = self._objects.told(("PersistentVolume", "", claim.spec.volume_name))
            if told is None or not isinstance(told.item, PersistentVolume):
                return False  # its event is yet to come
            self._check_reach(told.item, job, row)
        return _is_fully_bound(claim)

    def _claim(self, taken: _Taken, doing: str) -> tuple[PersistentVolumeClaim, str]:
        meta = taken.claim.metadata
        told = self._objects.told(key_of(taken.claim))
        if (
            told is None
            or not isinstance(told.item, PersistentVolumeClaim)
            or told.item.metadata.uid != meta.uid
        ):
            _fail(f'{doing}: persistentvolumeclaims "{meta.namespace}/{meta.name}" not found')
        return told.item, told.version

    def _check_reach(self, volume: PersistentVolume, job: _Job, row: int) -> None:
        if not is_reached(volume, self._cluster, row, job.plugin.rules):
            what = f'pv "{volume.metadata.name}" node affinity doesn\'t match node "{job.node_name}"'
            _fail(f"{what}: no matching NodeSelectorTerms")


def _prebound(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """Return a volume that names a claim, and says that the user has not made it so."""
    bound = bound_to(volume, claim)
    meta = volume.metadata
    if volume.spec.claim_ref is not None or BOUND_BY_CONTROLLER in meta.annotations:
        return bound
    annotations = meta.annotations | {BOUND_BY_CONTROLLER: "yes"}
    return msgspec.structs.replace(bound, metadata=msgspec.structs.replace(meta, annotations=annotations))


def _is_so(
    now: PersistentVolume | PersistentVolumeClaim, wanted: PersistentVolume | PersistentVolumeClaim
) -> bool:
    """Tell whether an object is as it shall be already."""
    if now.metadata.uid != wanted.metadata.uid:
        return False
    if isinstance(now, PersistentVolume) and isinstance(wanted, PersistentVolume):
        return now.spec.claim_ref == wanted.spec.claim_ref
    return now.metadata.annotations.get(SELECTED_NODE) == wanted.metadata.annotations[SELECTED_NODE]


def _path_of(item: PersistentVolume | PersistentVolumeClaim) -> str:
    if isinstance(item, PersistentVolume):
        return f"/api/v1/persistentvolumes/{item.metadata.name}"
    return f"/api/v1/namespaces/{item.metadata.namespace}/persistentvolumeclaims/{item.metadata.name}"


def _is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations


def _fail(why: str) -> NoReturn:
    raise PrepareError(f"binding volumes: {why}")
