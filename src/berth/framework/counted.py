"""Answers that hang on how many pods lie in the domains of topology keys, told in a way in which several can be joined."""

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import BoolColumn, IdColumn, IntColumn, numbered


class Use(IntEnum):
    """What a plugin makes of counts."""

    SKEW = 0
    """A filter: no domain may hold more pods than the emptiest one, by more than the allowed skew."""
    SHUN = 1
    """A filter: domains are left out that hold a pod."""
    SPREAD = 2
    """A score: PodTopologySpread's."""
    COMPANY = 3
    """A score: the sum of the domains' weights, scaled from the lowest to the highest."""


@dataclass(frozen=True, slots=True)
class DomainCounts:
    """The counts of one topology key.

    Attributes
    ----------
    slots : int32[n_rows]
        Each row's domain; 0 where the label is absent.
    counts : int64[n_slots]
        What is counted in each domain (pods, or weights of terms), as it is now.
    grows : int
        What a pod of the shape adds.
    counts_on : bool[n_rows]
        The rows on which a pod adds anything.
    labelled : bool[n_rows]
        The rows that are scored by this key (SPREAD).
    present : bool[n_slots]
        The domains of which the emptiest is looked for (SKEW).
    is_floored : bool
        The emptiest counts as empty, whatever it holds (SKEW).
    own : int
        What the pod that is placed counts itself (SKEW).
    """

    slots: IdColumn
    counts: IntColumn
    grows: int
    counts_on: BoolColumn
    labelled: BoolColumn | None = None
    present: BoolColumn | None = None
    is_floored: bool = False
    own: int = 0
    max_skew: int = 0


@dataclass(frozen=True, slots=True)
class Counted:
    """All that one plugin's answers for a shape hang on.

    Attributes
    ----------
    scored : bool[n_rows] or None
        The rows that are scored at all (SPREAD); None: all.
    maximum : int
        The highest score.
    from_zero : bool
        Whether 0 is counted among the sums (COMPANY).
    """

    use: Use
    keys: tuple[DomainCounts, ...]
    scored: BoolColumn | None = None
    maximum: int = 0
    from_zero: bool = False


def grouped(traits: list[NDArray[Any]], feasible: BoolColumn) -> tuple[IntColumn, NDArray[np.intp]]:
    """Number the feasible rows by what they have in common (int64[n_rows]); also return one row of each group."""
    rows = np.flatnonzero(feasible)
    group = np.zeros(len(rows), dtype=np.int64)
    n_groups = 1
    for trait in traits:
        of_rows = trait[rows]
        if (of_rows != of_rows[:1]).any():
            kind, values = numbered(of_rows.astype(np.int64))
            group, groups = numbered(group * len(values) + kind)
            n_groups = len(groups)
    first = np.zeros(n_groups if len(rows) else 0, dtype=np.intp)
    first[group[::-1]] = rows[::-1]
    group_of = np.zeros(len(feasible), dtype=np.int64)
    group_of[rows] = group
    return group_of, first
