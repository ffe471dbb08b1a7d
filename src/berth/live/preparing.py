"""What has to be done for a pod between its decision and its binding (upstream's Reserve, PreBind and Unreserve)."""

from typing import Protocol

from berth.cluster.cluster import Incoming
from berth.errors import BerthError


class PrepareError(BerthError):
    """A pod can't be made ready for its node; the message is for the pod's event."""


class Preparation(Protocol):
    """One of the things that may have to be done."""

    name: str

    def concerns(self, pod: Incoming) -> bool:
        """Tell whether a pod needs it; asked of every pod, so it has to be quick.

        Such a pod is decided alone: the next one sees what it has taken.
        """

    def reserve(self, pod: Incoming, node_name: str) -> None:
        """Take what a pod needs on its node; called right after the decision. Each is answered by `settled`."""

    async def prepare(self, pod: Incoming, node_name: str) -> None:
        """Make a pod ready for a node; it may take its time.

        Raises
        ------
        PrepareError
            It can't be done.
        """

    def settled(self, uid: str, *, is_bound: bool) -> None:
        """Hear what has become of a pod: bound, or not, and what was taken for it is to be given back."""
