"""A profile: which plugins decide, in which order and with which weights."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from berth.framework.plugin import FilterPlugin, ScorePlugin

Reasons = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class WeightedScore:
    """A priority and its weight; ``name`` is what the plan and the protocol call it."""

    name: str
    plugin: ScorePlugin[Any]
    weight: int


@dataclass(frozen=True, slots=True)
class NamedFilter:
    """A predicate under the name that a release gives it."""

    name: str
    plugin: FilterPlugin[Any]


def all_reasons(reasons: Reasons) -> Reasons:
    """Tell everything."""
    return reasons


@dataclass(frozen=True, slots=True)
class Profile:
    """Filters in the order in which they are asked, and scores with their weights (0: not computed).

    Attributes
    ----------
    always_check_all : bool
        Whether a node's reasons are those of all filters that it fails, not only of the first.
    reported : callable
        Of a filter's reasons against a node, those that the pod is told.
    checks_claims : bool
        Whether a pod one of whose claims is not there, or going, is not looked at.
    drops : FilterPlugin or None
        Nodes that fail it are left out before any filter is asked: they count nowhere.
    """

    filters: tuple[NamedFilter, ...]
    scores: tuple[WeightedScore, ...]
    always_check_all: bool = False
    reported: Callable[[Reasons], Reasons] = all_reasons
    checks_claims: bool = False
    drops: FilterPlugin[Any] | None = None
