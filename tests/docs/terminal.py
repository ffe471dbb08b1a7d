"""Commands on a terminal of a fixed width."""

import os
import pty
import re
import subprocess
import sys
from pathlib import Path

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
    text = _ESCAPE.sub("", printed.decode()).replace("\N{NO-BREAK SPACE}", " ")
    return [line.rstrip() for line in text.splitlines()]


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # nobody writes to it any more
        return b""
