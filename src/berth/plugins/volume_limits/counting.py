"""Which volumes of a pod count towards which limit? Knows neither nodes nor limits.

Source: ``filterVolumes`` and ``filterAttachableVolumes`` of 1.10, 1.13 and 1.17, ``nodevolumelimits/csi.go`` of 1.36.
"""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from berth.cluster.objects import ClusterObjects
from berth.framework.csi_migration import (
    AWS_EBS,
    AZURE_DISK,
    CINDER,
    DRIVERS,
    GCE_PD,
    NO_MIGRATION,
    Migration,
    NotTranslatable,
)
from berth.objects.pods import Volume
from berth.objects.storage import PersistentVolume, PersistentVolumeClaim, StorageClass, storage_class_of

NAMELESS = "PersistentVolumeClaim had no name"
CSI_PREFIX = "attachable-volumes-csi-"
MAX_KEY_LENGTH = 63


@dataclass(frozen=True, slots=True)
class Mounting:
    """A pod, as far as its volumes go."""

    namespace: str
    name: str
    uid: str
    volumes: tuple[Volume, ...]
    is_new: bool = False


@dataclass(slots=True)
class Counted:
    """The volumes of a pod that count.

    Attributes
    ----------
    pools : dict of volume to pool
        A volume's id is unique in the cluster; a pool is what there is a limit for.
    error : str
        Why the pod's volumes can't be counted.
    missing : bool
        It is because a claim is not there.
    """

    pools: dict[str, str] = field(default_factory=dict)
    error: str = ""
    missing: bool = False


class Counter(Protocol):
    """How a predicate counts. Hashable: what is counted is kept under it."""

    @property
    def migration(self) -> Migration:
        """What it takes for migrated."""

    @property
    def reads_attachments(self) -> bool:
        """Whether volumes count that are attached to a node where no pod uses them."""

    def count(self, pod: Mounting, objects: ClusterObjects, migrated: frozenset[str]) -> Counted:
        """Count a pod's volumes for nodes on which the given plugins are migrated."""


@dataclass(frozen=True, slots=True)
class Disk:
    """A kind of in-tree disk.

    Attributes
    ----------
    limit_key : str
        Under which a node's allocatable says how many it takes.
    """

    plugin: str
    limit_key: str
    id_of: Callable[[Volume | PersistentVolume], str | None]


def _ebs(source: Volume | PersistentVolume) -> str | None:
    disk = (source if isinstance(source, Volume) else source.spec).aws_elastic_block_store
    return disk.volume_id if disk else None


def _gce(source: Volume | PersistentVolume) -> str | None:
    disk = (source if isinstance(source, Volume) else source.spec).gce_persistent_disk
    return disk.pd_name if disk else None


def _azure(source: Volume | PersistentVolume) -> str | None:
    disk = (source if isinstance(source, Volume) else source.spec).azure_disk
    return disk.disk_name if disk else None


def _cinder(source: Volume | PersistentVolume) -> str | None:
    disk = (source if isinstance(source, Volume) else source.spec).cinder
    return disk.volume_id if disk else None


EBS_DISK = Disk(AWS_EBS, "attachable-volumes-aws-ebs", _ebs)
GCE_DISK = Disk(GCE_PD, "attachable-volumes-gce-pd", _gce)
AZURE_DATA_DISK = Disk(AZURE_DISK, "attachable-volumes-azure-disk", _azure)
CINDER_DISK = Disk(CINDER, "attachable-volumes-cinder", _cinder)


@dataclass(frozen=True, slots=True)
class DiskCounter:
    """Counts the disks of one kind, mounted by the pod itself or through claims.

    Attributes
    ----------
    by_provisioner : bool
        A claim whose volume is not known counts if its class provisions such disks, else not at all; up to 1.13
        it always counts.
    """

    disk: Disk
    by_provisioner: bool = False
    migration: Migration = NO_MIGRATION
    reads_attachments: bool = False

    def count(self, pod: Mounting, objects: ClusterObjects, migrated: frozenset[str]) -> Counted:
        counted = Counted()
        for volume in pod.volumes:
            found = self.disk.id_of(volume)
            if found is None and volume.persistent_volume_claim:
                name = volume.persistent_volume_claim.claim_name
                if not name:
                    return Counted(error=NAMELESS)
                found = self._through_claim(pod.namespace, name, objects)
            if found is not None:
                counted.pools[found] = self.disk.limit_key
        return counted

    def _through_claim(self, namespace: str, name: str, objects: ClusterObjects) -> str | None:
        claim = objects.persistent_volume_claims.get(namespace, name)
        volume = None
        if claim is not None and claim.spec.volume_name:
            volume = objects.persistent_volumes.get("", claim.spec.volume_name)
        if volume is not None:
            return self.disk.id_of(volume)
        unknown = _stand_in(namespace, name)
        if not self.by_provisioner:
            return unknown
        storage_class = claim and objects.storage_classes.get("", claim.spec.storage_class_name or "")
        return unknown if storage_class and storage_class.provisioner == self.disk.plugin else None


