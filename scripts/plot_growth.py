"""Measure how decisions a second fall as the cluster grows, and draw it: docs/growth.json and docs/growth.svg.

python scripts/plot_growth.py          measures (some minutes), then draws
python scripts/plot_growth.py --draw   draws what was measured before
"""

import json
import sys
from dataclasses import asdict
from math import ceil, floor, log10
from pathlib import Path
from typing import Any

from berth.sim.benchmarks import measure_apart
from berth.sim.workloads import chosen, sized

DOCS = Path(__file__).resolve().parent.parent / "docs"
FIGURES, PLOT = DOCS / "growth.json", DOCS / "growth.svg"

N_NODES = (1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000)
SERIES = {
    "basic/5000Nodes": ("same shape", "#0b6bcb"),
    "service/5000Nodes": ("same shape, of a service", "#b4540a"),
    "mixed/5000Nodes": ("150 shapes in random order", "#1a7f37"),
    "distinct-shapes": ("every decision a new shape", "#8250df"),
}
WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 76, 200, 44, 56

Figure = dict[str, Any]


def main() -> None:
    """Measure unless told not to, and draw."""
    if "--draw" not in sys.argv[1:]:
        FIGURES.write_text(json.dumps(measured(), indent=1) + "\n", encoding="utf-8")
    PLOT.write_text(plot(json.loads(FIGURES.read_text(encoding="utf-8"))), encoding="utf-8")


def measured() -> list[Figure]:
    """Measure every series at every number of nodes."""
    figures = []
    for name in SERIES:
        for n_nodes in N_NODES:
            (workload,) = chosen([name])
            size = sized(workload, n_nodes, n_nodes, n_pods(name, n_nodes))
            figures.append(asdict(measure_apart(workload, size, runs=1)))
            print(name, n_nodes, figures[-1]["decisions_per_second"], file=sys.stderr)
    return figures


def n_pods(name: str, n_nodes: int) -> int:
    """How many pods: of batches a tenth of the nodes; of the others what takes seconds."""
    match name:
        case "mixed/5000Nodes":
            return 2_000
        case "distinct-shapes":
            return 200
    return max(1_000, n_nodes // 10)


def plot(figures: list[Figure]) -> str:
    """Draw decisions a second over nodes, both logarithmic."""
    rates = [figure["decisions_per_second"] for figure in figures]
    low, high = floor(log10(min(rates))), ceil(log10(max(rates)))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        'font-family="sans-serif" font-size="13" role="img">',
        "<title>Decisions a second over the number of nodes, every node scored</title>",
        f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
        _text(LEFT, 24, "decisions a second, every node scored", weight="bold"),
    ]
    for power in range(low, high + 1):
        at = y(10.0**power, low, high)
        parts.append(_line((LEFT, at), (WIDTH - RIGHT, at), "#d0d7de"))
        parts.append(_text(LEFT - 8, at + 4, f"{10**power:,}", anchor="end"))
    for n_nodes in N_NODES:
        at = x(n_nodes)
        parts.append(_line((at, HEIGHT - BOTTOM), (at, HEIGHT - BOTTOM + 5), "#57606a"))
        parts.append(_text(at, HEIGHT - BOTTOM + 20, f"{n_nodes // 1000}k", anchor="middle"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 12, "nodes", anchor="middle"))
    ends = []
    for name, (label, color) in SERIES.items():
        points = [
            (x(f["nodes"]), y(f["decisions_per_second"], low, high)) for f in figures if f["workload"] == name
        ]
        path = " ".join(f"{px:.1f},{py:.1f}" for px, py in points)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="2"/>')
        parts += [f'<circle cx="{px:.1f}" cy="{py:.1f}" r="3" fill="{color}"/>' for px, py in points]
        ends.append((points[-1][1] + 4, label, color))
    for at, label, color in _apart(ends):
        parts.append(_text(WIDTH - RIGHT + 10, at, label, color=color))
    return "\n".join([*parts, "</svg>"]) + "\n"


def x(n_nodes: float) -> float:
    """Where a number of nodes is."""
    first, last = log10(N_NODES[0]), log10(N_NODES[-1])
    return LEFT + (WIDTH - LEFT - RIGHT) * (log10(n_nodes) - first) / (last - first)


def y(rate: float, low: int, high: int) -> float:
    """Where a rate is, between two powers of ten."""
    return HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (log10(rate) - low) / (high - low)


def _apart(ends: list[tuple[float, str, str]]) -> list[tuple[float, str, str]]:
    """Move labels down until none lies on another."""
    moved: list[tuple[float, str, str]] = []
    for at, label, color in sorted(ends):
        moved.append((max(at, moved[-1][0] + 16) if moved else at, label, color))
    return moved


def _line(start: tuple[float, float], end: tuple[float, float], color: str) -> str:
    return f'<line x1="{start[0]:.1f}" y1="{start[1]:.1f}" x2="{end[0]:.1f}" y2="{end[1]:.1f}" stroke="{color}"/>'


def _text(
    at: float,
    down: float,
    text: str,
    *,
    anchor: str = "start",
    color: str = "#24292f",
    weight: str = "normal",
) -> str:
    style = f'text-anchor="{anchor}" fill="{color}" font-weight="{weight}"'
    return f'<text x="{at:.1f}" y="{down:.1f}" {style}>{text}</text>'


if __name__ == "__main__":
    main()
