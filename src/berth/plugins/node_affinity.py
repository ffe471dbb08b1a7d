"""Which nodes a pod names by their labels: NodeAffinity, formerly MatchNodeSelector and NodeAffinityPriority.

Source: 1.10 to 1.17, ``predicates.go`` (``podMatchesNodeSelectorAndAffinityTerms``) and ``priorities/node_affinity.go``;
1.36, ``plugins/nodeaffinity/node_affinity.go``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, BoolColumn, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import Changes
from berth.framework.changes import Action, Change, Hint, NodeChange, Resource
from berth.framework.node_selection import (
    NAME_FIELD,
    matcher_of,
    matches_expressions,
    matches_node_selector,
    matches_term,
)
from berth.framework.normalize import Scaling
from berth.framework.plugin import FITS, BatchKind, FilterPlugin, Rejection, ScorePlugin
from berth.objects.nodes import Node
from berth.objects.pods import NodeSelector, NodeSelectorTerm, PreferredSchedulingTerm
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
    reads_pods = False

    def skips(self, pod: Incoming, cluster: Cluster) -> bool:
        return _wants_no_nodes(pod)

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

    def passes(self, state: BoolColumn, rows: Rows = ALL_ROWS) -> BoolColumn:
        return state[rows]

    def filter(self, state: BoolColumn, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return (~state[rows]).astype(np.int64)

    def reasons(self, state: BoolColumn, code: int) -> tuple[str, ...]:
        return (self.reason,) if code != FITS else ()

    def batch(self, state: BoolColumn, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which nodes a pod and the profile want.

    Attributes
    ----------
    matches, enforced : bool[n_rows]
        The rows that the pod's terms match, and those that the profile's do.
    names : frozenset of str or None
        The only nodes that can match, if the pod's terms name some.
    """

    matches: BoolColumn
    enforced: BoolColumn
    names: frozenset[str] | None


