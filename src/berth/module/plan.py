"""The plan: what a round decided, as it is recorded, answered and printed."""

from typing import Literal

import msgspec


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
