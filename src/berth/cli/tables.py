"""A plan as a table: for people on a terminal, plain columns with full names for everything else."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from berth.module.plan import Plan, PlannedDecision

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

NOTHING = "-"
COLUMNS = ("operation", "service", "pod", "node", "score", "feasible", "scores", "reason")
SUMMARY_COLUMNS = ("operation", "service", "node", "pods", "reason")
_CAPITAL = re.compile(r"[A-Z]")
_STYLES = {"add": "green", "remove": "yellow"}
_RIGHT = ("score", "feasible", "pods")
_DETAILS = ("scores", "reason")
_GAP = 3
_LEAST_REASON = 40
_LONG = 2_000  # rows: a table shows nothing before all of it is laid out


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


def print_table(table: Table, console: "Console") -> None:
    """Show a table on a terminal: a line a row where the terminal is wide enough, else with the details below it.

    A long table has them below too, for so it shows as it is written.

    Scores are named by their capitals: their names in full would not fit beside one another. What failed has no scores:
    its reason stands in their place.
    """
    names = tuple(column for column in table.columns if column not in _DETAILS)
    rows = [_Shown.of(dict(zip(table.columns, row, strict=True))) for row in table.rows]
    details = max([_LEAST_REASON, *(len(row.details) for row in rows if not row.failed)])
    fits = sum(_widths(names, rows)) + _GAP * len(names) + details <= console.width
    if fits and len(rows) <= _LONG:
        console.print(_wide_table(names, rows, "scores" if "scores" in table.columns else "reason"))
    else:
        _print_stacked([name for name in names if name != "feasible"], rows, console)


def _print_stacked(names: Sequence[str], rows: "Sequence[_Shown]", console: "Console") -> None:
    from rich.padding import Padding

    widths = _widths(names, rows)
    console.print("  ".join(_aligned(names, names, widths)), style="bold", soft_wrap=True)
    for row in rows:
        line = _aligned(names, [row.cells[name] for name in names], widths)
        console.print("  ".join(line).rstrip(), style=row.style, soft_wrap=True)
        count = "" if row.failed else row.cells.get("feasible", "0")
        details = f"{row.details}, of {count} feasible" if count not in ("", "0") else row.details
        if details:
            console.print(Padding(details, (0, 0, 0, 4)), style="red" if row.failed else "dim")


def _widths(names: Sequence[str], rows: "Sequence[_Shown]") -> list[int]:
    return [max([len(name), *(len(row.cells[name]) for row in rows)]) for name in names]


def _aligned(names: Sequence[str], cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [
        cell.rjust(width) if name in _RIGHT else cell.ljust(width)
        for name, cell, width in zip(names, cells, widths, strict=True)
    ]


def _wide_table(names: Sequence[str], rows: "Sequence[_Shown]", last: str) -> "RenderableType":
    from rich import box
    from rich.table import Table as RichTable
    from rich.text import Text

    shown = RichTable(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for name in names:
        shown.add_column(name, justify="right" if name in _RIGHT else "left", no_wrap=True)
    shown.add_column(last, overflow="fold")
    for row in rows:
        first, *others = (row.cells[name] for name in names)
        shown.add_row(Text(first, row.style), *others, Text(row.details, "red" if row.failed else ""))
    return shown


@dataclass(frozen=True, slots=True)
class _Shown:
    """A row on a terminal: short cells, and what may be long."""

    cells: dict[str, str]
    details: str
    failed: bool
    style: str

    @classmethod
    def of(cls, cells: dict[str, str]) -> "_Shown":
        failed = bool(cells["reason"])
        style = "red" if failed else _STYLES[cells["operation"]]
        return cls(cells, cells["reason"] or _short_scores(cells.get("scores", "")), failed, style)


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
        str(decision.feasible),
        ",".join(f"{name}={score}" for name, score in decision.scores.items()),
        decision.reason or "",
    )
