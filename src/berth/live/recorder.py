"""Events about pods, as upstream words and types them. Nobody waits for them; when they are too many, some are dropped.

Source: 1.36, client-go's ``tools/events`` (names, series), ``schedule_one.go`` and ``framework/preemption/executor.go``.
"""

import contextlib
import logging
import socket
import time
import uuid
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

from berth.cluster.cluster import Incoming
from berth.live.api_errors import (
    ApiError,
    ConflictError,
    ConnectionLostError,
    CredentialsError,
    ObjectMissingError,
)
from berth.live.client import ApiClient, Repeat
from berth.live.workers import Workers
from berth.scheduling.turns import scheduler_of

log = logging.getLogger(__name__)

NOTE_BYTES = 1024
_MAX_NAME = 253
_SERIES_S = 360.0
_MOST_SERIES = 4096
_TROUBLE = (ApiError, ConnectionLostError, CredentialsError)


@dataclass(frozen=True, slots=True)
class Reference:
    """A pod that an event is about."""

    namespace: str
    name: str
    uid: str

    @classmethod
    def of(cls, pod: Incoming) -> "Reference":
        """Return a pod's."""
        return cls(pod.namespace, pod.name, pod.uid)

    def as_json(self) -> dict[str, str]:
        """Return it as the API has it."""
        return {
            "kind": "Pod",
            "apiVersion": "v1",
            "namespace": self.namespace,
            "name": self.name,
            "uid": self.uid,
        }


@dataclass(frozen=True, slots=True)
class Told:
    """Something that has happened to a pod.

    Attributes
    ----------
    controller : str
        The scheduler's name that the pod gives.
    at : float
        Seconds since 1970.
    """

    regarding: Reference
    controller: str
    type: str
    reason: str
    action: str
    note: str
    at: float
    related: Reference | None = None


@dataclass(slots=True)
class _Series:
    name: str
    count: int
    at: float


class Recorder:
    """Writes events.

    An event that repeats one of the last six minutes becomes a count in that one (``series``); upstream writes such counts
    every half hour.

    Parameters
    ----------
    most : int
        So many may wait to be written.
    on_dropped : callable
        Told of every event that is not written.
    """

    def __init__(
        self,
        client: ApiClient,
        *,
        most: int = 10_000,
        n_workers: int = 16,
        on_dropped: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._client = client
        self._most = most
        self._on_dropped = on_dropped
        self._clock = clock
        self._instance_suffix = socket.gethostname()
        self._last_ns = 0
        self._series: OrderedDict[tuple[str, str, str], _Series] = OrderedDict()
        self._workers: Workers[Told] = Workers("recorder", self._write, n_workers)

    @property
    def n_waiting(self) -> int:
        """How many events wait to be written."""
        return self._workers.n_waiting

    def start(self) -> None:
        """Begin to write."""
        self._workers.start()

    async def drain(self, timeout_s: float) -> bool:
        """Wait until all is written; False if that takes longer."""
        return await self._workers.drain(timeout_s)

    async def stop(self) -> None:
        """End at once."""
        await self._workers.stop()

    def scheduled(self, pod: Incoming, node_name: str) -> None:
        """Tell that a pod is bound."""
        note = f"Successfully assigned {pod.namespace}/{pod.name} to {node_name}"
        self._tell(Reference.of(pod), scheduler_of(pod), "Normal", "Scheduled", "Binding", note)

    def failed(self, pod: Incoming, message: str) -> None:
        """Tell that a pod was not scheduled."""
        self._tell(
            Reference.of(pod),
            scheduler_of(pod),
            "Warning",
            "FailedScheduling",
            "Scheduling",
            shortened(message),
        )

    def preempted(self, victim: Reference, pod: Incoming, node_name: str) -> None:
        """Tell that a pod had to go for another one."""
        note = f"Preempted by pod {pod.uid} on node {node_name}"
        self._tell(
            victim, scheduler_of(pod), "Normal", "Preempted", "Preempting", note, related=Reference.of(pod)
        )

    def _tell(
        self,
        regarding: Reference,
        controller: str,
        type_: str,
        reason: str,
        action: str,
        note: str,
        *,
        related: Reference | None = None,
    ) -> None:
        if self._workers.n_waiting >= self._most:
            self._on_dropped()
            return
        self._workers.put(Told(regarding, controller, type_, reason, action, note, self._clock(), related))

    async def _write(self, told: Told) -> None:
        try:
            if told.type == "Normal" or not await self._count(told):
                await self._post(told)
        except _TROUBLE as error:
            log.debug("an event is not written: %s", error)
            self._on_dropped()

    async def _count(self, told: Told) -> bool:
        """Count an event in the one that it repeats; False if there is none."""
        key = (told.regarding.uid, told.reason, told.controller)
        series = self._series.get(key)
        if series is None or told.at - series.at > _SERIES_S:
            return False
        series.count, series.at = series.count + 1, told.at
        body = {"series": {"count": series.count, "lastObservedTime": _micro_time(told.at)}}
        try:
            await self._client.patch(f"{_path(told)}/{series.name}", body, repeat=Repeat.FREELY)
        except ObjectMissingError:
            self._series.pop(key, None)
            return False
        return True

    async def _post(self, told: Told) -> None:
        name = self._name(told.regarding.name)
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": told.regarding.namespace},
            "eventTime": _micro_time(told.at),
            "reportingController": told.controller,
            "reportingInstance": f"{told.controller}-{self._instance_suffix}"[:128],
            "action": told.action,
            "reason": told.reason,
            "type": told.type,
            "note": told.note,
            "regarding": told.regarding.as_json(),
        }
        if told.related is not None:
            body["related"] = told.related.as_json()
        with contextlib.suppress(ConflictError):  # a first attempt has been carried out
            await self._client.post(_path(told), body, repeat=Repeat.FREELY)
        if told.type != "Normal":
            key = (told.regarding.uid, told.reason, told.controller)
            self._series[key] = _Series(name, 1, told.at)
            self._series.move_to_end(key)
            if len(self._series) > _MOST_SERIES:
                self._series.popitem(last=False)

    def _name(self, pod_name: str) -> str:
        """Return a name that no other event has."""
        self._last_ns = max(self._last_ns + 1, int(self._clock() * 1e9))
        name = f"{pod_name}.{self._last_ns:x}"
        return name if len(name) <= _MAX_NAME else str(uuid.uuid4())


def shortened(message: str) -> str:
    """Return a message that is no longer than notes may be."""
    data = message.encode()
    if len(data) <= NOTE_BYTES:
        return message
    return data[: NOTE_BYTES - 4].decode("utf-8", "ignore") + " ..."


def _path(told: Told) -> str:
    return f"/apis/events.k8s.io/v1/namespaces/{told.regarding.namespace}/events"


def _micro_time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
