"""``berth run`` as a process: what it prints, what it refuses, how it ends."""

import asyncio
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from berth.sim.control_plane.plane import TOKEN, ControlPlane
from tests.cli.runner import berth
from tests.live import real
from tests.live.fake_api import a_kubeconfig
from tests.live.real import path_of
from tests.live.test_real_scheduler import a_pod, until_bound
from tests.service.worlds import own_environment

PATIENCE = 30.0  # s


@contextmanager
def running(kubeconfig: Path, *options: str | Path) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "berth", "run", "--kubeconfig", str(kubeconfig)]
    process = subprocess.Popen(
        [*command, "--listen", "127.0.0.1:0", *options],
        env=own_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        try:
            yield process
        finally:
            process.kill()


def test_it_schedules_until_it_is_told_to_end(control_plane: ControlPlane, tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\n"
        "kind: KubeSchedulerConfiguration\n"
        "profiles: [{schedulerName: berth}, {schedulerName: other}]\n"
    )
    with running(control_plane.kubeconfig, "--config", config) as process:
        assert process.stdout is not None
        where, health, what = (process.stdout.readline() for _ in range(3))
        assert where == f"Berth schedules pods of berth, other on https://127.0.0.1:{control_plane.port}\n"
        assert re.fullmatch(r"\d+ nodes and \d+ pods, of which \d+ wait for us\n", what)
        url = health.split()[3].removesuffix("/readyz")
        asyncio.run(_bind_one(control_plane))
        assert httpx.get(f"{url}/healthz").text == "ok\n"
        ready = httpx.get(f"{url}/readyz")
        assert (ready.status_code, ready.text) == (200, "ok\n")
        metrics = httpx.get(f"{url}/metrics").text
        assert 'scheduler_schedule_attempts_total{profile="other",result="scheduled"} 1.0' in metrics
        assert 'scheduler_pending_pods{queue="active"} 0.0' in metrics
        assert 'scheduler_queue_incoming_pods_total{event="UnscheduledPodAdd",queue="active"} 1.0' in metrics
        assert 'berth_reflector_lists{kind="Pod"} 1.0' in metrics
        assert "berth_events_dropped_total 0.0" in metrics
        process.send_signal(signal.SIGTERM)
        _, error = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0, error
        assert "Traceback" not in error


async def _bind_one(plane: ControlPlane) -> None:
    async with real.connect(plane) as client, real.a_namespace(client) as namespace:
        await client.post("/api/v1/nodes", real.node(1))
        pod = a_pod("p")
        pod["spec"]["schedulerName"] = "other"
        await client.post(path_of("Pod", namespace), pod)
        assert await until_bound(client, namespace, "p") == {"p": "node-0001"}


def test_all_that_is_not_allowed_is_told_at_once(control_plane: ControlPlane, tmp_path: Path) -> None:
    async def token() -> str:
        async with real.connect(control_plane) as client:
            path = "/api/v1/namespaces/default/serviceaccounts"
            await client.post(path, {"metadata": {"name": "nobody"}})
            answer = await client.post(f"{path}/nobody/token", {"spec": {"expirationSeconds": 600}})
            found: str = json.loads(answer)["status"]["token"]
            return found

    kubeconfig = tmp_path / "kubeconfig"
    text = control_plane.kubeconfig.read_text("utf-8")
    kubeconfig.write_text(text.replace(TOKEN, asyncio.run(token())), "utf-8")
    with running(kubeconfig) as process:
        _, error = process.communicate(timeout=PATIENCE)
        assert process.returncode == 2, error
    lines = [line.strip() for line in error.splitlines()]
    assert lines[0] == "error: rights are missing, over all namespaces:"
    assert "may not list, watch, get, delete pods" in lines
    assert "may not create pods/binding" in lines
    assert "may not list, watch csinodes (storage.k8s.io)" in lines
    assert "Traceback" not in error


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    config = tmp_path / "scheduler.yaml"
    config.write_text(
        "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofile: []\n"
    )
    env = {"KUBERNETES_SERVICE_HOST": None}
    run = berth("run", "--in-cluster", "--listen", "nowhere", "--config", config, env=env)
    assert run.code == 2
    assert "--listen: 'nowhere' is not an address such as 127.0.0.1:10260" in run.err
    assert "--in-cluster: this is no pod" in run.err
    assert "a known field of a KubeSchedulerConfiguration" in run.err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--in-cluster", "--context", "x"], "expected neither --kubeconfig nor --context"),
        (["--kubeconfig", "absent"], "there is no such kubeconfig"),
    ],
)
def test_what_can_t_be_used_is_refused(options: list[str], words: str) -> None:
    run = berth("run", "--listen", "127.0.0.1:0", *options, env={"KUBERNETES_SERVICE_HOST": "10.0.0.1"})
    assert run.code == 2
    assert words in run.err


def test_an_api_server_that_is_not_there_is_told(tmp_path: Path) -> None:
    run = berth(
        "run", "--listen", "127.0.0.1:0", "--kubeconfig", a_kubeconfig(tmp_path, "http://127.0.0.1:1")
    )
    assert run.code == 2
    assert run.out.startswith("Berth schedules pods of berth on http://127.0.0.1:1\n")
    assert "error: http://127.0.0.1:1: Cannot connect" in run.err


def test_two_configurations_of_a_kind_are_one_too_many(tmp_path: Path) -> None:
    first, second = tmp_path / "a.yaml", tmp_path / "b.yaml"
    for file in (first, second):
        file.write_text("log: {level: info}\n")
    run = berth("run", "--config", first, "--config", second)
    assert run.code == 2
    assert "are both settings; expected one" in run.err
