"""Does the node have room for what the pod asks for? NodeResourcesFit, formerly PodFitsResources.

Source: 1.10 to 1.17, ``algorithm/predicates/predicates.go``, ``PodFitsResources`` and ``GetResourceRequest``; 1.36,
``plugins/noderesources/fit.go``.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.cluster.accounting import BASE_RESOURCES, CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from berth.cluster.arrays import ALL_ROWS, BoolColumn, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.framework.changes import Action, AssignedPodChange, Change, Hint, NodeChange, Resource
from berth.framework.plugin import FITS, BatchKind, FilterPlugin
from berth.framework.rules import Rule, RuleKind, Term

_PODS_ID = BASE_RESOURCES.index(PODS)


@dataclass(frozen=True, slots=True)
class Fit:
    """What is checked, in the order of the reasons: (resource id, asked, held per pod placed)."""

    cluster: Cluster
    checks: tuple[tuple[int, int, int], ...]


@dataclass(frozen=True, slots=True)
class NodeResourcesFit(FilterPlugin[Fit]):
    """Room for one more pod, for cpu, memory, ephemeral storage, and every other resource that the pod asks for.

    Attributes
    ----------
    always : tuple of resource name
        What is checked even where the pod asks for none of it, as long as it asks for anything.
    asked_only : bool
        A resource of which the pod asks for nothing does no harm, overcommitted as it may be (1.36).
    too_many_pods : str
        The reason when there is room for no pod more.
    ignored : frozenset of str
        Extended resources, and prefixes of their names up to the slash, that are left to others.
    """

    always: tuple[str, ...] = (CPU, MEMORY, EPHEMERAL_STORAGE)
    asked_only: bool = False
    too_many_pods: str = "Insufficient pods"
    ignored: frozenset[str] = frozenset()

    name = "NodeResourcesFit"
    wakes_on = {
        Resource.NODE: Action.ADD | Action.UPDATE_NODE_ALLOCATABLE,
        Resource.ASSIGNED_POD: Action.DELETE | Action.UPDATE_POD_SCALE_DOWN,
        Resource.UNSCHEDULED_POD: Action.UPDATE_POD_SCALE_DOWN,
    }

    def prepare(self, pod: Incoming, cluster: Cluster) -> Fit:
        asked, held = pod.info.asked, pod.info.held
        always = [cluster.resources.id(name) for name in self.always]
        scalars = sorted(
            (i for i in asked if i >= len(BASE_RESOURCES) and i not in always),
            key=cluster.resources.items.__getitem__,
        )
        checks = [(_PODS_ID, 1, 1)]
        # A pod that asks for nothing at all fits even on an overcommitted node; one that asks for a little of one
        # resource needs the others not to be overcommitted either.
        if scalars or any(asked.get(i, 0) for i in always):
            checks += [
                (i, asked.get(i, 0), held.get(i, 0))
                for i in (*always, *scalars)
                if not (self.asked_only and asked.get(i, 0) == 0)
                and not self._ignores(cluster.resources.items[i])
            ]
        return Fit(cluster, tuple(checks))

    def filter(self, state: Fit, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        allocatable, requested = state.cluster.nodes.allocatable, state.cluster.requested
        codes = np.zeros(state.cluster.nodes.n_rows, dtype=np.int64)[rows]
        for bit, (resource_id, asked, held) in enumerate(state.checks):
            short = allocatable.of(resource_id)[rows] < requested.of(resource_id)[rows] + (
                placed * held + asked
            )
            if short.any():
                codes |= short.astype(np.int64) << bit
        return codes

    def beyond_help(self, state: Fit, codes: IntColumn, rows: Rows = ALL_ROWS) -> BoolColumn:
        beyond: BoolColumn = np.zeros(len(codes), dtype=np.bool_)
        for resource_id, asked, _ in state.checks:
            if resource_id != _PODS_ID:
                beyond |= asked > state.cluster.nodes.allocatable.of(resource_id)[rows]
        return beyond & (codes != FITS)

    def reasons(self, state: Fit, code: int) -> tuple[str, ...]:
        names = state.cluster.resources.items
        return tuple(
            self.too_many_pods if check[0] == _PODS_ID else f"Insufficient {names[check[0]]}"
            for bit, check in enumerate(state.checks)
            if code >> bit & 1
        )

    def hint(self, pod: Incoming, cluster: Cluster) -> Hint:
        names = cluster.resources.items
        ids = [
            (resource_id, amount) for resource_id, amount, _ in self.prepare(pod, cluster).checks if amount
        ]
        asked = [(names[resource_id], amount) for resource_id, amount in ids]

        def helps(change: Change) -> bool:
            match change:
                case NodeChange(old=old):
                    offered, before = change.offered, change.offered_before
                    return all(offered.get(name, 0) >= amount for name, amount in asked) and (
                        old is None or any(offered.get(name, 0) > before.get(name, 0) for name, _ in asked)
                    )
                case AssignedPodChange(old=old, new=new) if old and new:
                    held, left = old.info.held, new.info.held
                    return any(held.get(i, 0) > left.get(i, 0) for i, _ in ids)
            return True

        return helps

    def batch(self, state: Fit, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.LOCAL

    def moved_by(self, state: Fit, other: Incoming) -> bool:
        return False

    def resource_rule(self, state: Fit) -> Rule:
        return Rule(RuleKind.FITS, tuple(Term(resource_id, asked) for resource_id, asked, _ in state.checks))

    def _ignores(self, resource: str) -> bool:
        if not self.ignored or "/" not in resource or "kubernetes.io/" in resource:
            return False
        return resource in self.ignored or resource.split("/", maxsplit=1)[0] in self.ignored
