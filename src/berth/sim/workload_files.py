"""Workload files: what a cluster is made of, and which pods are scheduled there while the clock runs.

A file says how, its sizes say how many. The format is described in docs/benchmarks.md.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Literal, get_args

import msgspec

from berth.cluster.cluster import Cluster
from berth.config.document import At, parse_document, read_document
from berth.config.mistakes import ConfigMistake, known_name
from berth.errors import BerthError
from berth.objects.decode import decode
from berth.objects.nodes import Node
from berth.objects.pods import Pod
from berth.sim.recipe import JsonObject

Placed = Literal["scheduled", "in turn"]
Order = Literal["random", "runs"]
Kind = Literal["Node", "Pod"]

EACH = -1
"""In place of a number of shapes: every pod has one of its own."""

_LARGEST = 100_000_000
_SPOT = re.compile(r" - at `\$(?P<path>.*)`$")


class WorkloadFileError(BerthError):
    """A workload file with mistakes."""

    def __init__(self, name: str, mistakes: Sequence[ConfigMistake]) -> None:
        self.mistakes = tuple(mistakes)
        count = "1 mistake" if len(self.mistakes) == 1 else f"{len(self.mistakes)} mistakes"
        lines = "".join(f"\n  {mistake}" for mistake in self.mistakes)
        super().__init__(f"{count} in {name}:{lines}")


@dataclass(frozen=True, slots=True)
class Size:
    """How large the cluster is, and how many pods are decided (or, in loading, read)."""

    nodes: int
    existing: int
    pods: int


@dataclass(frozen=True, slots=True)
class TaintRule:
    """A taint for one in ``every`` so many nodes, starting with node number ``first``."""

    every: int
    first: int
    taint: JsonObject


@dataclass(frozen=True, slots=True)
class CreateNodes:
    """How nodes are made.

    Attributes
    ----------
    labels : dict of key to values
        Nodes get the combinations of their values in turn, the first key's changing fastest.
    """

    template: JsonObject
    labels: Mapping[str, tuple[str, ...]]
    taints: tuple[TaintRule, ...]


@dataclass(frozen=True, slots=True)
class Churn:
    """A pod that comes after every so many others; it takes time and does not count."""

    template: JsonObject
    every: int


@dataclass(frozen=True, slots=True)
class CreatePods:
    """How pods are made: of one template, or of so many drawn shapes.

    Attributes
    ----------
    n_shapes : int
        0 where there is a template, `EACH` for one a pod.
    has_service : bool
        Whether a Service selects the pods (of each shape).
    """

    template: JsonObject | None
    n_shapes: int
    namespace: str
    order: Order
    placed: Placed
    has_service: bool
    measured: bool
    churn: Churn | None


@dataclass(frozen=True, slots=True)
class WorkloadFile:
    """What a file says. The existing pods of a size are shared out evenly among those operations that are not measured."""

    name: str
    meaning: str
    sizes: Mapping[str, Size]
    nodes: CreateNodes
    pods: tuple[CreatePods, ...]


def shipped_workloads() -> list[WorkloadFile]:
    """Read the files that come with Berth, those with upstream's names first."""
    folder = files("berth") / "benchmarks" / "workloads"
    found = sorted(
        (file for file in folder.iterdir() if file.name.endswith(".yaml")), key=lambda file: file.name
    )
    return [_checked(parse_document(file.read_text("utf-8"), file.name), file.name) for file in found]


def read_workload(path: Path) -> WorkloadFile:
    """Read a file.

    Raises
    ------
    WorkloadFileError
        With all its mistakes.
    berth.config.mistakes.ConfigError
        It can't be read, or is no YAML.
    """
    return _checked(read_document(path), str(path))


def _checked(at: At, name: str) -> WorkloadFile:
    workload = _Reader(at).read()
    if at.mistakes or workload is None:
        raise WorkloadFileError(name, at.mistakes)
    return workload


