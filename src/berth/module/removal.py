"""Which pod of a service leaves: one without a node first, else the best node's first pod in the leaving order."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from berth.cluster.accounting import BASE_RESOURCES, CPU, MEMORY
from berth.cluster.arrays import NONE, BoolColumn, IntColumn
from berth.cluster.cluster import Cluster
from berth.cluster.pods import PodIds
from berth.errors import InputError
from berth.framework.plugin import Classed
from berth.module.budgets import Budgets
from berth.module.changes import WorkloadName
from berth.module.services import WORKLOAD_KINDS, Members, controlled_by, controller_of_owners, name_of
from berth.module.templates import highest_ordinal
from berth.objects.workloads import Service
from berth.plugins.node_load_forecast import load_forecast_score
from berth.plugins.service_pods_on_node import PodsOnNode
from berth.releases.module_removal import CpuAndMemory, RemovalArithmetic, Usage
from berth.scheduling.board import CLOSED, MISSING, N_DONE, Board, Layout, NoClasses, new_board
from berth.scheduling.placements import Placements
from berth.scheduling.running import MAX_TOTAL, placed_before, run_board
from berth.scheduling.ties import TieBreaker

_CPU_ID, _MEMORY_ID = BASE_RESOURCES.index(CPU), BASE_RESOURCES.index(MEMORY)
PENDING = 1
T = TypeVar("T", np.int32, np.int64)
ON_NODE = "ServicePodsOnNodePriority"
REMOVAL_PRIORITIES = (
    "MostRequestedPriority",
    "BalancedResourceAllocation",
    ON_NODE,
    "NodeLoadForecastPriority",
)
MAX_AHEAD = 1 << 22
"""How many scores are looked up ahead at most: a run on many nodes with many pods each goes in parts."""


@dataclass(frozen=True, slots=True)
class Departures:
    """Pods of a service that leave, in their order.

    Attributes
    ----------
    pods : intp[n]
    nodes : Placements or None
        The nodes that they leave; None if they have none.
    """

    pods: PodIds
    nodes: Placements | None = None


class Leaving:
    """The pods of a service that may leave now, and the nodes that they would leave.

    Parameters
    ----------
    its_members : Members
        The service's, as the cluster is now.
    workload : WorkloadName or None
        If given, only its pods may leave.
    weights : dict of priority name to int
        Out of `REMOVAL_PRIORITIES`.
    arithmetic : RemovalArithmetic
        Of the release.
    budgets : Budgets, optional
        Those that are heeded.

    Attributes
    ----------
    kept_by : str
        The budgets that keep pods from leaving; empty if none does.
    """

    def __init__(
        self,
        cluster: Cluster,
        service: Service,
        its_members: Members,
        workload: WorkloadName | None,
        weights: Mapping[str, int],
        arithmetic: RemovalArithmetic,
        budgets: Budgets | None = None,
    ) -> None:
        self._cluster = cluster
        self._weights = weights
        self._arithmetic = arithmetic
        own = its_members.own
        self._n_own = len(own)
        self._at_once, self.kept_by = MAX_AHEAD, ""
        node_row, rank = cluster.pods.node_row, cluster.nodes.rank
        candidates = may_leave(cluster, service, own, workload)
        if budgets is not None:
            candidates, self._at_once, self.kept_by = budgets.free(candidates)
        order = in_leaving_order(cluster, candidates)
        self._without_node = order[node_row[order] == NONE]
        order = order[node_row[order] != NONE]
        # Node by node, in node order; the pods of a node stand from its `_first` on.
        self._order = order[np.argsort(rank[node_row[order]], kind="stable")]
        rows = node_row[self._order].astype(np.intp)
        self._first = np.flatnonzero(np.diff(rows, prepend=NONE))
        self._n_leaving = np.diff(self._first, append=len(rows))
        self._nodes = rows[self._first]
        its_rows = node_row[own]
        on_node = np.bincount(its_rows[its_rows != NONE], minlength=cluster.nodes.n_rows)
        self._n_on_node = on_node[self._nodes].astype(np.int64)

    def take(self, n: int, ties: TieBreaker) -> Departures:
        """Choose up to ``n`` pods, each as if those before it had left already; the cluster is not changed.

        There may be fewer: those on nodes leave after those without one, and behind a StatefulSet's pod others may leave
        than do now. None at all if none may.

        Raises
        ------
        InputError
            A weight names no removal priority.
        """
        n = min(n, self._at_once)
        if len(self._without_node):
            return Departures(self._up_to_stateful(self._without_node[:n]))
        if not len(self._nodes):
            return Departures(self._order)
        scores = self._scores()
        total = np.zeros(len(self._order), dtype=np.int64)
        for name, column in scores.items():
            total += self._weights[name] * column
        if sum(self._weights.values()) * self._arithmetic.maximum >= MAX_TOTAL:
            n = 1  # and in 64 bits
        else:
            total = total.astype(np.int32)
        part, weight = self._part()
        entries = np.arange(len(self._nodes))
        board = new_board(Layout.of(part, entries), entries, self._ahead(total, n), n, ties.counter)
        board = run_board(board, part, np.array([weight]), n, ties, lambda board, status: None)
        return self._departures(board, scores)

    def _departures(self, board: Board, scores: dict[str, IntColumn]) -> Departures:
        done = int(board.state[N_DONE])
        chosen, class_score = board.chosen[:done], board.class_score[0, :done].astype(np.int64)
        leaving = self._first[chosen] + placed_before(chosen)
        weights = tuple(self._weights)

        def replay() -> dict[str, IntColumn]:
            return {name: class_score if name == ON_NODE else scores[name][leaving] for name in weights}

        rows = self._nodes[chosen].astype(np.int32)
        nodes = Placements(rows, board.total[:done], board.n_feasible[:done], replay)
        return Departures(self._order[leaving], nodes)

    def _scores(self) -> dict[str, IntColumn]:
        """Score each pod's node as if the pod and those before it on the node had left; `ON_NODE` aside (int64[n])."""
        arithmetic, maximum = self._arithmetic, self._arithmetic.maximum
        counted = self._usage(counts_silent=True)
        scores: dict[str, IntColumn] = {}
        for name in self._weights:
            match name:
                case "MostRequestedPriority":
                    scores[name] = arithmetic.most_requested(counted, maximum)
                case "BalancedResourceAllocation":
                    usage = counted if arithmetic.balances_silent else self._usage(counts_silent=False)
                    scores[name] = arithmetic.balanced(usage, maximum)
                case "NodeLoadForecastPriority":
                    delta = np.repeat(self._cluster.load_delta[self._nodes], self._n_leaving)
                    scores[name] = load_forecast_score(delta, maximum, removing=True)
                case _ if name != ON_NODE:
                    expected = f"one of {', '.join(REMOVAL_PRIORITIES)}"
                    raise InputError("module.removeWeights", name, expected)
        return scores

    def _usage(self, *, counts_silent: bool) -> Usage:
        """Return the usage of each pod's node around its leaving, when those before it there have left.

        Parameters
        ----------
        counts_silent : bool
            Whether defaults for silent containers count.
        """
        cluster = self._cluster
        allocatable = cluster.nodes.allocatable
        if counts_silent:
            requested = cluster.nonzero_milli_cpu, cluster.nonzero_memory
            held = cluster.specs.nonzero()
        else:
            requested = cluster.requested.of(_CPU_ID), cluster.requested.of(_MEMORY_ID)
            of_spec, none = cluster.specs.held(), np.zeros(len(cluster.specs), dtype=np.int64)
            held = of_spec.get(_CPU_ID, none), of_spec.get(_MEMORY_ID, none)
        (cpu, cpu_left), (memory, memory_left) = map(self._around, requested, held)
        offered = (
            np.repeat(allocatable.of(resource)[self._nodes], self._n_leaving)
            for resource in (_CPU_ID, _MEMORY_ID)
        )
        return Usage(CpuAndMemory(cpu, memory), CpuAndMemory(cpu_left, memory_left), CpuAndMemory(*offered))

    def _around(self, requested: IntColumn, held: IntColumn) -> tuple[IntColumn, IntColumn]:
        """Return what is requested of each pod's node (by row) before and after the pod leaves (``held`` by spec)."""
        amounts = held[self._cluster.pods.column("spec_id")[self._order]]
        gone = np.cumsum(amounts)
        on_others = (gone - amounts)[self._first]
        left: IntColumn = np.repeat(requested[self._nodes] + on_others, self._n_leaving) - gone
        return left + amounts, left

    def _part(self) -> tuple[Classed, int]:
        """Return what moves from one removal to the next on all nodes, and what it weighs."""
        if ON_NODE not in self._weights:
            return NoClasses(np.zeros(len(self._nodes), dtype=np.int64)), 0
        in_all = np.array([self._n_own], dtype=np.int64)
        return PodsOnNode(self._n_on_node.copy(), in_all, self._arithmetic.maximum), self._weights[ON_NODE]

    def _ahead(self, total: NDArray[T], n: int) -> NDArray[T]:
        """Return the totals of each node after so many pods have left it (levels of a `Board`)."""
        n_nodes, n_leaving = len(self._nodes), self._n_leaving
        depth = min(n, int(n_leaving.max()), max(1, MAX_AHEAD // n_nodes))
        levels = np.full((depth + 1, n_nodes), MISSING, dtype=total.dtype)
        node = np.repeat(np.arange(n_nodes), n_leaving)
        gone = np.arange(len(total)) - self._first[node]
        near = gone < depth
        levels[gone[near], node[near]] = total[near]
        emptied = np.flatnonzero(n_leaving <= depth)
        levels[n_leaving[emptied], emptied] = CLOSED
        last = near & self._is_stateful(self._order)
        levels[gone[last] + 1, node[last]] = MISSING  # who follows is not known yet
        return levels

    def _up_to_stateful(self, pods: PodIds) -> PodIds:
        """Cut pods off behind the first one of a StatefulSet: the next of its ordinals may leave then."""
        stateful = np.flatnonzero(self._is_stateful(pods))
        return pods[: stateful[0] + 1] if len(stateful) else pods

    def _is_stateful(self, pods: PodIds) -> BoolColumn:
        owner_ids = self._cluster.pods.column("owner_id")[pods]
        sets = [
            owner_id
            for owner_id in np.unique(owner_ids).tolist()
            if (controller := controller_of_owners(self._cluster, owner_id))
            and controller.kind == "StatefulSet"
        ]
        found: BoolColumn = np.isin(owner_ids, sets)
        return found


def may_leave(cluster: Cluster, service: Service, own: PodIds, workload: WorkloadName | None) -> PodIds:
    """Return those of a service's pods that may leave.

    Not those of kinds other than workloads'; of each StatefulSet only the one with the highest ordinal; where a workload is
    named, only its pods.
    """
    namespace = service.metadata.namespace
    owner_ids = cluster.pods.column("owner_id")[own]
    allowed = np.ones(len(own), dtype=np.bool_)
    for owner_id in np.unique(owner_ids).tolist():
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
            allowed &= ~of_owner | (own == highest_ordinal(cluster, namespace, controller.name)[1])
    return own[allowed]


def in_leaving_order(cluster: Cluster, pods: PodIds) -> PodIds:
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
