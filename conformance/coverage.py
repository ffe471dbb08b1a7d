#!/usr/bin/env python3
"""Count how often the golden cases exercise each predicate, priority and plugin, and write the table of docs/conformance.md.

    python -m conformance.coverage

A predicate is exercised by a case in which it fails a node; a priority by one in which it tells feasible nodes apart, or
gives one something other than 0 or the maximum.
"""

import collections
from pathlib import Path
from typing import Any

from berth.releases import RELEASES
from conformance.compare import ORACLES
from conformance.golden import read_golden

DOCS = Path(__file__).resolve().parent.parent / "docs" / "conformance.md"
BEGIN, END = "<!-- coverage: begin -->", "<!-- coverage: end -->"


def count(release: str) -> collections.Counter[str]:
    """Count the cases that exercise each predicate and priority of a release."""
    found: collections.Counter[str] = collections.Counter()
    maximum = RELEASES[release].maximum
    for _, answer in read_golden(release):
        predicates: dict[str, Any] = answer.get("predicates") or {}  # type: ignore[assignment]
        priorities: dict[str, Any] = answer.get("priorities") or {}  # type: ignore[assignment]
        for name, verdict in predicates.items():
            found[name] += bool(verdict)
        for name, scores in priorities.items():
            values = set(scores.values())
            found[name] += len(values) > 1 or not values <= {0, maximum}
    return found


def table() -> str:
    """Return the table, in Markdown."""
    counts = {release: count(release) for release in ORACLES}
    names = sorted(set().union(*counts.values()))
    lines = [f"| | {' | '.join(counts)} |", f"| --- |{' ---: |' * len(counts)}"]
    for name in names:
        cells = [str(counted[name]) if name in counted else "" for counted in counts.values()]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Write the table into the page."""
    page = DOCS.read_text(encoding="utf-8")
    head, rest = page.split(BEGIN)
    DOCS.write_text(f"{head}{BEGIN}\n{table()}\n{END}{rest.split(END)[1]}", encoding="utf-8")


if __name__ == "__main__":
    main()
