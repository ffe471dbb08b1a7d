from pathlib import Path

import pytest

from tests.cli.worlds import a_shop, write_list


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return write_list(tmp_path / "shop.json", a_shop())
