"""Forecasts and loads from files: what is read, and what is said of mistakes."""

import gzip
import json
import math
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.errors import BerthError
from berth.module.loads import Samples, ServiceName, time_us
from berth.sources.forecasts import (
    ForecastSource,
    LoadSource,
    RecordedForecasts,
    RecordedLoads,
    read_forecasts,
    read_loads,
)
from berth.sources.mistakes import SourceError
from berth.sources.profiles import read_profiles

NOON = "2026-03-01T12:00:00Z"
NOON_US = time_us(datetime(2026, 3, 1, 12, tzinfo=UTC))
ROW: dict[str, object] = {"node": "n1", "time": NOON, "cpu": 0.25, "memory": "1Mi", "issued": NOON}
WHOLE = (("n1", NOON_US, NOON_US, 250.0, 1048576.0),)


def rows_of(samples: Samples) -> tuple[tuple[object, ...], ...]:
    columns = (samples.time_us, samples.issued_us, samples.milli_cpu, samples.memory_bytes)
    names = [samples.subjects[index] for index in samples.subject_id.tolist()]
    return tuple(zip(names, *(column.tolist() for column in columns), strict=True))


def said_of(read: Callable[[Path], object], path: Path) -> list[str]:
    with pytest.raises(SourceError) as caught:
        read(path)
    assert isinstance(caught.value, BerthError)
    return str(caught.value).replace(f"{path}", path.name).splitlines()


CSV = f"node,time,cpu,memory,issued\n\nn1,{NOON},0.25,1Mi,{NOON}\n"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("f.json", json.dumps([ROW])),
        ("f.json", json.dumps(ROW) + "\n\n"),
        ("f.jsonl", json.dumps(ROW)),
        ("f", "\n " + json.dumps([ROW])),
        ("f.csv", CSV),
        ("f.txt", "\ufeff" + CSV.replace("\n", "\r\n")),
        ("f.csv", CSV.replace("0.25", "250m").replace("1Mi", "1048576.0").replace("n1", ' "n1"')[:-1]),
        ("f.csv", CSV.replace("0.25", "2.5e-1").replace("1Mi", "1024Ki")),
    ],
)
def test_reads_each_form(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).write_text(text, encoding="utf-8", newline="")
    (tmp_path / f"{name}.gz").write_bytes(gzip.compress(text.encode()))
    for path in (tmp_path / name, tmp_path / f"{name}.gz"):
        if '"n1"' in text and name.endswith("csv"):
            continue
        assert rows_of(read_forecasts(path).of_nodes) == WHOLE


