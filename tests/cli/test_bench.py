"""``berth bench`` as people call it, on tiny clusters."""

import json
import stat
from pathlib import Path

import pytest

from berth.sim import memory, peer
from tests.cli.runner import berth

KEYS = {
    "workload",
    "nodes",
    "existing",
    "pods",
    "runs",
    "decisions_per_second",
    "seconds",
    "cpu_seconds",
    "peak_rss_mb",
}
TINY = ("--nodes", "20", "--existing", "10", "--pods", "5", "--runs", "1", "--numpy-alone")

# Stands for Go: "builds" a program that answers as the peer does, and looks at its input.
FAKE_GO = """\
#!/bin/sh
cat > "$5" <<'END'
#!/bin/sh
test "$(head -n 1 "$5" | tr -cd '[' | wc -c)" -gt 3 || exit 1
echo '{"count": '$(($(wc -l < "$5")))', "seconds": 2.0, "decisions_per_second": 2.5, "cpu_seconds": 3.0, "max_rss_mb": 9.5}'
END
chmod +x "$5"
"""


@pytest.fixture
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache"


def executable(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    file.chmod(file.stat().st_mode | stat.S_IXUSR)


def test_json() -> None:
    run = berth("bench", "SchedulingBasic", "removals", *TINY, "--output", "json")
    assert run.code == 0, run.err
    results = json.loads(run.out)
    assert [set(result) for result in results] == [KEYS] * 2
    assert [result["workload"] for result in results] == ["SchedulingBasic", "removals"]
    assert [(r["nodes"], r["existing"], r["pods"]) for r in results] == [(20, 10, 5)] * 2


def test_table() -> None:
    run = berth("bench", "basic", *TINY)
    assert [line.split()[0] for line in run.out.splitlines()] == [
        "WORKLOAD",
        "basic/5000Nodes",
        "basic/15000Nodes",
        "basic/100000Nodes",
        "medians",
    ]


def test_how_long_it_takes_to_start() -> None:
    (result,) = json.loads(berth("bench", "start-import", *TINY, "-o", "json").out)
    assert (result["nodes"], result["existing"], result["pods"]) == (0, 0, 1)
    assert 0 < result["seconds"] < 60


def test_numpy_alone_compiles_nothing(own_cache: Path) -> None:
    (result,) = json.loads(berth("bench", "SchedulingBasic", *TINY, "-o", "json").out)
    assert result["decisions_per_second"] > 0
    assert not list(own_cache.rglob("*.nbi"))


def test_compiled() -> None:
    (result,) = json.loads(berth("bench", "SchedulingBasic", *TINY[:-1], "-o", "json").out)
    assert result["decisions_per_second"] > 0


def test_list() -> None:
    run = berth("bench", "--list")
    names = [line.split()[0] for line in run.out.splitlines()[1:]]
    assert {"SchedulingBasic", "mixed/100000Nodes", "load-snapshot", "start-help"} <= set(names)


def test_a_file_of_ones_own(tmp_path: Path) -> None:
    source = Path(peer.__file__).parents[1] / "benchmarks" / "workloads" / "service.yaml"
    own = tmp_path / "mine.yaml"
    own.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
    run = berth("bench", f"{own}/5000Nodes", *TINY, "-o", "json")
    assert [result["workload"] for result in json.loads(run.out)] == [f"{own}/5000Nodes"]
    assert len(berth("bench", own, "--list").out.splitlines()) == 4


def test_all_that_is_wrong_is_told_before_anything_runs(tmp_path: Path) -> None:
    own = tmp_path / "mine.yaml"
    own.write_text("name: x\nsizes: {}\ntemplate: {}\n", encoding="utf-8")
    run = berth("bench", "bassic", own, "no/such.yaml")
    assert run.code == 2
    assert "NAME: 'bassic' is not a known workload; did you mean basic?" in run.err
    assert "template (mine.yaml, line 3): expected a known field; did you mean templates?" in run.err
    assert "no/such.yaml" in run.err


def test_a_cluster_larger_than_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "available", lambda: 100 << 20)
    run = berth("bench", "SchedulingBasic", "load-snapshot", "--nodes", "1000000")
    assert run.code == 2
    assert run.err.count("100 MB are free") == 2


def test_without_go_berth_is_measured_alone(
    own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    run = berth("bench", "SchedulingBasic", *TINY, "--against", "kube-scheduler", "-o", "json")
    assert run.code == 0
    assert run.err == (
        "kube-scheduler's code can't be built: Go is not installed (no go on the PATH); "
        "Berth is measured alone.\n"
    )
    assert [result["against"] for result in json.loads(run.out)] == [[]]


def test_without_the_sources(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peer, "_SOURCES", tmp_path)
    run = berth("bench", "SchedulingBasic", *TINY, "--against", "kube-scheduler")
    assert "from a checkout of Berth's sources only; Berth is measured alone." in run.err
    assert run.code == 0


def test_the_ratio(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable(tmp_path / "bin" / "go", FAKE_GO)
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    arguments = ("bench", "Unschedulable", "start-import", *TINY, "--against", "kube-scheduler")
    (result, other) = json.loads(berth(*arguments, "-o", "json").out)
    sampled, every_node = result["against"]
    assert (sampled["percentage"], every_node["percentage"], sampled["pods"]) == (0, 100, 5)
    assert sampled["ratio"] == round(result["decisions_per_second"] / 2.5, 1)
    assert other["against"] == []
    table = berth(*arguments).out
    assert "its sample" in table
    assert "every node" in table
    assert "times as fast" in table


def test_go_that_fails(own_cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    executable(tmp_path / "bin" / "go", "#!/bin/sh\necho no network >&2\nexit 1\n")
    monkeypatch.setenv("PATH", f"{tmp_path}/bin:/usr/bin:/bin")
    run = berth("bench", "SchedulingBasic", *TINY, "--against", "kube-scheduler")
    assert "kube-scheduler's code can't be built: no network; Berth is measured alone." in run.err
