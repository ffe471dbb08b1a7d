"""Which nodes a pod names by their labels: MatchNodeSelector and NodeAffinityPriority.

Source: 1.10 to 1.17, ``predicates.go`` (``podMatchesNodeSelectorAndAffinityTerms``) and ``priorities/node_affinity.go``.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, BoolColumn, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import Changes
from berth.framework.node_selection import matches_expressions, matches_node_selector
from berth.framework.normalize import scale_to_maximum
from berth.framework.plugin import FITS, BatchKind, FilterPlugin, ScorePlugin
from berth.objects.pods import PreferredSchedulingTerm
from berth.objects.selectors import SelectorError, from_map, from_node_expressions


@dataclass(frozen=True, slots=True)
class MatchNodeSelector(FilterPlugin[BoolColumn]):
    """The node has the labels of ``nodeSelector`` and meets one term of the required node affinity.

    Attributes
    ----------
    match_fields : bool
        Whether terms may ask for fields, and one that is refused harms no other (since 1.11).
    """

    match_fields: bool = True
    reason: str = "node(s) didn't match node selector"

    name = "NodeAffinity"

    def prepare(self, pod: Incoming, cluster: Cluster) -> BoolColumn:
        spec = pod.info.spec
        matches = cluster.nodes.labels.matches(from_map(spec.node_selector))
        affinity = spec.affinity.node_affinity if spec.affinity else None
        if affinity and affinity.required is not None:
            match = matches_node_selector if self.match_fields else matches_expressions
            matches &= match(cluster.nodes, affinity.required)
        return matches

    def mend(self, state: BoolColumn, changes: Changes) -> Rows | None:
        return None if changes.nodes else changes.rows

    def filter(self, state: BoolColumn, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return (~state[rows]).astype(np.int64)

    def reasons(self, state: BoolColumn, code: int) -> tuple[str, ...]:
        return (self.reason,) if code != FITS else ()

    def batch(self, state: BoolColumn, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT


@dataclass(frozen=True, slots=True)
class Preference:
    """The summed weights of the terms that each node meets, or why they can't be read."""

    weights: IntColumn
    error: str | None = None


@dataclass(frozen=True, slots=True)
class PreferMatchingNodes(ScorePlugin[Preference]):
    """The more weight of preferred terms a node meets, the better. Up to 1.17 only expressions count, not fields."""

    maximum: int

    name = "NodeAffinity"

    def prepare(self, pod: Incoming, cluster: Cluster) -> Preference:
        affinity = pod.info.spec.affinity
        terms = affinity.node_affinity.preferred if affinity and affinity.node_affinity else ()
        weights = np.zeros(cluster.nodes.n_rows, dtype=np.int64)
        try:
            for term in terms:
                self._add(weights, term, cluster)
        except SelectorError as error:
            return Preference(weights, str(error))
        return Preference(weights)

    def mend(self, state: Preference, changes: Changes) -> Rows | None:
        return None if changes.nodes else changes.rows

    def error(self, state: Preference) -> str | None:
        return state.error

    def score(self, state: Preference, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return state.weights[rows].copy()

    def normalize(self, state: Preference, scores: IntColumn, rows: NDArray[np.intp]) -> IntColumn:
        return scale_to_maximum(scores, self.maximum, reverse=False)

    def batch(self, state: Preference, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT

    @staticmethod
    def _add(weights: IntColumn, term: PreferredSchedulingTerm, cluster: Cluster) -> None:
        if term.weight:
            weights[
                cluster.nodes.labels.matches(from_node_expressions(term.preference.match_expressions))
            ] += term.weight
