"""MatchInterPodAffinity: required terms, those of the pod and those of the pods that are there.

Source: ``predicates/predicates.go`` and ``metadata.go`` of 1.10, 1.13 and 1.17,
``plugins/interpodaffinity/filtering.go`` of 1.36.

Pods on nodes that are not known do not count. Up to 1.13 such pods make kube-scheduler ask all pods anew for
every node, and terms that select them may end in an error; here the answer is that of a scheduler that knows
all nodes.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, BoolColumn, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import Changes
from berth.framework.plugin import FITS, BatchKind, Classed, FilterPlugin, Rejection
from berth.plugins.inter_pod_affinity.matching import Reaching, on_nodes
from berth.plugins.inter_pod_affinity.required import EMPTY_KEY, Required, is_above_zero
from berth.plugins.inter_pod_affinity.tally import Tally
from berth.plugins.inter_pod_affinity.terms import Kind, Rules, TermIndex, terms_of

AFFINITY, ANTI_AFFINITY, EXISTING_ANTI_AFFINITY, UNREADABLE = 1, 2, 3, 4
EXISTING_UNREADABLE = -1
OWN_UNREADABLE = -2
"""Errors; the second of row ``n`` is ``OWN_UNREADABLE - n``, since its text names the node."""

NOT_MATCHED = "node(s) didn't match pod affinity/anti-affinity"
REASONS = {
    AFFINITY: "node(s) didn't match pod affinity rules",
    ANTI_AFFINITY: "node(s) didn't match pod anti-affinity rules",
    EXISTING_ANTI_AFFINITY: "node(s) didn't satisfy existing pods anti-affinity rules",
}


@dataclass(frozen=True, slots=True)
class MatchInterPodAffinity(FilterPlugin[Required]):
    """Are the pod's required terms, and the required anti-affinity of all pods that are there, met on a node?

    Attributes
    ----------
    rules : Rules
        Also tells the reasons: up to 1.17 two for each node, in 1.36 the second alone, own terms going first.
    """

    rules: Rules = Rules.ALL_TERMS

    name = "InterPodAffinity"

    def skips(self, pod: Incoming, cluster: Cluster) -> bool:
        return not pod.info.has_affinity and not cluster.affinity_pods

    def prepare(self, pod: Incoming, cluster: Cluster) -> Required:
        index = TermIndex.of(cluster, self.rules)
        state = Required(
            pod=pod,
            cluster=cluster,
            rules=self.rules,
            reaching=Reaching(cluster, pod, index, {Kind.REQUIRED_ANTI_AFFINITY: 1}),
            blocked=Tally(cluster.nodes, presence=True),
            shunned=Tally(cluster.nodes, presence=True),
        )
        state.reaching.count(state.blocked)
        state.count_own(terms_of(pod.info.spec.affinity, self.rules))
        refusal = None if self.rules is Rules.TODAY else state.reaching.refusal()
        if refusal is not None:
            state.error = f"Failed to get all terms that pod {_full_name(pod)} matches, err: {refusal}"
        elif self._is_blocked_without_key(state):
            state.error = f"E{EMPTY_KEY[1:]}"
        return state

    def reject(self, state: Required) -> Rejection | None:
        return None if state.unreadable is None else Rejection((state.unreadable,))

    def is_idle(self, state: Required) -> bool:
        own = state.companies or state.shuns or state.own_error or state.shuns_all or state.unreadable
        return not (own or state.blocked.sums or state.error or state.is_refused)

    def filter(self, state: Required, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        numbers = np.arange(state.cluster.nodes.n_rows)[rows]
        codes = np.zeros(len(numbers), dtype=np.int64)
        if state.error is not None:
            codes[:] = EXISTING_UNREADABLE
        elif state.unreadable is not None:
            codes[:] = UNREADABLE
        elif self.rules is Rules.TODAY:
            self._judge_own(state, rows, numbers, codes)
            _fail(codes, EXISTING_ANTI_AFFINITY, _any_above_zero(state.blocked, rows, codes))
        else:
            _fail(codes, EXISTING_ANTI_AFFINITY, _any_above_zero(state.blocked, rows, codes))
            self._judge_own(state, rows, numbers, codes)
        return codes

    def _judge_own(self, state: Required, rows: Rows, numbers: NDArray[np.intp], codes: IntColumn) -> None:
        """Judge the pod's own required terms on rows that have not failed yet."""
        # Pod by pod, 1.13 and 1.17 meet an anti-affinity that can't be read before the affinity is decided.
        if not (state.shuns_all and self.rules is Rules.ALL_TERMS):
            for company in state.companies:
                _fail(codes, AFFINITY, ~company.is_met(rows, self.rules))
        if state.own_error is not None:
            # Without any pod to compare with, 1.13 and 1.17 never come to the error.
            if self.rules is Rules.EACH_TERM or on_nodes(state.cluster).any():
                codes[codes == FITS] = OWN_UNREADABLE - numbers[codes == FITS]
            _fail(codes, AFFINITY)
        if state.shuns_all:
            _fail(codes, ANTI_AFFINITY)
        _fail(codes, ANTI_AFFINITY, _any_above_zero(state.shunned, rows, codes))

    def reasons(self, state: Required, code: int) -> tuple[str, ...]:
        if code == EXISTING_UNREADABLE:
            return (state.error or "",)
        if code < 0:
            node = state.cluster.nodes.names[OWN_UNREADABLE - code]
            what = f"Cannot schedule pod {_full_name(state.pod)} onto node {node}"
            return (f"{what}, because of PodAffinity, err: {state.own_error}",)
        if code == UNREADABLE:
            return (state.unreadable or "",)
        return (REASONS[code],) if self.rules is Rules.TODAY else (NOT_MATCHED, REASONS[code])

    def mend(self, state: Required, changes: Changes) -> Rows | None:
        if changes.nodes and not all(tally.holds() for tally in state.tallies()):
            return None
        if changes.pods and (state.error is not None or state.is_refused):
            return None
        if self.rules is not Rules.TODAY and any(map(state.reaching.is_refused, changes.spec_ids)):
            return None
        were_alone = state.lone_companies()
        for change in changes.pods:
            state.change(change)
        if self._is_blocked_without_key(state):
            return None
        if were_alone != state.lone_companies():
            return ALL_ROWS
        touched = np.zeros(state.cluster.nodes.n_rows, dtype=np.bool_)
        for tally in state.tallies():
            tally.mark_touched(touched)
        return np.flatnonzero(touched)

    def batch(self, state: Required, feasible: NDArray[np.bool_]) -> BatchKind | Classed:
        return BatchKind.SERIAL if state.moves_itself() else BatchKind.CONSTANT

    def moved_by(self, state: Required, other: Incoming) -> bool:
        return state.moved_by(other.namespace_id, other.labels_id, other.spec_id)

    def _is_blocked_without_key(self, state: Required) -> bool:
        return self.rules is Rules.EACH_TERM and "" in state.blocked.sums


def _fail(codes: IntColumn, code: int, failed: BoolColumn | bool = True) -> None:
    """Give rows a code if they have none yet."""
    codes[failed & (codes == FITS)] = code


def _any_above_zero(tally: Tally, rows: Rows, like: IntColumn) -> BoolColumn:
    found = np.zeros(len(like), dtype=np.bool_)
    for key in list(tally.sums):
        found |= is_above_zero(tally, key, rows)
    return found


def _full_name(pod: Incoming) -> str:
    return f"{pod.namespace}/{pod.name}"
