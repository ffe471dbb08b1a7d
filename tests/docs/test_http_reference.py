"""docs/http.md tells of every endpoint, every status and every metric that there is."""

import re
from pathlib import Path

from tests.docs.pages import ROOT
from tests.service.worlds import Client, serving

REFERENCE = ROOT / "docs" / "http.md"


def sections() -> dict[str, str]:
    """The text under each heading such as ``## `GET /nodes` ``."""
    parts = re.split(r"^## ", REFERENCE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    return {heading.strip("`"): text for heading, _, text in (part.partition("\n") for part in parts)}


def operations(client: Client) -> dict[str, list[str]]:
    paths = client.get("/openapi.json").json()["paths"]
    return {
        f"{method.upper()} {path}": list(operation["responses"])
        for path, methods in paths.items()
        for method, operation in methods.items()
    }


def test_it_has_every_endpoint_and_status(tmp_path: Path) -> None:
    told = sections()
    with serving(tmp_path) as client:
        for operation, statuses in operations(client).items():
            assert operation in told
            for status in statuses:
                assert f"`{status}`" in told[operation], f"{operation}: {status}"


def test_it_has_no_other_endpoint(tmp_path: Path) -> None:
    with serving(tmp_path) as client:
        there_are = {*operations(client), "GET /", "GET /openapi.json"}
    assert {heading for heading in sections() if re.match("[A-Z]+ /", heading)} == there_are


def test_it_has_every_metric(tmp_path: Path) -> None:
    with serving(tmp_path) as client:
        text = client.get("/metrics").text
    names = {
        name for name in re.findall(r"^# TYPE (\S+)", text, re.MULTILINE) if not name.endswith("_created")
    }
    table = sections()["GET /metrics"]
    assert {name for name in names if f"`{name}`" not in table} == set()
