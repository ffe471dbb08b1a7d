"""Which pod of a service leaves: one without a node first, else the best node's first pod in the leaving order."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from berth.cluster.accounting import BASE_RESOURCES, CPU, MEMORY
from berth.cluster.arrays import NONE, BoolColumn, FloatColumn, IntColumn
from berth.cluster.cluster import Cluster
from berth.errors import InputError
from berth.module.changes import WorkloadName
from berth.module.services import WORKLOAD_KINDS, controlled_by, controller_of_owners, members, name_of
from berth.module.templates import highest_ordinal
from berth.objects.workloads import Service
from berth.plugins.node_load_forecast import load_forecast_score
from berth.plugins.resource_allocation import balanced_allocation, most_requested
from berth.scheduling.ties import TieBreaker

_CPU_ID, _MEMORY_ID = BASE_RESOURCES.index(CPU), BASE_RESOURCES.index(MEMORY)
PENDING = 1
REMOVAL_PRIORITIES = (
    "MostRequestedPriority",
    "BalancedResourceAllocation",
    "ServicePodsOnNodePriority",
    "NodeLoadForecastPriority",
)


@dataclass(frozen=True, slots=True)
class Removal:
    """The pod that leaves. ``row`` is None for a pod that has no node yet."""

    pod: int
    row: int | None = None
    score: int | None = None
    scores: dict[str, int] = field(default_factory=dict)
    n_feasible: int = 0


class Leaving:
    """The pods of a service that may leave, and the nodes that they would leave; kept from one removal to the next.

    Parameters
    ----------
    workload : WorkloadName or None
        If given, only its pods may leave.
    weights : dict of priority name to int
        Out of `REMOVAL_PRIORITIES`.
    maximum : int
        The highest score of a priority.
    """

    def __init__(
        self,
        cluster: Cluster,
        service: Service,
        workload: WorkloadName | None,
        weights: Mapping[str, int],
        maximum: int,
    ) -> None:
        self._cluster = cluster
        self._service = service
        self._workload = workload
        self._weights = weights
        self._maximum = maximum
        self._n_own = 0
        self._without_node: list[int] = []
        # One entry a node that holds a pod which may leave; its pods stand in `_order` from `_next` to `_end`.
        self._order = self._nodes = self._next = self._end = np.empty(0, dtype=np.intp)
        self._n_on_node: IntColumn = np.empty(0, dtype=np.int64)
        self._look()

    def choose(self, ties: TieBreaker) -> Removal | None:
        """Choose the pod that leaves next, None if none may. Nothing is removed yet."""
        if self._without_node:
            return Removal(self._without_node[0])
        if not len(self._nodes):
            return None
        scores = removal_scores(self._candidates(), self._weights, self._maximum)
        total = sum(
            (self._weights[name] * column for name, column in scores.items()),
            np.zeros(len(self._nodes), dtype=np.int64),
        )
        best = total.max()
        row = ties.take(self._nodes[total == best], self._cluster.nodes.rank)
        at = int(np.searchsorted(self._nodes, row))
        return Removal(
            pod=int(self._order[self._next[at]]),
            row=row,
            score=int(best),
            scores={name: int(column[at]) for name, column in scores.items()},
            n_feasible=len(self._nodes),
        )

    def remove(self, removal: Removal) -> None:
        """Take the chosen pod out of the cluster."""
        opens_way = self._of_stateful_set(removal.pod)
        self._cluster.remove_pod(removal.pod)
        if opens_way:
            # The next highest ordinal may leave now.
            self._look()
            return
        self._n_own -= 1
        if removal.row is None:
            self._without_node.pop(0)
            return
        at = int(np.searchsorted(self._nodes, removal.row))
        self._n_on_node[at] -= 1
        self._next[at] += 1
        if self._next[at] == self._end[at]:
            keep = np.arange(len(self._nodes)) != at
            self._nodes, self._next, self._end = self._nodes[keep], self._next[keep], self._end[keep]
            self._n_on_node = self._n_on_node[keep]

    def _look(self) -> None:
        """Find who may leave, as the cluster is now."""
        pods = self._cluster.pods
        own = members(self._cluster, self._service).own
        self._n_own = int(own.sum())
        allowed = may_leave(self._cluster, self._service, own, self._workload)
        order = in_leaving_order(self._cluster, np.flatnonzero(allowed))
        rows = pods.node_row[order].astype(np.intp)
        self._without_node = order[rows == NONE].tolist()
        order, rows = order[rows != NONE], rows[rows != NONE]
        by_node = np.argsort(rows, kind="stable")
        self._order = order[by_node]
        self._nodes, self._next, counts = np.unique(rows[by_node], return_index=True, return_counts=True)
        self._end = self._next + counts
        on_node = pods.node_row[own & (pods.node_row != NONE)]
        self._n_on_node = np.bincount(on_node, minlength=self._cluster.nodes.n_rows)[self._nodes]

    def _candidates(self) -> "Candidates":
        cluster, rows = self._cluster, self._nodes
        spec_ids = cluster.pods.column("spec_id")[self._order[self._next]]
        held_cpu, held_memory = cluster.specs.nonzero()
        allocatable = cluster.nodes.allocatable
        return Candidates(
            milli_cpu=cluster.nonzero_milli_cpu[rows] - held_cpu[spec_ids],
            allocatable_milli_cpu=allocatable.of(_CPU_ID)[rows],
            memory=cluster.nonzero_memory[rows] - held_memory[spec_ids],
            allocatable_memory=allocatable.of(_MEMORY_ID)[rows],
            n_on_node=self._n_on_node,
            n_pods=self._n_own,
            load_delta=cluster.load_delta[rows],
        )

    def _of_stateful_set(self, pod: int) -> bool:
        controller = self._cluster.controller_of(pod)
        return controller is not None and controller.kind == "StatefulSet"


@dataclass(frozen=True, slots=True)
class Candidates:
    """Nodes that may lose a pod, one entry each.

    Attributes
    ----------
    milli_cpu, memory : int64[n]
        What the priorities count as requested once the pod has left. [milli-CPU, bytes]
    n_on_node : int64[n]
        The service's pods on the node, before.
    n_pods : int
        The service's pods, before.
    """

    milli_cpu: IntColumn
    allocatable_milli_cpu: IntColumn
    memory: IntColumn
    allocatable_memory: IntColumn
    n_on_node: IntColumn
    n_pods: int
    load_delta: FloatColumn


def removal_scores(nodes: Candidates, weights: Mapping[str, int], maximum: int) -> dict[str, IntColumn]:
    """Score nodes for losing a pod, 0 to ``maximum`` each (int64[n] by priority).

    Raises
    ------
    InputError
        A weight names no removal priority.
    """
    usage = nodes.milli_cpu, nodes.allocatable_milli_cpu, nodes.memory, nodes.allocatable_memory
    scores: dict[str, IntColumn] = {}
    for name in weights:
        match name:
            case "MostRequestedPriority":
                scores[name] = most_requested(*usage, maximum)
            case "BalancedResourceAllocation":
                scores[name] = balanced_allocation(*usage, maximum)
            case "ServicePodsOnNodePriority":
                scores[name] = maximum * nodes.n_on_node // nodes.n_pods
            case "NodeLoadForecastPriority":
                scores[name] = load_forecast_score(nodes.load_delta, maximum, removing=True)
            case _:
                raise InputError("module.removeWeights", name, f"one of {', '.join(REMOVAL_PRIORITIES)}")
    return scores


def may_leave(
    cluster: Cluster, service: Service, own: BoolColumn, workload: WorkloadName | None
) -> BoolColumn:
    """Tell which of a service's pods may leave (bool[n_pods]).

    Not those of kinds other than workloads'; of each StatefulSet only the one with the highest ordinal; where a workload is
    named, only its pods.
    """
    namespace = service.metadata.namespace
    owner_ids = cluster.pods.column("owner_id")
    allowed = own.copy()
    for owner_id in np.unique(owner_ids[own]).tolist():
        controller = controller_of_owners(cluster, owner_id)
        of_owner = owner_ids == owner_id
        if controller is not None and controller.kind not in WORKLOAD_KINDS:
            allowed &= ~of_owner
            continue
        if workload is not None:
            above = controlled_by(cluster, namespace, controller) if controller is not None else None
            named = (controller.kind, controller.name) if controller is not None else None
            if named != (workload.kind, workload.name) and (above is None or name_of(above) != workload):
                allowed &= ~of_owner
                continue
        if controller is not None and controller.kind == "StatefulSet":
            highest = highest_ordinal(cluster, namespace, controller.name)[1]
            keep = highest != NONE and bool(allowed[highest]) and bool(of_owner[highest])
            allowed &= ~of_owner
            if keep:
                allowed[highest] = True
    return allowed


def in_leaving_order(cluster: Cluster, pods: NDArray[np.intp]) -> NDArray[np.intp]:
    """Sort pods by who leaves first.

    Pending before Running, not Ready before Ready, lower deletion cost, more recently Ready (if both are), more restarts,
    newer, name.
    """
    column, names = cluster.pods.column, cluster.pods.names
    by_name = np.array(sorted(pods.tolist(), key=names.__getitem__), dtype=np.intp)
    ready = column("ready")[by_name].astype(np.int64)
    keys = (
        -column("created")[by_name],
        -column("restarts")[by_name].astype(np.int64),
        -column("ready_since")[by_name] * ready,
        column("deletion_cost")[by_name],
        ready,
        column("phase")[by_name] != PENDING,
    )
    # lexsort is stable and takes its last key first: pods alike in all of them stay in the order of their names.
    return by_name[np.lexsort(keys)]
