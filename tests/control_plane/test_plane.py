"""The harness itself: what it starts is there, and what it stops is gone."""

import socket

import pytest

from berth.sim.control_plane.plane import ControlPlane


def test_a_control_plane_comes_up_and_can_be_killed_and_started_again(
    own_control_plane: ControlPlane,
) -> None:
    plane = own_control_plane
    revision = plane.compact()
    assert revision > 1
    plane.apiserver.kill()
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.1", plane.port), 5).close()
    plane.start_apiserver()
    assert plane.compact() >= revision
    plane.stop()
    assert not plane.apiserver.runs
    assert not plane.etcd.runs
