import os
from pathlib import Path

import pytest


@pytest.fixture
def real_snapshots() -> Path:
    """The folder of real clusters that are not part of the project; tests that need it are skipped without it."""
    shared = os.environ.get("BERTH_SHARED") or Path(__file__).parents[3] / "shared"
    folder = Path(shared) / "snapshots"
    if not folder.is_dir():
        pytest.skip(f"no real snapshots at {folder} (set BERTH_SHARED)")
    return folder
