"""What is wrong with an object, in words that a Kubernetes user understands. Knows no files."""

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from berth.errors import BerthError, InputError
from berth.objects.base import LabelSelector, LabelSelectorRequirement, Quantity
from berth.objects.nodes import Node
from berth.objects.pods import Container, Pod, PodAffinity, PodAffinityTerm, PodSpec
from berth.objects.quantities import QuantityError, parse_quantity
from berth.objects.storage import PersistentVolume, PersistentVolumeClaim
from berth.objects.workloads import (
    Deployment,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
    WorkloadSpec,
)

LABEL_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")
NODE_OPERATORS = (*LABEL_OPERATORS, "Gt", "Lt")
MAX_TOLD = 20

_REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
_WORDS = {
    "str": "a string",
    "int": "an integer",
    "float": "a number",
    "bool": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}
_AT = re.compile(r" - at `(?:key in )?\$\.?([^`]*)`\Z")
_QUOTED = re.compile(r"`([^`]*)`")
_MISSING = re.compile(r"Object missing required field `([^`]*)`")
_ENUM = re.compile(r"Invalid enum value '(.*)'", re.DOTALL)


class SnapshotError(BerthError):
    """A snapshot that can't be used as it is.

    Attributes
    ----------
    mistakes : list of str
        All that were found, the first `MAX_TOLD` in the message.
    """

    def __init__(self, mistakes: Iterable[str]) -> None:
        self.mistakes = list(mistakes)
        super().__init__("\n".join(capped(self.mistakes)))


def capped(lines: list[str]) -> list[str]:
    """Return the first lines, and how many more there are."""
    rest = len(lines) - MAX_TOLD
    return lines if rest <= 0 else [*lines[:MAX_TOLD], f"and {rest} more"]


def in_words(error: Exception, under: str = "") -> str:
    """Reword what decoding says: ``spec.replicas: 'x' …`` in place of ``Expected `int`, got `str` - at `$.spec…``.

    Parameters
    ----------
    under : str
        The path of the part that was decoded.
    """
    text = str(error)
    at = _AT.search(text)
    path = ".".join(filter(None, (under, at[1] if at else ""))) or "the object"
    text = _AT.sub("", text)
    if missing := _MISSING.fullmatch(text):
        return f"{path}.{missing[1]}: absent, but needed".removeprefix("the object.")
    if wrong := _ENUM.fullmatch(text):
        return f"{path}: {wrong[1]!r} is not one of {', '.join(_operators(path))}"
    if text == "Invalid RFC3339 encoded datetime":
        return f"{path}: not a time such as '2025-11-05T10:15:00Z'"
    text = _QUOTED.sub(lambda found: " or ".join(_WORDS.get(w, w) for w in found[1].split(" | ")), text)
    return f"{path}: {text[:1].lower()}{text[1:]}"


def mistakes_of(item: object) -> Iterator[str]:
    """Yield what is wrong with a decoded object: quantities, selectors, what is absent."""
    match item:
        case Node():
            yield from _node_mistakes(item)
        case Pod():
            yield from spec_mistakes(item.spec)
        case Deployment() | ReplicaSet() | StatefulSet():
            yield from _workload_mistakes(item.spec)
        case ReplicationController():
            yield from spec_mistakes(item.spec.template.spec, "spec.template.spec")
        case PodDisruptionBudget():
            yield from _selector_mistakes(item.spec.selector, "spec.selector")
        case PersistentVolume():
            yield from _quantity_mistakes(item.spec.capacity, "spec.capacity")
        case PersistentVolumeClaim():
            yield from _selector_mistakes(item.spec.selector, "spec.selector")
            yield from _quantity_mistakes(item.spec.resources.requests, "spec.resources.requests")


def spec_mistakes(spec: PodSpec, path: str = "spec") -> Iterator[str]:
    """Yield what is wrong with a pod's spec."""
    if not spec.containers:
        yield f"{path}.containers: absent or empty, but a pod has at least one"
    yield from _container_mistakes(spec.init_containers, f"{path}.initContainers")
    yield from _container_mistakes(spec.containers, f"{path}.containers")
    yield from _quantity_mistakes(spec.overhead, f"{path}.overhead")
    if spec.resources is not None:
        yield from _quantity_mistakes(spec.resources.requests, f"{path}.resources.requests")
    yield from _node_affinity_mistakes(spec, f"{path}.affinity.nodeAffinity")
    if spec.affinity is not None:
        yield from _pod_affinity_mistakes(spec.affinity.pod_affinity, f"{path}.affinity.podAffinity")
        yield from _pod_affinity_mistakes(spec.affinity.pod_anti_affinity, f"{path}.affinity.podAntiAffinity")
    for i, constraint in enumerate(spec.topology_spread_constraints):
        where = f"{path}.topologySpreadConstraints[{i}].labelSelector"
        yield from _selector_mistakes(constraint.label_selector, where)


