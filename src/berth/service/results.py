"""What a round leaves in the store: the outcome of each request, and the objects that it changed."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from berth.cluster.cluster import Cluster
from berth.live.module.orders import Outcome as LiveOutcome
from berth.module.apply import Applied, ObjectKey
from berth.module.changes import Change, parse_workload
from berth.module.plan import Plan, PlannedDecision, plan_of
from berth.module.rounds import Round
from berth.sources.writer import named_object, pod_objects
from berth.store.interface import Decided, Entry, ObjectChange, OpenRound, Outcome, RoundResult

_encode = msgspec.json.encode


def changes_of(taken: OpenRound) -> list[Change]:
    """Return what a round's requests ask for, in order of arrival."""
    return [change_of(entry, request.id) for request in taken.requests for entry in request.entries]


def change_of(entry: Entry, request: str) -> Change:
    """Return what an entry asks for."""
    workload = None if entry.workload is None else parse_workload(entry.workload)
    return Change(
        request, entry.operation, entry.namespace, entry.service, entry.number, workload, entry.force
    )


def entry_of(change: Change) -> Entry:
    """Return a change as the store keeps it."""
    workload = None if change.workload is None else str(change.workload)
    return Entry(change.operation, change.namespace, change.service, change.number, workload, change.force)


def result_of(taken: OpenRound, plan: Plan, decided: Round, applied: Applied) -> RoundResult:
    """Return the result of a round that was applied to its cluster."""
    return RoundResult(
        plan=_encode(plan),
        outcomes=outcomes_of(taken, plan, decided, applied.created),
        added=plan.added,
        removed=plan.removed,
        failed=plan.failed,
        tie_counter=decided.ties.counter,
        changes=list(object_changes(decided.cluster, applied.touched)),
    )


def live_result(
    taken: OpenRound, plan: Plan, outcomes: Mapping[int, LiveOutcome], tie_counter: int
) -> RoundResult:
    """Return the result of a round that was carried out on a live cluster, given what became of its decisions."""
    nothing = LiveOutcome()
    decided: dict[str, list[Decided]] = {request.id: [] for request in taken.requests}
    applied = set()
    again: dict[str, Counter[Entry]] = {request.id: Counter() for request in taken.requests}
    for i, decision in enumerate(plan.decisions):
        outcome = outcomes.get(i, nothing)
        decision.reason = decision.reason or outcome.reason
        if i in outcomes and outcome.reason is None:
            applied.add(decision.request)
        if outcome.again:
            again[decision.request][_entry_behind(taken, decision)] += 1
        decided[decision.request].append(
            Decided(
                decision.operation,
                decision.namespace,
                decision.service,
                pod=outcome.pod or decision.pod,
                node=outcome.node or decision.node,
                reason=decision.reason,
            )
        )
    final = plan_of(plan.round, plan.decisions, plan.nodes_without_forecast)
    ends = [
        Outcome(
            request.id,
            "applied" if request.id in applied else "failed",
            tuple(decided[request.id]),
            tuple(
                msgspec.structs.replace(entry, number=n)
                for entry, n in again[request.id].items()
                if request.retry_of is None
            ),
        )
        for request in taken.requests
    ]
    return RoundResult(_encode(final), ends, final.added, final.removed, final.failed, tie_counter)


def _entry_behind(taken: OpenRound, decision: PlannedDecision) -> Entry:
    """Return the entry of its request that a decision was made for."""
    wanted = decision.operation, decision.namespace, decision.service
    return next(
        entry
        for request in taken.requests
        if request.id == decision.request
        for entry in request.entries
        if (entry.operation, entry.namespace, entry.service) == wanted
    )


def failed_result(taken: OpenRound, reason: str, tie_counter: int) -> RoundResult:
    """Return the result of a round of which nothing was applied, for a reason of its own."""
    plan = Plan(round=taken.number, decisions=[])
    outcomes = [
        Outcome(
            request.id,
            "failed",
            tuple(Decided(e.operation, e.namespace, e.service, reason=reason) for e in request.entries),
        )
        for request in taken.requests
    ]
    failed = sum(entry.number for request in taken.requests for entry in request.entries)
    return RoundResult(_encode(plan), outcomes, 0, 0, failed, tie_counter)


def outcomes_of(taken: OpenRound, plan: Plan, decided: Round, created: Sequence[str | None]) -> list[Outcome]:
    """Return each request's end: applied if anything of it was done, with all its decisions."""
    by_request: dict[str, list[Decided]] = {request.id: [] for request in taken.requests}
    done = {
        planned.change.request
        for planned, effect in zip(decided.planned, decided.effects, strict=True)
        if effect is not None
    }
    for decision, new_name in zip(plan.decisions, created, strict=True):
        by_request[decision.request].append(
            Decided(
                decision.operation,
                decision.namespace,
                decision.service,
                pod=new_name or decision.pod,
                node=decision.node,
                reason=decision.reason,
            )
        )
    return [
        Outcome(request, "applied" if request in done else "failed", tuple(decisions))
        for request, decisions in by_request.items()
    ]


def object_changes(cluster: Cluster, touched: Sequence[ObjectKey]) -> Iterator[ObjectChange]:
    """Yield what was touched as it is now."""
    pods = [key for key in touched if key.kind == "Pod" and key.exists]
    ids = [cluster.pods.find(cluster.namespaces.find(key.namespace), key.name) for key in pods]
    shelves = cluster.objects.by_kind()
    for key in touched:
        if not key.exists:
            yield ObjectChange(key.kind, key.namespace, key.name, None)
        elif key.kind != "Pod":
            item = shelves[key.kind].get(key.namespace, key.name)
            assert item is not None  # touched in this very round
            yield ObjectChange(key.kind, key.namespace, key.name, named_object(item))
    for key, body in zip(pods, pod_objects(cluster, ids), strict=True):
        yield ObjectChange("Pod", key.namespace, key.name, body)
