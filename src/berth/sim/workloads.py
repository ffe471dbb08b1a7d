"""The workloads of the benchmarks, by name."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict

import msgspec

from berth.cluster.cluster import Cluster
from berth.config.priorities import ADD_PRIORITIES, REMOVE_PRIORITIES
from berth.framework.profile import Profile
from berth.module.changes import Change, Operation
from berth.module.planner import Planner
from berth.module.rounds import Rules
from berth.module.services import members, resolve_workload
from berth.module.templates import pattern_of
from berth.releases.module import addition_profile
from berth.scheduling.decide import decide
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.ties import TieBreaker
from berth.sim.benchmarks import SEED, Size, Workload, measure, snapshot_file
from berth.sim.clusters import generate_objects
from berth.sources.snapshot import load_snapshot
from berth.sources.writer import load_objects

_BIG = Size(nodes=5_000, existing=150_000, pods=1_000)


def _cluster(size: Size) -> Cluster:
    objects = generate_objects(size.nodes, size.existing, seed=SEED)
    return load_objects(
        (
            item["kind"],
            item["metadata"].get("namespace", ""),
            item["metadata"]["name"],
            msgspec.json.encode(item),
        )
        for item in objects
    )


def _profile() -> Profile:
    return addition_profile(dict.fromkeys(ADD_PRIORITIES, 1))


def _load(size: Size) -> Callable[[], None]:
    file = snapshot_file(size)

    def run() -> None:
        loaded = load_snapshot([file])
        assert (len(loaded.cluster.nodes), len(loaded.cluster.pods)) == (size.nodes, size.existing)

    return run


def _new_shape(size: Size) -> Callable[[], None]:
    cluster, profile, ties = _cluster(size), _profile(), TieBreaker()
    services = cluster.objects.services.all()
    patterns = [
        pattern_of(cluster, service, resolve_workload(cluster, service), members(cluster, service))
        for service in services[: size.pods]
    ]
    pods = [cluster.incoming(pattern.pod) for pattern in patterns]

    def run() -> None:
        for pod in pods:
            assert decide(Evaluation(profile, pod, cluster), ties).row is not None

    return run


def _round(operation: Operation) -> Callable[[Size], Callable[[], None]]:
    def prepare(size: Size) -> Callable[[], None]:
        cluster = _cluster(size)
        planner = Planner(cluster, Rules(_profile(), dict.fromkeys(REMOVE_PRIORITIES, 1)))
        service = cluster.objects.services.all()[0].metadata
        changes = [Change("r-1", operation, service.namespace, service.name, size.pods)]

        def run() -> None:
            assert planner.dry_run(1, changes).failed == 0

        return run

    return prepare


WORKLOADS: Mapping[str, Workload] = {
    workload.name: workload
    for workload in (
        Workload(
            "load-snapshot",
            "read one JSON List of about 5 kB a pod into a cluster; decisions are pods read",
            Size(nodes=5_000, existing=150_000, pods=150_000),
            _load,
            fresh=True,
        ),
        Workload(
            "new-shape",
            "decide one addition each of shapes that were never seen: nothing is kept between them",
            Size(nodes=5_000, existing=150_000, pods=100),
            _new_shape,
        ),
        Workload(
            "round-add",
            "a dry run of a round that adds pods of one service, undoing included",
            _BIG,
            _round("add"),
        ),
        Workload(
            "round-remove",
            "a dry run of a round that removes pods of one service, undoing included",
            _BIG,
            _round("remove"),
        ),
    )
}


def child(name: str, nodes: str, existing: str, pods: str, runs: str) -> None:
    """Measure in this process, for the one that started it: the result goes to standard output as JSON."""
    result = measure(WORKLOADS[name], Size(int(nodes), int(existing), int(pods)), int(runs))
    print(json.dumps(asdict(result)))
