"""``berth serve`` as a process: what it prints, what it refuses, how it ends."""

import re
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.service.worlds import own_environment

PATIENCE = 30.0  # s


@contextmanager
def serving(folder: Path, *options: str) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-c", "from berth.cli import main; main()", "serve", "--port", "0", *options]
    process = subprocess.Popen(
        command,
        cwd=folder,
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


def greeting(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    lines = iter(process.stdout.readline, "")
    text = ""
    for line in lines:
        text += line
        if line.startswith("Ctrl-C"):
            return text
    raise AssertionError(process.communicate())


def refusal(folder: Path, *options: str) -> str:
    """What it says when it ends at once, in words and not in a traceback."""
    with serving(folder, *options) as process:
        out, error = process.communicate(timeout=PATIENCE)
        assert process.returncode == 2, out + error
    assert "Traceback" not in error
    return error


def wait_until_ready(url: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while httpx.get(f"{url}/readyz", trust_env=False).status_code != 200:
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.mark.parametrize("sign", [signal.SIGINT, signal.SIGTERM])
def test_the_demo_is_served_and_the_printed_command_works(tmp_path: Path, sign: signal.Signals) -> None:
    with serving(tmp_path) as process:
        text = greeting(process)
        found = re.search(r"at (http://127\.0\.0\.1:\d+)\n", text)
        assert found
        wait_until_ready(found[1])
        (line,) = [line for line in text.splitlines() if "schedulePod" in line]
        program, _, header, _, body, url = shlex.split(line)
        assert program == "curl"
        name, _, value = header.partition(": ")
        answer = httpx.post(url, content=body, headers={name: value}, trust_env=False)
        assert answer.json() == {"isSucceed": True, "requestId": "r-000001"}
        process.send_signal(sign)
        _, error = process.communicate(timeout=PATIENCE)
        assert process.returncode == 0
    assert "Traceback" not in error
    assert (tmp_path / ".berth" / "demo.db").exists()
    assert not (tmp_path / "berth.db").exists()


def test_a_port_in_use_is_told_in_a_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        told = refusal(tmp_path, "--port", str(port))
    assert told == (
        f"error: can't listen on 127.0.0.1:{port}: Address already in use; "
        "choose another with --port, 0 takes a free one\n"
    )


def test_a_store_in_use_is_told_in_a_sentence(tmp_path: Path) -> None:
    with serving(tmp_path) as process:
        greeting(process)
        assert f"is in use by process {process.pid}" in refusal(tmp_path)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (("--now", "yesterday"), "'yesterday'"),
        (("--port", "x"), "server.port (command line): 'x'"),
        (("--host", "192.0.2.1"), "can't listen on 192.0.2.1:0"),
        (("--snapshot", "nosuch.json"), "nosuch.json"),
        (("--forecast", "nosuch.json"), "nosuch.json"),
        (("--config", "nosuch.yaml"), "nosuch.yaml"),
    ],
)
def test_what_can_not_be_used_is_told(tmp_path: Path, options: tuple[str, ...], sentence: str) -> None:
    assert sentence in refusal(tmp_path, *options)


def test_the_time_stays_where_it_is_set(tmp_path: Path) -> None:
    with serving(tmp_path, "--now", "2026-03-01T13:00:00+01:00") as process:
        found = re.search(r"at (http://\S+)\n", greeting(process))
        assert found
        wait_until_ready(found[1])
        body = {"podList": [{"operation": 1, "namespace": "shop", "serviceName": "web", "number": "1"}]}
        httpx.post(f"{found[1]}/schedulePod", json=body, trust_env=False)
        request = httpx.get(f"{found[1]}/requests/r-000001", trust_env=False).json()
        assert request["received"] == "2026-03-01T12:00:00.000Z"
