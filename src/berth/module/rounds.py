"""A round: changes are put in order and decided one after another, each on the cluster as those before it left it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from berth.cluster.arrays import NONE, IdColumn
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.pods import PodIds, PodValues, TakenPods
from berth.errors import BerthError
from berth.framework.profile import Profile
from berth.module.budgets import Budgets
from berth.module.changes import Change
from berth.module.loads import ServiceName
from berth.module.plan import Planned
from berth.module.presort import presort
from berth.module.profile import ServiceProfile
from berth.module.removal import Leaving
from berth.module.services import ServiceError, find_service, members, resolve_workload
from berth.module.templates import Pattern, next_ordinal, pattern_of, stateful_pod
from berth.objects.pods import Pod
from berth.objects.storage import PersistentVolume, PersistentVolumeClaim
from berth.objects.workloads import StatefulSet
from berth.plugins.volume_binding import BindingRules
from berth.plugins.volume_binding.bindings import bindings
from berth.releases.module_removal import REMOVAL_1_13, RemovalArithmetic
from berth.scheduling.batch import place_columns
from berth.scheduling.evaluations import Evaluations
from berth.scheduling.ties import TieBreaker

StorageObject = PersistentVolume | PersistentVolumeClaim

Progress = Callable[[int, int], None]
"""Told after each change how many decisions of how many are made."""

NO_REFUSALS: Mapping[int, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Rules:
    """By what a round decides.

    Attributes
    ----------
    addition : Profile
        Filters and weighted scores of additions.
    remove_weights : dict of priority name to int
        Of removals.
    removal : RemovalArithmetic
        By what the nodes that lose a pod are scored.
    keep_pending : bool
        Whether a pod for which there is no node is made all the same, and stays pending.
    binding : BindingRules
        How volumes are bound for a pod that was placed.
    heeds_budgets : bool
        Whether pods stay that a PodDisruptionBudget guards.
    """

    addition: Profile
    remove_weights: Mapping[str, int]
    removal: RemovalArithmetic = REMOVAL_1_13
    keep_pending: bool = False
    binding: BindingRules = field(default_factory=BindingRules)
    heeds_budgets: bool = False


@dataclass(frozen=True, slots=True)
class Added:
    """Pods that were assumed on nodes, or that stay pending.

    Attributes
    ----------
    claims : tuple of PersistentVolumeClaim
        Those that were made for the pod, which is then the only one.
    bound : list of tuple of (before, after)
        Volumes and claims that were bound for each pod, as they were and as they are now; empty where pods have none.
    """

    pods: PodIds
    pattern: Pattern
    name: str = ""
    claims: tuple[PersistentVolumeClaim, ...] = ()
    bound: list[tuple[tuple[StorageObject, StorageObject], ...]] = field(default_factory=list)


@dataclass(slots=True)
class Round:
    """One round on a cluster. The cluster changes as decisions are made; `undo` takes everything back.

    Attributes
    ----------
    planned, effects : list
        Side by side: what was decided, in columns, and what that did to the cluster (None: nothing).
    n_decisions : int
    """

    cluster: Cluster
    rules: Rules
    ties: TieBreaker
    evaluations: Evaluations
    profiles: Mapping[ServiceName, ServiceProfile] = field(default_factory=dict)
    planned: list[Planned] = field(default_factory=list)
    effects: list[Added | TakenPods | None] = field(default_factory=list)
    n_decisions: int = 0
    _budgets: Budgets = field(init=False)

    def __post_init__(self) -> None:
        self._budgets = Budgets(self.cluster)

    def decide(
        self,
        changes: Sequence[Change],
        on_progress: Progress | None = None,
        refusals: Mapping[int, str] = NO_REFUSALS,
    ) -> None:
        """Decide all changes, in the order of the presort; those that are refused fail when it is their turn.

        Parameters
        ----------
        refusals : dict of int to str
            Why a change can't be carried out, by its place in ``changes``.
        """
        total = sum(change.number for change in changes)
        refused = {id(changes[i]): reason for i, reason in refusals.items()}
        for change in presort(self.cluster, changes, self.profiles):
            end = self.n_decisions + change.number
            try:
                if id(change) in refused:
                    raise ServiceError(refused[id(change)])
                if change.operation == "remove":
                    self._remove(change)
                else:
                    self._add(change)
            except BerthError as error:
                # Nothing changes between the tries that are left of the change: all fail for one reason.
                self._note(Planned(change, end - self.n_decisions, reason=str(error)))
            if on_progress:
                on_progress(self.n_decisions, total)

    def undo(self) -> None:
        """Leave the cluster as it was before the round; the tie counter is the caller's."""
        for effect in reversed(self.effects):
            if isinstance(effect, TakenPods):
                self.cluster.put_back(effect)
            elif effect is not None:
                self._forget(effect)
        self.effects.clear()

    def _forget(self, added: Added) -> None:
        self.cluster.remove_pods(added.pods)
        for bound in reversed(added.bound):
            for before, _ in bound:
                self.cluster.put(before)
        for claim in added.claims:
            self.cluster.remove(claim)

    # -- removals ----------------------------------------------------------------------------------------------------

    def _remove(self, change: Change) -> None:
        service = find_service(self.cluster, change.namespace, change.service)
        its_members = members(self.cluster, service)
        resolve_workload(self.cluster, service, change.workload, its_members)
        budgets = self._budgets if self.rules.heeds_budgets else None
        left = change.number
        while left:
            leaving = Leaving(
                self.cluster,
                service,
                its_members,
                change.workload,
                self.rules.remove_weights,
                self.rules.removal,
                budgets,
            )
            departures = leaving.take(left, self.ties)
            n = len(departures.pods)
            if not n:
                name = f"{change.namespace}/{change.service}"
                kept = f": PodDisruptionBudget {leaving.kept_by} allows no more" if leaving.kept_by else ""
                raise ServiceError(f"service {name} has no pod left to remove{kept}")
            if budgets is not None:
                budgets.draw(departures.pods)
            taken = self.cluster.remove_pods(departures.pods)
            self._note(Planned(change, n, taken.names, departures.nodes), taken)
            left -= n
            if left:
                its_members = members(self.cluster, service)

    # -- additions ---------------------------------------------------------------------------------------------------

    def _add(self, change: Change) -> None:
        service = find_service(self.cluster, change.namespace, change.service)
        its_members = members(self.cluster, service)
        workload = resolve_workload(self.cluster, service, change.workload, its_members)
        pattern = pattern_of(self.cluster, service, workload, its_members)
        if isinstance(workload, StatefulSet) and workload.spec.volume_claim_templates:
            for _ in range(change.number):
                self._add_stateful(change, pattern, workload)
        else:
            self._place(change, pattern, pattern.pod, change.number)

    def _add_stateful(self, change: Change, pattern: Pattern, workload: StatefulSet) -> None:
        pod, claims = stateful_pod(pattern, workload, next_ordinal(self.cluster, workload))
        shelf = self.cluster.objects.persistent_volume_claims
        made = tuple(c for c in claims if shelf.get(c.metadata.namespace, c.metadata.name) is None)
        for claim in made:
            self.cluster.put(claim)
        is_made = False
        try:
            is_made = self._place(change, pattern, pod, 1, made)
        finally:
            if not is_made:
                for claim in made:
                    self.cluster.remove(claim)

    def _place(
        self,
        change: Change,
        pattern: Pattern,
        pod: Pod,
        n: int,
        claims: tuple[PersistentVolumeClaim, ...] = (),
    ) -> bool:
        """Place ``n`` pods; tell whether any was made."""
        incoming = self.cluster.incoming(pod)
        made: list[PodIds] = []
        bound: list[tuple[tuple[StorageObject, StorageObject], ...]] = []

        def assume(rows: IdColumn) -> None:
            if not incoming.info.claims:
                made.append(self.cluster.assume_all(incoming, rows, name=incoming.name))
                return
            for row in rows.tolist():
                bound.append(self._bind(incoming, row))
                made.append(np.array([self.cluster.assume(incoming, row, name=incoming.name)]))

        placements = place_columns(self.evaluations.of(incoming), n, self.ties, assume)
        if len(placements.row):
            added = Added(np.concatenate(made), pattern, incoming.name, claims, bound)
            nodes = replace(placements, failure=None, n_left=0)
            self._note(Planned(change, len(placements.row), nodes=nodes), added)
        if placements.failure is not None:
            pending = None
            if self.rules.keep_pending:
                pending = Added(self._pending(incoming, placements.n_left), pattern, incoming.name, claims)
            self._note(Planned(change, placements.n_left, reason=placements.failure.reason), pending)
        return self.rules.keep_pending or len(placements.row) > 0

    def _pending(self, pod: Incoming, n: int) -> PodIds:
        """Add pods that wait for a node."""
        values = PodValues(
            pod.name, "", pod.namespace_id, pod.spec_id, pod.labels_id, pod.owners_id, NONE, phase=1
        )
        return np.array([self.cluster.add_pod(values) for _ in range(n)], dtype=np.intp)

    def _bind(self, pod: Incoming, row: int) -> tuple[tuple[StorageObject, StorageObject], ...]:
        """Bind the volumes that a pod takes on a row, for the decisions to come; return what that changed."""
        if not pod.info.claims:
            return ()
        changes = []
        for after in bindings(pod, self.cluster, row, self.rules.binding):
            shelf = self.cluster.objects.shelf(after)
            before = shelf.get(after.metadata.namespace, after.metadata.name)
            if before is not None:
                changes.append((before, after))
                self.cluster.put(after)
        return tuple(changes)

    def _note(self, planned: Planned, effect: Added | TakenPods | None = None) -> None:
        if planned.n:
            self.planned.append(planned)
            self.effects.append(effect)
            self.n_decisions += planned.n
