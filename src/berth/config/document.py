"""A YAML or JSON file as a tree whose every value knows its path and line. Knows nothing of what it means."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from berth.config.mistakes import ConfigError, ConfigMistake, known_name

_TAG = "tag:yaml.org,2002:"
_SHOWN_CHARACTERS = 60
_MAX_DEPTH = 100


@dataclass(frozen=True, slots=True)
class At:
    """A value of the document, or the place where it is missing.

    Attributes
    ----------
    path
        ``profiles[0].plugins.score``; empty for the document itself.
    source
        ``scheduler.yaml, line 3``.
    mistakes
        What is wrong with the document so far: readers add to it and go on.
    """

    path: str
    source: str
    node: yaml.Node | None
    mistakes: list[ConfigMistake] = field(repr=False)

    @property
    def given(self) -> bool:
        """Whether there is a value; null counts as none, as in Kubernetes."""
        return self.node is not None and self.node.tag != f"{_TAG}null"

    @property
    def plain(self) -> Any:
        """The value as Python data; None where there is none."""
        return _plain(self.node) if self.node is not None else None

    def wrong(self, expected: str, *, show: bool = True) -> None:
        """Note that something else was expected here."""
        self.mistakes.append(
            ConfigMistake(self.path or "the document", self.source, self._shown() if show else None, expected)
        )

    def fields(self, known: Iterable[str], what: str = "field", *, any_case: bool = False) -> dict[str, "At"]:
        """Return all known fields of a mapping by name, those that are not given too; note unknown and repeated ones.

        Parameters
        ----------
        any_case : bool
            Names count whatever their case, as in Go's own JSON reader.
        """
        names = {name.casefold() if any_case else name: name for name in known}
        found = {name: At(self._below(name), self.source, None, self.mistakes) for name in names.values()}
        if not self.given:
            return found
        if not isinstance(self.node, yaml.MappingNode):
            self.wrong(f"fields: {', '.join(names.values())}")
            return found
        for key, value in self.node.value:
            written = str(key.value) if isinstance(key, yaml.ScalarNode) else "?"
            name = names.get(written.casefold() if any_case else written, written)
            at = At(self._below(name), _place(self.source, key), value, self.mistakes)
            if name not in found:
                at.wrong(known_name(written, names.values(), what), show=False)
            elif found[name].node is not None:
                at.wrong("each field once", show=False)
            else:
                found[name] = at
        return found

    def items(self, what: str) -> Iterator["At"]:
        """Yield the items of a list."""
        if not self.given:
            return
        if not isinstance(self.node, yaml.SequenceNode):
            self.wrong(f"a list of {what}")
            return
        for i, node in enumerate(self.node.value):
            yield At(f"{self.path}[{i}]", _place(self.source, node), node, self.mistakes)

    def text(self, expected: str = "a text", *, required: bool = False) -> str:
        """Return a text; empty where there is none."""
        if not self.given:
            if required:
                self.wrong(expected, show=False)
            return ""
        value = self.plain
        if isinstance(value, str) and (value or not required):
            return value
        self.wrong(expected)
        return ""

    def texts(self, what: str) -> tuple[str, ...]:
        """Return a list of texts."""
        return tuple(item.text(f"a {what}", required=True) for item in self.items(f"{what}s"))

    def integer(self, default: int, low: int, high: int, expected: str) -> int:
        """Return a whole number between two bounds; the default where there is none or it is wrong."""
        if not self.given:
            return default
        value = self.plain
        if isinstance(value, int) and not isinstance(value, bool) and low <= value <= high:
            return value
        self.wrong(expected)
        return default

    def boolean(self) -> bool:
        """Return true or false; false where there is none."""
        value = self.plain
        if isinstance(value, bool) or value is None:
            return bool(value)
        self.wrong("true or false")
        return False

    def _below(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def _shown(self) -> object:
        value = self.plain
        if isinstance(value, dict | list):
            return None
        if isinstance(value, str) and len(value) > _SHOWN_CHARACTERS:
            return f"{value[:_SHOWN_CHARACTERS]}…"
        return value


def read_document(path: Path) -> At:
    """Read a file with one document.

    Raises
    ------
    ConfigError
        It can't be read, or is neither YAML nor JSON.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise _unreadable(path, path.name, f"a file that can be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise _unreadable(path, path.name, f"UTF-8, but byte {error.start} is none") from error
    return parse_document(text, path.name)


def parse_document(text: str, name: str) -> At:
    """Parse a document; ``name`` is what messages call it.

    Raises
    ------
    ConfigError
        It is neither YAML nor JSON, or there are several.
    """
    if text.lstrip().startswith("{"):
        text = text.replace(
            "\t", " "
        )  # JSON may be indented with tabs, YAML may not; within texts neither has them
    path = Path(name)
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        _check(root, 0)
        if root is not None:
            _plain(root)
    except RecursionError as error:
        raise _unreadable(path, name, "YAML that is nested less deeply") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{name}, line {mark.line + 1}, column {mark.column + 1}" if mark else name
        raise _unreadable(path, place, f"YAML or JSON: {error.problem or error.context}") from error
    except (yaml.YAMLError, ValueError) as error:
        raise _unreadable(path, name, f"YAML or JSON: {' '.join(str(error).split())}") from error
    if root is None:
        raise _unreadable(path, name, "a document, but the file is empty")
    if not isinstance(root, yaml.MappingNode):
        raise _unreadable(path, name, "fields such as 'kind:'")
    return At("", name, root, [])


def _check(node: yaml.Node | None, depth: int) -> None:
    if depth > _MAX_DEPTH:
        raise RecursionError  # also an anchor that holds itself
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.tag == f"{_TAG}merge":
                raise ValueError("merge keys (<<) are not supported")
            _check(value, depth + 1)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _check(item, depth + 1)


def _plain(node: yaml.Node) -> Any:
    if isinstance(node, yaml.MappingNode):
        return {str(key.value): _plain(value) for key, value in node.value}
    if isinstance(node, yaml.SequenceNode):
        return [_plain(item) for item in node.value]
    kind = node.tag.removeprefix(_TAG)
    if kind in ("int", "bool", "null", "float"):
        return yaml.SafeLoader("").construct_object(node)
    return str(node.value)


def _place(source: str, node: yaml.Node) -> str:
    return f"{source.partition(', line ')[0]}, line {node.start_mark.line + 1}"


def _unreadable(path: Path, source: str, expected: str) -> ConfigError:
    return ConfigError([ConfigMistake(str(path), source, None, expected)])
