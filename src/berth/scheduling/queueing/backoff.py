"""How long a pod that has failed has to wait.

Source: 1.36, ``backend/queue/backoff_queue.go``.
"""

import math
from dataclasses import dataclass

from berth.scheduling.queueing.pod import QueuedPod

NEVER = -math.inf
WINDOW = 1.0
"""Waits end at whole seconds, so that of the pods whose waits end together the one of the highest priority is next. [s]"""


@dataclass(frozen=True, slots=True)
class Backoff:
    """How waits grow.

    Attributes
    ----------
    initial, longest : float
        The wait after the first failure, doubled after each one more, and where that ends; without a longest one (0)
        nobody waits. [s]
    """

    initial: float = 1.0
    longest: float = 10.0

    def ends(self, pod: QueuedPod) -> float:
        """Return when a pod's wait is over, `NEVER` if it has none. [s]

        It is counted from its last failure: by errors in a row if that was one, else by all times that no node took it.
        """
        count = pod.consecutive_errors or pod.unschedulable_count
        if not self.longest or not count:
            return NEVER
        # An exponent as large as the number of failures would be too large for a float.
        wait = self.initial * 2.0 ** min(count - 1, 64)
        return math.floor((pod.timestamp + min(wait, self.longest)) / WINDOW) * WINDOW

    def is_waiting(self, pod: QueuedPod, now: float) -> bool:
        """Tell whether a pod still waits; it does until the window in which its wait ends is over."""
        return self.ends(pod) >= math.floor(now / WINDOW) * WINDOW

    def order(self, pod: QueuedPod) -> tuple[float, int, float, int]:
        """Return what pods that wait are sorted by: the end of the wait, then as when they are active."""
        return (self.ends(pod), *pod.order)
