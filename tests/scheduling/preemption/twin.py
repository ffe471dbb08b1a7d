"""Preemption in plain Python, straight from the rules: one node and one pod after another, on clusters made anew each time.

Knows no start of a pod that there is not, and takes pods in the order in which they came where they tie.
"""

from dataclasses import dataclass

from msgspec.structs import replace

from berth.cluster.cluster import Cluster
from berth.cluster.modern_accounting import ModernAccounting
from berth.objects.nodes import Node
from berth.objects.pods import Pod
from berth.objects.selectors import from_label_selector
from berth.objects.workloads import PodDisruptionBudget
from berth.scheduling.evaluation import Evaluation
from tests.scheduling.modern_worlds import MODERN

BEYOND_HELP = (
    "node(s) had untolerated taint(s)",
    "node(s) didn't match Pod's node affinity/selector",
    "node(s) didn't match pod topology spread constraints (missing required label)",
    "node(s) didn't match pod affinity rules",
)


@dataclass(frozen=True, slots=True)
class World:
    """All that there is; ``nominated`` are pods with the names of their nodes."""

    nodes: tuple[Node, ...]
    pods: tuple[Pod, ...]
    budgets: tuple[PodDisruptionBudget, ...] = ()
    nominated: tuple[tuple[Pod, str], ...] = ()

    def cluster(self, pods: tuple[Pod, ...] | None = None) -> Cluster:
        cluster = Cluster(ModernAccounting())
        for node in self.nodes:
            cluster.put_node(node)
        for budget in self.budgets:
            cluster.put(budget)
        for pod in self.pods if pods is None else pods:
            cluster.put_pod(pod)
        return cluster


def priority_of(pod: Pod) -> int:
    return pod.spec.priority or 0


@dataclass(slots=True)
class Twin:
    """The decision for one pod."""

    world: World
    pod: Pod

    def waiting(self, node: str) -> tuple[Pod, ...]:
        return tuple(
            replace_node(pod, node)
            for pod, where in self.world.nominated
            if where == node and priority_of(pod) >= priority_of(self.pod)
        )

    def failure(self, pods: tuple[Pod, ...], node: str) -> tuple[tuple[str, ...], bool] | None:
        """The reasons of the first filter that fails, and whether no removal of pods helps."""
        rounds = [(*pods, *self.waiting(node)), pods] if self.waiting(node) else [pods]
        for there in rounds:
            cluster = self.world.cluster(there)
            evaluation = Evaluation(MODERN, cluster.incoming(self.pod), cluster)
            row = cluster.nodes.row(node)
            if evaluation.fits[row]:
                continue
            i = int(evaluation.first_failures()[row])
            reasons = evaluation.reasons(i, int(evaluation.codes[i][row]))
            asked = cluster.incoming(self.pod).info.asked
            too_big = any(amount > int(cluster.nodes.allocatable.of(r)[row]) for r, amount in asked.items())
            is_fit = MODERN.filters[i].name == "NodeResourcesFit"
            return reasons, reasons[0] in BEYOND_HELP or (is_fit and too_big)
        return None

    def violating(self, pods: list[Pod]) -> list[Pod]:
        found = []
        left = [budget.status.disruptions_allowed for budget in self.world.budgets]
        for pod in pods:
            violates = False
            for i, budget in enumerate(self.world.budgets):
                selector = from_label_selector(budget.spec.selector)
                if (
                    not pod.metadata.labels
                    or budget.metadata.namespace != pod.metadata.namespace
                    or not selector.requirements
                    or not selector.matches(pod.metadata.labels)
                    or pod.metadata.name in budget.status.disrupted_pods
                ):
                    continue
                left[i] -= 1
                violates |= left[i] < 0
            if violates:
                found.append(pod)
        return found

    def victims(self, node: str) -> tuple[list[Pod], int] | None:
        """Who has to go from a node, and how many of them violate a budget; None if it is no candidate."""
        failure = self.failure(self.world.pods, node)
        if failure is None or failure[1]:
            return None
        mine = [p for p in self.world.pods if p.spec.node_name == node and p.status.phase == "Running"]
        lower = [p for p in mine if priority_of(p) < priority_of(self.pod)]
        lower.sort(key=importance)
        there = tuple(p for p in self.world.pods if p not in lower)
        if not lower or self.failure(there, node) is not None:
            return None
        violating = self.violating(lower)
        going = []
        for pod in violating + [p for p in lower if p not in violating]:
            if self.failure((*there, pod), node) is None:
                there = (*there, pod)
            else:
                going.append(pod)
        going.sort(key=importance)
        return going, sum(pod in violating for pod in going)

    def best(self) -> tuple[str, list[str], int] | None:
        """The node, the names of the victims and the number of violations."""
        found = []
        for node in self.world.nodes:
            victims = self.victims(node.metadata.name)
            if victims is not None and victims[0]:
                found.append((self.loss(*victims), node.metadata.name, victims))
        if not found:
            return None
        _, name, (pods, n_violations) = min(found, key=lambda one: one[:2])
        return name, [pod.metadata.name for pod in pods], n_violations

    @staticmethod
    def loss(pods: list[Pod], n_violations: int) -> tuple[float, ...]:
        highest = max(map(priority_of, pods))
        earliest = min(start_of(pod) for pod in pods if priority_of(pod) == highest)
        total = sum(priority_of(pod) + 2**31 for pod in pods)
        return n_violations, highest, total, len(pods), -earliest


def start_of(pod: Pod) -> float:
    return pod.status.start_time.timestamp() if pod.status.start_time else float("inf")


def importance(pod: Pod) -> tuple[float, float]:
    return -priority_of(pod), start_of(pod)


def replace_node(pod: Pod, node: str) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=node))
