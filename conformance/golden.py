#!/usr/bin/env python3
"""Draw the golden cases, with the answers of the real kube-schedulers, that the tests compare with.

    python -m conformance.golden [--release 1.17]

Needs Go. Every release gets plain draws of the generator and draws restricted to the features that plain ones exercise too
seldom; the seeds are fixed, so the same files come out again. A case that a real scheduler answers at random is left out
(docs/conformance.md lists the reasons).
"""

import argparse
import collections
import json
import lzma
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from berth.releases import RELEASES
from conformance.compare import ORACLES, draw, oracle

N_PLAIN = 600
N_AT_LEAST = 60
"""So often every predicate and priority is exercised at least, where the pool exercises it so often."""
POOL: tuple[str, ...] = (
    "taints,conditions,unschedulable,best_effort",
    "conditions,best_effort",
    "ports,host_name",
    "node_selector,node_affinity,match_fields",
    "node_affinity,taints",
    "pod_affinity",
    "spread_constraints,owners,spread_more",
    "owners,prefer_avoid,images",
    "inline_volumes,read_write_once_pod,claims",
    "claims",
    "inline_volumes,csi_limits,claims,capacities,migration,attachments,ephemeral",
    "csi_limits,claims",
    "inline_volumes,csi_limits,capacities",
    "inline_volumes,csi_limits",
    "inline_volumes,csi_limits,capacities,migration",
    "odd_storage,claims",
    "labels_presence,service_affinity,service_more",
    "limits,ratio_shape,extended,init_containers",
)
N_POOL = 500
"""Cases drawn of each."""
MODERN: tuple[str, ...] = ("modern", "declared_features,node_names,gates")
"""For 1.36 besides."""
SEED = 20
FOLDER = Path(__file__).resolve().parent.parent / "tests" / "oracle"


def golden_file(release: str) -> Path:
    """Return the file that holds a release's cases and answers."""
    return FOLDER / f"golden-{release}.jsonl.xz"


def read_golden(release: str) -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Yield cases, as lines, with their answers."""
    with lzma.open(golden_file(release), "rt", encoding="utf-8") as file:
        for line in file:
            pair = json.loads(line)
            yield json.dumps(pair["case"]).encode(), pair["answer"]


def exercised(answer: dict[str, Any], maximum: int) -> set[str]:
    """Return the predicates that fail a node, and the priorities that tell feasible nodes apart or score in between."""
    found = {name for name, verdict in (answer.get("predicates") or {}).items() if verdict}
    for name, scores in (answer.get("priorities") or {}).items():
        values = {str(value) for value in scores.values()}
        if len(values) > 1 or not values <= {"0", str(maximum)}:
            found.add(name)
    return found


def pool_of(release: str) -> list[bytes]:
    """Draw cases: plain ones first, then those restricted to some features."""
    drawn = draw(release, SEED, N_PLAIN, None).splitlines()
    for i, features in enumerate(POOL + (MODERN if release == "1.36" else ()), 1):
        drawn += draw(release, SEED + i, N_POOL, features).splitlines()
    return drawn


def choose(pool: list[bytes], answers: list[bytes], maximum: int) -> Iterator[tuple[bytes, bytes]]:
    """Yield all plain cases, the others that exercise what was exercised seldom, then plainly on to a thousand."""
    counts: collections.Counter[str] = collections.Counter()
    left = []
    n = 0
    for number, (case, answer) in enumerate(zip(pool, answers, strict=True)):
        names = exercised(json.loads(answer), maximum)
        if number >= N_PLAIN and all(counts[name] >= N_AT_LEAST for name in names):
            left.append((case, answer))
            continue
        counts.update(names)
        n += 1
        yield case, answer
    yield from left[: max(0, 1000 - n)]


def write(release: str) -> int:
    """Write a release's file; return how many cases it holds. Their ids are numbered anew, so that each is there once."""
    pool = pool_of(release)
    command = [str(oracle(release))]
    done = subprocess.run(command, input=b"\n".join(pool) + b"\n", capture_output=True, check=True)
    FOLDER.mkdir(parents=True, exist_ok=True)
    n = 0
    with lzma.open(golden_file(release), "wb", preset=9 | lzma.PRESET_EXTREME) as file:
        for case, answer in choose(pool, done.stdout.splitlines(), RELEASES[release].maximum):
            pair = {"case": json.loads(case), "answer": json.loads(answer)}
            pair["case"]["id"] = pair["answer"]["id"] = f"{release}-{n:05d}"
            pair["case"].pop("features", None)
            file.write(json.dumps(pair, separators=(",", ":")).encode() + b"\n")
            n += 1
    return n


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--release", choices=ORACLES, action="append")
    for release in parser.parse_args().release or ORACLES:
        print(f"{release}: {write(release)} cases", file=sys.stderr)


if __name__ == "__main__":
    main()
