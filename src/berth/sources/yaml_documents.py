"""YAML documents as JSON-like data: scalars are what YAML 1.2's JSON schema makes of them, nothing else.

So a time stays a string, as the API would read it, and ``yes`` is no boolean. Merge keys (``<<``) work.
"""

import re
from collections.abc import Iterator
from typing import Any, BinaryIO

import yaml

from berth.errors import BerthError

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
MAX_EXPANDED = 20_000_000
"""So many values a document may hold once its aliases are written out: a few lines can stand for billions."""

MAX_MERGED_KEYS = 10_000
MAX_DEPTH = 500
"""The C library goes down a stack of its own, and dies with it when that overflows."""

MANY_BRACKETS = 4_000
_DEEP_INDENT = re.compile(rb"^[ ]{%d}" % MAX_DEPTH, re.MULTILINE)
_STARTS = list("-+.0123456789")
_RESOLVERS = (
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", _STARTS),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?", _STARTS),
    ("merge", r"<<", ["<"]),
)


class YamlSyntaxError(BerthError):
    """The text is no YAML; the message says where."""


class _Loader(_Base):  # type: ignore[misc]
    yaml_implicit_resolvers: dict[str, list[tuple[str, re.Pattern[str]]]] = {}

    def flatten_mapping(self, node: yaml.MappingNode) -> None:
        super().flatten_mapping(node)
        if len(node.value) > MAX_MERGED_KEYS:
            raise YamlSyntaxError(
                f"line {node.start_mark.line + 1}: more than {MAX_MERGED_KEYS:,} keys merged into one mapping"
            )

    def int_of(self, node: yaml.ScalarNode) -> int:
        text = self.construct_scalar(node)
        return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))

    def float_of(self, node: yaml.ScalarNode) -> float:
        return float(self.construct_scalar(node))


for _tag, _pattern, _first in _RESOLVERS:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), _first)
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.int_of)
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.float_of)


def read_documents(file: BinaryIO) -> Iterator[object]:
    """Yield a file's documents, empty ones left out.

    Raises
    ------
    YamlSyntaxError
        The file is no YAML from here on, or its aliases stand for more than memory holds.
    """
    try:
        text = file.read()
        if _may_be_deep(text):
            _check_depth(text)
        for document in yaml.load_all(text, Loader=_Loader):
            _check_size(document)
            if document is not None:
                yield document
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise YamlSyntaxError(f"{where}it is not YAML: {error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise YamlSyntaxError(f"it is not YAML: {' '.join(str(error).split())}") from None
    except ValueError as error:
        raise YamlSyntaxError(f"a value can't be read: {error}") from None
    except RecursionError:
        raise YamlSyntaxError("it is nested too deeply") from None


def _may_be_deep(text: bytes) -> bool:
    """Tell cheaply whether the text can be nested deeply at all: by brackets, indents, and dashes in a line."""
    return (
        text.count(b"[") + text.count(b"{") > MANY_BRACKETS
        or _DEEP_INDENT.search(text) is not None
        or any(line.count(b"- ") + line.count(b"? ") > MAX_DEPTH for line in text.splitlines())
    )


def _check_depth(text: bytes) -> None:
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > MAX_DEPTH:
            where = f"line {event.start_mark.line + 1}: " if event.start_mark else ""
            raise YamlSyntaxError(f"{where}it is nested too deeply")


def _check_size(document: object) -> None:
    """Count the values that a document stands for with its aliases written out, each alias counted once only."""
    sizes: dict[int, int | None] = {}

    def size(value: object) -> int:
        if not isinstance(value, dict | list):
            return 1
        known = sizes.get(id(value), 0)
        if known is None:
            raise YamlSyntaxError("an alias stands for something that it is part of")
        if not known:
            sizes[id(value)] = None
            known = 1 + sum(map(size, value.values() if isinstance(value, dict) else value))
            sizes[id(value)] = known
        return known

    if size(document) > MAX_EXPANDED:
        raise YamlSyntaxError(f"its aliases stand for more than {MAX_EXPANDED:,} values")
