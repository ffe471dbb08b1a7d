"""What commands work on: the cluster of the settings, or the demo, with its forecasts, loads and profiles."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from berth.cli.errors import Mistakes, note
from berth.cli.progress import progress
from berth.cluster.cluster import Cluster
from berth.config import Settings
from berth.module.forecast import ForecastLimits
from berth.module.loads import ServiceName
from berth.module.profile import ServiceProfile
from berth.service.assembly import LoadFeed
from berth.sources.forecasts import RecordedForecasts, RecordedLoads, read_forecasts, read_loads
from berth.sources.profiles import read_profiles
from berth.sources.snapshot import load_snapshot


@dataclass(frozen=True, slots=True)
class InputFiles:
    """Where to read: the snapshot's files and folders, and the others where there are any."""

    snapshot: tuple[Path, ...]
    forecast: Path | None
    load: Path | None
    profiles: Path | None
    lenient: bool = False


@dataclass(frozen=True, slots=True)
class Inputs:
    """What was read. What could not be read is empty, and noted as a mistake."""

    cluster: Cluster
    feed: LoadFeed
    profiles: Mapping[ServiceName, ServiceProfile]


def read_inputs(settings: Settings, now: datetime, mistakes: Mistakes) -> Inputs:
    """Read all that the settings name, the demo where they name no snapshot."""
    forecast = settings.forecast
    limits = ForecastLimits(forecast.horizon, forecast.max_age, forecast.max_load_age)
    with input_files(settings, now) as files:
        cluster = mistakes.attempt(read_cluster, files)
        forecasts = mistakes.attempt(read_forecasts, files.forecast) if files.forecast else None
        loads = mistakes.attempt(read_loads, files.load) if files.load else None
        profiles = mistakes.attempt(read_profiles, files.profiles) if files.profiles else None
    if files.forecast and not files.load:
        note("note: a forecast counts only against current loads: name a file of them with --load")
    feed = LoadFeed(
        RecordedForecasts(forecasts) if forecasts else None, RecordedLoads(loads) if loads else None, limits
    )
    return Inputs(cluster or Cluster(), feed, profiles or {})


def read_cluster(files: InputFiles) -> Cluster:
    """Load the snapshot; tell what it holds on standard error.

    Raises
    ------
    berth.sources.checks.SnapshotError
        With all its mistakes.
    """
    with progress("Loading the snapshot", bytes_=True) as on_progress:
        loaded = load_snapshot(files.snapshot, lenient=files.lenient, on_progress=on_progress)
    for line in loaded.lines():
        note(line)
    return loaded.cluster


@contextmanager
def input_files(settings: Settings, now: datetime) -> Iterator[InputFiles]:
    """Give the files that the settings name; without a snapshot the demo's in place of all that is not named."""
    forecast, load, profiles = settings.forecast.file, settings.load.file, settings.profiles.file
    if settings.snapshot.paths:
        yield InputFiles(settings.snapshot.paths, forecast, load, profiles, settings.snapshot.lenient)
        return
    from berth.sim.demo import load_demo

    demo = load_demo(now)
    with TemporaryDirectory(prefix="berth-demo-") as folder:
        named = {
            "snapshot": demo.snapshot,
            "forecast": demo.forecast,
            "load": demo.load,
            "profiles": demo.profiles,
        }
        paths = {name: Path(folder) / f"{name}.json" for name in named}
        for name, content in named.items():
            paths[name].write_bytes(content)
        note("no snapshot is named: this is the demo cluster")
        yield InputFiles(
            (paths["snapshot"],),
            forecast or paths["forecast"],
            load or paths["load"],
            profiles or paths["profiles"],
        )
