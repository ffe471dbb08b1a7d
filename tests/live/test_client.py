"""The client against an API server that refuses, fails, breaks off and falls silent."""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from kubernetes_asyncio.config import incluster_config

from berth.live.api_errors import (
    ApiError,
    ConflictError,
    ConnectionLostError,
    CredentialsError,
    ExpiredError,
    ObjectMissingError,
    error_of,
)
from berth.live.client import ApiClient, Repeat
from berth.live.credentials import Credentials
from berth.sim.control_plane.processes import free_port
from tests.live.fake_api import (
    Answer,
    FakeApi,
    a_client,
    a_kubeconfig,
    answer,
    cut,
    refusal,
    serving,
    silence,
)

Talk = Callable[[ApiClient], Awaitable[bytes]]


def talk(
    folder: Path, script: list[Answer], what: Talk, **limits: Any
) -> tuple[FakeApi, list[float], bytes | Exception]:
    """Have a client say something to an API server with a script; return what came of it."""

    async def run() -> tuple[FakeApi, list[float], bytes | Exception]:
        slept: list[float] = []
        async with serving() as api, a_client(folder, api.url, slept=slept, **limits) as client:
            api.script = list(script)
            try:
                return api, slept, await what(client)
            except (ApiError, ConnectionLostError, CredentialsError) as error:
                return api, slept, error

    return asyncio.run(run())


def a_get(client: ApiClient) -> Awaitable[bytes]:
    return client.get("/api/v1/pods")


def a_post(client: ApiClient) -> Awaitable[bytes]:
    return client.post("/api/v1/pods", {"a": 1})


def a_post_once(client: ApiClient) -> Awaitable[bytes]:
    return client.post("/api/v1/pods", {"a": 1}, repeat=Repeat.NEVER)


def a_post_repeated(client: ApiClient) -> Awaitable[bytes]:
    return client.post("/api/v1/pods", {"a": 1}, repeat=Repeat.FREELY)


def a_put(client: ApiClient) -> Awaitable[bytes]:
    return client.put("/api/v1/pods/a", {"a": 1})


def a_patch(client: ApiClient) -> Awaitable[bytes]:
    return client.patch("/api/v1/pods/a", {"a": 1})


def a_delete(client: ApiClient) -> Awaitable[bytes]:
    return client.delete("/api/v1/pods/a")


TOO_MANY = refusal(429, "TooManyRequests", {"Retry-After": "7"})
UNWELL = refusal(503, "ServiceUnavailable")
FINE = answer(body=b"fine")


@pytest.mark.parametrize("fault", [TOO_MANY, UNWELL, cut], ids=["429", "503", "cut"])
@pytest.mark.parametrize("what", [a_get, a_post, a_post_once, a_post_repeated, a_put, a_patch, a_delete])
def test_what_is_repeated(tmp_path: Path, what: Talk, fault: Answer) -> None:
    api, slept, came = talk(tmp_path, [fault, FINE], what)
    refused = fault is TOO_MANY
    harmless = what in (a_get, a_put, a_delete, a_post_repeated)
    if harmless or (refused and what is not a_post_once):
        assert came == b"fine"
        assert len(api.asked) == 2
        assert (slept[0] >= 7 if refused else 0 < slept[0] < 7) if slept else fault is cut
    else:
        assert isinstance(came, ConnectionLostError if fault is cut else ApiError)
        assert getattr(came, "was_sent", True)
        assert len(api.asked) == 1


def test_attempts_end_and_delays_grow(tmp_path: Path) -> None:
    api, slept, came = talk(tmp_path, [UNWELL] * 5, a_get, attempts=4, first_delay_s=1, longest_delay_s=3)
    assert isinstance(came, ApiError)
    assert (came.status, came.reason, came.message) == (503, "ServiceUnavailable", "no!")
    assert len(api.asked) == 4
    for delay, base in zip(slept, (1, 2, 3), strict=True):
        assert base / 2 <= delay <= base


@pytest.mark.parametrize(
    ("status", "kind"),
    [(404, ObjectMissingError), (409, ConflictError), (410, ExpiredError), (403, ApiError)],
)
def test_what_is_wrong_is_not_repeated(tmp_path: Path, status: int, kind: type[ApiError]) -> None:
    api, slept, came = talk(tmp_path, [refusal(status, "Why")], a_get)
    assert type(came) is kind
    assert str(came) == f"{status} Why: no!"
    assert (len(api.asked), slept) == (1, [])


def test_an_error_of_something_that_is_no_api_server() -> None:
    assert str(error_of(502, b"<html>Bad gateway</html>\n")) == "502 error: <html>Bad gateway</html>"
    assert str(error_of(500, b"")) == "500 error: no message"
    soon = error_of(504, b'{"details": {"retryAfterSeconds": 3}}', "Wed, 21 Oct 2025 07:28:00 GMT")
    assert soon.retry_after_s == 3


