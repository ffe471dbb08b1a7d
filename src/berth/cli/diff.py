"""``berth diff``: what another release, or another configuration, changes for the pods of a cluster."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from berth.cli.tables import Table
    from berth.scheduling.difference import Difference, Judge, Judgement

COLUMNS = ("pod", "node", "what", "from", "to", "reasons")
_N_SHOWN = 3
_MAX_VOLUMES = "KUBE_MAX_PD_VOLS"


class DiffFormat(StrEnum):
    """How differences are written."""

    TABLE = "table"
    JSON = "json"


def diff(
    from_: Annotated[str, typer.Option("--from", metavar="RELEASE", help="The release that decides now.")],
    to: Annotated[str, typer.Option("--to", metavar="RELEASE", help="The release to compare it with.")],
    snapshot: Annotated[
        list[Path] | None,
        typer.Option(
            help="File or folder as kubectl get -o json|yaml writes it; repeatable. Without: the demo."
        ),
    ] = None,
    from_config: Annotated[
        Path | None,
        typer.Option(help="Policy (1.7 to 1.17) or KubeSchedulerConfiguration (1.36) of --from."),
    ] = None,
    to_config: Annotated[Path | None, typer.Option(help="The same of --to.")] = None,
    from_provider: Annotated[
        str | None, typer.Option(metavar="PROVIDER", help="Algorithm provider of --from.")
    ] = None,
    to_provider: Annotated[
        str | None, typer.Option(metavar="PROVIDER", help="Algorithm provider of --to.")
    ] = None,
    from_feature_gates: Annotated[
        str, typer.Option(metavar="NAME=true,…", help="Feature gates of --from.")
    ] = "",
    to_feature_gates: Annotated[str, typer.Option(metavar="NAME=true,…", help="Feature gates of --to.")] = "",
    pending: Annotated[bool, typer.Option("--pending", help="Only pods that have no node.")] = False,
    namespace: Annotated[
        str | None, typer.Option("--namespace", "-n", help="Only pods of this namespace.")
    ] = None,
    lenient: Annotated[bool, typer.Option("--lenient", help="Skip broken objects with a warning.")] = False,
    output: Annotated[
        DiffFormat, typer.Option("--output", "-o", help="How to write the differences.")
    ] = DiffFormat.TABLE,
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help="Exit with 1 when there are differences.")
    ] = False,
) -> None:
    """Tell what an upgrade of kube-scheduler, or another configuration of it, changes for each pod.

    Every pod is judged as if it were not there: does it fit on any node, does it fit on the one it is on, and which
    nodes are best? Without a configuration a release decides by its default provider or profile, with its own feature
    gates. The exit code is 0, also when there are differences, and 2 when what was given can't be used.

    Examples:

        berth diff --from 1.17 --to 1.36 --snapshot cluster.json

        berth diff --from 1.17 --to 1.17 --to-config policy.json -o json
    """
    from berth.cli.errors import Mistakes
    from berth.cli.progress import progress
    from berth.scheduling.difference import differences

    mistakes = Mistakes()
    sides = [
        mistakes.attempt(_profiles, "from", from_, from_config, from_provider, from_feature_gates),
        mistakes.attempt(_profiles, "to", to, to_config, to_provider, to_feature_gates),
    ]
    mistakes.raise_any()
    before, after = _judges([side for side in sides if side is not None], snapshot, lenient)
    pods = before.pods(pending=pending, namespace=namespace)
    found: list[Difference] = []
    with progress("Judging") as on_progress:
        for n_done, difference in enumerate(differences(before, after, pods), 1):
            found += [difference] if difference else []
            if on_progress:
                on_progress(n_done, len(pods))
    write(found, len(pods), from_, to, output)
    if exit_code and found:
        raise typer.Exit(1)


def _profiles(side: str, name: str, config: Path | None, provider: str | None, gates: str) -> Any:
    """Read what decides on one side; return the release's accounting and the profiles.

    Raises
    ------
    BerthError
        With all that is wrong.
    """
    from berth.cli.answer import find_release, parse_feature_gates
    from berth.cli.errors import note
    from berth.config.schedulers import configure
    from berth.errors import BerthError

    release = find_release(f"--{side}", name)
    if config is not None and provider is not None:
        raise BerthError(f"--{side}-config and --{side}-provider: give one of them, not both")
    configured, options = configure(
        release, config, provider, parse_feature_gates(gates), os.environ.get(_MAX_VOLUMES, "")
    )
    for text in configured.notes:
        note(f"note: --{side}: {text}")
    return release.accounting_for(options), configured.of


def _judges(sides: list[Any], snapshot: list[Path] | None, lenient: bool) -> "tuple[Judge, Judge]":
    """Load the snapshot for each side: releases count what pods hold differently."""
    from berth.cli.errors import note
    from berth.cli.progress import progress
    from berth.cluster.cluster import Cluster
    from berth.config import load_settings
    from berth.scheduling.difference import Judge
    from berth.sources.snapshot import load_snapshot

    overrides = {"snapshot.paths": tuple(snapshot) if snapshot else None, "snapshot.lenient": lenient or None}
    settings = load_settings(None, os.environ, overrides).snapshot
    judges: list[Judge] = []
    with _paths(settings.paths) as paths:
        for accounting, profile_of in sides:
            with progress("Loading the snapshot", bytes_=True) as on_progress:
                loaded = load_snapshot(
                    paths, Cluster(accounting), lenient=settings.lenient, on_progress=on_progress
                )
            if not judges:
                for line in loaded.lines():
                    note(line)
            judges.append(Judge(loaded.cluster, profile_of))
    before, after = judges
    return before, after


@contextmanager
def _paths(named: tuple[Path, ...]) -> Iterator[tuple[Path, ...]]:
    """Give the snapshot's files, the demo's if none is named."""
    from tempfile import TemporaryDirectory

    from berth.cli.errors import note
    from berth.sim.demo import demo_snapshot

    if named:
        yield named
        return
    note("no snapshot is named: this is the demo cluster")
    with TemporaryDirectory(prefix="berth-demo-") as folder:
        path = Path(folder) / "demo.json"
        path.write_bytes(demo_snapshot())
        yield (path,)


def write(found: "list[Difference]", n_pods: int, before: str, after: str, output: DiffFormat) -> None:
    """Write differences to standard output."""
    if output is DiffFormat.JSON:
        import msgspec

        document = {
            "from": before, "to": after, "pods": n_pods, "summary": dict(_counts(found)),
            "differences": [_as_json(one) for one in found],
        }  # fmt: skip
        typer.echo(msgspec.json.format(msgspec.json.encode(document), indent=2))
        return
    _write_table(diff_table(found))
    typer.echo(summary_line(found, n_pods, before, after))


def diff_table(found: "list[Difference]") -> "Table":
    """Make a table with a row for each pod and each respect in which it is judged differently."""
    from berth.cli.tables import Table

    rows: list[tuple[str, ...]] = []
    for one in found:
        pod = f"{one.namespace}/{one.name}"
        for what in one.what:
            cells = [_cell(what, judgement) for judgement in (one.before, one.after)]
            rows.append((pod, one.node or "", what, *cells, _reasons(what, one)))
    return Table(COLUMNS, rows)


def summary_line(found: "list[Difference]", n_pods: int, before: str, after: str) -> str:
    """Say in a line what changes."""
    counts = ", ".join(f"{count} {what}" for what, count in _counts(found))
    n = len(found)
    changes = f"{n} of {n_pods} pod{'' if n_pods == 1 else 's'} judged differently"
    return f"{before} to {after}: {changes}{f' ({counts})' if counts else ''}"


def _counts(found: "list[Difference]") -> list[tuple[str, int]]:
    from berth.scheduling.difference import BEST_NODES, FITS_ANYWHERE, FITS_OWN_NODE

    kinds = (FITS_ANYWHERE, FITS_OWN_NODE, BEST_NODES)
    return [(what, n) for what in kinds if (n := sum(what in one.what for one in found))]


def _cell(what: str, judgement: "Judgement") -> str:
    from berth.scheduling.difference import FITS_ANYWHERE, FITS_OWN_NODE

    if what == FITS_ANYWHERE:
        return "yes" if judgement.best else "no"
    if what == FITS_OWN_NODE:
        return {True: "yes", False: "no", None: ""}[judgement.fits_own_node]
    shown = ",".join(judgement.best[:_N_SHOWN])
    more = len(judgement.best) - _N_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _reasons(what: str, one: "Difference") -> str:
    from berth.scheduling.difference import FITS_ANYWHERE, FITS_OWN_NODE

    if what == FITS_ANYWHERE:
        return one.before.reason or one.after.reason or ""
    if what == FITS_OWN_NODE:
        return ", ".join(one.before.own_reasons or one.after.own_reasons)
    return ""


def _as_json(one: "Difference") -> dict[str, Any]:
    def side(judgement: "Judgement") -> dict[str, Any]:
        return {
            "fits": bool(judgement.best),
            "fitsOwnNode": judgement.fits_own_node,
            "best": judgement.best,
            "reason": judgement.reason,
            "ownReasons": judgement.own_reasons,
        }

    return {
        "namespace": one.namespace, "pod": one.name, "node": one.node, "what": one.what,
        "from": side(one.before), "to": side(one.after),
    }  # fmt: skip


def _write_table(table: "Table") -> None:
    from berth.cli.tables import plain_lines

    if not table.rows:
        return
    if not sys.stdout.isatty():
        for line in plain_lines(table):
            typer.echo(line)
        return
    from rich import box
    from rich.console import Console
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in table.columns:
        shown.add_column(column, overflow="fold")
    for row in table.rows:
        shown.add_row(*(Text(cell, "red" if cell == "no" else "") for cell in row))
    Console(highlight=False).print(shown)
