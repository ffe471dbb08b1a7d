#!/usr/bin/env python3
"""Count how often the golden cases exercise each predicate, priority and plugin, and write the table of docs/conformance.md.

    python -m conformance.coverage

A predicate is exercised by a case in which it fails a node; a priority by one in which it tells feasible nodes apart, or
gives one something other than 0 or the maximum.
"""

import collections
from pathlib import Path

from berth.releases import RELEASES
from conformance.compare import ORACLES
from conformance.golden import exercised, read_golden

DOCS = Path(__file__).resolve().parent.parent / "docs" / "conformance.md"
BEGIN, END = "<!-- coverage: begin -->", "<!-- coverage: end -->"


def count(release: str) -> collections.Counter[str]:
    """Count the cases that exercise each predicate and priority of a release."""
    found: collections.Counter[str] = collections.Counter()
    for _, answer in read_golden(release):
        names = [*(answer.get("predicates") or {}), *(answer.get("priorities") or {})]
        found.update(dict.fromkeys(names, 0))
        found.update(exercised(answer, RELEASES[release].maximum))
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
