"""The constraints that must hold: EvenPodsSpread, and the filter of PodTopologySpread.

Source: ``predicates.go`` and ``metadata.go`` of 1.17, ``podtopologyspread/filtering.go`` of 1.36.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, BoolColumn, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import Changes
from berth.framework.plugin import FITS, BatchKind, FilterPlugin, Finality, Rejection
from berth.objects.pods import TopologySpreadConstraint
from berth.plugins.pod_topology_spread.constraints import (
    DO_NOT_SCHEDULE,
    TOPOLOGY_SPREAD,
    SpreadRules,
    constraints_of,
)
from berth.plugins.pod_topology_spread.counting import Domains, domains_of

SKEWED, UNLABELLED = 1, 2
UNREADABLE = -1
REASON = "node(s) didn't match pod topology spread constraints"
NO_DOMAIN = 2**31 - 1
"""Upstream's minimum over no domains at all."""


@dataclass(slots=True)
class HardSpread:
    """What is known of one shape.

    Attributes
    ----------
    counts : list of int64[n_slots]
        For each constraint the selected pods by slot.
    present : list of bool[n_slots]
        The slots that are domains.
    own : list of int
        1 where the constraint selects the pod itself.
    """

    n_rows: int
    domains: list[Domains] = field(default_factory=list)
    counts: list[IntColumn] = field(default_factory=list)
    present: list[BoolColumn] = field(default_factory=list)
    own: list[int] = field(default_factory=list)
    grows: bool = False
    error: str = ""

    def lowest(self) -> list[int]:
        """Return each constraint's lowest count over its domains."""
        return [
            int(counts[present].min(initial=NO_DOMAIN))
            for counts, present in zip(self.counts, self.present, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class SpreadFilter(FilterPlugin[HardSpread]):
    """Would the pod make its domain fuller than the emptiest one, by more than the allowed skew?

    Attributes
    ----------
    defaults : tuple of TopologySpreadConstraint
        For pods without constraints of their own (1.36, ``defaultConstraints``).
    """

    rules: SpreadRules = TOPOLOGY_SPREAD
    defaults: tuple[TopologySpreadConstraint, ...] = ()

    name: ClassVar[str] = "PodTopologySpread"
    legacy_names: ClassVar[tuple[str, ...]] = ("EvenPodsSpread",)

    def skips(self, pod: Incoming, cluster: Cluster) -> bool:
        return not pod.info.spec.topology_spread_constraints and not self.defaults

    def prepare(self, pod: Incoming, cluster: Cluster) -> HardSpread:
        state = HardSpread(cluster.nodes.n_rows)
        constraints = constraints_of(pod, cluster, DO_NOT_SCHEDULE, self.rules, self.defaults)
        if constraints.error:
            state.error = self.rules.unreadable.format(error=constraints.error)
        elif constraints.all:
            state.domains = domains_of(pod, cluster, constraints, self.rules, pod.namespace_id)
            state.own = [int(d.matching.selects(pod.labels_id)) for d in state.domains]
            state.grows = any(d.matching.grows(pod) for d in state.domains)
            self._count(state)
        return state

    def _count(self, state: HardSpread) -> None:
        state.present = [d.present() for d in state.domains]
        state.counts = [d.counts(d.slots) for d in state.domains]
        if self.rules.counts_by_key:
            keys = [d.constraint.key for d in state.domains]
            shared = {
                key: sum(c for k, c in zip(keys, state.counts, strict=True) if k == key) for key in keys
            }
            state.counts = [np.asarray(shared[key]) for key in keys]

    def reject(self, state: HardSpread) -> Rejection | None:
        if state.error and self.rules.with_policies:
            return Rejection((state.error,), Finality.ERROR)
        return None

    def is_idle(self, state: HardSpread) -> bool:
        return not state.domains and not state.error

    def filter(self, state: HardSpread, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        codes = np.zeros(state.n_rows, dtype=np.int64)
        if state.error:
            codes[:] = UNREADABLE
        # 1.17 lets every pod pass where no domain counts.
        elif self.rules.with_policies or any(present.any() for present in state.present):
            for i, lowest in enumerate(state.lowest()):
                self._judge(state, i, lowest, codes)
        return codes[rows]

    def _judge(self, state: HardSpread, i: int, lowest: int, codes: IntColumn) -> None:
        domains, present = state.domains[i], state.present[i]
        if self.rules.with_policies and int(present.sum()) < domains.constraint.min_domains:
            lowest = 0
        full = state.counts[i] + (state.own[i] - lowest) > domains.constraint.max_skew
        full[0] = False
        codes[(codes == FITS) & ~domains.labelled] = UNLABELLED
        codes[(codes == FITS) & full[domains.slots]] = SKEWED

    def reasons(self, state: HardSpread, code: int) -> tuple[str, ...]:
        if code == UNREADABLE:
            return (state.error,)
        return (REASON,) if code == SKEWED else (self.rules.missing_label,)

    def mend(self, state: HardSpread, changes: Changes) -> Rows | None:
        if not state.domains:
            return np.empty(0, dtype=np.intp)
        if changes.nodes:
            return None
        before = state.lowest()
        touched = np.zeros(state.n_rows, dtype=np.bool_)
        for change in changes.pods:
            for i, domains in enumerate(state.domains):
                if not domains.matching.counts(change):
                    continue
                domains.per_row[change.row] += change.sign
                if domains.eligible[change.row]:
                    slot = domains.slots[change.row]
                    self._move(state, i, int(slot), change.sign)
                    touched |= domains.slots == slot
        return ALL_ROWS if state.lowest() != before else np.flatnonzero(touched)

    def _move(self, state: HardSpread, i: int, slot: int, sign: int) -> None:
        key = state.domains[i].constraint.key
        counts = state.counts[i]
        counts[slot] += sign
        # Shared counts are one and the same array, or arrays of their own of another key.
        for j, other in enumerate(state.domains):
            if self.rules.counts_by_key and other.constraint.key == key and state.counts[j] is not counts:
                state.counts[j][slot] += sign

    def batch(self, state: HardSpread, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.SERIAL if state.grows else BatchKind.CONSTANT

    def moved_by(self, state: HardSpread, other: Incoming) -> bool:
        return any(domains.matching.counts_shape(other) for domains in state.domains)
