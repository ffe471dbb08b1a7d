"""The pods that could go, as columns: in their order of importance, and which of them a budget would rather keep."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import NONE, BoolColumn, IdColumn, IntColumn
from berth.cluster.cluster import Cluster
from berth.cluster.pods import PodIds
from berth.objects.selectors import SelectorError, from_label_selector
from berth.objects.workloads import PodDisruptionBudget

PACKED_BITS = 62
NOT_STARTED = 1 << 62
"""The start of a pod that has none: later than all others. Upstream takes the time at which it looks."""


def lower_pods(cluster: Cluster, priority: int, rows: BoolColumn) -> PodIds:
    """Return the pods of a lower priority on the given rows (bool[n_rows]), in the order of their ids."""
    pods = cluster.pods
    at = pods.node_row
    lower = (cluster.specs.priority() < priority)[pods.column("spec_id")]
    lower &= pods.active
    lower &= at != NONE
    ids = np.flatnonzero(lower)
    return ids[rows[at[ids]]]


@dataclass(frozen=True)
class Victims:
    """Pods that could go, row by row, in each the most important first: a higher priority, then an earlier start.

    Pods that are equal in both are in the order in which they came.

    Attributes
    ----------
    ids : intp[n]
    rows : int32[n_segments]
        The row of each segment.
    starts, counts : intp[n_segments]
        Where the row's pods are in the columns.
    priority : int64[n]
    started : int64[n]
        Seconds since 1970, or `NOT_STARTED`.
    violates : bool[n]
        Whether a PodDisruptionBudget is violated if the pod goes, and all more important ones of its row.
    """

    ids: PodIds
    rows: IdColumn
    starts: NDArray[np.intp]
    counts: NDArray[np.intp]
    priority: IntColumn
    started: IntColumn
    violates: BoolColumn

    @classmethod
    def of(cls, cluster: Cluster, ids: PodIds) -> "Victims":
        """Put pods in order."""
        pods = cluster.pods
        started = pods.column("started")[ids]
        started[started == 0] = NOT_STARTED
        priority = cluster.specs.priority()[pods.column("spec_id")[ids]]
        order = in_order(pods.node_row[ids], priority, started)
        ids = ids[order]
        at = pods.node_row[ids]
        starts = np.flatnonzero(np.diff(at, prepend=NONE))
        counts = np.diff(starts, append=len(ids))
        violates = _violations(cluster, ids, starts, counts)
        return cls(ids, at[starts], starts, counts, priority[order], started[order], violates)

    @cached_property
    def turns(self) -> NDArray[np.intp]:
        """The order in which pods are tried to be kept: in each segment those that violate a budget go first."""
        if not self.violates.any():
            return np.arange(len(self.ids))
        segments = np.repeat(np.arange(len(self.rows)), self.counts)
        return np.lexsort((~self.violates, segments))


def in_order(rows: IdColumn, priority: IntColumn, started: IntColumn) -> NDArray[np.intp]:
    """Return the order by row, then importance, then place."""
    keys = (rows.astype(np.int64), -priority, started)
    n, place_bits = len(rows), len(rows).bit_length()
    lows = [int(key.min(initial=NOT_STARTED)) for key in keys]
    # Next to the last start that there is, so that few bits are enough.
    last = int(started.max(initial=0, where=started < NOT_STARTED))
    keys = (*keys[:2], np.minimum(started, last + 1))
    bits = [(int(key.max(initial=0)) - low).bit_length() for key, low in zip(keys, lows, strict=True)]
    if sum(bits) + place_bits > PACKED_BITS:
        return np.lexsort(keys[::-1])
    # One number a pod, with its place in the lowest bits, is sorted ten times as fast as three keys.
    packed = np.zeros(n, dtype=np.int64)
    for key, low, width in zip(keys, lows, bits, strict=True):
        packed = (packed << width) | (key - low)
    packed = np.sort((packed << place_bits) | np.arange(n))
    return packed & ((1 << place_bits) - 1)


def _violations(
    cluster: Cluster, ids: PodIds, starts: NDArray[np.intp], counts: NDArray[np.intp]
) -> BoolColumn:
    """Tell which pods violate a budget; each row's pods draw on the budgets anew, in their order."""
    violates = np.zeros(len(ids), dtype=np.bool_)
    for budget in cluster.objects.pod_disruption_budgets.all():
        matched = drawing_on(cluster, budget, ids)
        if not matched.any():
            continue
        drawn = np.cumsum(matched, dtype=np.int64)
        before: IntColumn = drawn[starts] - matched[starts]
        drawn = drawn - np.repeat(before, counts)
        violates |= matched & (drawn > budget.status.disruptions_allowed)
    return violates


def drawing_on(cluster: Cluster, budget: PodDisruptionBudget, ids: PodIds) -> BoolColumn:
    """Tell which pods draw on a budget (bool[n])."""
    nothing = np.zeros(len(ids), dtype=np.bool_)
    pods, namespace_id = cluster.pods, cluster.namespaces.find(budget.metadata.namespace or "default")
    try:
        selector = from_label_selector(budget.spec.selector)
    except SelectorError:
        return nothing
    if not selector.requirements or namespace_id == NONE:
        return nothing
    unlabelled = cluster.labels_id(b"{}")
    selects = cluster.label_sets.matches(selector)
    # No budget is for pods without labels, whatever it selects.
    selects[unlabelled] = False
    matched: BoolColumn = selects[pods.column("labels_id")[ids]]
    matched &= pods.column("namespace_id")[ids] == namespace_id
    for name in budget.status.disrupted_pods:
        matched &= ids != pods.find(namespace_id, name)
    return matched
