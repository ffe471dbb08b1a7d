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


def _all_of_them(reasons: Reasons) -> Reasons:
    return reasons


@dataclass(frozen=True, slots=True)
class Profile:
    """Filters in the order in which they are asked, and scores with their weights (0: not computed).

    Attributes
    ----------
<<<<<<< HEAD
    always_check_all : bool
        Whether a node's reasons are those of all filters that it fails, not only of the first.
    reported : callable
        Of a filter's reasons against a node, those that the pod is told.
    checks_claims : bool
        Whether a pod one of whose claims is not there, or going, is not looked at.
    drops : FilterPlugin or None
        Nodes that fail it are left out before any filter is asked: they count nowhere.
=======
    asks_all : bool
        Whether a node is asked every filter, also after one has failed.
    reported : callable
        Of a filter's reasons against a node, those that the pod is told.
>>>>>>> refs/heads/legacy
    """

    filters: tuple[NamedFilter, ...]
    scores: tuple[WeightedScore, ...]
<<<<<<< HEAD
    always_check_all: bool = False
    reported: Callable[[Reasons], Reasons] = _all_of_them
    checks_claims: bool = False
    drops: FilterPlugin[Any] | None = None
=======
    asks_all: bool = False
    reported: Callable[[tuple[str, ...]], tuple[str, ...]] = all_reasons
>>>>>>> refs/heads/legacy
