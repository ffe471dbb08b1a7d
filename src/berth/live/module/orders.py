"""What a round has to do on a real cluster, and how far it has come: written down so that a restart goes on from there.

An order is all that a round adds to one workload, or takes from it. It is written before the plan and never changed; its
progress is written before every step that can't be told from the cluster alone.
"""

from collections.abc import Sequence
from typing import Literal, Protocol

import msgspec
import numpy as np

from berth.cluster.cluster import Cluster
from berth.cluster.pods import TakenPods
from berth.errors import BerthError
from berth.live.module.pods import active_pods
from berth.module.changes import Change, WorkloadName
from berth.module.plan import Planned
from berth.module.rounds import Added, Round
from berth.module.services import controlled_by, controller_of_owners, find_workload, name_of
from berth.module.templates import next_ordinal
from berth.objects.base import OwnerReference

BARE = "Pod"
"""The kind of an order for pods that nobody controls."""


class ChosenPod(msgspec.Struct, frozen=True):
    """A pod that is to go."""

    name: str
    uid: str


class Order(msgspec.Struct, frozen=True, rename="camel"):
    """What is to be done to one workload.

    Attributes
    ----------
    kind, name : str
        Whose replicas change; `BARE` and empty for pods without a controller.
    controller : str
        The uid of what owns the pods: of a Deployment its current ReplicaSet.
    decisions : tuple of int
        Their places in the plan; ``nodes``, ``pod_names`` or ``pods`` stand side by side with them.
    nodes : tuple of str or None
        Of additions: where each new pod is to go; None leaves that to the scheduler.
    pod_names : tuple of str
        Of additions to a StatefulSet, empty otherwise.
    pods : tuple of ChosenPod
        Of removals.
    before : tuple of str
        The uids of the pods that the controller had: all others have come since.
    """

    operation: Literal["add", "remove"]
    namespace: str
    kind: str
    name: str
    controller: str
    decisions: tuple[int, ...]
    nodes: tuple[str | None, ...] = ()
    pod_names: tuple[str, ...] = ()
    pods: tuple[ChosenPod, ...] = ()
    before: tuple[str, ...] = ()

    @property
    def workload(self) -> WorkloadName:
        """Whose replicas change."""
        return WorkloadName(self.kind, self.name)


class Scaling(msgspec.Struct, frozen=True):
    """A change of replicas that is about to be written.

    Attributes
    ----------
    mark : str
        The field manager that it is written as: who finds it in the object knows that it was.
    generation : int
        Of the workload before; it is one more afterwards.
    before, after : int
        Replicas.
    """

    mark: str
    generation: int
    before: int
    after: int


class Outcome(msgspec.Struct, frozen=True, rename="camel"):
    """What became of a decision; ``again`` where it could not be applied any more and may be decided anew."""

    pod: str | None = None
    node: str | None = None
    reason: str | None = None
    again: bool = False


class Progress(msgspec.Struct, rename="camel"):
    """How far an order has come.

    Attributes
    ----------
    scaling, putting_back : Scaling, optional
        The replicas as they are (about to be) written, and what is taken back of that.
    deleting : list of str
        The uids of the pods that are (about to be) deleted or evicted one by one.
    costs : dict of str to int
        The deletion costs that pods had, by uid, where they are (about to be) changed.
    outcomes : list of Outcome
        One a decision, once all is done.
    """

    scaling: Scaling | None = None
    putting_back: Scaling | None = None
    deleting: list[str] = []
    costs: dict[str, int] = {}
    outcomes: list[Outcome] = []


class JournalClosedError(BerthError):
    """Nothing can be written down any more: what is under way has to end where it stands."""


class Journal(Protocol):
    """Where progress is written down."""

    async def note(self, order: Order, progress: Progress) -> None:
        """Write down how far an order has come; durable when this returns.

        Raises
        ------
        JournalClosedError
            The service ends.
        """


