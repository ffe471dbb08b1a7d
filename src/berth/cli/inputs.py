"""What commands work on: the cluster of the settings, or the demo, with its forecasts, loads and profiles."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from berth.cli.errors import Mistakes, note
from berth.cli.progress import progress
from berth.cluster.cluster import Cluster
from berth.config import Settings
from berth.module.forecast import ForecastLimits
from berth.module.loads import ServiceName
from berth.module.profile import ServiceProfile
from berth.service.assembly import LoadFeed, empty_cluster
from berth.service.origin import demo, load_demo
from berth.sources.forecasts import RecordedForecasts, RecordedLoads, read_forecasts, read_loads
from berth.sources.profiles import read_profiles
from berth.sources.snapshot import load_snapshot


@dataclass(frozen=True, slots=True)
class Inputs:
    """What was read. What could not be read is empty, and noted as a mistake."""

    cluster: Cluster
    feed: LoadFeed
    profiles: Mapping[ServiceName, ServiceProfile]


def read_inputs(settings: Settings, mistakes: Mistakes) -> Inputs:
    """Read all that the settings name; where they name no snapshot, the demo has what they don't name."""
    cluster = mistakes.attempt(read_cluster, settings, empty_cluster(settings)) or Cluster()
    paths = (settings.forecast.file, settings.load.file, settings.profiles.file)
    forecasts = mistakes.attempt(_recorded_forecasts, paths[0]) if paths[0] else None
    loads = mistakes.attempt(_recorded_loads, paths[1]) if paths[1] else None
    profiles = mistakes.attempt(read_profiles, paths[2]) if paths[2] else None
    limits = ForecastLimits(
        settings.forecast.horizon, settings.forecast.max_age, settings.forecast.max_load_age
    )
    if settings.snapshot.paths:
        if paths[0] and not paths[1]:
            note("note: a forecast counts only against current loads: name a file of them with --load")
        return Inputs(cluster, LoadFeed(forecasts, loads, limits), profiles or {})
    shipped = demo(Settings())
    feed = LoadFeed(forecasts or shipped.feed.forecasts, loads or shipped.feed.loads, limits)
    return Inputs(cluster, feed, shipped.profiles if profiles is None else profiles)


def read_cluster(settings: Settings, cluster: Cluster) -> Cluster:
    """Load the snapshot into an empty cluster, and tell what it holds on standard error; the demo, if none is named.

    Raises
    ------
    berth.sources.checks.SnapshotError
        With all its mistakes.
    """
    if not settings.snapshot.paths:
        note("no snapshot is named: this is the demo cluster")
        return load_demo(cluster)
    with progress("Loading the snapshot", bytes_=True) as on_progress:
        loaded = load_snapshot(
            settings.snapshot.paths, cluster, lenient=settings.snapshot.lenient, on_progress=on_progress
        )
    for line in loaded.lines():
        note(line)
    return loaded.cluster


def _recorded_forecasts(path: Path) -> RecordedForecasts:
    return RecordedForecasts(read_forecasts(path))


def _recorded_loads(path: Path) -> RecordedLoads:
    return RecordedLoads(read_loads(path))
