"""The HTTP application: ``POST /schedulePod`` and ``POST /plan``; what is read is in `reading`."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from urllib.parse import urlsplit

from fastapi import FastAPI, Header, Request
from fastapi.exceptions import RequestValidationError
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import Response

from berth.module.changes import FieldError
from berth.service.reading import add_readers
from berth.service.running import Answer, Service, refused, unavailable
from berth.service.schemas import Accepted, PlanAnswer, Refused, request_body
from berth.service.wire import as_json, errors_as_json
from berth.store.interface import StoreUnavailable

REFUSALS: dict[int | str, dict[str, Any]] = {
    400: {"model": Refused, "description": "Mistakes in the body: all of them"},
    403: {"model": Refused, "description": "Sent by a web page of another origin"},
    404: {"model": Refused, "description": "A service or workload that is not there"},
    413: {"model": Refused, "description": "The body is too large"},
    503: {
        "model": Refused,
        "description": "The store, or the cluster, is not available at present: try again",
    },
}
_CONFLICT: dict[int | str, dict[str, Any]] = {
    422: {"model": Refused, "description": "The Idempotency-Key came before with another body"}
}


class TooLargeError(Exception):
    """The body is larger than the settings allow."""


def make_app(service: Service) -> FastAPI:
    """Make the application; the service runs for as long as it does."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        try:
            yield
        finally:
            await run_in_threadpool(service.stop)

    app = FastAPI(
        title="Berth",
        summary="Decides where Kubernetes pods go, and which of them leave",
        version=_version(),
        lifespan=lifespan,
        docs_url=None,  # its page would load scripts from elsewhere
        redoc_url=None,
    )
    _add_errors(app)
    _add_posts(app, service)
    add_readers(app, service)
    return app


def _version() -> str:
    try:
        return version("berth")
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "unknown"


def _add_posts(app: FastAPI, service: Service) -> None:
    limit = service.settings.server.max_body_bytes
    body_schema = request_body(service.settings.module.max_number)

    @app.post(
        "/schedulePod",
        summary="Add or remove pods: queue a list for the next round",
        response_model=Accepted,
        responses=REFUSALS | _CONFLICT,
        openapi_extra=body_schema,
    )
    async def schedule_pod(
        request: Request,
        idempotency_key: str | None = Header(
            default=None, description="Makes a repetition harmless: it gets the first answer again"
        ),
    ) -> Response:
        return await _post(request, limit, lambda body: service.submit(body, idempotency_key))

    @app.post(
        "/plan",
        summary="Say what a round with this list would decide now; nothing is queued",
        response_model=PlanAnswer,
        responses=REFUSALS,
        openapi_extra=body_schema,
    )
    async def plan(request: Request) -> Response:
        return await _post(request, limit, service.plan)


_DISCARDED_LIMITS = 8
_DISCARD_SECONDS = 2.0


async def _post(request: Request, limit: int, answer: Callable[[bytes], Answer]) -> Response:
    """Read a body and answer it in a thread: the store's commits and long dry runs hold up nobody else."""
    if _is_foreign(request):
        return to_response(refused(403, "a web page of another origin may not post here"))
    try:
        body = await _read(request, limit)
    except TooLargeError:
        # A client that writes all before it reads would lose the answer if the connection closed under it.
        await _discard(request, _DISCARDED_LIMITS * limit)
        told = refused(413, f"the body is larger than {limit} bytes")
        return to_response(told, {"connection": "close"})
    except ClientDisconnect:
        return to_response(refused(400, "the client went away"))
    return to_response(await run_in_threadpool(answer, body))


async def _read(request: Request, limit: int) -> bytes:
    announced = request.headers.get("content-length", "")
    if announced.isascii() and announced.isdigit() and (len(announced) > 18 or int(announced) > limit):
        raise TooLargeError
    body = bytearray()
    async for chunk in request.stream():
        body += chunk
        if len(body) > limit:
            raise TooLargeError
    return bytes(body)


async def _discard(request: Request, most: int) -> None:
    """Read on and drop what comes, within bounds: what is larger or slower than that finds the connection closed."""
    with suppress(
        TimeoutError, ClientDisconnect, RuntimeError
    ):  # RuntimeError: the stream was read to its end
        async with asyncio.timeout(_DISCARD_SECONDS):
            async for chunk in request.stream():
                most -= len(chunk)
                if most <= 0:
                    return


def _is_foreign(request: Request) -> bool:
    """Tell whether a browser sends this for a page that is not ours, which it would do with any plain text."""
    origin = request.headers.get("origin")
    return origin is not None and urlsplit(origin).netloc != request.headers.get("host")


def to_response(answer: Answer, headers: dict[str, str] | None = None) -> Response:
    """Return an answer as HTTP."""
    return Response(answer.body, answer.status, headers={**answer.headers, **(headers or {})})


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(StoreUnavailable)
    async def store_unavailable(_: Request, error: Exception) -> Response:
        return to_response(unavailable(str(error)))

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        mistakes = [
            FieldError(".".join(map(str, found["loc"][1:])), found.get("input"), found["msg"])
            for found in error.errors()
        ]
        message = "; ".join(f"{mistake.path}: {mistake.expected}" for mistake in mistakes)
        body = {"isSucceed": False, "message": message, "errors": errors_as_json(mistakes)}
        return to_response(Answer(422, as_json(body)))

    @app.exception_handler(HTTPException)
    async def http_error(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return to_response(refused(error.status_code, error.detail), dict(error.headers or {}))

    @app.exception_handler(Exception)
    async def internal(_: Request, error: Exception) -> Response:
        del error  # uvicorn logs it
        return to_response(refused(500, "internal error: see the log"))
