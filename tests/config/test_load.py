"""Settings from file, environment and command line, and what is said of mistakes."""

from collections.abc import Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from berth.config import ConfigError, ConfigMistake, Settings, load_settings
from berth.config.keys import all_keys
from berth.config.settings import setting_text
from berth.errors import BerthError


def load(
    path: Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> Settings:
    return load_settings(path, environ or {}, overrides or {})


def mistakes_of(
    path: Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, object] | None = None,
) -> tuple[ConfigMistake, ...]:
    with pytest.raises(ConfigError) as caught:
        load(path, environ, overrides)
    assert isinstance(caught.value, BerthError)
    for mistake in caught.value.mistakes:
        assert str(mistake) in str(caught.value)
    return caught.value.mistakes


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "berth.yaml"


def test_nothing_given_is_the_defaults() -> None:
    settings = load()
    assert settings == Settings()
    assert settings.module.round_interval == timedelta(seconds=1)
    assert settings.server.max_body_bytes == 2**20
    assert set(settings.module.add_weights.values()) == {1}


def test_reads_every_kind_of_value(file: Path) -> None:
    file.write_text(
        "module:\n  release: 1.13\n  ties: random\n  seed: 7\n  roundInterval: 500ms\n"
        "  addWeights: {ImageLocalityPriority: 2, LeastRequestedPriority: 0}\n"
        "snapshot: {paths: [a.json, b], lenient: yes}\nserver:\n  host:\nstore: null\n"
        "forecast: {file: f.csv}\n"
    )
    settings = load(file)
    assert settings.module.release == "1.13"
    assert (settings.module.ties, settings.module.seed) == ("random", 7)
    assert settings.module.round_interval == timedelta(milliseconds=500)
    assert settings.module.add_weights["ImageLocalityPriority"] == 2
    assert settings.module.add_weights["LeastRequestedPriority"] == 0
    assert settings.module.add_weights["NodeAffinityPriority"] == 1
    assert settings.snapshot.paths == (Path("a.json"), Path("b"))
    assert settings.snapshot.lenient
    assert settings.server.host == "127.0.0.1"
    assert settings.forecast.file == Path("f.csv")


