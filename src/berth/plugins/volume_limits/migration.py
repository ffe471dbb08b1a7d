"""In-tree volumes that CSI drivers have taken over, and what they are called there. Knows no limits.

Source: csi-translation-lib of 1.17 and 1.36, ``isCSIMigrationOn`` of the same.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from berth.cluster.arrays import NONE
from berth.cluster.cluster import Cluster
from berth.objects.pods import Volume
from berth.objects.storage import CSINode, PersistentVolume

AWS_EBS = "kubernetes.io/aws-ebs"
GCE_PD = "kubernetes.io/gce-pd"
AZURE_DISK = "kubernetes.io/azure-disk"
CINDER = "kubernetes.io/cinder"
PORTWORX = "kubernetes.io/portworx-volume"
AZURE_FILE = "kubernetes.io/azure-file"
VSPHERE = "kubernetes.io/vsphere-volume"
DRIVERS = {
    AWS_EBS: "ebs.csi.aws.com",
    GCE_PD: "pd.csi.storage.gke.io",
    AZURE_DISK: "disk.csi.azure.com",
    CINDER: "cinder.csi.openstack.org",
    PORTWORX: "pxd.portworx.com",
}
GATES_1_17 = {
    AWS_EBS: "CSIMigrationAWS",
    GCE_PD: "CSIMigrationGCE",
    AZURE_DISK: "CSIMigrationAzureDisk",
    CINDER: "CSIMigrationOpenStack",
}
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"
BETA_ZONE, ZONE = "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"
UNSPECIFIED = "UNSPECIFIED"

_EBS_ID = re.compile(r"vol-[^/]*\Z")


class NotTranslatable(ValueError):
    """An in-tree volume that has no name as a CSI volume."""


@dataclass(frozen=True, slots=True)
class Migration:
    """What a release takes for migrated.

    Attributes
    ----------
    plugins : frozenset of str
        The in-tree plugins that are.
    known : frozenset of str
        In-tree plugins that could be: provisioners of that name are no CSI drivers.
    annotated : bool
        Whether a node's CSINode must name the plugin (else it need only be there).
    """

    plugins: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()
    annotated: bool = True
    zone_labels: tuple[str, ...] = (BETA_ZONE,)

    @classmethod
    def of_1_17(cls, gates: Mapping[str, bool]) -> "Migration":
        """Return 1.17's, in which all gates but the first are off by default."""
        on = gates.get("CSIMigration", True)
        return cls(
            plugins=frozenset(p for p, gate in GATES_1_17.items() if on and gates.get(gate, False)),
            known=frozenset((*GATES_1_17, AZURE_FILE)),
        )

    @classmethod
    def of_1_36(cls) -> "Migration":
        """Return 1.36's, which is complete."""
        return cls(
            plugins=frozenset(DRIVERS),
            known=frozenset((*DRIVERS, AZURE_FILE, VSPHERE)),
            annotated=False,
            zone_labels=(BETA_ZONE, ZONE),
        )

    def on(self, node: CSINode) -> frozenset[str]:
        """Return the plugins that are migrated on a node."""
        if not self.annotated:
            return self.plugins
        return self.plugins & set(node.metadata.annotations.get(MIGRATED_PLUGINS, "").split(","))

    def by_row(self, cluster: Cluster) -> dict[int, frozenset[str]]:
        """Return for the rows on which any plugin is migrated which ones are."""
        found = {}
        for node in cluster.objects.csi_nodes.all() if self.plugins else ():
            row, plugins = cluster.nodes.row(node.metadata.name), self.on(node)
            if row != NONE and plugins:
                found[row] = plugins
        return found

    def handle(self, source: Volume | PersistentVolume) -> tuple[str, str]:
        """Return the in-tree plugin of a volume, and what its driver calls it; empty if it has none.

        Raises
        ------
        NotTranslatable
            The driver would not know the volume.
        """
        spec = source if isinstance(source, Volume) else source.spec
        if spec.aws_elastic_block_store:
            return AWS_EBS, spec.aws_elastic_block_store.volume_id
        if spec.gce_persistent_disk:
            return GCE_PD, spec.gce_persistent_disk.pd_name
        if spec.azure_disk:
            return AZURE_DISK, spec.azure_disk.disk_uri
        if spec.cinder:
            return CINDER, spec.cinder.volume_id
        if spec.portworx_volume and PORTWORX in self.known:
            return PORTWORX, spec.portworx_volume.volume_id
        return "", ""

    def translated(self, source: Volume | PersistentVolume) -> str:
        """Return what the driver calls an in-tree volume.

        Raises
        ------
        NotTranslatable
            The driver would not know it.
        """
        plugin, name = self.handle(source)
        if plugin == AWS_EBS:
            return _ebs_id(name)
        if plugin == GCE_PD:
            zones = UNSPECIFIED if isinstance(source, Volume) else self._zones(source)
            return f"projects/{UNSPECIFIED}/{zones}/disks/{name}" if "/" in zones else (
                f"projects/{UNSPECIFIED}/zones/{zones}/disks/{name}"
            )  # fmt: skip
        if plugin == AZURE_DISK and not self.annotated:
            spec = source if isinstance(source, Volume) else source.spec
            if spec.azure_disk and (spec.azure_disk.kind or "Managed").lower() != "managed":
                raise NotTranslatable(f"kind({spec.azure_disk.kind}) is not supported in csi migration")
        return name

    def _zones(self, volume: PersistentVolume) -> str:
        texts = (volume.metadata.labels.get(label, "") for label in self.zone_labels)
        zones = next((text for text in texts if text), "").split("__")
        if len(zones) == 1:
            return zones[0] or UNSPECIFIED
        parts = [zone.split("-") for zone in zones]
        regions = {"-".join(part[:2]) for part in parts}
        if any(len(part) != 3 for part in parts) or len(regions) != 1:
            raise NotTranslatable(f"failed to get region from zones: {zones}")
        # 1.17 takes the region for a zone.
        return regions.pop() if self.annotated else f"regions/{regions.pop()}"


def _ebs_id(name: str) -> str:
    """Return the id in ``aws://zone/vol-1``, or the name itself."""
    if not name.startswith("aws://"):
        return name
    ebs_id = urlsplit(name).path.strip("/")
    if not _EBS_ID.match(ebs_id):
        raise NotTranslatable(
            f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({name})"
        )
    return ebs_id


NO_MIGRATION = Migration()
