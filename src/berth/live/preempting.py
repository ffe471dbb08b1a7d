"""Carries out what preemption has decided: victims are told and deleted, less important nominations are cleared.

Source: 1.36, ``framework/preemption/executor.go``.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
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
from berth.live.recorder import Recorder, Reference
from berth.live.statuses import utc_now
from berth.objects.pod_records import DISRUPTION_TARGET, PREEMPTION_BY_SCHEDULER
from berth.scheduling.turns import scheduler_of

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Eviction:
    """A pod, its node to be, and those who have to make room there."""

    pod: Incoming
    node_name: str
    victims: tuple[Reference, ...]


class Preemptor:
    """Deletes victims.

    Parameters
    ----------
    on_failed : callable
        Told the uid of a pod for which not all victims could be deleted.
    """

    def __init__(
        self,
        client: ApiClient,
        recorder: Recorder,
        on_failed: Callable[[str], None],
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._client = client
        self._recorder = recorder
        self._on_failed = on_failed
        self._now = now
        self._tasks: set[asyncio.Task[None]] = set()

    def put(self, eviction: Eviction) -> None:
        """Begin to make room for a pod."""
        task = asyncio.create_task(self._carry_out(eviction), name="preemption")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def drain(self, timeout_s: float) -> bool:
        """Wait until all that was begun is done; False if that takes longer."""
        if not self._tasks:
            return True
        _, left = await asyncio.wait(self._tasks, timeout=timeout_s)
        return not left

    async def stop(self) -> None:
        """End at once."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _carry_out(self, eviction: Eviction) -> None:
        victims: Sequence[Reference] = eviction.victims
        deleted = await asyncio.gather(*(self._delete(victim, eviction) for victim in victims))
        if not all(deleted):
            self._on_failed(eviction.pod.uid)

    async def _delete(self, victim: Reference, eviction: Eviction) -> bool:
        """Delete a victim; tell whether it is gone or going."""
        path = f"/api/v1/namespaces/{victim.namespace}/pods/{victim.name}"
        try:
            await self._client.patch(
                f"{path}/status", self._disrupted(victim, eviction.pod), STRATEGIC_PATCH, repeat=Repeat.FREELY
            )
            await self._client.delete(path, {"preconditions": {"uid": victim.uid}})
        except (ObjectMissingError, ConflictError):
            return True  # another pod has its name by now, or none
        except (ApiError, ConnectionLostError, CredentialsError) as error:
            log.warning("pod %s/%s can't be preempted: %s", victim.namespace, victim.name, error)
            return False
        self._recorder.preempted(victim, eviction.pod, eviction.node_name)
        return True

    def _disrupted(self, victim: Reference, pod: Incoming) -> dict[str, Any]:
        condition = {
            "type": DISRUPTION_TARGET,
            "status": "True",
            "reason": PREEMPTION_BY_SCHEDULER,
            "message": f"{scheduler_of(pod)}: preempting to accommodate a higher priority pod",
            "lastProbeTime": None,
            "lastTransitionTime": self._now().strftime("%Y-%m-%dT%H:%M:%SZ"),
        }
        return {"metadata": {"uid": victim.uid}, "status": {"conditions": [condition]}}
