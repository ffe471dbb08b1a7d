"""``berth bench``: the benchmarks, each in a process of its own."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from berth.cli import bench_live

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from berth.sim.benchmarks import Result, Workload
    from berth.sim.peer import PeerResult
    from berth.sim.workload_files import Size


_MANY_NODES = 5_000


class BenchOutput(StrEnum):
    """How the figures are written."""

    TABLE = "table"
    JSON = "json"


class Peer(StrEnum):
    """With whom Berth is compared."""

    KUBE_SCHEDULER = "kube-scheduler"


def bench(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[NAME]...",
            help="Which to run, or a workload file of one's own; without, those of up to 5,000 nodes. "
            "live, by itself: bind pods on a real control plane.",
        ),
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Run the large ones too: it takes a while.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="Only say which there are.")] = False,
    runs: Annotated[
        int | None,
        typer.Option(
            "--runs",
            "--rounds",
            min=1,
            help="How often each is run; the median counts. Without: 5 times, or as often as fits into a second; live once.",
        ),
    ] = None,
    numpy_alone: Annotated[
        bool, typer.Option("--numpy-alone", help="Measure as where Numba is not installed.")
    ] = False,
    nodes: Annotated[int | None, typer.Option(min=1, help="Nodes of the cluster.")] = None,
    existing: Annotated[int | None, typer.Option(min=0, help="Pods that are there already.")] = None,
    pods: Annotated[int | None, typer.Option(min=1, help="Pods to decide about.")] = None,
    against: Annotated[
        Peer | None,
        typer.Option(
            help="Also measure kube-scheduler's own code, built with Go, on the same cluster and pods."
        ),
    ] = None,
    output: Annotated[
        BenchOutput, typer.Option("--output", "-o", help="How to write the figures.")
    ] = BenchOutput.TABLE,
) -> None:
    """Measure how fast Berth is on this machine.

    Each workload runs in a process of its own; times are medians of the runs, memory is the peak of the process.

    Examples:

        berth bench --list

        berth bench SchedulingBasic --against kube-scheduler

        berth bench round-add --nodes 1000 --existing 10000 --output json

        berth bench live --against kube-scheduler --rounds 3
    """
    if names and bench_live.NAME in names and not list_:
        _measure_live(names, runs, nodes, existing, pods, against, output)
        return
    from berth.cli.errors import Mistakes
    from berth.cli.progress import progress
    from berth.sim.benchmarks import measure_apart
    from berth.sim.memory import check
    from berth.sim.workloads import chosen, sized

    mistakes = Mistakes()
    by_name = [name for name in names or [] if name != bench_live.NAME]
    given = [mistakes.attempt(chosen, [name]) for name in by_name]
    mistakes.raise_any()
    wanted = [workload for some in given if some for workload in some] if names else chosen([])
    if list_:
        _write_list(wanted, with_live=not names or bench_live.NAME in names)
        return
    if not names and not all_:
        wanted = _without_large(wanted)
    sizes = [sized(workload, nodes, existing, pods) for workload in wanted]
    for workload, size in zip(wanted, sizes, strict=True):
        mistakes.attempt(check, workload.name, size)
    mistakes.raise_any()
    program = _peer() if against else None
    results, peers = [], []
    with progress("Measuring") as on_progress:
        for i, (workload, size) in enumerate(zip(wanted, sizes, strict=True)):
            results.append(measure_apart(workload, size, runs, compiled=not numpy_alone))
            peers.append(_against(program, workload, size) if program else [])
            if on_progress:
                on_progress(i + 1, len(wanted))
    if output is BenchOutput.JSON:
        _write_json(results, peers if against else None)
    else:
        _write_table(results)
        if program:
            _write_ratios(results, peers)


def _measure_live(
    names: list[str],
    rounds: int | None,
    nodes: int | None,
    existing: int | None,
    pods: int | None,
    against: Peer | None,
    output: BenchOutput,
) -> None:
    from berth.cli.errors import InputMistakes
    from berth.live.bench.measuring import LiveSize

    mistakes = []
    if len(names) > 1:
        mistakes.append(f"NAME: expected no other workload beside {bench_live.NAME}")
    if existing:
        mistakes.append(f"--existing: expected none with {bench_live.NAME}, which begins with empty nodes")
    if mistakes:
        raise InputMistakes(mistakes)
    size = LiveSize(nodes or bench_live.NODES, pods or bench_live.PODS, rounds or 1)
    bench_live.bench_live(size, kube_scheduler=against is not None, as_json=output is BenchOutput.JSON)


def _without_large(workloads: "list[Workload]") -> "list[Workload]":
    """Leave out the workloads that take long, and say which."""
    from berth.cli.errors import note

    large = [workload.name for workload in workloads if workload.size.nodes > _MANY_NODES]
    note(f"left out, run by name or with --all: {', '.join(large)}")
    return [workload for workload in workloads if workload.name not in large]


def _peer() -> "Path | None":
    """Return the peer's program; without one, say why not."""
    from berth.cli.errors import note
    from berth.sim.peer import NoPeerError, build

    try:
        return build()
    except NoPeerError as error:
        note(f"{error}; Berth is measured alone.")
        return None


