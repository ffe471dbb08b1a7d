import json
from datetime import datetime
from pathlib import Path

import msgspec
import pytest
import yaml

from berth.config import Settings
from berth.module.changes import Change
from berth.module.forecast import ForecastLimits
from berth.service.assembly import LoadFeed, make_planner
from berth.sources.forecasts import RecordedForecasts, RecordedLoads, read_forecasts, read_loads
from berth.sources.profiles import read_profiles
from berth.sources.snapshot import load_snapshot
from tests.cli.runner import berth, process
from tests.cli.worlds import a_shop, write_list

NOW = "2026-03-01T12:00:00Z"


def write(path: Path, content: object) -> Path:
    path.write_text(json.dumps(content))
    return path


def test_plain_table(shop: Path) -> None:
    run = berth(
        "plan", "--snapshot", shop, "--add", "shop/web=1", "--remove", "shop/api=1", "--add", "shop/agent=1"
    )
    assert run.code == 0
    lines = run.out.splitlines()
    assert [line.split()[:6] for line in lines[:4]] == [
        ["OPERATION", "SERVICE", "POD", "NODE", "SCORE", "FEASIBLE"],
        ["remove", "shop/api", "api-1", "n1", "24", "1"],
        ["add", "shop/web", "-", "n1", "31", "2"],
        ["add", "shop/agent", "-", "-", "-", "0"],
    ]
    # By hand: 600m of 4 cores and 512Mi of 8Gi stay on n1.
    assert lines[1].split()[6:] == [
        "MostRequestedPriority=0,BalancedResourceAllocation=9,ServicePodsOnNodePriority=10,NodeLoadForecastPriority=5",
        "-",
    ]
    assert lines[3].endswith(
        "service shop/agent belongs to DaemonSet agent: its pods can't be added or removed"
    )
    assert lines[4] == "1 added, 1 removed, 1 failed; 2 nodes without forecast"
    assert "loaded: 2 Node, 3 Service, 2 ReplicaSet, 4 Pod" in run.err


def test_columns_of_the_plain_table_line_up(shop: Path) -> None:
    lines = berth("plan", "--snapshot", shop, "--add", "shop/web=2").out.splitlines()[:-1]
    for name in ("NODE", "SCORES", "REASON"):
        at = lines[0].index(name)
        assert all(line[at - 2 : at] == "  " and line[at] != " " for line in lines)


def test_summary_counts_by_service_and_node(shop: Path) -> None:
    run = berth("plan", "--snapshot", shop, "--add", "shop/web=30", "--summary")
    rows = [line.split(maxsplit=4) for line in run.out.splitlines()]
    assert rows[0] == ["OPERATION", "SERVICE", "NODE", "PODS", "REASON"]
    assert sum(int(row[3]) for row in rows[1:-1]) == 30
    assert rows[-2][:4] == ["add", "shop/web", "-", "23"]
    assert rows[-2][4] == "0/2 nodes are available: 2 Insufficient cpu."


@pytest.mark.parametrize("output", ["json", "yaml"])
def test_written_plan_equals_the_librarys(shop: Path, tmp_path: Path, output: str) -> None:
    at, later = "2026-03-01T11:59:00Z", "2026-03-01T12:05:00Z"
    load = write(tmp_path / "load.json", [{"node": "n1", "time": at, "cpu": 1, "memory": "1Gi"}])
    row = {"node": "n1", "time": later, "cpu": 3, "memory": "4Gi", "issued": at}
    forecast = write(tmp_path / "forecast.json", [row])
    profile = {"namespace": "shop", "service": "web", "intensity": "memory", "cpu": "1", "memory": "2Gi"}
    profiles = write(tmp_path / "profiles.json", [profile])
    run = berth(
        "plan", "--snapshot", shop, "--forecast", forecast, "--load", load, "--profiles", profiles, "--now", NOW,
        "--add", "shop/web=2", "--remove", "shop/web=1", "--output", output,
    )  # fmt: skip
    cluster = load_snapshot([shop]).cluster
    planner = make_planner(cluster, Settings(), read_profiles(profiles))
    feed = LoadFeed(
        RecordedForecasts(read_forecasts(forecast)), RecordedLoads(read_loads(load)), ForecastLimits()
    )
    planner.set_forecast(feed.delta(cluster, datetime.fromisoformat(NOW)))
    changes = [Change("r-01", "add", "shop", "web", 2), Change("r-02", "remove", "shop", "web", 1)]
    expected = msgspec.to_builtins(planner.dry_run(1, changes).written())
    assert run.code == 0
    assert yaml.safe_load(run.out) == expected
    assert expected["nodesWithoutForecast"] == 1
    if output == "json":
        assert json.loads(run.out) == expected
        assert list(json.loads(run.out)) == [
            "round", "decisions", "added", "removed", "failed", "nodesWithoutForecast",
        ]  # fmt: skip


