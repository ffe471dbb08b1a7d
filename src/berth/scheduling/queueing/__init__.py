"""The pods that wait: which is next, which has to wait for what, and what wakes it.

Source: 1.36, ``pkg/scheduler/backend/queue``, with its default gates (SchedulerQueueingHints, SchedulerPopFromBackoffQ).
Time is passed in, in seconds; it may be any clock that only goes on.
"""

from berth.scheduling.queueing.backoff import Backoff
from berth.scheduling.queueing.hints import Gate, Hints, SchedulingGates
from berth.scheduling.queueing.nominator import Nominated, Nominator
from berth.scheduling.queueing.pod import Place, QueuedPod
from berth.scheduling.queueing.queue import SchedulingQueue

__all__ = [
    "Backoff", "Gate", "Hints", "Nominated", "Nominator", "Place", "QueuedPod", "SchedulingGates", "SchedulingQueue",
]  # fmt: skip
