"""``berth bench``: the benchmarks, each in a process of its own."""

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from berth.sim.benchmarks import Result


class BenchOutput(StrEnum):
    """How the figures are written."""

    TABLE = "table"
    JSON = "json"


def bench(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]...", help="Which to run; without, all of them.")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="How often each is run; the median counts.")] = 5,
    nodes: Annotated[int | None, typer.Option(min=1, help="Nodes of the cluster.")] = None,
    existing: Annotated[int | None, typer.Option(min=0, help="Pods that are there already.")] = None,
    pods: Annotated[int | None, typer.Option(min=1, help="Pods to decide about.")] = None,
    output: Annotated[
        BenchOutput, typer.Option("--output", "-o", help="How to write the figures.")
    ] = BenchOutput.TABLE,
) -> None:
    """Measure how fast Berth is on this machine.

    Each workload runs in a process of its own; times are medians of the runs, memory is the peak of the process.

    Examples:

        berth bench

        berth bench round-add --nodes 1000 --existing 10000 --output json
    """
    from dataclasses import asdict, replace

    import msgspec

    from berth.cli.progress import progress
    from berth.errors import InputError
    from berth.sim.benchmarks import measure_apart
    from berth.sim.workloads import WORKLOADS

    for name in names or []:
        if name not in WORKLOADS:
            raise InputError("NAME", name, f"one of {', '.join(WORKLOADS)}")
    chosen = [WORKLOADS[name] for name in names or WORKLOADS]
    results = []
    with progress("Measuring") as on_progress:
        for i, workload in enumerate(chosen):
            given = {"nodes": nodes, "existing": existing, "pods": pods}
            size = replace(workload.size, **{key: n for key, n in given.items() if n is not None})
            if workload.fresh:
                size = replace(size, pods=size.existing)
            results.append(measure_apart(workload, size, runs))
            if on_progress:
                on_progress(i + 1, len(chosen))
    if output is BenchOutput.JSON:
        typer.echo(msgspec.json.format(msgspec.json.encode([asdict(result) for result in results]), indent=2))
    else:
        _write_table(results)


def _write_table(results: "list[Result]") -> None:
    from berth.cli.tables import Table, plain_lines
    from berth.sim.benchmarks import machine

    columns = ("workload", "nodes", "existing", "pods", "ms", "pods/s", "us/pod", "cpu ms", "peak MB")
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
        )
        for r in results
    ]
    for line in plain_lines(Table(columns, rows)):
        typer.echo(line)
    typer.echo(
        f"medians of {results[0].runs} runs; " + ", ".join(f"{key} {value}" for key, value in machine())
    )
