"""Made-up clusters: as many objects as asked, of the promised size, and placed where they may be."""

import io
import json
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.sim.clusters import generate_objects, write_snapshot

Json = dict[str, Any]
ZONE = "topology.kubernetes.io/zone"


def written(*args: Any, **kwargs: Any) -> bytes:
    file = io.BytesIO()
    assert write_snapshot(file, *args, **kwargs) == len(file.getvalue())
    return file.getvalue()


def by_kind(items: list[Json]) -> dict[str, list[Json]]:
    found: dict[str, list[Json]] = defaultdict(list)
    for item in items:
        found[item["kind"]].append(item)
    return found


def placed(kinds: dict[str, list[Json]]) -> list[Json]:
    return [pod for pod in kinds["Pod"] if "nodeName" in pod["spec"]]


def check_room(kinds: dict[str, list[Json]]) -> None:
    cpu: Counter[str] = Counter()
    memory: Counter[str] = Counter()
    n_pods: Counter[str] = Counter()
    for pod in placed(kinds):
        (container,) = pod["spec"]["containers"]
        asked = container["resources"]["requests"]
        node = pod["spec"]["nodeName"]
        cpu[node] += int(asked["cpu"].removesuffix("m"))
        memory[node] += int(asked["memory"].removesuffix("Mi")) * 1024
        n_pods[node] += 1
    for node in kinds["Node"]:
        name, allocatable = node["metadata"]["name"], node["status"]["allocatable"]
        assert cpu[name] <= int(allocatable["cpu"].removesuffix("m"))
        assert memory[name] <= int(allocatable["memory"].removesuffix("Ki"))
        assert n_pods[name] <= int(allocatable["pods"])


def check_rules(kinds: dict[str, list[Json]]) -> None:
    """Selectors, taints, and required affinity hold."""
    nodes = {node["metadata"]["name"]: node for node in kinds["Node"]}
    hosts: dict[str, list[str]] = defaultdict(list)
    for pod in placed(kinds):
        spec, node = pod["spec"], nodes[pod["spec"]["nodeName"]]
        assert spec.get("nodeSelector", {}).items() <= node["metadata"]["labels"].items()
        tolerated = {t["key"] for t in spec.get("tolerations", [])}
        assert {t["key"] for t in node["spec"].get("taints", [])} <= tolerated
        hosts[pod["metadata"]["labels"]["app"]].append(spec["nodeName"])
    for pod in placed(kinds):
        affinity = pod["spec"].get("affinity", {})
        mine = hosts[pod["metadata"]["labels"]["app"]]
        if "requiredDuringSchedulingIgnoredDuringExecution" in affinity.get("podAntiAffinity", {}):
            assert len(set(mine)) == len(mine)
        if "requiredDuringSchedulingIgnoredDuringExecution" in affinity.get("podAffinity", {}):
            assert len({nodes[host]["metadata"]["labels"][ZONE] for host in mine}) == 1


sizes = st.tuples(st.integers(0, 40), st.integers(0, 400), st.integers(1, 12), st.integers(0, 5))


@settings(max_examples=40, deadline=None)
@given(sizes)
def test_small_clusters_have_what_was_asked_in_room_enough(size: tuple[int, int, int, int]) -> None:
    n_nodes, n_pods, n_shapes, _ = size
    kinds = by_kind(list(generate_objects(*size)))
    assert [len(kinds[kind]) for kind in ("Node", "Pod")] == [n_nodes, n_pods]
    assert [len(kinds[kind]) for kind in ("Service", "Deployment", "ReplicaSet")] == [n_shapes] * 3
    check_room(kinds)
    check_rules(kinds)


