"""Which changes may help a pod that its own or others' required terms keep off all nodes.

Source: 1.36, ``plugins/interpodaffinity/plugin.go``, whose hints pass over some changes that do help:

- Namespace selectors are asked about the namespace's labels (upstream's hint takes every namespace to have none), so labels
  of namespaces that change count as well.
- A pod that leaves counts if it met any one anti-affinity term (upstream: all of them).
- Company that leaves counts for a pod that is company to itself.
- Nodes that come or move count for a pod that others keep away (upstream looks at the pod's own terms alone).
"""

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

    def has_keys(node: Node) -> bool:
        return all(term.topology_key in node.metadata.labels for term in company)

    def moves(old: Node, new: Node) -> bool:
        before, after = old.metadata.labels, new.metadata.labels
        theirs = (term for _, term in index.candidates(Kind.REQUIRED_ANTI_AFFINITY, pod.labels))
        joins = {term.topology_key for term in company if term.topology_key in after or is_company(pod)}
        leaves = {term.topology_key for term in (*shunned, *theirs) if term.topology_key in before}
        return any(before.get(key) != after.get(key) for key in joins | leaves)

    def helps(change: Change) -> bool:
        match change:
            case NodeChange(old=old, new=new) if new:
                return moves(old, new) if old else has_keys(new)
            case AssignedPodChange(old=old, new=new):
                return comes(old, new) or (old is not None and goes(old, new))
            case ObjectChange():
                return any(term.namespace_selector is not NOTHING for term in company + shunned)
        return True

    return helps


def _required(terms: SpecTerms) -> tuple[tuple[Term, ...], tuple[Term, ...]]:
    of = terms.of
    return of.get(Kind.REQUIRED_AFFINITY, ()), of.get(Kind.REQUIRED_ANTI_AFFINITY, ())
