"""The table of keys, and the page made of it."""

import importlib.util
from pathlib import Path

from berth.config.keys import all_keys, describe_settings

ROOT = Path(__file__).resolve().parents[2]


def test_every_key_says_what_it_means_and_expects() -> None:
    for key in all_keys().values():
        assert key.meaning, key.name
        assert key.expected, key.name


def test_rows_of_the_reference() -> None:
    rows = {row.key: row for row in describe_settings()}
    row = rows["forecast.maxLoadAge"]
    assert (row.variable, row.default) == ("BERTH_FORECAST_MAX_LOAD_AGE", "5m")
    assert rows["module.addWeights.EqualPriority"].default == ""


def test_the_page_is_current() -> None:
    script = ROOT / "scripts" / "make_configuration_docs.py"
    spec = importlib.util.spec_from_file_location("make_configuration_docs", script)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    page = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    assert page == module.page(), f"run python {script.relative_to(ROOT)}"
