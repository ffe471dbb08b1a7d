"""The cluster: its tables kept consistent with one another, and every change written to the log."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np

from berth.cluster.accounting import BASE_RESOURCES, Accounting, LegacyAccounting
from berth.cluster.arrays import NONE, FloatColumn, GrowingArray, IdColumn, IntColumn, Interner
from berth.cluster.labels import LabelColumns
from berth.cluster.log import ChangeLog, PodChange
from berth.cluster.nodes import NodeTable, ResourceTable
from berth.cluster.objects import ClusterObjects, NamedObject
from berth.cluster.pods import FAILED, PHASES, SUCCEEDED, PodIds, PodRows, PodTable, PodValues, TakenPods
from berth.cluster.ports import HostPortTable
from berth.cluster.specs import SpecInfo, SpecTable
from berth.objects.base import OwnerReference
from berth.objects.decode import decode
from berth.objects.nodes import Node
from berth.objects.pod_records import (
    DISRUPTION_TARGET,
    PREEMPTION_BY_SCHEDULER,
    ConditionSlice,
    PodRecord,
    record_of,
)
from berth.objects.pods import Pod
from berth.objects.selectors import Selector
from berth.objects.workloads import (
    Deployment,
    PodDisruptionBudget,
    ReplicaSet,
    ReplicationController,
    Service,
    StatefulSet,
)

Owners = tuple[OwnerReference, ...]
_PHASE_OF_NAME = {name: phase for phase, name in enumerate(PHASES)}
_MAX_COST_DIGITS = 10
_N_WORTH_ALL = 8
_MAX_LOGGED = 256


@dataclass(frozen=True, slots=True)
class Incoming:
    """A pod that is to be placed, as plugins see it. Pods with equal ids are of one shape: they are judged alike."""

    name: str
    namespace: str
    labels: dict[str, str]
    info: SpecInfo
    controller: OwnerReference | None
    namespace_id: int
    labels_id: int
    spec_id: int
    owners_id: int
    uid: str = ""
    own_id: int = NONE
    """Of name and uid where they matter (ephemeral volumes), else `NONE`."""
    node_name: str = ""
    node_name_id: int = NONE

    @property
    def shape(self) -> tuple[int, ...]:
        """What tells its shape from others."""
        own = (self.node_name_id, self.own_id)
        return self.namespace_id, self.labels_id, self.spec_id, self.owners_id, *own


class Cluster:
    """Nodes, pods and all else that scheduling reads, as columns.

    Attributes
    ----------
    requested : ResourceTable
        What the pods on each node hold, by resource; ``pods`` is their number.
    label_sets : LabelColumns
        The distinct label sets of pods; a row is what ``labels_id`` of a pod names.
    affinity_pods : dict of spec id to set of pod id
        The pods on nodes whose spec has terms of inter-pod (anti-)affinity. A spec stays when its last pod goes.
    derived : dict
        What plugins make of interned things (specs, label sets) once and for all, each under its own key.
    """

    def __init__(self, accounting: Accounting | None = None) -> None:
        self.resources: Interner[str] = Interner()
        for name in BASE_RESOURCES:
            self.resources.id(name)
        self.nodes = NodeTable(self.resources)
        self.requested = ResourceTable(self.resources)
        self.host_ports = HostPortTable()
        self.specs = SpecTable(accounting or LegacyAccounting(), self.resources)
        self.pods = PodTable()
        self.namespaces: Interner[str] = Interner()
        self.label_sets = LabelColumns()
        self.owner_sets: Interner[Owners] = Interner()
        self.objects = ClusterObjects()
        self.affinity_pods: dict[int, set[int]] = {}
        self.derived: dict[Hashable, Any] = {}
        self.log = ChangeLog()
        self._own_ids: Interner[tuple[str, str]] = Interner()
        self._labels_id: dict[bytes, int] = {}
        self._owners_id: dict[bytes, int] = {}
        self._nonzero = (GrowingArray(np.int64), GrowingArray(np.int64))
        self._load_delta = GrowingArray(np.float64)
        self._name_ids = GrowingArray(np.int32, fill=NONE)
        self._homeless: dict[int, set[int]] = {}

    @property
    def nonzero_milli_cpu(self) -> IntColumn:
        """What the priorities count as requested of each node: milli-CPU (int64[n_rows])."""
        return self._nonzero[0].values

    @property
    def nonzero_memory(self) -> IntColumn:
        """What the priorities count as requested of each node: bytes (int64[n_rows])."""
        return self._nonzero[1].values

    @property
    def load_delta(self) -> FloatColumn:
        """How much of each node's allocatable its load is forecast to gain (float64[n_rows], -1 to 1; 0: not known)."""
        return self._load_delta.values

    def set_load_delta(self, delta: FloatColumn) -> None:
        """Take in a new forecast, float64[n_rows]; rows whose value moved count as changed."""
        moved = np.flatnonzero(self.load_delta != delta)
        self.load_delta[:] = delta
        for row in moved.tolist():
            self.log.node(row)

    @property
    def n_homeless(self) -> int:
        """How many pods name a node that is not known."""
        return sum(map(len, self._homeless.values()))

    # -- nodes and other objects -------------------------------------------------------------------------------------

    def put_node(self, node: Node) -> int:
        """Add a node, or replace the one of its name; return its row. What changes nothing is not logged.

        Raises
        ------
        berth.objects.quantities.QuantityError
            An amount is no quantity; nothing is changed.
        """
        known = self.nodes.row(node.metadata.name)
        if known != NONE and self.nodes.holds(node):
            return known
        row = self.nodes.put(node)
        if known != NONE:
            self.log.node(row)
            return row
        self.requested.grow_to(self.nodes.n_rows)
        self.host_ports.grow_to(self.nodes.n_rows)
        for column in (*self._nonzero, self._load_delta):
            column.grow_to(self.nodes.n_rows)
        self._name_ids.grow_to(self.nodes.n_rows)
        name_id = self._name_ids.values[row] = self.pods.node_names.id(node.metadata.name)
        for pod in self._homeless.pop(name_id, ()):
            self.pods.move(pod, row)
            if self._counts(pod):
                self._count(pod, row, 1)
        self.log.everything()
        return row

    def remove_node(self, name: str) -> None:
        """Take a node away; its pods stay, on a node that is not known.

        Raises
        ------
        KeyError
            There is no such node.
        """
        row = self.nodes.row(name)
        if row == NONE:
            raise KeyError(name)
        pods = np.flatnonzero(self.pods.node_row == row).tolist()
        for pod in pods:
            if self._counts(pod):
                self._count(pod, row, -1)
            self.pods.move(pod, NONE)
        self.load_delta[row] = 0
        self.nodes.remove(name)
        if pods:
            self._homeless.setdefault(self.pods.node_names.id(name), set()).update(pods)
        self.log.everything()

    def put(self, item: NamedObject) -> None:
        """Add a service, workload, volume, … or replace the one of its name. What no evaluation reads is not logged."""
        shelf = self.objects.shelf(item)
        before = shelf.get(item.metadata.namespace, item.metadata.name)
        shelf.put(item)
        if _evaluated(before) != _evaluated(item):
            self.log.everything()

    def remove(self, item: NamedObject) -> None:
        """Take a service, workload, volume, … away."""
        self.objects.shelf(item).remove(item.metadata.namespace, item.metadata.name)
        if _evaluated(item) is not None:
            self.log.everything()

    # -- pods --------------------------------------------------------------------------------------------------------

    def put_pod(self, pod: Pod) -> int:
        """Add a pod, or replace the one of its name; return its id."""
        values = self.values_of(record_of(pod))
        known = self.pods.find(values.namespace_id, values.name) if values.name else NONE
        if known != NONE:
            self.remove_pod(known)
        return self.add_pod(values)

    def add_pod(self, values: PodValues) -> int:
        """Add a pod that is not there yet; return its id."""
        row = self._row_of(values)
        pod = self.pods.put(values, row)
        if row != NONE and not values.is_finished:
            self._count(pod, row, 1)
            self._log(pod, row, 1)
        elif row == NONE and values.node_name_id != NONE:
            self._homeless.setdefault(values.node_name_id, set()).add(pod)
        return pod

    def add_pods(self, rows: PodRows | Iterable[PodValues]) -> None:
        """Add many pods that are not there yet, all at once: kept evaluations do not survive it."""
        if not isinstance(rows, PodRows):
            gathered = PodRows()
            for values in rows:
                gathered.append(values)
            rows = gathered
        # One more at the end: NONE is -1, and takes it.
        row_of_name = np.array([*map(self.nodes.row, self.pods.node_names.items), NONE], dtype=np.int32)
        at = row_of_name[rows.column("node_name_id")].astype(np.intp)
        pods = self.pods.put_all(rows, at.astype(np.int32))
        for pod in pods[at == NONE].tolist():
            node_name_id = int(self.pods.column("node_name_id")[pod])
            if node_name_id != NONE:
                self._homeless.setdefault(node_name_id, set()).add(pod)
        self._count_all(pods, 1)
        self.log.everything()

    def remove_pod(self, pod: int) -> None:
        """Take a pod out of the cluster."""
        row = int(self.pods.node_row[pod])
        if row != NONE and self._counts(pod):
            self._count(pod, row, -1)
            self._log(pod, row, -1)
        elif row == NONE:
            self._homeless.get(int(self.pods.column("node_name_id")[pod]), set()).discard(pod)
        self.pods.remove(pod)

    def remove_pods(self, pods: PodIds) -> TakenPods:
        """Take many pods out at once; `put_back` undoes it."""
        self._log_all(self._count_all(pods, -1), -1)
        for pod in pods[self.pods.node_row[pods] == NONE].tolist():
            self._homeless.get(int(self.pods.column("node_name_id")[pod]), set()).discard(pod)
        return self.pods.remove_all(pods)

    def put_back(self, taken: TakenPods) -> None:
        """Add pods that were taken out; whatever came after that has to be undone first."""
        self.pods.put_back(taken)
        at_home = (taken.node_row != NONE) | (taken.columns["node_name_id"] == NONE)
        for pod in taken.pods[~at_home].tolist():
            self._homeless.setdefault(int(self.pods.column("node_name_id")[pod]), set()).add(pod)
        self._log_all(self._count_all(taken.pods, 1), 1)

    def update_pod(self, pod: int, values: PodValues) -> bool:
        """Replace a pod's row by one of the same name, under the same id; tell whether anything has changed.

        A change of what is not counted (whether it is ready, say) is not logged.
        """
        before = self.pods.get(pod)
        if values == before:
            return False
        if values.counts_as(before):
            self.pods.set(pod, values)
        else:
            self.remove_pod(pod)
            self.add_pod(values)  # takes the id that became free last
        return True

    def assume(self, pod: Incoming, row: int, *, name: str = "", uid: str = "", created: int = 0) -> int:
        """Count an incoming pod as Running on a node's row; `forget` takes it back. Returns the pod's id."""
        return self.add_pod(
            PodValues(
                name=name,
                uid=uid,
                namespace_id=pod.namespace_id,
                spec_id=pod.spec_id,
                labels_id=pod.labels_id,
                owner_id=pod.owners_id,
                node_name_id=self.pods.node_names.id(self.nodes.names[row]),
                created=created,
            )
        )

    def assume_all(self, pod: Incoming, rows: IdColumn, *, name: str = "") -> PodIds:
        """Count a pod like the incoming one on each of the rows (a row may come more than once); return their ids."""
        if len(rows) < _N_WORTH_ALL or pod.info.spec.volumes:
            return np.array([self.assume(pod, row, name=name) for row in rows.tolist()], dtype=np.intp)
        values = PodValues(name, "", pod.namespace_id, pod.spec_id, pod.labels_id, pod.owners_id, NONE)
        pods = self.pods.put_copies(values, self._name_ids.values[rows], rows)
        self._log_all(self._count_all(pods, 1), 1)
        return pods

    def forget(self, pod: int) -> None:
        """Take back what was assumed."""
        self.remove_pod(pod)

    def lift(self, pod: int) -> int:
        """Take a pod off its node for a moment, to see what is different without it; return its row.

        `lower` has to put it back, before anything but `assume` and `forget` changes the cluster.
        """
        row = int(self.pods.node_row[pod])
        self._count(pod, row, -1)
        self._log(pod, row, -1)
        self.pods.move(pod, NONE)
        return row

    def lower(self, pod: int, row: int) -> None:
        """Put a pod back that was lifted off a row."""
        self.pods.move(pod, row)
        self._count(pod, row, 1)
        self._log(pod, row, 1)

    def incoming(self, pod: Pod) -> Incoming:
        """Look at a pod that is to be placed; the cluster is not changed.

        Raises
        ------
        berth.objects.quantities.QuantityError
            A request is no quantity.
        """
        meta, node_name = pod.metadata, pod.spec.node_name
        namespace = meta.namespace or "default"
        spec_id = self.specs.id_of_pod(pod)
        return Incoming(
            name=meta.name,
            namespace=namespace,
            labels=meta.labels,
            info=self.specs[spec_id],
            controller=meta.controller(),
            namespace_id=self.namespaces.id(namespace),
            labels_id=self.labels_id(msgspec.json.encode(meta.labels)),
            spec_id=spec_id,
            owners_id=self.owner_sets.id(meta.owner_references),
            uid=meta.uid,
            own_id=self._own_ids.id((meta.name, meta.uid)) if self.specs[spec_id].has_ephemeral else NONE,
            node_name=node_name,
            node_name_id=self.pods.node_names.id(node_name) if node_name else NONE,
        )

    def incoming_of(self, values: PodValues) -> Incoming:
        """Return what `incoming` would of a pod that is known as a row."""
        info = self.specs[values.spec_id]
        owners, node_name_id = self.owner_sets.items[values.owner_id], values.node_name_id
        return Incoming(
            name=values.name,
            namespace=self.namespaces.items[values.namespace_id],
            labels=self.label_sets.get(values.labels_id),
            info=info,
            controller=next((owner for owner in owners if owner.controller), None),
            namespace_id=values.namespace_id,
            labels_id=values.labels_id,
            spec_id=values.spec_id,
            owners_id=values.owner_id,
            uid=values.uid,
            own_id=self._own_ids.id((values.name, values.uid)) if info.has_ephemeral else NONE,
            node_name=self.pods.node_names.items[node_name_id] if node_name_id != NONE else "",
            node_name_id=node_name_id,
        )

    def values_of(self, record: PodRecord) -> PodValues:
        """Turn a pod's record into a row, interning what it shares with others. Nothing is added.

        Raises
        ------
        msgspec.ValidationError, berth.objects.quantities.QuantityError
            The record's spec, labels or owners are not what they should be.
        """
        meta, status = record.metadata, record.status
        ready, ready_since, preempted = _said_by(status.conditions)
        node_name = record.spec.node_name
        restarts = 0
        for container in status.container_statuses:
            restarts = max(restarts, container.restart_count)
        return PodValues(
            name=meta.name,
            uid=meta.uid,
            namespace_id=self.namespaces.id(meta.namespace or "default"),
            node_name_id=self.pods.node_names.id(node_name) if node_name else NONE,
            spec_id=self.specs.id_of_record(record),
            labels_id=self.labels_id(bytes(meta.labels)),
            owner_id=self._owner_id(bytes(meta.owner_references)),
            phase=_PHASE_OF_NAME.get(status.phase, 0),
            ready=ready,
            terminating=meta.deletion_timestamp is not None,
            created=int(meta.creation_timestamp.timestamp()) if meta.creation_timestamp else 0,
            ready_since=ready_since,
            deletion_cost=_deletion_cost(meta.annotations.deletion_cost) if meta.annotations else 0,
            restarts=restarts,
            started=int(status.start_time.timestamp()) if status.start_time else 0,
            preempted=preempted,
        )

    def labels_id(self, labels: bytes) -> int:
        """Return the id of a label set given as JSON."""
        found = self._labels_id.get(labels)
        if found is None:
            decoded = msgspec.json.decode(labels, type=dict[str, str] | None) or {}
            canonical = msgspec.json.encode(decoded, order="sorted")
            found = self._labels_id.get(canonical)
            if found is None:
                found = self._labels_id[canonical] = self.label_sets.n_rows
                self.label_sets.set(found, decoded)
            self._labels_id[labels] = found
        return found

    def controller_of(self, pod: int) -> OwnerReference | None:
        """Return the owner that controls a pod, if any."""
        owners = self.owner_sets.items[int(self.pods.column("owner_id")[pod])]
        return next((owner for owner in owners if owner.controller), None)

    def pods_matching(self, namespace: str, selector: Selector) -> PodIds:
        """Return the pods of a namespace that a selector matches, whatever their phase, in ascending order."""
        within = np.flatnonzero(self.pods.column("namespace_id") == self.namespaces.find(namespace))
        within = within[self.pods.alive[within]]
        if not len(within):
            return within
        matched: PodIds = within[self.label_sets.matches(selector)[self.pods.column("labels_id")[within]]]
        return matched

    # -- bookkeeping -------------------------------------------------------------------------------------------------

    def _owner_id(self, owners: bytes) -> int:
        found = self._owners_id.get(owners)
        if found is None:
            decoded = () if owners == b"null" else decode(owners, Owners)
            found = self._owners_id[owners] = self.owner_sets.id(decoded)
        return found

    def _row_of(self, values: PodValues) -> int:
        if values.node_name_id == NONE:
            return NONE
        return self.nodes.row(self.pods.node_names.items[values.node_name_id])

    def _counts(self, pod: int) -> bool:
        return int(self.pods.column("phase")[pod]) not in (SUCCEEDED, FAILED)

    def _count(self, pod: int, row: int, sign: int) -> None:
        spec_id = int(self.pods.column("spec_id")[pod])
        info = self.specs[spec_id]
        for resource_id, amount in info.held.items():
            self.requested.of(resource_id)[row] += sign * amount
        for column, amount in zip(self._nonzero, info.nonzero, strict=True):
            column.values[row] += sign * amount
        self._count_rest(spec_id, (pod,), (row,), sign)

    def _count_all(self, pods: PodIds, sign: int) -> PodIds:
        """Count pods on their nodes; return those that count: on a known node, neither Succeeded nor Failed."""
        phase = self.pods.column("phase")[pods]
        pods = pods[(self.pods.node_row[pods] != NONE) & (phase != SUCCEEDED) & (phase != FAILED)]
        at, spec_ids = self.pods.node_row[pods], self.pods.column("spec_id")[pods]
        for resource_id, held in self.specs.held().items():
            np.add.at(self.requested.of(resource_id), at, sign * held[spec_ids])
        for column, amounts in zip(self._nonzero, self.specs.nonzero(), strict=True):
            np.add.at(column.values, at, sign * amounts[spec_ids])
        for spec_id in np.flatnonzero(np.bincount(spec_ids)).tolist():
            info = self.specs[spec_id]
            if info.host_ports or info.has_affinity:
                alike = spec_ids == spec_id
                self._count_rest(spec_id, pods[alike].tolist(), at[alike].tolist(), sign)
        return pods

    def _count_rest(self, spec_id: int, pods: Sequence[int], rows: Iterable[int], sign: int = 1) -> None:
        info = self.specs[spec_id]
        if info.host_ports:
            for row in rows:
                self.host_ports.change(row, info.host_ports, sign)
        if info.has_affinity:
            members = self.affinity_pods.setdefault(spec_id, set())
            if sign > 0:
                members.update(pods)
            else:
                members.difference_update(pods)

    def _log_all(self, pods: PodIds, sign: int) -> None:
        if len(pods) > max(_MAX_LOGGED, self.nodes.n_rows // 16):
            # To mend so much takes longer than to evaluate anew.
            self.log.everything()
            return
        names = ("namespace_id", "spec_id", "labels_id", "terminating")
        columns = [self.pods.column(name)[pods].tolist() for name in names]
        rows, signs = self.pods.node_row[pods].tolist(), [sign] * len(pods)
        for values in zip(rows, pods.tolist(), *columns, signs, strict=True):
            self.log.pod(PodChange(*values))

    def _log(self, pod: int, row: int, sign: int) -> None:
        column = self.pods.column
        self.log.pod(
            PodChange(
                row=row,
                pod=pod,
                namespace_id=int(column("namespace_id")[pod]),
                spec_id=int(column("spec_id")[pod]),
                labels_id=int(column("labels_id")[pod]),
                terminating=bool(column("terminating")[pod]),
                sign=sign,
            )
        )


def _evaluated(item: NamedObject | None) -> object:
    """Return what evaluations that are kept hang on; None if on nothing."""
    match item:
        case Deployment() | PodDisruptionBudget():
            return None
        case Service() | ReplicaSet() | StatefulSet() | ReplicationController():
            return item.spec.selector
    return item


def _said_by(conditions: Iterable[ConditionSlice]) -> tuple[bool, int, bool]:
    """Tell whether a pod is ready, since when it is so or not, and whether a scheduler disrupts it for another pod."""
    readiness, preempted = None, None
    for condition in conditions:
        # The first of a type counts.
        if condition.type == "Ready" and readiness is None:
            since = condition.last_transition_time
            readiness = condition.status == "True", int(since.timestamp()) if since else 0
        elif condition.type == DISRUPTION_TARGET and preempted is None:
            preempted = condition.status == "True" and condition.reason == PREEMPTION_BY_SCHEDULER
    return *(readiness or (False, 0)), bool(preempted)


def _deletion_cost(text: str) -> int:
    """Read ``controller.kubernetes.io/pod-deletion-cost``: an int32 without a plus sign; anything else counts as 0."""
    if not text:
        return 0
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdigit()) or (text[0] == "0" and text != "0"):
        return 0
    if len(digits.lstrip("0")) > _MAX_COST_DIGITS:
        return 0
    cost = int(digits.lstrip("0") or "0") * (-1 if text[0] == "-" else 1)
    return cost if -(2**31) <= cost < 2**31 else 0
