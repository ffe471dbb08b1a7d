"""A profile: which plugins decide, in which order and with which weights."""

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
    """A predicate under the name that a release gives it."""

    name: str
    plugin: FilterPlugin[Any]


@dataclass(frozen=True, slots=True)
class Profile:
    """Filters in the order in which they are asked, and scores with their weights (0: not computed).

    Attributes
    ----------
    always_check_all : bool
        Whether a node's reasons are those of all filters that it fails, not only of the first.
    """

    filters: tuple[NamedFilter, ...]
    scores: tuple[WeightedScore, ...]
    always_check_all: bool = False
