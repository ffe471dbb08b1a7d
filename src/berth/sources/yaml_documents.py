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
        for document in yaml.load_all(file, Loader=_Loader):
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
