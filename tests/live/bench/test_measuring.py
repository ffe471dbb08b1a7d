"""How figures are made of rounds, and what is measured."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from berth.live.bench.measuring import (
    Figures,
    LiveSize,
    TooManyPodsError,
    contenders,
    measure_live,
    summary,
)
from berth.sim.control_plane import binaries as building
from berth.sim.control_plane.binaries import Binaries
from tests.cli.runner import berth

FIGURES = {"pods_per_second", "cpu_ms_per_pod", "peak_rss_mb", "events", "p50_ms", "p99_ms", "load_average"}
TINY = ("--nodes", "20", "--pods", "30")


def test_figures_are_medians_and_memory_the_peak() -> None:
    first = Figures(100.0, 1.0, 50.0, 30, 2.0, 9.0, 1.0)
    rounds = [first, replace(first, pods_per_second=300.0, peak_rss_mb=80.0, p99_ms=5.0), first]
    assert summary(rounds) == replace(first, peak_rss_mb=80.0)
    silent = replace(first, p50_ms=None, p99_ms=None)
    assert summary([silent, silent]) == silent


def test_more_pods_than_there_is_room_for_are_told_before_anything_is_built() -> None:
    def build() -> Binaries:
        raise AssertionError("not to be built")

    with pytest.raises(TooManyPodsError, match=r"at most 1,200 on 20 nodes \(with 1,000 that arrive later\)"):
        measure_live(
            build, LiveSize(20, 1_201, 1), contenders(LiveSize(20, 1, 1), kube_scheduler=False), print
        )


@pytest.mark.usefixtures("binaries")
@pytest.mark.timeout(600)
def test_all_three_on_a_real_control_plane() -> None:
    run = berth("bench", "live", *TINY, "--against", "kube-scheduler", "--output", "json")
    assert run.code == 0, run.err
    found = json.loads(run.out)
    assert [found[key] for key in ("nodes", "pods", "rounds")] == [20, 30, 1]
    for name in ("bind_loop", "berth", "kube_scheduler"):
        figures = found[name]
        assert figures.keys() == FIGURES
        assert figures["pods_per_second"] > 0
        assert figures["peak_rss_mb"] > 10
        assert figures["events"] == 30
        assert (figures["p99_ms"] is None) == (name == "bind_loop")
        assert name == "bind_loop" or 0 < figures["p50_ms"] <= figures["p99_ms"]


@pytest.mark.usefixtures("binaries")
@pytest.mark.timeout(600)
def test_as_a_table_without_kube_scheduler() -> None:
    run = berth("bench", "live", *TINY)
    assert run.code == 0, run.err
    header, loop, own, ratio, machine = run.out.splitlines()
    assert header.split()[1:3] == ["PODS/S", "CPU"]
    assert [loop.split()[0], own.split()[0]] == ["bind-loop", "berth"]
    assert ratio.startswith("berth binds ")
    assert machine.startswith("30 pods on 20 nodes, medians of 1 rounds")


def test_mistakes_are_told_at_once() -> None:
    run = berth("bench", "live", "basic", "--existing", "5")
    assert run.code == 2
    assert "expected no other workload beside live" in run.err
    assert "--existing: expected none with live" in run.err


def test_without_the_sources(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(building, "_SOURCES", tmp_path / "none")
    run = berth("bench", "live", *TINY)
    assert run.code == 2
    assert "from a checkout of Berth's sources only" in run.err


def test_without_go(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    run = berth("bench", "live", *TINY)
    assert run.code == 2
    assert "Go is not installed" in run.err


def test_it_is_listed() -> None:
    assert [line.split()[0] for line in berth("bench", "live", "--list").out.splitlines()] == [
        "WORKLOAD",
        "live",
    ]
    assert berth("bench", "--list").out.splitlines()[-1].startswith("live ")
