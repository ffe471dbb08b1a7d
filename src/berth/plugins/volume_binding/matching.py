"""Which volume would a claim get on which node? All nodes at once: volumes have masks over rows."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from functools import lru_cache

import numpy as np

from berth.cluster.arrays import BoolColumn
from berth.cluster.nodes import NodeTable
from berth.framework.node_selection import matches_expressions, matches_node_selector, matches_term
from berth.objects.base import LabelSelectorRequirement, ResourceList
from berth.objects.pods import NodeSelector, NodeSelectorTerm
from berth.objects.quantities import parse_quantity
from berth.objects.selectors import EVERYTHING, from_label_selector
from berth.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from berth.plugins.volume_binding.claims import class_of, spec_class_of
from berth.plugins.volume_binding.rules import BindingRules

NO_PROVISIONER = "kubernetes.io/no-provisioner"
FILESYSTEM = "Filesystem"

_quantity = lru_cache(maxsize=1024)(parse_quantity)


class VolumeRows:
    """From which rows a volume can be reached. Volumes of one affinity share a mask."""

    def __init__(self, nodes: NodeTable, rules: BindingRules) -> None:
        self.nodes = nodes
        self._match_fields = rules.match_fields
        self._masks: dict[NodeSelector, BoolColumn] = {}
        self._all = np.ones(nodes.n_rows, dtype=np.bool_)

    def of(self, volume: PersistentVolume) -> BoolColumn:
        """Return the rows that meet a volume's node affinity (bool[n_rows])."""
        affinity = volume.spec.node_affinity
        if affinity is None or affinity.required is None:
            return self._all
        mask = self._masks.get(affinity.required)
        if mask is None:
            if self._match_fields:
                mask = matches_node_selector(self.nodes, affinity.required, with_fields=False)
            else:
                mask = matches_expressions(self.nodes, affinity.required)
            self._masks[affinity.required] = mask
        return mask


class VolumeMatcher:
    """Finds volumes for a pod's claims, one after another: no volume serves two of them on a node."""

    def __init__(self, volumes: Sequence[PersistentVolume], rows: VolumeRows, rules: BindingRules) -> None:
        self._rows = rows
        self._rules = rules
        self._by_class: dict[str, list[PersistentVolume]] = {}
        for volume in volumes:
            self._by_class.setdefault(spec_class_of(volume), []).append(volume)
        self._taken: dict[str, BoolColumn] = {}

    def match(self, claim: PersistentVolumeClaim) -> BoolColumn:
        """Take a volume for a claim on every row that has one; return which rows have (bool[n_rows]).

        A volume that names the claim is the only choice, even where it can't be reached; else the smallest.

        Raises
        ------
        berth.objects.selectors.SelectorError
            The claim's selector is none.
        """
        open_rows = np.ones(self._rows.nodes.n_rows, dtype=np.bool_)
        found = np.zeros_like(open_rows)
        prebound, free = self._candidates(claim)
        for volume in prebound:
            decided = open_rows & ~self._taken_of(volume)
            found |= self._take(volume, decided)
            open_rows &= ~decided
        for volume in free:
            if not open_rows.any():
                break
            fits = self._take(volume, open_rows & ~self._taken_of(volume))
            found |= fits
            open_rows &= ~fits
        return found

    def _taken_of(self, volume: PersistentVolume) -> BoolColumn:
        taken = self._taken.get(volume.metadata.name)
        return np.zeros(self._rows.nodes.n_rows, dtype=np.bool_) if taken is None else taken

    def _take(self, volume: PersistentVolume, rows: BoolColumn) -> BoolColumn:
        fits = rows & self._rows.of(volume)
        if fits.any():
            self._taken[volume.metadata.name] = self._taken_of(volume) | fits
        return fits

    def _candidates(
        self, claim: PersistentVolumeClaim
    ) -> tuple[list[PersistentVolume], list[PersistentVolume]]:
        """Return the volumes that name the claim, and the free ones that it can use, the smallest first."""
        rules = self._rules
        selector = EVERYTHING if claim.spec.selector is None else from_label_selector(claim.spec.selector)
        asked, class_name = asked_storage(claim), class_of(claim)
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
            if _names(volume, claim):
                prebound.append(volume)
            elif (
                spec.claim_ref is None
                and (volume.status.phase == "Available" or not rules.available_only)
                and class_of(volume) == class_name
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
