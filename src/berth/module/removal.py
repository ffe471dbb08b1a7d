"""Which pod of a service leaves: one without a node first, else the best node's first pod in the leaving order."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.cluster.accounting import BASE_RESOURCES, CPU, MEMORY
from berth.cluster.arrays import NONE, BoolColumn, IntColumn
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
    """The pod that leaves; ``pod`` is None where none may. ``row`` is None for a pod that has no node yet."""

    pod: int | None
    row: int | None = None
    score: int | None = None
    scores: dict[str, int] | None = None
    n_feasible: int = 0


def choose_leaving(
    cluster: Cluster,
    service: Service,
    workload: WorkloadName | None,
    weights: Mapping[str, int],
    maximum: int,
    ties: TieBreaker,
) -> Removal:
    """Choose which pod of a service leaves next, as the cluster is now.

    Parameters
    ----------
    workload : WorkloadName or None
        If given, only its pods may leave.
    weights : dict of priority name to int
        Out of `REMOVAL_PRIORITIES`.
    """
    own = members(cluster, service).own
    leaving = in_leaving_order(cluster, np.flatnonzero(may_leave(cluster, service, own, workload)))
    rows = cluster.pods.node_row[leaving].astype(np.intp)
    without_node = leaving[rows == NONE]
    if len(without_node):
        return Removal(int(without_node[0]))
    if not len(leaving):
        return Removal(None)
    nodes, first = np.unique(rows, return_index=True)
    firsts = leaving[first]
    scores = removal_scores(cluster, nodes, firsts, own, weights, maximum)
    total = sum(
        (weights[name] * column for name, column in scores.items()), np.zeros(len(nodes), dtype=np.int64)
    )
    best = total.max()
    row = ties.take(nodes[total == best], cluster.nodes.rank)
    at = int(np.searchsorted(nodes, row))
    return Removal(
        pod=int(firsts[at]),
        row=row,
        score=int(best),
        scores={name: int(column[at]) for name, column in scores.items()},
        n_feasible=len(nodes),
    )


def removal_scores(
    cluster: Cluster,
    rows: NDArray[np.intp],
    leaving: NDArray[np.intp],
    own: BoolColumn,
    weights: Mapping[str, int],
    maximum: int,
) -> dict[str, IntColumn]:
    """Score nodes for losing a pod, 0 to ``maximum`` each; resources are counted as they are after it left.

    Parameters
    ----------
    rows : intp[n]
        The nodes that hold a pod which may leave.
    leaving : intp[n]
        The pod that would leave each of them.
    own : bool[n_pods]
        The service's pods.

    Raises
    ------
    InputError
        A weight names no removal priority.
    """
    spec_ids = cluster.pods.column("spec_id")[leaving]
    held_cpu, held_memory = cluster.specs.nonzero()
    allocatable = cluster.nodes.allocatable
    usage = (
        cluster.nonzero_milli_cpu[rows] - held_cpu[spec_ids],
        allocatable.of(_CPU_ID)[rows],
        cluster.nonzero_memory[rows] - held_memory[spec_ids],
        allocatable.of(_MEMORY_ID)[rows],
    )
    scores: dict[str, IntColumn] = {}
    for name in weights:
        match name:
            case "MostRequestedPriority":
                scores[name] = most_requested(*usage, maximum)
            case "BalancedResourceAllocation":
                scores[name] = balanced_allocation(*usage, maximum)
            case "ServicePodsOnNodePriority":
                scores[name] = service_pods_on_node(cluster, rows, own, maximum)
            case "NodeLoadForecastPriority":
                scores[name] = load_forecast_score(cluster.load_delta[rows], maximum, removing=True)
            case _:
                raise InputError("module.removeWeights", name, f"one of {', '.join(REMOVAL_PRIORITIES)}")
    return scores


def service_pods_on_node(
    cluster: Cluster, rows: NDArray[np.intp], own: BoolColumn, maximum: int
) -> IntColumn:
    """Score the share of the service's pods that each node holds: ``maximum × on the node ÷ all``, integers."""
    n_own = int(own.sum())
    placed = cluster.pods.node_row[own & (cluster.pods.node_row != NONE)]
    counts = np.bincount(placed, minlength=cluster.nodes.n_rows)[rows]
    return (maximum * counts // max(n_own, 1)).astype(np.int64)


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
