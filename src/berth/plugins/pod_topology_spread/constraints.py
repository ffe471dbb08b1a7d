"""The spread constraints of a pod, read and completed. Knows no nodes and counts nothing.

Source: ``metadata.go`` of 1.17, ``podtopologyspread/common.go`` and ``helper/spread.go`` of 1.36.
"""

from dataclasses import dataclass, field

from berth.cluster.cluster import Cluster, Incoming
from berth.objects.pods import TopologySpreadConstraint
from berth.objects.selectors import Requirement, Selector, SelectorError, from_label_selector, from_map

DO_NOT_SCHEDULE, SCHEDULE_ANYWAY = "DoNotSchedule", "ScheduleAnyway"
HOSTNAME, ZONE = "kubernetes.io/hostname", "topology.kubernetes.io/zone"
SYSTEM_DEFAULTS = (
    TopologySpreadConstraint(max_skew=3, topology_key=HOSTNAME, when_unsatisfiable=SCHEDULE_ANYWAY),
    TopologySpreadConstraint(max_skew=5, topology_key=ZONE, when_unsatisfiable=SCHEDULE_ANYWAY),
)


@dataclass(frozen=True, slots=True)
class SpreadRules:
    """Release differences; the defaults are 1.36's.

    Attributes
    ----------
    counts_terminating : bool
        Whether pods that are going count.
    empty_counts : bool
        Whether an empty selector counts all pods (else none, although it selects the pod itself).
    scores_all_namespaces : bool
        Whether the score counts pods of every namespace.
    counts_by_key : bool
        Whether constraints of one topology key share their counts.
    with_policies : bool
        Whether ``minDomains``, ``matchLabelKeys`` and the inclusion policies are known.
    missing_label : str
        The reason of nodes without the topology key.
    unreadable : str
        The error of a constraint that can't be read; ``{error}`` says why.
    """

    counts_terminating: bool = False
    empty_counts: bool = False
    scores_all_namespaces: bool = False
    counts_by_key: bool = False
    with_policies: bool = True
    missing_label: str = "node(s) didn't match pod topology spread constraints (missing required label)"
    unreadable: str = "get constraints from pod: {error}"


TOPOLOGY_SPREAD = SpreadRules()
EVEN_PODS = SpreadRules(
    counts_terminating=True,
    empty_counts=True,
    scores_all_namespaces=True,
    counts_by_key=True,
    with_policies=False,
    missing_label="node(s) didn't match pod topology spread constraints",
    unreadable="metadata not pre-computed for EvenPodsSpreadPredicate",
)


@dataclass(frozen=True, slots=True)
class Constraint:
    """One constraint, ready to be counted."""

    key: str
    max_skew: int
    selector: Selector
    min_domains: int = 1
    honors_affinity: bool = True
    honors_taints: bool = False


@dataclass(frozen=True, slots=True)
class Constraints:
    """A pod's constraints of one kind.

    Attributes
    ----------
    needs_all_keys : bool
        Nodes without one of the keys do not count; they do for the system's default constraints.
    error : str
        Why they can't be read.
    """

    all: tuple[Constraint, ...] = ()
    needs_all_keys: bool = True
    error: str = ""
    keys: tuple[str, ...] = field(default=())


def constraints_of(
    pod: Incoming,
    cluster: Cluster,
    action: str,
    rules: SpreadRules,
    defaults: tuple[TopologySpreadConstraint, ...] = (),
    *,
    system_defaulted: bool = False,
) -> Constraints:
    """Return the constraints of a pod that are of an action; the defaults, if it has none of any action."""
    own = pod.info.spec.topology_spread_constraints
    try:
        found = tuple(
            _read(one, pod.labels, rules) for one in own or defaults if one.when_unsatisfiable == action
        )
    except SelectorError as error:
        return Constraints(error=str(error))
    if own:
        return Constraints(found)
    if not found:
        return Constraints()
    selector = default_selector(pod, cluster)
    if not selector.requirements:
        return Constraints()
    completed = tuple(
        Constraint(one.key, one.max_skew, selector, one.min_domains, one.honors_affinity, one.honors_taints)
        for one in found
    )
    return Constraints(completed, needs_all_keys=not system_defaulted)


def default_selector(pod: Incoming, cluster: Cluster) -> Selector:
    """Return the selector of the pod's services and its controller put together, an empty one without any."""
    objects = cluster.objects
    labels: dict[str, str] = {}
    for service in objects.services.within(pod.namespace):
        selector = service.spec.selector
        if selector is not None and selector.items() <= pod.labels.items():
            labels |= selector
    more: tuple[Requirement, ...] = ()
    owner = pod.controller
    what = (owner.api_version, owner.kind) if owner else ("", "")
    if owner and what == ("v1", "ReplicationController"):
        controller = objects.replication_controllers.get(pod.namespace, owner.name)
        labels |= controller.spec.selector if controller else {}
    elif owner and what in (("apps/v1", "ReplicaSet"), ("apps/v1", "StatefulSet")):
        workload = (
            objects.replica_sets.get(pod.namespace, owner.name)
            if owner.kind == "ReplicaSet"
            else objects.stateful_sets.get(pod.namespace, owner.name)
        )
        try:
            more = (from_label_selector(workload.spec.selector).requirements or ()) if workload else ()
        except SelectorError:
            more = ()
    return Selector((*(from_map(labels).requirements or ()), *more))


def _read(one: TopologySpreadConstraint, labels: dict[str, str], rules: SpreadRules) -> Constraint:
    selector = from_label_selector(one.label_selector)
    if not rules.with_policies:
        return Constraint(one.topology_key, one.max_skew, selector)
    same = {key: labels[key] for key in one.match_label_keys if key in labels}
    if same and selector.requirements is not None:
        selector = Selector((*(from_map(same).requirements or ()), *selector.requirements))
    return Constraint(
        key=one.topology_key,
        max_skew=one.max_skew,
        selector=selector,
        min_domains=1 if one.min_domains is None else one.min_domains,
        honors_affinity=(one.node_affinity_policy or "Honor") == "Honor",
        honors_taints=(one.node_taints_policy or "Ignore") == "Honor",
    )
