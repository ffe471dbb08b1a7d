import io
import sys

import pytest

from berth.cli import progress as module
from berth.cli.progress import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_nothing_for_a_file() -> None:
    with progress("Loading") as update:
        assert update is None


def test_nothing_for_what_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    with progress("Loading") as update:
        assert update is not None
        update(1, 2)
        update(2, 2)
    assert terminal.getvalue() == ""


def test_a_bar_for_what_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(module, "PATIENCE_SECONDS", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    with progress("Deciding") as update:
        assert update is not None
        update(500, 1000)
    assert "Deciding" in terminal.getvalue()
    assert "500/1000" in terminal.getvalue()
