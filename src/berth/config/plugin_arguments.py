"""The arguments of plugins (``pluginConfig``) of 1.36: read and checked as ``apis/config/validation`` does."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any

import msgspec

from berth.config.document import At
from berth.config.durations import parse_duration
from berth.config.mistakes import known_name
from berth.config.shapes import read_resources, read_shape
from berth.objects.pods import NodeAffinity, TopologySpreadConstraint
from berth.releases.extension_points import PLUGINS
from berth.releases.release import ShapePoint

API_VERSION = "kubescheduler.config.k8s.io/v1"
CPU_AND_MEMORY = (("cpu", 1), ("memory", 1))
STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
_INT32 = 2**31 - 1
_INT64 = 2**63 - 1
_LABEL_NAME = re.compile(
    r"((?=[^/]{1,253}/)[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"(?=.{1,63}\Z)[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"
)
_CONSTRAINT_FIELDS = (
    "maxSkew", "topologyKey", "whenUnsatisfiable", "labelSelector", "minDomains", "nodeAffinityPolicy",
    "nodeTaintsPolicy", "matchLabelKeys",
)  # fmt: skip
_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")
_ACTIONS = ("DoNotSchedule", "ScheduleAnyway")


@dataclass(frozen=True, slots=True)
class Arguments:
    """All arguments of a profile's plugins; by default those of the default profile."""

    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    strategy: str = STRATEGIES[0]
    fit_resources: tuple[tuple[str, int], ...] = CPU_AND_MEMORY
    shape: tuple[ShapePoint, ...] = ()
    balanced_resources: tuple[tuple[str, int], ...] = CPU_AND_MEMORY
    hard_pod_affinity_weight: int = 1
    ignore_preferred_terms: bool = False
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    list_defaulting: bool = False
    added_affinity: NodeAffinity | None = None
    bind_timeout_s: int = 600
    places: Mapping[str, At] = field(default_factory=dict, compare=False)
    """Where the arguments of a plugin stand, by its name."""


def read_plugin_config(at: At, feature_gates: Mapping[str, bool], notes: list[str]) -> Arguments:
    """Read ``pluginConfig`` of a profile; note every mistake."""
    arguments = Arguments()
    places: dict[str, At] = {}
    for item in at.items("plugins with their arguments"):
        fields = item.fields(("name", "args"), "field of pluginConfig")
        name = fields["name"].text("the name of a plugin", required=True)
        if not name:
            continue
        if name in places:
            fields["name"].wrong("each plugin once")
        elif name not in PLUGINS:
            fields["name"].wrong(known_name(name, PLUGINS, "plugin"))
        elif name not in _READERS:
            if fields["args"].given and fields["args"].plain:
                notes.append(f"{fields['args'].path} has no effect: {name} takes no arguments")
        else:
            args = fields["args"]
            known, read = _READERS[name]
            given = args.fields(("kind", "apiVersion", *known), f"argument of {name}")
            if given["kind"].text() not in ("", f"{name}Args"):
                given["kind"].wrong(f"kind: {name}Args, the arguments of the plugin")
            if given["apiVersion"].text() not in ("", API_VERSION):
                given["apiVersion"].wrong(f"apiVersion: {API_VERSION}")
            arguments = read(arguments, given, _Context(args, feature_gates, notes))
        places.setdefault(name, fields["args"])
    return replace(arguments, places=MappingProxyType(places))


@dataclass(frozen=True, slots=True)
class _Context:
    at: At
    feature_gates: Mapping[str, bool]
    notes: list[str]


Fields = Mapping[str, At]


def _fit(arguments: Arguments, fields: Fields, context: _Context) -> Arguments:
    groups = []
    for item in fields["ignoredResourceGroups"].items("groups of resources"):
        group = item.text("a group of resources such as example.com", required=True)
        if "/" in group:
            item.wrong("a group of resources, without a /")
        elif group:
            _check_label_name(item, group)
        groups.append(group)
    ignored = []
    for item in fields["ignoredResources"].items("resources"):
        resource = item.text("a resource such as example.com/gpu", required=True)
        if resource:
            _check_label_name(item, resource)
        ignored.append(resource)
    arguments = replace(arguments, ignored_resources=tuple(ignored), ignored_resource_groups=tuple(groups))
    at = fields["scoringStrategy"]
    if not at.given:
        return arguments
    strategy = at.fields(("type", "resources", "requestedToCapacityRatio"), "field of scoringStrategy")
    kind = strategy["type"].text()
    if kind not in STRATEGIES:
        strategy["type"].wrong(f"one of {', '.join(STRATEGIES)}")
    resources = read_resources(strategy["resources"], 100, once=False) or CPU_AND_MEMORY
    ratio = strategy["requestedToCapacityRatio"]
    shape: tuple[ShapePoint, ...] = ()
    if kind == STRATEGIES[2]:
        if ratio.given:
            shape = read_shape(ratio.fields(("shape",), "field of requestedToCapacityRatio")["shape"])
        else:
            ratio.wrong(f"a shape, as the type is {kind}", show=False)
    elif ratio.given:
        ratio.wrong(f"nothing here unless the type is {STRATEGIES[2]}", show=False)
    return replace(arguments, strategy=kind, fit_resources=resources, shape=shape)


