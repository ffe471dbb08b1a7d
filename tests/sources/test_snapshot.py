import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from berth.cluster.cluster import Cluster
from berth.sources.checks import SnapshotError
from berth.sources.snapshot import Loaded, load_snapshot

Write = Callable[[str, Any], Path]


def a_node(name: str = "n1", **status: Any) -> dict[str, Any]:
    status = status or {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "110"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def a_pod(name: str = "web-1", node: str = "n1", cpu: Any = "100m", **spec: Any) -> dict[str, Any]:
    container = {"name": "c", "resources": {"requests": {"cpu": cpu}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"nodeName": node, "containers": [container]} | spec,
    }


def a_deployment(selector: Any, **spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"selector": selector, "template": {"spec": {"containers": [{"name": "c"}]}}} | spec,
    }


def a_list(*items: Any, kind: str = "List") -> dict[str, Any]:
    return {"apiVersion": "v1", "items": list(items), "kind": kind}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(name: str, content: Any) -> Path:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, bytes):
            content = (content if isinstance(content, str) else json.dumps(content)).encode()
        path.write_bytes(content)
        return path

    return write_file


def load(*paths: Path, lenient: bool = False) -> Loaded:
    return load_snapshot(paths, lenient=lenient)


def mistakes(*paths: Path) -> list[str]:
    with pytest.raises(SnapshotError) as caught:
        load(*paths)
    return [mistake.removeprefix(f"{paths[0].parent}/") for mistake in caught.value.mistakes]


def pod_names(cluster: Cluster) -> set[str]:
    return {name for name in cluster.pods.names if name}


# -- what a snapshot may look like ---------------------------------------------------------------------------------


def test_a_list_with_pods_before_their_nodes(write: Write) -> None:
    cluster = load(write("a.json", a_list(a_pod(), a_pod("web-2"), a_node()))).cluster
    assert cluster.requested.get(0)["cpu"] == 200
    assert cluster.requested.get(0)["pods"] == 2
    assert cluster.n_homeless == 0


@pytest.mark.parametrize("kind_first", [True, False])
def test_items_without_a_kind_are_of_their_lists(write: Write, kind_first: bool) -> None:
    def of(kind: str, *items: Any) -> Any:
        for item in items:
            del item["kind"], item["apiVersion"]
        head = {"kind": kind, "apiVersion": "v1"}
        return head | {"items": items} if kind_first else {"items": items} | head

    pods = write("pods.json", of("PodList", a_pod(), a_pod("web-2")))
    nodes = write("nodes.json", of("NodeList", a_node()))
    loaded = load(pods, nodes)
    assert loaded.report.taken == {"Pod": 2, "Node": 1}


def test_objects_one_after_another_with_lists_among_them(write: Write) -> None:
    text = "\n".join(
        map(
            json.dumps,
            [a_node(), a_list(a_pod(), a_pod("web-2")), a_pod("web-3"), a_list(a_list(a_pod("web-4")))],
        )
    )
    assert load(write("a.json", text)).report.taken == {"Pod": 4, "Node": 1}


def test_an_array_of_objects(write: Write) -> None:
    assert load(write("a.json", [a_node(), a_pod()])).report.taken == {"Pod": 1, "Node": 1}


def test_yaml_with_several_documents(write: Write) -> None:
    text = """
# a cluster
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: Node
  metadata: {name: n1, labels: {since: 2024-01-01, country: no, version: "010"}}
  status: {allocatable: {cpu: 4, memory: 0x10}}
---
---
apiVersion: v1
kind: Pod
metadata: {name: web-1, creationTimestamp: 2025-11-05T10:15:00Z}
spec: {nodeName: n1, containers: [{name: c, resources: {requests: {cpu: 1e-1}}}]}
"""
    cluster = load(write("a.yaml", text)).cluster
    assert cluster.nodes.get(0).metadata.labels == {"since": "2024-01-01", "country": "no", "version": "010"}
    assert cluster.nodes.get(0).status.allocatable["memory"] == "16"
    assert cluster.requested.get(0)["cpu"] == 100
    assert cluster.pods.get(0).created == 1762337700


