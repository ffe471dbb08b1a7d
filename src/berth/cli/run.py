"""``berth run``: schedules the pods of a real cluster."""

import asyncio
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from berth.cli.errors import InputMistakes, Mistakes, note

if TYPE_CHECKING:
    from berth.config.configured import Configured
    from berth.config.settings import ServerSettings, Settings
    from berth.live.credentials import Credentials
    from berth.releases.release import Options

SCHEDULER_NAME = "berth"
LISTEN = "127.0.0.1:10260"


def run(
    kubeconfig: Annotated[
        Path | None,
        typer.Option(
            help="Where the API server is. Without: the pod's service account, KUBECONFIG, ~/.kube/config."
        ),
    ] = None,
    context: Annotated[str | None, typer.Option(help="The context of the kubeconfig.")] = None,
    in_cluster: Annotated[
        bool, typer.Option("--in-cluster", help="Take the pod's service account, and nothing else.")
    ] = False,
    config: Annotated[
        list[Path] | None,
        typer.Option(
            help="A KubeSchedulerConfiguration (the profiles), or settings (berth.yaml); may be given once for each."
        ),
    ] = None,
    listen: Annotated[
        str, typer.Option(metavar="HOST:PORT", help="Where /healthz, /readyz and /metrics are served.")
    ] = LISTEN,
    module: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT", help="Where POST /schedulePod is served. Without: there are no rounds."
        ),
    ] = None,
    store: Annotated[
        Path | None, typer.Option(help="The file with the queue and the rounds of --module.")
    ] = None,
) -> None:
    """Schedule the pods of a real cluster that name Berth in spec.schedulerName.

    Runs beside kube-scheduler, which leaves such pods alone. Without a configuration there is one profile, berth, with
    the plugins and weights of Kubernetes 1.36. SIGTERM and Ctrl-C end it once the bindings under way are through.

    Examples:

        berth run

        berth run --kubeconfig admin.conf --context test --config scheduler.yaml

        berth run --in-cluster --listen 0.0.0.0:10260

        berth run --module 127.0.0.1:8080 --store berth.db
    """
    from berth.config.kernels import keep_kernels

    mistakes = Mistakes()
    files = mistakes.attempt(_sorted_files, config or [])
    server = mistakes.attempt(_address, listen, "--listen")
    rounds = mistakes.attempt(_address, module, "--module") if module else None
    credentials = mistakes.attempt(_credentials, kubeconfig, context, in_cluster)
    settings = mistakes.attempt(_settings, files[0] if files else None, store, rounds is not None)
    configured = mistakes.attempt(_configured, files[1] if files else None)
    mistakes.raise_any()
    assert server is not None
    assert credentials is not None
    assert settings is not None
    assert configured is not None
    keep_kernels(os.environ)
    _run(server, credentials, settings, rounds, *configured)


def _run(
    server: "ServerSettings",
    credentials: "Credentials",
    settings: "Settings",
    rounds: "ServerSettings | None",
    configured: "Configured",
    options: "Options",
) -> None:
    from contextlib import ExitStack

    from berth.cli.serve import set_up_logging
    from berth.releases.modern import RELEASE_1_36
    from berth.scheduling.ties import TieBreaker
    from berth.service.live_run import LiveSetup, ModuleSetup, run_live
    from berth.service.server import address_of, bind

    set_up_logging(settings.log.level)
    for line in configured.notes:
        note(f"note: {line}")

    def say(line: str) -> None:
        typer.echo(line)
        sys.stdout.flush()

    def module_setup(stack: ExitStack) -> ModuleSetup | None:
        if rounds is None:
            return None
        from berth.store.sqlite import SqliteStore

        socket = stack.enter_context(bind(rounds, "--module"))
        opened = stack.enter_context(SqliteStore(settings.store.path, keep_rounds=settings.store.keep_rounds))
        return ModuleSetup(settings, opened, socket)

    async def main(module: ModuleSetup | None) -> None:
        await credentials.load()
        say(f"Berth schedules pods of {', '.join(configured.profiles)} on {credentials.url}")
        say(f"Health and metrics: {address_of(bound)}/readyz and /metrics")
        if module is not None:
            say(f"Pods of services are added and removed at {address_of(module.bound)}/schedulePod")
        ties = TieBreaker(settings.module.ties, settings.module.seed)
        accounting = RELEASE_1_36.accounting_for(options)
        await run_live(LiveSetup(credentials, configured, accounting, ties, bound, say, module))

    with bind(server, "--listen") as bound, ExitStack() as stack:
        asyncio.run(main(module_setup(stack)))


def _sorted_files(paths: list[Path]) -> tuple[Path | None, Path | None]:
    """Return the settings and the KubeSchedulerConfiguration among files, told apart by ``kind``."""
    from berth.config.document import read_document

    found: dict[bool, Path] = {}
    for path in paths:
        plain = read_document(path).plain
        is_configuration = isinstance(plain, dict) and "kind" in plain
        if is_configuration in found:
            what = "KubeSchedulerConfiguration" if is_configuration else "settings"
            raise InputMistakes(
                [f"--config: {found[is_configuration]} and {path} are both {what}; expected one"]
            )
        found[is_configuration] = path
    return found.get(False), found.get(True)


def _settings(path: Path | None, store: Path | None, has_module: bool) -> "Settings":
    from berth.config import load_settings

    settings = load_settings(path, os.environ, {"store.path": store})
    if not has_module:
        return settings
    from berth.service.live import live_settings

    return live_settings(settings)


def _configured(path: Path | None) -> "tuple[Configured, Options]":
    from dataclasses import replace

    from berth.config.schedulers import configure
    from berth.releases.modern import RELEASE_1_36

    configured, options = configure(RELEASE_1_36, path)
    if configured.extenders:
        raise InputMistakes([f"{path}: extenders: expected none, `berth run` does not call them yet"])
    if path is None:
        (profile,) = configured.profiles.values()
        configured = replace(configured, profiles={SCHEDULER_NAME: profile})
    return configured, options


def _address(listen: str, option: str) -> "ServerSettings":
    from pydantic import ValidationError

    from berth.config.settings import ServerSettings

    host, _, port = listen.rpartition(":")
    try:
        return ServerSettings(host=host.strip("[]"), port=port)
    except ValidationError:
        raise InputMistakes([f"{option}: {listen!r} is not an address such as {LISTEN}"]) from None


def _credentials(kubeconfig: Path | None, context: str | None, in_cluster: bool) -> "Credentials":
    from berth.live.credentials import Credentials

    if not in_cluster:
        return Credentials(kubeconfig, context)
    if kubeconfig or context:
        raise InputMistakes(["--in-cluster: expected neither --kubeconfig nor --context beside it"])
    if not os.environ.get("KUBERNETES_SERVICE_HOST"):
        raise InputMistakes(["--in-cluster: this is no pod (KUBERNETES_SERVICE_HOST is not set)"])
    return Credentials()
