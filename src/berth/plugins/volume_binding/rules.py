"""What releases have decided differently about volumes, as arguments."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from berth.framework.csi_migration import NO_MIGRATION, Migration

SELECTED_NODE = "volume.kubernetes.io/selected-node"


class SelectedNode(Enum):
    """What becomes of a claim that a node was selected for, but that has no volume yet."""

    IGNORED = "the claim is judged as any other"
    UNBOUND = "it counts as one that should have been bound before"
    PINNED = "it will be provisioned on that node, and fits no other"


@dataclass(frozen=True, slots=True)
class BindingRules:
    """Release differences; the defaults are 1.13's.

    Attributes
    ----------
    missing_claim, unbound : str
        Texts of errors; of the first, ``{key}`` is the claim's namespace and name, ``{name}`` its name alone.
    prebound_counts : bool
        Whether a claim that names a volume counts as bound although binding is not complete.
    binding_mode_required : bool
        Whether a class without ``volumeBindingMode`` is an error (else it binds at once).
    match_fields : bool
        Whether the node affinity of volumes may ask for fields, and a term that is refused harms no other.
    volume_modes : bool
        Whether claim and volume must agree on block or file system.
    available_only : bool
        Whether only volumes in phase Available are free.
    provisions : bool
        Whether a claim without a volume fits where one can be provisioned.
    sought_by_annotation : bool
        Whether a claim's old class annotation says which volumes are looked at (by the class of their
        spec), or its own spec does. Either way the classes of both, annotations first, must then be equal.
    kept_by_annotation : bool
        Whether volumes are looked at by the class of their old annotation, where they have one (1.36).
    refuses : bool
        Whether claims are looked at before any node is: a pod whose claims are amiss is turned away (1.36), and a
        volume that is not there is a reason, not an error.
    ephemeral : bool
        Whether generic ephemeral volumes are known.
    capacities : bool
        Whether CSI drivers may say how much storage is left.
    attributes_classes : bool
        Whether claim and volume must agree on their VolumeAttributesClass.
    migration : Migration
        Which in-tree volumes are reached as their CSI driver would have it, where they are bound.
    node_conflict : str
        The reason of nodes from which a bound volume can't be reached.
    """

    missing_claim: str = 'error getting PVC "{key}": could not find v1.PersistentVolumeClaim "{key}"'
    unbound: str = "pod has unbound immediate PersistentVolumeClaims"
    selected_node: SelectedNode = SelectedNode.UNBOUND
    prebound_counts: bool = False
    binding_mode_required: bool = True
    match_fields: bool = True
    volume_modes: bool = True
    available_only: bool = True
    provisions: bool = True
    sought_by_annotation: bool = False
    kept_by_annotation: bool = False
    refuses: bool = False
    ephemeral: bool = False
    capacities: bool = False
    attributes_classes: bool = False
    migration: Migration = NO_MIGRATION
    node_conflict: str = "node(s) had volume node affinity conflict"

    @classmethod
    def of_1_36(cls) -> "BindingRules":
        """Return 1.36's."""
        return cls(
            selected_node=SelectedNode.PINNED,
            sought_by_annotation=True,
            kept_by_annotation=True,
            refuses=True,
            ephemeral=True,
            capacities=True,
            attributes_classes=True,
            migration=Migration.of_1_36(annotated=True),
            node_conflict="node(s) didn't match PersistentVolume's node affinity",
        )

    def pins(self, annotations: Mapping[str, str]) -> bool:
        """Tell whether a claim with such annotations will be provisioned on the node that it names."""
        return self.selected_node is SelectedNode.PINNED and SELECTED_NODE in annotations