def test_changes_keep_the_order_in_which_they_were_given(shop: Path, tmp_path: Path) -> None:
    body = {"podList": [{"operation": 1, "namespace": "shop", "serviceName": "api", "number": 1}]}
    run = berth(
        "plan", "--remove=shop/api=1", "--add", "shop/web=1", "--snapshot", shop, "--remove", "shop/web=1",
        "--add=shop/web=2", "--requests", write(tmp_path / "body.json", body), "--output", "json",
    )  # fmt: skip
    decisions = json.loads(run.out)["decisions"]
    assert sorted({(d["request"], d["operation"], d["service"]) for d in decisions}) == [
        ("r-01", "add", "api"),
        ("r-02", "remove", "api"),
        ("r-03", "add", "web"),
        ("r-04", "remove", "web"),
        ("r-05", "add", "web"),
    ]


def test_requests_from_standard_input(shop: Path) -> None:
    entry = {"operation": 2, "namespace": "shop", "serviceName": "web", "number": "1", "workload": "rs/web"}
    run = berth(
        "plan", "--snapshot", shop, "--requests", "-", "-o", "json", stdin=json.dumps({"podList": [entry]})
    )
    assert json.loads(run.out)["removed"] == 1


def test_a_workload_can_be_named(shop: Path) -> None:
    run = berth("plan", "--snapshot", shop, "--add", "shop/web@replicaset/web=2", "-o", "json")
    assert json.loads(run.out)["added"] == 2


def test_all_mistakes_are_told_at_once(shop: Path, tmp_path: Path) -> None:
    body = {"podList": [{"operation": 3, "namespace": "shop", "serviceName": "web", "number": "0"}]}
    broken = tmp_path / "broken.csv"
    broken.write_text("node,time,cpu\nn1,yesterday,1\n")
    run = berth(
        "plan", "--snapshot", shop, "--add", "shop/web", "--add", "web=3", "--remove", "shop/web=03",
        "--remove", "shop/web@daemonset/web=3", "--add", "shop/wbe=1", "--add", "shop/web@deploy/web=1",
        "--requests", write(tmp_path / "body.json", body), "--now", "2026-03-01", "--load", broken,
    )  # fmt: skip
    assert run.code == 2
    assert run.out == ""
    lines = [
        line.strip().removeprefix("error: ").replace(f"{tmp_path}/", "") for line in run.err.splitlines()
    ]
    form = "expected NAMESPACE/SERVICE[@KIND/NAME]=NUMBER, such as shop/web=3"
    assert [line for line in lines if not line.startswith("loaded")] == [
        "body.json: podList[0].operation: 3 is not 1 (add) or 2 (remove)",
        "body.json: podList[0].number: '0' is not a whole number from 1 to 10000, such as \"3\"",
        f"--add shop/web: {form}",
        f"--add web=3: {form}",
        "--remove shop/web=03: expected a whole number from 1 to 10000 after the =",
        "--remove shop/web@daemonset/web=3: expected a workload such as deployment/web after the @",
        "--now: '2026-03-01' is not a time with a zone, such as 2026-03-01T12:00:00Z",
        "broken.csv, line 2, time: 'yesterday', expected a time with a zone, such as 2026-03-01T12:00:00Z",
        "broken.csv, line 2, memory: expected bytes, such as 1048576 or 1Mi, but it is missing",
    ]


def test_unknown_names_come_with_near_ones(shop: Path) -> None:
    run = berth(
        "plan", "--snapshot", shop, "--add", "shop/wbe=1", "--add", "data/web=1",
        "--add", "shop/web@rs/wep=1", "--add", "x/zzzzzz=1",
    )  # fmt: skip
    assert run.code == 2
    assert "--add shop/wbe=1: there is no service shop/wbe; did you mean shop/web" in run.err
    assert "--add data/web=1: there is no service data/web; did you mean shop/web" in run.err
    assert "there is no replicaset/wep in namespace shop; did you mean replicaset/web" in run.err
    assert run.err.rstrip().endswith("--add x/zzzzzz=1: there is no service x/zzzzzz")


def test_a_bad_snapshot_names_its_file_and_lenient_skips(tmp_path: Path) -> None:
    world = a_shop()
    world[1]["status"]["allocatable"]["cpu"] = "much"
    path = write_list(tmp_path / "bad.json", world)
    strict = berth("plan", "--snapshot", path, "--add", "shop/web=1")
    assert strict.code == 2
    assert "bad.json" in strict.err
    assert "n2" in strict.err
    lenient = berth("plan", "--snapshot", path, "--add", "shop/web=1", "--lenient", "-o", "json")
    assert lenient.code == 0
    assert json.loads(lenient.out)["decisions"][0]["node"] == "n1"
    assert "warning" in lenient.err


@pytest.mark.parametrize(
    "body", ["", "{", "[]", "{}", '{"podList": []}', '{"podList": 3}', '{"podList": [1]}', "[" * 9999]
)
def test_a_bad_request_body(shop: Path, body: str) -> None:
    run = berth("plan", "--snapshot", shop, "--requests", "-", stdin=body)
    assert run.code == 2
    assert "error: -" in run.err


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    gone = tmp_path / "gone.json"
    run = berth(
        "plan", "--snapshot", gone, "--requests", gone, "--forecast", gone, "--load", gone, "--profiles", gone
    )
    assert run.code == 2
    assert run.err.count("gone.json") == 5


