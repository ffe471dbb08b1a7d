"""What Berth writes into the status of pods that wait: why they are not scheduled, and where room is made for them.

Source: 1.36, ``schedule_one.go`` (``updatePod``): patched only where it changes.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from berth.cluster.cluster import Incoming
from berth.live.api_errors import (
    ApiError,
    ConflictError,
    ConnectionLostError,
    CredentialsError,
    ObjectMissingError,
)
from berth.live.client import STRATEGIC_PATCH, ApiClient, Repeat
from berth.live.intake import Waiting
from berth.live.workers import Workers

log = logging.getLogger(__name__)

_N_WORKERS = 8
_MANY = 1000


def utc_now() -> datetime:
    """Return what time it is."""
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class Status:
    """What a pod's status shall say.

    Attributes
    ----------
    reason, message : str
        Of the condition PodScheduled=False; both empty if it is not to be changed.
    nominated_node : str or None
        Empty for none; None if it is not to be changed.
    """

    reason: str
    message: str
    nominated_node: str | None


class StatusWriter:
    """Writes pods' status; of several things to write of one pod the last one is.

    Parameters
    ----------
    waiting : dict of uid to Waiting
        The pods that wait; nothing is written of others.
    """

    def __init__(
        self,
        client: ApiClient,
        waiting: Mapping[str, Waiting],
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._client = client
        self._waiting = waiting
        self._now = now
        self._written: dict[str, Status] = {}
        self._wanted: dict[str, tuple[Incoming, Status]] = {}
        self._workers: Workers[str] = Workers("status", self._write, _N_WORKERS)

    def start(self) -> None:
        """Begin to write."""
        self._workers.start()

    async def drain(self, timeout_s: float) -> bool:
        """Wait until all is written; False if that takes longer."""
        return await self._workers.drain(timeout_s)

    async def stop(self) -> None:
        """End at once."""
        await self._workers.stop()

    def put(self, pod: Incoming, status: Status) -> None:
        """Have a pod's status say something."""
        if pod.uid not in self._wanted:
            self._workers.put(pod.uid)
        self._wanted[pod.uid] = (pod, status)

    def forget(self, uid: str) -> None:
        """A pod is bound or gone."""
        self._written.pop(uid, None)

    async def _write(self, uid: str) -> None:
        pod, status = self._wanted.pop(uid)
        waiting, written = self._waiting.get(uid), self._written.get(uid)
        if waiting is None or status == written:
            return
        self._written[uid] = status
        if len(self._written) > 2 * len(self._waiting) + _MANY:
            self._written = {uid: status for uid, status in self._written.items() if uid in self._waiting}
        body = self._body(pod, status, waiting, is_told=waiting.is_told or bool(written and written.reason))
        path = f"/api/v1/namespaces/{pod.namespace}/pods/{pod.name}/status"
        try:
            await self._client.patch(path, body, STRATEGIC_PATCH, repeat=Repeat.FREELY)
        except (ObjectMissingError, ConflictError):
            self._written.pop(uid, None)  # another pod by now, or none
        except (ApiError, ConnectionLostError, CredentialsError) as error:
            self._written.pop(uid, None)
            log.warning("the status of pod %s/%s can't be written: %s", pod.namespace, pod.name, error)

    def _body(self, pod: Incoming, status: Status, waiting: Waiting, *, is_told: bool) -> dict[str, Any]:
        said: dict[str, Any] = {}
        if status.reason:
            condition = {
                "type": "PodScheduled",
                "status": "False",
                "reason": status.reason,
                "message": status.message,
                "observedGeneration": waiting.generation,
                "lastProbeTime": None,
            }
            if not is_told:
                condition["lastTransitionTime"] = self._now().strftime("%Y-%m-%dT%H:%M:%SZ")
            said["conditions"] = [condition]
        if status.nominated_node is not None:
            said["nominatedNodeName"] = status.nominated_node or None
        return {"metadata": {"uid": pod.uid}, "status": said}
