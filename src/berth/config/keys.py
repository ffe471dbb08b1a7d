"""The table of all keys: path, variable, default, meaning. Made from the settings' models alone."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Any, get_args

from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from berth.config.settings import Expected, KnownNames, Settings, Weight, setting_text

ENVIRONMENT_PREFIX = "BERTH_"
# Names the file, in place of a key.
FILE_VARIABLE = "BERTH_CONFIG"
# Where the tests find real clusters; who has set it for them may still run berth.
TESTS_VARIABLE = "BERTH_SHARED"

_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True, eq=False)
class Key:
    """One key with its value's type.

    Attributes
    ----------
    path
        Its parts as in YAML: ``("module", "addWeights", "EqualPriority")``.
    expected
        What a person should write here.
    adapter
        Turns what was written into the value.
    """

    path: tuple[str, ...]
    default: object
    meaning: str
    expected: str
    adapter: TypeAdapter[Any]
    is_list: bool = False

    @property
    def name(self) -> str:
        """``module.roundInterval``."""
        return ".".join(self.path)

    @property
    def variable(self) -> str:
        """``BERTH_MODULE_ROUND_INTERVAL``."""
        return ENVIRONMENT_PREFIX + "_".join(_WORD_START.sub("_", part).upper() for part in self.path)


@dataclass(frozen=True, slots=True)
class SettingRow:
    """One row of the reference: a key, its variable, its default (empty: none) and what it means."""

    key: str
    variable: str
    default: str
    meaning: str


@cache
def all_keys() -> Mapping[tuple[str, ...], Key]:
    """Every key by its path, in the order of the settings."""
    return MappingProxyType({key.path: key for key in _keys_of(Settings, ())})


def describe_settings() -> list[SettingRow]:
    """What can be set, for documents and for people who ask."""
    return [
        SettingRow(key.name, key.variable, setting_text(key.default), key.meaning)
        for key in all_keys().values()
    ]


def _keys_of(model: type[BaseModel], prefix: tuple[str, ...]) -> list[Key]:
    keys: list[Key] = []
    for name, field in model.model_fields.items():
        path = (*prefix, field.alias or name)
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            keys += _keys_of(field.annotation, path)
            continue
        known = next((note for note in field.metadata if isinstance(note, KnownNames)), None)
        keys += [_key(path, field)] if known is None else _weight_keys(path, field, known.names)
    return keys


def _key(path: tuple[str, ...], field: FieldInfo) -> Key:
    return Key(
        path=path,
        default=field.default,
        meaning=field.description or "",
        expected=_expected((*field.metadata, field.annotation)),
        adapter=TypeAdapter(field.rebuild_annotation()),
        is_list=isinstance(field.default, tuple),
    )


def _weight_keys(path: tuple[str, ...], field: FieldInfo, names: tuple[str, ...]) -> list[Key]:
    defaults: Mapping[str, int] = field.default
    adapter: TypeAdapter[Any] = TypeAdapter(Weight)
    expected = _expected((Weight,))
    return [
        Key((*path, name), defaults.get(name), field.description or "", expected, adapter) for name in names
    ]


def _expected(notes: tuple[Any, ...]) -> str:
    """The words of the first ``Expected`` in these annotations, at any depth."""
    for note in notes:
        if isinstance(note, Expected):
            return note.text
        if inner := _expected((*getattr(note, "__metadata__", ()), *get_args(note))):
            return inner
    return ""
