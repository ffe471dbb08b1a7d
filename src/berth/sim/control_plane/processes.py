"""Programs that run beside this one: started with a log of their own, stopped by their own ids."""

import socket
import subprocess
from collections.abc import Sequence
from pathlib import Path

_STOP_S = 20.0


def free_port() -> int:
    """Return a port of loopback that nobody listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


class Process:
    """One program; it can be started again after it has gone."""

    def __init__(self, command: Sequence[str], log: Path) -> None:
        self._command = list(command)
        self._log = log
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Its id."""
        assert self._process is not None
        return self._process.pid

    @property
    def runs(self) -> bool:
        """Whether it is there."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start it; what it says goes to the end of the log."""
        assert not self.runs
        with self._log.open("ab") as log:
            # A session of its own: what interrupts this process lets it be stopped in order.
            self._process = subprocess.Popen(
                self._command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, start_new_session=True
            )

    def stop(self) -> None:
        """Ask it to go and wait until it has."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it at once, as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def last_words(self) -> str:
        """Return the end of its log."""
        return self._log.read_text("utf-8", "replace")[-3000:]
