"""Binds pods to the nodes that were decided on, many at once, and finds out what became of those that nobody answered for.

Source: 1.36, ``schedule_one.go`` (``bindingCycle``) and ``plugins/defaultbinder``.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from berth.cluster.arrays import NONE
from berth.live.api_errors import (
    ApiError,
    ConflictError,
    ConnectionLostError,
    CredentialsError,
    ObjectMissingError,
)
from berth.live.client import ApiClient
from berth.live.preparing import Preparation, PrepareError
from berth.live.state import ClusterState
from berth.live.workers import Workers
from berth.scheduling.queueing import QueuedPod

log = logging.getLogger(__name__)

_TROUBLE = (ApiError, ConnectionLostError, CredentialsError, msgspec.DecodeError)
_ASK_AGAIN_S = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Binding:
    """A pod that is to be bound.

    Attributes
    ----------
    began : float
        When it was taken from the queue. [monotonic seconds]
    is_claimed : bool
        Whether its node was reserved for it.
    """

    queued: QueuedPod
    node_name: str
    began: float
    is_claimed: bool = False

    @property
    def uid(self) -> str:
        """The pod's uid."""
        return self.queued.uid

    @property
    def path(self) -> str:
        """The pod's path."""
        pod = self.queued.pod
        return f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}"


@dataclass(frozen=True, slots=True)
class BinderLimits:
    """How much at once, and for how long.

    Attributes
    ----------
    at_once : int
        Requests under way.
    unconfirmed_s : float
        After so long without a word from the watch the API server is asked for a pod that was bound.
    """

    at_once: int = 32
    unconfirmed_s: float = 60.0


class _Meta(msgspec.Struct):
    uid: str = ""


class _Spec(msgspec.Struct, rename="camel"):
    node_name: str = ""


class _Pod(msgspec.Struct):
    metadata: _Meta
    spec: _Spec = msgspec.field(default_factory=_Spec)


_pod_decoder = msgspec.json.Decoder(_Pod)


