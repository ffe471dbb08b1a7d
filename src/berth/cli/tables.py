"""A plan as a table: for people on a terminal, plain columns with full names for everything else."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from berth.module.plan import Plan, PlannedDecision

if TYPE_CHECKING:
    from rich.console import RenderableType

NOTHING = "-"
COLUMNS = ("operation", "service", "pod", "node", "score", "scores", "feasible", "reason")
SUMMARY_COLUMNS = ("operation", "service", "node", "pods", "reason")
_CAPITAL = re.compile(r"[A-Z]")
_STYLES = {"add": "green", "remove": "yellow"}
_RIGHT = ("score", "feasible", "pods")


@dataclass(frozen=True, slots=True)
class Table:
    """Cells by row and column, all of them text; empty where there is nothing."""

    columns: tuple[str, ...]
    rows: list[tuple[str, ...]]


def plan_table(plan: Plan) -> Table:
    """Make a table with a row a decision."""
    return Table(COLUMNS, [_cells(decision) for decision in plan.decisions])


def summary_table(plan: Plan) -> Table:
    """Make a table with a row for each service and node, or reason: how many pods."""
    counts = Counter(
        (d.operation, f"{d.namespace}/{d.service}", d.node or "", d.reason or "") for d in plan.decisions
    )
    rows: list[tuple[str, ...]] = [
        (operation, service, node, str(n), reason) for (operation, service, node, reason), n in counts.items()
    ]
    return Table(SUMMARY_COLUMNS, rows)


def counts_line(plan: Plan) -> str:
    """Say in a line what a plan comes to."""
    counts = f"{plan.added} added, {plan.removed} removed, {plan.failed} failed"
    n = plan.nodes_without_forecast
    return f"{counts}; {n} node{'' if n == 1 else 's'} without forecast" if n else counts


def plain_lines(table: Table) -> Iterable[str]:
    """Yield a table as aligned columns, two spaces apart; nothing is cut off, and no cell is empty."""
    header = tuple(column.upper() for column in table.columns)
    rows = [header, *(tuple(cell or NOTHING for cell in row) for row in table.rows)]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def rich_table(table: Table) -> "RenderableType":
    """Make what Rich shows on a terminal.

    Scores are named by their capitals: their names in full would not fit beside one another. What failed has no scores:
    its reason stands in their place.
    """
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    last = "scores, or why not" if "scores" in table.columns else "why not"
    columns = [column for column in table.columns if column not in ("scores", "reason")]
    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in columns:
        right = column in _RIGHT
        shown.add_column(column, justify="right" if right else "left", no_wrap=right, overflow="fold")
    shown.add_column(last, overflow="fold")
    for row in table.rows:
        cells = dict(zip(table.columns, row, strict=True))
        failed = bool(cells["reason"])
        style = "red" if failed else _STYLES[cells["operation"]]
        texts = [Text(cells[column], style if column == "operation" else "") for column in columns]
        texts.append(Text(cells["reason"], "red") if failed else Text(_short_scores(cells.get("scores", ""))))
        shown.add_row(*texts)
    return shown


def legend(plan: Plan) -> str:
    """Say what the capitals stand for."""
    names = dict.fromkeys(name for decision in plan.decisions for name in decision.scores)
    return ", ".join(f"{initials(name)} {name}" for name in names)


def initials(name: str) -> str:
    """Return the capitals of a priority's name: BRA for BalancedResourceAllocation."""
    return "".join(_CAPITAL.findall(name.removesuffix("Priority"))) or name


def _short_scores(scores: str) -> str:
    pairs: Sequence[Sequence[str]] = [pair.split("=") for pair in scores.split(",") if pair]
    # No-break spaces: a line is broken between scores, not inside one.
    return " ".join(f"{initials(name)}\u00a0{score}" for name, score in pairs)


def _cells(decision: PlannedDecision) -> tuple[str, ...]:
    return (
        decision.operation,
        f"{decision.namespace}/{decision.service}",
        decision.pod or "",
        decision.node or "",
        "" if decision.score is None else str(decision.score),
        ",".join(f"{name}={score}" for name, score in decision.scores.items()),
        str(decision.feasible),
        decision.reason or "",
    )
