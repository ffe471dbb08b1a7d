from collections.abc import Iterator
from pathlib import Path

import pytest

from berth.store.interface import Store
from berth.store.sqlite import SqliteStore


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "berth.db"


@pytest.fixture
def store(path: Path) -> Iterator[Store]:
    with SqliteStore(path) as opened:
        yield opened
