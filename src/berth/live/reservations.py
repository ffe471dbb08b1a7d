"""The seam through which the scheduling module tells the scheduler of pods whose nodes it has chosen. Knows neither."""

from enum import Enum
from typing import Final, Literal, Protocol

from berth.cluster.cluster import Incoming


class Hold(Enum):
    """What is said of a pod that is not to be decided yet."""

    HOLD = "wait until you are told"


HOLD: Final = Hold.HOLD

Claim = str | Literal[Hold.HOLD] | None
"""The name of the node that is reserved for a pod, `HOLD`, or None: the pod is nobody's, decide as ever."""


class Reservations(Protocol):
    """Who has reserved nodes for pods that are yet to come. Called on the event loop's thread; must not wait."""

    def claim(self, pod: Incoming) -> Claim:
        """Say what is to be done with a pod that is about to be decided.

        Where a node is named, what was kept free for the pod there has been given back to the cluster by the time this
        returns: the scheduler assumes the pod itself, and asks no filter. A pod that is held waits until
        `berth.live.scheduler.LiveScheduler.release` is called for it.
        """

    def settled(self, uid: str, *, is_bound: bool) -> None:
        """Hear what has become of a pod that was claimed: bound where it was to be, or not (it is claimed again then)."""


class NoReservations:
    """Nobody has reserved anything."""

    def claim(self, pod: Incoming) -> Claim:
        """Return None."""
        return None

    def settled(self, uid: str, *, is_bound: bool) -> None:
        """Do nothing."""
