"""Workload files: those that come along are right, and all mistakes of one are told at once."""

from pathlib import Path

import pytest

from berth.config.mistakes import ConfigError
from berth.sim.workload_files import (
    EACH,
    Size,
    WorkloadFile,
    WorkloadFileError,
    read_workload,
    shipped_workloads,
)

SMALL = """\
name: small
sizes: {10Nodes: {nodes: 10, existing: 4, pods: 6}}
templates:
  node: {kind: Node, status: {allocatable: {cpu: 4, memory: 8Gi, pods: 110}}}
  pod: {kind: Pod, spec: {containers: [{name: c, resources: {requests: {cpu: 100m}}}]}}
operations:
- createNodes: {template: node}
- createPods: {template: pod}
- createPods: {template: pod, measured: true}
"""

# Of upstream's test/integration/scheduler_perf in release 1.36.3: the workloads that its own thresholds are for.
UPSTREAM = {
    "SchedulingBasic": Size(5000, 1000, 10000),
    "SchedulingPodAntiAffinity": Size(5000, 1000, 2000),
    "SchedulingPodAffinity": Size(5000, 5000, 5000),
    "SchedulingPreferredPodAffinity": Size(5000, 5000, 5000),
    "SchedulingNodeAffinity": Size(5000, 5000, 10000),
    "TopologySpreading": Size(5000, 5000, 5000),
    "PreferredTopologySpreading": Size(5000, 5000, 5000),
    "MixedSchedulingBasePod": Size(5000, 5 * 2000, 5000),
    "Unschedulable": Size(5000, 100, 10000),
}


def read(folder: Path, text: str) -> WorkloadFile:
    file = folder / "w.yaml"
    file.write_text(text, encoding="utf-8")
    return read_workload(file)


def mistakes_of(folder: Path, text: str) -> list[str]:
    with pytest.raises(WorkloadFileError) as caught:
        read(folder, text)
    return str(caught.value).splitlines()


def test_the_shipped_files_have_upstreams_counts() -> None:
    shipped = {file.name: file for file in shipped_workloads()}
    assert {name: next(iter(shipped[name].sizes.values())) for name in UPSTREAM} == UPSTREAM


def test_names_are_the_files_own() -> None:
    folder = Path(__file__).resolve().parents[2] / "benchmarks" / "workloads"
    assert sorted(file.name for file in shipped_workloads()) == sorted(f.stem for f in folder.glob("*.yaml"))


def test_a_small_one(tmp_path: Path) -> None:
    workload = read(tmp_path, SMALL)
    assert (workload.name, workload.sizes) == ("small", {"10Nodes": Size(10, 4, 6)})
    assert [create.measured for create in workload.pods] == [False, True]
    assert [create.placed for create in workload.pods] == ["scheduled"] * 2


def test_each_pod_a_shape_of_its_own(tmp_path: Path) -> None:
    text = SMALL.replace("{template: pod, measured: true}", "{shapes: each, measured: true}")
    assert read(tmp_path, text).pods[-1].n_shapes == EACH


def test_all_mistakes_are_told_at_once(tmp_path: Path) -> None:
    text = """\
name: 5
sizes:
  one: {nodes: 0, existing: -1, podz: 3}
templates:
  node: {kind: Node, status: {allocatable: {cpu: lots}}}
  pod: {kind: Pod, spec: {containers: [{name: 3}]}}
  service: {kind: Service}
operations:
- createNodes: {template: pod, labels: {zone: []}, taints: [{first: x, taint: spot}]}
- createPods: {template: podd, shapes: 3, placed: anywhere, order: sorted, measured: maybe}
- createPods: {shapes: 0, churn: {template: pod, every: 0}}
- removeNodes: {}
"""
    first, *lines = mistakes_of(tmp_path, text)
    assert first == f"{len(lines)} mistakes in {tmp_path}/w.yaml:"
    told = "\n".join(lines)
    for path, value, expected in (
        ("name", "5,", "a name"),
        ("sizes.one.nodes", "0,", "a whole number, 1 or more"),
        ("sizes.one.existing", "-1,", "a whole number, 0 or more"),
        ("sizes.one.podz", "", "a known count; did you mean pods?"),
        ("sizes.one.pods", "", "a whole number, 1 or more"),
        ("templates.node", "", "a Node: "),
        ("templates.pod.spec.containers[0].name", "", "a Pod: expected `str`, got `int`"),
        ("templates.service.kind", "'Service',", "Node or Pod"),
        ("operations[0].createNodes.template", "'pod',", "a template of kind Node; this is a Pod"),
        ("operations[0].createNodes.labels.zone", "", "a list of values"),
        ("operations[0].createNodes.taints[0].every", "", "a whole number, 1 or more"),
        ("operations[0].createNodes.taints[0].first", "'x',", "a whole number, 0 or more"),
        ("operations[0].createNodes.taints[0].taint", "'spot',", "a taint: key, value, effect"),
        ("operations[1].createPods", "", "either a template or shapes"),
        ("operations[1].createPods.template", "'podd',", "a known template; did you mean pod?"),
        ("operations[1].createPods.placed", "'anywhere',", "one of scheduled, in turn"),
        ("operations[1].createPods.order", "'sorted',", "one of random, runs"),
        ("operations[1].createPods.measured", "'maybe',", "true or false"),
        ("operations[2].createPods.shapes", "0,", "a whole number, 1 or more, or each"),
        ("operations[2].createPods.churn.every", "0,", "a whole number, 1 or more"),
        ("operations[3].removeNodes", "", "a known operation: createNodes, createPods"),
    ):
        found = [line for line in lines if line.startswith(f"  {path} (w.yaml, line ")]
        assert len(found) == 1, f"{path}\n{told}"
        assert f"):{' ' * bool(value)}{value} expected {expected}" in found[0]
    assert len(lines) == 21, told


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("- createNodes: {template: node}\n", "", "createNodes once, as the first operation"),
        (", measured: true", "", "createPods with measured: true once, as the last operation"),
        (
            "- createPods: {template: pod}\n",
            "",
            "a createPods that is not measured, for a size has existing pods",
        ),
        ("measured: true", "measured: true, placed: in turn", "measured pods to be scheduled"),
        ("measured: true", "measured: true, service: true", "labels on the pods of a service"),
    ],
)
def test_operations_that_make_no_sense(tmp_path: Path, old: str, new: str, expected: str) -> None:
    assert expected in mistakes_of(tmp_path, SMALL.replace(old, new))[1]


@pytest.mark.parametrize("left_out", ["sizes", "operations", "name"])
def test_what_must_be_there(tmp_path: Path, left_out: str) -> None:
    text = (
        SMALL.replace(f"{left_out}:", "meaning: x\n#", 1)
        if left_out != "operations"
        else SMALL.split("operations", maxsplit=1)[0]
    )
    assert f"  {left_out} (w.yaml" in "\n".join(mistakes_of(tmp_path, text))


def test_no_yaml(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="YAML"):
        read(tmp_path, "a: [")
