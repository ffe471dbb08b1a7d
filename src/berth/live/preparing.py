"""What has to be done for a pod between its decision and its binding (upstream's Reserve and PreBind)."""

from typing import Protocol

from berth.cluster.cluster import Incoming
from berth.errors import BerthError


class PrepareError(BerthError):
    """A pod can't be made ready for its node; the message is for the pod's event."""


class Preparation(Protocol):
    """One of the things that may have to be done."""

    @property
    def name(self) -> str:
        """What upstream's plugin for it is called."""

    def concerns(self, pod: Incoming) -> bool:
        """Tell whether a pod needs it; asked of every pod, so it has to be quick."""

    def reserve(self, pod: Incoming, node_name: str) -> None:
        """A pod is decided: change the cluster as the pod will, before the next one is."""

    def unreserve(self, pod: Incoming) -> None:
        """A pod is not bound after all: undo what was reserved for it, if anything was."""

    def settle(self, pod: Incoming) -> None:
        """A pod is bound: forget what was reserved for it."""

    async def prepare(self, pod: Incoming, node_name: str) -> None:
        """Make a pod ready for a node; it may take its time.

        Raises
        ------
        PrepareError
            It can't be done.
        """