def test_yaml_and_json_of_the_same_cluster_are_equal(write: Write) -> None:
    item = a_list(a_node(), a_pod(), a_deployment({"matchLabels": {"app": "web"}}))
    as_yaml = "apiVersion: v1\nkind: List\nitems:\n" + "".join(
        f"- {json.dumps(each)}\n" for each in item["items"]
    )
    left, right = load(write("a.json", item)), load(write("a.yaml", as_yaml))
    assert left.report == right.report
    assert left.cluster.pods.get(0) == right.cluster.pods.get(0)


def test_a_folder_with_packed_and_other_files(write: Write, tmp_path: Path) -> None:
    write("in/a/pods.json.gz", gzip.compress(json.dumps(a_list(a_pod())).encode()))
    write("in/nodes.yml", json.dumps(a_node()))
    write("in/README.md", "# no snapshot")
    write("in/package.json", {"name": "x"})
    write("in/values.yaml", "replicas: 3")
    write(
        "in/crd.json", {"apiVersion": "serving.knative.dev/v1", "kind": "Service", "metadata": {"name": "x"}}
    )
    write("in/ds.json", {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "x"}})
    loaded = load(tmp_path / "in")
    assert str(loaded).splitlines() == [
        "loaded: 1 Node, 1 Pod",
        "passed over: 3 files, 1 DaemonSet, 1 Service.serving.knative.dev",
    ]


def test_old_versions_of_a_kind_are_taken(write: Write) -> None:
    old = a_deployment({"matchLabels": {"app": "web"}}) | {"apiVersion": "extensions/v1beta1"}
    assert load(write("a.json", old)).report.taken == {"Deployment": 1}


def test_nulls_are_absent(write: Write) -> None:
    pod = a_pod(tolerations=None, initContainers=None)
    pod["metadata"] |= {"labels": None, "ownerReferences": None, "creationTimestamp": None}
    pod["status"] = {"conditions": None, "phase": None}
    assert load(write("a.json", a_list(a_pod("first"), pod, a_node()))).report.taken == {"Pod": 2, "Node": 1}


def test_an_empty_list_is_an_empty_cluster(write: Write) -> None:
    assert str(load(write("a.json", a_list()))) == "loaded: nothing"


def test_pods_on_unknown_nodes_are_kept_with_one_warning(write: Write) -> None:
    loaded = load(write("a.json", a_list(a_node(), a_pod(node="gone"), a_pod("web-2", node="gone"))))
    assert loaded.cluster.n_homeless == 2
    assert loaded.report.warnings == [
        "2 pods are on nodes that the snapshot does not hold: kept, but counted nowhere"
    ]


def test_progress_comes_to_the_end(write: Write) -> None:
    path, told = write("a.json", a_list(a_node())), []
    load_snapshot(
        [path, write("b.json.gz", gzip.compress(json.dumps(a_pod()).encode()))],
        on_progress=lambda *n: told.append(n),
    )
    assert told[-1][0] == told[-1][1] > 0


def test_kubectls_copy_of_an_object_is_dropped_and_the_namespace_filled_in(write: Write) -> None:
    item = a_deployment({"matchLabels": {"a": "b"}})
    item["metadata"] = {
        "name": "web",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}", "volume": "kept"},
    }
    [deployment] = load(write("a.json", item)).cluster.objects.deployments.all()
    assert deployment.metadata.annotations == {"volume": "kept"}
    assert deployment.metadata.namespace == "default"


@pytest.mark.parametrize(
    ("name", "n_nodes", "n_pods"), [("openshift-aws", 6, 239), ("kurl-support-bundle", 3, 58)]
)
def test_a_real_cluster_loads_whole(real_snapshots: Path, name: str, n_nodes: int, n_pods: int) -> None:
    loaded = load(real_snapshots / name)
    assert (len(loaded.cluster.nodes), len(loaded.cluster.pods)) == (n_nodes, n_pods)
    assert not loaded.report.warnings
    assert "passed over: 1 file" in str(loaded)


# -- what is wrong with one ----------------------------------------------------------------------------------------

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def selecting(**expression: Any) -> dict[str, Any]:
    return {"matchExpressions": [{"key": "app", **expression}]}


def pod_affinity(selector: dict[str, Any]) -> dict[str, Any]:
    return {"affinity": {"podAntiAffinity": {REQUIRED: [{"labelSelector": selector, "topologyKey": "zone"}]}}}


def node_affinity(**expression: Any) -> dict[str, Any]:
    return {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [selecting(**expression)]}}}}


