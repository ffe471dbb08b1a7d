"""Pods as rows. The decoded object is not kept: spec, labels and owner are ids of interned things."""

from array import array
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import NONE, BoolColumn, GrowingArray, IdColumn, IntColumn, Interner

PHASES = ("", "Pending", "Running", "Succeeded", "Failed", "Unknown")
SUCCEEDED, FAILED = 3, 4
PodIds = NDArray[np.intp]


class PodValues(msgspec.Struct, gc=False):
    """One pod's row.

    Attributes
    ----------
    created, ready_since : int
        Seconds since 1970; 0 if unknown.
    node_name_id : int
        Of the interner `PodTable.node_names`; `NONE` for a pod without a node.
    restarts : int
        The highest count among its containers.
    started : int
        Seconds since 1970 (``status.startTime``); 0 if it has not started.
    preempted : bool
        Whether its conditions say that a scheduler disrupts it in favour of another pod.
    """

    name: str
    uid: str
    namespace_id: int
    spec_id: int
    labels_id: int
    owner_id: int
    node_name_id: int
    phase: int = 2
    ready: bool = False
    terminating: bool = False
    created: int = 0
    ready_since: int = 0
    deletion_cost: int = 0
    restarts: int = 0
    started: int = 0
    preempted: bool = False

    @property
    def is_finished(self) -> bool:
        """Whether it has run to its end: it holds nothing any more."""
        return self.phase in (SUCCEEDED, FAILED)

    def counts_as(self, other: "PodValues") -> bool:
        """Tell whether two pods of one name are the same to all that counts pods: only how they fare may differ."""
        return all(getattr(self, name) == getattr(other, name) for name in _COUNTED)


_COUNTED = (
    "uid", "namespace_id", "spec_id", "labels_id", "owner_id", "node_name_id", "terminating", "is_finished",
)  # fmt: skip
_COLUMNS: dict[str, tuple[type[np.generic], int]] = {
    "namespace_id": (np.int32, NONE),
    "spec_id": (np.int32, NONE),
    "labels_id": (np.int32, NONE),
    "owner_id": (np.int32, NONE),
    "node_name_id": (np.int32, NONE),
    "phase": (np.int8, 0),
    "ready": (np.bool_, 0),
    "terminating": (np.bool_, 0),
    "created": (np.int64, 0),
    "ready_since": (np.int64, 0),
    "deletion_cost": (np.int32, 0),
    "restarts": (np.int32, 0),
    "started": (np.int64, 0),
    "preempted": (np.bool_, 0),
}


_BATCH = 4096


