"""What every order is carried out with."""

from collections.abc import Collection
from dataclasses import dataclass

from berth.cluster.cluster import Cluster
from berth.live.client import ApiClient
from berth.live.module.expected import ExpectedPods
from berth.live.module.orders import Journal, Order, Outcome
from berth.live.module.scales import Scales
from berth.live.module.watching import Patience, Watching


@dataclass(frozen=True, slots=True)
class Tools:
    """The cluster as it is seen, the ways to change it, and where to write down what is about to be done.

    Attributes
    ----------
    scheduler_names : collection of str
        Those under which Berth schedules: pods that name another can't be placed or held.
    """

    cluster: Cluster
    client: ApiClient
    scales: Scales
    expected: ExpectedPods
    watching: Watching
    journal: Journal
    patience: Patience
    scheduler_names: Collection[str]

    def foreign(self, scheduler_name: str) -> bool:
        """Tell whether pods of this scheduler are none of ours."""
        return scheduler_name not in self.scheduler_names

    @property
    def own_name(self) -> str:
        """The name that pods should give."""
        return next(iter(self.scheduler_names))


def all_failed(order: Order, reason: str, *, again: bool) -> list[Outcome]:
    """Return the outcomes of an order of which nothing was done."""
    return [Outcome(reason=reason, again=again) for _ in order.decisions]
