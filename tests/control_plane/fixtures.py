"""The fixtures of a real control plane. What has to be built is built before the first test, outside of its time limit."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from berth.sim.control_plane.binaries import Binaries, BuildError, GoMissingError, ensure
from berth.sim.control_plane.plane import ControlPlane

_BINARIES = pytest.StashKey[Binaries | Exception]()


def pytest_collection_finish(session: pytest.Session) -> None:
    config = session.config
    needed = any("binaries" in getattr(item, "fixturenames", ()) for item in session.items)
    if not needed or config.option.collectonly:
        return
    terminal = config.pluginmanager.get_plugin("terminalreporter")

    def say(line: str) -> None:
        if terminal is not None:
            terminal.write_line(line, yellow=True, bold=True)

    try:
        config.stash[_BINARIES] = ensure(say)
    except (BuildError, OSError, subprocess.SubprocessError) as error:
        config.stash[_BINARIES] = error
        say(f"NO TEST AGAINST A REAL CLUSTER IS RUN: {error}")


@pytest.fixture(scope="session")
def binaries(request: pytest.FixtureRequest) -> Binaries:
    """The control plane's programs; without them tests are skipped, and fail in continuous integration."""
    found = request.config.stash[_BINARIES]
    if isinstance(found, Binaries):
        return found
    if isinstance(found, GoMissingError) and os.environ.get("CI") != "true":
        pytest.skip(str(found))
    pytest.fail(str(found))


@pytest.fixture(scope="session")
def control_plane(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One for all tests, which leave no nodes behind and have namespaces of their own."""
    yield from _running(binaries, tmp_path_factory.mktemp("control-plane"))


@pytest.fixture
def own_control_plane(binaries: Binaries, tmp_path: Path) -> Iterator[ControlPlane]:
    """One for a test that hurts it."""
    yield from _running(binaries, tmp_path)


@pytest.fixture(scope="module")
def volume_plane(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """One whose controllers bind volumes, for the tests of a module, which leave no nodes behind."""
    for plane in _running(binaries, tmp_path_factory.mktemp("volumes")):
        plane.start_controller_manager(("persistentvolume-binder", "ephemeral-volume"))
        yield plane


def _running(binaries: Binaries, folder: Path) -> Iterator[ControlPlane]:
    plane = ControlPlane(binaries, folder)
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()
