"""What the store holds, as the HTTP interface answers it."""

from datetime import UTC, datetime

import msgspec

from berth.service.nodes import ClusterView, quantities
from berth.store.interface import Entry, Request, RoundRecord, RoundSummary

Json = dict[str, object]


def request_json(request: Request) -> Json:
    """Return a request."""
    n_failed = sum(decided.reason is not None for decided in request.decisions)
    return {
        "requestId": request.id,
        "received": _time(request.received),
        "state": request.state,
        "round": request.round,
        "podList": [_entry_json(entry) for entry in request.entries],
        "done": len(request.decisions) - n_failed,
        "failed": n_failed,
        "decisions": [msgspec.to_builtins(decided) for decided in request.decisions],
        "retryOf": request.retry_of,
        "retriedAs": request.retried_as,
    }


def summary_json(summary: RoundSummary) -> Json:
    """Return a round as it stands in a list."""
    return {
        "round": summary.number,
        "began": _time(summary.began),
        "planned": _time(summary.planned),
        "finished": _time(summary.finished),
        "added": summary.added,
        "removed": summary.removed,
        "failed": summary.failed,
    }


def round_json(record: RoundRecord) -> Json:
    """Return a round with its plan."""
    plan = None if record.plan is None else msgspec.json.decode(record.plan)
    return {**summary_json(record.summary), "requests": list(record.requests), "plan": plan}


def nodes_json(view: ClusterView) -> Json:
    """Return all nodes."""
    return {
        "nodes": [
            {
                "name": node.name,
                "ready": node.ready,
                "schedulable": node.schedulable,
                "pods": node.pods,
                "requested": quantities(node.requested),
                "allocatable": quantities(node.allocatable),
            }
            for node in view.nodes
        ]
    }


def _entry_json(entry: Entry) -> Json:
    return {
        "operation": entry.operation,
        "namespace": entry.namespace,
        "serviceName": entry.service,
        "number": entry.number,
        "workload": entry.workload,
        "force": entry.force,
    }


def _time(seconds: float | None) -> str | None:
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