POD_SELECTOR = f"spec.affinity.podAntiAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0]"
NODE_TERM = f"spec.affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0]"
CPU = "Pod shop/web-1: spec.containers[0].resources.requests.cpu"


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        (a_pod(cpu="abc"), f"{CPU}: 'abc' is not a quantity such as '500m' or '2Gi'"),
        (a_pod(cpu="-1"), f"{CPU}: '-1' is negative"),
        (
            a_pod(cpu=True),
            f"{CPU.replace('.cpu', '[...]')}: expected an integer or a number or a string, got true or false",
        ),
        (
            a_pod(containers=[]),
            "Pod shop/web-1: spec.containers: absent or empty, but a pod has at least one",
        ),
        (a_pod(containers="x"), "Pod shop/web-1: spec.containers: expected a list, got a string"),
        (a_pod(priority="high"), "Pod shop/web-1: spec.priority: expected an integer or null, got a string"),
        (a_pod() | {"spec": 3}, "Pod shop/web-1: spec: expected an object, got an integer"),
        (
            a_pod() | {"metadata": {"namespace": "shop"}},
            "Pod (number 1 in the file): metadata.name: absent, but needed",
        ),
        (
            a_pod() | {"metadata": {"name": "x", "creationTimestamp": "yesterday"}},
            "Pod x: metadata.creationTimestamp: not a time such as '2025-11-05T10:15:00Z'",
        ),
        (
            a_pod() | {"metadata": {"name": "x", "labels": {"version": 1.1}}},
            "Pod x: metadata.labels[...]: expected a string, got a number",
        ),
        (
            a_pod(**pod_affinity(selecting(operator="Equals", values=["a"]))),
            f"Pod shop/web-1: {POD_SELECTOR}.operator: 'Equals' is not one of In, NotIn, Exists, DoesNotExist",
        ),
        (
            a_pod(**pod_affinity(selecting(operator="Gt", values=["1"]))),
            f"Pod shop/web-1: {POD_SELECTOR}.operator: 'Gt' is not one of In, NotIn, Exists, DoesNotExist",
        ),
        (
            a_pod(**pod_affinity(selecting(operator="In"))),
            f"Pod shop/web-1: {POD_SELECTOR}.values: empty, but In needs at least one value",
        ),
        (
            a_pod(**node_affinity(operator="~", values=["1"])),
            f"Pod shop/web-1: {NODE_TERM}.operator: '~' is not one of In, NotIn, Exists, DoesNotExist, Gt, Lt",
        ),
        (
            a_pod(**node_affinity(operator="Lt", values=["1", "2"])),
            f"Pod shop/web-1: {NODE_TERM}.values: ['1', '2'] is not exactly one integer",
        ),
        (
            a_pod(**node_affinity(values=["1"])),
            f"Pod shop/web-1: {NODE_TERM}.operator: absent, but needed",
        ),
        (
            a_node(capacity={"cpu": "1"}),
            "Node n1: status.allocatable: absent, so the node has nothing to offer; expected cpu, memory and pods",
        ),
        (
            a_node(allocatable={"cpu": "1", "example.com/gpu": "x"}),
            "Node n1: status.allocatable[example.com/gpu]: 'x' is not a quantity such as '500m' or '2Gi'",
        ),
        (
            a_deployment(selecting(operator="Lt", values=["1"])),
            "Deployment shop/web: spec.selector.matchExpressions[0].operator: "
            "'Lt' is not one of In, NotIn, Exists, DoesNotExist",
        ),
        (a_deployment({}, replicas=-1), "Deployment shop/web: spec.replicas: -1 is negative"),
        (a_deployment([]), "Deployment shop/web: spec.selector: expected an object or null, got a list"),
    ],
)
def test_a_broken_object_is_named_with_its_field(write: Write, item: Any, expected: str) -> None:
    assert mistakes(write("a.json", item)) == [f"a.json: {expected}"]
    lenient = load(write("b.json", a_list(item, a_pod("fine"))), lenient=True)
    assert pod_names(lenient.cluster) == {"fine"}
    assert len(lenient.report.warnings) == 2  # and one for the node that is not there
    assert "skipped: " in lenient.report.warnings[0]


