"""Distinct pod specs: each decoded once, with what it asks for and holds."""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec
import numpy as np

from berth.cluster.accounting import PODS, Accounting, Amounts
from berth.cluster.arrays import GrowingArray, IntColumn, Interner
from berth.objects.decode import decode
from berth.objects.pod_records import PodRecord, record_of
from berth.objects.pods import Container, Pod, PodAffinity, PodSpec

HostPort = tuple[str, int, str]
"""Protocol, port and IP of a port that a pod takes on its node; absent protocol and IP are TCP and 0.0.0.0."""


@dataclass(frozen=True, slots=True)
class SpecInfo:
    """A spec, and what is computed of it once.

    Attributes
    ----------
    asked, held : dict of resource id to amount
        What the pod asks for while it comes and holds while it is there (with its one of ``pods``).
    nonzero : (int, int)
        Milli-CPU and bytes as the priorities count them once the pod is there.
    scored : dict of resource id to amount
        What the priorities take a pod that comes to ask for.
    has_ephemeral : bool
        Whether it has generic ephemeral volumes: their claims bear the pod's name.
    priority : int
        0 where the spec has none: admission writes a priority class's value there.
    """

    spec: PodSpec
    asked: dict[int, int]
    held: dict[int, int]
    nonzero: tuple[int, int]
    scored: dict[int, int]
    host_ports: tuple[HostPort, ...]
    has_affinity: bool
    has_ephemeral: bool
    claims: tuple[str, ...]
    priority: int = 0


class SpecTable:
    """Interned pod specs. Ids are dense; what they hold is also there as columns over ids, for bulk sums."""

    def __init__(self, accounting: Accounting, resources: Interner[str]) -> None:
        self._accounting = accounting
        self._resources = resources
        self._id_of_key: dict[bytes, int] = {}
        self._keys: list[bytes] = []
        self._infos: list[SpecInfo] = []
        self._held: dict[int, GrowingArray] = {}
        self._nonzero = (GrowingArray(np.int64), GrowingArray(np.int64))
        self._priority = GrowingArray(np.int64)

    def __len__(self) -> int:
        return len(self._infos)

    def __getitem__(self, spec_id: int) -> SpecInfo:
        return self._infos[spec_id]

    def key(self, spec_id: int) -> bytes:
        """Return a spec as JSON, without its node's name."""
        return self._keys[spec_id]

    def id(self, key: bytes) -> int:
        """Return the id of a spec given as JSON bytes (`PodRecord.spec_key`).

        Raises
        ------
        msgspec.ValidationError
            It is none.
        berth.objects.quantities.QuantityError
            A request is no quantity.
        """
        spec_id = self._id_of_key.get(key)
        if spec_id is None:
            spec = decode(key, PodSpec)
            canonical = msgspec.json.encode(spec)
            spec_id = self._id_of_key.get(canonical)
            if spec_id is None:
                spec_id = self._id_of_key[canonical] = self._add(spec, canonical)
            self._id_of_key[key] = spec_id
        return spec_id

    def id_of_record(self, record: PodRecord) -> int:
        """Return the id of a record's spec; takes the node's name out of the record."""
        return self.id(record.spec_key(with_resizing=self._accounting.reads_status))

    def id_of_pod(self, pod: Pod) -> int:
        """Return the id of a decoded pod's spec, its node's name aside."""
        return self.id_of_record(record_of(pod))

    def held(self) -> dict[int, IntColumn]:
        """Return by resource id what each spec holds (int64[n_specs])."""
        self._fill_columns()
        return {resource_id: column.values for resource_id, column in self._held.items()}

    def nonzero(self) -> tuple[IntColumn, IntColumn]:
        """Return what each spec counts for the priorities: milli-CPU and bytes (int64[n_specs] each)."""
        self._fill_columns()
        return self._nonzero[0].values, self._nonzero[1].values

    def priority(self) -> IntColumn:
        """Return each spec's priority (int64[n_specs])."""
        self._fill_columns()
        return self._priority.values

    def _add(self, spec: PodSpec, canonical: bytes) -> int:
        spec_id = len(self._infos)
        nonzero = self._accounting.nonzero(spec)
        info = SpecInfo(
            spec=spec,
            asked=self._by_id(self._accounting.asked(spec)),
            held=self._by_id(self._accounting.held(spec) | {PODS: 1}),
            nonzero=nonzero,
            scored=self._by_id(self._accounting.scored(spec)),
            host_ports=_host_ports(self._accounting.lasting(spec)),
            has_affinity=_has_pod_affinity(spec),
            has_ephemeral=any(v.ephemeral is not None for v in spec.volumes),
            claims=tuple(
                v.persistent_volume_claim.claim_name for v in spec.volumes if v.persistent_volume_claim
            ),
            priority=spec.priority or 0,
        )
        self._infos.append(info)
        self._keys.append(canonical)
        return spec_id

    def _fill_columns(self) -> None:
        """Bring the columns up to the latest spec: many at once cost little more than one."""
        start = self._nonzero[0].size
        added = self._infos[start:]
        if not added:
            return
        for column, amounts in zip(self._nonzero, zip(*(i.nonzero for i in added), strict=True), strict=True):
            column.extend(np.array(amounts, dtype=np.int64))
        self._priority.extend(np.array([info.priority for info in added], dtype=np.int64))
        for resource_id in {resource_id for info in added for resource_id in info.held}:
            self._held.setdefault(resource_id, GrowingArray(np.int64))
        for resource_id, column in self._held.items():
            column.grow_to(start)
            column.extend(np.array([info.held.get(resource_id, 0) for info in added], dtype=np.int64))

    def _by_id(self, by_name: Amounts) -> dict[int, int]:
        return {self._resources.id(name): amount for name, amount in by_name.items()}


def _host_ports(containers: Iterable[Container]) -> tuple[HostPort, ...]:
    return tuple(
        (port.protocol or "TCP", port.host_port, port.host_ip or "0.0.0.0")
        for container in containers
        for port in container.ports
        if port.host_port > 0
    )


def _has_pod_affinity(spec: PodSpec) -> bool:
    def any_term(side: PodAffinity | None) -> bool:
        return side is not None and bool(side.required or side.preferred)

    return spec.affinity is not None and (
        any_term(spec.affinity.pod_affinity) or any_term(spec.affinity.pod_anti_affinity)
    )
