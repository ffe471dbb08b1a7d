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

from berth.cluster.arrays import ALL_ROWS, BoolColumn, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.log import Changes
from berth.framework.changes import Hint, Wakes
from berth.framework.csi_migration import NotTranslatable
from berth.framework.plugin import FITS, BatchKind, FilterPlugin, Finality, Rejection, ScorePlugin
from berth.framework.verdicts import Verdicts
from berth.objects.selectors import SelectorError
from berth.objects.storage import PersistentVolumeClaim, StorageClass
from berth.plugins.volume_binding.bindings import bindings
from berth.plugins.volume_binding.capacity import has_capacity
from berth.plugins.volume_binding.claims import (
    BIND_COMPLETED,
    PodClaims,
    claim_names,
    selector_refused,
    tell_apart,
    what_is_amiss,
)
from berth.plugins.volume_binding.hints import WAKES_ON, hint_of
from berth.plugins.volume_binding.matching import VolumeMatcher, asked_storage, provisionable
from berth.plugins.volume_binding.reach import VolumeReach, reached_by_driver
from berth.plugins.volume_binding.rules import SELECTED_NODE, BindingRules, SelectedNode

__all__ = [
    "BIND_COMPLETED", "SELECTED_NODE",
    "BindingRules", "SelectedNode", "VolumeBinding", "VolumeBindingScore", "VolumeBindingState", "bindings",
]  # fmt: skip

NODE_CONFLICT, BIND_CONFLICT, NO_SPACE, NO_VOLUME = 1, 2, 4, 8
REASONS = (
    "",
    "node(s) didn't find available persistent volumes to bind",
    "node(s) did not have enough free storage",
    "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
)
"""By bit; the release words the first one."""


@dataclass(slots=True)
class VolumeBindingState(Verdicts):
    """The verdict on every row, which does not hang on pods: a sum of `NODE_CONFLICT` and its like.

    Attributes
    ----------
    has_claims, binds : bool
        Whether the pod has claims, and some that will be bound as it is placed.
    rejection : Rejection or None
        Why the pod is turned away whatever the node (1.36).
    """

    has_claims: bool = False
    binds: bool = False
    rejection: Rejection | None = None


