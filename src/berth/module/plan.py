"""The plan: what a round decided, as it is recorded, answered and printed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import msgspec

from berth.module.changes import Change
from berth.scheduling.decide import Decision
from berth.scheduling.placements import Placements


class PlannedDecision(msgspec.Struct, rename="camel", kw_only=True):
    """One single-pod operation and what became of it."""

    request: str
    operation: Literal["add", "remove"]
    namespace: str
    service: str
    pod: str | None = None
    node: str | None = None
    score: int | None = None
    scores: dict[str, int] = {}
    feasible: int = 0
    reason: str | None = None


class Plan(msgspec.Struct, rename="camel", kw_only=True):
    """A round's decisions, in the order in which they were made, and how many came to what."""

    round: int
    decisions: list[PlannedDecision]
    added: int = 0
    removed: int = 0
    failed: int = 0
    nodes_without_forecast: int = 0


def plan_of(number: int, decisions: list[PlannedDecision], nodes_without_forecast: int) -> Plan:
    """Put a round's decisions together with their counts."""
    done = [decision.operation for decision in decisions if decision.reason is None]
    return Plan(
        round=number,
        decisions=decisions,
        added=done.count("add"),
        removed=done.count("remove"),
        failed=len(decisions) - len(done),
        nodes_without_forecast=nodes_without_forecast,
    )


@dataclass(frozen=True, slots=True)
class Planned:
    """Decisions of one change, made one after another, that came out alike: as columns.

    Attributes
    ----------
    pods : list of str or None
        The names of the pods that leave; None for additions and failures.
    nodes : Placements or None
        The nodes that gain or lose them; None where there is none.
    reason : str or None
        Why all of them failed.
    """

    change: Change
    n: int
    pods: list[str] | None = None
    nodes: Placements | None = None
    reason: str | None = None

    def decisions(self, node_names: Sequence[str]) -> Iterator[PlannedDecision]:
        """Yield them as objects, given the nodes' names by row."""
        change = self.change
        pods: Sequence[str | None] = self.pods or [None] * self.n
        made = self.nodes.decisions() if self.nodes is not None else [Decision(None)] * self.n
        for pod, decision in zip(pods, made, strict=True):
            yield PlannedDecision(
                request=change.request,
                operation=change.operation,
                namespace=change.namespace,
                service=change.service,
                pod=pod,
                node=None if decision.row is None else node_names[decision.row],
                score=decision.score,
                scores=decision.scores,
                feasible=decision.n_feasible,
                reason=self.reason,
            )


@dataclass(frozen=True, slots=True)
class PlanColumns:
    """A round's plan before anybody has asked for its decisions one by one.

    Attributes
    ----------
    node_names : list of str
        By row, as they are while nodes neither come nor go.
    """

    round: int
    planned: Sequence[Planned]
    node_names: Sequence[str]
    nodes_without_forecast: int = 0

    @property
    def decisions(self) -> list[PlannedDecision]:
        """All decisions, made anew from the columns."""
        return [decision for planned in self.planned for decision in planned.decisions(self.node_names)]

    @property
    def failed(self) -> int:
        """How many decisions failed."""
        return sum(planned.n for planned in self.planned if planned.reason is not None)

    def written(self) -> Plan:
        """Return the plan with every decision as an object."""
        return plan_of(self.round, self.decisions, self.nodes_without_forecast)
