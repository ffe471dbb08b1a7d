"""What the pages show is what Berth prints: every command in them is run as it stands there."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ROOT, agrees, blocks, examples

WITH_EXAMPLES = [ROOT / "README.md", ROOT / "docs" / "tutorial.md"]
_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def on_terminal(command: str, folder: Path) -> list[str]:
    """Run a command on a terminal of 120 columns, and return the lines that it shows."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("BERTH_")}
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    environment = kept | {"PATH": path, "COLUMNS": "120", "TERM": "xterm", "NO_COLOR": "1"}
    ours, its = pty.openpty()
    with subprocess.Popen(
        ["sh", "-c", command], stdin=its, stdout=its, stderr=its, cwd=folder, env=environment
    ) as process:
        os.close(its)
        printed = bytearray()
        with open(ours, "rb", buffering=0) as terminal:
            while part := _read(terminal.fileno()):
                printed += part
        process.wait()
    return [line.rstrip() for line in _ESCAPE.sub("", printed.decode()).splitlines()]


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # nobody writes to it any more
        return b""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a terminal as Unix has it")
@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: page.name)
def test_examples_print_what_is_shown(page: Path, tmp_path: Path) -> None:
    n_examples = 0
    for block in blocks(page):
        if block.title:
            (tmp_path / block.title).write_text(block.text, encoding="utf-8")
        if block.title and block.title.endswith(".py"):
            subprocess.run([sys.executable, block.title], cwd=tmp_path, check=True)
        for example in examples(block):
            printed = on_terminal(example.command, tmp_path)
            told = "\n".join(printed)
            assert agrees(example.shown, printed), f"$ {example.command}\nprints\n{told}"
            n_examples += 1
    assert n_examples > 0