def _node_mistakes(node: Node) -> Iterator[str]:
    if not node.status.allocatable:
        yield "status.allocatable: absent, so the node has nothing to offer; expected cpu, memory and pods"
    yield from _quantity_mistakes(node.status.allocatable, "status.allocatable")


def _workload_mistakes(spec: WorkloadSpec) -> Iterator[str]:
    if spec.replicas is not None and spec.replicas < 0:
        yield f"spec.replicas: {spec.replicas} is negative"
    yield from _selector_mistakes(spec.selector, "spec.selector")
    yield from spec_mistakes(spec.template.spec, "spec.template.spec")


def _container_mistakes(containers: Iterable[Container], path: str) -> Iterator[str]:
    for i, container in enumerate(containers):
        yield from _quantity_mistakes(container.resources.requests, f"{path}[{i}].resources.requests")
        yield from _quantity_mistakes(container.resources.limits, f"{path}[{i}].resources.limits")


def _quantity_mistakes(resources: Mapping[str, Quantity], path: str) -> Iterator[str]:
    for name, quantity in resources.items():
        where = f"{path}.{name}" if name.isalnum() else f"{path}[{name}]"
        try:
            if parse_quantity(quantity, where) < 0:
                yield f"{where}: {quantity!r} is negative"
        except QuantityError as error:
            yield str(error)


def _node_affinity_mistakes(spec: PodSpec, path: str) -> Iterator[str]:
    affinity = spec.affinity.node_affinity if spec.affinity is not None else None
    if affinity is None:
        return
    terms = affinity.required.node_selector_terms if affinity.required is not None else ()
    places = [(term, f"{path}.{_REQUIRED}.nodeSelectorTerms[{i}]") for i, term in enumerate(terms)]
    places += [
        (term.preference, f"{path}.{_PREFERRED}[{i}].preference") for i, term in enumerate(affinity.preferred)
    ]
    for term, where in places:
        yield from _expression_mistakes(term.match_expressions, f"{where}.matchExpressions", NODE_OPERATORS)
        yield from _expression_mistakes(term.match_fields, f"{where}.matchFields", NODE_OPERATORS)


def _pod_affinity_mistakes(affinity: PodAffinity | None, path: str) -> Iterator[str]:
    if affinity is None:
        return
    for i, term in enumerate(affinity.required):
        yield from _term_mistakes(term, f"{path}.{_REQUIRED}[{i}]")
    for i, weighted in enumerate(affinity.preferred):
        yield from _term_mistakes(weighted.pod_affinity_term, f"{path}.{_PREFERRED}[{i}].podAffinityTerm")


def _term_mistakes(term: PodAffinityTerm, path: str) -> Iterator[str]:
    yield from _selector_mistakes(term.label_selector, f"{path}.labelSelector")
    yield from _selector_mistakes(term.namespace_selector, f"{path}.namespaceSelector")


def _selector_mistakes(selector: LabelSelector | None, path: str) -> Iterator[str]:
    if selector is not None:
        yield from _expression_mistakes(
            selector.match_expressions, f"{path}.matchExpressions", LABEL_OPERATORS
        )


def _expression_mistakes(
    expressions: Iterable[LabelSelectorRequirement], path: str, operators: tuple[str, ...]
) -> Iterator[str]:
    # Keys and values are left alone: older API servers let strange ones pass, and a scheduler has to live with them.
    for i, expression in enumerate(expressions):
        operator, values, where = expression.operator, list(expression.values), f"{path}[{i}]"
        if operator not in operators:
            yield str(InputError(f"{where}.operator", operator, f"one of {', '.join(operators)}"))
        elif operator in ("In", "NotIn") and not values:
            yield f"{where}.values: empty, but {operator} needs at least one value"
        elif operator in ("Exists", "DoesNotExist") and values:
            yield str(InputError(f"{where}.values", values, f"empty, as {operator} demands"))
        elif operator in ("Gt", "Lt") and len(values) != 1:
            yield str(InputError(f"{where}.values", values, "exactly one integer"))


def _operators(path: str) -> tuple[str, ...]:
    is_of_nodes = "nodeSelectorTerms" in path or ".preference." in path or ".nodeAffinity." in path
    return NODE_OPERATORS if is_of_nodes else LABEL_OPERATORS


def name_of(text: bytes | memoryview, kind: str, number: int) -> str:
    """Return how a user would name an object, however broken it is: ``Pod shop/web-1``, or its place in the file."""
    kind = kind or "object"
    try:
        meta = msgspec.json.decode(text)["metadata"]
        names = [meta.get("namespace"), meta["name"]]
    except (msgspec.DecodeError, RecursionError, LookupError, TypeError, AttributeError):
        return f"{kind} (number {number} in the file)"
    if not isinstance(names[1], str):
        return f"{kind} (number {number} in the file)"
    return f"{kind} {'/'.join(name for name in names if name and isinstance(name, str))}"
