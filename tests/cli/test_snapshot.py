import gzip
import json
import os
from pathlib import Path

import pytest

from berth.sources.snapshot import load_snapshot
from berth.sources.writer import cluster_objects
from berth.store.interface import StoredObject
from berth.store.sqlite import SqliteStore
from tests.cli.runner import berth, process
from tests.cli.worlds import a_shop, write_list


def kinds(data: bytes) -> dict[str, int]:
    found: dict[str, int] = {}
    for item in json.loads(data)["items"]:
        found[item["kind"]] = found.get(item["kind"], 0) + 1
    return found


SHOP = {"Node": 2, "Service": 3, "ReplicaSet": 2, "Pod": 4}


def test_writes_one_file(shop: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    run = berth("snapshot", "--snapshot", shop, "--output", output)
    assert run.code == 0
    assert run.out == ""
    assert "wrote 11 objects" in run.err
    assert kinds(output.read_bytes()) == SHOP
    assert sorted(os.listdir(tmp_path)) == ["out.json", "shop.json"]


def test_what_it_wrote_plans_alike(shop: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.json.gz"
    berth("snapshot", "--snapshot", shop, "-o", output)
    asked = ("--add", "shop/web=3", "--remove", "shop/api=1", "-o", "json")
    assert berth("plan", "--snapshot", output, *asked).out == berth("plan", "--snapshot", shop, *asked).out


@pytest.mark.parametrize("release", ["1.13", "1.36"])
def test_pods_that_are_resized_plan_alike_too(release: str, tmp_path: Path) -> None:
    world = a_shop()
    (web,) = (item for item in world if item["metadata"]["name"] == "web-1")
    has = {"name": "main", "resources": {"requests": {"cpu": "2", "memory": "256Mi"}}}
    web["status"]["containerStatuses"] = [has]
    shop, output = write_list(tmp_path / "shop.json", world), tmp_path / "out.json"
    berth("snapshot", "--snapshot", shop, "-o", output)
    (written,) = (
        item for item in json.loads(output.read_bytes())["items"] if item["metadata"]["name"] == "web-1"
    )
    assert written["status"]["containerStatuses"] == [has]
    plans = [
        berth(
            "plan",
            "--snapshot",
            path,
            "--add",
            "shop/web=9",
            "-o",
            "json",
            env={"BERTH_MODULE_RELEASE": release},
        ).out
        for path in (shop, output)
    ]
    assert plans[0] == plans[1]
    # Where the status counts, 900m are left on n1.
    on_n1 = [decision["node"] for decision in json.loads(plans[0])["decisions"]].count("n1")
    assert on_n1 == (4 if release == "1.13" else 1)


def test_packed_files_are_the_same_each_time(shop: Path, tmp_path: Path) -> None:
    first, second = tmp_path / "a.json.gz", tmp_path / "b.json.gz"
    berth("snapshot", "--snapshot", shop, "-o", first)
    berth("snapshot", "--snapshot", shop, "-o", second)
    assert first.read_bytes() == second.read_bytes()
    assert kinds(gzip.decompress(first.read_bytes())) == SHOP


def test_writes_to_standard_output(shop: Path) -> None:
    run = process("snapshot", "--snapshot", shop, "--output", "-")
    assert run.code == 0
    assert kinds(run.out.encode()) == SHOP


def test_writes_what_a_store_holds(shop: Path, tmp_path: Path) -> None:
    path = tmp_path / "berth.db"
    with SqliteStore(path) as store:
        cluster = load_snapshot([shop]).cluster
        store.save_objects((StoredObject(*row) for row in cluster_objects(cluster)), "the shop")
    run = berth("snapshot", "--store", path, "--output", "-")
    assert run.code == 0
    assert "the shop" in run.err
    assert kinds(run.out.encode()) == SHOP


def test_a_store_must_be_there_and_hold_something(tmp_path: Path) -> None:
    path = tmp_path / "berth.db"
    run = berth("snapshot", "--store", path, "--output", "-")
    assert (run.code, run.out) == (2, "")
    assert "there is no file" in run.err
    assert not path.exists()
    SqliteStore(path).close()
    assert "holds no cluster yet" in berth("snapshot", "--store", path, "--output", "-").err


def test_one_source_only(shop: Path) -> None:
    run = berth("snapshot", "--store", shop, "--snapshot", shop, "--output", "-")
    assert run.code == 2
    assert "not both" in run.err


def test_a_file_that_cannot_be_written(shop: Path, tmp_path: Path) -> None:
    run = berth("snapshot", "--snapshot", shop, "--output", tmp_path / "no" / "out.json")
    assert run.code == 2
    assert "can't be written: No such file or directory" in run.err


@pytest.mark.parametrize("name", ["openshift-aws", "kurl-support-bundle"])
def test_real_clusters(real_snapshots: Path, tmp_path: Path, name: str) -> None:
    first, second = tmp_path / "first.json", tmp_path / "second.json"
    assert berth("snapshot", "--snapshot", real_snapshots / name, "-o", first).code == 0
    assert berth("snapshot", "--snapshot", first, "-o", second).code == 0
    assert first.read_bytes() == second.read_bytes()
