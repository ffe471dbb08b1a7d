from pathlib import Path

from tests.cli.runner import berth


def rows(out: str) -> dict[str, tuple[str, str]]:
    cells = [line.split(maxsplit=2) for line in out.splitlines()]
    return {key: (value, source) for key, value, source in cells}


def test_tells_where_each_setting_comes_from(tmp_path: Path) -> None:
    path = tmp_path / "berth.yaml"
    path.write_text("module:\n  ties: name\n  seed: 5\nforecast:\n  horizon: 90m\n")
    run = berth("config", "--config", path, env={"BERTH_MODULE_SEED": "7"})
    assert run.code == 0
    found = rows(run.out)
    assert found["module.ties"] == ("name", "berth.yaml, line 2")
    assert found["module.seed"] == ("7", "BERTH_MODULE_SEED")
    assert found["forecast.horizon"] == ("1h30m", "berth.yaml, line 5")
    assert found["module.roundInterval"] == ("1s", "default")
    assert found["forecast.file"] == ("-", "default")
    assert found["module.addWeights.LeastRequestedPriority"] == ("1", "default")


def test_only_what_is_changed() -> None:
    assert rows(berth("config", "--changed", env={"BERTH_MODULE_SEED": "7"}).out) == {
        "module.seed": ("7", "BERTH_MODULE_SEED")
    }
    nothing = berth("config", "--changed")
    assert (nothing.code, nothing.out) == (0, "")
    assert "every setting has its default" in nothing.err


def test_the_file_may_be_named_by_a_variable(tmp_path: Path) -> None:
    path = tmp_path / "berth.yaml"
    path.write_text("module: {ties: name}\n")
    assert "module.ties" in berth("config", "--changed", env={"BERTH_CONFIG": str(path)}).out


def test_all_mistakes_are_told(tmp_path: Path) -> None:
    path = tmp_path / "berth.yaml"
    path.write_text("module:\n  tise: 3\n  maxNumber: -1\n")
    run = berth("config", "--config", path, env={"BERTH_LOG_LEVEL": "loud"})
    assert (run.code, run.out) == (2, "")
    assert run.err.splitlines() == [
        "error: 3 mistakes in the configuration:",
        "  module.tise (berth.yaml, line 2): expected a known key; did you mean ties?",
        "  module.maxNumber (berth.yaml, line 3): '-1', expected a whole number from 1 to 2147483647",
        "  log.level (BERTH_LOG_LEVEL): 'loud', expected debug, info, warning or error",
    ]
