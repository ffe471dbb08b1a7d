"""Profiles from files."""

import json
from pathlib import Path

import pytest

from berth.module.loads import ServiceName
from berth.module.profile import Intensity, ServiceProfile
from berth.sources.mistakes import SourceError
from berth.sources.profiles import read_profiles

WEB = ServiceName("shop", "web")


@pytest.mark.parametrize(
    ("row", "profile"),
    [
        ({}, ServiceProfile(WEB)),
        ({"intensity": None, "cpu": "50m"}, ServiceProfile(WEB, None, 50)),
        ({"cpu": 0.0001, "memory": "3G"}, ServiceProfile(WEB, None, 1, 3_000_000_000)),
        ({"intensity": "memory", "cpu": 2, "memory": 1.5}, ServiceProfile(WEB, Intensity.MEMORY, 2000, 2)),
        ({"cpu": 0, "memory": "1e3"}, ServiceProfile(WEB, None, 0, 1000)),
    ],
)
def test_whatever_is_known_is_read(tmp_path: Path, row: dict[str, object], profile: ServiceProfile) -> None:
    (tmp_path / "p.json").write_text(json.dumps([{"namespace": "shop", "service": "web"} | row]))
    assert read_profiles(tmp_path / "p.json") == {WEB: profile}


def test_empty_cells_are_not_known(tmp_path: Path) -> None:
    (tmp_path / "p.csv").write_text("namespace,service,intensity,cpu,memory\nshop,web,,,1Gi\nshop,db,cpu\n")
    assert read_profiles(tmp_path / "p.csv") == {
        WEB: ServiceProfile(WEB, None, None, 2**30),
        ServiceName("shop", "db"): ServiceProfile(ServiceName("shop", "db"), Intensity.CPU),
    }


def test_all_mistakes_at_once(tmp_path: Path) -> None:
    path = tmp_path / "p.csv"
    path.write_text(
        "namespace,service,intensity,cpu,memory\nshop,web,disk,-1,NaN\nshop,web,cpu,1,1\n,db,cpu,much,1\n"
    )
    with pytest.raises(SourceError) as caught:
        read_profiles(path)
    assert str(caught.value).replace(str(path), path.name).splitlines() == [
        "p.csv, line 2, intensity: 'disk', expected cpu or memory",
        "p.csv, line 2, cpu: '-1', expected cores, 0 or more, such as 0.25 or 250m",
        "p.csv, line 2, memory: 'NaN', expected bytes, 0 or more, such as 1048576 or 1Mi",
        "p.csv, line 3, service: 'web', expected one profile a service: line 2 has it already",
        "p.csv, line 4, namespace: expected a name, but it is missing",
        "p.csv, line 4, cpu: 'much', expected cores, 0 or more, such as 0.25 or 250m",
    ]
