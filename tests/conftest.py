"""What all tests share: one profile of hypothesis, and the real clusters."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from berth.config.kernels import keep_kernels
from berth.releases.module import MODULE_RELEASES, addition_profile
from berth.scheduling import compiled
from berth.scheduling.warming import exercises

# The machine may be slow, and no example is kept between runs.
settings.register_profile(
    "berth", deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("berth")

_PRIORITIES = (
    "LeastRequestedPriority",
    "SelectorSpreadPriority",
    "InterPodAffinityPriority",
    "TaintTolerationPriority",
)
"""Those that make use of all loops."""

pytest_plugins = ["tests.control_plane.fixtures"]


@pytest.fixture(scope="session")
def compiled_loops() -> None:
    """All loops, compiled or read from where the program keeps them, for tests that use them."""
    keep_kernels(os.environ)
    # Streams have narrow totals and, with heavy weights, wide ones.
    for release, weight in zip(MODULE_RELEASES.values(), (1, 1_000), strict=True):
        for group, exercise in exercises(
            addition_profile(dict.fromkeys(_PRIORITIES, weight), module=release)
        ):
            with group.using(group.load()):
                exercise()
    compiled.keep_in(None)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A slow machine compiles for a minute or more: that does not count against the test that comes first."""
    for item in items:
        if "compiled_loops" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.timeout(func_only=True))


@pytest.fixture
def real_snapshots() -> Path:
    """The folder of real clusters that are not part of the project; tests that need it are skipped without it."""
    shared = os.environ.get("BERTH_SHARED") or Path(__file__).parents[2] / "shared"
    folder = Path(shared) / "snapshots"
    if not folder.is_dir():
        pytest.skip(f"no real snapshots at {folder} (set BERTH_SHARED)")
    return folder
