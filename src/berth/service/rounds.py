"""What rounds are carried out on: the embedded cluster, or a live one. Knows neither."""

from collections.abc import Callable, Sequence
from typing import Protocol

from berth.cluster.cluster import Cluster
from berth.errors import BerthError
from berth.module.changes import Change
from berth.module.plan import Plan
from berth.service.nodes import ClusterView
from berth.store.interface import OpenRound, RoundResult

Insist = Callable[[Callable[[], None]], None]
"""Does something with the store, again and again until it gets through; `Stopped` if the service ends first."""


class Stopped(BerthError):
    """The service ends."""


class NotReadyError(BerthError):
    """The cluster can't be asked yet, or not now; try again."""


class Rounds(Protocol):
    """A cluster that rounds are decided and carried out on. Any thread may call it, but for the live cluster's own."""

    @property
    def description(self) -> str:
        """Which cluster it is: ``the demo cluster``."""

    @property
    def notice(self) -> str:
        """What the user should know of where its state comes from; empty if there is nothing to say."""

    @property
    def example(self) -> tuple[str, str] | None:
        """Namespace and name of a service of which pods can be added, to try things on; None until it is loaded."""

    @property
    def cluster(self) -> Cluster:
        """The cluster; only its services and workloads may be read.

        Raises
        ------
        NotReadyError
            It is not loaded yet.
        """

    def troubles(self) -> list[str]:
        """Return what keeps rounds from getting on at present; empty if nothing does."""

    def open(self, *, reset: bool = False) -> None:
        """Have the cluster ready for rounds; may take seconds.

        Raises
        ------
        BerthError
            It can't be had.
        """

    def interrupt(self) -> None:
        """End: a round that can be taken up again later is broken off, any other is carried out."""

    def carry_out(self, taken: OpenRound, insist: Insist) -> RoundResult:
        """Carry out a round that the store has begun, from where it stood, and write down its result.

        Raises
        ------
        Stopped
            The service ends before the round does.
        """

    def dry_run(self, number: int, changes: Sequence[Change]) -> Plan:
        """Plan a round on the cluster as it is now, which stays as it is.

        Raises
        ------
        NotReadyError
            The cluster can't be asked now.
        """

    def view(self) -> ClusterView:
        """Look at the nodes.

        Raises
        ------
        NotReadyError
            The cluster can't be asked now.
        """
