"""InterPodAffinityPriority: preferred terms, those of the pod and those of the pods that are there.

Source: ``priorities/interpod_affinity.go`` of 1.10, 1.13 and 1.17, ``plugins/interpodaffinity/scoring.go`` of
1.36.
"""

from dataclasses import dataclass
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, FloatColumn, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import Changes
from berth.framework.plugin import BatchKind, Classed, ScorePlugin
from berth.plugins.inter_pod_affinity.matching import Reaching, Watch, on_nodes
from berth.plugins.inter_pod_affinity.tally import Tally
from berth.plugins.inter_pod_affinity.terms import Kind, Rules, SpecTerms, TermIndex, terms_of


class Unreadable(Enum):
    """What a term that can't be read does to the score."""

    FAILS = "up to 1.13: the decision fails"
    ZERO = "1.17: the priority is 0 everywhere"
    LEFT_OUT = "1.36: the list with the term is left out"


@dataclass(slots=True)
class Preferred:
    """What is known of one shape.

    Attributes
    ----------
    tally : Tally
        The weights of all terms that hold, per topology domain.
    watches : list of (Watch, int)
        The pod's own preferred terms, with their weights (negative: anti-affinity).
    refusal : str or None
        The error of a term that can't be read, where that matters.
    needs_readable : bool
        Terms of the pod itself can't be read; that matters as soon as there is a pod to compare with.
    is_off : bool
        The priority is skipped for this pod (1.36).
    """

    pod: Incoming
    cluster: Cluster
    reaching: Reaching
    tally: Tally
    watches: list[tuple[Watch, int]]
    refusal: str | None = None
    needs_readable: bool = False
    is_off: bool = False


