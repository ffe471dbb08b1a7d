"""A profile: which plugins decide, in which order and with which weights."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from berth.framework.plugin import FilterPlugin, ScorePlugin


@dataclass(frozen=True, slots=True)
class WeightedScore:
    """A priority and its weight; ``name`` is what the plan and the protocol call it."""

    name: str
    plugin: ScorePlugin[Any]
    weight: int


@dataclass(frozen=True, slots=True)
class NamedFilter:
    """A predicate under the name that a release gives it.

    Attributes
    ----------
    drops : bool
        Nodes that fail it are left out before the others are asked: they count nowhere.
    """

    name: str
    plugin: FilterPlugin[Any]
    drops: bool = False


def all_reasons(reasons: tuple[str, ...]) -> tuple[str, ...]:
    """Tell everything."""
    return reasons


@dataclass(frozen=True, slots=True)
class Profile:
    """Filters in the order in which they are asked, and scores with their weights (0: not computed).

    Attributes
    ----------
    asks_all : bool
        Whether a node is asked every filter, also after one has failed.
    reported : callable
        Of a filter's reasons against a node, those that the pod is told.
    """

    filters: tuple[NamedFilter, ...]
    scores: tuple[WeightedScore, ...]
    asks_all: bool = False
    reported: Callable[[tuple[str, ...]], tuple[str, ...]] = all_reasons
