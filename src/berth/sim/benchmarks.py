"""Benchmarks: what is measured and how. Every measurement runs in a process of its own, so that its memory is its own."""

import gc
import json
import os
import platform
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from berth.errors import BerthError
from berth.sim.clusters import write_snapshot
from berth.sim.workload_files import Size, WorkloadFile

SEED = 1
N_SHAPES = 150
N_RUNS = 5
_MOST_RUNS = 101
_SHORT_SECONDS = 1.0

Undo = Callable[[], None]
Run = Callable[[], Undo | None]


class MeasuringError(BerthError):
    """A process that was measured did not end well; it said why itself."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a workload took; times are medians over the runs. [seconds, MB of 2^20 bytes]"""

    workload: str
    nodes: int
    existing: int
    pods: int
    runs: int
    decisions_per_second: float
    seconds: float
    cpu_seconds: float
    peak_rss_mb: float


@dataclass(frozen=True, slots=True)
class Workload:
    """Something to measure.

    Attributes
    ----------
    prepare : callable
        Given the size, makes what is measured: a call of it is one run. What the run returns, if anything, takes it
        back; that is not measured.
    fresh : bool
        Whether each run needs a process of its own (the peak of memory is then that of one run).
    file : WorkloadFile or None
        What it was made from, if that is a file.
    """

    name: str
    meaning: str
    size: Size
    prepare: Callable[[Size], Run]
    fresh: bool = False
    file: WorkloadFile | None = None


def measure(workload: Workload, size: Size, runs: int | None = None) -> Result:
    """Measure a workload in this process.

    Parameters
    ----------
    runs : int, optional
        How often; without, five times, or as often as fits into a second: medians of short runs are shaky.

    Raises
    ------
    ValueError
        There is nothing to measure: no run.
    """
    if runs is not None and runs < 1:
        raise ValueError("at least one run is needed")
    run = workload.prepare(size)
    gc.collect()
    seconds: list[float] = []
    cpu_seconds: list[float] = []
    while not _is_enough(seconds, runs):
        wall, cpu = time.perf_counter(), _cpu_seconds()
        undo = run()
        seconds.append(time.perf_counter() - wall)
        cpu_seconds.append(_cpu_seconds() - cpu)
        if undo is not None:
            undo()
    return _result(workload.name, size, seconds, cpu_seconds, [_peak_rss_mb()])


def _is_enough(seconds: Sequence[float], runs: int | None) -> bool:
    if runs is not None:
        return len(seconds) >= runs
    return len(seconds) >= N_RUNS and (sum(seconds) >= _SHORT_SECONDS or len(seconds) >= _MOST_RUNS)


def measure_apart(
    workload: Workload, size: Size, runs: int | None = None, *, compiled: bool = True
) -> Result:
    """Measure a workload in processes of its own; not compiled, as where Numba is not installed."""
    if not workload.fresh:
        return _in_child(workload, size, runs, compiled)
    each = [_in_child(workload, size, 1, compiled) for _ in range(runs or N_RUNS)]
    return _result(
        workload.name,
        size,
        [one.seconds for one in each],
        [one.cpu_seconds for one in each],
        [one.peak_rss_mb for one in each],
    )


def snapshot_file(size: Size) -> Path:
    """Return a generated snapshot of so many nodes and pods: made once, kept in the user's cache folder."""
    cache = cache_folder("bench")
    file = cache / f"cluster-{size.nodes}-{size.existing}-{N_SHAPES}-{SEED}.json"
    if not file.exists():
        cache.mkdir(parents=True, exist_ok=True)
        unfinished = file.with_suffix(f".{os.getpid()}")
        write_snapshot(unfinished, size.nodes, size.existing, N_SHAPES, SEED)
        unfinished.rename(file)
    return file


def _cpu_seconds() -> float:
    """What this process and those that it started and that have ended took of the processors."""
    return time.process_time() + sum(os.times()[2:4])


def _peak_rss_mb() -> float:
    who = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    unit = 2**20 if sys.platform == "darwin" else 2**10
    return max(resource.getrusage(each).ru_maxrss for each in who) / unit


def cache_folder(name: str) -> Path:
    """Return a folder of that name in the user's cache."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "berth" / name


def _in_child(workload: Workload, size: Size, runs: int | None, compiled: bool) -> Result:
    code = "import sys; from berth.sim.workloads import child; child(*sys.argv[1:])"
    numbers = (size.nodes, size.existing, size.pods, runs or 0, int(compiled))
    arguments = [workload.name, *map(str, numbers)]
    done = subprocess.run([sys.executable, "-c", code, *arguments], stdout=subprocess.PIPE, check=False)
    if done.returncode:
        raise MeasuringError(f"{workload.name}: the process that was measured ended with {done.returncode}")
    return Result(**json.loads(done.stdout))


def _result(
    name: str, size: Size, seconds: list[float], cpu_seconds: list[float], peaks: list[float]
) -> Result:
    median = statistics.median(seconds)
    return Result(
        workload=name,
        nodes=size.nodes,
        existing=size.existing,
        pods=size.pods,
        runs=len(seconds),
        decisions_per_second=round(size.pods / median, 1),
        seconds=round(median, 6),
        cpu_seconds=round(statistics.median(cpu_seconds), 6),
        peak_rss_mb=round(max(peaks), 1),
    )


def machine() -> Iterator[tuple[str, str]]:
    """Say on what is measured."""
    yield "python", platform.python_version()
    yield "numpy", np.__version__
    yield "cores", str(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count())
    yield "machine", platform.machine()
