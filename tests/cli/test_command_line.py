"""What holds for all commands: help with examples that work, exit codes, quiet ends."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from berth.cli import app
from tests.cli.runner import COMMAND, berth, own_environment, process
from tests.cli.test_snapshot import test_writes_what_a_store_holds
from tests.module.examples import scenario_lines

COMMANDS = sorted(
    command.callback.__name__ for command in app.registered_commands if command.callback is not None
)
LONG = {"serve", "run", "bench"}  # two never end, the third takes a minute
HEAVY = ("numpy", "yaml", "pydantic", "msgspec", "fastapi", "rich.progress")


def examples(command: str) -> list[str]:
    help_text = process(command, "--help").out
    return re.findall(rf"^ +(berth {command}\b.*?) *$", help_text, flags=re.MULTILINE)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_help_has_an_example(command: str) -> None:
    assert examples(command)


@pytest.mark.parametrize("command", sorted(set(COMMANDS) - LONG))
def test_examples_in_the_help_work(command: str, shop: Path, tmp_path: Path) -> None:
    (tmp_path / "dump").mkdir()
    (tmp_path / "dump" / "all.json").write_bytes(shop.read_bytes())
    (tmp_path / "cluster.json").write_bytes(shop.read_bytes())
    (tmp_path / "berth.yaml").write_text("module: {ties: name}\n")
    (tmp_path / "scenarios.jsonl").write_bytes(scenario_lines()[0] + b"\n")
    (tmp_path / "cases.jsonl").write_text('{"id": "c", "pod": {}, "nodes": []}\n')
    (tmp_path / "policy.json").write_text('{"kind": "Policy", "apiVersion": "v1"}')
    test_writes_what_a_store_holds(shop, tmp_path)
    for example in examples(command):
        script = f'berth() {{ {" ".join(COMMAND)} "$@"; }}\nset -e\n{example}\n'
        environ = own_environment() | {"PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            ["sh", "-c", script], cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"{example}\n{done.stderr}"


def test_help_lists_the_commands_without_loading_what_they_need() -> None:
    run = berth("--help")
    assert run.code == 0
    assert all(command in run.out for command in COMMANDS)
    script = (
        "import sys; from berth.cli import app\n"
        "try: app(['--help'])\n"
        f"finally: print(*[name for name in {HEAVY} if name in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, env=own_environment()
    )
    assert done.stderr.split() == []


@pytest.mark.parametrize(
    "args", [("plain",), ("plan", "--ad", "x"), ("plan", "--output", "xml"), ("plan", "extra")]
)
def test_usage_errors(args: tuple[str, ...]) -> None:
    run = process(*args)
    assert (run.code, run.out) == (2, "")
    assert "Traceback" not in run.err


def test_errors_are_words_not_tracebacks() -> None:
    run = process("plan", "--add", "web")
    assert (run.code, run.out) == (2, "")
    assert "error: --add web: expected NAMESPACE/SERVICE" in run.err
    assert "Traceback" not in run.err
    assert "\x1b" not in run.err


@pytest.mark.skipif(os.name == "nt", reason="signals and shells as on POSIX")
def test_a_reader_that_goes_away_is_no_error_worth_words(shop: Path) -> None:
    command = " ".join(COMMAND)
    line = json.dumps({"id": 1, "snapshot": {}, "requests": []})
    script = f"yes '{line}' | {command} answer --release module | head -n 2"
    done = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert len(done.stdout.splitlines()) == 2
    assert done.stderr == ""


@pytest.mark.skipif(os.name == "nt", reason="signals and shells as on POSIX")
def test_ctrl_c_ends_with_130() -> None:
    with subprocess.Popen(
        [*COMMAND, "answer", "--release", "module"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as asked:  # fmt: skip
        assert asked.stdin is not None
        assert asked.stdout is not None
        assert asked.stderr is not None
        asked.stdin.write(b'{"id": 1}\n')
        asked.stdin.flush()
        asked.stdout.readline()  # by now it waits for the next line
        asked.send_signal(signal.SIGINT)
        assert asked.wait(timeout=30) == 130
        assert b"Traceback" not in asked.stderr.read()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(shell: str) -> None:
    variable = {
        "_BERTH_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_ARGS": "berth pl",
        "COMP_WORDS": "berth pl",
        "COMP_CWORD": "1",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    done = subprocess.run(
        COMMAND, env=own_environment() | variable, capture_output=True, text=True, check=False
    )
    assert "plan" in done.stdout