def test_a_broken_object_in_yaml_is_named_alike(write: Write) -> None:
    [told] = mistakes(
        write("a.yaml", json.dumps(a_pod(cpu="abc")).replace("{", " {", 1).join(["---\n", "\n"]))
    )
    assert told == f"a.yaml: {CPU}: 'abc' is not a quantity such as '500m' or '2Gi'"


def test_all_mistakes_are_told_at_once_up_to_a_number(write: Write) -> None:
    pods = [a_pod(f"web-{i}", cpu=f"x{i % 3}") for i in range(30)]
    path = write("a.json", a_list(a_node(capacity={}), *pods))
    assert len(mistakes(path)) == 31
    with pytest.raises(SnapshotError, match=r"web-18: .*\nand 11 more"):
        load(path)


def test_a_pod_of_a_spec_that_is_known_as_broken_is_broken(write: Write) -> None:
    pods = [a_pod(f"web-{i}", **pod_affinity(selecting(operator="Gt", values=["1"]))) for i in range(3)]
    assert len(mistakes(write("a.json", a_list(*pods)))) == 3


@pytest.mark.parametrize("item", [a_node(), a_pod(), a_deployment({})])
def test_an_object_seen_twice_names_both_places(write: Write, item: Any) -> None:
    one, two = write("1.json", a_list(a_node("other"), item)), write("2.json", item)
    [told] = mistakes(two, one)
    assert told.startswith("1.json: ")
    assert told.endswith(f"seen twice: first in {two} (number 1)")
    assert len(mistakes(write("3.json", [item, item]))) == 1
    loaded = load(one, two, lenient=True)
    assert sum(loaded.report.taken.values()) == 2


def test_an_object_that_the_cluster_holds_already(write: Write) -> None:
    path = write("a.json", a_list(a_node(), a_pod(), a_deployment({})))
    cluster = load(path).cluster
    with pytest.raises(
        SnapshotError, match=r"(?s)Node n1: seen twice: first in the cluster.*Pod.*Deployment"
    ):
        load_snapshot([path], cluster)


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        (
            "a.json",
            '{"kind": "List", "items": [{"a": 1}, {"b":',
            "line 1, column 43: it ends in the middle of an object",
        ),
        (
            "a.json",
            '{"kind": "List",\n "items": [{"a": 1} {"b": 2}]}',
            "line 2, column 21: it is not JSON: expected ',' or ']'",
        ),
        ("a.json", "{\n" + '"a":' + "[" * 3000, "line 2, column 5: it is nested too deeply"),
        ("a.json", b"", "the file is empty"),
        ("a.json", "  \n", "the file holds no Kubernetes object (one with kind and apiVersion)"),
        ("a.json", '{"a": 1}', "the file holds no Kubernetes object (one with kind and apiVersion)"),
        ("a.json", "[1, 2]", "the file holds no Kubernetes object (one with kind and apiVersion)"),
        ("a.txt", "Hello, world", "the file holds no Kubernetes object (one with kind and apiVersion)"),
        ("a.json", '{"kind": "Pod"}'.encode("utf-16"), "the text is UTF-16; save it as UTF-8"),
        (
            "a.yaml",
            "kind: Pod\n  metadata: x",
            "line 2, column 11: it is not YAML: mapping values are not allowed",
        ),
        ("a.yaml", b"kind: \xff\xfe", "it is not YAML: "),
        ("a.yaml", "a: &a [*a]", "an alias stands for something that it is part of"),
        (
            "a.yaml",
            "a: !!python/object:os.system x",
            "line 1, column 4: it is not YAML: could not determine a constructor",
        ),
        (
            "a.gz",
            gzip.compress(b'{"kind": "List"}' * 99)[:-9],
            "it is packed with gzip, but broken or truncated",
        ),
    ],
)
def test_what_is_no_snapshot(write: Write, name: str, content: Any, expected: str) -> None:
    [told] = mistakes(write(name, content))
    assert told.startswith(f"{name}: {expected}")


def test_aliases_that_stand_for_billions(write: Write) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 10)]
    [told] = mistakes(write("a.yaml", "\n".join(lines)))
    assert "its aliases stand for more than" in told


