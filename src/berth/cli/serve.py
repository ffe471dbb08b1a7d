"""``berth serve``: the scheduling module over HTTP, on an embedded cluster."""

import logging
import os
import signal
import socket
import sys
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from berth.config.settings import Settings
    from berth.service.running import Service
    from berth.store.interface import Store

DEMO_STORE = Path(".berth") / "demo.db"


def serve(
    snapshot: Annotated[
        list[Path] | None,
        typer.Option(
            help="A file or folder as `kubectl get -o json|yaml` writes it; may be given again. "
            "Without one: the demo cluster."
        ),
    ] = None,
    config: Annotated[Path | None, typer.Option(help="The configuration: berth.yaml.")] = None,
    host: Annotated[str | None, typer.Option(help="The address to listen on.")] = None,
    port: Annotated[str | None, typer.Option(help="The port to listen on; 0 takes a free one.")] = None,
    store: Annotated[Path | None, typer.Option(help="The file with queue, rounds and state.")] = None,
    reset: Annotated[
        bool, typer.Option("--reset", help="Drop the cluster's state that the store holds; begin anew.")
    ] = False,
    lenient: Annotated[
        bool, typer.Option("--lenient", help="Skip a snapshot's broken objects with a warning.")
    ] = False,
    now: Annotated[
        str | None, typer.Option(metavar="TIME", help="For recorded data: the time that it stays (RFC 3339).")
    ] = None,
    forecast: Annotated[Path | None, typer.Option(help="Forecasts: JSON, JSON lines or CSV.")] = None,
    load: Annotated[Path | None, typer.Option(help="Current loads: JSON, JSON lines or CSV.")] = None,
    profiles: Annotated[Path | None, typer.Option(help="Profiles of services, likewise.")] = None,
) -> None:
    """Serve the scheduling module over HTTP: POST /schedulePod adds and removes pods of services, in rounds.

    The cluster is embedded: it is read from a snapshot once, and what rounds do to it is kept in the store. Without
    a snapshot it is the demo, which has a store of its own.

    Examples:

        berth serve

        berth serve --snapshot cluster.json --store cluster.db --port 8080
    """
    from berth.cli.plan import parse_time
    from berth.config import load_settings
    from berth.config.kernels import keep_kernels
    from berth.service.origin import wall_clock

    overrides: dict[str, object] = {
        "snapshot.paths": tuple(snapshot) if snapshot else None,
        "snapshot.lenient": True if lenient else None,
        "server.host": host,
        "server.port": port,
        "store.path": store,
        "forecast.file": forecast,
        "load.file": load,
        "profiles.file": profiles,
    }
    settings = load_settings(config, os.environ, overrides)
    keep_kernels(os.environ)
    run(settings, reset=reset, clock=wall_clock if now is None else _stopped(parse_time(now)))


def run(settings: "Settings", *, reset: bool, clock: Callable[[], datetime]) -> None:
    """Serve until told to end.

    Raises
    ------
    BerthError
        The service can't start.
    """
    from berth.service.app import make_app
    from berth.service.origin import demo, recorded
    from berth.service.running import assemble
    from berth.service.server import address_of, bind, make_server
    from berth.service.warming import warm_up

    set_up_logging(settings.log.level)
    origin = recorded(settings) if settings.snapshot.paths else demo(settings)
    bound = bind(settings.server)
    with bound:
        service = assemble(settings, _open_store(settings), origin, clock=clock, reset=reset)
        server = make_server(make_app(service))

        def end(*_: object) -> None:
            server.should_exit = True

        service.on_ready = lambda: _suggest(service, bound)
        service.on_failure = end
        for sign in (signal.SIGINT, signal.SIGTERM):
            signal.signal(sign, end)  # the server raises what ended it once more: that is no failure
        warm_up(settings)
        typer.echo(f"Berth serves {origin.description} at {address_of(bound)}\n")
        sys.stdout.flush()
        server.run(sockets=[bound])
    if service.loop.failure is not None:
        raise service.loop.failure


def _stopped(time: datetime) -> Callable[[], datetime]:
    return lambda: time


def _open_store(settings: "Settings") -> "Store":
    from berth.store.sqlite import SqliteStore

    path = settings.store.path
    if not settings.snapshot.paths and "path" not in settings.store.model_fields_set:
        path = DEMO_STORE  # apart from every store that holds a cluster of somebody's own
    return SqliteStore(path, keep_rounds=settings.store.keep_rounds)


def set_up_logging(level: str) -> None:
    """Write messages of a level and above to standard error."""
    logging.basicConfig(
        level=level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)-7s %(message)s", force=True
    )
    # What uvicorn says at start and end is said better here.
    logging.getLogger("uvicorn.error").setLevel(logging.WARNING)


def _suggest(service: "Service", bound: socket.socket) -> None:
    """Print what to try next, once there is a cluster to try it on."""
    from berth.service.server import address_of
    from berth.service.suggestion import suggestions

    assert service.rounds.example is not None  # it is loaded
    for line in suggestions(address_of(bound), *service.rounds.example):
        typer.echo(line)
    typer.echo("\nCtrl-C ends it.")
    sys.stdout.flush()
