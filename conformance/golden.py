#!/usr/bin/env python3
"""Draw the golden cases, with the answers of the real kube-schedulers, that the tests compare with.

    python -m conformance.golden [--release 1.17]

Needs Go. Every release gets plain draws of the generator and draws restricted to the features that plain ones exercise too
seldom; the seeds are fixed, so the same files come out again. A case that a real scheduler answers at random is left out
(docs/conformance.md lists the reasons).
"""

import argparse
import json
import lzma
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from conformance.compare import ORACLES, draw, oracle

FOLDER = Path(__file__).resolve().parent.parent / "tests" / "oracle"
PLAIN = 520
RESTRICTED: tuple[tuple[str, int], ...] = (
    ("taints,conditions,unschedulable", 40),
    ("ports,host_name,node_selector,node_affinity,match_fields", 50),
    ("pod_affinity", 70),
    ("spread_constraints,owners", 70),
    ("owners,prefer_avoid,images", 60),
    ("inline_volumes", 60),
    ("claims,csi_limits", 70),
    ("labels_presence,service_affinity,owners", 70),
    ("limits,ratio_shape,extended,init_containers", 50),
)
SEED = 20


def golden_file(release: str) -> Path:
    """Return the file that holds a release's cases and answers."""
    return FOLDER / f"golden-{release}.jsonl.xz"


def read_golden(release: str) -> Iterator[tuple[bytes, dict[str, object]]]:
    """Yield cases, as lines, with their answers."""
    with lzma.open(golden_file(release), "rt", encoding="utf-8") as file:
        for line in file:
            pair = json.loads(line)
            yield json.dumps(pair["case"]).encode(), pair["answer"]


def cases_of(release: str) -> list[bytes]:
    """Draw a release's cases; their ids are numbered anew, so that each is there once."""
    drawn = draw(release, SEED, PLAIN, None).splitlines()
    for i, (features, count) in enumerate(RESTRICTED, 1):
        drawn += draw(release, SEED + i, count, features).splitlines()
    cases = []
    for number, line in enumerate(drawn):
        case = json.loads(line)
        case["id"] = f"{release}-{number:05d}"
        case.pop("features", None)
        cases.append(json.dumps(case, separators=(",", ":")).encode())
    return cases


def write(release: str) -> int:
    """Write a release's file; return how many cases it holds."""
    cases = cases_of(release)
    answers = subprocess.run(
        [str(oracle(release))], input=b"\n".join(cases) + b"\n", capture_output=True, check=True
    ).stdout.splitlines()
    FOLDER.mkdir(parents=True, exist_ok=True)
    with lzma.open(golden_file(release), "wb", preset=9 | lzma.PRESET_EXTREME) as file:
        for case, answer in zip(cases, answers, strict=True):
            file.write(b'{"case":' + case + b',"answer":' + answer + b"}\n")
    return len(cases)


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
