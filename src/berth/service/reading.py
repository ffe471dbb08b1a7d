"""The parts of the HTTP interface that only read: rounds, requests, nodes, health, metrics, the page."""

import re
from contextlib import suppress
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request
from prometheus_client import CONTENT_TYPE_LATEST
from starlette.responses import HTMLResponse, Response

from berth.service.answers import nodes_json, request_json, round_json, summary_json
from berth.service.page import SHOWN_ROUNDS, render
from berth.service.rounds import NotReadyError
from berth.service.running import Answer, Service, refused, unavailable
from berth.service.schemas import Health, NodeList, Refused, RequestAnswer, RoundAnswer, RoundList
from berth.service.wire import as_json

_UNAVAILABLE: dict[int | str, dict[str, Any]] = {
    503: {"model": Refused, "description": "Not available at present: try again"}
}
_MISSING: dict[int | str, dict[str, Any]] = {404: {"model": Refused, "description": "There is no such thing"}}
_INVALID: dict[int | str, dict[str, Any]] = {422: {"model": Refused, "description": "A parameter is wrong"}}
# The page is its own: nothing from elsewhere, no scripts, no frames.
_PAGE_HEADERS = {
    "content-security-policy": "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'",
    "cache-control": "no-store",
}

Limit = Annotated[int, Query(ge=1, le=1000, description="How many rounds at most")]
Before = Annotated[int | None, Query(ge=1, description="Only rounds with lower numbers")]


def add_readers(app: FastAPI, service: Service) -> None:
    """Add all routes that read."""
    _add_records(app, service)
    _add_cluster(app, service)
    _add_health(app, service)


def _add_records(app: FastAPI, service: Service) -> None:
    store = service.store

    @app.get("/rounds", response_model=RoundList, responses=_UNAVAILABLE | _INVALID)
    def rounds(limit: Limit = 100, before: Before = None) -> Response:
        """List rounds, the newest first."""
        return _json({"rounds": [summary_json(found) for found in store.rounds(limit, before)]})

    @app.get("/rounds/{number}", response_model=RoundAnswer, responses=_UNAVAILABLE | _MISSING | _INVALID)
    def one_round(number: str) -> Response:
        """Return a round with its plan."""
        is_number = re.fullmatch("[0-9]{1,18}", number, re.ASCII)
        found = store.round(int(number)) if is_number else None
        return _missing(f"there is no round {number}") if found is None else _json(round_json(found))

    @app.get(
        "/requests/{request_id}", response_model=RequestAnswer, responses=_UNAVAILABLE | _MISSING | _INVALID
    )
    def one_request(request_id: str) -> Response:
        """Return a request as it stands now."""
        found = store.request(request_id)
        return _missing(f"there is no request {request_id}") if found is None else _json(request_json(found))


def _add_cluster(app: FastAPI, service: Service) -> None:
    @app.get("/nodes", response_model=NodeList, responses=_UNAVAILABLE)
    def nodes() -> Response:
        """List the nodes with what is requested of them and what they offer."""
        try:
            view = service.rounds.view()
        except NotReadyError as error:
            return _response(unavailable(str(error)))
        return _json(nodes_json(view))

    @app.get("/", include_in_schema=False)
    def page(request: Request) -> Response:
        view = None
        with suppress(NotReadyError):
            view = service.rounds.view()
        store, cluster = service.store, service.rounds
        records = [store.round(summary.number) for summary in store.rounds(SHOWN_ROUNDS)]
        html = render(
            url=str(request.base_url).rstrip("/"),
            description=cluster.description,
            example=cluster.example,
            view=view,
            rounds=[record for record in records if record is not None],
            notices=[*service.troubles(), *filter(None, [cluster.notice])],
        )
        return HTMLResponse(html, headers=_PAGE_HEADERS)


def _add_health(app: FastAPI, service: Service) -> None:
    @app.get("/healthz", response_model=Health)
    async def healthz() -> Response:
        """Tell that the process lives."""
        return _json({"status": "ok", "reasons": []})

    @app.get("/readyz", response_model=Health, responses={503: {"model": Health, "description": "Not ready"}})
    def readyz() -> Response:
        """Tell whether lists are taken and carried out, and why not."""
        reasons = service.troubles()
        status = "not ready" if reasons else "ok"
        body = as_json({"status": status, "reasons": reasons})
        return _response(Answer(503 if reasons else 200, body))

    @app.get(
        "/metrics",
        response_class=Response,
        responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
    )
    def metrics() -> Response:
        """Return metrics in Prometheus' text format."""
        return Response(service.metrics.text(service.store), media_type=CONTENT_TYPE_LATEST)


def _json(value: object) -> Response:
    return Response(as_json(value), media_type="application/json")


def _missing(message: str) -> Response:
    return _response(refused(404, message))


def _response(answer: Answer) -> Response:
    return Response(answer.body, answer.status, headers=answer.headers)
