"""Which changes may help a pod that its own or others' required terms keep off all nodes.

Source: 1.36, ``plugins/interpodaffinity/plugin.go``. Three answers are yes more often. Namespace selectors are asked about
the namespace's labels (upstream's hint takes every namespace to have none), so labels of namespaces that change count as
well. A pod that leaves counts if it met any one anti-affinity term (upstream: all of them). And company that leaves counts
for a pod that is company to itself.
"""

from collections.abc import Sequence

from berth.cluster.cluster import Cluster, Incoming
from berth.framework.changes import (
    Action,
    AssignedPodChange,
    Change,
    Hint,
    NodeChange,
    ObjectChange,
    Resource,
    Wakes,
    helps_always,
)
from berth.objects.nodes import Node
from berth.objects.selectors import NOTHING
from berth.plugins.inter_pod_affinity.terms import Kind, Rules, SpecTerms, Term, TermIndex, speaks_of

WAKES_ON: Wakes = {
    Resource.NODE: Action.ADD | Action.UPDATE_NODE_LABEL,
    Resource.ASSIGNED_POD: Action.ADD | Action.UPDATE_POD_LABEL | Action.DELETE,
    Resource.UNSCHEDULED_POD: Action.UPDATE_POD_LABEL,
    Resource.NAMESPACE: Action.ADD | Action.UPDATE,
}


def hint_of(pod: Incoming, cluster: Cluster, rules: Rules) -> Hint:
    """Return the hint for a pod; one whose terms can't be read is helped by everything."""
    index = TermIndex.of(cluster, rules)
    enough = any if rules is Rules.EACH_TERM else all
    own = index.spec(cluster, pod.spec_id)
    if own.refused:
        return helps_always
    company, shunned = _required(own)

    def selects(term: Term, of: Incoming, other: Incoming) -> bool:
        if term.own_namespace and of.namespace != other.namespace:
            return False
        namespace = cluster.objects.namespaces.get("", other.namespace)
        labels = namespace.metadata.labels if namespace else {}
        return speaks_of(term, other.namespace, labels, other.labels)

    def is_company(other: Incoming) -> bool:
        return bool(company) and enough(selects(term, pod, other) for term in company)

    def comes(old: Incoming | None, new: Incoming | None) -> bool:
        was, is_now = old is not None and is_company(old), new is not None and is_company(new)
        # Without any company left, a pod that is its own may go anywhere.
        return was != is_now and (is_now or is_company(pod))

    def goes(old: Incoming, new: Incoming | None) -> bool:
        theirs = _required(index.spec(cluster, old.spec_id))[1] if new is None else ()
        return any(selects(term, old, pod) for term in theirs) or any(
            selects(term, pod, old) and not (new and selects(term, pod, new)) for term in shunned
        )

    def helps(change: Change) -> bool:
        match change:
            case NodeChange(old=old, new=new) if new:
                return _moves(company, shunned, old, new)
            case AssignedPodChange(old=old, new=new):
                return comes(old, new) or (old is not None and goes(old, new))
            case ObjectChange():
                return any(term.namespace_selector is not NOTHING for term in company + shunned)
        return True

    return helps


def _required(terms: SpecTerms) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
    of = terms.of
    return of.get(Kind.REQUIRED_AFFINITY, ()), of.get(Kind.REQUIRED_ANTI_AFFINITY, ())


def _moves(company: Sequence[Term], shunned: Sequence[Term], old: Node | None, new: Node) -> bool:
    """Tell whether a node comes to be in another domain than before (for anti-affinity: in none), of any term."""
    after = new.metadata.labels
    if old is None:
        return bool(shunned) or any(term.topology_key in after for term in company)
    before = old.metadata.labels

    def differs(term: Term) -> bool:
        return before.get(term.topology_key) != after.get(term.topology_key)

    return any(term.topology_key in after and differs(term) for term in company) or any(
        term.topology_key in before and differs(term) for term in shunned
    )
