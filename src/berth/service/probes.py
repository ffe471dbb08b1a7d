"""Health and metrics of a live scheduler over HTTP: what a kubelet and Prometheus ask for."""

from collections.abc import Callable

from fastapi import FastAPI
from starlette.responses import PlainTextResponse, Response

_PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


def make_probes(troubles: Callable[[], list[str]], metrics: Callable[[], bytes]) -> FastAPI:
    """Make an application with ``/healthz``, ``/readyz`` and ``/metrics``.

    Parameters
    ----------
    troubles : callable
        Returns why the scheduler can't do its work at present, a sentence each; empty if it can.
    metrics : callable
        Returns all metrics in Prometheus' text format.
    """
    app = FastAPI(title="Berth", summary="A live scheduler", docs_url=None, redoc_url=None)

    @app.get("/healthz", summary="Is the process alive?")
    async def healthz() -> Response:
        return PlainTextResponse("ok\n")

    @app.get("/readyz", summary="Can it schedule at present?")
    async def readyz() -> Response:
        found = troubles()
        text = "".join(f"{line}\n" for line in found) or "ok\n"
        return PlainTextResponse(text, 503 if found else 200)

    @app.get("/metrics", summary="Metrics in Prometheus' text format")
    async def all_metrics() -> Response:
        return Response(metrics(), media_type=_PROMETHEUS)

    return app
