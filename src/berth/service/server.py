"""The application on a socket: uvicorn, with limits, ending gracefully."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn
from fastapi import FastAPI

from berth.config.settings import ServerSettings
from berth.errors import BerthError

_KEEP_ALIVE_SECONDS = 15
_HEAD_BYTES = 64 * 1024
_CONNECTIONS = 1000
_GRACE_SECONDS = 10


def bind(settings: ServerSettings, option: str = "--port") -> socket.socket:
    """Take the address to listen on, before anything else is done.

    Parameters
    ----------
    option : str
        The one of the command line that says where.

    Raises
    ------
    BerthError
        It is in use, or no address of this machine.
    """
    host, port = settings.host, settings.port
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        found = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        raise BerthError(f"can't listen on {host}: {error.strerror}") from error
    try:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        found.bind(address)
        found.listen(128)
    except OSError as error:
        found.close()
        raise BerthError(
            f"can't listen on {host}:{port}: {error.strerror}; choose another with {option}, 0 takes a free one"
        ) from error
    return found


def address_of(bound: socket.socket) -> str:
    """Return the URL of a bound socket."""
    host, port = bound.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


class GuestServer(uvicorn.Server):
    """A server that leaves signals to its host: ``serve(sockets=[...])`` runs beside other tasks."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


def make_server(app: FastAPI, kind: type[uvicorn.Server] = uvicorn.Server) -> uvicorn.Server:
    """Make the server; ``run(sockets=[...])`` serves until it is told to end."""
    config = uvicorn.Config(
        app,
        log_config=None,  # the service's own logging is set up already
        access_log=False,
        lifespan="on",
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_GRACE_SECONDS,
        h11_max_incomplete_event_size=_HEAD_BYTES,
        limit_concurrency=_CONNECTIONS,
        server_header=False,
    )
    return kind(config)