@pytest.mark.parametrize("indent", [None, 4])
def test_a_written_snapshot_is_one_list(indent: int | None) -> None:
    text = written(30, 900, 50, 3, affinity_share=0.5, indent=indent)
    listed = json.loads(text)
    assert (listed["apiVersion"], listed["kind"]) == ("v1", "List")
    kinds = by_kind(listed["items"])
    assert {kind: len(items) for kind, items in kinds.items()} == {
        "Node": 30, "Service": 50, "Deployment": 50, "ReplicaSet": 50, "Pod": 900,
    }  # fmt: skip
    check_room(kinds)
    check_rules(kinds)
    # Laid out as json itself would, which is how kubectl prints.
    separators = (",", ":") if indent is None else None
    assert text.decode() == json.dumps(listed, indent=indent, separators=separators) + "\n"


def test_a_pod_takes_about_five_kilobytes() -> None:
    per_pod = (len(written(20, 1500, 100)) - len(written(20, 0, 100))) / 1500
    assert 4700 < per_pod < 5700


def test_every_pod_has_names_of_its_own() -> None:
    pods = by_kind(json.loads(written(50, 1500, 20))["items"])["Pod"]
    for own in (
        [pod["metadata"]["uid"] for pod in pods],
        [pod["metadata"]["name"] for pod in pods],
        [pod["spec"]["volumes"][-1]["name"] for pod in pods],
        [pod["status"]["containerStatuses"][0]["containerID"] for pod in pods],
    ):
        assert len(set(own)) == len(pods)
    for pod in pods:
        assert pod["spec"]["containers"][0]["volumeMounts"][-1]["name"] == pod["spec"]["volumes"][-1]["name"]
        assert "%" not in json.dumps(pod)


def test_pods_without_room_are_pending() -> None:
    pods = by_kind(json.loads(written(2, 400, 4))["items"])["Pod"]
    pending = [pod for pod in pods if "nodeName" not in pod["spec"]]
    assert 180 <= len(pending) < 400
    assert {pod["status"]["phase"] for pod in pending} == {"Pending"}
    assert all("containerStatuses" not in pod["status"] for pod in pending)


def test_shapes_differ_and_their_pods_do_not() -> None:
    shapes: dict[str, set[str]] = defaultdict(set)
    for item in generate_objects(40, 1200, 60):
        if item["kind"] == "Pod":
            spec = {key: value for key, value in item["spec"].items() if key != "nodeName"}
            shapes[item["metadata"]["labels"]["app"]].add(json.dumps(spec, sort_keys=True))
    assert len(shapes) == 60
    assert {len(specs) for specs in shapes.values()} == {1}
    specs = [json.loads(spec) for found in shapes.values() for spec in found]
    assert any("nodeSelector" in spec for spec in specs)
    assert any("tolerations" in spec for spec in specs)
    assert len({spec["priority"] for spec in specs}) > 2


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (0.3, 30), (1.0, 100)])
def test_affinity_comes_in_the_share_asked(share: float, expected: int) -> None:
    deployments = by_kind(json.loads(written(10, 0, 100, affinity_share=share))["items"])["Deployment"]
    affinities = [d["spec"]["template"]["spec"].get("affinity") for d in deployments]
    found = [affinity for affinity in affinities if affinity]
    assert len(found) == expected
    assert len({(side, rule) for a in found for side, rules in a.items() for rule in rules}) == min(
        expected, 6
    )


def test_the_same_numbers_give_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    path = tmp_path / "cluster.json"
    write_snapshot(path, 12, 100, 7, 5)
    assert path.read_bytes() == written(12, 100, 7, 5) != written(12, 100, 7, 6)
    assert list(generate_objects(12, 100, 7, 5)) == list(generate_objects(12, 100, 7, 5))


def test_pods_need_a_shape() -> None:
    with pytest.raises(ValueError, match="n_shapes is 0"):
        write_snapshot(io.BytesIO(), 1, 1, 0)


def test_zones_are_those_given() -> None:
    nodes = by_kind(json.loads(written(10, 0, 1, 0, ["east", "west"]))["items"])["Node"]
    assert Counter(node["metadata"]["labels"][ZONE] for node in nodes) == {"east": 5, "west": 5}
