"""Pods for which room was made on a node: they count as if they were there, for pods that are not more important.

Source: 1.36, ``backend/queue/nominator.go`` and ``addNominatedPods`` of ``framework/runtime/framework.go``.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from berth.cluster.arrays import NONE
from berth.cluster.cluster import Incoming


@dataclass(frozen=True, slots=True)
class Nominated:
    """A pod and the node that it was nominated for."""

    pod: Incoming
    node: str

    @property
    def priority(self) -> int:
        """The pod's priority."""
        return self.pod.info.spec.priority or 0


class Nominator:
    """The nominated pods, by uid and by node."""

    def __init__(self) -> None:
        self._by_uid: dict[str, Nominated] = {}
        self._by_node: dict[str, dict[str, Nominated]] = {}

    def __len__(self) -> int:
        return len(self._by_uid)

    def __iter__(self) -> Iterator[Nominated]:
        """Iterate over all, in the order in which they were nominated."""
        return iter(self._by_uid.values())

    def node_of(self, uid: str) -> str:
        """Return the node for which a pod is nominated, empty if for none."""
        nominated = self._by_uid.get(uid)
        return nominated.node if nominated else ""

    def put(self, pod: Incoming, node: str) -> None:
        """Nominate a pod for a node, in place of the one that it was nominated for; for none, if the name is empty."""
        self.remove(pod.uid)
        if node:
            nominated = self._by_uid[pod.uid] = Nominated(pod, node)
            self._by_node.setdefault(node, {})[pod.uid] = nominated

    def update(self, pod: Incoming, before: str, after: str) -> None:
        """A pod was updated; its status said one node before, and says another one, or none, now.

        A pod that was nominated a moment ago, and whose status does not say so yet, stays nominated.
        """
        kept = "" if before or after else self.node_of(pod.uid)
        self.put(pod, after or kept)

    def remove(self, uid: str) -> None:
        """A pod is gone, or counts as a pod on its node from now on."""
        nominated = self._by_uid.pop(uid, None)
        if nominated is None:
            return
        on_node = self._by_node[nominated.node]
        del on_node[uid]
        if not on_node:
            del self._by_node[nominated.node]

    def on_node(self, node: str) -> tuple[Nominated, ...]:
        """Return the pods that are nominated for a node, in the order in which they were."""
        return tuple(self._by_node.get(node, {}).values())

    def beside(self, pod: Incoming, row_of: Callable[[str], int]) -> dict[int, tuple[Incoming, ...]]:
        """Return the pods that have to be counted, by row, when a pod is decided: others of its priority or a higher one.

        Parameters
        ----------
        row_of : callable
            Gives the row of a node's name (`berth.cluster.nodes.NodeTable.row`), `NONE` for one that is not known.

        A node has to pass the filters with these pods and without them (``RunFilterPluginsWithNominatedPods``): without,
        because they may yet go elsewhere, and the pod may need their company.
        """
        found = {row_of(node): tuple(self._counted(node, pod)) for node in self._by_node}
        return {row: pods for row, pods in found.items() if row != NONE and pods}

    def _counted(self, node: str, pod: Incoming) -> Iterator[Incoming]:
        least = pod.info.spec.priority or 0
        for uid, nominated in self._by_node[node].items():
            if uid != pod.uid and nominated.priority >= least:
                yield nominated.pod
