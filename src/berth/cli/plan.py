"""``berth plan``: a round on a snapshot, decided and shown, and nothing done."""

import sys
from collections import deque
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer.core import TyperCommand

if TYPE_CHECKING:
    from berth.cli.changes import Asked
    from berth.cli.errors import Mistakes
    from berth.config import Settings
    from berth.module.changes import Operation
    from berth.module.plan import Plan

_ORDER = "berth.plan.order"


class OutputFormat(StrEnum):
    """How a plan is written."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class OrderedCommand(TyperCommand):
    """Remembers in which order options were given: ``--add`` and ``--remove`` take turns."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        # Parsing removes what it has read from its list.
        _, _, order = self.make_parser(ctx).parse_args(args=list(args))
        ctx.meta[_ORDER] = [param.name for param in order if param.name in ("add", "remove")]
        return super().parse_args(ctx, args)


def plan(
    ctx: typer.Context,
    snapshot: Annotated[
        list[Path] | None,
        typer.Option(
            help="File or folder as kubectl get -o json|yaml writes it; repeatable. Without: the demo."
        ),
    ] = None,
    add: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NS/SERVICE=N", help="Add N pods: shop/web=3, shop/web@deployment/web=3. Repeatable."
        ),
    ] = None,
    remove: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NS/SERVICE=N", help="Remove N pods; repeatable, decided in the round's own order."
        ),
    ] = None,
    requests: Annotated[
        Path | None, typer.Option(help='A request body, {"podList": [...]}; - is standard input.')
    ] = None,
    forecast: Annotated[Path | None, typer.Option(help="Forecasts of the nodes' loads: JSON or CSV.")] = None,
    load: Annotated[Path | None, typer.Option(help="The nodes' current loads: JSON or CSV.")] = None,
    profiles: Annotated[Path | None, typer.Option(help="What services are hungry for: JSON or CSV.")] = None,
    config: Annotated[Path | None, typer.Option(help="Settings (berth.yaml).")] = None,
    now: Annotated[
        str | None, typer.Option(metavar="TIME", help="The time to plan for, such as 2026-03-01T12:00:00Z.")
    ] = None,
    lenient: Annotated[bool, typer.Option("--lenient", help="Skip broken objects with a warning.")] = False,
    output: Annotated[
        OutputFormat, typer.Option("--output", "-o", help="How to write the plan.")
    ] = OutputFormat.TABLE,
    summary: Annotated[
        bool, typer.Option("--summary", help="Count pods by service and node instead of listing each.")
    ] = False,
) -> None:
    """Plan what adding and removing pods would do, without doing it.

    Removals are decided before additions, and within each the larger pods first; what is equal is decided in the order
    in which it was asked for. The exit code is 0 when there is a plan, also when some of it failed, and 2 when what was
    given can't be used.

    Examples:

        berth plan --add shop/web=3 --remove shop/api=1

        berth plan --snapshot cluster.json --add shop/web=3 --output json
    """
    from berth.cli.errors import Mistakes
    from berth.config import load_settings

    paths = {"forecast.file": forecast, "load.file": load, "profiles.file": profiles}
    overrides: dict[str, object] = {
        **paths, "snapshot.paths": tuple(snapshot) if snapshot else None, "snapshot.lenient": lenient or None,
    }  # fmt: skip
    settings = load_settings(config, _environment(), overrides)
    mistakes = Mistakes()
    asked = _asked(ctx.meta.get(_ORDER, []), add or [], remove or [], requests, settings, mistakes)
    made = make_plan(settings, asked, now, mistakes)
    write_plan(made, output, summary)


def make_plan(settings: "Settings", asked: "list[Asked]", now: str | None, mistakes: "Mistakes") -> "Plan":
    """Plan a round with what the settings name.

    Raises
    ------
    BerthError
        With all that is wrong with what was given, ``mistakes`` included.
    """
    from berth.cli.changes import check_all, numbered
    from berth.cli.inputs import read_inputs
    from berth.cli.progress import progress
    from berth.service.assembly import make_planner

    given = mistakes.attempt(parse_time, now) if now is not None else None
    time = given or datetime.now(UTC)
    n_before = len(mistakes.lines)
    inputs = read_inputs(settings, mistakes)
    if len(mistakes.lines) == n_before:
        check_all(inputs.cluster, asked, mistakes)
    mistakes.raise_any()
    planner = make_planner(inputs.cluster, settings, inputs.profiles)
    planner.set_forecast(inputs.feed.delta(inputs.cluster, time))
    with progress("Deciding") as on_progress:
        return planner.dry_run(1, [one.change for one in numbered(asked)], on_progress).written()


def write_plan(plan: "Plan", output: OutputFormat, summary: bool) -> None:
    """Write a plan to standard output."""
    import msgspec

    if output is OutputFormat.JSON:
        typer.echo(msgspec.json.format(msgspec.json.encode(plan), indent=2))
    elif output is OutputFormat.YAML:
        import yaml

        typer.echo(yaml.safe_dump(msgspec.to_builtins(plan), sort_keys=False, allow_unicode=True), nl=False)
    else:
        _write_table(plan, summary)


def parse_time(text: str) -> datetime:
    """Read a time with a zone.

    Raises
    ------
    InputError
        It is no time, or has no zone.
    """
    from berth.errors import InputError

    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        time = None
    if time is None or time.tzinfo is None:
        raise InputError("--now", text, "a time with a zone, such as 2026-03-01T12:00:00Z")
    return time


def _write_table(plan: "Plan", summary: bool) -> None:
    from berth.cli.tables import counts_line, legend, plain_lines, plan_table, print_table, summary_table

    table = summary_table(plan) if summary else plan_table(plan)
    if sys.stdout.isatty():
        from rich.console import Console

        console = Console(highlight=False, markup=False, emoji=False)
        print_table(table, console)
        if not summary and (key := legend(plan)):
            console.print(key, style="dim")
        console.print(counts_line(plan), style="bold")
        return
    for line in plain_lines(table):
        typer.echo(line)
    typer.echo(counts_line(plan))


def _asked(
    order: "list[Operation]",
    add: list[str],
    remove: list[str],
    requests: Path | None,
    settings: "Settings",
    mistakes: "Mistakes",
) -> "list[Asked]":
    """Read the changes: those of the file first, then the options in the order in which they were given."""
    from berth.cli.changes import parse_change, read_requests

    maximum = settings.module.max_number
    asked: list[Asked] = []
    if requests is not None:
        asked += mistakes.attempt(read_requests, requests, maximum) or []
    left: dict[Operation, deque[str]] = {"add": deque(add), "remove": deque(remove)}
    for operation in order:
        one = mistakes.attempt(parse_change, operation, left[operation].popleft(), maximum)
        asked += [one] if one else []
    if requests is None and not add and not remove:
        mistakes.lines.append(
            "nothing to plan: ask for it with --add shop/web=3, --remove shop/api=1 or --requests FILE"
        )
    return asked


def _environment() -> dict[str, str]:
    import os

    return dict(os.environ)
