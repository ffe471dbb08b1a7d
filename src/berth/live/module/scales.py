"""Workloads' replicas: read as they are now, and written exactly once.

A change is written to the ``scale`` subresource with the resource version that was read, as a field manager of its own: the
API server notes the manager together with the change, so that it can be told afterwards whether it was made.
"""

import uuid
from typing import Literal

import msgspec

from berth.errors import BerthError
from berth.live.api_errors import ApiError, ConflictError
from berth.live.client import ApiClient
from berth.live.module.orders import Journal, Order, Progress, Scaling
from berth.live.resources import RESOURCES
from berth.module.changes import WorkloadName

_MAX_TRIES = 20


class MovedError(BerthError):
    """What was planned can't be done any more: the cluster is not what it was."""


class RefusedError(BerthError):
    """It can't be done, now or again."""


class _Struct(msgspec.Struct, rename="camel"):
    pass


class _Manager(_Struct):
    manager: str = ""
    subresource: str = ""


class _Meta(_Struct):
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    managed_fields: list[_Manager] = []


class _PodSpec(_Struct):
    scheduler_name: str = "default-scheduler"


class _Template(_Struct):
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)


class _RollingUpdate(_Struct):
    partition: int = 0


class _Strategy(_Struct):
    rolling_update: _RollingUpdate | None = None


class _Spec(_Struct):
    replicas: int = 1
    template: _Template = msgspec.field(default_factory=_Template)
    paused: bool = False
    update_strategy: _Strategy | None = None


class _Condition(_Struct):
    type: str = ""
    status: str = ""
    message: str = ""


class _Status(_Struct):
    replicas: int = 0
    updated_replicas: int = 0
    observed_generation: int = 0
    current_revision: str = ""
    update_revision: str = ""
    conditions: list[_Condition] = []


class Seen(_Struct):
    """A workload as the API server has it."""

    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)
    status: _Status = msgspec.field(default_factory=_Status)

    @property
    def replicas(self) -> int:
        """How many pods it is to have."""
        return self.spec.replicas

    @property
    def generation(self) -> int:
        """How often its spec was changed."""
        return self.metadata.generation

    @property
    def is_observed(self) -> bool:
        """Whether its controller knows of the last change."""
        return self.status.observed_generation >= self.generation

    def has(self, scaling: Scaling) -> bool:
        """Tell whether the change was made, and none of the replicas since."""
        return any(m.manager == scaling.mark for m in self.metadata.managed_fields)

    def failure(self) -> str:
        """Return why its controller can't make pods, in the controller's words; empty where it says nothing."""
        failing = [
            c.message for c in self.status.conditions if c.type == "ReplicaFailure" and c.status == "True"
        ]
        return failing[0] if failing else ""


_decoder = msgspec.json.Decoder(Seen)


def path_of(kind: str, namespace: str, name: str) -> str:
    """Return the path of an object of a namespaced kind."""
    head, _, plural = RESOURCES[kind].path.rpartition("/")
    return f"{head}/namespaces/{namespace}/{plural}/{name}"


class Scales:
    """Reads and writes replicas."""

    def __init__(self, client: ApiClient, journal: Journal) -> None:
        self._client = client
        self._journal = journal

    async def read(self, namespace: str, workload: WorkloadName) -> Seen:
        """Return a workload as it is now.

        Raises
        ------
        ObjectMissingError
            It is not there.
        """
        return _decoder.decode(await self._client.get(path_of(workload.kind, namespace, workload.name)))

    async def change(
        self,
        order: Order,
        progress: Progress,
        step: Literal["scaling", "putting_back"],
        generation: int,
        by: int,
    ) -> None:
        """Change an order's replicas, unless that was done before.

        Parameters
        ----------
        step
            Under which name it stands in the progress.
        generation
            Of the workload that the change is meant for.

        Raises
        ------
        MovedError
            Someone else has changed the workload.
        """
        for _ in range(_MAX_TRIES):
            seen = await self.read(order.namespace, order.workload)
            noted: Scaling | None = getattr(progress, step)
            if noted is not None and seen.has(noted):
                return
            if seen.generation != (generation if noted is None else noted.generation):
                raise MovedError(f"{order.workload} was changed by someone else meanwhile")
            if noted is None:
                mark = f"berth-{uuid.uuid4().hex[:16]}"
                noted = Scaling(mark, generation, seen.replicas, max(0, seen.replicas + by))
                setattr(progress, step, noted)
                await self._journal.note(order, progress)
            try:
                await self._write(order, seen, noted)
                return
            except ConflictError:
                continue  # its status was written meanwhile; or ours was, and the answer got lost
        raise MovedError(f"{order.workload} is changed all the time")

    async def _write(self, order: Order, seen: Seen, scaling: Scaling) -> None:
        body = {
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {
                "name": order.name,
                "namespace": order.namespace,
                "uid": seen.metadata.uid,
                "resourceVersion": seen.metadata.resource_version,
            },
            "spec": {"replicas": scaling.after},
        }
        path = path_of(order.kind, order.namespace, order.name)
        await self._client.put(f"{path}/scale?fieldManager={scaling.mark}", body)

    async def why(self, order: Order) -> str:
        """Return why an order's workload makes no pods, as it says itself, else as its latest warning says; or nothing."""
        try:
            seen = await self.read(order.namespace, order.workload)
            return seen.failure() or await self._last_warning(order.namespace, order.controller)
        except ApiError:
            return ""

    async def _last_warning(self, namespace: str, uid: str) -> str:
        query = f"fieldSelector=involvedObject.uid%3D{uid}%2Ctype%3DWarning"
        found = msgspec.json.decode(await self._client.get(f"/api/v1/namespaces/{namespace}/events?{query}"))
        items = found.get("items") or []
        latest = max(items, key=lambda e: e.get("lastTimestamp") or "", default=None)
        return "" if latest is None else str(latest.get("message", ""))