def _against(program: "Path", workload: "Workload", size: "Size") -> "list[PeerResult]":
    from berth.cli.errors import note
    from berth.sim.made_cluster import MadeCluster
    from berth.sim.peer import EVERY_NODE, SAMPLED, NoPeerError, measure_peer

    if workload.file is None:
        return []
    try:
        return measure_peer(program, MadeCluster(workload.file, size), (SAMPLED, EVERY_NODE))
    except NoPeerError as error:
        note(f"{workload.name}: {error}")
        return []


def _write_list(workloads: "list[Workload]", *, with_live: bool) -> None:
    from berth.cli.tables import Table, plain_lines

    rows: list[tuple[str, ...]] = [
        (w.name, *(f"{n:,}" for n in (w.size.nodes, w.size.existing, w.size.pods)), w.meaning)
        for w in workloads
    ]
    if with_live:
        rows.append(
            (bench_live.NAME, f"{bench_live.NODES:,}", "0", f"{bench_live.PODS:,}", bench_live.MEANING)
        )
    for line in plain_lines(Table(("workload", "nodes", "existing", "pods", "meaning"), rows)):
        typer.echo(line)


def _write_json(results: "list[Result]", peers: "Sequence[list[PeerResult]] | None") -> None:
    from dataclasses import asdict

    import msgspec

    objects = [asdict(result) for result in results]
    for i, of_peer in enumerate(peers or ()):
        objects[i]["against"] = [{**asdict(peer), "ratio": _ratio(results[i], peer)} for peer in of_peer]
    typer.echo(msgspec.json.format(msgspec.json.encode(objects), indent=2))


def _write_table(results: "list[Result]") -> None:
    from berth.cli.tables import Table, plain_lines
    from berth.sim.benchmarks import machine

    columns = ("workload", "nodes", "existing", "pods", "ms", "pods/s", "us/pod", "cpu ms", "peak MB", "runs")
    rows: list[tuple[str, ...]] = [
        (
            r.workload,
            f"{r.nodes:,}",
            f"{r.existing:,}",
            f"{r.pods:,}",
            f"{r.seconds * 1e3:,.1f}",
            f"{r.decisions_per_second:,.0f}",
            f"{r.seconds / r.pods * 1e6:,.1f}",
            f"{r.cpu_seconds * 1e3:,.1f}",
            f"{r.peak_rss_mb:,.0f}",
            f"{r.runs}",
        )
        for r in results
    ]
    for line in plain_lines(Table(columns, rows)):
        typer.echo(line)
    typer.echo("medians of the runs; " + ", ".join(f"{key} {value}" for key, value in machine()))


def _write_ratios(results: "list[Result]", peers: "Sequence[list[PeerResult]]") -> None:
    from berth.cli.tables import Table, plain_lines
    from berth.sim.peer import EVERY_NODE, VERSION

    columns = ("workload", "kube-scheduler looks at", "pods", "ms", "pods/s", "cpu ms", "peak MB", "berth is")
    rows: list[tuple[str, ...]] = [
        (
            result.workload,
            "every node" if peer.percentage == EVERY_NODE else "its sample",
            f"{peer.pods:,}",
            f"{peer.seconds * 1e3:,.1f}",
            f"{peer.decisions_per_second:,.0f}",
            f"{peer.cpu_seconds * 1e3:,.1f}",
            f"{peer.peak_rss_mb:,.0f}",
            f"{_ratio(result, peer):,} times as fast",
        )
        for result, of_peer in zip(results, peers, strict=True)
        for peer in of_peer
    ]
    if not rows:
        typer.echo("\nkube-scheduler has nothing to compare with these.")
        return
    typer.echo("")
    for line in plain_lines(Table(columns, rows)):
        typer.echo(line)
    typer.echo(f"kube-scheduler {VERSION}'s code in one process, one run; Berth scores every node.")


def _ratio(result: "Result", peer: "PeerResult") -> float:
    return round(result.decisions_per_second / peer.decisions_per_second, 1)
