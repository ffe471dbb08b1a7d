"""What required terms need to know of the pods that are there, counted per domain. Knows no verdicts."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import takewhile

import numpy as np

from berth.cluster.arrays import BoolColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import PodChange
from berth.plugins.inter_pod_affinity.matching import Reaching, Watch, on_nodes, selected_by_all
from berth.plugins.inter_pod_affinity.tally import NODE, Tally
from berth.plugins.inter_pod_affinity.terms import Kind, Rules, SpecTerms, Term

HOSTNAME = "kubernetes.io/hostname"
EMPTY_KEY = "empty topologyKey is not allowed except for PreferredDuringScheduling pod anti-affinity"


LISTS = {
    Kind.REQUIRED_AFFINITY: "requiredAffinityTerms",
    Kind.REQUIRED_ANTI_AFFINITY: "requiredAntiAffinityTerms",
    Kind.PREFERRED_AFFINITY: "preferredAffinityTerms",
    Kind.PREFERRED_ANTI_AFFINITY: "preferredAntiAffinityTerms",
}
"""What 1.36 calls the lists of terms in its errors, in the order in which it reads them."""


@dataclass(slots=True)
class Company:
    """Required affinity terms that one and the same pod has to meet.

    Attributes
    ----------
    keys : tuple of str
        The topology keys of the terms.
    tally : Tally
        Pods that all terms select, per domain of each key.
    n_pods : int
        How many they are, wherever they are.
    includes_itself : bool
        The terms select the pod itself, so that it may be the first of a series.
    """

    watches: tuple[Watch, ...]
    keys: tuple[str, ...]
    tally: Tally
    n_pods: int
    includes_itself: bool

    def change(self, change: PodChange) -> None:
        """Note a pod that came or went."""
        if all(watch.selects(change.namespace_id, change.labels_id) for watch in self.watches):
            self.n_pods += change.sign
            for key in self.keys:
                self.tally.change(key, change.row, change.sign)

    def is_met(self, rows: Rows, rules: Rules) -> BoolColumn:
        """Tell where the terms are met by a pod that is there, or the pod may be the first of its series."""
        met: BoolColumn = np.logical_and.reduce([is_above_zero(self.tally, key, rows) for key in self.keys])
        if not self.includes_itself:
            return met
        if rules is Rules.EACH_TERM:
            if NODE in self.keys:
                first: BoolColumn = self.tally.of(NODE, rows) == 0
                return met | first
            return met if self.n_pods else np.ones_like(met)
        # Pods outside of all the domains do not count as others of the series.
        if not self.tally.is_empty():
            return met
        if rules is Rules.ALL_TERMS:
            return np.ones_like(met)
        labelled: BoolColumn = np.logical_and.reduce([self.tally.has(key, rows) for key in self.keys])
        return labelled


@dataclass(slots=True)
class Required:
    """What is known of one shape: who keeps it away, whom it needs, whom it shuns.

    Attributes
    ----------
    blocked : Tally
        Required anti-affinity terms of existing pods that select the pod.
    error : str or None
        Why existing pods' terms can't be read.
    own_error : str or None
        Why the pod's own required affinity can't be read.
    shuns_all : bool
        The pod's required anti-affinity can't be read; up to 1.17 every node then fails it.
    is_refused : bool
        Up to 1.17: some of the pod's own terms can't be read; whether there are pods at all then matters.
    unreadable : str or None
        Why the pod's own terms can't be read (1.36).
    """

    pod: Incoming
    cluster: Cluster
    rules: Rules
    reaching: Reaching
    blocked: Tally
    shunned: Tally
    companies: tuple[Company, ...] = ()
    shuns: tuple[Watch, ...] = ()
    error: str | None = None
    own_error: str | None = None
    shuns_all: bool = False
    is_refused: bool = False
    unreadable: str | None = None

    def count_own(self, terms: SpecTerms) -> None:
        """Count the pods that the pod's own terms select."""
        required = terms.of.get(Kind.REQUIRED_AFFINITY, ())
        anti = terms.of.get(Kind.REQUIRED_ANTI_AFFINITY, ())
        if not (required or anti or terms.refused):
            return
        placed = on_nodes(self.cluster)
        self._note_refusals(terms, bool(placed.any()))
        together: Iterable[tuple[Term, ...]] = [required]
        if self.rules is Rules.EACH_TERM:
            together = ((term,) for term in takewhile(lambda term: term.topology_key, required))
        self.companies = tuple(self._company(group, placed) for group in together if group)
        self.shuns = tuple(Watch(self.cluster, self.pod, term) for term in anti)
        for watch in self.shuns:
            rows = self.cluster.pods.node_row[placed & watch.pods()]
            self.shunned.add(self._key(watch.term), rows)

    def change(self, change: PodChange) -> None:
        """Note a pod that came or went."""
        self.reaching.change(self.blocked, change)
        for company in self.companies:
            company.change(change)
        for watch in self.shuns:
            if watch.selects(change.namespace_id, change.labels_id):
                self.shunned.change(self._key(watch.term), change.row, change.sign)

    def lone_companies(self) -> list[tuple[bool, bool]]:
        """Return what the rules of a series' first pod hang on; when it changes, it does so for all nodes."""
        return [(company.n_pods == 0, company.tally.is_empty()) for company in self.companies]

    def tallies(self) -> Iterator[Tally]:
        """Iterate over all tallies."""
        yield from (self.blocked, self.shunned)
        yield from (company.tally for company in self.companies)

    def shunned_by_itself(self) -> list[str]:
        """Return the topology keys of which a pod of the shape keeps others of the shape out of its domain."""
        own = [self._key(w.term) for w in self.shuns if w.selects(self.pod.namespace_id, self.pod.labels_id)]
        return list(dict.fromkeys([*own, *(key for key, _ in self.reaching.own())]))

    def parts_all_nodes(self, key: str) -> bool:
        """Tell whether no two nodes share a domain of a topology key."""
        slots = self.shunned.slots(key)[self.cluster.nodes.alive]
        return int(np.bincount(slots)[1:].max(initial=0)) <= 1

    def moves_itself(self) -> bool:
        """Tell whether another pod of the shape could change the answers for the shape."""
        return self.is_refused or self.moved_by(self.pod.namespace_id, self.pod.labels_id, self.pod.spec_id)

    def moved_by(self, namespace_id: int, labels_id: int, spec_id: int) -> bool:
        """Tell whether a pod of a namespace, with labels and a spec, could change the answers for the shape."""
        if self.cluster.specs[spec_id].has_affinity and (
            self.reaching.has_terms_of(spec_id)
            or (self.rules is not Rules.TODAY and self.reaching.is_refused(spec_id))
        ):
            return True
        return any(
            all(watch.selects(namespace_id, labels_id) for watch in company.watches)
            for company in self.companies
        ) or any(watch.selects(namespace_id, labels_id) for watch in self.shuns)

    def _note_refusals(self, terms: SpecTerms, any_pods: bool) -> None:
        if self.rules is Rules.TODAY:
            self.unreadable = _parse_error(terms)
            return
        alone = self.rules is Rules.EACH_TERM
        refused = terms.refused.get(Kind.REQUIRED_AFFINITY)
        if alone and any(not term.topology_key for term in terms.of.get(Kind.REQUIRED_AFFINITY, ())):
            self.own_error = EMPTY_KEY
        elif refused is not None:
            self.own_error = str(refused)
        anti = terms.of.get(Kind.REQUIRED_ANTI_AFFINITY, ())
        # 1.13 and 1.17 read the terms when they come to the first pod.
        self.shuns_all = (alone or any_pods) and Kind.REQUIRED_ANTI_AFFINITY in terms.refused
        self.shuns_all |= alone and any(not term.topology_key for term in anti)
        self.is_refused = self.own_error is not None or self.shuns_all or bool(terms.refused)

    def _company(self, terms: tuple[Term, ...], placed: BoolColumn) -> Company:
        watches = tuple(Watch(self.cluster, self.pod, term) for term in terms)
        rows = self.cluster.pods.node_row[selected_by_all(watches, placed)]
        company = Company(
            watches=watches,
            keys=tuple(dict.fromkeys(map(self._key, terms))),
            tally=Tally(self.cluster.nodes, presence=True),
            n_pods=len(rows),
            includes_itself=all(w.selects(self.pod.namespace_id, self.pod.labels_id) for w in watches),
        )
        for key in company.keys:
            company.tally.add(key, rows)
        return company

    def _key(self, term: Term) -> str:
        # 1.10 looks for a term's pods on the node alone where the domain is the node.
        return NODE if self.rules is Rules.EACH_TERM and term.topology_key == HOSTNAME else term.topology_key


def is_above_zero(tally: Tally, key: str, rows: Rows) -> BoolColumn:
    """Tell on which rows a key's sum is above 0."""
    above: BoolColumn = tally.of(key, rows) > 0
    return above & tally.has(HOSTNAME, rows) if key == NODE else above


def _parse_error(terms: SpecTerms) -> str | None:
    texts = [f"{name}: {terms.refused[kind]}" for kind, name in LISTS.items() if kind in terms.refused]
    if not texts:
        return None
    return f"parsing pod: {texts[0] if len(texts) == 1 else '[' + ', '.join(texts) + ']'}"