class _Reader:
    """Reads one document; mistakes are noted in it."""

    def __init__(self, at: At) -> None:
        self._at = at
        self._templates: dict[str, tuple[Kind, JsonObject]] = {}
        self._template_names: list[str] = []

    def read(self) -> WorkloadFile | None:
        fields = self._at.fields(("name", "meaning", "sizes", "templates", "operations"))
        name = fields["name"].text("a name", required=True)
        meaning = fields["meaning"].text()
        sizes = self._sizes(fields["sizes"])
        for template in _entries(fields["templates"], "templates by name").items():
            self._read_template(*template)
        nodes: list[CreateNodes] = []
        pods: list[CreatePods] = []
        operations = fields["operations"]
        if not operations.given:
            operations.wrong("a list of operations: createNodes, then createPods", show=False)
        for item in operations.items("operations"):
            self._operation(item, nodes, pods)
        if operations.given and not self._at.mistakes:
            _check_operations(operations, nodes, pods, sizes)
        return WorkloadFile(name, meaning, sizes, nodes[0], tuple(pods)) if not self._at.mistakes else None

    def _sizes(self, at: At) -> dict[str, Size]:
        expected = "sizes by name, such as 500Nodes: {nodes: 500, existing: 500, pods: 1000}"
        if not at.given:
            at.wrong(expected, show=False)
        sizes = {}
        for name, item in _entries(at, expected).items():
            counts = item.fields(("nodes", "existing", "pods"), "count")
            sizes[name] = Size(
                _count(counts["nodes"], 1),
                _count(counts["existing"], 0, required=False),
                _count(counts["pods"], 1),
            )
        return sizes

    def _read_template(self, name: str, at: At) -> None:
        self._template_names.append(name)
        kind_at = At(f"{at.path}.kind", at.source, None, at.mistakes)
        value = at.plain
        if not isinstance(value, dict):
            at.wrong("a Kubernetes object: a Node or a Pod")
            return
        match value.get("kind"):
            case "Node" | "Pod" as kind:
                pass
            case other:
                at.mistakes.append(ConfigMistake(kind_at.path, at.source, other, "Node or Pod"))
                return
        try:
            if kind == "Pod":
                Cluster().incoming(decode(msgspec.json.encode(value), Pod))
            else:
                Cluster().put_node(decode(msgspec.json.encode(value), Node))
        except msgspec.ValidationError as error:
            text = str(error)
            spot = _SPOT.search(text)
            path = at.path + (spot["path"] if spot else "")
            said = _SPOT.sub("", text)
            at.mistakes.append(
                ConfigMistake(path, at.source, None, f"a {kind}: {said[:1].lower()}{said[1:]}")
            )
        except BerthError as error:
            at.mistakes.append(ConfigMistake(at.path, at.source, None, f"a {kind}: {error}"))
        self._templates[name] = kind, value

    def _template(self, at: At, kind: Kind) -> JsonObject:
        name = at.text(f"the name of a {kind} in templates", required=True)
        if name in self._templates:
            found, value = self._templates[name]
            if found != kind:
                at.wrong(f"a template of kind {kind}; this is a {found}")
            return value
        if name and name not in self._template_names:
            at.wrong(
                known_name(name, self._template_names, "template") if self._template_names else "a template"
            )
        return {}

    def _operation(self, at: At, nodes: list[CreateNodes], pods: list[CreatePods]) -> None:
        found = {
            name: value
            for name, value in at.fields(("createNodes", "createPods"), "operation").items()
            if value.given
        }
        if len(found) != 1:
            if isinstance(at.plain, dict) and len(at.plain) != 1:
                at.wrong("one operation: createNodes or createPods", show=False)
            return
        if "createNodes" in found:
            nodes.append(self._create_nodes(found["createNodes"]))
        else:
            pods.append(self._create_pods(found["createPods"]))

    def _create_nodes(self, at: At) -> CreateNodes:
        fields = at.fields(("template", "labels", "taints"))
        labels = {}
        for key, values in _entries(fields["labels"], "lists of values by label").items():
            labels[key] = values.texts("value")
            if not labels[key] and values.plain in ([], None):
                values.wrong("a list of values", show=False)
        taints = []
        for item in fields["taints"].items("taints"):
            rule = item.fields(("every", "first", "taint"))
            if not isinstance(rule["taint"].plain, dict):
                rule["taint"].wrong("a taint: key, value, effect")
            taints.append(
                TaintRule(
                    _count(rule["every"], 1), _count(rule["first"], 0, required=False), rule["taint"].plain
                )
            )
        return CreateNodes(self._template(fields["template"], "Node"), labels, tuple(taints))

    def _create_pods(self, at: At) -> CreatePods:
        fields = at.fields(
            ("template", "shapes", "namespace", "order", "placed", "service", "measured", "churn")
        )
        if fields["template"].given == fields["shapes"].given:
            at.wrong("either a template or shapes", show=False)
        has_template = fields["template"].given
        order, placed = _one_of(fields["order"], get_args(Order)), _one_of(fields["placed"], get_args(Placed))
        churn = None
        if fields["churn"].given:
            parts = fields["churn"].fields(("template", "every"))
            churn = Churn(self._template(parts["template"], "Pod"), _count(parts["every"], 1))
        return CreatePods(
            template=self._template(fields["template"], "Pod") if has_template else None,
            n_shapes=_n_shapes(fields["shapes"]),
            namespace=fields["namespace"].text() or "default",
            order="runs" if order == "runs" else "random",
            placed="in turn" if placed == "in turn" else "scheduled",
            has_service=fields["service"].boolean(),
            measured=fields["measured"].boolean(),
            churn=churn,
        )


def _check_operations(
    at: At, nodes: list[CreateNodes], pods: list[CreatePods], sizes: Mapping[str, Size]
) -> None:
    if len(nodes) != 1 or "createNodes" not in next(at.items("operations")).plain:
        at.wrong("createNodes once, as the first operation", show=False)
    if [create.measured for create in pods] != [False] * (len(pods) - 1) + [True]:
        at.wrong("createPods with measured: true once, as the last operation", show=False)
    if len(pods) == 1 and any(size.existing for size in sizes.values()):
        at.wrong("a createPods that is not measured, for a size has existing pods", show=False)
    for i, create in enumerate(pods):
        if create.placed == "in turn" and create.measured:
            at.wrong(
                f"measured pods to be scheduled; createPods number {i + 1} places them in turn", show=False
            )
        if create.has_service and create.template and not create.template.get("metadata", {}).get("labels"):
            at.wrong(
                f"labels on the pods of a service; those of createPods number {i + 1} have none", show=False
            )


def _entries(at: At, expected: str) -> dict[str, At]:
    """Return the values of a mapping with keys of its own."""
    if not at.given:
        return {}
    value = at.plain
    if not isinstance(value, dict):
        at.wrong(expected)
        return {}
    return at.fields(value)


def _count(at: At, least: int, *, required: bool = True) -> int:
    expected = f"a whole number, {least} or more"
    if required and not at.given:
        at.wrong(expected, show=False)
    return at.integer(least, least, _LARGEST, expected)


def _one_of(at: At, names: tuple[str, ...]) -> str:
    name = at.text(f"one of {', '.join(names)}")
    if name and name not in names:
        at.wrong(f"one of {', '.join(names)}")
    return name


def _n_shapes(at: At) -> int:
    if at.plain == "each":
        return EACH
    return at.integer(0, 1, _LARGEST, "a whole number, 1 or more, or each")
