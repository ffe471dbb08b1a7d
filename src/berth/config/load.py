"""Settings from a file, the environment and the command line: the later wins; all mistakes at once."""

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from berth.config.keys import ENVIRONMENT_PREFIX, FILE_VARIABLE, TESTS_VARIABLE, Key, all_keys
from berth.config.mistakes import ConfigError, ConfigMistake, known_name
from berth.config.settings import Settings, setting_text
from berth.config.yaml_file import Entry, read_yaml

DEFAULT_SOURCE = "default"
_COMMAND_LINE = "command line"

# Kubernetes puts variables for each Service of the namespace into every container: a Service called
# berth, or berth-something, gives such names as well.
_SERVICE_LINK_NAME = re.compile(
    r"BERTH_(?:\w+_)?(?:SERVICE_HOST|SERVICE_PORT(?:_\w+)?|PORT_[0-9]+_(?:TCP|UDP|SCTP)(?:_(?:PROTO|PORT|ADDR))?)"
)
_SERVICE_LINK_VALUE = re.compile(r"(?:tcp|udp|sctp)://.*")


@dataclass(frozen=True, slots=True)
class EffectiveSetting:
    """A setting as it holds: its value as one would write it (empty: none), and who said so."""

    key: str
    value: str
    source: str
    meaning: str


@dataclass(frozen=True, slots=True)
class Given:
    """A value that was set, and where: ``berth.yaml, line 3``, a variable, ``command line``."""

    value: Any
    source: str


Values = dict[tuple[str, ...], Given]


def load_settings(path: Path | None, environ: Mapping[str, str], overrides: Mapping[str, object]) -> Settings:
    """The settings that hold.

    Parameters
    ----------
    path
        The file; ``None``: the one that the variable ``BERTH_CONFIG`` names, else none.
    environ
        The environment; only ``BERTH_…`` counts, and empty variables are as good as absent.
    overrides
        What the command line says, by key (``module.ties``); ``None`` is for what it doesn't say.

    Raises
    ------
    ConfigError
        With every mistake of every source, also where another source wins.
    """
    given = _gather(path, environ, overrides)
    return Settings.model_validate(_nested({key: one.value for key, one in given.items()}))


def explain_settings(
    path: Path | None, environ: Mapping[str, str], overrides: Mapping[str, object]
) -> list[EffectiveSetting]:
    """Every setting with the value that holds and where it comes from.

    Raises
    ------
    ConfigError
        With every mistake of every source, as `load_settings`.
    """
    given = _gather(path, environ, overrides)
    default = {key.path: Given(key.default, DEFAULT_SOURCE) for key in all_keys().values()}
    return [
        EffectiveSetting(key.name, setting_text(one.value), one.source, key.meaning)
        for key in all_keys().values()
        for one in [given.get(key.path, default[key.path])]
    ]


def _gather(path: Path | None, environ: Mapping[str, str], overrides: Mapping[str, object]) -> Values:
    """All that is set, the later source over the earlier."""
    mistakes: list[ConfigMistake] = []
    values: Values = {}
    if path is None and environ.get(FILE_VARIABLE):
        path = Path(environ[FILE_VARIABLE])
    if path is not None:
        try:
            values |= _file_values(path, mistakes)
        except ConfigError as error:
            mistakes.extend(error.mistakes)
    values |= _environment_values(environ, mistakes)
    values |= _override_values(overrides, mistakes)
    if mistakes:
        raise ConfigError(mistakes)
    return values


def _file_values(path: Path, mistakes: list[ConfigMistake]) -> Values:
    keys = all_keys()
    values: Values = {}
    for entry in read_yaml(path, _groups(), mistakes):
        if entry.path in keys:
            _add(values, keys[entry.path], entry.value, entry.source, mistakes)
        else:
            mistakes.append(_unknown_key(entry))
    return values


def _environment_values(environ: Mapping[str, str], mistakes: list[ConfigMistake]) -> Values:
    by_variable = {key.variable: key for key in all_keys().values()}
    values: Values = {}
    for name, text in sorted(environ.items()):
        is_ours = name.startswith(ENVIRONMENT_PREFIX) and name not in (FILE_VARIABLE, TESTS_VARIABLE)
        if not is_ours or not text or _is_service_link(name, text, known=name in by_variable):
            continue
        if name in by_variable:
            key = by_variable[name]
            _add(values, key, text.split(os.pathsep) if key.is_list else text, name, mistakes)
        else:
            expected = _known_variable(name, (*by_variable, FILE_VARIABLE))
            mistakes.append(ConfigMistake(name, name, text, expected))
    return values


def _override_values(overrides: Mapping[str, object], mistakes: list[ConfigMistake]) -> Values:
    by_name = {key.name: key for key in all_keys().values()}
    values: Values = {}
    for name, value in overrides.items():
        if value is None:
            continue
        if name in by_name:
            _add(values, by_name[name], value, _COMMAND_LINE, mistakes)
        else:
            mistakes.append(ConfigMistake(name, _COMMAND_LINE, value, known_name(name, by_name, "key")))
    return values


def _add(values: Values, key: Key, raw: object, source: str, mistakes: list[ConfigMistake]) -> None:
    """Check one value by itself, so that every wrong one is told."""
    try:
        values[key.path] = Given(key.adapter.validate_python(raw), source)
    except ValidationError:
        mistakes.append(ConfigMistake(key.name, source, raw, key.expected))


def _groups() -> frozenset[tuple[str, ...]]:
    """The paths that have keys below them."""
    return frozenset(path[:length] for path in all_keys() for length in range(1, len(path)))


def _unknown_key(entry: Entry) -> ConfigMistake:
    *parents, name = entry.path
    siblings = dict.fromkeys(
        path[len(parents)] for path in all_keys() if list(path[: len(parents)]) == parents
    )
    what = "priority" if parents and parents[-1].endswith("Weights") else "key"
    return ConfigMistake(".".join(entry.path), entry.source, None, known_name(name, siblings, what))


def _known_variable(name: str, known: tuple[str, ...]) -> str:
    """The nearest variable; without the prefix that all share, which would make all look alike."""
    bare = [variable.removeprefix(ENVIRONMENT_PREFIX) for variable in known]
    hint = known_name(name.removeprefix(ENVIRONMENT_PREFIX), bare, "variable")
    _, found, nearest = hint.partition("did you mean ")
    return f"a known variable; did you mean {ENVIRONMENT_PREFIX}{nearest}" if found else "a known variable"


def _is_service_link(name: str, text: str, *, known: bool) -> bool:
    # BERTH_SERVER_PORT is ours, but a Service called berth-server would give it an address.
    if name.endswith("_PORT") and _SERVICE_LINK_VALUE.fullmatch(text):
        return True
    return not known and _SERVICE_LINK_NAME.fullmatch(name) is not None


def _nested(values: Mapping[tuple[str, ...], object]) -> dict[str, Any]:
    """The values by group; weights over their defaults, so that one can be set alone."""
    tree: dict[str, Any] = {}
    for path, value in (*_default_weights(), *values.items()):
        group = tree
        for part in path[:-1]:
            group = group.setdefault(part, {})
        group[path[-1]] = value
    return tree


def _default_weights() -> Iterator[tuple[tuple[str, ...], object]]:
    return (
        (path, key.default) for path, key in all_keys().items() if len(path) > 2 and key.default is not None
    )