def _balanced(arguments: Arguments, fields: Fields, context: _Context) -> Arguments:
    resources = read_resources(fields["resources"], 1)
    return replace(arguments, balanced_resources=resources or CPU_AND_MEMORY)


def _inter_pod_affinity(arguments: Arguments, fields: Fields, context: _Context) -> Arguments:
    weight = fields["hardPodAffinityWeight"].integer(1, 0, 100, "a weight from 0 to 100")
    ignore = fields["ignorePreferredTermsOfExistingPods"].boolean()
    return replace(arguments, hard_pod_affinity_weight=weight, ignore_preferred_terms=ignore)


def _spread(arguments: Arguments, fields: Fields, context: _Context) -> Arguments:
    kind = fields["defaultingType"].text() or "System"
    if kind not in ("System", "List"):
        fields["defaultingType"].wrong("one of System, List")
    constraints: list[TopologySpreadConstraint] = []
    for item in fields["defaultConstraints"].items("constraints"):
        constraint = _constraint(item)
        key = (constraint.topology_key, constraint.when_unsatisfiable)
        if any(key == (c.topology_key, c.when_unsatisfiable) for c in constraints):
            item.wrong(
                f"each pair of topologyKey and whenUnsatisfiable once, {{{key[0]}, {key[1]}}} too", show=False
            )
        constraints.append(constraint)
    if kind == "System" and constraints:
        fields["defaultingType"].wrong("List where there are defaultConstraints")
    return replace(arguments, default_constraints=tuple(constraints), list_defaulting=kind == "List")


def _constraint(at: At) -> TopologySpreadConstraint:
    fields = at.fields(_CONSTRAINT_FIELDS, "field of a constraint")
    skew = fields["maxSkew"]
    max_skew = skew.integer(1, 1, _INT32, "a whole number above 0")
    if not skew.given:
        skew.wrong("a whole number above 0", show=False)
    key = fields["topologyKey"].text("a label of nodes", required=True)
    if key:
        _check_label_name(fields["topologyKey"], key)
    action = fields["whenUnsatisfiable"].text(f"one of {', '.join(_ACTIONS)}", required=True)
    if action and action not in _ACTIONS:
        fields["whenUnsatisfiable"].wrong(f"one of {', '.join(_ACTIONS)}")
    if fields["labelSelector"].given:
        fields["labelSelector"].wrong("no selector: it is made for each pod", show=False)
    if not all((key, action)):
        return TopologySpreadConstraint(topology_key=key, when_unsatisfiable=action, max_skew=max_skew)
    plain = {name: one.plain for name, one in fields.items() if one.given and name != "labelSelector"}
    return _convert(at, plain, TopologySpreadConstraint) or TopologySpreadConstraint(topology_key=key)


def _node_affinity(arguments: Arguments, fields: Fields, context: _Context) -> Arguments:
    at = fields["addedAffinity"]
    if not at.given:
        return arguments
    required, preferred = (
        f"{kind}DuringSchedulingIgnoredDuringExecution" for kind in ("required", "preferred")
    )
    parts = at.fields((required, preferred), "field of addedAffinity")
    n_before = len(at.mistakes)
    if parts[required].given:
        terms = parts[required].fields(("nodeSelectorTerms",), "field of a node selector")[
            "nodeSelectorTerms"
        ]
        if not terms.plain:
            terms.wrong("at least one term", show=False)
        for item in terms.items("terms"):
            _check_term(item)
    for item in parts[preferred].items("terms"):
        weighted = item.fields(("weight", "preference"), "field of a preferred term")
        weighted["weight"].integer(0, 0, _INT32, "a weight from 1 to 100")
        _check_term(weighted["preference"])
    if len(at.mistakes) > n_before:
        return arguments
    return replace(arguments, added_affinity=_convert(at, at.plain, NodeAffinity))


def _check_term(at: At) -> None:
    fields = at.fields(("matchExpressions", "matchFields"), "field of a term")
    for name in ("matchExpressions", "matchFields"):
        for item in fields[name].items("requirements"):
            _check_requirement(item, is_field=name == "matchFields")


