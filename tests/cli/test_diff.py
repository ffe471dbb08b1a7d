import json
from pathlib import Path

import pytest

from tests.cli.runner import berth


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    def node(name: str, *, unschedulable: bool = False) -> dict[str, object]:
        return {
            "apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "spec": {"unschedulable": unschedulable},
            "status": {
                "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"},
                "conditions": [{"type": "Ready", "status": "True"}],
            },
        }  # fmt: skip

    def pod(name: str, node: str = "", cpu: str = "1") -> dict[str, object]:
        containers = [{"name": "c", "resources": {"requests": {"cpu": cpu, "memory": f"{4 * int(cpu)}Gi"}}}]
        return {
            "apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "shop"},
            "spec": {"containers": containers} | ({"nodeName": node} if node else {}),
            "status": {"phase": "Running" if node else "Pending"},
        }  # fmt: skip

    items = [
        node("n1"), node("n2"), node("n3", unschedulable=True),
        pod("a", "n1", "2"), pod("b", "n2"), pod("c", "n3"), pod("waits"),
    ]  # fmt: skip
    path = tmp_path / "cluster.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))
    return path


def a_policy(tmp_path: Path, **fields: object) -> Path:
    path = tmp_path / "policy.json"
    path.write_text(json.dumps({"kind": "Policy", "apiVersion": "v1", **fields}))
    return path


def test_the_same_on_both_sides_is_no_difference(snapshot: Path) -> None:
    run = berth("diff", "--from", "1.13", "--to", "1.13", "--snapshot", snapshot, "--exit-code")
    assert run.code == 0
    assert run.out == "1.13 to 1.13: 0 of 4 pods judged differently\n"


def test_a_policy_without_predicates_lets_pods_fit(snapshot: Path, tmp_path: Path) -> None:
    policy = a_policy(tmp_path, predicates=[])
    args = ("--from", "1.10", "--to", "1.10", "--to-config", policy, "--snapshot", snapshot)
    run = berth("diff", *args, "--exit-code")
    assert run.code == 0  # CheckNodeCondition, which is mandatory, sees the cordoned node too
    provider = berth("diff", "--from", "1.13", "--to", "1.13", "--to-provider", "ClusterAutoscalerProvider",
                     "--snapshot", snapshot, "--exit-code")  # fmt: skip
    assert provider.code == 1
    assert "shop/waits" in provider.out
    assert "best nodes" in provider.out
    assert provider.out.splitlines()[0].split() == ["POD", "NODE", "WHAT", "FROM", "TO", "REASONS"]


def test_json_tells_both_sides(snapshot: Path) -> None:
    run = berth("diff", "--from", "1.13", "--to", "1.13", "--to-provider", "ClusterAutoscalerProvider",
                "--snapshot", snapshot, "--pending", "--output", "json")  # fmt: skip
    assert run.code == 0
    document = json.loads(run.out)
    assert document["pods"] == 1
    assert document["summary"] == {"best nodes": 1}
    (one,) = document["differences"]
    assert (one["pod"], one["node"], one["what"]) == ("waits", None, ["best nodes"])
    assert one["from"]["best"] == ["n2"]
    assert one["to"]["best"] == ["n1"]


def test_unknown_releases_are_refused_with_the_list(snapshot: Path) -> None:
    run = berth("diff", "--from", "1.9", "--to", "2.0", "--snapshot", snapshot)
    assert run.code == 2
    assert "--from: '1.9' is not one of those there are: 1.7, 1.10, 1.13, 1.17" in run.err
    assert "--to: '2.0'" in run.err


def test_what_is_wrong_with_both_configurations_is_told_at_once(snapshot: Path, tmp_path: Path) -> None:
    policy = a_policy(tmp_path, predicates=[{"name": "HostNam"}])
    other = tmp_path / "other.yaml"
    other.write_text("kind: KubeSchedulerConfiguration\n")
    run = berth("diff", "--from", "1.13", "--from-config", policy, "--to", "1.17", "--to-config", other,
                "--snapshot", snapshot)  # fmt: skip
    assert run.code == 2
    assert "did you mean HostName?" in run.err
    assert "kind: Policy, which is what 1.17 reads" in run.err


def test_a_file_and_a_provider_are_one_too_many(snapshot: Path, tmp_path: Path) -> None:
    run = berth("diff", "--from", "1.13", "--to", "1.17", "--to-config", a_policy(tmp_path), "--to-provider",
                "DefaultProvider", "--snapshot", snapshot)  # fmt: skip
    assert run.code == 2
    assert "--to-config and --to-provider" in run.err
