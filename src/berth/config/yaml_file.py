"""A YAML file as keys with their text and line. Knows nothing of which keys there are."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import yaml

from berth.config.mistakes import ConfigError, ConfigMistake

_NULL = "tag:yaml.org,2002:null"


@dataclass(frozen=True, slots=True)
class Entry:
    """One key of the file.

    Attributes
    ----------
    path
        Its parts.
    value
        The text of a scalar as it stands there (so that ``1.10`` stays ``1.10``), a list of such
        texts, or ``None`` for anything that no key takes.
    source
        ``berth.yaml, line 3``.
    """

    path: tuple[str, ...]
    value: str | list[str] | None
    source: str


def read_yaml(path: Path, groups: frozenset[tuple[str, ...]], mistakes: list[ConfigMistake]) -> list[Entry]:
    """The keys of the file, those in ``groups`` opened; keys set to null are left out."""
    try:
        # A composed tree keeps each value's text and line, which a loaded one loses.
        root = yaml.compose(path.read_text(encoding="utf-8-sig"), Loader=yaml.SafeLoader)
    except OSError as error:
        raise _unreadable(path, path.name, f"a file that can be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _unreadable(path, path.name, f"UTF-8, but byte {error.start} is none") from error
    except RecursionError as error:
        raise _unreadable(path, path.name, "YAML that is nested less deeply") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{path.name}, line {mark.line + 1}, column {mark.column + 1}" if mark else path.name
        raise _unreadable(path, place, f"YAML: {error.problem or error.context}") from error
    except yaml.YAMLError as error:
        raise _unreadable(path, path.name, f"YAML: {' '.join(str(error).split())}") from error
    if root is None or root.tag == _NULL:
        return []
    if not isinstance(root, yaml.MappingNode):
        raise _unreadable(path, _place(path, root), "keys such as 'module:'")
    return list(_entries(path, root, (), groups, mistakes))


def _entries(
    file: Path,
    node: yaml.MappingNode,
    prefix: tuple[str, ...],
    groups: frozenset[tuple[str, ...]],
    mistakes: list[ConfigMistake],
) -> Iterator[Entry]:
    first_lines: dict[str, int] = {}
    for key_node, value_node in node.value:
        name = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else "?"
        path, place = (*prefix, name), _place(file, key_node)
        if name in first_lines:
            expected = f"each key once: it stands in line {first_lines[name]} already"
            mistakes.append(ConfigMistake(".".join(path), place, None, expected))
            continue
        first_lines[name] = key_node.start_mark.line + 1
        if value_node.tag == _NULL:
            continue
        if path not in groups:
            yield Entry(path, _value(value_node), place)
        elif isinstance(value_node, yaml.MappingNode):
            yield from _entries(file, value_node, path, groups, mistakes)
        else:
            mistakes.append(ConfigMistake(".".join(path), place, _value(value_node), "keys below it"))


def _value(node: yaml.Node) -> str | list[str] | None:
    if isinstance(node, yaml.ScalarNode):
        return str(node.value)
    if isinstance(node, yaml.SequenceNode) and all(isinstance(item, yaml.ScalarNode) for item in node.value):
        return [str(item.value) for item in node.value]
    return None


def _place(file: Path, node: yaml.Node) -> str:
    return f"{file.name}, line {node.start_mark.line + 1}"


def _unreadable(path: Path, source: str, expected: str) -> ConfigError:
    return ConfigError([ConfigMistake(str(path), source, None, expected)])