def test_merge_keys_that_stand_for_billions(write: Write) -> None:
    lines = ["a0: &a0 {x: y}"]
    lines += [f"a{i}: &a{i} {{<<: [{', '.join([f'*a{i - 1}'] * 10)}]}}" for i in range(1, 10)]
    [told] = mistakes(write("a.yaml", "\n".join(lines)))
    assert "keys merged into one mapping" in told


@pytest.mark.parametrize("text", ["[" * 10**6, "- " * 10**5, "[\n" * 10**5, "['}', \n" * 10**5])
def test_yaml_nested_too_deeply(write: Write, text: str) -> None:
    [told] = mistakes(write("a.yaml", f"# deep\n{text}"))
    assert "it is nested too deeply" in told


def test_a_merge_key(write: Write) -> None:
    lines = ["<<: {status: {allocatable: {cpu: 1}}}", "apiVersion: v1", "kind: Node", "metadata: {name: n1}"]
    assert load(write("a.yaml", "\n".join(lines))).report.taken == {"Node": 1}


def test_yaml_that_json_has_no_words_for(write: Write) -> None:
    [told] = mistakes(write("a.yaml", "kind: Pod\n~: x\n"))
    assert told.startswith("a.yaml: object (number 1 in the file): it can't be written as JSON: ")
    assert len(mistakes(write("b.yaml", "kind: Pod\n? [1, 2]\n: x\n"))) == 1
    load(write("c.yaml", "kind: List\nitems: []\nx: !!timestamp 2024-01-01\n"))


def test_the_rest_of_a_broken_file_is_left_out_if_lenient(write: Write) -> None:
    text = json.dumps(a_list(a_node(), a_pod(), a_pod("web-2")))
    loaded = load(write("a.json", text[:-80]), lenient=True)
    assert loaded.report.taken == {"Node": 1, "Pod": 1}
    assert loaded.report.warnings[0].startswith("the rest of the file is left out: ")


def test_files_that_are_not_there(tmp_path: Path, write: Write) -> None:
    with pytest.raises(SnapshotError, match="none: there is no such file"):
        load(tmp_path / "none")
    with pytest.raises(SnapshotError, match=r"the folder holds no \.json, "):
        load(tmp_path)
    write("in/a.json", {"name": "x"})
    with pytest.raises(SnapshotError, match="in: none of its files holds a Kubernetes object"):
        load(tmp_path / "in")
    with pytest.raises(SnapshotError, match="no snapshot is named"):
        load()


STATUS = {
    "phase": "Running",
    "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2025-11-05T10:15:00Z"}],
    "containerStatuses": [{"restartCount": 1}],
}
FULL = a_list(
    a_node(allocatable={"cpu": "4", "memory": "1Gi"}, conditions=[{"type": "Ready", "status": "True"}]),
    a_pod(**pod_affinity(selecting(operator="In", values=["a"]))),
    a_pod("web-2", **node_affinity(operator="Gt", values=["1"])) | {"status": STATUS},
    a_deployment(selecting(operator="Exists")),
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in inner for place in places(item, (*path, key)))]


@given(
    st.sampled_from(places(FULL)[1:]),
    st.sampled_from(
        [
            None,
            0,
            -1,
            1.5,
            True,
            "",
            "x",
            [],
            {},
            [None],
            ["x"],
            [{}],
            {"x": None},
            {"x": 1},
            "In",
            2**40,
            2**70,
        ]
    ),
    st.booleans(),
    st.sampled_from(["a.json", "a.yaml"]),
)
@settings(max_examples=300)
def test_whatever_is_broken_is_told_in_words(
    tmp_path_factory: pytest.TempPathFactory, place: tuple[Any, ...], value: Any, lenient: bool, name: str
) -> None:
    broken = json.loads(json.dumps(FULL))
    part = broken
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = value
    path = tmp_path_factory.mktemp("broken") / name
    path.write_text("---\n" * (name == "a.yaml") + json.dumps(broken))
    told = f"{path}: in words"
    try:
        load(path, lenient=lenient)
    except SnapshotError as error:
        told = str(error)
    assert told.startswith(f"{path}: ")
    assert "`" not in told
    assert "$" not in told


def test_items_of_a_plain_list_that_do_not_say_their_kind_are_counted(write: Write) -> None:
    loaded = load(write("a.json", a_list(a_node(), {"metadata": {"name": "x"}})))
    assert str(loaded).splitlines() == ["loaded: 1 Node", "passed over: 1 (no kind)"]
