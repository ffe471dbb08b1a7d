"""A TCP proxy that can go bad: to stand between a client and a kube-apiserver."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Proxy:
    """Passes on bytes. `silent`, it takes them and gives none: a connection that nobody knows is dead."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self.silent = False
        self.n_accepted = 0
        self.port = 0

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.n_accepted += 1
        self._writers.add(writer)
        try:
            onward_reader, onward = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.close()
            return
        self._writers.add(onward)
        await asyncio.gather(self._pass(reader, onward), self._pass(onward_reader, writer))

    def cut(self) -> None:
        """Break off all connections."""
        for writer in self._writers:
            writer.transport.abort()
        self._writers.clear()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(1 << 16):
                if not self.silent:
                    writer.write(data)
                    await writer.drain()
        except OSError:
            pass
        finally:
            if not self.silent:
                writer.close()


@asynccontextmanager
async def proxying(target: int) -> AsyncIterator[Proxy]:
    """A proxy before a port of loopback."""
    proxy = Proxy(target)
    server = await asyncio.start_server(proxy.accept, "127.0.0.1", 0)
    proxy.port = server.sockets[0].getsockname()[1]
    try:
        yield proxy
    finally:
        server.close()
        proxy.cut()
        await asyncio.sleep(0)
