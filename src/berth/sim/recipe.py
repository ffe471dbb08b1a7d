"""What a made-up cluster has in it, and where its pods are. Knows nothing of how objects are written.

Everything follows from the numbers of a `Recipe`: the same recipe gives the same cluster.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import count
from random import Random
from typing import Any

JsonObject = dict[str, Any]

ZONES = ("zone-a", "zone-b", "zone-c")
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
POOL = "example.com/pool"
MAX_PODS_PER_NODE = 110
# Of twenty nodes, fourteen are general, three compute and three batch; batch nodes are tainted.
POOLS = ("general", "compute", "general", "batch", "general", "general", "general") * 2 + (
    ("general", "compute", "general", "batch", "general", "general")
)
SIZES = {"general": ((16, 64), (32, 128)), "compute": ((48, 192),), "batch": ((16, 64),)}
MILLI_CPU = (50, 100, 150, 200, 250, 300, 400, 500, 750, 1000)
MEMORY_MIB = (64, 128, 256, 384, 512, 768, 1024, 1536, 2048)
PRIORITIES = (0, 0, 0, 0, 100, 1000, -10)
AFFINITY_FORMS = 6


@dataclass(frozen=True, slots=True)
class NodePlan:
    """A node. [cores, GiB]"""

    name: str
    zone: str
    pool: str
    cpu: int
    memory_gib: int


@dataclass(frozen=True, slots=True)
class Shape:
    """What all pods of one app have in common.

    ``alone`` says that a node may hold one of them at most, ``zone`` that all must be in that zone; both
    stand for what the affinity asks.
    """

    number: int
    n_pods: int
    milli_cpu: int
    memory_mib: int
    priority: int
    pool: str = ""
    tolerates_batch: bool = False
    affinity: JsonObject | None = None
    alone: bool = False
    zone: str = ""

    @property
    def app(self) -> str:
        return f"shape-{self.number:03d}"

    @property
    def namespace(self) -> str:
        return f"team-{self.number % 10}"

    def allows(self, node: NodePlan) -> bool:
        """May the shape's pods be on this node, room aside?"""
        return (
            (not self.pool or node.pool == self.pool)
            and (not self.zone or node.zone == self.zone)
            and (node.pool != "batch" or self.tolerates_batch)
        )


@dataclass(frozen=True)
class Recipe:
    """How large a cluster to make, of how many shapes of pods, and which share of the shapes has affinity."""

    n_nodes: int
    n_pods: int
    n_shapes: int = 150
    seed: int = 0
    zones: tuple[str, ...] = ZONES
    affinity_share: float = 0.0

    def __post_init__(self) -> None:
        if self.n_shapes < 1:
            raise ValueError(f"n_shapes is {self.n_shapes}; every pod has a shape: it must be at least 1")

    @cached_property
    def nodes(self) -> list[NodePlan]:
        made = []
        for number in range(self.n_nodes):
            pool = POOLS[number % len(POOLS)]
            cpu, memory_gib = SIZES[pool][number % len(SIZES[pool])]
            zone = self.zones[number % len(self.zones)]
            made.append(NodePlan(f"node-{number:05d}", zone, pool, cpu, memory_gib))
        return made

    @cached_property
    def shapes(self) -> list[Shape]:
        random = Random(f"shapes {self.seed}")
        return [self._shape(number, random) for number in range(self.n_shapes)]

    def _shape(self, number: int, random: Random) -> Shape:
        kind = random.random()
        pool = "compute" if kind < 0.1 else "batch" if kind < 0.15 else ""
        share = self.affinity_share
        # Spread evenly over the shapes: every third at a third, every one at 1.
        has_affinity = math.floor((number + 1) * share) > math.floor(number * share)
        return Shape(
            number=number,
            n_pods=self.n_pods // self.n_shapes + (number < self.n_pods % self.n_shapes),
            milli_cpu=random.choice(MILLI_CPU),
            memory_mib=random.choice(MEMORY_MIB),
            priority=random.choice(PRIORITIES),
            pool=pool,
            tolerates_batch=0.1 <= kind < 0.2,
            **(self._affinity(number, math.floor(number * share) % AFFINITY_FORMS) if has_affinity else {}),
        )

    def _affinity(self, number: int, form: int) -> dict[str, Any]:
        own = {"matchLabels": {"app": f"shape-{number:03d}"}}
        on_host = {"labelSelector": own, "topologyKey": HOSTNAME}
        in_zone = {"labelSelector": own, "topologyKey": ZONE}
        known = {
            "matchExpressions": [{"key": POOL, "operator": "In", "values": ["general", "compute", "batch"]}]
        }
        general = {"matchExpressions": [{"key": POOL, "operator": "In", "values": ["general"]}]}
        required, preferred = (
            f"{word}DuringSchedulingIgnoredDuringExecution" for word in ("required", "preferred")
        )
        forms: tuple[dict[str, Any], ...] = (
            {"affinity": {"nodeAffinity": {preferred: [{"preference": general, "weight": 20}]}}},
            {"affinity": {"podAntiAffinity": {preferred: [{"podAffinityTerm": on_host, "weight": 100}]}}},
            {"affinity": {"nodeAffinity": {required: {"nodeSelectorTerms": [known]}}}},
            {"affinity": {"podAntiAffinity": {required: [on_host]}}, "alone": True},
            {"affinity": {"podAffinity": {preferred: [{"podAffinityTerm": in_zone, "weight": 50}]}}},
            {
                "affinity": {"podAffinity": {required: [in_zone]}},
                "zone": self.zones[number % len(self.zones)],
            },
        )
        return forms[form]

    def placements(self) -> Iterator[tuple[Shape, int, NodePlan | None]]:
        """Give every pod: its shape, its number within the shape, and its node, or none when all are full."""
        random = Random(f"placements {self.seed}")
        room = {
            node.name: [node.cpu * 1000 - 200, (node.memory_gib - 2) * 1024, MAX_PODS_PER_NODE]
            for node in self.nodes
        }
        for shape in self.shapes:
            allowed = [node for node in self.nodes if shape.allows(node)]
            walk = _walk(shape, allowed, room, random)
            for number in range(shape.n_pods):
                yield shape, number, next(walk, None)


def _walk(
    shape: Shape, nodes: list[NodePlan], room: dict[str, list[int]], random: Random
) -> Iterator[NodePlan]:
    """Give the nodes for a shape's pods, round and round in an order of its own, until all are full."""
    if not nodes:
        return
    n_nodes = len(nodes)
    stride = _coprime(n_nodes, random)
    start = random.randrange(n_nodes)
    passed_over = 0
    for visit in range(n_nodes) if shape.alone else count():
        node = nodes[(start + visit * stride) % n_nodes]
        left = room[node.name]
        if left[0] >= shape.milli_cpu and left[1] >= shape.memory_mib and left[2]:
            left[0] -= shape.milli_cpu
            left[1] -= shape.memory_mib
            left[2] -= 1
            passed_over = 0
            yield node
            continue
        passed_over += 1
        if passed_over == n_nodes:
            return


def _coprime(number: int, random: Random) -> int:
    """Give a stride that visits every one of ``number`` places before any a second time."""
    while True:
        stride = random.randrange(number) + 1
        if math.gcd(stride, number) == 1:
            return stride
