"""Cases with the answers of 1.13's own code, and the plugins' answers to them.

A line of the data is a case of `conformance/PROTOCOL.md`, less what these plugins don't read, with the oracle's
``predicates``, ``feasible`` and ``priorities`` under ``answer``. To make it anew, or to compare fresh cases:

    python -m tests.plugins.oracle_1_13 make CASES ANSWERS > tests/plugins/data/core_1.13.jsonl.xz
    python -m tests.plugins.oracle_1_13 compare CASES ANSWERS
"""

import json
import lzma
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from berth.cluster.cluster import Cluster, Incoming
from berth.framework.plugin import FITS, FilterPlugin, ScorePlugin
from berth.objects.decode import decode
from berth.objects.nodes import Node
from berth.objects.pods import Pod
from berth.objects.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from berth.releases import RELEASES
from berth.releases.release import Options

Json = dict[str, Any]
DATA = Path(__file__).parent / "data" / "core_1.13.jsonl.xz"
PREDICATES = (
    "CheckNodeCondition",
    "PodFitsResources",
    "PodFitsHostPorts",
    "MatchNodeSelector",
    "PodToleratesNodeTaints",
    "CheckNodeMemoryPressure",
    "CheckNodePIDPressure",
    "CheckNodeDiskPressure",
)
PRIORITIES = (
    "LeastRequestedPriority",
    "MostRequestedPriority",
    "BalancedResourceAllocation",
    "SelectorSpreadPriority",
    "NodeAffinityPriority",
    "TaintTolerationPriority",
)
SHELVES: dict[str, type[Service | ReplicationController | ReplicaSet | StatefulSet]] = {
    "services": Service,
    "replicationControllers": ReplicationController,
    "replicaSets": ReplicaSet,
    "statefulSets": StatefulSet,
}


def golden() -> Iterator[Json]:
    with lzma.open(DATA) as lines:
        for line in lines:
            yield json.loads(line)


def world_of(case: Json) -> tuple[Cluster, Incoming]:
    """The case's cluster and pod."""

    def read(item: Json, kind: type[Any]) -> Any:
        return decode(json.dumps(item).encode(), kind)

    def in_namespace(item: Json) -> Json:
        return item | {"metadata": {"namespace": "default"} | item["metadata"]}

    cluster = Cluster()
    for node in case["nodes"]:
        cluster.put_node(read(node, Node))
    for pod in case.get("pods", ()):
        cluster.put_pod(read(in_namespace(pod), Pod))
    for key, kind in SHELVES.items():
        for item in case.get(key, ()):
            cluster.put(read(in_namespace(item), kind))
    return cluster, cluster.incoming(read(in_namespace(case["pod"]), Pod))


def differences(case: Json, answer: Json) -> list[tuple[str, object, object]]:
    """What the plugins answer otherwise than the oracle: name, ours, its."""
    cluster, pod = world_of(case)
    release, options = RELEASES["1.13"], Options()
    found: list[tuple[str, object, object]] = []
    for name in PREDICATES:
        ours: object = failing_nodes(release.filters[name](options), cluster, pod)
        if ours != answer["predicates"][name]:
            found.append((name, ours, answer["predicates"][name]))
    for name in PRIORITIES if answer.get("priorities") else ():
        plugin = release.scores[name](options)
        assert plugin is not None
        ours = scores(plugin, cluster, pod, answer["feasible"])
        if ours != answer["priorities"][name]:
            found.append((name, ours, answer["priorities"][name]))
    return found


def failing_nodes(plugin: FilterPlugin[Any], cluster: Cluster, pod: Incoming) -> Json:
    state = plugin.prepare(pod, cluster)
    codes = plugin.filter(state)
    return {
        cluster.nodes.names[row]: list(plugin.reasons(state, int(codes[row])))
        for row in np.flatnonzero(codes != FITS).tolist()
    }


def scores(plugin: ScorePlugin[Any], cluster: Cluster, pod: Incoming, feasible: list[str]) -> Json:
    state = plugin.prepare(pod, cluster)
    assert plugin.error(state) is None
    rows = np.array([cluster.nodes.row(name) for name in feasible], dtype=np.intp)
    column = plugin.normalize(state, plugin.score(state, rows), rows)
    return dict(zip(feasible, column.tolist(), strict=True))


def pairs(cases: str, answers: str) -> Iterator[tuple[Json, Json]]:
    with open(cases, encoding="utf-8") as asked, open(answers, encoding="utf-8") as answered:
        for case, answer in zip(asked, answered, strict=True):
            yield json.loads(case), json.loads(answer)


def slim(case: Json, answer: Json) -> Json:
    """Leave out what the plugins don't read, and answers of others."""
    kept = {key: case[key] for key in ("nodes", "pods", "pod", *SHELVES) if case.get(key)}
    for node in kept["nodes"]:
        for key in ("images", "capacity"):
            node["status"].pop(key, None)
        for key in ("annotations", "uid"):
            node["metadata"].pop(key, None)
    for pod in (*kept.get("pods", ()), kept["pod"]):
        pod["spec"].pop("volumes", None)
        for key in ("podAffinity", "podAntiAffinity"):
            (pod["spec"].get("affinity") or {}).pop(key, None)
    mine = {
        "predicates": {name: answer["predicates"][name] for name in PREDICATES},
        "feasible": answer.get("feasible", []),
        "priorities": {
            name: scored for name, scored in (answer.get("priorities") or {}).items() if name in PRIORITIES
        },
    }
    return kept | {"answer": mine}


def main(what: str, cases: str, answers: str) -> None:
    if what == "make":
        lines = [json.dumps(slim(*pair), separators=(",", ":")) for pair in pairs(cases, answers)]
        sys.stdout.buffer.write(lzma.compress("".join(f"{line}\n" for line in lines).encode(), preset=9))
        return
    n, n_scored, differing = 0, 0, Counter[str]()
    for case, answer in pairs(cases, answers):
        n += 1
        n_scored += bool(answer.get("priorities"))
        for name, ours, its in differences(case, answer):
            if not differing[name]:
                print(f"{name}, {case['id']}:\n  ours {ours}\n  its  {its}")
            differing[name] += 1
    print(f"{n} cases, {n_scored} of them scored; differing: {dict(differing)}")


if __name__ == "__main__":
    main(*sys.argv[1:])
