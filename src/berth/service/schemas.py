"""What the HTTP interface takes and answers, as OpenAPI describes it. The field names are those on the wire."""

from typing import Any, Literal

from pydantic import BaseModel, Field


class FieldMistake(BaseModel):
    """One mistake in a request."""

    path: str = Field(description="Where: `podList[1].number`; empty for the whole body")
    value: Any = Field(description="What stands there; long values are cut")
    expected: str = Field(description="What was expected instead")


class Refused(BaseModel):
    """Nothing was queued, or there is nothing to show."""

    isSucceed: Literal[False]
    message: str
    errors: list[FieldMistake] = []


class Accepted(BaseModel):
    """The whole list stands in the queue, durably."""

    isSucceed: Literal[True]
    requestId: str = Field(examples=["r-000012"])


class PlanDecision(BaseModel):
    """One single-pod operation and what became of it."""

    request: str
    operation: Literal["add", "remove"]
    namespace: str
    service: str
    pod: str | None = Field(description="The pod that leaves")
    node: str | None
    score: int | None
    scores: dict[str, int] = Field(description="Of the chosen node, unweighted, by priority")
    feasible: int = Field(description="How many nodes passed")
    reason: str | None = Field(description="Why it failed")


class PlanAnswer(BaseModel):
    """A round's decisions, in the order in which they were made."""

    round: int
    decisions: list[PlanDecision]
    added: int
    removed: int
    failed: int
    nodesWithoutForecast: int


class RoundSummary(BaseModel):
    """A round in a list."""

    round: int
    began: str = Field(description="RFC 3339")
    planned: str | None
    finished: str | None
    added: int
    removed: int
    failed: int


class RoundList(BaseModel):
    """Rounds, the newest first."""

    rounds: list[RoundSummary]


class RoundAnswer(RoundSummary):
    """A round with its requests and its plan."""

    requests: list[str]
    plan: PlanAnswer | None = Field(description="Absent until it is recorded")


class Entry(BaseModel):
    """One element of a list, as it was taken."""

    operation: Literal["add", "remove"]
    namespace: str
    serviceName: str
    number: int
    workload: str | None
    force: bool


class RequestDecision(BaseModel):
    """What became of one single-pod operation of a request."""

    operation: Literal["add", "remove"]
    namespace: str
    service: str
    pod: str | None = Field(description="The pod that was made, or that went")
    node: str | None
    reason: str | None = Field(description="Why it failed")


class RequestAnswer(BaseModel):
    """A request as it stands now."""

    requestId: str
    received: str
    state: Literal["waiting", "planned", "applied", "failed"] = Field(
        description="`applied` if anything of it was carried out: each decision has its own reason"
    )
    round: int | None
    podList: list[Entry]
    done: int = Field(description="How many of its decisions were carried out")
    failed: int = Field(description="How many of them failed, each with its reason")
    decisions: list[RequestDecision]
    retryOf: str | None
    retriedAs: str | None


class NodeAnswer(BaseModel):
    """A node: amounts are Kubernetes quantities."""

    name: str
    ready: bool
    schedulable: bool
    pods: int
    requested: dict[str, str]
    allocatable: dict[str, str]


class NodeList(BaseModel):
    """The nodes, by name."""

    nodes: list[NodeAnswer]


class Health(BaseModel):
    """Whether all is well, and why not."""

    status: Literal["ok", "not ready"]
    reasons: list[str] = []


def request_body(max_number: int) -> dict[str, Any]:
    """Return the request body of ``/schedulePod`` and ``/plan`` as OpenAPI describes it."""
    number = {
        "oneOf": [
            {"type": "string", "pattern": "^[1-9][0-9]*$", "maxLength": len(str(max_number))},
            {"type": "integer", "minimum": 1, "maximum": max_number},
        ],
        "description": f"How many pods, at most {max_number}",
        "examples": ["3"],
    }
    entry = {
        "type": "object",
        "additionalProperties": False,
        "required": ["operation", "namespace", "serviceName", "number"],
        "properties": {
            "operation": {"type": "integer", "enum": [1, 2], "description": "1 adds pods, 2 removes pods"},
            "namespace": {"type": "string", "minLength": 1},
            "serviceName": {"type": "string", "minLength": 1},
            "number": number,
            "workload": {
                "type": "string",
                "description": "Where a service has several: `deployment/web`",
                "pattern": "^[A-Za-z]+/[^/]+$",
            },
            "force": {
                "type": "boolean",
                "description": "On a live cluster: also where a HorizontalPodAutoscaler sets the replicas",
            },
        },
    }
    schema = {
        "type": "object",
        "additionalProperties": False,
        "required": ["podList"],
        "properties": {"podList": {"type": "array", "minItems": 1, "items": entry}},
        "example": {"podList": [{"operation": 1, "namespace": "shop", "serviceName": "web", "number": "3"}]},
    }
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
