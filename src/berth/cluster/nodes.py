"""Nodes as rows. What nodes have in common (taints, conditions, images) is interned."""

from collections import Counter
from collections.abc import Callable, Iterator
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np

from berth.cluster.accounting import BASE_RESOURCES, Amounts, amounts
from berth.cluster.arrays import NONE, BoolColumn, GrowingArray, IdColumn, IntColumn, Interner
from berth.cluster.labels import LabelColumns
from berth.objects.base import ObjectMeta, ResourceList
from berth.objects.nodes import ContainerImage, Node, NodeCondition, NodeSpec, NodeStatus, Taint
from berth.objects.quantities import format_quantity

PREFER_AVOID_PODS = "scheduler.alpha.kubernetes.io/preferAvoidPods"
"""The annotation of a node that names controllers whose pods had better go elsewhere."""
KEPT_ANNOTATIONS = frozenset((PREFER_AVOID_PODS,))
"""The annotations of nodes that scheduling reads; the others take much memory."""

VOLUME_LIMIT_PREFIX = "attachable-volumes-"

V = TypeVar("V", bound=np.generic)


class ResourceTable:
    """Amounts by resource and node: int64[n_resources, n_rows], resources by the ids of one interner.

    Unit: milli-CPU for cpu, bytes or counts for all others.
    """

    def __init__(self, resources: Interner[str]) -> None:
        self._resources = resources
        self._rows: list[GrowingArray] = []
        self._n_rows = 0

    def of(self, resource_id: int) -> IntColumn:
        """Return one resource over all rows (int64[n_rows], a view)."""
        while len(self._rows) <= resource_id:
            self._rows.append(GrowingArray(np.int64))
        column = self._rows[resource_id]
        column.grow_to(self._n_rows)
        return column.values

    def grow_to(self, n_rows: int) -> None:
        """Make room for so many rows."""
        self._n_rows = max(self._n_rows, n_rows)

    def set(self, row: int, values: Amounts) -> None:
        """Give a row its amounts; resources that are not named are 0."""
        for resource_id in range(len(self._rows)):
            self.of(resource_id)[row] = 0
        for name, amount in values.items():
            self.of(self._resources.id(name))[row] = amount

    def get(self, row: int) -> Amounts:
        """Return a row's amounts, those that are 0 left out (base resources are always there)."""
        return {
            name: int(self.of(i)[row])
            for i, name in enumerate(self._resources.items)
            if i < len(BASE_RESOURCES) or self.of(i)[row]
        }


class _NodeValues(NamedTuple):
    """What a node's row says; `entries` are numbers, one for each of the table's columns."""

    meta: ObjectMeta
    labels: dict[str, str]
    allocatable: Amounts
    entries: tuple[int, ...]


