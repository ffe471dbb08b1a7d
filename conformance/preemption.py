#!/usr/bin/env python3
"""Draw random cases and compare what Berth preempts with what the real DefaultPreemption of 1.36 does.

    python -m conformance.preemption --seed 7 --count 2000
    python -m conformance.preemption --golden                  # draw the committed cases and ask again

Builds the oracle with Go where it is not built yet. Compared are the candidates, each with its victims and violations, those
of them that are equally good, which one Berth takes, and the words where there is none. Exits with 1 if any differs.
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

from berth.cluster.cluster import Cluster
from berth.objects.decode import decode
from berth.objects.pods import Pod
from berth.releases import RELEASES
from berth.releases.profiles import provider_profile
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.preemption import Nomination, NotPreempted, best, preempt, try_every_node
from berth.sources.cases import Case, cluster_of, in_default
from conformance.compare import oracle
from conformance.preemption_cases import preemption_case

GOLDEN = Path(__file__).resolve().parent.parent / "tests" / "oracle" / "golden-preemption.jsonl.xz"
N_GOLDEN, GOLDEN_SEED = 700, 20
KEYS = ("error", "feasible", "message", "clears", "candidates", "best")


def answer_preemption(line: bytes) -> dict[str, Any]:
    """Answer a case as ``oracle -preempt`` does, and say in ``taken`` what is preempted."""
    case, release = decode(line, Case), RELEASES["1.36"]
    options = case.options.options()
    cluster = cluster_of(case, release.accounting_for(options))
    pod = cluster.incoming(in_default(case.pod))
    evaluation = Evaluation(provider_profile(release, options), pod, cluster)
    head = {"id": case.id, "version": release.version, "candidates": {}, "best": []}
    error = evaluation.error()
    if error is not None:
        return {"id": case.id, "version": release.version, "error": error}
    nominations = tuple(_nominations(case, cluster))
    own_node = case.pod.status.nominated_node_name
    try:
        decision = preempt(pod, evaluation, nominations, own_node)
    except ValueError:
        return head | {"feasible": True}
    if isinstance(decision, NotPreempted):
        return head | {"message": str(decision)} | ({"clears": True} if decision.clears_nomination else {})
    found = try_every_node(pod, evaluation, nominations, own_node)
    assert not isinstance(found, NotPreempted)
    names, pods = cluster.nodes.names, cluster.pods
    spaces = pods.column("namespace_id")
    head["candidates"] = {
        names[found.row(segment)]: {
            "pods": [f"{cluster.namespaces.items[spaces[p]]}/{pods.names[p]}" for p in found.going(segment)],
            "violations": found.n_violations(segment),
        }
        for segment in found.segments.tolist()
    }
    head["best"] = sorted(names[found.row(segment)] for segment in best(found).tolist())
    head["taken"] = names[decision.row]
    return head


def _nominations(case: Case, cluster: Cluster) -> Iterator[Nomination]:
    for raw in case.pods:
        pod = decode(raw, Pod)
        if not pod.spec.node_name and pod.status.nominated_node_name:
            yield Nomination(cluster.incoming(in_default(pod)), pod.status.nominated_node_name)


def ask(cases: list[bytes]) -> list[dict[str, Any]]:
    """Ask the oracle."""
    command = [str(oracle("1.36")), "-preempt"]
    done = subprocess.run(command, input=b"\n".join(cases) + b"\n", capture_output=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def differences(got: dict[str, Any], wanted: dict[str, Any]) -> list[str]:
    """Return the keys that differ; an error's text need not be the same, an oracle's mistake is one."""
    if got.get("error") or wanted.get("error"):
        return [] if got.get("error") and wanted.get("error") else ["error"]
    different = [key for key in KEYS if (got.get(key) or None) != (wanted.get(key) or None)]
    if wanted["best"] and got.get("taken") != wanted["best"][0]:
        different.append("taken")
    return different


def read_golden() -> Iterator[tuple[bytes, dict[str, Any]]]:
    """Yield the committed cases, as lines, with their answers."""
    with lzma.open(GOLDEN, "rt", encoding="utf-8") as file:
        for line in file:
            pair = json.loads(line)
            yield json.dumps(pair["case"]).encode(), pair["answer"]


def draw(seed: int, count: int) -> list[bytes]:
    """Return random cases, one a line."""
    return [json.dumps(preemption_case(seed, i)).encode() for i in range(count)]


def write_golden() -> None:
    """Draw the committed cases and ask again."""
    cases = draw(GOLDEN_SEED, N_GOLDEN)
    with lzma.open(GOLDEN, "wb", preset=9 | lzma.PRESET_EXTREME) as file:
        for case, answer in zip(cases, ask(cases), strict=True):
            if answer.get("feasible"):
                continue
            pair = {"case": json.loads(case), "answer": answer}
            file.write(json.dumps(pair, separators=(",", ":")).encode() + b"\n")


def kind_of(answer: dict[str, Any]) -> str:
    """Say in a word or two how a case came out."""
    if answer.get("error"):
        return "error"
    if answer["best"]:
        return "preempted"
    return "feasible" if answer.get("feasible") else "not preempted"


def main() -> int:
    """Compare and report."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--golden", action="store_true", help="write the committed cases")
    args = parser.parse_args()
    if args.golden:
        write_golden()
        return 0
    cases = draw(args.seed, args.count)
    kinds: collections.Counter[str] = collections.Counter()
    different: collections.Counter[str] = collections.Counter()
    for case, wanted in zip(cases, ask(cases), strict=True):
        got = answer_preemption(case)
        kinds[kind_of(wanted)] += 1
        for key in differences(got, wanted):
            if not different[key]:
                print(f"{key}: {wanted['id']}\n    berth  {json.dumps(got)}\n    oracle {json.dumps(wanted)}")
            different[key] += 1
    print(f"seed {args.seed}: {args.count} cases ({dict(kinds)}), {dict(different) or 'all equal'}")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
