"""``berth run --module`` as it is: asked over HTTP, killed, started again, and ended."""

import asyncio
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from berth.sim.control_plane.plane import ControlPlane
from berth.sim.control_plane.processes import free_port
from tests.live import real
from tests.live.module.shop import LABELS, workload
from tests.live.real import path_of
from tests.service.worlds import own_environment

COMMAND = [sys.executable, "-c", "from berth.cli import main; main()", "run"]
PATIENCE_S = 30.0


class Berth:
    """The process, and how to ask it."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        self.port = free_port()
        self._log = (folder / "berth.log").open("a")
        arguments = ["--kubeconfig", plane.kubeconfig, "--listen", f"127.0.0.1:{free_port()}"]
        arguments += ["--module", f"127.0.0.1:{self.port}", "--store", folder / "berth.db"]
        self.process = subprocess.Popen(
            [*COMMAND, *map(str, arguments)], stdout=self._log, stderr=self._log, env=own_environment()
        )

    def until(self, path: str, key: str, *values: str) -> dict[str, Any]:
        """Wait until an answer has one of the values."""
        deadline = time.monotonic() + PATIENCE_S
        while time.monotonic() < deadline:
            try:
                answer: dict[str, Any] = httpx.get(f"http://127.0.0.1:{self.port}{path}").json()
                if answer.get(key) in values:
                    return answer
            except httpx.TransportError:
                assert self.process.poll() is None
            time.sleep(0.02)
        raise AssertionError(f"{path} did not come to {values}")

    def post(self, path: str, operation: int, namespace: str, number: int) -> httpx.Response:
        entry = {"operation": operation, "namespace": namespace, "serviceName": "web", "number": number}
        return httpx.post(
            f"http://127.0.0.1:{self.port}{path}", json={"podList": [entry]}, timeout=PATIENCE_S
        )

    def end(self, sign: signal.Signals) -> int:
        self.process.send_signal(sign)
        try:
            return self.process.wait(PATIENCE_S)
        finally:
            self._log.close()


@contextmanager
def berth(plane: ControlPlane, folder: Path) -> Iterator[Berth]:
    running = Berth(plane, folder)
    try:
        running.until("/readyz", "status", "ok")
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait()


def test_killed_in_the_midst_of_a_round(plane: ControlPlane, tmp_path: Path) -> None:
    asyncio.run(_killed(plane, tmp_path))


async def _killed(plane: ControlPlane, folder: Path) -> None:
    async with real.connect(plane) as client, real.a_namespace(client) as namespace:
        for i in (1, 2, 3):
            await client.post("/api/v1/nodes", real.node(i))
        service = {"metadata": {"name": "web"}, "spec": {"selector": LABELS, "ports": [{"port": 80}]}}
        await client.post(path_of("Service", namespace), service)
        await client.post(path_of("Deployment", namespace), workload("web", 2))
        await asyncio.to_thread(_add_and_remove, plane, folder, namespace)
        listed = await real.names(client, "Pod", namespace)
        assert len(listed) == 3
        await client.delete(path_of("Deployment", namespace))


def _add_and_remove(plane: ControlPlane, folder: Path, namespace: str) -> None:
    with berth(plane, folder) as running:
        dry = running.post("/plan", 1, namespace, 1).json()
        assert [d["reason"] for d in dry["decisions"]] == [None]
        added = running.post("/schedulePod", 1, namespace, 3).json()["requestId"]
        running.until(f"/requests/{added}", "state", "planned", "applied")
        running.end(signal.SIGKILL)
    with berth(plane, folder) as running:
        found = running.until(f"/requests/{added}", "state", "applied", "failed")
        assert [d["reason"] for d in found["decisions"]] == [None] * 3
        nodes = httpx.get(f"http://127.0.0.1:{running.port}/nodes").json()["nodes"]
        assert [node["name"] for node in nodes] == ["node-0001", "node-0002", "node-0003"]
        removed = running.post("/schedulePod", 2, namespace, 2).json()["requestId"]
        running.until(f"/requests/{removed}", "state", "applied", "failed")
        assert running.end(signal.SIGTERM) == 0
