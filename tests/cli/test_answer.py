import json
import subprocess

import pytest

from tests.cli.runner import COMMAND, berth, process
from tests.cli.worlds import a_node
from tests.module.examples import plans, scenario_lines


def test_answers_all_worked_scenarios_in_order() -> None:
    run = process("answer", "--release", "module", stdin=b"\n".join(scenario_lines()))
    assert run.code == 0
    assert run.err == ""
    assert [json.loads(line) for line in run.out.splitlines()] == plans()


def test_answers_each_line_before_the_next_is_asked() -> None:
    with subprocess.Popen(
        [*COMMAND, "answer", "--release", "module"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as asked:
        assert asked.stdin is not None
        assert asked.stdout is not None
        for line, plan in zip(scenario_lines()[:3], plans(), strict=False):
            asked.stdin.write(line + b"\n")
            asked.stdin.flush()
            assert json.loads(asked.stdout.readline()) == plan
        asked.stdin.close()
        assert asked.wait() == 0


def test_a_bad_line_is_answered_and_the_next_too() -> None:
    good = json.dumps({"id": "good", "snapshot": {}, "requests": []})
    bad = [
        "[1",
        '{"id": 7}',
        "",
        '"text"',
        "[" * 100_000,
        '{"id": "x", "snapshot": {"nodes": 3}, "requests": []}',
    ]
    run = berth("answer", "--release", "module", stdin="\n".join([*bad, good]) + "\n")
    answers = [json.loads(line) for line in run.out.splitlines()]
    assert run.code == 0
    assert [answer["id"] for answer in answers] == [None, 7, None, None, "x", "good"]
    assert all(set(answer) == {"id", "error"} for answer in answers[:-1])
    assert answers[-1] == {"id": "good", "decisions": []}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"requests": [{"operation": 1}]}, "requests[0].namespace: None is not a name"),
        ({"weights": {"7": 1}}, "weights.7: expected a known number: 1, 2, 3, 4, 5"),
        ({"weights": {"1": -1}}, "weights.1: -1 is not a whole number from 0 to 2147483647"),
        ({"ties": "coin"}, "Invalid enum value 'coin' - at `$.ties`"),
        ({"profiles": [{"namespace": "a"}]}, "profiles, [0], service: expected a name, but it is missing"),
        (
            {"requests": [{"operation": 1, "namespace": "a", "serviceName": "b", "number": "3"}]},
            "requests[0]: there is no service a/b",
        ),
        ({"snapshot": {"nodes": [a_node("n1", cpu="4x")]}}, "node n1: '4x' is not a quantity"),
    ],
)
def test_says_what_is_wrong_with_a_scenario(changes: dict[str, object], told: str) -> None:
    scenario = {"id": "s", "snapshot": {}, "requests": []} | changes
    run = berth("answer", "--release", "module", stdin=json.dumps(scenario) + "\n")
    answer = json.loads(run.out)
    assert answer["id"] == "s"
    assert told in answer["error"]


def test_tells_all_mistakes_of_a_scenario() -> None:
    scenario = {"id": "s", "snapshot": {}, "requests": [{"operation": 3}], "weights": {"0": 1}}
    error = json.loads(berth("answer", "--release", "module", stdin=json.dumps(scenario) + "\n").out)["error"]
    assert error.count(";") == 4


def test_objects_without_a_namespace_are_in_default() -> None:
    service = {"metadata": {"name": "web"}, "spec": {"selector": {"app": "web"}}}
    request = {"operation": 2, "namespace": "default", "serviceName": "web", "number": "1"}
    scenario = {"id": 1, "snapshot": {"services": [service]}, "requests": [request]}
    answer = json.loads(berth("answer", "--release", "module", stdin=json.dumps(scenario) + "\n").out)
    assert answer["decisions"][0]["reason"] == "service default/web has no pod left to remove"


def test_answers_cases_of_a_kubernetes_release() -> None:
    case = {
        "id": "c",
        "pod": {"metadata": {"name": "p"}, "spec": {"containers": []}},
        "nodes": [a_node("n1")],
    }
    answer = json.loads(berth("answer", "--release", "1.13", stdin=json.dumps(case) + "\n").out)
    assert answer["best"] == ["n1"]


def test_names_the_releases_that_there_are() -> None:
    run = berth("answer", "--release", "1.8")
    assert run.code == 2
    assert run.out == ""
    assert "error: --release: '1.8' is not one of those there are: module, " in run.err
    assert "1.13" in run.err


def test_a_release_is_needed() -> None:
    assert berth("answer").code == 2


def test_feature_gates_are_set_over_those_of_the_case() -> None:
    node = a_node("n1")
    node["status"]["conditions"] = [{"type": "Ready", "status": "False"}]
    case = {"id": "c", "pod": {"metadata": {"name": "p"}}, "nodes": [node]}
    asked = ("answer", "--release", "1.13")
    plain = json.loads(berth(*asked, stdin=json.dumps(case)).out)
    gated = json.loads(
        berth(*asked, "--feature-gates", "TaintNodesByCondition=true", stdin=json.dumps(case)).out
    )
    assert plain["failed"] == {"n1": ["node(s) were not ready"]}
    assert gated["feasible"] == ["n1"]
    case["options"] = {"featureGates": {"TaintNodesByCondition": True}}
    back = json.loads(
        berth(*asked, "--feature-gates", "TaintNodesByCondition=false", stdin=json.dumps(case)).out
    )
    assert back == plain


@pytest.mark.parametrize("gates", ["EvenPodsSpread", "=true", "EvenPodsSpread=yes"])
def test_feature_gates_that_cannot_be_read_are_refused(gates: str) -> None:
    run = berth("answer", "--release", "1.17", "--feature-gates", gates, stdin="")
    assert run.code == 2
    assert "EvenPodsSpread=true" in run.err
