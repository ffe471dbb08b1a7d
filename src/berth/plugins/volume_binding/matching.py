"""Which volume would a claim get on which node? All nodes at once."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import lru_cache

import numpy as np

from berth.cluster.arrays import BoolColumn
from berth.cluster.nodes import NodeTable
from berth.framework.node_selection import matches_term
from berth.objects.base import LabelSelectorRequirement, ResourceList
from berth.objects.pods import NodeSelectorTerm
from berth.objects.quantities import parse_quantity
from berth.objects.selectors import EVERYTHING, from_label_selector
from berth.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, storage_class_of
from berth.plugins.volume_binding.claims import spec_class_of
from berth.plugins.volume_binding.reach import RowNumbers, VolumeReach
from berth.plugins.volume_binding.rules import BindingRules

NO_PROVISIONER = "kubernetes.io/no-provisioner"
FILESYSTEM = "Filesystem"

NO_ROWS: RowNumbers = np.empty(0, dtype=np.intp)

_quantity = lru_cache(maxsize=1024)(parse_quantity)


class VolumeMatcher:
    """Finds volumes for a pod's claims, one after another: no volume serves two of them on a node."""

    def __init__(self, volumes: Sequence[PersistentVolume], reach: VolumeReach, rules: BindingRules) -> None:
        self._reach = reach
        self._rules = rules
        self._by_class: dict[str, list[PersistentVolume]] = {}
        for volume in volumes:
            kept = storage_class_of(volume) if rules.kept_by_annotation else spec_class_of(volume)
            self._by_class.setdefault(kept, []).append(volume)
        self._taken: dict[str, RowNumbers] = {}
        self._latest: list[tuple[PersistentVolume, RowNumbers]] = []

    def match(self, claim: PersistentVolumeClaim) -> BoolColumn:
        """Take a volume for a claim on every row that has one; return which rows have (bool[n_rows]).

        A volume that names the claim is the only choice, even where it can't be reached; else the smallest.

        Raises
        ------
        berth.objects.selectors.SelectorError
            The claim's selector is none.
        """
        self._latest = []
        open_rows = np.ones(self._reach.nodes.n_rows, dtype=np.bool_)
        found = np.zeros_like(open_rows)
        prebound, free = self._candidates(claim)
        for volume in prebound:
            decided = open_rows.copy()
            decided[self._taken.get(volume.metadata.name, NO_ROWS)] = False
            found[self._take(volume, decided)] = True
            open_rows &= ~decided
        n_open = int(open_rows.sum())
        for volume in free:
            if n_open == 0:
                break
            fits = self._take(volume, open_rows)
            found[fits] = True
            open_rows[fits] = False
            n_open -= len(fits)
        return found

    def chosen_on(self, row: int) -> PersistentVolume | None:
        """Return the volume that the latest claim took on a row, if any."""
        return next((volume for volume, rows in self._latest if row in rows), None)

    def _take(self, volume: PersistentVolume, open_rows: BoolColumn) -> RowNumbers:
        rows = self._reach.of(volume)
        fits = rows[open_rows[rows]]
        taken = self._taken.get(volume.metadata.name)
        if taken is not None:
            fits = np.setdiff1d(fits, taken)
            self._taken[volume.metadata.name] = np.concatenate((taken, fits))
        elif len(fits):
            self._taken[volume.metadata.name] = fits
        self._latest.append((volume, fits))
        return fits

    def _candidates(
        self, claim: PersistentVolumeClaim
    ) -> tuple[list[PersistentVolume], list[PersistentVolume]]:
        """Return the volumes that name the claim, and the free ones that it can use, the smallest first."""
        rules = self._rules
        selector = EVERYTHING if claim.spec.selector is None else from_label_selector(claim.spec.selector)
        asked, class_name = asked_storage(claim), storage_class_of(claim)
        prebound: list[PersistentVolume] = []
        free: list[tuple[Decimal, PersistentVolume]] = []
        sought = class_name if rules.sought_by_annotation else spec_class_of(claim)
        for volume in self._by_class.get(sought, ()):
            spec = volume.spec
            size = _storage(spec.capacity)
            if volume.metadata.deletion_timestamp is not None or size < asked:
                continue
            if rules.volume_modes and (spec.volume_mode or FILESYSTEM) != (
                claim.spec.volume_mode or FILESYSTEM
            ):
                continue
            if rules.attributes_classes and (spec.volume_attributes_class_name or "") != (
                claim.spec.volume_attributes_class_name or ""
            ):
                continue
            if _names(volume, claim):
                prebound.append(volume)
            elif (
                spec.claim_ref is None
                and (volume.status.phase == "Available" or not rules.available_only)
                and storage_class_of(volume) == class_name
                and set(claim.spec.access_modes).issubset(spec.access_modes)
                and selector.matches(volume.metadata.labels)
            ):
                free.append((size, volume))
        free.sort(key=lambda pair: pair[0])
        return prebound, [volume for _, volume in free]


def provisionable(nodes: NodeTable, storage_class: StorageClass) -> BoolColumn:
    """Tell on which rows a class can provision a volume (bool[n_rows])."""
    if storage_class.provisioner in ("", NO_PROVISIONER):
        return np.zeros(nodes.n_rows, dtype=np.bool_)
    if not storage_class.allowed_topologies:
        return np.ones(nodes.n_rows, dtype=np.bool_)
    met = np.zeros(nodes.n_rows, dtype=np.bool_)
    for term in _topology_terms(storage_class):
        met |= matches_term(nodes, term)
    return met


def asked_storage(claim: PersistentVolumeClaim) -> Decimal:
    """Return how much storage a claim asks for. [bytes]"""
    return _storage(claim.spec.resources.requests)


def _storage(resources: ResourceList) -> Decimal:
    return _quantity(resources.get("storage", 0))


def _names(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    ref, meta = volume.spec.claim_ref, claim.metadata
    return (
        ref is not None
        and (ref.namespace, ref.name) == (meta.namespace, meta.name)
        and ref.uid in ("", meta.uid)
    )


def _topology_terms(storage_class: StorageClass) -> Iterator[NodeSelectorTerm]:
    for term in storage_class.allowed_topologies:
        yield NodeSelectorTerm(
            match_expressions=tuple(
                LabelSelectorRequirement(key=one.key, operator="In", values=one.values)
                for one in term.match_label_expressions
            )
        )