def _check_requirement(at: At, *, is_field: bool) -> None:
    parts = at.fields(("key", "operator", "values"), "field of a requirement")
    key = parts["key"].text("a label of nodes", required=True)
    operator = parts["operator"].text(f"one of {', '.join(_OPERATORS)}", required=True)
    values = parts["values"].texts("value")
    if operator and operator not in _OPERATORS:
        parts["operator"].wrong(f"one of {', '.join(_OPERATORS)}")
    elif is_field:
        if key not in ("", "metadata.name"):
            parts["key"].wrong("metadata.name")
        if operator not in ("", "In", "NotIn"):
            parts["operator"].wrong("In or NotIn")
        elif len(values) != 1:
            parts["values"].wrong("exactly one value", show=False)
    elif key and operator:
        _check_label_name(parts["key"], key)
        is_number = len(values) == 1 and re.fullmatch(r"[+-]?[0-9]+", values[0]) is not None
        if operator in ("Gt", "Lt") and not is_number:
            parts["values"].wrong("one number", show=False)
        elif operator in ("In", "NotIn") and not values:
            parts["values"].wrong("at least one value", show=False)
        elif operator in ("Exists", "DoesNotExist") and values:
            parts["values"].wrong(f"no values, as the operator is {operator}", show=False)


def _volume_binding(arguments: Arguments, fields: Fields, context: _Context) -> Arguments:
    timeout = fields["bindTimeoutSeconds"]
    seconds = timeout.integer(600, 0, _INT64, "a number of seconds, 0 or more")
    arguments = replace(arguments, bind_timeout_s=seconds)
    if not fields["shape"].given:
        return arguments
    if not context.feature_gates.get("StorageCapacityScoring", False):
        fields["shape"].wrong("nothing here unless the feature gate StorageCapacityScoring is on", show=False)
    else:
        read_shape(fields["shape"])
        fields["shape"].wrong("nothing here: the score of storage capacity is not available yet", show=False)
    return arguments


def _preemption(arguments: Arguments, fields: Fields, context: _Context) -> Arguments:
    percentage, absolute = fields["minCandidateNodesPercentage"], fields["minCandidateNodesAbsolute"]
    share = percentage.integer(10, 0, 100, "a percentage from 0 to 100")
    number = absolute.integer(100, 0, _INT32, "a number of nodes, 0 or more")
    if share == 0 and number == 0:
        percentage.wrong("more than 0 where minCandidateNodesAbsolute is 0")
        absolute.wrong("more than 0 where minCandidateNodesPercentage is 0")
    if percentage.given or absolute.given:
        context.notes.append(
            f"{context.at.path} has no effect here: every node is a candidate for preemption"
        )
    return arguments


def _dynamic_resources(arguments: Arguments, fields: Fields, context: _Context) -> Arguments:
    for name, least, gate in (
        ("filterTimeout", 0, "DRASchedulerFilterTimeout"),
        ("bindingTimeout", 1, "DRADeviceBindingConditions"),
    ):
        at = fields[name]
        if not at.given:
            continue
        try:
            seconds = parse_duration(at.text()).total_seconds()
        except ValueError:
            seconds = -1.0
        if seconds < least:
            at.wrong("a duration such as 10s" + (f", of at least {least}s" if least else ""))
        elif not context.feature_gates.get(gate, True):
            at.wrong(f"nothing here unless the feature gate {gate} is on")
        else:
            context.notes.append(f"{at.path} has no effect here: resource claims are not available yet")
    return arguments


_Reader = Callable[[Arguments, Fields, _Context], Arguments]
_READERS: Mapping[str, tuple[tuple[str, ...], _Reader]] = MappingProxyType({
    "NodeResourcesFit": (("ignoredResources", "ignoredResourceGroups", "scoringStrategy"), _fit),
    "NodeResourcesBalancedAllocation": (("resources",), _balanced),
    "InterPodAffinity": (("hardPodAffinityWeight", "ignorePreferredTermsOfExistingPods"), _inter_pod_affinity),
    "PodTopologySpread": (("defaultConstraints", "defaultingType"), _spread),
    "NodeAffinity": (("addedAffinity",), _node_affinity),
    "VolumeBinding": (("bindTimeoutSeconds", "shape"), _volume_binding),
    "DefaultPreemption": (("minCandidateNodesPercentage", "minCandidateNodesAbsolute"), _preemption),
    "DynamicResources": (("filterTimeout", "bindingTimeout"), _dynamic_resources),
})  # fmt: skip


def _check_label_name(at: At, name: str) -> None:
    if not _LABEL_NAME.fullmatch(name):
        at.wrong("a name such as example.com/gpu: an optional prefix and up to 63 letters, digits and -_.")


def _convert(at: At, plain: Any, kind: type[Any]) -> Any:
    try:
        return msgspec.convert(plain, kind)
    except msgspec.ValidationError as error:
        at.wrong(f"other fields: {error}", show=False)
        return None
