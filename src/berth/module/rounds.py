"""A round: changes are put in order and decided one after another, each on the cluster as those before it left it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from berth.cluster.arrays import NONE
from berth.cluster.cluster import Cluster, Incoming
from berth.cluster.pods import PodValues
from berth.errors import BerthError
from berth.framework.profile import Profile
from berth.module.changes import Change, WorkloadName
from berth.module.loads import ServiceName
from berth.module.plan import PlannedDecision
from berth.module.presort import presort
from berth.module.profile import ServiceProfile
from berth.module.removal import Leaving
from berth.module.services import ServiceError, controller_of_owners, find_service, members, resolve_workload
from berth.module.templates import Pattern, next_ordinal, pattern_of, stateful_pod
from berth.objects.pods import Pod
from berth.objects.storage import PersistentVolume, PersistentVolumeClaim
from berth.objects.workloads import StatefulSet
from berth.plugins.volume_binding import BindingRules
from berth.plugins.volume_binding.bindings import bindings
from berth.scheduling.batch import place
from berth.scheduling.decide import Decision
from berth.scheduling.evaluations import Evaluations
from berth.scheduling.ties import TieBreaker

StorageObject = PersistentVolume | PersistentVolumeClaim

Progress = Callable[[int, int], None]
"""Told after each change how many decisions of how many are made."""


@dataclass(frozen=True, slots=True)
class Rules:
    """By what a round decides.

    Attributes
    ----------
    addition : Profile
        Filters and weighted scores of additions.
    remove_weights : dict of priority name to int
        Of removals.
    maximum : int
        The highest score of a priority: 10, or 100.
    keep_pending : bool
        Whether a pod for which there is no node is made all the same, and stays pending.
    binding : BindingRules
        How volumes are bound for a pod that was placed.
    """

    addition: Profile
    remove_weights: Mapping[str, int]
    maximum: int = 10
    keep_pending: bool = False
    binding: BindingRules = field(default_factory=BindingRules)


@dataclass(frozen=True, slots=True)
class Added:
    """A pod that was assumed on a node, or that stays pending.

    Attributes
    ----------
    claims : tuple of PersistentVolumeClaim
        Those that were made for it.
    bound : tuple of (before, after)
        Volumes and claims that were bound for it, as they were and as they are now.
    """

    pod: int
    pattern: Pattern
    name: str = ""
    claims: tuple[PersistentVolumeClaim, ...] = ()
    bound: tuple[tuple[StorageObject, StorageObject], ...] = ()


@dataclass(frozen=True, slots=True)
class Removed:
    """A pod that was taken out, and the controller whose replicas counted it."""

    values: PodValues
    controller: WorkloadName | None


@dataclass(slots=True)
class Round:
    """One round on a cluster. The cluster changes as decisions are made; `undo` takes everything back.

    Attributes
    ----------
    decisions, effects : list
        Side by side: what was decided, and what that did to the cluster (None: nothing).
    """

    cluster: Cluster
    rules: Rules
    ties: TieBreaker
    evaluations: Evaluations
    profiles: Mapping[ServiceName, ServiceProfile] = field(default_factory=dict)
    decisions: list[PlannedDecision] = field(default_factory=list)
    effects: list[Added | Removed | None] = field(default_factory=list)

    def decide(self, changes: Sequence[Change], on_progress: Progress | None = None) -> None:
        """Decide all changes, in the order of the presort."""
        total = sum(change.number for change in changes)
        for change in presort(self.cluster, changes, self.profiles):
            n_before = len(self.decisions)
            try:
                if change.operation == "remove":
                    self._remove(change)
                else:
                    self._add(change)
            except BerthError as error:
                # Nothing changes between the tries that are left of the change: all fail for one reason.
                for _ in range(n_before + change.number - len(self.decisions)):
                    self._note(change, None, reason=str(error))
            if on_progress:
                on_progress(len(self.decisions), total)

    def undo(self) -> None:
        """Leave the cluster as it was before the round; the tie counter is the caller's."""
        for effect in reversed(self.effects):
            if isinstance(effect, Removed):
                self.cluster.add_pod(effect.values)
            elif isinstance(effect, Added):
                self.cluster.forget(effect.pod)
                for before, _ in effect.bound:
                    self.cluster.put(before)
                for claim in effect.claims:
                    self.cluster.remove(claim)
        self.effects.clear()

    # -- removals ----------------------------------------------------------------------------------------------------

    def _remove(self, change: Change) -> None:
        service = find_service(self.cluster, change.namespace, change.service)
        resolve_workload(self.cluster, service, change.workload)
        leaving = Leaving(
            self.cluster, service, change.workload, self.rules.remove_weights, self.rules.maximum
        )
        for _ in range(change.number):
            removal = leaving.choose(self.ties)
            if removal is None:
                name = f"{change.namespace}/{change.service}"
                raise ServiceError(f"service {name} has no pod left to remove")
            values = self.cluster.pods.get(removal.pod)
            self._note(
                change,
                Removed(values, self._controller(values)),
                pod=values.name,
                node=None if removal.row is None else self.cluster.nodes.names[removal.row],
                score=removal.score,
                scores=removal.scores,
                feasible=removal.n_feasible,
            )
            leaving.remove(removal)

    def _controller(self, values: PodValues) -> WorkloadName | None:
        controller = controller_of_owners(self.cluster, values.owner_id)
        return None if controller is None else WorkloadName(controller.kind, controller.name)

    # -- additions ---------------------------------------------------------------------------------------------------

    def _add(self, change: Change) -> None:
        service = find_service(self.cluster, change.namespace, change.service)
        workload = resolve_workload(self.cluster, service, change.workload)
        pattern = pattern_of(self.cluster, service, workload, members(self.cluster, service))
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
        assumed: list[Added] = []

        def assume(row: int) -> None:
            bound = self._bind(incoming, row)
            made = self.cluster.assume(incoming, row, name=incoming.name)
            assumed.append(Added(made, pattern, incoming.name, claims, bound))

        decisions = place(self.evaluations.of(incoming), n, self.ties, assume)
        made = iter(assumed)
        for decision in decisions:
            if decision.row is not None:
                self._note_added(change, decision, next(made))
            elif self.rules.keep_pending:
                pending = self.cluster.add_pod(
                    PodValues(
                        incoming.name,
                        "",
                        incoming.namespace_id,
                        incoming.spec_id,
                        incoming.labels_id,
                        incoming.owners_id,
                        NONE,
                        phase=1,
                    )
                )
                self._note_added(change, decision, Added(pending, pattern, incoming.name, claims))
            else:
                self._note_added(change, decision, None)
        return self.rules.keep_pending or bool(assumed)

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

    def _note_added(self, change: Change, decision: Decision, effect: Added | None) -> None:
        self._note(
            change,
            effect,
            node=None if decision.row is None else self.cluster.nodes.names[decision.row],
            score=decision.score,
            scores=decision.scores,
            feasible=decision.n_feasible,
            reason=decision.reason,
        )

    # -- notes -------------------------------------------------------------------------------------------------------

    def _note(
        self,
        change: Change,
        effect: Added | Removed | None,
        *,
        pod: str | None = None,
        node: str | None = None,
        score: int | None = None,
        scores: dict[str, int] | None = None,
        feasible: int = 0,
        reason: str | None = None,
    ) -> None:
        self.decisions.append(
            PlannedDecision(
                request=change.request,
                operation=change.operation,
                namespace=change.namespace,
                service=change.service,
                pod=pod,
                node=node,
                score=score,
                scores=scores or {},
                feasible=feasible,
                reason=reason,
            )
        )
        self.effects.append(effect)
