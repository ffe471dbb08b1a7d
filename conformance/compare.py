#!/usr/bin/env python3
"""Draw random cases and compare Berth's answers with a real kube-scheduler's, key by key.

    python -m conformance.compare --release 1.13 --seed 7 --count 1000 [--features taints,ports] [--odd]

Builds the oracle of the release with Go where it is not built yet (into the user's cache folder). Exits with 1 if any
answer differs, and says which keys did, how often, and one example each.
"""

import argparse
import collections
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from berth.releases import RELEASES
from berth.sources.cases import answer_case

HERE = Path(__file__).resolve().parent
ORACLES = {"1.10": "v1.10.13", "1.13": "v1.13.0", "1.17": "v1.17.17", "1.36": "v1.36.3"}
VERDICT_KEYS = ("feasible", "failed", "message", "weighted", "best")


def oracle(release: str) -> Path:
    """Return the oracle's program, built if it is not there or older than its sources."""
    cache = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "berth-oracle"
    program = cache / f"oracle-{release}"
    folder = HERE / "oracles" / ORACLES[release]
    changed = max(source.stat().st_mtime for source in folder.glob("*.go"))
    if not program.exists() or program.stat().st_mtime < changed:
        cache.mkdir(parents=True, exist_ok=True)
        print(f"building the oracle of {release} (one to three minutes)", file=sys.stderr)
        subprocess.run(["go", "build", "-C", str(folder), "-o", str(program), "."], check=True)
    return program


def draw(release: str, seed: int, count: int, features: str | None, *, odd: bool = False) -> bytes:
    """Return random cases, one a line."""
    more = (["--features", features] if features else []) + (["--odd"] if odd else [])
    command = [
        sys.executable,
        str(HERE / "cases.py"),
        "--release",
        release,
        "--seed",
        str(seed),
        "--count",
        str(count),
    ]
    return subprocess.run([*command, *more], capture_output=True, check=True).stdout


class Comparison:
    """Counts what was compared and what differed."""

    def __init__(self) -> None:
        self.n: collections.Counter[str] = collections.Counter()
        self.differing: collections.Counter[str] = collections.Counter()
        self.examples: dict[str, tuple[str, Any, Any]] = {}
        self.absent: collections.Counter[str] = collections.Counter()

    def compare(self, got: dict[str, Any], wanted: dict[str, Any]) -> None:
        """Compare two answers."""
        self._same("error", wanted["id"], bool(got.get("error")), bool(wanted.get("error")))
        for name, verdict in (wanted.get("predicates") or {}).items():
            mine = got.get("predicates", {}).get(name)
            if mine is None:
                self.absent[name] += 1
            elif "error" in verdict:
                self._same(f"predicate {name}", wanted["id"], "error" in mine, True)
            else:
                self._same(f"predicate {name}", wanted["id"], mine, verdict)
        if wanted.get("error"):
            return
        for key in VERDICT_KEYS:
            self._same(key, wanted["id"], got.get(key) or None, wanted.get(key) or None)
        for name, scores in (wanted.get("priorities") or {}).items():
            mine = (got.get("priorities") or {}).get(name)
            if mine is None:
                # With no node to score, empty and absent are the same.
                self.absent[name] += bool(scores)
            elif "error" in scores:
                self._same(f"priority {name}", wanted["id"], "error" in mine, True)
            else:
                self._same(f"priority {name}", wanted["id"], mine, scores)

    def _same(self, key: str, case: str, got: Any, wanted: Any) -> None:
        self.n[key] += 1
        if got != wanted:
            self.differing[key] += 1
            self.examples.setdefault(key, (case, got, wanted))

    def report(self, width: int = 700) -> str:
        """Say what differed, with one example each."""
        lines = []
        for key, n in sorted(self.differing.items()):
            case, got, wanted = self.examples[key]
            lines.append(f"{key}: {n} of {self.n[key]} differ, such as {case}:")
            lines += [f"    berth  {json.dumps(got)[:width]}", f"    oracle {json.dumps(wanted)[:width]}"]
        if +self.absent:
            lines.append(f"not answered: {', '.join(sorted(+self.absent))}")
        return "\n".join(lines)


def main() -> int:
    """Compare and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--release", choices=ORACLES, default="1.13")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--features", help="comma-separated, as cases.py takes them")
    parser.add_argument("--odd", action="store_true", help="with rarer things (oddities.py)")
    args = parser.parse_args()
    cases = draw(args.release, args.seed, args.count, args.features, odd=args.odd)
    done = subprocess.run([str(oracle(args.release))], input=cases, capture_output=True, check=True)
    comparison, release, seconds = Comparison(), RELEASES[args.release], 0.0
    for line, wanted in zip(cases.splitlines(), done.stdout.splitlines(), strict=True):
        start = time.perf_counter()
        got = answer_case(line, release)
        seconds += time.perf_counter() - start
        comparison.compare(got, json.loads(wanted))
    print(comparison.report())
    same = not comparison.differing and not +comparison.absent
    print(f"{args.release}, seed {args.seed}: {args.count} cases, {'all equal' if same else 'NOT EQUAL'}, "
          f"{args.count / seconds:.0f} cases a second")  # fmt: skip
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
