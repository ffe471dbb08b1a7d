"""What all tests share: one profile of hypothesis, and the real clusters."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# The machine may be slow, and nothing is kept between runs.
settings.register_profile(
    "berth", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("berth")

pytest_plugins = ["tests.control_plane.fixtures"]


@pytest.fixture
def real_snapshots() -> Path:
    """The folder of real clusters that are not part of the project; tests that need it are skipped without it."""
    shared = os.environ.get("BERTH_SHARED") or Path(__file__).parents[2] / "shared"
    folder = Path(shared) / "snapshots"
    if not folder.is_dir():
        pytest.skip(f"no real snapshots at {folder} (set BERTH_SHARED)")
    return folder
