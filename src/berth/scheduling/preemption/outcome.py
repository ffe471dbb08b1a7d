"""What preemption decides, in upstream's words."""

from collections.abc import Mapping
from dataclasses import dataclass

from berth.cluster.cluster import Incoming

NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."
NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_VICTIMS = "No preemption victims found for incoming pod"


@dataclass(frozen=True, slots=True)
class Nomination:
    """A pod that waits for room on a node which it was promised."""

    pod: Incoming
    node_name: str


@dataclass(frozen=True, slots=True)
class Preemption:
    """Pods have to go from a node, so that the pod can come there.

    Attributes
    ----------
    row : int
        The node that the pod is nominated for.
    victims : tuple of pod id
        The most important one first. Those that are terminating already are among them.
    n_violations : int
        How many of them a PodDisruptionBudget had rather kept.
    cleared : tuple of Nomination
        Less important pods that were promised room on the node: they lose their nominations.
    """

    row: int
    victims: tuple[int, ...]
    n_violations: int
    cleared: tuple[Nomination, ...] = ()


@dataclass(frozen=True, slots=True)
class NotPreempted:
    """Nobody goes; ``str()`` is what the pod's condition says after the reasons of the filters.

    Attributes
    ----------
    clears_nomination : bool
        Whether the pod loses its own nomination.
    """

    message: str
    clears_nomination: bool = False

    def __str__(self) -> str:
        return f"preemption: {self.message}"


def no_candidate(n_nodes: int, reasons: Mapping[str, int]) -> NotPreempted:
    """Say why no node can be made to take the pod; ``reasons`` are of the nodes that were tried."""
    counts = dict(reasons)
    parts = ", ".join(sorted(f"{count} {reason}" for reason, count in counts.items()))
    return NotPreempted(f"0/{n_nodes} nodes are available: {parts}.", clears_nomination=True)


def failure(errors: list[str]) -> NotPreempted:
    """Say which errors the filters met, each once; as upstream joins errors."""
    distinct = list(dict.fromkeys(errors))
    return NotPreempted(distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]")