def orders_of(decided: Round) -> list[Order]:
    """Return what a round that was decided has to do, removals first; the cluster stands as the round left it."""
    gathered: dict[tuple[str, str, str, str], _Gathered] = {}
    index = 0
    for planned, effect in zip(decided.planned, decided.effects, strict=True):
        if isinstance(effect, TakenPods):
            _gather_removals(decided.cluster, planned.change, effect, index, gathered)
        elif effect is not None:
            _gather_additions(decided, planned, effect, index, gathered)
        index += planned.n
    return [found.order() for found in gathered.values()]


def with_pods(orders: Sequence[Order], cluster: Cluster) -> list[Order]:
    """Return orders with the pods that their controllers have, and the names of those that a StatefulSet will make.

    The cluster stands as before the round.
    """
    n_leaving = {order.controller: len(order.pods) for order in orders if order.pods}
    return [
        msgspec.structs.replace(
            order,
            before=tuple(
                cluster.pods.uids[pod] for pod in active_pods(cluster, order.namespace, order.controller)
            ),
            pod_names=_new_names(order, cluster, n_leaving.get(order.controller, 0)),
        )
        for order in orders
    ]


def _new_names(order: Order, cluster: Cluster, n_leaving: int) -> tuple[str, ...]:
    found = cluster.objects.stateful_sets.get(order.namespace, order.name)
    if order.kind != "StatefulSet" or found is None:
        return ()
    first = next_ordinal(cluster, found) - n_leaving
    return tuple(f"{order.name}-{first + i}" for i in range(len(order.nodes)))


class _Gathered:
    """An order in the making."""

    def __init__(
        self, operation: Literal["add", "remove"], namespace: str, workload: WorkloadName, controller: str
    ) -> None:
        self.operation, self.namespace, self.workload, self.controller = (
            operation,
            namespace,
            workload,
            controller,
        )
        self.decisions: list[int] = []
        self.nodes: list[str | None] = []
        self.pods: list[ChosenPod] = []

    def order(self) -> Order:
        return Order(
            self.operation,
            self.namespace,
            self.workload.kind,
            self.workload.name,
            self.controller,
            tuple(self.decisions),
            tuple(self.nodes),
            pods=tuple(self.pods),
        )


def _gather_removals(
    cluster: Cluster,
    change: Change,
    taken: TakenPods,
    index: int,
    gathered: dict[tuple[str, str, str, str], _Gathered],
) -> None:
    for i, (name, uid) in enumerate(zip(taken.names, taken.uids, strict=True)):
        owner = controller_of_owners(cluster, int(taken.columns["owner_id"][i]))
        above = None if owner is None else controlled_by(cluster, change.namespace, owner)
        if owner is None:
            workload, controller = WorkloadName(BARE, ""), ""
        else:
            workload = WorkloadName(owner.kind, owner.name) if above is None else name_of(above)
            controller = owner.uid
        key = ("remove", change.namespace, str(workload), controller)
        found = gathered.setdefault(key, _Gathered("remove", change.namespace, workload, controller))
        found.decisions.append(index + i)
        found.pods.append(ChosenPod(name, uid))


def _gather_additions(
    decided: Round,
    planned: Planned,
    added: Added,
    index: int,
    gathered: dict[tuple[str, str, str, str], _Gathered],
) -> None:
    cluster, namespace = decided.cluster, planned.change.namespace
    direct = added.pattern.controller
    if direct is None:
        return
    above = controlled_by(cluster, namespace, OwnerReference(kind=direct.kind, name=direct.name))
    owner = find_workload(cluster, namespace, direct)
    if above is None or owner is None:
        return
    workload, uid = name_of(above), owner.metadata.uid
    key = ("add", namespace, str(workload), uid)
    found = gathered.setdefault(key, _Gathered("add", namespace, workload, uid))
    found.decisions += range(index, index + planned.n)
    found.nodes += _node_names(decided.cluster, planned)


def _node_names(cluster: Cluster, planned: Planned) -> Sequence[str | None]:
    if planned.nodes is None:
        return [None] * planned.n
    names = cluster.nodes.names
    return [names[row] for row in np.asarray(planned.nodes.row).tolist()]