def test_without_a_connection_a_request_is_repeated_for_it_was_never_sent(tmp_path: Path) -> None:
    async def run() -> None:
        slept: list[float] = []
        async with a_client(tmp_path, f"http://127.0.0.1:{free_port()}", slept=slept, attempts=3) as client:
            with pytest.raises(ConnectionLostError, match="127") as caught:
                await a_post(client)
            assert not caught.value.was_sent
            assert len(slept) == 2
            with pytest.raises(ConnectionLostError):
                await a_post_once(client)
            assert len(slept) == 2

    asyncio.run(run())


def test_an_answer_that_never_comes_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    api, _, came = talk(tmp_path, [silence], a_post, total_s=0.2)
    assert isinstance(came, ConnectionLostError)
    assert came.was_sent
    assert len(api.asked) == 1


def test_the_body_and_the_headers_are_what_the_api_server_wants(tmp_path: Path) -> None:
    seen = []

    async def note(request: web.Request) -> web.Response:
        seen.append((await request.read(), {k.lower(): v for k, v in request.headers.items()}))
        return web.Response(body=b"{}")

    api, _, _ = talk(tmp_path, [note], lambda client: client.patch("/api/v1/p%2Fq?x=%3D", {"a": [1]}))
    assert api.asked == ["PATCH /api/v1/p%2Fq?x=%3D"]
    ((body, headers),) = seen
    assert json.loads(body) == {"a": [1]}
    assert headers["content-type"] == "application/merge-patch+json"
    assert headers["authorization"] == "Bearer secret"


# -- credentials ----------------------------------------------------------------------------------------------------------


def test_a_token_that_is_refused_is_got_anew_once_for_all(tmp_path: Path) -> None:
    """Of an exec plugin, which counts how often it runs; four requests are refused at the same time."""
    plugin, count = tmp_path / "plugin.py", tmp_path / "count"
    count.write_text("")
    plugin.write_text(
        f"""import json, pathlib
count = pathlib.Path({str(count)!r})
count.write_text(count.read_text() + "x")
print(json.dumps({{"kind": "ExecCredential", "apiVersion": "client.authentication.k8s.io/v1",
    "status": {{"token": "token-%d" % len(count.read_text())}}}}))
"""
    )
    user = f'{{exec: {{apiVersion: client.authentication.k8s.io/v1, command: "{sys.executable}", args: ["{plugin}"]}}}}'

    async def only_the_second(request: web.Request) -> web.Response:
        good = request.headers["Authorization"] == "Bearer token-2"
        return web.Response(status=200 if good else 401, body=b"fine")

    async def run() -> None:
        async with serving() as api, a_client(tmp_path, api.url, user=user) as client:
            api.script = [only_the_second] * 8
            assert await asyncio.gather(*(a_post_once(client) for _ in range(4))) == [b"fine"] * 4
            assert sorted(map(str, api.authorizations)) == ["Bearer token-1"] * 4 + ["Bearer token-2"] * 4
            api.script = [answer(401)] * 2
            with pytest.raises(ApiError, match="401"):
                await a_get(client)

    asyncio.run(run())
    assert count.read_text() == "xxx"


def test_a_service_accounts_token_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    token, certificate = tmp_path / "token", tmp_path / "ca.crt"
    token.write_text("one\n")
    certificate.write_bytes(Path(__file__).with_name("authority.crt").read_bytes())
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(token))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(certificate))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")

    async def run() -> None:
        credentials = Credentials()
        await credentials.load()
        assert (credentials.url, credentials.authorization) == ("https://[fd00::1]:443", "Bearer one")
        token.write_text("two\n")
        await credentials.refresh()
        assert credentials.authorization == "Bearer two"
        token.unlink()
        with pytest.raises(CredentialsError, match="token"):
            await credentials.refresh()
        assert credentials.authorization == "Bearer two"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (None, "no such kubeconfig"),
        ("{", "kubeconfig: "),
        ("[]", "kubeconfig: "),
        ("{}", "kubeconfig: "),
        ("current-context: x\ncontexts: []\nclusters: []\nusers: []", "name x"),
    ],
)
def test_a_kubeconfig_that_is_none(tmp_path: Path, text: str | None, words: str) -> None:
    file = tmp_path / "kubeconfig"
    if text is not None:
        file.write_text(text)
    with pytest.raises(CredentialsError, match=words):
        asyncio.run(Credentials(file).load())


def test_certificates_are_checked_unless_the_kubeconfig_says_otherwise(tmp_path: Path) -> None:
    file = a_kubeconfig(tmp_path, "https://127.0.0.1:1")

    async def verifies() -> bool:
        credentials = Credentials(file)
        await credentials.load()
        return credentials.tls.check_hostname and credentials.tls.verify_mode.name == "CERT_REQUIRED"

    assert asyncio.run(verifies())
    file.write_text(file.read_text().replace("server:", "insecure-skip-tls-verify: true, server:"))
    assert not asyncio.run(verifies())
