"""Keeps others informed of all objects of a kind: lists them, watches them, and finds out what it has missed.

As ``client-go``'s Reflector (1.36, tools/cache/reflector.go): a watch goes on where the last one ended; when the API server
has forgotten that version (410), all is listed again, and what is gone by then is told as deleted.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from random import Random
from typing import Literal
from urllib.parse import quote

import msgspec

from berth.live.api_errors import (
    ApiError,
    ConnectionLostError,
    CredentialsError,
    ExpiredError,
    ObjectMissingError,
    error_of,
)
from berth.live.backoff import Backoff
from berth.live.client import ApiClient
from berth.live.events import Event, Handler
from berth.live.resources import Arrived, Page, Resource

log = logging.getLogger(__name__)

_TROUBLE = (ApiError, ConnectionLostError, CredentialsError, msgspec.DecodeError)
_MAX_REFUSED = 3


@dataclass(frozen=True, slots=True)
class Pace:
    """How a reflector goes about it. [seconds]

    Attributes
    ----------
    page : int
        Objects in a page of a list.
    watch_s : float
        A watch is ended by the server after this, or up to twice as long.
    idle_s : float
        A watch without a byte for so long counts as lost. Bookmarks come once a minute.
    absent_s : float
        When to look again for a kind that the API server does not know.
    """

    page: int = 500
    watch_s: float = 300.0
    idle_s: float = 150.0
    first_delay_s: float = 0.8
    longest_delay_s: float = 30.0
    absent_s: float = 300.0


class Reflector:
    """Of one kind.

    Attributes
    ----------
    synced : asyncio.Event
        Set once all objects of a first list have been told.
    trouble : str
        What went wrong last; empty while all is well.
    n_lists : int
        How often all was listed.
    """

    def __init__(
        self,
        client: ApiClient,
        resource: Resource,
        handle: Handler,
        pace: Pace | None = None,
        random: Random | None = None,
    ) -> None:
        self.resource = resource
        self.synced = asyncio.Event()
        self.trouble = ""
        self.n_lists = 0
        self._client = client
        self._handle = handle
        self._pace = pace = pace or Pace()
        self._random = random or Random()
        self._uid_of: dict[tuple[str, str], str] = {}
        self._version = ""
        self._backoff = Backoff(pace.first_delay_s, pace.longest_delay_s, self._random)

    async def run(self) -> None:
        """List and watch until cancelled. Raises only what a handler raises."""
        while True:
            try:
                await self._list()
            except ObjectMissingError as error:
                self._note(error)
                self._forget_all_but(set())
                self.synced.set()
                await asyncio.sleep(self._pace.absent_s)
            except _TROUBLE as error:
                await self._pause(error)
            else:
                await self._watch_on()

    # -- lists -------------------------------------------------------------------------------------------------------

    async def _list(self) -> None:
        try:
            version, found = await self._take_pages(self._pace.page)
        except ExpiredError as error:
            # The token of a page was too old: page by page, it might be so again.
            self._note(error)
            version, found = await self._take_pages(0)
        self._forget_all_but(found)
        self._version = version
        self.n_lists += 1
        self.trouble = ""  # but the delays stay: that lists succeed says nothing of watches
        self.synced.set()

    async def _take_pages(self, limit: int) -> tuple[str, set[tuple[str, str]]]:
        found: set[tuple[str, str]] = set()
        version = ""
        async for page in self._pages(limit):
            version = page.resource_version
            for arrived in page.items:
                self._put(arrived)
                found.add((arrived.namespace, arrived.name))
        return version, found

    async def _pages(self, limit: int) -> AsyncIterator[Page]:
        rest = ""
        while True:
            query = f"?limit={limit}" + (f"&continue={quote(rest, safe='')}" if rest else "")
            page = self.resource.page(await self._client.get(self.resource.path + query))
            yield page
            rest = page.rest
            if not rest:
                return

    def _forget_all_but(self, found: set[tuple[str, str]]) -> None:
        for key in [key for key in self._uid_of if key not in found]:
            self._tell_gone(key, None)

    # -- watches -----------------------------------------------------------------------------------------------------

    async def _watch_on(self) -> None:
        """Watch, again and again, until all has to be listed anew."""
        n_refused = 0
        while True:
            start, version = time.monotonic(), self._version
            try:
                await self._watch()
                if self._version == version and time.monotonic() - start < 1.0:
                    raise ConnectionLostError("the watch ended at once", was_sent=True)
            except ExpiredError as error:
                await self._pause(error)
                return
            except _TROUBLE as error:
                # Without a connection there is nothing to list either; refused again and again, the version is to blame.
                is_refused = isinstance(error, ApiError | msgspec.DecodeError)
                n_refused = n_refused + is_refused if self._version == version else 0
                if time.monotonic() - start > self._pace.longest_delay_s:
                    self._backoff.reset()
                await self._pause(error)
                if n_refused == _MAX_REFUSED:
                    return

    async def _watch(self) -> None:
        timeout_s = int(self._pace.watch_s * self._random.uniform(1.0, 2.0))
        path = (
            f"{self.resource.path}?watch=1&allowWatchBookmarks=true"
            f"&resourceVersion={quote(self._version, safe='')}&timeoutSeconds={max(timeout_s, 1)}"
        )
        async with self._client.watch(path, idle_s=self._pace.idle_s) as chunks:
            self.trouble = ""
            rest = b""
            async for chunk in chunks:
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    if line:
                        self._take_line(line)

    def _take_line(self, data: bytes) -> None:
        line = self.resource.line(data)
        if line.status is not None:
            raise error_of(line.status.code, msgspec.json.encode(line.status))
        arrived = line.arrived
        if arrived is None:
            return
        if line.type == "DELETED":
            self._tell_gone((arrived.namespace, arrived.name), arrived)
        elif line.type in ("ADDED", "MODIFIED"):
            self._put(arrived)
        self._version = arrived.resource_version
        self._backoff.reset()

    # -- telling -----------------------------------------------------------------------------------------------------

    def _put(self, arrived: Arrived) -> None:
        key = (arrived.namespace, arrived.name)
        known = self._uid_of.get(key)
        if known is not None and known != arrived.uid:
            self._tell_gone(key, None)
            known = None
        self._uid_of[key] = arrived.uid
        type_: Literal["ADDED", "MODIFIED"] = "ADDED" if known is None else "MODIFIED"
        version = arrived.resource_version
        self._handle(Event(type_, self.resource.name, *key, arrived.uid, arrived.item, version=version))

    def _tell_gone(self, key: tuple[str, str], last: Arrived | None) -> None:
        uid = self._uid_of.pop(key, None)
        if uid is not None:
            self._handle(Event("DELETED", self.resource.name, *key, uid, last.item if last else None))

    # -- trouble -----------------------------------------------------------------------------------------------------

    async def _pause(self, error: Exception) -> None:
        self._note(error)
        retry_after_s = error.retry_after_s if isinstance(error, ApiError) else None
        await asyncio.sleep(self._backoff.next_s(retry_after_s))

    def _note(self, error: Exception) -> None:
        if not self.trouble:
            log.warning("%s: %s", self.resource.name, error)
        self.trouble = str(error)