@dataclass(frozen=True, slots=True)
class NodeAffinity(FilterPlugin[Wanted]):
    """The same in 1.36: nodes that the terms name are the only ones to be asked, and a profile may add terms of its own.

    Attributes
    ----------
    added : NodeSelector or None
        Terms of which every pod's node has to meet one (``addedAffinity``).
    """

    added: NodeSelector | None = None

    name = "NodeAffinity"
    reads_pods = False
    wakes_on = {Resource.NODE: Action.ADD | Action.UPDATE_NODE_LABEL}

    def skips(self, pod: Incoming, cluster: Cluster) -> bool:
        return self.added is None and _wants_no_nodes(pod)

    def prepare(self, pod: Incoming, cluster: Cluster) -> Wanted:
        enforced = np.ones(cluster.nodes.n_rows, dtype=np.bool_)
        if self.added is not None:
            enforced = matches_node_selector(cluster.nodes, self.added)
        affinity = pod.info.spec.affinity
        required = affinity.node_affinity.required if affinity and affinity.node_affinity else None
        names = names_in(required.node_selector_terms) if required else None
        return Wanted(MatchNodeSelector().prepare(pod, cluster), enforced, names)

    def mend(self, state: Wanted, changes: Changes) -> Rows | None:
        return None if changes.nodes else changes.rows

    def reject(self, state: Wanted) -> Rejection | None:
        return Rejection(("pod affinity terms conflict",)) if state.names == frozenset() else None

    def restrict(self, state: Wanted) -> frozenset[str] | None:
        return state.names

    def passes(self, state: Wanted, rows: Rows = ALL_ROWS) -> BoolColumn:
        matches: BoolColumn = state.matches[rows]
        return matches if self.added is None else matches & state.enforced[rows]

    def filter(self, state: Wanted, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        codes = (~state.matches[rows]).astype(np.int64)
        codes[~state.enforced[rows]] = 2
        return codes

    def reasons(self, state: Wanted, code: int) -> tuple[str, ...]:
        if code == 2:
            return ("node(s) didn't match scheduler-enforced node affinity",)
        return ("node(s) didn't match Pod's node affinity/selector",) if code != FITS else ()

    def hint(self, pod: Incoming, cluster: Cluster) -> Hint:
        spec = pod.info.spec
        labels = from_map(spec.node_selector)
        required = (
            spec.affinity.node_affinity.required if spec.affinity and spec.affinity.node_affinity else None
        )
        terms = [matcher_of(required)] if required else []
        enforced = [matcher_of(self.added)] if self.added else []

        def matches(node: Node) -> bool:
            return labels.matches(node.metadata.labels) and all(
                matches_terms(node) for matches_terms in (*terms, *enforced)
            )

        def helps(change: Change) -> bool:
            match change:
                case NodeChange(old=old, new=new) if new:
                    return matches(new) and (old is None or not matches(old))
            return False

        return helps

    def batch(self, state: Wanted, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT


def _wants_no_nodes(pod: Incoming) -> bool:
    """Tell whether the pod leaves it to others where it goes."""
    spec = pod.info.spec
    affinity = spec.affinity.node_affinity if spec.affinity else None
    return not spec.node_selector and (affinity is None or affinity.required is None)


def names_in(terms: Sequence[NodeSelectorTerm]) -> frozenset[str] | None:
    """Return the names of the only nodes that terms can match, None if one of them names none."""
    names: frozenset[str] = frozenset()
    for term in terms:
        named = [
            frozenset(field.values)
            for field in term.match_fields
            if (field.key, field.operator) == (NAME_FIELD, "In")
        ]
        if not named:
            return None
        names |= frozenset.intersection(*named)
    return names if terms else None


@dataclass(frozen=True, slots=True)
class Preference:
    """The summed weights of the terms that each node meets, or why they can't be read."""

    weights: IntColumn
    error: str | None = None


@dataclass(frozen=True, slots=True)
class PreferMatchingNodes(ScorePlugin[Preference]):
    """The more weight of preferred terms a node meets, the better.

    Attributes
    ----------
    with_fields : bool
        Whether terms may ask for fields, and one without anything matches no node (1.36). Up to 1.17 only
        expressions count.
    added : tuple of PreferredSchedulingTerm
        Terms that count for every pod (``addedAffinity``).
    """

    maximum: int
    with_fields: bool = False
    added: tuple[PreferredSchedulingTerm, ...] = ()

    name = "NodeAffinity"
    reads_pods = False

    def skips(self, pod: Incoming, cluster: Cluster) -> bool:
        affinity = pod.info.spec.affinity
        own = affinity.node_affinity.preferred if affinity and affinity.node_affinity else ()
        return not own and not self.added

    def prepare(self, pod: Incoming, cluster: Cluster) -> Preference:
        affinity = pod.info.spec.affinity
        terms = affinity.node_affinity.preferred if affinity and affinity.node_affinity else ()
        weights: IntColumn | None = None
        error = None
        try:
            for term in (*self.added, *terms):
                if term.weight:
                    own = self._matches(term.preference, cluster) * np.int64(term.weight)
                    weights = own if weights is None else np.add(weights, own, out=weights)
        except SelectorError as refused:
            error = str(refused)
        return Preference(np.zeros(cluster.nodes.n_rows, np.int64) if weights is None else weights, error)

    def mend(self, state: Preference, changes: Changes) -> Rows | None:
        return None if changes.nodes else changes.rows

    def error(self, state: Preference) -> str | None:
        return state.error

    def is_idle(self, state: Preference) -> bool:
        return not state.weights.any()

    def score(self, state: Preference, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return state.weights[rows].copy()

    @property
    def scaling(self) -> Scaling:
        return Scaling(self.maximum, reverse=False)

    def batch(self, state: Preference, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT

    def _matches(self, preference: NodeSelectorTerm, cluster: Cluster) -> BoolColumn:
        selector = _selector(preference.match_expressions)
        if not self.with_fields or not preference.match_fields:
            return cluster.nodes.labels.matches(selector)
        for field in preference.match_fields:
            if field.operator not in ("In", "NotIn") or len(field.values) != 1:
                raise SelectorError(
                    "matchFields", [field.operator, *field.values], "In or NotIn, and one value"
                )
        return matches_term(cluster.nodes, preference)


_selector = lru_cache(maxsize=1_024)(from_node_expressions)
"""What pods prefer is the same again and again, and to check it takes as long as to look for it."""
