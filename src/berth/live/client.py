"""The client of a kube-apiserver: JSON over HTTP, with retries where repeating does no harm. Knows no kinds of objects."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from enum import Enum
from random import Random
from types import TracebackType
from typing import Self

import aiohttp
import msgspec
from multidict import CIMultiDict
from yarl import URL

from berth.live.api_errors import ApiError, ConnectionLostError, CredentialsError, error_of
from berth.live.backoff import Backoff
from berth.live.credentials import Credentials

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

_REFRESH_S = 60.0
_TOO_MANY_REQUESTS = 429
_UNAUTHORIZED = 401

log = logging.getLogger(__name__)

Sleep = Callable[[float], Awaitable[None]]


class Repeat(Enum):
    """When a request that failed is sent again.

    NEVER: the caller wants to hear of every failure. IF_REFUSED: when it is known to have done nothing: there was no
    connection, or the answer was 429. FREELY: also when it may have been carried out (5xx, the connection broke), for doing
    it twice is doing it once; the second answer may then be 404 (DELETE) or 409 (PUT with a resource version).
    """

    NEVER = 0
    IF_REFUSED = 1
    FREELY = 2


@dataclass(frozen=True, slots=True)
class Limits:
    """How long and how often. [seconds]

    Attributes
    ----------
    total_s : float
        For a whole request, waiting for a free connection included.
    connections : int
        So many at once, watches aside.
    attempts : int
        So many in all for each request.
    """

    connect_s: float = 10.0
    total_s: float = 60.0
    connections: int = 64
    attempts: int = 6
    first_delay_s: float = 0.1
    longest_delay_s: float = 10.0


class ApiClient:
    """Speaks with one API server; an async context manager.

    A body is anything that msgspec encodes, bytes are sent as they are; an answer is bytes. Paths are as they stand on the
    wire, with their query: ``/api/v1/namespaces/default/pods?limit=500``.

    Every method raises
    `berth.live.api_errors.ApiError` for an answer that is none, `ConnectionLostError` where there is none, and
    `CredentialsError`.
    """

    def __init__(
        self,
        credentials: Credentials,
        limits: Limits | None = None,
        *,
        random: Random | None = None,
        sleep: Sleep = asyncio.sleep,
        user_agent: str = "berth",
    ) -> None:
        self._credentials = credentials
        self._limits = limits or Limits()
        self._random = random or Random()
        self._sleep = sleep
        self._user_agent = user_agent
        self._session: aiohttp.ClientSession | None = None
        self._watches: aiohttp.ClientSession | None = None
        self._headers: dict[str, CIMultiDict[str]] = {}
        self._base = ""
        self._refresh_at = 0.0
        self._refreshing = asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self._credentials.load()
        self._take_credentials()
        limits, server = self._limits, self._credentials
        timeout = aiohttp.ClientTimeout(total=limits.total_s, sock_connect=limits.connect_s)
        self._session = self._open(server, limits.connections, timeout)
        self._watches = self._open(server, 0, aiohttp.ClientTimeout(sock_connect=limits.connect_s))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for session in (self._session, self._watches):
            if session is not None:
                await session.close()

    async def get(self, path: str) -> bytes:
        """Get an object, or a page of a list."""
        return await self.request("GET", path, repeat=Repeat.FREELY)

    async def post(self, path: str, body: object, *, repeat: Repeat = Repeat.IF_REFUSED) -> bytes:
        """Create an object, or a subresource such as a binding.

        After `ConnectionLostError` with ``was_sent`` and after 5xx nobody knows whether it is there. Repeated freely, an
        object with a name of its own gives 409 when it was.
        """
        return await self.request("POST", path, body, repeat=repeat)

    async def put(self, path: str, body: object) -> bytes:
        """Replace an object; with its resource version, a repetition can't undo what others did meanwhile."""
        return await self.request("PUT", path, body, repeat=Repeat.FREELY)

    async def patch(
        self, path: str, body: object, content_type: str = MERGE_PATCH, *, repeat: Repeat = Repeat.IF_REFUSED
    ) -> bytes:
        """Change some fields. A merge patch that says what fields shall be may be repeated freely."""
        return await self.request("PATCH", path, body, repeat=repeat, content_type=content_type)

    async def delete(self, path: str, body: object = b"") -> bytes:
        """Delete an object; ``body`` are DeleteOptions, which should name the uid, for the name may be another's by then."""
        return await self.request("DELETE", path, body, repeat=Repeat.FREELY)

    async def request(
        self, method: str, path: str, body: object = b"", *, repeat: Repeat, content_type: str = JSON
    ) -> bytes:
        """Send a request, again if ``repeat`` allows it, and return the answer's body."""
        data = body if isinstance(body, bytes) else msgspec.json.encode(body)
        limits = self._limits
        backoff: Backoff | None = None
        for attempt in range(1, limits.attempts + 1):
            try:
                return await self._send(method, path, data, content_type)
            except (ApiError, ConnectionLostError) as error:
                if attempt == limits.attempts or not _may_repeat(error, repeat):
                    raise
                retry_after_s = error.retry_after_s if isinstance(error, ApiError) else None
            if backoff is None:
                backoff = Backoff(limits.first_delay_s, limits.longest_delay_s, self._random)
            await self._sleep(backoff.next_s(retry_after_s))
        raise AssertionError("limits allow no attempt")

    def watch(self, path: str, *, idle_s: float) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Open a watch: a context manager that gives its bytes as they come. Nothing is repeated.

        Parameters
        ----------
        idle_s : float
            After so long without a byte the connection counts as lost.
        """
        return self._watch(path, idle_s)

    @asynccontextmanager
    async def _watch(self, path: str, idle_s: float) -> AsyncIterator[AsyncIterator[bytes]]:
        session, headers = self._watches, await self._fresh_headers(JSON)
        assert session is not None
        timeout = aiohttp.ClientTimeout(sock_connect=self._limits.connect_s, sock_read=idle_s)
        try:
            async with session.get(
                URL(self._base + path, encoded=True),
                headers=headers,
                timeout=timeout,
                server_hostname=self._credentials.server_name,
            ) as response:
                if response.status != 200:
                    if response.status == _UNAUTHORIZED:
                        await self._renew(headers)
                    raise error_of(
                        response.status, await response.read(), response.headers.get("Retry-After")
                    )
                yield response.content.iter_any()
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _lost(error, self._base) from error

    async def _send(self, method: str, path: str, data: bytes, content_type: str) -> bytes:
        headers = await self._fresh_headers(content_type)
        status, body, retry_after = await self._exchange(method, path, data, headers)
        if status == _UNAUTHORIZED:
            # It has done nothing: with new credentials it may go better.
            await self._renew(headers)
            headers = self._headers[content_type]
            status, body, retry_after = await self._exchange(method, path, data, headers)
        if status < 300:
            return body
        raise error_of(status, body, retry_after)

    async def _exchange(
        self, method: str, path: str, data: bytes, headers: CIMultiDict[str]
    ) -> tuple[int, bytes, str | None]:
        assert self._session is not None, "the client is not open"
        try:
            async with self._session.request(
                method,
                URL(self._base + path, encoded=True),
                data=data or None,
                headers=headers,
                server_hostname=self._credentials.server_name,
            ) as response:
                return response.status, await response.read(), response.headers.get("Retry-After")
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _lost(error, self._base) from error

    # -- credentials -------------------------------------------------------------------------------------------------

    async def _fresh_headers(self, content_type: str) -> CIMultiDict[str]:
        if time.monotonic() >= self._refresh_at:
            async with self._refreshing:
                if time.monotonic() >= self._refresh_at:
                    await self._refresh()
        return self._headers[content_type]

    async def _refresh(self) -> None:
        try:
            await self._credentials.refresh()
        except CredentialsError as error:
            # Those we have may still do; when they do not, the server says so, and `_renew` tells the caller.
            log.warning("credentials can't be read again: %s", error)
        self._take_credentials()

    async def _renew(self, refused: CIMultiDict[str]) -> None:
        """Get new credentials, unless another request has got some since the refused ones were sent."""
        async with self._refreshing:
            if all(refused is not headers for headers in self._headers.values()):
                return
            await self._credentials.refresh(anew=True)
            self._take_credentials()

    def _take_credentials(self) -> None:
        self._base = self._credentials.url
        self._refresh_at = time.monotonic() + _REFRESH_S
        common = {"Accept": JSON, "Accept-Encoding": "identity", "User-Agent": self._user_agent}
        if self._credentials.authorization:
            common["Authorization"] = self._credentials.authorization
        self._headers = {
            kind: CIMultiDict(common, **{"Content-Type": kind})
            for kind in (JSON, MERGE_PATCH, STRATEGIC_PATCH)
        }

    def _open(
        self, server: Credentials, connections: int, timeout: aiohttp.ClientTimeout
    ) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=server.tls, limit=connections),
            timeout=timeout,
            cookie_jar=aiohttp.DummyCookieJar(),
            proxy=server.proxy,
            read_bufsize=1 << 18,
        )


def _may_repeat(error: ApiError | ConnectionLostError, repeat: Repeat) -> bool:
    if isinstance(error, ApiError):
        refused = error.status == _TOO_MANY_REQUESTS
        failed = error.status >= 500 and error.status != 501
    else:
        refused, failed = not error.was_sent, True
    return (refused and repeat is not Repeat.NEVER) or (failed and repeat is Repeat.FREELY)


def _lost(error: Exception, server: str) -> ConnectionLostError:
    never_sent = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
    return ConnectionLostError(f"{server}: {str(error) or type(error).__name__}", was_sent=not never_sent)
