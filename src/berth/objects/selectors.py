"""Label selectors as requirements that are checked, and what they mean for one set of labels.

Semantics: apimachinery's ``labels.Requirement`` and the node selector helpers (alike from 1.7 to 1.36): ``NotIn`` and
``DoesNotExist`` hold where the key is absent; ``Gt`` and ``Lt`` compare integers and fail on anything else.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from berth.errors import InputError
from berth.objects.base import LabelSelector, LabelSelectorRequirement, SelectorOperator

_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?\Z")
_PREFIX = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*\Z")
_INTEGER = re.compile(r"[+-]?[0-9]+\Z")
_INT64 = range(-(2**63), 2**63)
_MAX_DIGITS = 19
MAX_PREFIX_LENGTH = 253


class SelectorError(InputError):
    """A selector that Kubernetes would refuse."""


@dataclass(frozen=True, slots=True)
class Requirement:
    """One checked requirement on a label.

    Attributes
    ----------
    values : frozenset of str
        Of ``In`` and ``NotIn``.
    bound : int
        Of ``Gt`` and ``Lt``.
    """

    key: str
    operator: SelectorOperator
    values: frozenset[str] = frozenset()
    bound: int = 0

    def accepts(self, value: str | None) -> bool:
        """Tell whether a label's value (None: the label is absent) meets the requirement."""
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
        number = None if value is None else parse_int64(value)
        if number is None:
            return False
        return number > self.bound if self.operator == "Gt" else number < self.bound


@dataclass(frozen=True, slots=True)
class Selector:
    """Requirements that must all hold; ``None`` in their place matches nothing."""

    requirements: tuple[Requirement, ...] | None

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Tell whether a set of labels meets all requirements."""
        return self.requirements is not None and all(r.accepts(labels.get(r.key)) for r in self.requirements)

    def keys(self) -> frozenset[str]:
        """Return the label keys that the selector reads."""
        return frozenset(r.key for r in self.requirements or ())


NOTHING = Selector(None)
EVERYTHING = Selector(())


def parse_int64(text: str) -> int | None:
    """Parse a decimal 64-bit integer as Go's ``ParseInt`` does; None if it is none."""
    if not _INTEGER.match(text):
        return None
    digits = text.lstrip("+-").lstrip("0")
    if len(digits) > _MAX_DIGITS:
        return None
    number = int(digits or "0") * (-1 if text[0] == "-" else 1)
    return number if number in _INT64 else None


def from_map(labels: Mapping[str, str]) -> Selector:
    """Make the selector of a plain map (services, replication controllers, node selectors); empty, it matches all."""
    return Selector(
        tuple(Requirement(key, "In", frozenset((value,))) for key, value in sorted(labels.items()))
    )


def from_label_selector(selector: LabelSelector | None, path: str = "labelSelector") -> Selector:
    """Make the selector of a LabelSelector.

    Raises
    ------
    SelectorError
        Kubernetes would refuse it: a bad key or value, values where none may be, Gt or Lt.
    """
    if selector is None:
        return NOTHING
    equal = tuple(
        _checked(LabelSelectorRequirement(key=key, operator="In", values=(value,)), f"{path}.matchLabels")
        for key, value in sorted(selector.match_labels.items())
    )
    expressions = []
    for i, expression in enumerate(selector.match_expressions):
        where = f"{path}.matchExpressions[{i}]"
        if expression.operator in ("Gt", "Lt"):
            raise SelectorError(
                f"{where}.operator", expression.operator, "one of In, NotIn, Exists, DoesNotExist"
            )
        expressions.append(_checked(expression, where))
    return Selector(equal + tuple(expressions))


def from_node_expressions(
    expressions: Iterable[LabelSelectorRequirement], path: str = "matchExpressions"
) -> Selector:
    """Make the selector of a node selector term's expressions; none at all match nothing.

    Raises
    ------
    SelectorError
        As `from_label_selector`, except that Gt and Lt are welcome.
    """
    requirements = tuple(_checked(expression, f"{path}[{i}]") for i, expression in enumerate(expressions))
    return Selector(requirements) if requirements else NOTHING


def _checked(expression: LabelSelectorRequirement, path: str) -> Requirement:
    _check_key(expression.key, path)
    values = expression.values
    match expression.operator:
        case "In" | "NotIn":
            if not values:
                raise SelectorError(f"{path}.values", list(values), "at least one value")
        case "Exists" | "DoesNotExist":
            if values:
                raise SelectorError(
                    f"{path}.values", list(values), f"empty, as {expression.operator} demands"
                )
        case "Gt" | "Lt":
            # A sign is refused: the text must be a label's value, too.
            bound = parse_int64(values[0]) if len(values) == 1 and _NAME.match(values[0]) else None
            if bound is None:
                raise SelectorError(f"{path}.values", list(values), "exactly one integer without a sign")
            return Requirement(expression.key, expression.operator, bound=bound)
    for value in values:
        if value and not _NAME.match(value):
            raise SelectorError(
                f"{path}.values", value, "a label value (63 letters, digits, '-', '_', '.' at most)"
            )
    return Requirement(expression.key, expression.operator, frozenset(values))


def _check_key(key: str, path: str) -> None:
    prefix, slash, name = key.rpartition("/")
    good_prefix = not slash or (len(prefix) <= MAX_PREFIX_LENGTH and _PREFIX.match(prefix))
    if not good_prefix or not _NAME.match(name):
        raise SelectorError(f"{path}.key", key, "a label key such as 'app' or 'example.com/app'")
