from collections.abc import Iterator

import pytest

from berth.sim.control_plane.binaries import Binaries
from berth.sim.control_plane.plane import ControlPlane


@pytest.fixture(scope="package")
def plane(binaries: Binaries, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """A control plane with controllers and kubelets, without a scheduler."""
    plane = ControlPlane(binaries, tmp_path_factory.mktemp("living"))
    try:
        plane.start()
        plane.start_controller_manager(("resourcequota", "disruption"))
        plane.start_kwok()
        yield plane
    finally:
        plane.stop()