class NodeTable:
    """All nodes. A row number is stable while its node lives; a removed node's row is used again.

    Attributes
    ----------
    version : int
        Goes up with every change.
    """

    def __init__(self, resources: Interner[str]) -> None:
        self.version = 0
        self.names: list[str] = []
        self.labels = LabelColumns()
        self.allocatable = ResourceTable(resources)
        self.taint_sets: Interner[tuple[Taint, ...]] = Interner()
        self.condition_sets: Interner[tuple[NodeCondition, ...]] = Interner()
        self.image_sets: Interner[tuple[ContainerImage, ...]] = Interner()
        self.feature_sets: Interner[tuple[str, ...]] = Interner()
        self.volume_limit_sets: Interner[tuple[tuple[str, int], ...]] = Interner()
        self.avoidances: Interner[str] = Interner()
        self._shared_images: dict[ContainerImage, ContainerImage] = {}
        self._metas: list[ObjectMeta] = []
        self._row_of: dict[str, int] = {}
        self._free: list[int] = []
        self._alive = GrowingArray(np.bool_)
        self._unschedulable = GrowingArray(np.bool_)
        self._taints = GrowingArray(np.int32)
        self._conditions = GrowingArray(np.int32)
        self._images = GrowingArray(np.int32)
        self._features = GrowingArray(np.int32)
        self._volume_limits = GrowingArray(np.int32)
        self._avoidances = GrowingArray(np.int32)
        # In the order of the entries of `_NodeValues`.
        self._columns = (
            self._unschedulable,
            self._taints,
            self._conditions,
            self._images,
            self._features,
            self._volume_limits,
            self._avoidances,
        )
        self._rank: IntColumn | None = None
        self._n_unschedulable: int | None = None

    def __len__(self) -> int:
        return len(self._row_of)

    @property
    def n_rows(self) -> int:
        """How many rows there are, free ones included."""
        return len(self.names)

    @property
    def alive(self) -> BoolColumn:
        """Which rows hold a node."""
        return self._alive.values

    @property
    def unschedulable(self) -> BoolColumn:
        """Which nodes are cordoned (``spec.unschedulable``)."""
        return self._unschedulable.values

    @property
    def n_unschedulable(self) -> int:
        """How many rows are marked as cordoned, free ones included."""
        if self._n_unschedulable is None:
            self._n_unschedulable = int(np.count_nonzero(self.unschedulable))
        return self._n_unschedulable

    @property
    def taints_id(self) -> IdColumn:
        """Each node's taints, as ids of `taint_sets`."""
        return self._taints.values

    @property
    def conditions_id(self) -> IdColumn:
        """Each node's conditions, as ids of `condition_sets`."""
        return self._conditions.values

    @property
    def images_id(self) -> IdColumn:
        """Each node's images, as ids of `image_sets`."""
        return self._images.values

    @property
    def features_id(self) -> IdColumn:
        """Each node's declared features, as ids of `feature_sets`."""
        return self._features.values

    @property
    def volume_limits_id(self) -> IdColumn:
        """How many volumes each node says it takes, as ids of `volume_limit_sets`; a 0 is not the same as none."""
        return self._volume_limits.values

    @property
    def avoidance_id(self) -> IdColumn:
        """Each node's annotation `PREFER_AVOID_PODS`, as ids of `avoidances` (empty where it is absent)."""
        return self._avoidances.values

    @property
    def rank(self) -> IntColumn:
        """Each row's place among all rows in the order of names (int64[n_rows]): the node order of ties."""
        if self._rank is None:
            order = np.array(sorted(range(self.n_rows), key=self.names.__getitem__), dtype=np.int64)
            self._rank = np.empty(self.n_rows, dtype=np.int64)
            self._rank[order] = np.arange(self.n_rows)
        return self._rank

    def row(self, name: str) -> int:
        """Return a node's row, `NONE` if there is no such node."""
        return self._row_of.get(name, NONE)

    def meta(self, row: int) -> ObjectMeta:
        """Return a node's uid and those of its annotations that scheduling reads (its labels are columns)."""
        return self._metas[row]

    def put(self, node: Node) -> int:
        """Add a node or replace the one of its name; return its row.

        Raises
        ------
        berth.objects.quantities.QuantityError
            An amount is no quantity; the table is as it was.
        """
        values = self._values_of(node)
        self.version += 1
        row = self._row_of.get(values.meta.name, NONE)
        if row == NONE:
            row = self._new_row(values.meta.name)
        self._metas[row] = values.meta
        self.labels.set(row, values.labels)
        self.allocatable.set(row, values.allocatable)
        for column, entry in zip(self._columns, values.entries, strict=True):
            column.values[row] = entry
        self._n_unschedulable = None
        return row

    def holds(self, node: Node) -> bool:
        """Tell whether a node's row says already all that is read of it: a heartbeat changes none of it."""
        values = self._values_of(node)
        row = self._row_of.get(values.meta.name, NONE)
        return (
            row != NONE
            and values.meta == self._metas[row]
            and values.entries == tuple(int(column.values[row]) for column in self._columns)
            and values.labels == self.labels.get(row)
            and Counter(values.allocatable) == Counter(self.allocatable.get(row))  # what is absent is 0
        )

    def _values_of(self, node: Node) -> _NodeValues:
        meta = node.metadata
        allocatable = amounts(node.status.allocatable)
        limits = ((name, n) for name, n in allocatable.items() if name.startswith(VOLUME_LIMIT_PREFIX))
        kept = {key: text for key, text in meta.annotations.items() if key in KEPT_ANNOTATIONS}
        return _NodeValues(
            ObjectMeta(name=meta.name, uid=meta.uid, annotations=kept),
            meta.labels,
            allocatable,
            (
                int(node.spec.unschedulable),
                self.taint_sets.id(node.spec.taints),
                self.condition_sets.id(node.status.conditions),
                # Sets differ from node to node, but of the same images: each is kept once (20 kB a node otherwise).
                self.image_sets.id(tuple(self._shared_images.setdefault(i, i) for i in node.status.images)),
                self.feature_sets.id(node.status.declared_features),
                self.volume_limit_sets.id(tuple(sorted(limits))),
                self.avoidances.id(meta.annotations.get(PREFER_AVOID_PODS, "")),
            ),
        )

    def remove(self, name: str) -> int:
        """Take a node away and return the row that it had."""
        row = self._row_of.pop(name)
        self.version += 1
        self._alive.values[row] = False
        self.labels.set(row, {})
        self.allocatable.set(row, {})
        self._free.append(row)
        return row

    def get(self, row: int) -> Node:
        """Put a node together again from its columns."""
        return self._node(row, self.labels.get(row))

    def all(self) -> Iterator[Node]:
        """Put all nodes together again, in the order of their rows."""
        labels = self.labels.all()
        for row in np.flatnonzero(self.alive).tolist():
            yield self._node(row, labels[row])

    def _node(self, row: int, labels: dict[str, str]) -> Node:
        meta = self._metas[row]
        limits = self.volume_limit_sets.items[self.volume_limits_id[row]]
        allocatable = self.allocatable.get(row) | dict(limits)
        offered: ResourceList = {
            n: format_quantity(a, milli=n == BASE_RESOURCES[0]) for n, a in allocatable.items()
        }
        return Node(
            metadata=msgspec.structs.replace(meta, labels=labels),
            spec=NodeSpec(
                unschedulable=bool(self.unschedulable[row]), taints=self.taint_sets.items[self.taints_id[row]]
            ),
            status=NodeStatus(
                capacity=offered,
                allocatable=offered,
                conditions=self.condition_sets.items[self.conditions_id[row]],
                images=self.image_sets.items[self.images_id[row]],
                declared_features=self.feature_sets.items[self.features_id[row]],
            ),
        )

    def _new_row(self, name: str) -> int:
        if self._free:
            row = self._free.pop()
            self.names[row] = name
        else:
            row = len(self.names)
            self.names.append(name)
            self._metas.append(ObjectMeta())
            for column in (self._alive, *self._columns):
                column.grow_to(row + 1)
            self.allocatable.grow_to(row + 1)
        self._row_of[name] = row
        self._alive.values[row] = True
        self._rank = None
        return row


def by_interned(ids: IdColumn, n_items: int, judge: Callable[[int], int]) -> IntColumn:
    """Apply a scalar rule once to each interned thing and spread the results over the rows (int64, as ``ids``)."""
    return np.fromiter(map(judge, range(n_items)), dtype=np.int64, count=n_items)[ids]
