"""What pods hold of the resources that the pod asks for, as columns."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import IntColumn
from berth.cluster.pods import PodIds
from berth.framework.rules import Term
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.preemption.outcome import Nomination

Amounts = dict[int, IntColumn]
"""By resource id, int64[n_rows]."""


class Resources:
    """The resources that filters ask for which look at nothing else (`berth.framework.plugin.Plugin.resource_rule`).

    Attributes
    ----------
    filters : frozenset of int
        These filters, by their indices in the profile.
    """

    def __init__(self, evaluation: Evaluation, waiting: Mapping[int, Sequence[Nomination]]) -> None:
        self._cluster = evaluation.cluster
        parts = zip(
            evaluation.profile.filters, evaluation.filter_states, evaluation.busy_filters, strict=True
        )
        rules = {i: f.plugin.resource_rule(state) for i, (f, state, busy) in enumerate(parts) if busy}
        terms = {i: rule.terms for i, rule in rules.items() if rule is not None}
        self.filters = frozenset(terms)
        self._terms: list[Term] = [term for its in terms.values() for term in its]
        self._waiting = self._of_nominated(waiting)

    def held(self, pods: PodIds) -> Amounts:
        """Sum by row what pods hold."""
        rows = self._cluster.pods.node_row[pods]
        found = self._nothing()
        for term, need in zip(self._terms, self.needs(pods), strict=True):
            found[term.resource_id][:] = 0
            np.add.at(found[term.resource_id], rows, need)
        return found

    def needs(self, pods: PodIds) -> NDArray[np.int64]:
        """Return what each pod holds (int64[n_terms, n])."""
        held, spec_ids = self._cluster.specs.held(), self._cluster.pods.column("spec_id")[pods]
        needs = np.zeros((len(self._terms), len(spec_ids)), dtype=np.int64)
        for i, term in enumerate(self._terms):
            if term.resource_id in held:
                needs[i] = held[term.resource_id][spec_ids]
        return needs

    def room(self, gone: Amounts, rows: NDArray[np.int32]) -> NDArray[np.int64]:
        """Return what rows have left beside the pod and those that wait, with amounts gone (int64[n_terms, n])."""
        room = np.zeros((len(self._terms), len(rows)), dtype=np.int64)
        with self.without(gone):
            for i, term in enumerate(self._terms):
                offered = self._cluster.nodes.allocatable.of(term.resource_id)[rows]
                room[i] = offered - self._cluster.requested.of(term.resource_id)[rows] - term.asked
        return room

    @contextmanager
    def without(self, gone: Amounts) -> Iterator[None]:
        """For as long as it lasts, take amounts off what is requested of all nodes, and add what others wait for."""
        self._add(self._waiting, 1)
        self._add(gone, -1)
        try:
            yield
        finally:
            self._add(gone, 1)
            self._add(self._waiting, -1)

    def _add(self, amounts: Amounts, sign: int) -> None:
        for resource_id, column in amounts.items():
            self._cluster.requested.of(resource_id)[:] += sign * column

    def _of_nominated(self, waiting: Mapping[int, Sequence[Nomination]]) -> Amounts:
        if not waiting:
            return {}
        found = self._nothing()
        for row, there in waiting.items():
            for resource_id, column in found.items():
                column[row] = sum(n.pod.info.held.get(resource_id, 0) for n in there)
        return found

    def _nothing(self) -> Amounts:
        n_rows = self._cluster.nodes.n_rows
        return {term.resource_id: np.zeros(n_rows, dtype=np.int64) for term in self._terms}