class PodRows:
    """Pods gathered in order to be added all at once: columns, for objects would take ten times the memory."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.uids: list[str] = []
        self.row_of: dict[tuple[int, str], int] = {}
        self._columns = {name: GrowingArray(dtype, fill) for name, (dtype, fill) in _COLUMNS.items()}
        self._waiting: list[PodValues] = []

    def __len__(self) -> int:
        return len(self.names)

    def append(self, values: PodValues) -> int:
        """Add a pod and return its place; the place of the first one if there is one of its name already."""
        row = len(self.names)
        if values.name:
            known = self.row_of.setdefault((values.namespace_id, values.name), row)
            if known != row:
                return known
        self.names.append(values.name)
        self.uids.append(values.uid)
        self._waiting.append(values)
        if len(self._waiting) == _BATCH:
            self._settle()
        return row

    def column(self, name: str) -> IntColumn:
        """Return a column by its name in `PodValues`."""
        if self._waiting:
            self._settle()
        return self._columns[name].values

    def _settle(self) -> None:
        for name, column in self._columns.items():
            column.extend(np.array(list(map(attrgetter(name), self._waiting)), dtype=_COLUMNS[name][0]))
        self._waiting.clear()


@dataclass(frozen=True, slots=True)
class TakenPods:
    """Pods that were taken out of a table, as they were: what it takes to put them back.

    Attributes
    ----------
    pods : intp[n]
        Their ids.
    columns : dict of column to array[n]
        The rest of `PodValues`, by name.
    node_row : int32[n]
    """

    pods: PodIds
    names: list[str]
    uids: list[str]
    columns: dict[str, IntColumn]
    node_row: IdColumn


class PodTable:
    """All pods, whatever their phase. A pod's id is its row; ids of pods that went are used again."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.uids: list[str] = []
        self.node_names: Interner[str] = Interner()
        self._columns = {name: GrowingArray(dtype, fill) for name, (dtype, fill) in _COLUMNS.items()}
        self._node_row = GrowingArray(np.int32, fill=NONE)
        self._alive = GrowingArray(np.bool_)
        self._id_of: dict[tuple[int, str], int] = {}
        # Pods of a name that another pod has as well: planned ones, while the other is about to go.
        self._namesakes: dict[tuple[int, str], list[int]] = {}
        self._free = array("q")

    def __len__(self) -> int:
        return len(self.names) - len(self._free)

    @property
    def alive(self) -> BoolColumn:
        """Which rows hold a pod."""
        return self._alive.values

    @property
    def node_row(self) -> IdColumn:
        """The row of each pod's node; `NONE` without a node, or on one that is not known."""
        return self._node_row.values

    @property
    def active(self) -> BoolColumn:
        """Which pods are neither gone, Succeeded nor Failed."""
        phase = self.column("phase")
        return self.alive & (phase != SUCCEEDED) & (phase != FAILED)

    def column(self, name: str) -> IntColumn:
        """Return a column by its name in `PodValues` (a view, valid until the table grows)."""
        return self._columns[name].values

    def find(self, namespace_id: int, name: str) -> int:
        """Return the id of the pod that has had the name longest, `NONE` if there is no such pod."""
        return self._id_of.get((namespace_id, name), NONE)

    def put(self, values: PodValues, node_row: int) -> int:
        """Add a pod and return its id. A pod without a name (one that is only planned) can't be found by name."""
        if self._free:
            pod = self._free.pop()
        else:
            pod = len(self.names)
            self._grow(1)
        self.names[pod] = values.name
        self.set(pod, values)
        self._node_row.values[pod] = node_row
        self._alive.values[pod] = True
        self._note_name((values.namespace_id, values.name), pod)
        return pod

    def put_all(self, rows: PodRows, node_rows: IdColumn) -> PodIds:
        """Add many pods at once and return their ids."""
        start = len(self.names)
        for name, column in self._columns.items():
            column.extend(rows.column(name))
        self._node_row.extend(node_rows)
        self._alive.extend(np.ones(len(rows), dtype=np.bool_))
        self.names += rows.names
        self.uids += rows.uids
        self._id_of.update((key, start + row) for key, row in rows.row_of.items())
        return np.arange(start, start + len(rows))

    def put_copies(self, values: PodValues, node_name_ids: IdColumn, node_rows: IdColumn) -> PodIds:
        """Add a pod for each row, all alike but for their nodes; return their ids."""
        pods = self._room_for(len(node_rows))
        for name, column in self._columns.items():
            column.values[pods] = node_name_ids if name == "node_name_id" else getattr(values, name)
        self._node_row.values[pods] = node_rows
        self._alive.values[pods] = True
        if values.name or values.uid:
            for pod in pods.tolist():
                self.names[pod], self.uids[pod] = values.name, values.uid
                self._note_name((values.namespace_id, values.name), pod)
        return pods

    def get(self, pod: int) -> PodValues:
        """Return a pod's row."""
        values: dict[str, Any] = {name: column.item(pod) for name, column in self._columns.items()}
        return PodValues(self.names[pod], self.uids[pod], **values)

    def set(self, pod: int, values: PodValues) -> None:
        """Replace a pod's row by one of the same name on the same node."""
        self.uids[pod] = values.uid
        for name, column in self._columns.items():
            column.values[pod] = getattr(values, name)

    def move(self, pod: int, node_row: int) -> None:
        """Note that a pod's node has become known, or is known no longer (`NONE`)."""
        self._node_row.values[pod] = node_row

    def remove(self, pod: int) -> None:
        """Take a pod out."""
        self._forget_name((int(self.column("namespace_id")[pod]), self.names[pod]), pod)
        self.names[pod] = self.uids[pod] = ""
        self._alive.values[pod] = False
        self._node_row.values[pod] = NONE
        self._free.append(pod)

    def remove_all(self, pods: PodIds) -> TakenPods:
        """Take many pods out at once; ``put_back`` undoes it."""
        ids = pods.tolist()
        columns = {name: column.values[pods] for name, column in self._columns.items()}
        taken = TakenPods(
            pods,
            [self.names[pod] for pod in ids],
            [self.uids[pod] for pod in ids],
            columns,
            self.node_row[pods],
        )
        for pod, key in zip(
            ids, zip(columns["namespace_id"].tolist(), taken.names, strict=True), strict=True
        ):
            self._forget_name(key, pod)
            self.names[pod] = self.uids[pod] = ""
        self._alive.values[pods] = False
        self._node_row.values[pods] = NONE
        self._free.extend(ids)
        return taken

    def put_back(self, taken: TakenPods) -> None:
        """Add pods that were taken out, under the ids that they had: nobody else may have got those since."""
        pods = taken.pods
        for name, column in self._columns.items():
            column.values[pods] = taken.columns[name]
        self._node_row.values[pods] = taken.node_row
        self._alive.values[pods] = True
        ids = pods.tolist()
        back = set(ids)
        self._free = array("q", (pod for pod in self._free if pod not in back))
        keys = zip(taken.columns["namespace_id"].tolist(), taken.names, strict=True)
        for pod, key, uid in zip(ids, keys, taken.uids, strict=True):
            self.names[pod], self.uids[pod] = key[1], uid
            self._note_name(key, pod)

    def _room_for(self, n: int) -> PodIds:
        """Return the ids of new pods, those of pods that went first."""
        n_left = max(0, len(self._free) - n)
        # The last that went come first, as one at a time.
        again = self._free[n_left:][::-1]
        del self._free[n_left:]
        start = len(self.names)
        self._grow(n - len(again))
        return np.array([*again, *range(start, len(self.names))], dtype=np.intp)

    def _grow(self, n: int) -> None:
        self.names += [""] * n
        self.uids += [""] * n
        for column in (*self._columns.values(), self._node_row, self._alive):
            column.grow_to(len(self.names))

    def _note_name(self, key: tuple[int, str], pod: int) -> None:
        if key[1] and self._id_of.setdefault(key, pod) != pod:
            self._namesakes.setdefault(key, []).append(pod)

    def _forget_name(self, key: tuple[int, str], pod: int) -> None:
        if not key[1]:
            return
        if not self._namesakes:
            del self._id_of[key]
            return
        namesakes = self._namesakes.get(key, [])
        if pod in namesakes:
            namesakes.remove(pod)
        elif namesakes:
            self._id_of[key] = namesakes.pop(0)
        else:
            del self._id_of[key]
        if not namesakes:
            self._namesakes.pop(key, None)
