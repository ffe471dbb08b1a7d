"""Progress bars, for people only: on standard error, on a terminal, and once something has taken a second."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]
PATIENCE_SECONDS = 1.0


@contextmanager
def progress(title: str, *, bytes_: bool = False) -> Iterator[Progress | None]:
    """Give what is to be told how much of how much is done; None where nobody looks.

    Parameters
    ----------
    bytes_ : bool
        Whether what is counted are bytes.
    """
    if not sys.stderr.isatty():
        yield None
        return
    bar = _Bar(title, bytes_)
    try:
        yield bar.update
    finally:
        bar.stop()


class _Bar:
    """A bar that appears when it is worth it."""

    def __init__(self, title: str, bytes_: bool) -> None:
        self._title = title
        self._bytes = bytes_
        self._start = time.monotonic()
        self._stop: Callable[[], None] | None = None
        self._show: Progress | None = None

    def update(self, done: int, total: int) -> None:
        if self._show is None:
            if time.monotonic() - self._start < PATIENCE_SECONDS:
                return
            self._appear()
        if self._show:
            self._show(done, total)

    def stop(self) -> None:
        if self._stop:
            self._stop()

    def _appear(self) -> None:
        from rich.console import Console
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            MofNCompleteColumn,
            TextColumn,
            TimeRemainingColumn,
        )
        from rich.progress import Progress as RichProgress

        count = DownloadColumn() if self._bytes else MofNCompleteColumn()
        shown = RichProgress(
            TextColumn("{task.description}"), BarColumn(), count, TimeRemainingColumn(),
            console=Console(stderr=True), transient=True,
        )  # fmt: skip
        task = shown.add_task(self._title)
        shown.start()
        self._show = lambda done, total: shown.update(task, completed=done, total=total)
        self._stop = shown.stop
