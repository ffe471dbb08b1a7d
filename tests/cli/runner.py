"""Runs ``berth``: in this process, which is quick, or in one of its own, which is the real thing."""

import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from typer.testing import CliRunner

from berth.cli import app

COMMAND = [sys.executable, "-m", "berth"]


@dataclass(frozen=True, slots=True)
class Run:
    """What a command came to."""

    code: int
    out: str
    err: str


def berth(
    *args: str | Path, stdin: str | bytes | None = None, env: Mapping[str, str | None] | None = None
) -> Run:
    # Nothing of the tester's own settings.
    cleared: dict[str, str | None] = {name: None for name in os.environ if name.startswith("BERTH_")}
    result = CliRunner().invoke(app, [str(arg) for arg in args], input=stdin, env=cleared | dict(env or {}))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return Run(result.exit_code, result.stdout, result.stderr)


def process(*args: str | Path, stdin: bytes = b"") -> Run:
    done = subprocess.run(
        [*COMMAND, *args], input=stdin, capture_output=True, env=own_environment(), check=False
    )
    return Run(done.returncode, done.stdout.decode(), done.stderr.decode())


def own_environment() -> dict[str, str]:
    """The environment without the tester's own settings."""
    return {name: value for name, value in os.environ.items() if not name.startswith("BERTH_")}
