import os
import subprocess
import sys
from pathlib import Path

import pytest

from berth.store.interface import StoreInUse, StoreUnavailable
from berth.store.sqlite import SqliteStore
from tests.store.builders import NOON, an_entry

OPEN = "import sys; from berth.store.sqlite import SqliteStore; SqliteStore(sys.argv[1]).close()"


def test_a_second_process_is_refused_with_the_path_and_the_holder(path: Path) -> None:
    with SqliteStore(path) as store:
        done = subprocess.run(
            [sys.executable, "-c", OPEN, str(path)], capture_output=True, text=True, check=False
        )
        store.submit([an_entry()], NOON)
    assert done.returncode == 1
    assert f"StoreInUse: store {path} is in use by process {os.getpid()}" in done.stderr


def test_a_link_to_the_file_is_the_same_store(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link.db"
    with SqliteStore(path):
        link.symlink_to(path)
        with pytest.raises(StoreInUse):
            SqliteStore(link)


def test_a_closed_store_may_be_opened_again(path: Path) -> None:
    for _ in range(2):
        SqliteStore(path).close()


def test_a_store_that_does_not_open_is_not_held(path: Path) -> None:
    path.write_bytes(b"not a database " * 100)
    for _ in range(2):
        with pytest.raises(StoreUnavailable, match="file is not a database"):
            SqliteStore(path)


def test_a_lock_file_that_cannot_be_made_is_told(path: Path) -> None:
    Path(f"{path}.lock").mkdir()
    with pytest.raises(StoreUnavailable, match="its lock file can't be opened: Is a directory"):
        SqliteStore(path)


def test_the_folder_is_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "berth.db"
    SqliteStore(path).close()
    assert path.exists()


def test_a_folder_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match="its folder can't be made"):
        SqliteStore(tmp_path / "file" / "berth.db")