def test_one_path_needs_no_list(file: Path) -> None:
    file.write_text("snapshot: {paths: cluster.json}")
    assert load(file).snapshot.paths == (Path("cluster.json"),)


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n", "null\n", "\ufeffmodule:\n"])
def test_an_empty_file_says_nothing(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    assert load(file) == Settings()


def test_command_line_over_environment_over_file(file: Path) -> None:
    file.write_text("server: {port: 1, host: a}\nmodule: {ties: name}")
    environ = {"BERTH_SERVER_PORT": "2", "BERTH_SERVER_HOST": "b"}
    settings = load(file, environ, {"server.port": 3, "server.host": None})
    assert (settings.server.port, settings.server.host, settings.module.ties) == (3, "b", "name")


def test_every_key_has_a_variable_of_its_own() -> None:
    keys = list(all_keys().values())
    assert len({key.variable for key in keys}) == len(keys)
    environ = {key.variable: setting_text(key.default) for key in keys if not isinstance(key.default, tuple)}
    assert load(None, environ) == Settings()


def test_a_list_in_the_environment() -> None:
    assert load(None, {"BERTH_SNAPSHOT_PATHS": "a:b"}).snapshot.paths == (Path("a"), Path("b"))


def test_the_environment_names_the_file(file: Path) -> None:
    file.write_text("server: {port: 9}")
    assert load(None, {"BERTH_CONFIG": str(file)}).server.port == 9


def test_an_empty_variable_is_as_good_as_none() -> None:
    assert load(None, {"BERTH_SERVER_PORT": "", "BERTH_NONSENSE": ""}) == Settings()


def test_variables_that_kubernetes_makes_for_services_are_passed_over() -> None:
    link = "tcp://10.0.0.1:8080"
    environ = {
        "BERTH_SERVICE_HOST": "10.0.0.1",
        "BERTH_SERVICE_PORT": "8080",
        "BERTH_SERVICE_PORT_HTTP": "8080",
        "BERTH_PORT": link,
        "BERTH_PORT_8080_TCP": link,
        "BERTH_PORT_8080_TCP_PROTO": "tcp",
        "BERTH_PORT_8080_TCP_ADDR": "10.0.0.1",
        "BERTH_SERVER_PORT": link,
        "BERTH_SERVER_SERVICE_HOST": "10.0.0.1",
    }
    assert load(None, environ) == Settings()


def test_all_mistakes_of_all_sources_at_once(file: Path) -> None:
    file.write_text(
        "module:\n  roundIntervall: 1s\n  maxNumber: many\n  addWeights:\n    LeastRequested: 1\n"
        "    EqualPriority: -1\nserver:\n  port: 70000\n"
    )
    environ = {"BERTH_SERVER_PORT": "80", "BERTH_MODULE_ROUNDINTERVAL": "2s"}
    found = mistakes_of(file, environ, {"log.level": "loud"})
    assert [str(mistake) for mistake in found] == [
        "module.roundIntervall (berth.yaml, line 2): expected a known key; did you mean roundInterval?",
        "module.maxNumber (berth.yaml, line 3): 'many', expected a whole number from 1 to 2147483647",
        "module.addWeights.LeastRequested (berth.yaml, line 5): expected a known priority; "
        "did you mean LeastRequestedPriority?",
        "module.addWeights.EqualPriority (berth.yaml, line 6): '-1', "
        "expected a whole number from 0 to 2147483647",
        # Wrong, although the environment says otherwise.
        "server.port (berth.yaml, line 8): '70000', expected a whole number from 0 to 65535",
        "BERTH_MODULE_ROUNDINTERVAL: '2s', expected a known variable; "
        "did you mean BERTH_MODULE_ROUND_INTERVAL?",
        "log.level (command line): 'loud', expected debug, info, warning or error",
    ]


def test_an_unknown_priority_with_no_near_name_lists_them_all(file: Path) -> None:
    file.write_text("module: {removeWeights: {Zzz: 1}}")
    (mistake,) = mistakes_of(file)
    assert mistake.expected.endswith(
        ": MostRequestedPriority, BalancedResourceAllocation, ServicePodsOnNodePriority, "
        "NodeLoadForecastPriority"
    )


@pytest.mark.parametrize(
    ("text", "source", "words"),
    [
        ("module:\n  ties: name\n  ties: random\n", "berth.yaml, line 3", "it stands in line 2 already"),
        ("module: [a\n", "berth.yaml, line 2, column 1", "YAML: "),
        ("a: 1\n---\nb: 2\n", "berth.yaml, line 2, column 1", "YAML: "),
        ("a: *b\n", "berth.yaml, line 1, column 4", "undefined alias"),
        ("- module\n", "berth.yaml, line 1", "keys such as"),
        ("module: 7\n", "berth.yaml, line 1", "keys below it"),
        ("module: &m [*m]\n", "berth.yaml, line 1", "keys below it"),
        ("server: {host: {a: 1}}\n", "berth.yaml, line 1", "some text"),
        ("snapshot: {paths: [[a]]}\n", "berth.yaml, line 1", "a path or a list of paths"),
        ("? [a, b]\n: 1\n", "berth.yaml, line 1", "a known key"),
        ("[" * 5000, "berth.yaml", "nested less deeply"),
        ("a: \x01\n", "berth.yaml", "YAML: "),
    ],
)
def test_broken_yaml_is_told_with_its_place(file: Path, text: str, source: str, words: str) -> None:
    file.write_text(text)
    (mistake,) = mistakes_of(file)
    assert mistake.source == source
    assert words in mistake.expected


def test_a_broken_file_does_not_hide_the_environment(file: Path) -> None:
    file.write_bytes(b"module: \xff")
    found = mistakes_of(file, {"BERTH_MODULE_TIES": "coin"})
    assert [mistake.path for mistake in found] == [str(file), "module.ties"]


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    (mistake,) = mistakes_of(tmp_path / "none.yaml")
    assert "No such file" in mistake.expected


def test_unknown_override_is_told() -> None:
    (mistake,) = mistakes_of(None, {}, {"module.tie": "name"})
    assert "did you mean module.ties?" in mistake.expected


@pytest.mark.parametrize(
    "text", ["1_0", " 1", "+1", "01", "1.0", "1e3", "0x10", "true", "१", "-0", "9" * 5000]
)
def test_numbers_are_written_plainly(text: str) -> None:
    (mistake,) = mistakes_of(None, {"BERTH_MODULE_MAX_NUMBER": text})
    assert mistake.value == text


def test_typed_overrides_are_checked_too() -> None:
    assert load(None, {}, {"server.port": 0, "forecast.horizon": timedelta(hours=1)}).server.port == 0
    found = mistakes_of(None, {}, {"server.port": True, "forecast.horizon": timedelta(0), "module.seed": 1.0})
    assert len(found) == 3


@given(st.text())
def test_any_file_is_read_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    file = tmp_path_factory.getbasetemp() / "any.yaml"
    file.write_text(text, encoding="utf-8", errors="surrogatepass")
    with suppress(ConfigError):
        load(file)


@given(st.sampled_from([key.variable for key in all_keys().values()]), st.text())
def test_any_variable_is_read_or_refused(variable: str, text: str) -> None:
    with suppress(ConfigError):
        load(None, {variable: text})


def test_settings_are_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        Settings().server.port = 1  # type: ignore[misc]


def test_the_tests_own_variable_is_no_mistake() -> None:
    assert load_settings(None, {"BERTH_SHARED": "/somewhere"}, {}) == Settings()
