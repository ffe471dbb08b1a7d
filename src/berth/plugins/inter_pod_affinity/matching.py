"""Which pods terms mean: existing pods by the incoming pod's, the incoming pod by those of existing pods."""

from collections.abc import Iterable, Mapping

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import NONE, BoolColumn
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import PodChange
from berth.objects.selectors import SelectorError
from berth.plugins.inter_pod_affinity.tally import Tally
from berth.plugins.inter_pod_affinity.terms import Kind, Term, TermIndex, speaks_of

MANY_PODS = 2_000
"""From so many pods on, looking through the column of specs is quicker than gathering their sets."""


class Watch:
    """The pods that one term of the incoming pod selects, wherever they are."""

    def __init__(self, cluster: Cluster, pod: Incoming, term: Term) -> None:
        self.term = term
        self._cluster = cluster
        # 1.36 turns the namespace selector into names, but asks it again, of labels that it does not know.
        self._everywhere = term.namespace_selector.matches({})
        self._namespaces = set(term.namespaces)
        if term.own_namespace:
            self._namespaces.add(pod.namespace)
        if term.namespace_selector.requirements:
            for namespace in cluster.objects.namespaces.all():
                if term.namespace_selector.matches(namespace.metadata.labels):
                    self._namespaces.add(namespace.metadata.name)
        self._matching_sets = cluster.label_sets.matches(term.selector)

    def selects(self, namespace_id: int, labels_id: int) -> bool:
        """Tell whether the term selects pods of a namespace and a label set."""
        if labels_id >= len(self._matching_sets):
            self._matching_sets = self._cluster.label_sets.matches(self.term.selector)
        return bool(self._matching_sets[labels_id]) and (
            self._everywhere or self._cluster.namespaces.items[namespace_id] in self._namespaces
        )

    def pods(self) -> BoolColumn:
        """Tell which pods the term selects, wherever they are (bool[n_pods])."""
        pods = self._cluster.pods
        selected: BoolColumn = self._matching_sets[pods.column("labels_id")]
        if not self._everywhere:
            reached = np.zeros(len(self._cluster.namespaces), dtype=np.bool_)
            for name in self._namespaces:
                namespace_id = self._cluster.namespaces.find(name)
                if namespace_id != NONE:
                    reached[namespace_id] = True
            selected &= reached[pods.column("namespace_id")]
        return selected


class Reaching:
    """The terms of existing pods that select the incoming pod.

    Parameters
    ----------
    weights : mapping of kind to int
        The kinds that count, and what the weight of such a term is multiplied by.
    """

    def __init__(
        self, cluster: Cluster, pod: Incoming, index: TermIndex, weights: Mapping[Kind, int]
    ) -> None:
        self._cluster = cluster
        self._pod = pod
        self._index = index
        self._weights = weights
        namespace = cluster.objects.namespaces.get("", pod.namespace)
        self._namespace_labels = namespace.metadata.labels if namespace else {}
        self._of_spec: dict[int, list[tuple[str, int, bool]]] = {}

    def refusal(self) -> SelectorError | None:
        """Return the error of a term of an existing pod that can't be read, if there is one."""
        for kind in self._weights:
            for spec_id, error in self._index.refused[kind].items():
                if self._cluster.affinity_pods[spec_id]:
                    return error
        return None

    def is_refused(self, spec_id: int) -> bool:
        """Tell whether pods of a spec have terms that can't be read."""
        terms = self._index.spec(self._cluster, spec_id)
        return any(kind in terms.refused for kind in self._weights)

    def count(self, tally: Tally) -> None:
        """Add all existing pods' terms to a tally."""
        specs: dict[tuple[str, int, bool], list[int]] = {}
        for kind, multiplier in self._weights.items():
            for spec_id, term in self._index.candidates(kind, self._pod.labels):
                if self._cluster.affinity_pods[spec_id] and self._selected_by(term):
                    what = (term.topology_key, multiplier * term.weight, term.own_namespace)
                    specs.setdefault(what, []).append(spec_id)
        for (key, amount, own_namespace), spec_ids in specs.items():
            tally.add(key, self._rows(spec_ids, own_namespace), amount)

    def change(self, tally: Tally, change: PodChange) -> None:
        """Bring a tally up to date with a pod that came or went."""
        if not self._cluster.specs[change.spec_id].has_affinity:
            return
        for key, amount, own_namespace in self._selecting_terms(change.spec_id):
            if not own_namespace or change.namespace_id == self._pod.namespace_id:
                tally.change(key, change.row, change.sign * amount)

    def own(self) -> list[tuple[str, int]]:
        """Return key and amount of the incoming pod's terms that select the pod itself, and so every other one like it."""
        return [(key, amount) for key, amount, _ in self._selecting_terms(self._pod.spec_id)]

    def has_terms_of(self, spec_id: int) -> bool:
        """Tell whether terms of a spec select the incoming pod."""
        return bool(self._selecting_terms(spec_id))

    def _selecting_terms(self, spec_id: int) -> list[tuple[str, int, bool]]:
        terms = self._of_spec.get(spec_id)
        if terms is None:
            terms = self._of_spec[spec_id] = self._find_selecting_terms(spec_id)
        return terms

    def _find_selecting_terms(self, spec_id: int) -> list[tuple[str, int, bool]]:
        return [
            (term.topology_key, multiplier * term.weight, term.own_namespace)
            for kind, multiplier in self._weights.items()
            for term in self._index.spec(self._cluster, spec_id).of.get(kind, ())
            if self._selected_by(term)
        ]

    def _selected_by(self, term: Term) -> bool:
        return speaks_of(term, self._pod.namespace, self._namespace_labels, self._pod.labels)

    def _rows(self, spec_ids: list[int], own_namespace: bool) -> NDArray[np.int32]:
        """Return the rows of all pods of specs, as often as there are pods (a spec may be named twice)."""
        members, pods = self._cluster.affinity_pods, self._cluster.pods
        ids: NDArray[np.intp]
        if (
            len(set(spec_ids)) == len(spec_ids)
            and sum(len(members[spec_id]) for spec_id in spec_ids) >= MANY_PODS
        ):
            wanted = np.zeros(len(self._cluster.specs), dtype=np.bool_)
            wanted[spec_ids] = True
            ids = np.flatnonzero(wanted[pods.column("spec_id")] & on_nodes(self._cluster))
        else:
            ids = np.array([pod for spec_id in spec_ids for pod in members[spec_id]], dtype=np.intp)
        if own_namespace:
            ids = ids[pods.column("namespace_id")[ids] == self._pod.namespace_id]
        return pods.node_row[ids]


def on_nodes(cluster: Cluster) -> BoolColumn:
    """Tell which pods count: on a node that is known, neither Succeeded nor Failed (bool[n_pods])."""
    placed: BoolColumn = cluster.pods.active & (cluster.pods.node_row != NONE)
    return placed


def selected_by_all(watches: Iterable[Watch], placed: BoolColumn) -> BoolColumn:
    """Tell which placed pods all terms select (bool[n_pods])."""
    selected = placed.copy()
    for watch in watches:
        selected &= watch.pods()
    return selected
