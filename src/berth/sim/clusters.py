"""Made-up clusters of any size: as a file of one big ``List`` for benchmarks, as small objects for tests.

The file has what a real one has and a scheduler does not need (probes, environment, mounts, digests of
images): about 5 kB a pod, because reading past it is what a snapshot costs. It is written as it is made, from
one template a shape, so that memory stays small at any size.
"""

import json
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from textwrap import indent as indented
from typing import BinaryIO

from berth.sim.manifests import PodNames, node_object, pod_object, workload_objects
from berth.sim.padding import padded_node, padded_pod
from berth.sim.recipe import ZONES, JsonObject, NodePlan, Recipe, Shape

ITEMS_PER_WRITE = 512
# Pod name endings count through this alphabet in large steps, so that they look drawn and never repeat.
ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
ENDINGS = len(ALPHABET) ** 5
STEP = 5_555_555

# Stands in a template for each pod's own values; no other text of a template has a per cent sign.
PLACEHOLDERS = PodNames(
    ending="%(ending)s",
    uid="%(uid)s",
    token="%(token)s",
    digest="%(digest)s",
    address="%(address)s",
    created="%(created)s",
    ready="%(ready)s",
    node="%(node)s",
)


def generate_objects(n_nodes: int, n_pods: int, n_shapes: int = 150, seed: int = 0) -> Iterator[JsonObject]:
    """Make a cluster as small Kubernetes objects: nodes, workloads with their services, then pods.

    A pod that finds no room on any node is Pending.
    """
    recipe = Recipe(n_nodes, n_pods, n_shapes, seed)
    yield from map(node_object, recipe.nodes)
    for shape in recipe.shapes:
        yield from workload_objects(shape)
    for shape, names in pod_names(recipe):
        yield pod_object(shape, names)


def write_snapshot(
    target: Path | str | BinaryIO,
    n_nodes: int,
    n_pods: int,
    n_shapes: int = 150,
    seed: int = 0,
    zones: Sequence[str] = ZONES,
    *,
    affinity_share: float = 0.0,
    indent: int | None = None,
) -> int:
    """Write a cluster as one JSON ``List`` and tell how many bytes that were.

    Parameters
    ----------
    target : path or binary file
        What to write; a file is left open.
    affinity_share : float
        Which share of the shapes has affinity rules, 0 to 1.
    indent : int, optional
        4 writes it as kubectl prints it; none writes it in one line.
    """
    if isinstance(target, Path | str):
        with Path(target).open("wb") as file:
            return write_snapshot(
                file, n_nodes, n_pods, n_shapes, seed, zones, affinity_share=affinity_share, indent=indent
            )
    recipe = Recipe(n_nodes, n_pods, n_shapes, seed, tuple(zones), affinity_share)
    return _write_list(target, _Layout(indent), recipe)


class _Layout:
    """How JSON is laid out: keys in alphabetical order, as kubectl has them, hence the kind at the end."""

    def __init__(self, indent: int | None) -> None:
        self.indent = indent
        step = " " * (indent or 0)
        self.head = '{"apiVersion":"v1","items":['
        self.between = ","
        self.tail = '],"kind":"List","metadata":{"resourceVersion":""}}\n'
        if indent:
            self.head = f'{{\n{step}"apiVersion": "v1",\n{step}"items": [\n'
            self.between = ",\n"
            version = f'{step * 2}"resourceVersion": ""'
            self.tail = f'\n{step}],\n{step}"kind": "List",\n{step}"metadata": {{\n{version}\n{step}}}\n}}\n'

    def item(self, item: JsonObject) -> str:
        if self.indent:
            return indented(json.dumps(item, indent=self.indent, sort_keys=True), " " * (2 * self.indent))
        return json.dumps(item, separators=(",", ":"), sort_keys=True)


def _write_list(file: BinaryIO, layout: _Layout, recipe: Recipe) -> int:
    texts = _item_texts(layout, recipe)
    n_bytes = file.write(layout.head.encode())
    separator = ""
    while chunk := list(islice(texts, ITEMS_PER_WRITE)):
        n_bytes += file.write((separator + layout.between.join(chunk)).encode())
        separator = layout.between
    return n_bytes + file.write(layout.tail.encode())


def _item_texts(layout: _Layout, recipe: Recipe) -> Iterator[str]:
    for node in recipe.nodes:
        yield layout.item(padded_node(node_object(node)))
    for shape in recipe.shapes:
        for item in workload_objects(shape):
            yield layout.item(item)
    templates: dict[tuple[int, bool], str] = {}
    for shape, names in pod_names(recipe):
        kind = (shape.number, bool(names.node))
        if kind not in templates:
            template = PLACEHOLDERS if names.node else PLACEHOLDERS._replace(node="")
            templates[kind] = layout.item(padded_pod(pod_object(shape, template), template))
        yield templates[kind] % names._asdict()


def pod_names(recipe: Recipe) -> Iterator[tuple[Shape, PodNames]]:
    """Give each pod's shape and what is its own: name, uid, node, times."""
    random = Random(f"pods {recipe.seed}")
    times = [_times(minute) for minute in range(4096)]
    for shape, number, node in recipe.placements():
        yield shape, _names(number, node, random.getrandbits(128), times)


def _names(number: int, node: NodePlan | None, bits: int, times: list[tuple[str, str]]) -> PodNames:
    drawn = f"{bits:032x}"
    created, ready = times[bits & 4095]
    return PodNames(
        ending=_ending(number * STEP),
        uid=f"{drawn[:8]}-{drawn[8:12]}-4{drawn[13:16]}-a{drawn[17:20]}-{drawn[20:]}",
        token=_ending(bits),
        digest=drawn + drawn[::-1],
        address=f"10.{bits & 127}.{bits >> 7 & 255}.{bits >> 15 & 255}",
        created=created,
        ready=ready,
        node=node.name if node else "",
    )


def _ending(number: int) -> str:
    number %= ENDINGS
    letters = ""
    for _ in range(5):
        number, letter = divmod(number, len(ALPHABET))
        letters += ALPHABET[letter]
    return letters


def _times(minute: int) -> tuple[str, str]:
    """When a pod was created and when it became ready: so many minutes into three days."""
    day, minute_of_day = divmod(minute, 24 * 60)
    start = f"2025-09-{day + 1:02d}T{minute_of_day // 60:02d}:{minute_of_day % 60:02d}"
    return f"{start}:05Z", f"{start}:{20 + minute % 30}Z"