def test_something_must_be_asked_for(shop: Path) -> None:
    run = berth("plan", "--snapshot", shop)
    assert run.code == 2
    assert "nothing to plan" in run.err


def test_settings_count(shop: Path, tmp_path: Path) -> None:
    settings = tmp_path / "berth.yaml"
    settings.write_text("module: {maxNumber: 2, addWeights: {LeastRequestedPriority: 3}}\n")
    refused = berth("plan", "--config", settings, "--snapshot", shop, "--add", "shop/web=3")
    assert "from 1 to 2" in refused.err
    run = berth("plan", "--config", settings, "--snapshot", shop, "--add", "shop/web=1", "-o", "json")
    decision = json.loads(run.out)["decisions"][0]
    scores = decision["scores"]
    assert decision["score"] == sum(scores.values()) + 2 * scores["LeastRequestedPriority"]


def test_another_releases_arithmetic(shop: Path, tmp_path: Path) -> None:
    settings = tmp_path / "berth.yaml"
    settings.write_text("module: {release: '1.36'}\n")
    args = ("--snapshot", shop, "--add", "shop/web=1", "--remove", "shop/api=1", "-o", "json")
    run = berth("plan", "--config", settings, *args)
    removal, addition = json.loads(run.out)["decisions"]
    # By hand: of 4 cores and 8 Gi on n1, 600m and 512Mi stay of 1600m and 768Mi. Shares of 40 % and 9.4 % are 84 of 100
    # even, those of 15 % and 6.3 % are 95, of which the gain counts half.
    assert removal["scores"] == {
        "MostRequestedPriority": (15 + 6) // 2,
        "BalancedResourceAllocation": 50 + (50 + 95 - 84) // 2,
        "ServicePodsOnNodePriority": 100,
        "NodeLoadForecastPriority": 50,
    }
    assert removal["score"] == 240
    # n1 then has 1100m and 768Mi in use, the new pod's included; both nodes hold one pod of the service.
    assert addition["node"] == "n1"
    assert addition["scores"]["LeastRequestedPriority"] == (72 + 90) // 2
    assert addition["scores"]["SelectorSpreadPriority"] == 100
    assert berth("plan", *args, env={"BERTH_MODULE_RELEASE": "1.36"}).out == run.out


def test_what_another_release_has_no_more_is_refused(shop: Path, tmp_path: Path) -> None:
    settings = tmp_path / "berth.yaml"
    settings.write_text("module: {release: '1.36', addWeights: {EqualPriority: 1}}\n")
    run = berth("plan", "--config", settings, "--snapshot", shop, "--add", "shop/web=1")
    assert run.code == 2
    assert "module.addWeights: 'EqualPriority' is not one of 1.36's: " in run.err


def test_a_forecast_without_loads_is_pointed_out(shop: Path, tmp_path: Path) -> None:
    row = {"node": "n1", "time": NOW, "cpu": 3, "memory": "4Gi", "issued": NOW}
    run = berth(
        "plan", "--snapshot", shop, "--forecast", write(tmp_path / "f.json", [row]), "--add", "shop/web=1"
    )
    assert run.code == 0
    assert "--load" in run.err


def test_the_demo_is_planned_on_without_a_snapshot() -> None:
    run = berth("plan", "--add", "shop/web=3", "--remove", "shop/api=1", "-o", "json")
    plan = json.loads(run.out)
    assert (plan["added"], plan["removed"], plan["failed"]) == (3, 1, 0)
    assert plan["nodesWithoutForecast"] == 1
    assert "this is the demo cluster" in run.err


def test_the_demo_at_another_time_is_fresh_too() -> None:
    args = ("plan", "--add", "shop/web=1", "--now", "2031-01-01T00:00:00Z", "-o", "json")
    assert json.loads(berth(*args).out)["nodesWithoutForecast"] == 1
    assert berth(*args).out == berth(*args).out


def test_a_real_cluster(real_snapshots: Path) -> None:
    run = process(
        "plan", "--snapshot", real_snapshots / "openshift-aws", "--add", "openshift-console/console=3",
        "--remove", "openshift-console/console=1", "--add", "openshift-dns/dns-default=1", "-o", "json",
    )  # fmt: skip
    assert run.code == 0
    plan = json.loads(run.out)
    assert (plan["added"], plan["removed"], plan["failed"]) == (3, 1, 1)
    by_request: dict[str, list[str | None]] = {}
    for decision in plan["decisions"]:
        by_request.setdefault(decision["request"], []).append(decision["node"])
        assert decision["reason"] is None or decision["request"] == "r-03"
    masters = {f"ip-10-0-{host}.ec2.internal" for host in ("187-218", "189-142", "195-177")}
    assert {node for nodes in (by_request["r-01"], by_request["r-02"]) for node in nodes} <= masters
    why_not = next(d["reason"] for d in plan["decisions"] if d["request"] == "r-03")
    assert why_not == (
        "service openshift-dns/dns-default belongs to DaemonSet dns-default: its pods can't be added or removed"
    )
