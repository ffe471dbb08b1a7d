"""PodDisruptionBudgets of pods that may leave: what a round may still take away."""

from dataclasses import dataclass, field

import numpy as np

from berth.cluster.arrays import BoolColumn
from berth.cluster.cluster import Cluster
from berth.cluster.pods import PodIds
from berth.objects.workloads import PodDisruptionBudget
from berth.scheduling.preemption.victims import drawing_on

_RUNNING = 2


@dataclass(slots=True)
class Budgets:
    """How many disruptions each budget still allows, as a round's removals draw on them.

    As for evictions, a pod that does not run yet draws on none; one that runs draws on all that select it, ready or not.
    """

    cluster: Cluster
    _drawn: dict[tuple[str, str], int] = field(default_factory=dict)

    def left(self, budget: PodDisruptionBudget) -> int:
        """Return how many pods the budget still lets go."""
        meta = budget.metadata
        return budget.status.disruptions_allowed - self._drawn.get((meta.namespace, meta.name), 0)

    def guarding(self, pods: PodIds) -> list[tuple[PodDisruptionBudget, BoolColumn]]:
        """Return the budgets that any of the pods draws on, and which of them do (bool[n])."""
        running = self.cluster.pods.column("phase")[pods] == _RUNNING
        found = []
        for budget in self.cluster.objects.pod_disruption_budgets.all():
            drawing = drawing_on(self.cluster, budget, pods) & running
            if drawing.any():
                found.append((budget, drawing))
        return found

    def draw(self, pods: PodIds) -> None:
        """Note that pods leave."""
        for budget, drawing in self.guarding(pods):
            key = budget.metadata.namespace, budget.metadata.name
            self._drawn[key] = self._drawn.get(key, 0) + int(drawing.sum())

    def free(self, pods: PodIds) -> tuple[PodIds, int, str]:
        """Return those of the pods that may leave, of how many any choice may be made at once, and who keeps the others.

        The last is the budgets' names; empty where all may leave.
        """
        allowed, at_once, names = np.ones(len(pods), dtype=np.bool_), len(pods), []
        for budget, drawing in self.guarding(pods):
            left = self.left(budget)
            if left > 0:
                at_once = min(at_once, left)
            else:
                allowed &= ~drawing
                names.append(f"{budget.metadata.namespace}/{budget.metadata.name}")
        return pods[allowed], at_once, ", ".join(sorted(names))