@dataclass(frozen=True, slots=True)
class VolumeBinding(FilterPlugin[VolumeBindingState]):
    """Can the pod's claims have their volumes on the node?

    Attributes
    ----------
    bind_timeout_s : int
        How long who binds the pod waits for its volumes. [s]
    """

    name: ClassVar[str] = "VolumeBinding"
    reads_pods: ClassVar[bool] = False
    legacy_names: ClassVar[tuple[str, ...]] = ("CheckVolumeBinding",)
    rules: BindingRules = field(default_factory=BindingRules)
    bind_timeout_s: int = 600
    wakes_on: ClassVar[Wakes] = WAKES_ON

    def skips(self, pod: Incoming, cluster: Cluster) -> bool:
        return not pod.info.spec.volumes

    def prepare(self, pod: Incoming, cluster: Cluster) -> VolumeBindingState:
        state = VolumeBindingState(np.zeros(cluster.nodes.n_rows, dtype=np.int64))
        names = claim_names(pod, self.rules)
        if not names:
            return state
        state.has_claims = True
        amiss = what_is_amiss(pod, cluster.objects) if self.rules.refuses else None
        if amiss is not None:
            state.rejection = Rejection((amiss,))
            return state
        claims = tell_apart(pod.namespace, names, cluster.objects, self.rules)
        if claims.error and self.rules.refuses:
            unbound = claims.error == self.rules.unbound
            state.rejection = Rejection((claims.error,), Finality.FINAL if unbound else Finality.ERROR)
            return state
        if claims.error:
            state.fail(state.every_row, claims.error)
            return state
        state.binds = bool(claims.delayed)
        reach = VolumeReach(cluster.nodes, self.rules)
        _judge_bound(state, claims, cluster, reach, self.rules)
        if claims.delayed:
            _judge_delayed(state, claims, cluster, reach, self.rules)
        return state

    def reject(self, state: VolumeBindingState) -> Rejection | None:
        return state.rejection

    def is_idle(self, state: VolumeBindingState) -> bool:
        return not state.has_claims and state.rejection is None

    def filter(
        self, state: VolumeBindingState, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0
    ) -> IntColumn:
        return state.of(rows)

    def reasons(self, state: VolumeBindingState, code: int) -> tuple[str, ...]:
        if code < FITS:
            return (state.error(code),)
        texts = (self.rules.node_conflict, *REASONS[1:])
        return tuple(text for bit, text in enumerate(texts) if code & 1 << bit)

    def hint(self, pod: Incoming, cluster: Cluster) -> Hint:
        return hint_of(pod, claim_names(pod, self.rules))

    def mend(self, state: VolumeBindingState, changes: Changes) -> Rows | None:
        # Claims, volumes and classes that change reset everything. What is left are nodes, by their labels.
        if state.has_claims and changes.nodes:
            return None
        return np.empty(0, dtype=np.intp)

    def batch(self, state: VolumeBindingState, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.SERIAL if state.binds else BatchKind.CONSTANT


@dataclass(frozen=True, slots=True)
class VolumeBindingScore(ScorePlugin[int]):
    """1.36's, without the gate StorageCapacityScoring: 0 everywhere."""

    name: ClassVar[str] = "VolumeBinding"
    reads_pods: ClassVar[bool] = False

    def skips(self, pod: Incoming, cluster: Cluster) -> bool:
        return True

    def prepare(self, pod: Incoming, cluster: Cluster) -> int:
        return cluster.nodes.n_rows

    def is_idle(self, state: int) -> bool:
        return True

    def score(self, state: int, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return np.zeros(state, dtype=np.int64)[rows]

    def mend(self, state: int, changes: Changes) -> Rows | None:
        return np.empty(0, dtype=np.intp)

    def batch(self, state: int, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT


def _judge_bound(
    state: VolumeBindingState, claims: PodClaims, cluster: Cluster, reach: VolumeReach, rules: BindingRules
) -> None:
    # A node that misses one volume is not asked for the next: an error there would not come up.
    open_rows = state.every_row
    migration = rules.migration
    by_row = migration.by_row(cluster)
    for claim in claims.bound:
        volume = cluster.objects.persistent_volumes.get("", claim.spec.volume_name)
        if volume is None and rules.refuses:
            state.codes[open_rows & (state.codes >= 0)] = NO_VOLUME
            break
        if volume is None:
            state.fail(open_rows, f'could not find v1.PersistentVolume "{claim.spec.volume_name}"')
            break
        reached = np.zeros_like(open_rows)
        reached[reach.of(volume)] = True
        plugin, _ = migration.handle(volume)
        migrated = [row for row, plugins in by_row.items() if plugin in plugins]
        if migrated:
            try:
                reached[migrated] = reached_by_driver(volume, migration, cluster)[migrated]
            except NotTranslatable as error:
                stuck = np.zeros_like(open_rows)
                stuck[migrated] = True
                state.fail(open_rows & stuck, f"could not translate pv: {error}")
        open_rows &= reached
    state.codes[~open_rows & (state.codes >= 0)] = NODE_CONFLICT


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
    all_claims = list(zip(claims.delayed, claims.classes, strict=True))
    to_provision: list[Provision] = [
        (claim, storage_class, ~done) for claim, storage_class in all_claims if claim.metadata.name in pins
    ]
    for claim, storage_class in sorted(all_claims, key=lambda pair: asked_storage(pair[0])):
        if claim.metadata.name in pins:
            continue
        try:
            missed = ~matcher.match(claim)
        except SelectorError as error:
            state.fail(~done, selector_refused(claim, error))
            break
        if rules.provisions:
            to_provision.append((claim, storage_class, missed & ~done))
        else:
            conflict |= missed
            done |= missed
    no_space = _judge_provisions(to_provision, cluster, conflict, rules)
    state.codes[conflict & (state.codes >= 0)] += BIND_CONFLICT
    state.codes[no_space & (state.codes >= 0)] += NO_SPACE


Provision = tuple[PersistentVolumeClaim, StorageClass, BoolColumn]
"""A claim that is to be provisioned, and on which rows."""


def _judge_provisions(
    to_provision: list[Provision], cluster: Cluster, conflict: BoolColumn, rules: BindingRules
) -> BoolColumn:
    """Mark the rows where a claim can't be provisioned; return those that lack storage for one (bool[n_rows])."""
    no_space = np.zeros_like(conflict)
    for claim, storage_class, where in to_provision:
        # The first claim that fails on a node tells the reason.
        rows = where & ~conflict & ~no_space
        if not rows.any():
            continue
        out = rows & ~provisionable(cluster.nodes, storage_class)
        conflict |= out
        if rules.capacities:
            no_space |= rows & ~out & ~has_capacity(cluster, claim, storage_class)
    return no_space


def _pins(claims: PodClaims, rules: BindingRules) -> dict[str, str]:
    """Return the node of each claim that will be provisioned on one, by the claim's name."""
    return {
        claim.metadata.name: claim.metadata.annotations[SELECTED_NODE]
        for claim in claims.delayed
        if rules.pins(claim.metadata.annotations)
    }
