"""An API server that does what a test has written down for it: the faults that a real one shows too seldom."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from aiohttp import web

from berth.live.client import ApiClient, Limits
from berth.live.credentials import Credentials

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "URL/"}}]
users: [{name: u, user: USER}]
contexts: [{name: x, context: {cluster: c, user: u}}]
current-context: x
"""


class FakeApi:
    """Gives the answers of `script` in their order, and notes what it was asked."""

    def __init__(self) -> None:
        self.script: list[Answer] = []
        self.asked: list[str] = []
        self.authorizations: list[str | None] = []
        self.url = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(f"{request.method} {request.path_qs}")
        self.authorizations.append(request.headers.get("Authorization"))
        if not self.script:
            await asyncio.Event().wait()  # nothing more is to come
        return await self.script.pop(0)(request)

    def watches(self) -> list[str]:
        """The resource versions from which watches were asked for."""
        return [a.split("resourceVersion=")[1].split("&")[0] for a in self.asked if "watch=1" in a]


@asynccontextmanager
async def serving() -> AsyncIterator[FakeApi]:
    api = FakeApi()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", api.handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1, handler_cancellation=True)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    assert runner.addresses
    api.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield api
    finally:
        await runner.cleanup()


def a_kubeconfig(folder: Path, url: str, user: str = "{token: secret}") -> Path:
    file = folder / "kubeconfig"
    file.write_text(KUBECONFIG.replace("URL", url).replace("USER", user), "utf-8")
    return file


def a_client(
    folder: Path, url: str, *, slept: list[float] | None = None, user: str = "{token: secret}", **limits: Any
) -> ApiClient:
    """A client that does not sleep, but notes how long it would have."""

    async def sleep(seconds: float) -> None:
        if slept is not None:
            slept.append(seconds)

    credentials = Credentials(a_kubeconfig(folder, url, user))
    return ApiClient(credentials, Limits(**limits), sleep=sleep)


def answer(status: int = 200, body: object = b"{}", headers: Mapping[str, str] | None = None) -> Answer:
    async def give(request: web.Request) -> web.Response:
        await request.read()
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        return web.Response(status=status, body=data, headers=headers)

    return give


def refusal(
    status: int, reason: str = "", headers: Mapping[str, str] | None = None, **more: object
) -> Answer:
    """An error as the API server gives it."""
    return answer(
        status, {"kind": "Status", "message": "no!", "reason": reason, "code": status} | more, headers
    )


async def cut(request: web.Request) -> web.Response:
    """Break the connection off after the request was read."""
    await request.read()
    assert request.transport is not None
    request.transport.close()
    return web.Response()


async def silence(request: web.Request) -> web.Response:
    """Never answer."""
    await asyncio.Event().wait()
    return web.Response()


def stream(*lines: object, then: str = "end") -> Answer:
    """A watch: objects become lines, bytes are sent as they are; then it ends, or falls silent."""

    async def give(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for line in lines:
            await response.write(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n")
        if then == "silence":
            await asyncio.Event().wait()
        return response

    return give


def a_list(version: int, *items: dict[str, Any], rest: str = "") -> Answer:
    meta = {"resourceVersion": str(version)} | ({"continue": rest} if rest else {})
    return answer(body={"kind": "List", "metadata": meta, "items": list(items)})


def an_object(name: str, version: int, uid: str = "", **more: Any) -> dict[str, Any]:
    meta = {
        "name": name,
        "namespace": "default",
        "uid": uid or f"uid-{name}",
        "resourceVersion": str(version),
    }
    return {"metadata": meta, **more}


def an_event(kind: str, item: dict[str, Any]) -> dict[str, Any]:
    return {"type": kind, "object": item}