@dataclass(frozen=True, slots=True)
class InterPodAffinityPriority(ScorePlugin[Preferred]):
    """The more preferred company on the node, and the less that is shunned, the better.

    Attributes
    ----------
    maximum : int
        The highest score: 10 up to 1.13, 100 since.
    hard_pod_affinity_weight : int
        What a required affinity term of a pod that is there weighs, if it selects the incoming pod.
    from_zero : bool
        The lowest and highest sum of the normalisation are at most and at least 0 (up to 1.17).
    any_of : tuple of str
        What an empty topology key means (1.7: any of `DEFAULT_KEYS`); none: no node at all.
    ignores_existing_preferences : bool
        A pod without preferred terms of its own is not scored (``ignorePreferredTermsOfExistingPods``).
    """

    rules: Rules = Rules.ALL_TERMS
    maximum: int = 10
    hard_pod_affinity_weight: int = 1
    from_zero: bool = True
    unreadable: Unreadable = Unreadable.FAILS
    ignores_existing_preferences: bool = False
    any_of: tuple[str, ...] = ()

    name = "InterPodAffinity"

    def skips(self, pod: Incoming, cluster: Cluster) -> bool:
        return not pod.info.has_affinity and not cluster.affinity_pods

    def prepare(self, pod: Incoming, cluster: Cluster) -> Preferred:
        weights = {Kind.PREFERRED_AFFINITY: 1, Kind.PREFERRED_ANTI_AFFINITY: -1}
        if self.hard_pod_affinity_weight > 0:
            weights[Kind.REQUIRED_AFFINITY] = self.hard_pod_affinity_weight
        reaching = Reaching(cluster, pod, TermIndex.of(cluster, self.rules), weights)
        state = Preferred(
            pod, cluster, reaching, Tally(cluster.nodes, presence=False, any_of=self.any_of), []
        )
        reaching.count(state.tally)
        terms = terms_of(pod.info.spec.affinity, self.rules)
        self._count_own(state, terms)
        self._note_refusals(state, terms)
        state.is_off = self.ignores_existing_preferences and not state.watches
        return state

    def _count_own(self, state: Preferred, terms: SpecTerms) -> None:
        pods = state.cluster.pods
        for kind, sign in ((Kind.PREFERRED_AFFINITY, 1), (Kind.PREFERRED_ANTI_AFFINITY, -1)):
            for term in terms.of.get(kind, ()):
                watch = Watch(state.cluster, state.pod, term)
                state.watches.append((watch, sign * term.weight))
                rows = pods.node_row[on_nodes(state.cluster) & watch.pods()]
                state.tally.add(term.topology_key, rows, sign * term.weight)

    def _note_refusals(self, state: Preferred, terms: SpecTerms) -> None:
        if self.unreadable is Unreadable.LEFT_OUT:
            return
        existing = state.reaching.refusal()
        if existing is not None:
            state.refusal = str(existing)
        for kind in (Kind.PREFERRED_AFFINITY, Kind.PREFERRED_ANTI_AFFINITY):
            if kind in terms.refused:
                state.needs_readable = True
                if on_nodes(state.cluster).any():
                    state.refusal = str(terms.refused[kind])

    def error(self, state: Preferred) -> str | None:
        return state.refusal if self.unreadable is Unreadable.FAILS else None

    def is_idle(self, state: Preferred) -> bool:
        return state.is_off or not (state.tally.sums or state.refusal or state.needs_readable)

    def score(self, state: Preferred, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        total = np.zeros(len(state.cluster.nodes.alive[rows]), dtype=np.int64)
        if state.refusal is None and not state.is_off:
            for key in state.tally.sums:
                total += state.tally.of(key, rows)
        return total

    def normalize(self, state: Preferred, scores: IntColumn, rows: NDArray[np.intp]) -> IntColumn:
        return spread_out(scores, self.maximum, from_zero=self.from_zero)

    def mend(self, state: Preferred, changes: Changes) -> Rows | None:
        if changes.nodes and not state.tally.holds():
            return None
        if changes.pods and (state.refusal is not None or state.needs_readable):
            return None
        if self.unreadable is not Unreadable.LEFT_OUT and any(
            map(state.reaching.is_refused, changes.spec_ids)
        ):
            return None
        for change in changes.pods:
            state.reaching.change(state.tally, change)
            for watch, weight in state.watches:
                if watch.selects(change.namespace_id, change.labels_id):
                    state.tally.change(watch.term.topology_key, change.row, change.sign * weight)
        touched = np.zeros(state.cluster.nodes.n_rows, dtype=np.bool_)
        state.tally.mark_touched(touched)
        return np.flatnonzero(touched)

    def batch(self, state: Preferred, feasible: NDArray[np.bool_]) -> BatchKind | Classed:
        if state.is_off or state.refusal is not None:
            return BatchKind.CONSTANT
        moves = (
            (self.unreadable is not Unreadable.LEFT_OUT and state.reaching.is_refused(state.pod.spec_id))
            or state.needs_readable
            or state.reaching.has_own()
            or any(watch.selects(state.pod.namespace_id, state.pod.labels_id) for watch, _ in state.watches)
        )
        return BatchKind.SERIAL if moves else BatchKind.CONSTANT

    def moved_by(self, state: Preferred, other: Incoming) -> bool:
        if any(watch.selects(other.namespace_id, other.labels_id) for watch, _ in state.watches):
            return True
        if self.unreadable is not Unreadable.LEFT_OUT and (state.refusal is not None or state.needs_readable):
            return True
        return other.info.has_affinity and (
            state.reaching.has_terms_of(other.spec_id)
            or (self.unreadable is not Unreadable.LEFT_OUT and state.reaching.is_refused(other.spec_id))
        )


def spread_out(sums: IntColumn, maximum: int, *, from_zero: bool) -> IntColumn:
    """Scale sums of weights so that the lowest becomes 0, the highest ``maximum``; all alike, they become 0.

    Parameters
    ----------
    from_zero : bool
        Count 0 among the sums: a lowest sum above it, or a highest below it, is not at the end of the scale.
    """
    if not len(sums):
        return sums.copy()
    lowest, highest = int(sums.min()), int(sums.max())
    if from_zero:
        lowest, highest = min(lowest, 0), max(highest, 0)
    if highest == lowest:
        return np.zeros_like(sums)
    # Upstream's floats in upstream's order: the division comes first.
    share: FloatColumn = (sums - lowest) / float(highest - lowest)
    return (float(maximum) * share).astype(np.int64)
