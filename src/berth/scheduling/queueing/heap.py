"""A heap from which any pod can be taken out."""

from collections.abc import Callable
from heapq import heapify, heappop, heappush

from berth.scheduling.queueing.pod import QueuedPod

Key = tuple[float, ...]


class PodHeap:
    """Pods by a key, smallest first. A pod that is taken out leaves its entry behind, to be passed over later."""

    def __init__(self, key: Callable[[QueuedPod], Key]) -> None:
        self._key = key
        self._entries: list[tuple[Key, str]] = []
        self._pods: dict[str, tuple[Key, QueuedPod]] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def put(self, pod: QueuedPod) -> None:
        """Add a pod, or find it its place anew."""
        key = self._key(pod)
        known = self._pods.get(pod.uid)
        self._pods[pod.uid] = (key, pod)
        if known is None or known[0] != key:
            heappush(self._entries, (key, pod.uid))
        if len(self._entries) > 2 * len(self._pods) + 64:
            self._entries = [(key, uid) for uid, (key, _) in self._pods.items()]
            heapify(self._entries)

    def remove(self, pod: QueuedPod) -> None:
        """Take a pod out."""
        del self._pods[pod.uid]

    def first(self) -> QueuedPod | None:
        """Return the pod with the smallest key; it stays."""
        while self._entries:
            key, uid = self._entries[0]
            known = self._pods.get(uid)
            if known is not None and known[0] == key:
                return known[1]
            heappop(self._entries)
        return None
