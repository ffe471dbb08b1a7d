"""CheckVolumeBinding: can the pod's claims have their volumes on the node?

Volumes that are bound must be reachable from the node. Claims that wait for their first consumer must find a
free volume there, each another one, or a class that can provision one. All other unbound claims, and missing
ones, are an error of the pod as a whole.

A pod that is only planned can be judged as well: put its claims into the cluster before it is evaluated. The
pod with ordinal 3 of StatefulSet ``db`` has, for its volumeClaimTemplate ``data``, a volume ``data`` and the
PersistentVolumeClaim ``data-db-3`` of its namespace. Where there is none, put one with the template's spec
and no ``volumeName``: it counts as unbound. Take it away again when the pod is not to come after all.
"""

from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import Changes
from berth.framework.plugin import FITS, BatchKind, FilterPlugin
from berth.framework.verdicts import Verdicts
from berth.objects.selectors import SelectorError
from berth.plugins.volume_binding.bindings import bindings
from berth.plugins.volume_binding.claims import PodClaims, selector_refused, tell_apart
from berth.plugins.volume_binding.matching import VolumeMatcher, asked_storage, provisionable
from berth.plugins.volume_binding.reach import VolumeReach
from berth.plugins.volume_binding.rules import SELECTED_NODE, BindingRules, SelectedNode

__all__ = ["BindingRules", "SelectedNode", "VolumeBinding", "VolumeBindingState", "bindings"]

NODE_CONFLICT = 1
BIND_CONFLICT = 2
REASONS = (
    "node(s) had volume node affinity conflict",
    "node(s) didn't find available persistent volumes to bind",
)


@dataclass(slots=True)
class VolumeBindingState(Verdicts):
    """The verdict on every row, which does not hang on pods: the sum of `NODE_CONFLICT` and `BIND_CONFLICT`.

    Attributes
    ----------
    has_claims, binds : bool
        Whether the pod has claims, and some that will be bound as it is placed.
    """

    has_claims: bool = False
    binds: bool = False


@dataclass(frozen=True, slots=True)
class VolumeBinding(FilterPlugin[VolumeBindingState]):
    """Can the pod's claims have their volumes on the node?"""

    name: ClassVar[str] = "VolumeBinding"
    legacy_names: ClassVar[tuple[str, ...]] = ("CheckVolumeBinding",)
    rules: BindingRules = field(default_factory=BindingRules)

    def prepare(self, pod: Incoming, cluster: Cluster) -> VolumeBindingState:
        state = VolumeBindingState(np.zeros(cluster.nodes.n_rows, dtype=np.int64))
        if not pod.info.claims:
            return state
        state.has_claims = True
        claims = tell_apart(pod.namespace, pod.info.claims, cluster.objects, self.rules)
        if claims.error:
            state.fail(state.every_row, claims.error)
            return state
        state.binds = bool(claims.delayed)
        reach = VolumeReach(cluster.nodes, self.rules)
        _judge_bound(state, claims, cluster, reach)
        if claims.delayed:
            _judge_delayed(state, claims, cluster, reach, self.rules)
        return state

    def filter(
        self, state: VolumeBindingState, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0
    ) -> IntColumn:
        return state.of(rows)

    def reasons(self, state: VolumeBindingState, code: int) -> tuple[str, ...]:
        if code < FITS:
            return (state.error(code),)
        return tuple(text for bit, text in enumerate(REASONS) if code & 1 << bit)

    def mend(self, state: VolumeBindingState, changes: Changes) -> Rows | None:
        # Claims, volumes and classes that change reset everything. What is left are nodes, by their labels.
        if state.has_claims and changes.nodes:
            return None
        return np.empty(0, dtype=np.intp)

    def batch(self, state: VolumeBindingState, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.SERIAL if state.binds else BatchKind.CONSTANT


def _judge_bound(state: VolumeBindingState, claims: PodClaims, cluster: Cluster, reach: VolumeReach) -> None:
    # A node that misses one volume is not asked for the next: an error there would not come up.
    open_rows = state.every_row
    for claim in claims.bound:
        volume = cluster.objects.persistent_volumes.get("", claim.spec.volume_name)
        if volume is None:
            state.fail(open_rows, f'could not find v1.PersistentVolume "{claim.spec.volume_name}"')
            break
        reached = np.zeros_like(open_rows)
        reached[reach.of(volume)] = True
        open_rows &= reached
    state.codes[~open_rows] = NODE_CONFLICT


def _judge_delayed(
    state: VolumeBindingState, claims: PodClaims, cluster: Cluster, reach: VolumeReach, rules: BindingRules
) -> None:
    matcher = VolumeMatcher(cluster.objects.persistent_volumes.all(), reach, rules)
    conflict = np.zeros_like(state.every_row)
    pins = _pins(claims, rules)
    for name in pins.values():
        conflict |= np.arange(len(conflict)) != cluster.nodes.row(name)
    # Nodes that are not asked about the next claim, so that an error there would not come up.
    done = conflict.copy()
    for claim, storage_class in sorted(
        zip(claims.delayed, claims.classes, strict=True), key=lambda pair: asked_storage(pair[0])
    ):
        try:
            pinned = claim.metadata.name in pins
            missed = state.every_row if pinned else ~matcher.match(claim)
        except SelectorError as error:
            state.fail(~done, selector_refused(claim, error))
            break
        if not rules.provisions:
            conflict |= missed
            done |= missed
        elif missed.any():
            conflict |= missed & ~provisionable(cluster.nodes, storage_class)
    state.codes[conflict & (state.codes >= 0)] += BIND_CONFLICT


def _pins(claims: PodClaims, rules: BindingRules) -> dict[str, str]:
    """Return the node of each claim that will be provisioned on one, by the claim's name."""
    return {
        claim.metadata.name: claim.metadata.annotations[SELECTED_NODE]
        for claim in claims.delayed
        if rules.pins(claim.metadata.annotations)
    }
