"""What workload files make, and that they run: each of those that come along, on a tiny cluster."""

import itertools
import time
from typing import Any

import numpy as np
import pytest

from berth.cluster.cluster import Cluster
from berth.scheduling.decide import decide
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.ties import TieBreaker
from berth.sim.benchmarks import Workload, measure
from berth.sim.made_cluster import MadeCluster
from berth.sim.recipe import HOSTNAME, ZONE
from berth.sim.scheduling import default_profile, filled_cluster, patterns_of, schedule
from berth.sim.workload_files import Size
from berth.sim.workloads import chosen, sized, workloads

FILES = sorted({workload.file.name for workload in workloads().values() if workload.file})


def made(name: str, nodes: int, existing: int, pods: int) -> MadeCluster:
    file = chosen([name])[0].file
    assert file is not None
    return MadeCluster(file, Size(nodes, existing, pods))


def rows_of(cluster: Cluster) -> list[int]:
    return cluster.pods.node_row[cluster.pods.alive].tolist()


def labels(node: dict[str, Any], *names: str) -> list[str]:
    return [node["metadata"]["labels"][name] for name in names]


@pytest.mark.parametrize("name", FILES)
def test_pods_get_the_nodes_of_one_at_a_time(name: str) -> None:
    world = made(name, 30, 10, 25)
    rows = []
    for batched in (True, False):
        cluster, stream, ties = filled_cluster(world), world.measured(), TieBreaker()
        patterns = patterns_of(cluster, stream)
        if batched:
            pods = schedule(cluster, default_profile(), patterns, stream.order, ties).tolist()
        else:
            pods = []
            for number in stream.order.tolist():
                row = decide(Evaluation(default_profile(), patterns[number], cluster), ties).row
                if row is not None:
                    pods.append(cluster.assume(patterns[number], row))
        rows.append(cluster.pods.node_row[pods].tolist())
    assert rows[0] == rows[1]
    # Two fifths of the shapes stay away from no taint; but some find no node among so few.
    assert 0 < len(rows[0]) <= 25
    assert len(cluster.pods) == len(rows[0]) + (0 if name.startswith("million") else 10)


@pytest.mark.parametrize("name", FILES)
def test_a_run_is_taken_back(name: str) -> None:
    workload = chosen([name])[0]
    result = measure(workload, sized(workload, 20, 5, 10), runs=2)
    assert (result.nodes, result.pods, result.runs) == (20, 10, 2)
    assert result.decisions_per_second > 0
    assert result.peak_rss_mb > 1


@pytest.mark.parametrize(("seconds", "n_runs"), [(0.0, 101), (0.3, 5), (0.15, 7)])
def test_short_runs_are_repeated_until_a_second_is_measured(
    monkeypatch: pytest.MonkeyPatch, seconds: float, n_runs: int
) -> None:
    clock = itertools.count(1.0, seconds or 1e-9)
    monkeypatch.setattr(time, "perf_counter", lambda: next(clock))
    workload = Workload("w", "", Size(1, 0, 1), lambda size: lambda: None)
    assert measure(workload, workload.size).runs == n_runs


def test_nodes_get_labels_and_taints_in_turn() -> None:
    nodes = list(made("mixed", 31, 0, 1).nodes())
    assert labels(nodes[7], HOSTNAME) == ["node-07"]
    assert labels(nodes[0], ZONE, "pool", "disk") == ["zone-0", "pool-0", "hdd"]
    assert labels(nodes[4], ZONE, "pool", "disk") == ["zone-1", "pool-1", "hdd"]
    assert labels(nodes[15], ZONE, "pool", "disk") == ["zone-0", "pool-0", "ssd"]
    assert [i for i, node in enumerate(nodes) if "taints" in node.get("spec", {})] == [3, 8, 13, 18, 23, 28]


def test_existing_pods_are_shared_out() -> None:
    streams = made("MixedSchedulingBasePod", 10, 12, 1).existing()
    assert [len(stream.order) for stream in streams] == [3, 3, 2, 2, 2]


def test_pods_placed_in_turn() -> None:
    assert rows_of(filled_cluster(made("basic", 3, 7, 1))) == [0, 1, 2, 0, 1, 2, 0]


def test_shapes_in_runs_and_in_random_order() -> None:
    runs, random = made("million-runs", 1, 0, 1500).measured(), made("million-random", 1, 0, 1500).measured()
    assert (np.diff(runs.order) >= 0).all()
    assert np.bincount(runs.order).tolist() == [10] * 150
    assert runs.templates == random.templates
    assert (np.diff(random.order) < 0).any()
    assert sorted(made("distinct-shapes", 1, 0, 9).measured().order.tolist()) == list(range(9))


def test_what_fits_nowhere_comes_besides() -> None:
    stream = made("Unschedulable", 5, 0, 120).measured()
    assert len(stream.order) == 122
    assert np.flatnonzero(stream.order).tolist() == [50, 101]
    assert [stream.n_counted(n) for n in (50, 51, 122)] == [50, 50, 120]
    assert made("basic", 5, 0, 9).measured().n_counted(7) == 7


def test_every_shape_has_a_service() -> None:
    world = made("mixed-service", 2, 2, 2)
    assert len(world.services()) == 150
    assert len(filled_cluster(world).objects.services.all()) == 150
    assert world.services()[3]["spec"]["selector"] == {"app": "x-3"}
