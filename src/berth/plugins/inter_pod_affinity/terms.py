"""Affinity terms, checked once per spec, looked up by labels that they select. Knows no rows and no sums."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from itertools import islice

from berth.cluster.cluster import Cluster
from berth.objects.pods import Affinity, PodAffinity, PodAffinityTerm
from berth.objects.selectors import EVERYTHING, NOTHING, Selector, SelectorError, from_label_selector


class Rules(Enum):
    """Whose rules hold, where releases differ in more than a number."""

    EACH_TERM = "1.7 to 1.10: each required term is met on its own"
    ALL_TERMS = "1.11 to 1.17: one pod has to meet all required affinity terms"
    TODAY = "1.36: so too; namespace selectors count, terms that can't be read are left out"


class Kind(Enum):
    """The four lists of terms that a pod can have; the value is their place in the spec."""

    REQUIRED_AFFINITY = "podAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    PREFERRED_AFFINITY = "podAffinity.preferredDuringSchedulingIgnoredDuringExecution"
    REQUIRED_ANTI_AFFINITY = "podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    PREFERRED_ANTI_AFFINITY = "podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution"


@dataclass(frozen=True, slots=True)
class Term:
    """One term, checked.

    Attributes
    ----------
    own_namespace : bool
        It speaks of pods in the namespace of the pod that has the term (besides those in ``namespaces``).
    namespace_selector : Selector
        Namespaces besides, by their labels; NOTHING before 1.36.
    weight : int
        Of a preferred term; 1 of a required one.
    """

    selector: Selector
    topology_key: str
    namespaces: frozenset[str]
    own_namespace: bool
    namespace_selector: Selector = NOTHING
    weight: int = 1


@dataclass(frozen=True, slots=True)
class SpecTerms:
    """All terms of a spec, and by what term Kubernetes refuses a list.

    Of a refused list no terms are there; of one that is read term by term (1.10), those before the bad one.
    """

    of: dict[Kind, tuple[Term, ...]]
    refused: dict[Kind, SelectorError]


NO_TERMS = SpecTerms({}, {})


def terms_of(affinity: Affinity | None, rules: Rules) -> SpecTerms:
    """Check the terms of a spec."""
    if affinity is None:
        return NO_TERMS
    anti, pro = affinity.pod_anti_affinity or PodAffinity(), affinity.pod_affinity or PodAffinity()
    weighted = {
        Kind.REQUIRED_AFFINITY: [(1, term) for term in pro.required],
        Kind.PREFERRED_AFFINITY: [(term.weight, term.pod_affinity_term) for term in pro.preferred],
        Kind.REQUIRED_ANTI_AFFINITY: [(1, term) for term in anti.required],
        Kind.PREFERRED_ANTI_AFFINITY: [(term.weight, term.pod_affinity_term) for term in anti.preferred],
    }
    checked = SpecTerms({}, {})
    for kind, terms in weighted.items():
        read: list[Term] = []
        try:
            for i, (weight, term) in enumerate(terms):
                read.append(_term(term, weight, rules, f"spec.affinity.{kind.value}[{i}]"))
        except SelectorError as error:
            checked.refused[kind] = error
        if kind not in checked.refused or rules is Rules.EACH_TERM:
            checked.of[kind] = tuple(read)
    return checked


def _term(term: PodAffinityTerm, weight: int, rules: Rules, path: str) -> Term:
    selects_namespaces = rules is Rules.TODAY and term.namespace_selector is not None
    return Term(
        selector=from_label_selector(term.label_selector, f"{path}.labelSelector"),
        topology_key=term.topology_key,
        namespaces=frozenset(term.namespaces),
        own_namespace=not term.namespaces and not selects_namespaces,
        namespace_selector=(
            from_label_selector(term.namespace_selector, f"{path}.namespaceSelector")
            if selects_namespaces
            else NOTHING
        ),
        weight=weight,
    )


def _take_last_key(terms: SpecTerms) -> None:
    """Give anti-affinity terms the last one's topology key: 1.10 keeps pointers to its loop variable."""
    anti = terms.of.get(Kind.REQUIRED_ANTI_AFFINITY, ())
    terms.of[Kind.REQUIRED_ANTI_AFFINITY] = tuple(
        replace(term, topology_key=anti[-1].topology_key) for term in anti
    )


class TermIndex:
    """The terms of all specs of pods on nodes, by a label that a pod must have to be selected.

    Clusters hold many pods with terms, and any one pod is selected by few of them: terms are looked up by the
    incoming pod's labels instead of being asked one by one. Specs are only ever added; whether there are pods
    of them is for others to ask.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.refused: dict[Kind, dict[int, SelectorError]] = {kind: {} for kind in Kind}
        self._specs: dict[int, SpecTerms] = {}
        self._n_indexed = 0
        self._by_label: dict[tuple[Kind, str, str], list[tuple[int, Term]]] = {}
        self._other: dict[Kind, list[tuple[int, Term]]] = {kind: [] for kind in Kind}

    @classmethod
    def of(cls, cluster: Cluster, rules: Rules) -> "TermIndex":
        """Return the cluster's index, up to date."""
        index: TermIndex = cluster.derived.setdefault((cls, rules), cls(rules))
        index._update(cluster)
        return index

    def spec(self, cluster: Cluster, spec_id: int) -> SpecTerms:
        """Return the terms of a spec as they hold for pods that are there already."""
        terms = self._specs.get(spec_id)
        if terms is None:
            terms = terms_of(cluster.specs[spec_id].spec.affinity, self.rules)
            if self.rules is Rules.EACH_TERM:
                _take_last_key(terms)
            self._specs[spec_id] = terms
        return terms

    def candidates(self, kind: Kind, labels: Mapping[str, str]) -> Iterator[tuple[int, Term]]:
        """Iterate over spec ids and terms, among them all that select a pod with such labels."""
        for key, value in labels.items():
            yield from self._by_label.get((kind, key, value), ())
        yield from self._other[kind]

    def _update(self, cluster: Cluster) -> None:
        # Keys of affinity_pods come in order and never go.
        if self._n_indexed == len(cluster.affinity_pods):
            return
        for spec_id in islice(cluster.affinity_pods, self._n_indexed, None):
            terms = self.spec(cluster, spec_id)
            for kind, error in terms.refused.items():
                self.refused[kind][spec_id] = error
            for kind, listed in terms.of.items():
                for term in listed:
                    self._add(kind, spec_id, term)
        self._n_indexed = len(cluster.affinity_pods)

    def _add(self, kind: Kind, spec_id: int, term: Term) -> None:
        if term.selector.requirements is None:
            return
        for requirement in term.selector.requirements:
            if requirement.operator == "In":
                for value in requirement.values:
                    self._by_label.setdefault((kind, requirement.key, value), []).append((spec_id, term))
                return
        self._other[kind].append((spec_id, term))


def speaks_of(
    term: Term, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]
) -> bool:
    """Tell whether a term selects a pod; a term of its own namespace is taken to be of the pod's."""
    reaches = (
        term.own_namespace
        or namespace in term.namespaces
        or term.namespace_selector is EVERYTHING
        or term.namespace_selector.matches(namespace_labels)
    )
    return reaches and term.selector.matches(labels)