def limit_key(driver: str) -> str:
    """Return the key of a driver's limit in a node's allocatable; long names are cut and hashed."""
    if len(CSI_PREFIX) + len(driver.encode()) < MAX_KEY_LENGTH:
        return CSI_PREFIX + driver
    # A hash of upstream's choice, against no attacker.
    digest = hashlib.sha1(driver.encode(), usedforsecurity=False).hexdigest()
    return CSI_PREFIX + driver[:23] + digest[:16]


@dataclass(frozen=True, slots=True)
class CSICounter:
    """Counts volumes of CSI drivers.

    Attributes
    ----------
    by_handle : bool
        1.13: volumes are told apart by their handle alone, and only those of bound claims count.
    by_driver : bool
        1.36: pools are drivers (else keys of allocatable); inline and ephemeral volumes count, too, and a new pod needs
        its claims.
    """

    by_handle: bool = False
    by_driver: bool = False
    migration: Migration = NO_MIGRATION
    reads_attachments: bool = False

    def count(self, pod: Mounting, objects: ClusterObjects, migrated: frozenset[str]) -> Counted:
        counted = Counted()
        for volume in pod.volumes:
            if volume.persistent_volume_claim:
                name = volume.persistent_volume_claim.claim_name
            elif not self.by_driver:
                continue
            elif volume.ephemeral is not None:
                name = f"{pod.name}-{volume.name}"
            else:
                error = self._count_inline(volume, migrated, counted)
                if error:
                    return Counted(error=error)
                continue
            if not name:
                return Counted(error=NAMELESS)
            claim = objects.persistent_volume_claims.get(pod.namespace, name)
            if claim is None:
                if pod.is_new and self.by_driver:
                    text = f'looking up PVC {pod.namespace}/{name}: persistentvolumeclaim "{name}" not found'
                    return Counted(error=text, missing=True)
                continue
            if not volume.persistent_volume_claim and not is_for_pod(claim, pod):
                what = f"PVC {pod.namespace}/{name} was not created for pod {pod.namespace}/{pod.name}"
                return Counted(error=f"{what} (pod is not owner)")
            self._add(counted, *self._driver_and_handle(claim, objects, migrated))
        return counted

    def _add(self, counted: Counted, driver: str, handle: str | None) -> None:
        if handle is None:
            return
        if self.by_handle:
            counted.pools[handle] = limit_key(driver)
        elif driver and handle:
            counted.pools[f"{driver}/{handle}"] = driver if self.by_driver else limit_key(driver)

    def _count_inline(self, volume: Volume, migrated: frozenset[str], counted: Counted) -> str:
        plugin, _ = self.migration.handle(volume)
        if plugin not in migrated:
            return ""
        driver = DRIVERS[plugin]
        try:
            counted.pools[f"{driver}/{self.migration.translated(volume)}"] = driver
        except NotTranslatable as error:
            return f"converting volume({volume.name}) from inline to csi: {error}"
        return ""

    def _driver_and_handle(
        self, claim: PersistentVolumeClaim, objects: ClusterObjects, migrated: frozenset[str]
    ) -> tuple[str, str | None]:
        volume = None
        if claim.spec.volume_name:
            volume = objects.persistent_volumes.get("", claim.spec.volume_name)
        if volume is None:
            if self.by_handle:
                return "", None
            return self._of_class(claim, objects.storage_classes.get("", storage_class_of(claim)), migrated)
        if volume.spec.csi is not None:
            return volume.spec.csi.driver, volume.spec.csi.volume_handle
        plugin, _ = self.migration.handle(volume)
        if plugin not in migrated:
            return "", None
        try:
            return DRIVERS[plugin], self.migration.translated(volume)
        except NotTranslatable:
            return "", None

    def _of_class(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass | None, migrated: frozenset[str]
    ) -> tuple[str, str | None]:
        if storage_class is None:
            return "", None
        driver = storage_class.provisioner
        if driver in self.migration.known:
            if driver not in migrated:
                return "", None
            driver = DRIVERS[driver]
        return driver, _stand_in(claim.metadata.namespace, claim.metadata.name)


def is_for_pod(claim: PersistentVolumeClaim, pod: Mounting) -> bool:
    """Tell whether a claim was made for a pod's ephemeral volume."""
    owner = claim.metadata.controller()
    return owner is not None and owner.uid == pod.uid


def _stand_in(namespace: str, name: str) -> str:
    """Return an id for a volume that is not known yet, such as no volume has."""
    return f"\0{namespace}/{name}"
