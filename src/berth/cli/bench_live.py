"""``berth bench live``: Berth, a loop that only posts, and kube-scheduler, one after another on one real control plane."""

import sys
from dataclasses import asdict
from typing import TYPE_CHECKING

import typer

from berth.cli.errors import InputMistakes, note

if TYPE_CHECKING:
    from berth.live.bench.measuring import Figures, LiveSize

NAME = "live"
MEANING = "bind pods on a real control plane, built with Go; by itself, see docs/benchmarks.md"
NODES = PODS = 5_000


def bench_live(size: "LiveSize", *, kube_scheduler: bool, as_json: bool) -> None:
    """Measure, and write the figures."""
    import msgspec

    from berth.live.bench.measuring import contenders, measure_live
    from berth.sim.control_plane.binaries import ensure

    if sys.platform != "linux":
        raise InputMistakes(
            [f"live: expected Linux, whose /proc tells what processes take, not {sys.platform}"]
        )
    found = measure_live(
        lambda: ensure(note, kwok=False), size, contenders(size, kube_scheduler=kube_scheduler), note
    )
    if as_json:
        told = {**asdict(size), **{name: asdict(figures) for name, figures in found.items()}}
        typer.echo(msgspec.json.format(msgspec.json.encode(told), indent=2))
    else:
        _write_table(size, found)


def _write_table(size: "LiveSize", found: "dict[str, Figures]") -> None:
    from berth.cli.tables import Table, plain_lines
    from berth.live.bench.measuring import PER_SECOND
    from berth.sim.benchmarks import machine

    columns = ("process", "pods/s", "cpu ms/pod", "peak MB", "events", "p50 ms", "p99 ms", "load")
    rows: list[tuple[str, ...]] = [
        (
            name.replace("_", "-"),
            f"{figures.pods_per_second:,.0f}",
            f"{figures.cpu_ms_per_pod:.2f}",
            f"{figures.peak_rss_mb:,.0f}",
            f"{figures.events:,.0f}",
            *("" if ms is None else f"{ms:,.1f}" for ms in (figures.p50_ms, figures.p99_ms)),
            f"{figures.load_average:.1f}",
        )
        for name, figures in found.items()
    ]
    for line in plain_lines(Table(columns, rows)):
        typer.echo(line)
    berth = found["berth"]
    for name, other in found.items():
        if other is not berth:
            rate = berth.pods_per_second / other.pods_per_second
            cpu = berth.cpu_ms_per_pod / max(other.cpu_ms_per_pod, 1e-3)
            typer.echo(
                f"berth binds {rate:.2f} times as fast as {name.replace('_', '-')}, with {cpu:.2f} times its cpu"
            )
    typer.echo(
        f"{size.pods:,} pods on {size.nodes:,} nodes, medians of {size.rounds} rounds; latency of {size.arriving:,} pods, "
        f"{PER_SECOND:g} arriving a second; " + ", ".join(f"{key} {value}" for key, value in machine())
    )