class Binder:
    """Posts bindings. Every one that is put is answered for once: bound, failed, or of no account any more.

    Parameters
    ----------
    on_bound : callable
        Told of a pod that is bound where it was decided to be, and how many seconds that took.
    on_failed : callable
        Told of a pod that could not be bound, and why, in words; it counts on its node no longer.
    on_gone : callable
        Told of a pod that somebody else has bound or deleted; likewise.
    """

    def __init__(
        self,
        client: ApiClient,
        state: ClusterState,
        *,
        on_bound: Callable[[Binding, float], None],
        on_failed: Callable[[Binding, str], None],
        on_gone: Callable[[Binding], None],
        preparations: Sequence[Preparation] = (),
        limits: BinderLimits | None = None,
    ) -> None:
        self._client = client
        self._state = state
        self._on_bound, self._on_failed, self._on_gone = on_bound, on_failed, on_gone
        self._preparations = preparations
        self._limits = limits or BinderLimits()
        self._preparing: set[asyncio.Task[None]] = set()
        self._unconfirmed: dict[str, tuple[Binding, float]] = {}
        self._workers: Workers[Binding] = Workers("binder", self._bind, self._limits.at_once)

    @property
    def n_waiting(self) -> int:
        """How many pods wait for a request to be free; those that are made ready are not among them."""
        return self._workers.n_waiting

    @property
    def n_under_way(self) -> int:
        """How many requests are under way."""
        return self._workers.n_under_way

    @property
    def n_preparing(self) -> int:
        """How many pods are being made ready."""
        return len(self._preparing)

    def start(self) -> None:
        """Begin to bind."""
        self._workers.start()

    async def drain(self, timeout_s: float) -> bool:
        """Wait until all that was put is answered for; False if that takes longer."""
        return await self._workers.drain(timeout_s) and not self._preparing

    async def stop(self) -> None:
        """End at once."""
        for task in self._preparing:
            task.cancel()
        await asyncio.gather(*self._preparing, return_exceptions=True)
        await self._workers.stop()

    def put(self, binding: Binding) -> None:
        """Have a pod bound, which counts on its node already (`ClusterState.expect`)."""
        pod = binding.queued.pod
        wanted = [p for p in self._preparations if p.concerns(pod)]
        if not wanted:
            self._workers.put(binding)
            return
        task = asyncio.create_task(self._prepare(binding, wanted), name="preparing")
        self._preparing.add(task)
        task.add_done_callback(self._preparing.discard)

    async def confirm(self) -> None:
        """Ask for the pods that were bound long ago and that no watch has told of; to be called now and then."""
        now = time.monotonic()
        late = []
        for uid, (binding, since) in list(self._unconfirmed.items()):
            if not self._state.is_expected(uid):
                del self._unconfirmed[uid]
            elif now - since > self._limits.unconfirmed_s:
                self._unconfirmed[uid] = (binding, now)
                late.append(binding)
        for binding in late:
            if not await self._is_bound(binding) and self._state.give_up(binding.uid):
                log.warning("%s: bound to %s, and is not there any more", binding.path, binding.node_name)
                self._unconfirmed.pop(binding.uid, None)

    async def _prepare(self, binding: Binding, wanted: Sequence[Preparation]) -> None:
        for preparation in wanted:
            try:
                await preparation.prepare(binding.queued.pod, binding.node_name)
            except Exception as error:
                if not isinstance(error, PrepareError):
                    log.exception("%s: unexpected failure before binding", binding.path)
                self._fail(binding, f'running PreBind plugin "{preparation.name}": {error}')
                return
        self._workers.put(binding)

    async def _bind(self, binding: Binding) -> None:
        if not self._state.is_expected(binding.uid):
            self._on_gone(binding)  # the watch has told of it meanwhile
            return
        if self._state.cluster.nodes.row(binding.node_name) == NONE:
            self._fail(binding, f'node "{binding.node_name}" is gone')
            return
        pod, began = binding.queued.pod, time.monotonic()
        body = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"namespace": pod.namespace, "name": pod.name, "uid": pod.uid},
            "target": {"kind": "Node", "name": binding.node_name},
        }
        try:
            await self._client.post(f"{binding.path}/binding", body)
        except _TROUBLE as error:
            await self._settle(binding, error, began)
            return
        self._succeed(binding, began)

    async def _settle(self, binding: Binding, error: Exception, began: float) -> None:
        """Find out what has become of a binding that was answered by an error, or not at all."""
        if isinstance(error, ObjectMissingError):
            self._go(binding)
        elif not _may_be_done(error):
            self._fail(binding, f'running Bind plugin "DefaultBinder": {_words(error)}')
        elif await self._is_bound(binding):
            self._succeed(binding, began)
        elif isinstance(error, ConflictError) and not await self._is_free(binding):
            self._go(binding)
        else:
            self._fail(binding, f'running Bind plugin "DefaultBinder": {_words(error)}')

    def _succeed(self, binding: Binding, began: float) -> None:
        now = time.monotonic()
        if self._state.is_expected(binding.uid):
            self._unconfirmed[binding.uid] = (binding, now)
        self._on_bound(binding, now - began)

    def _fail(self, binding: Binding, why: str) -> None:
        self._state.give_up(binding.uid)
        self._on_failed(binding, why)

    def _go(self, binding: Binding) -> None:
        self._state.give_up(binding.uid)
        self._on_gone(binding)

    async def _is_bound(self, binding: Binding) -> bool:
        """Find out whether a pod is on the node that was decided."""
        found = await self._find(binding)
        return found is not None and found.spec.node_name == binding.node_name

    async def _is_free(self, binding: Binding) -> bool:
        """Find out whether a pod is there and without a node."""
        found = await self._find(binding)
        return found is not None and not found.spec.node_name

    async def _find(self, binding: Binding) -> _Pod | None:
        """Return a pod as it is; None if it is gone. Asks until somebody has an answer, be it the watch."""
        while self._state.is_expected(binding.uid):
            try:
                found = _pod_decoder.decode(await self._client.get(binding.path))
            except ObjectMissingError:
                return None
            except _TROUBLE as error:
                log.warning("%s: %s", binding.path, error)
                await asyncio.sleep(_ASK_AGAIN_S)
            else:
                return found if found.metadata.uid == binding.uid else None
        return self._seen(binding)

    def _seen(self, binding: Binding) -> _Pod | None:
        """Return a pod as the watch has told of it."""
        cluster, pod = self._state.cluster, binding.queued.pod
        known = cluster.pods.find(pod.namespace_id, pod.name)
        if known == NONE or cluster.pods.uids[known] != binding.uid:
            return None
        node_name_id = cluster.pods.get(known).node_name_id
        name = cluster.pods.node_names.items[node_name_id] if node_name_id != NONE else ""
        return _Pod(_Meta(binding.uid), _Spec(name))


def _may_be_done(error: Exception) -> bool:
    """Tell whether a binding that met an error may be there."""
    if isinstance(error, ConnectionLostError):
        return error.was_sent
    return isinstance(error, ConflictError) or (isinstance(error, ApiError) and error.status >= 500)


def _words(error: Exception) -> str:
    return error.message if isinstance(error, ApiError) else str(error)
