"""The demo cluster that is shipped, with loads and forecasts that are fresh at any time it is asked for.

The snapshot's object times are fixed. Loads and forecasts are pure functions of the time that the caller
passes in: each node's load is a wave around a base, so that at any time some nodes' load is about to rise and
others' to fall, and a service that runs for days may ask anew before each round. Knows nothing of how they
are read.
"""

import gzip
import json
import math
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from importlib.resources import files
from typing import Any

FORECAST_STEP = timedelta(minutes=5)
FORECAST_AHEAD = timedelta(hours=2)
# Memory in whole MiB: nobody measures it finer.
MIB = 2**20


@dataclass(frozen=True, slots=True)
class Demo:
    """The four files of the demo, as they would be read from disk: each is JSON."""

    snapshot: bytes
    forecast: bytes
    load: bytes
    profiles: bytes


@dataclass(frozen=True, slots=True)
class Wave:
    """A node's load over time: a sine around a base. [cores, bytes, minutes]"""

    node: str
    cpu: float
    cpu_swing: float
    memory: int
    memory_swing: int
    period: float
    phase: float

    def at(self, time: datetime) -> dict[str, Any]:
        minutes = time.timestamp() / 60
        height = math.sin(2 * math.pi * (minutes - self.phase) / self.period)
        return {
            "node": self.node,
            "time": rfc3339(time),
            "cpu": round(self.cpu + height * self.cpu_swing, 3),
            "memory": round((self.memory + height * self.memory_swing) / MIB) * MIB,
        }


def load_demo(now: datetime) -> Demo:
    """Give the whole demo as of ``now``, which must have a time zone."""
    return Demo(
        snapshot=demo_snapshot(),
        forecast=demo_forecast(now),
        load=demo_load(now),
        profiles=demo_profiles(),
    )


def demo_snapshot() -> bytes:
    """Give the cluster as one JSON ``List``: about 1.5 MB."""
    return gzip.decompress(shipped("cluster.json.gz"))


def demo_profiles() -> bytes:
    """Return the profiles of the demo's services, as a file of them."""
    return shipped("profiles.json")


def demo_load(now: datetime) -> bytes:
    """Give each node's load, measured ``now``; the node that is lost has none."""
    return as_json([wave.at(now) for wave in waves()])


def demo_forecast(now: datetime) -> bytes:
    """Give each node's load for the next two hours, in steps of five minutes.

    It was issued at the last full five minutes: whoever asks anew before each round has a fresh one.
    """
    issued = last_step(now)
    n_steps = FORECAST_AHEAD // FORECAST_STEP
    times = [issued + step * FORECAST_STEP for step in range(1, n_steps + 1)]
    return as_json([wave.at(time) | {"issued": rfc3339(issued)} for wave in waves() for time in times])


def last_step(now: datetime) -> datetime:
    """Return the last full forecast step that is not after a time."""
    step = FORECAST_STEP.total_seconds()
    return datetime.fromtimestamp(in_utc(now).timestamp() // step * step, UTC)


def in_utc(time: datetime) -> datetime:
    """Return a time in UTC; one without a zone is refused with ValueError."""
    if time.tzinfo is None:
        raise ValueError(f"{time.isoformat()} has no time zone: pass a time such as datetime.now(UTC)")
    return time.astimezone(UTC)


def rfc3339(time: datetime) -> str:
    """Write a time in UTC, rounded down to the second."""
    return in_utc(time).strftime("%Y-%m-%dT%H:%M:%SZ")


@cache
def waves() -> tuple[Wave, ...]:
    """Return how the load of every node moves over the day."""
    return tuple(
        Wave(
            node=row["node"],
            cpu=row["cpu"],
            cpu_swing=row["cpuSwing"],
            memory=row["memory"],
            memory_swing=row["memorySwing"],
            period=row["period"],
            phase=row["phase"],
        )
        for row in json.loads(shipped("loads.json"))
    )


def shipped(name: str) -> bytes:
    """Return a data file that comes with the package."""
    return (files("berth") / "demo" / name).read_bytes()


def as_json(rows: list[dict[str, Any]]) -> bytes:
    """Write a list with one object a line."""
    return ("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n").encode()
