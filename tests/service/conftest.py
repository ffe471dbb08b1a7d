from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.worlds import Client, serving


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    """A client of a service on the small shop."""
    with serving(tmp_path) as client:
        yield client
