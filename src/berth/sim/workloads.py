"""The workloads of the benchmarks, by name: those that are files, and those that are not."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import cache, partial
from pathlib import Path

import msgspec

from berth.cluster.cluster import Cluster
from berth.config.mistakes import known_name
from berth.config.priorities import ADD_PRIORITIES, REMOVE_PRIORITIES
from berth.errors import InputError
from berth.framework.profile import Profile
from berth.module.changes import Change, Operation
from berth.module.planner import Planner
from berth.module.rounds import Rules
from berth.module.services import members, resolve_workload
from berth.module.templates import pattern_of
from berth.releases.module import addition_profile
from berth.scheduling import compiled
from berth.scheduling.decide import decide
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.ties import TieBreaker
from berth.scheduling.warming import exercises
from berth.sim import scheduling
from berth.sim.benchmarks import SEED, Run, Undo, Workload, cache_folder, measure, snapshot_file
from berth.sim.clusters import generate_objects
from berth.sim.workload_files import Size, WorkloadFile, read_workload, shipped_workloads
from berth.sources.snapshot import load_snapshot
from berth.sources.writer import load_objects

_N_SERVICES = 20
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


def _removals(size: Size) -> Run:
    cluster = _cluster(size)
    planner = Planner(cluster, Rules(_profile(), dict.fromkeys(REMOVE_PRIORITIES, 1)))
    services = cluster.objects.services.all()
    names = [service.metadata for service in services[: min(len(services), _N_SERVICES)]]
    share, left = divmod(size.pods, len(names))
    changes = [
        Change(f"r-{i}", "remove", name.namespace, name.name, share + (i < left))
        for i, name in enumerate(names)
        if share + (i < left)
    ]

    def run() -> Undo:
        counter = planner.ties.counter
        decided = planner.decide(changes)
        assert decided.n_decisions == size.pods
        return partial(planner.undo, decided, counter)

    return run


def _start(*arguments: str) -> Callable[[Size], Run]:
    def run() -> None:
        subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, check=True)

    return lambda size: run


_NO_CLUSTER = Size(nodes=0, existing=0, pods=1)
_OTHERS = (
    Workload(
        "load-snapshot",
        "read one JSON List of about 5 kB a pod into a cluster; decisions are pods read",
        Size(nodes=5_000, existing=150_000, pods=150_000),
        _load,
        fresh=True,
    ),
    Workload(
        "new-shape",
        "decide one addition each of services that were never seen, by the module's priorities",
        Size(nodes=5_000, existing=150_000, pods=100),
        _new_shape,
    ),
    Workload(
        "round-add",
        "a dry run of a round that adds pods of one service, undoing included; the plan as columns",
        _BIG,
        _round("add"),
    ),
    Workload(
        "round-remove",
        "a dry run of a round that removes pods of one service, undoing included; the plan as columns",
        _BIG,
        _round("remove"),
    ),
    Workload(
        "removals",
        f"one round that removes pods of {_N_SERVICES} services; the plan as columns, undoing not included",
        Size(nodes=5_000, existing=150_000, pods=10_000),
        _removals,
    ),
    Workload("start-help", "start a process: berth --help", _NO_CLUSTER, _start("-m", "berth", "--help")),
    Workload("start-import", "start a process: import berth", _NO_CLUSTER, _start("-c", "import berth")),
)


@cache
def workloads() -> dict[str, Workload]:
    """Return all workloads that come with Berth, by name."""
    made = [workload for file in shipped_workloads() for workload in of_file(file)]
    return {workload.name: workload for workload in (*made, *_OTHERS)}


def of_file(file: WorkloadFile, name: str | None = None) -> list[Workload]:
    """Return a workload for every size of a file, named after both; after the file alone where there is one size.

    Parameters
    ----------
    name : str, optional
        In place of the file's own.
    """
    name = name or file.name
    return [
        Workload(
            name if len(file.sizes) == 1 else f"{name}/{size_name}",
            file.meaning,
            size,
            partial(scheduling.prepare, file),
            file=file,
        )
        for size_name, size in file.sizes.items()
    ]


def chosen(names: Sequence[str]) -> list[Workload]:
    """Return the workloads of these names: of all sizes where the size is left out. A path is a file of one's own.

    Raises
    ------
    InputError
        A name is not known.
    berth.sim.workload_files.WorkloadFileError
        A file has mistakes.
    """
    known = workloads()
    if not names:
        return list(known.values())
    found: list[Workload] = []
    for name in names:
        path, _, size = name.partition(".yaml/")
        if name.endswith((".yaml", ".yml")) or size:
            path = f"{path}.yaml" if size else name
            own = of_file(read_workload(Path(path)), path)
            found += [workload for workload in own if not size or workload.name == name]
            continue
        matching = [w for w in known.values() if w.name == name or w.name.startswith(f"{name}/")]
        if not matching:
            expected = known_name(
                name, dict.fromkeys([*known, *(n.split("/")[0] for n in known)]), "workload"
            )
            raise InputError("NAME", name, expected)
        found += matching
    return found


def sized(workload: Workload, nodes: int | None, existing: int | None, pods: int | None) -> Size:
    """Return a workload's size with some of its numbers replaced, as far as it has them."""
    size = workload.size
    if not size.nodes:
        return size
    if workload.file is not None and len(workload.file.pods) == 1:
        existing = 0
    given = {"nodes": nodes, "existing": existing, "pods": pods}
    size = replace(size, **{key: n for key, n in given.items() if n is not None})
    return replace(size, pods=size.existing) if workload.fresh else size


def child(name: str, nodes: str, existing: str, pods: str, runs: str, is_compiled: str) -> None:
    """Measure in this process, for the one that started it: the result goes to standard output as JSON."""
    (workload,) = chosen([name])
    # What decides nothing, loading and starting, needs no loops.
    if int(is_compiled) and int(nodes) and not workload.fresh:
        compiled.keep_in(str(cache_folder("kernels")))
        for group, exercise in exercises(scheduling.default_profile()):
            group.warm_up(exercise)
    result = measure(workload, Size(int(nodes), int(existing), int(pods)), int(runs) or None)
    print(json.dumps(asdict(result)))
