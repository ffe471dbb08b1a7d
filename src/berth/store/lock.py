"""One process per store: an advisory lock on a file beside it, gone with the process however that ends."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path

from berth.store.interface import StoreInUse, StoreUnavailable


class ProcessLock:
    """Holds ``<path>.lock`` from construction to `release`.

    Raises
    ------
    StoreInUse
        Another process (or another store in this one) holds it.
    StoreUnavailable
        The lock file can't be made.
    """

    def __init__(self, path: Path) -> None:
        try:
            self._file = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise StoreUnavailable(path, f"its lock file can't be opened: {error.strerror}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(self._file, 20).decode(errors="replace").strip()
            os.close(self._file)
            by = f" by process {holder}" if holder else ""
            raise StoreInUse(f"store {path} is in use{by}: only one process may serve from it") from None
        except OSError as error:
            os.close(self._file)
            raise StoreUnavailable(path, f"its lock can't be taken: {error.strerror}") from error
        self._write_holder()

    def _write_holder(self) -> None:
        # Only a courtesy to whoever is refused: a full disk must not keep the holder from starting.
        with suppress(OSError):
            os.ftruncate(self._file, 0)
            os.write(self._file, f"{os.getpid()}\n".encode())

    def release(self) -> None:
        """Let the next one in. The file stays: without it, two could lock two files of one name."""
        os.close(self._file)
