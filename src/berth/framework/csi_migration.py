"""In-tree volumes that CSI drivers have taken over, and what they are called there. Knows no plugin.

Source: csi-translation-lib of 1.17 and 1.36, ``isCSIMigrationOn`` of the same.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from msgspec.structs import replace

from berth.cluster.arrays import NONE
from berth.cluster.cluster import Cluster
from berth.objects.base import LabelSelectorRequirement
from berth.objects.pods import NodeSelector, NodeSelectorTerm, Volume
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
TOPOLOGY_KEYS = {
    AWS_EBS: "topology.ebs.csi.aws.com/zone",
    GCE_PD: "topology.gke.io/zone",
    CINDER: "topology.cinder.csi.openstack.org/zone",
}
BETA_REGION, REGION = "failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"
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
    today : bool
        Whether volumes are translated as in 1.36, or as in 1.17.
    """

    plugins: frozenset[str] = frozenset()
    known: frozenset[str] = frozenset()
    annotated: bool = True
    today: bool = False

    @classmethod
    def of_1_17(cls, gates: Mapping[str, bool]) -> "Migration":
        """Return 1.17's, in which all gates but the first are off by default."""
        on = gates.get("CSIMigration", True)
        return cls(
            plugins=frozenset(p for p, gate in GATES_1_17.items() if on and gates.get(gate, False)),
            known=frozenset((*GATES_1_17, AZURE_FILE)),
        )

    @classmethod
    def of_1_36(cls, *, annotated: bool = False) -> "Migration":
        """Return 1.36's, which is complete; some plugins still want it to be told."""
        return cls(
            plugins=frozenset(DRIVERS),
            known=frozenset((*DRIVERS, AZURE_FILE, VSPHERE)),
            annotated=annotated,
            today=True,
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
        if plugin == AZURE_DISK and self.today:
            spec = source if isinstance(source, Volume) else source.spec
            if spec.azure_disk and (spec.azure_disk.kind or "Managed").lower() != "managed":
                raise NotTranslatable(f"kind({spec.azure_disk.kind}) is not supported in csi migration")
        return name

    def affinity(self, volume: PersistentVolume) -> NodeSelector | None:
        """Return the node affinity that an in-tree volume has as a CSI volume; its zone is the driver's then.

        Raises
        ------
        NotTranslatable
            The driver would not know the volume.
        """
        self.translated(volume)
        own = volume.spec.node_affinity.required if volume.spec.node_affinity else None
        key = TOPOLOGY_KEYS.get(self.handle(volume)[0])
        if key is None:
            return own
        return (
            _today(own, key, volume.metadata.labels)
            if self.today
            else _of_1_17(own, key, volume.metadata.labels)
        )

    def _zones(self, volume: PersistentVolume) -> str:
        labels = (BETA_ZONE, ZONE) if self.today else (BETA_ZONE,)
        texts = (volume.metadata.labels.get(label, "") for label in labels)
        zones = next((text for text in texts if text), "").split("__")
        if len(zones) == 1:
            return zones[0] or UNSPECIFIED
        parts = [zone.split("-") for zone in zones]
        regions = {"-".join(part[:2]) for part in parts}
        if any(len(part) != 3 for part in parts) or len(regions) != 1:
            raise NotTranslatable(f"failed to get region from zones: {zones}")
        # 1.17 takes the region for a zone.
        return f"regions/{regions.pop()}" if self.today else regions.pop()


def _today(own: NodeSelector | None, key: str, labels: Mapping[str, str]) -> NodeSelector | None:
    named = {one.key for term in (own.node_selector_terms if own else ()) for one in term.match_expressions}
    order = [label for label in (ZONE, BETA_ZONE) if label in named]
    order += [label for label in (ZONE, BETA_ZONE) if label in labels]
    zone = order[0] if order else ZONE
    if _values(own, zone):
        own = _renamed(own, zone, key)
    elif zone in labels:
        zones = sorted({part.strip() for part in labels[zone].split("__")} - {""})
        own = _also_in(own, key, tuple(zones)) if zones else own
    if zone == BETA_ZONE and _values(own, BETA_REGION):
        own = _renamed(own, BETA_REGION, REGION)
    return own


def _of_1_17(own: NodeSelector | None, key: str, labels: Mapping[str, str]) -> NodeSelector | None:
    if _values(own, key):
        return own
    if _values(own, BETA_ZONE):
        return _renamed(own, BETA_ZONE, key)
    if BETA_ZONE not in labels:
        return own
    zones = {part.strip() for part in labels[BETA_ZONE].split("__")} - {""}
    if not zones:
        raise NotTranslatable("failed to translate topology: there are no valid zones to add to pv")
    return _also_in(None, key, tuple(sorted(zones)))


def _values(selector: NodeSelector | None, key: str) -> list[str]:
    terms = selector.node_selector_terms if selector else ()
    return [
        value for term in terms for one in term.match_expressions if one.key == key for value in one.values
    ]


def _renamed(selector: NodeSelector | None, old: str, new: str) -> NodeSelector:
    def rename(term: NodeSelectorTerm) -> NodeSelectorTerm:
        expressions = tuple(
            replace(one, key=new) if one.key == old else one for one in term.match_expressions
        )
        return replace(term, match_expressions=expressions)

    terms = selector.node_selector_terms if selector else ()
    return NodeSelector(node_selector_terms=tuple(map(rename, terms)))


def _also_in(selector: NodeSelector | None, key: str, values: tuple[str, ...]) -> NodeSelector:
    """Demand of every term that a label has one of the values."""
    terms = (selector.node_selector_terms if selector else ()) or (NodeSelectorTerm(),)
    more = LabelSelectorRequirement(key=key, operator="In", values=values)
    return NodeSelector(
        node_selector_terms=tuple(
            replace(term, match_expressions=(*term.match_expressions, more)) for term in terms
        )
    )


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
