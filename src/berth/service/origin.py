"""Where an embedded cluster comes from: a snapshot's files, or the demo that is shipped."""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import as_file, files
from pathlib import Path

from berth.cluster.cluster import Cluster
from berth.config.settings import Settings
from berth.module.forecast import ForecastLimits
from berth.module.loads import ForecastTable, LoadTable, Sample, ServiceName, time_us
from berth.module.profile import ServiceProfile
from berth.service.assembly import LoadFeed, empty_cluster
from berth.sim.demo import FORECAST_AHEAD, FORECAST_STEP, Wave, last_step, waves
from berth.sources.forecasts import RecordedForecasts, RecordedLoads, read_forecasts, read_loads
from berth.sources.profiles import read_profiles
from berth.sources.snapshot import load_snapshot

log = logging.getLogger(__name__)

Profiles = Mapping[ServiceName, ServiceProfile]
Clock = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class Origin:
    """A cluster that can be loaded, and what is known of its loads and services.

    Attributes
    ----------
    description : str
        Says where it comes from: ``the demo cluster``, ``the snapshot /srv/cluster.json``.
    load : callable
        Loads the cluster as it was at first; may take seconds.
    """

    description: str
    load: Callable[[], Cluster]
    feed: LoadFeed
    profiles: Profiles


def recorded(settings: Settings) -> Origin:
    """Return the cluster that the settings name; forecasts, loads and profiles are read at once.

    Raises
    ------
    SourceError
        One of the files has mistakes.
    """
    paths = [path.resolve() for path in settings.snapshot.paths]
    return Origin(
        description=f"the snapshot {', '.join(map(str, paths))}",
        load=lambda: _load_files(paths, empty_cluster(settings), settings.snapshot.lenient),
        feed=named_feed(settings),
        profiles=named_profiles(settings),
    )


def demo(settings: Settings) -> Origin:
    """Return the demo cluster, with loads and forecasts that are made anew whenever they are asked for.

    What the settings name in place of them holds.

    Raises
    ------
    SourceError
        One of the files has mistakes.
    """
    source, named = DemoLoads(), named_feed(settings)
    feed = LoadFeed(named.forecasts or source, named.loads or source, named.limits)
    with as_file(files("berth") / "demo" / "profiles.json") as path:
        profiles = read_profiles(settings.profiles.file or path)
    return Origin(
        description="the demo cluster",
        load=lambda: load_demo(empty_cluster(settings)),
        feed=feed,
        profiles=profiles,
    )


def wall_clock() -> datetime:
    """Return what time it is."""
    return datetime.now(UTC)


def named_profiles(settings: Settings) -> Profiles:
    """Return the profiles of the file that the settings name.

    Raises
    ------
    SourceError
        It has mistakes.
    """
    return read_profiles(settings.profiles.file) if settings.profiles.file else {}


class DemoLoads:
    """The demo's loads and forecasts as of any time."""

    def loads(self, now: datetime) -> LoadTable:
        """Return each node's load, measured now."""
        return LoadTable.of(_sample(wave, now, now) for wave in waves())

    def forecasts(self, now: datetime) -> ForecastTable:
        """Return each node's load for the next two hours, issued at the last full five minutes."""
        issued = last_step(now)
        times = [issued + step * FORECAST_STEP for step in range(1, FORECAST_AHEAD // FORECAST_STEP + 1)]
        return ForecastTable.of(_sample(wave, time, issued) for wave in waves() for time in times)


def _sample(wave: Wave, time: datetime, issued: datetime) -> Sample:
    load = wave.at(time)
    return Sample(wave.node, time_us(time), time_us(issued), load["cpu"] * 1000.0, float(load["memory"]))


def named_feed(settings: Settings) -> LoadFeed:
    """Return the forecasts and loads of the files that the settings name.

    Raises
    ------
    SourceError
        One of them has mistakes.
    """
    forecast, load = settings.forecast, settings.load
    return LoadFeed(
        forecasts=RecordedForecasts(read_forecasts(forecast.file)) if forecast.file else None,
        loads=RecordedLoads(read_loads(load.file)) if load.file else None,
        limits=ForecastLimits(forecast.horizon, forecast.max_age, forecast.max_load_age),
    )


def load_demo(cluster: Cluster) -> Cluster:
    """Put the demo's objects into an empty cluster and return it."""
    with as_file(files("berth") / "demo" / "cluster.json.gz") as path:
        return load_snapshot([path], cluster).cluster


def _load_files(paths: list[Path], cluster: Cluster, lenient: bool) -> Cluster:
    loaded = load_snapshot(paths, cluster, lenient=lenient)
    for line in loaded.lines():
        log.info("%s", line)
    return loaded.cluster