def test_an_empty_list_is_no_rows(tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text("[]")
    assert rows_of(read_forecasts(tmp_path / "f.json").of_nodes) == ()


def test_forecasts_of_a_service(tmp_path: Path) -> None:
    head = "node,namespace,service,time,cpu,memory,issued"
    text = f"{head}\nn1,,,{NOON},1,1,{NOON}\n,shop,web,{NOON},1,2,{NOON}\n"
    (tmp_path / "f.csv").write_text(text)
    table = read_forecasts(tmp_path / "f.csv")
    assert table.of_nodes.subjects == ("n1",)
    assert table.of_service_pods.subjects == (ServiceName("shop", "web"),)
    assert table.of_service_pods.memory_bytes.tolist() == [2.0]


@pytest.mark.parametrize(
    ("text", "us"),
    [
        ("2026-03-01T13:30:00+01:30", NOON_US),
        ("2026-03-01 12:00:00-00:00", NOON_US),
        ("2026-03-01t12:00:00.000001999z", NOON_US + 1),
        ("2026-03-01T12:00:00.5Z", NOON_US + 500_000),
    ],
)
def test_times(tmp_path: Path, text: str, us: int) -> None:
    (tmp_path / "l.csv").write_text(f"node,time,cpu,memory\nn1,{text},1,1\n")
    assert read_loads(tmp_path / "l.csv").of_nodes.time_us.tolist() == [us]


@pytest.mark.parametrize(
    "text",
    ["2026-03-01T12:00:00", "2026-03-01", "2026-02-30T12:00:00Z", "2026-03-01T24:00:00Z", "20260301T120000Z",
     "2026-W09-7T12:00:00Z", "2026-03-01T12:00:60Z", "2026-03-01T12:00:00+24:00", "12:00Z", "1772366400",
     "٢٠٢٦-03-01T12:00:00Z"],
)  # fmt: skip
def test_no_times(tmp_path: Path, text: str) -> None:
    (tmp_path / "l.csv").write_text(f"node,time,cpu,memory\nn1,{text},1,1\n")
    (said,) = said_of(read_loads, tmp_path / "l.csv")
    assert said == f"l.csv, line 2, time: {text!r}, expected a time with a zone, such as 2026-03-01T12:00:00Z"


@pytest.mark.parametrize(
    ("cpu", "milli"),
    [("1.001", 1001.0), ("0.29", 290.0), ("1", 1000.0), ("123.4m", 124.0), ("0.1234", 123.4), ("-1", -1000.0),
     ("NaN", math.nan), ("-inf", -math.inf), ("Infinity", math.inf), ("", math.nan), ("1e300", 1e303)],
)  # fmt: skip
def test_amounts(tmp_path: Path, cpu: str, milli: float) -> None:
    (tmp_path / "l.csv").write_text(f"node,time,cpu,memory\nn1,{NOON},{cpu},1\n")
    (got,) = read_loads(tmp_path / "l.csv").of_nodes.milli_cpu.tolist()
    assert got == milli or (math.isnan(got) and math.isnan(milli))


def test_gaps_and_infinities_of_json(tmp_path: Path) -> None:
    lines = [
        f'{{"node": "n1", "time": "{NOON}", "cpu": {cpu}, "memory": 1}}'
        for cpu in ("null", "NaN", "-Infinity", 3)
    ]
    (tmp_path / "l.jsonl").write_text("\n".join(lines))
    table = read_loads(tmp_path / "l.jsonl")
    assert (table.n_unusable, table.of_nodes.milli_cpu.tolist()[3]) == (3, 3000.0)


def test_all_mistakes_at_once(tmp_path: Path) -> None:
    rows: list[object] = [
        ROW | {"time": "noon", "cpu": "many", "memory": True},
        7,
        {"nod": "n1", "time": NOON, "cpu": 1, "memory": 1},
        ROW | {"service": "web"},
        {"namespace": "shop", "time": NOON, "cpu": 1, "memory": 1, "issued": NOON},
        ROW | {"node": 3},
    ]
    (tmp_path / "f.json").write_text(json.dumps(rows))
    fields = "node, namespace, service, time, cpu, memory, issued"
    assert said_of(read_forecasts, tmp_path / "f.json") == [
        "f.json, [0], time: 'noon', expected a time with a zone, such as 2026-03-01T12:00:00Z",
        "f.json, [0], cpu: 'many', expected cores, such as 0.25 or 250m",
        "f.json, [0], memory: True, expected bytes, such as 1048576 or 1Mi",
        "f.json, [1]: 7, expected an object",
        f"f.json, [2], nod: expected one of the fields {fields}; did you mean node?",
        "f.json, [2]: expected a node, or a namespace and a service",
        "f.json, [2], issued: expected a time with a zone, such as 2026-03-01T12:00:00Z, but it is missing",
        "f.json, [3], node: 'n1', expected either a node, or a namespace and a service",
        "f.json, [4], service: expected a name, but it is missing",
        "f.json, [5], node: 3, expected a name",
    ]


def test_many_mistakes_are_counted(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text("node,time,cpu,memory\n" + f"n1,{NOON},x,1\n" * 50)
    said = said_of(read_loads, tmp_path / "l.csv")
    assert len(said) == 21
    assert said[-1] == "and 30 more"


@pytest.mark.parametrize(
    ("name", "data", "words"),
    [
        ("f.json", b"", "the file is empty"),
        ("f.csv", b" \n", "the file is empty"),
        ("f.json", b"[{]", "line 1: expected JSON, but at column 3"),
        ("f.json", b"node,time", "line 1: expected JSON"),
        ("f.json", b"\xff", "UTF-8, but byte 0 is none"),
        ("f.json", b"[" * 100_000, "less nesting"),
        ("f.json", b"[" + b"1" * 5000 + b"]", "shorter numbers"),
        ("f.json.gz", gzip.compress(b"[]")[:-4], "cut off or damaged"),
        ("f.json.gz", b"\x1f\x8bnonsense", "cut off or damaged"),
        ("f.csv", b"node,node\n", "each column of the header once"),
        ("f.csv", b"node,time\na,b,c\n", "at most 2 cells"),
        ("f.csv", b'node,time\n"a,b\n', "CSV: "),
    ],
)
def test_broken_files(tmp_path: Path, name: str, data: bytes, words: str) -> None:
    (tmp_path / name).write_bytes(data)
    assert words in "\n".join(said_of(read_forecasts, tmp_path / name))


def test_a_missing_file(tmp_path: Path) -> None:
    (said,) = said_of(read_loads, tmp_path / "none.csv")
    assert said == "none.csv: expected a file that can be read: No such file or directory"


def test_recorded_tables_are_sources(tmp_path: Path) -> None:
    (tmp_path / "l.csv").write_text(f"node,time,cpu,memory\nn1,{NOON},1,1\n")
    (tmp_path / "f.csv").write_text(CSV)
    loads: LoadSource = RecordedLoads(read_loads(tmp_path / "l.csv"))
    forecasts: ForecastSource = RecordedForecasts(read_forecasts(tmp_path / "f.csv"))
    now = datetime.now(UTC)
    assert loads.loads(now).of_nodes.subjects == forecasts.forecasts(now).of_nodes.subjects == ("n1",)


json_values = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["1", "+-nan", "1e999", NOON])
)
json_rows = st.lists(
    st.dictionaries(st.sampled_from([*ROW, "service", "namespace", "intensity", "x"]), json_values)
)


@pytest.mark.parametrize("read", [read_forecasts, read_loads, read_profiles])
@given(
    data=st.binary()
    | json_rows.map(lambda rows: json.dumps(rows).encode())
    | st.text(st.characters(codec="utf-8")).map(str.encode)
)
def test_any_file_is_read_or_refused(
    tmp_path_factory: pytest.TempPathFactory, read: Callable[[Path], object], data: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(data)
    with suppress(SourceError):
        read(path)
