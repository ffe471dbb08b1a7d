"""Several plugins' counts per topology domain as one classed part: filters that open and shut classes, and scores.

A class is a group of rows that share all their domains, and a count of pods on the row itself, which stands for the keys of
which no two rows share a domain (hostname). Knows counts alone; what is made of them are the plugins' own functions.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from berth.cluster.arrays import BoolColumn, IdColumn, IntColumn, numbered
from berth.framework.counted import Counted, DomainCounts, Use, grouped
from berth.framework.plugin import SHUT
from berth.plugins.inter_pod_affinity.scoring import spread_out
from berth.plugins.pod_topology_spread.filtering import NO_DOMAIN
from berth.plugins.pod_topology_spread.logarithm import log
from berth.plugins.pod_topology_spread.scoring import (
    domain_score,
    flipped,
    round_half_away,
)

SCORES = (Use.SPREAD, Use.COMPANY)
"""Whose scores the rows of `JointClasses.table` are."""

SKEW, SHUN, COMPANY = int(Use.SKEW), int(Use.SHUN), int(Use.COMPANY)
_NEVER = 1 << 60


class JointClasses(NamedTuple):
    """The counts of all plugins of a batch that hang on such; keys that spread stand last.

    Attributes
    ----------
    group, own : int64[n_rows]
        Each row's group; the pods on it.
    steps : int64[n_groups]
        By how much a pod moves ``own``: 1 or 0.
    use, grows, max_skew, own_count : int64[n_keys]
        As in `berth.framework.counted`.
    is_apart : bool[n_keys]
        Whether no two rows share a domain: the count then is ``growth * own + offset``, else that of the slot.
    slot, growth, offset : int64[n_keys, n_groups]
    labelled : bool[n_keys, n_groups]
    scored : bool[n_groups]
    base : int64[n_groups]
        The sum of weights that do not move.
    added_at : int64[n_keys, n_rows]
        The slot that a pod on the row adds to: the last one, which nobody reads, if none.
    in_domain : int64[n_keys, n_slots]
        What is counted in each domain.
    present : bool[n_keys, n_slots]
        The domains of which the emptiest is looked for.
    lowest, n_lowest : int64[n_keys]
        Its count, and how many have it.
    maximum : int64[2]
        The highest score of either plugin; 0 where it does not take part.
    from_zero : bool
    """

    group: IntColumn
    own: IntColumn
    steps: IntColumn
    use: IntColumn
    grows: IntColumn
    max_skew: IntColumn
    own_count: IntColumn
    is_apart: BoolColumn
    slot: IntColumn
    growth: IntColumn
    offset: IntColumn
    labelled: BoolColumn
    scored: BoolColumn
    base: IntColumn
    added_at: IntColumn
    in_domain: IntColumn
    present: BoolColumn
    lowest: IntColumn
    n_lowest: IntColumn
    maximum: IntColumn
    from_zero: bool

    @classmethod
    def of(cls, parts: Sequence[Counted], may_fit: BoolColumn) -> "JointClasses":
        """Begin a batch on the rows where the pod may fit at some time of it."""
        uses, keys, base = _moving(parts, len(may_fit))
        is_apart = np.array(
            [_is_apart(u, k, may_fit) for u, k in zip(uses, keys, strict=True)], dtype=np.bool_
        )
        slot, in_domain, present, added_at = _domains(keys)
        own, growth, offset = _on_rows(keys, is_apart, may_fit)
        lowest, n_lowest = _lowest(uses, keys, in_domain, present)
        slot[is_apart] = 0
        labelled = np.array([k.labelled if k.labelled is not None else may_fit for k in keys])
        scored = np.logical_and.reduce([may_fit, *(p.scored for p in parts if p.scored is not None)])
        group, first = grouped([*slot, *growth, *offset, *labelled, scored, base], may_fit)
        numbers = [
            [int(u) for u in uses],
            [k.grows for k in keys],
            [k.max_skew for k in keys],
            [k.own for k in keys],
        ]
        use, grows, max_skew, own_count = np.array(numbers, dtype=np.int64)
        maximum = [max((p.maximum for p in parts if p.use is use), default=0) for use in SCORES]
        slot, growth, offset, labelled = (
            np.ascontiguousarray(a[:, first]) for a in (slot, growth, offset, labelled)
        )
        return cls(
            group, own, (growth != 0).any(axis=0).astype(np.int64), use, grows, max_skew, own_count, is_apart,
            slot, growth, offset, labelled, scored[first], base[first], added_at, in_domain, present, lowest, n_lowest,
            np.array(maximum, dtype=np.int64), any(p.from_zero for p in parts),
        )  # fmt: skip

    def class_of(self, row: Any) -> Any:
        """Return the group and the count as one number."""
        return (self.group[row] << 32) + self.own[row]

    def table(self, classes: IntColumn, sizes: IdColumn) -> IntColumn:
        """Return the scores of each class: of spreading, and of company."""
        group, own = classes >> 32, classes & 0xFFFFFFFF
        is_open = np.ones(len(classes), dtype=np.bool_)
        scored, company = self.scored[group], self.base[group]
        spread, by_spread, by_company = np.zeros(len(classes)), np.zeros_like(own), np.zeros_like(own)
        for j in range(len(self.use)):
            if self.is_apart[j]:
                counts = self.growth[j][group] * own + self.offset[j][group]
            else:
                counts = self.in_domain[j][self.slot[j][group]]
            if self.use[j] == SKEW:
                is_open &= counts + (self.own_count[j] - self.lowest[j]) <= self.max_skew[j]
            elif self.use[j] == SHUN:
                is_open &= counts <= 0
            elif self.use[j] == COMPANY:
                company += counts
            else:
                scored &= is_open
                size = n_domains(self.is_apart[j], self.slot[j][group], scored, sizes)
                score = domain_score(counts, log(size + 2), self.max_skew[j])
                spread += score * (self.labelled[j][group] & scored)
        if is_open.any():
            if self.maximum[0] > 0:
                by_spread = flipped(round_half_away(spread), scored & is_open, self.maximum[0])
            if self.maximum[1] > 0:
                # The others' scores do not matter, but their sums are not to be the lowest or highest.
                one = company[np.argmax(is_open)]
                by_company = spread_out(one + (company - one) * is_open, self.maximum[1], self.from_zero)
        return np.concatenate((by_spread + SHUT * ~is_open, by_company)).reshape((2, -1))

    def place(self, row: int) -> None:
        """One pod more on the row."""
        self.own[row] += self.steps[self.group[row]]
        for j in range(len(self.use)):
            at = self.added_at[j, row]
            count = self.in_domain[j, at]
            self.in_domain[j, at] += self.grows[j]
            if self.grows[j] > 0 and self.present[j, at] and count == self.lowest[j]:
                self.n_lowest[j] -= 1
                if self.n_lowest[j] == 0:
                    counts = self.in_domain[j][self.present[j]]
                    self.lowest[j] = counts.min()
                    self.n_lowest[j] = np.count_nonzero(counts == self.lowest[j])

    def close(self, row: int) -> None:
        """Nothing moves: the table is told of the rows that are left."""


def n_domains(is_apart: bool, slots: IntColumn, counted: BoolColumn, sizes: IdColumn) -> int:
    """Return how many domains have a row of the classes that are counted."""
    if is_apart:
        return int((sizes * counted).sum())
    seen = np.zeros(slots.max() + 1, dtype=np.bool_)
    seen[slots[counted]] = True
    return int(np.count_nonzero(seen))


COMPILED: tuple[Callable[..., Any], ...] = (n_domains, spread_out)
"""What `JointClasses` calls, besides what the plugins name."""


def _moving(parts: Sequence[Counted], n_rows: int) -> tuple[list[Use], list[DomainCounts], IntColumn]:
    """Return all keys and their uses; weights that do not move are summed up by row instead."""
    base = np.zeros(n_rows, dtype=np.int64)
    uses, keys = [], []
    for part in sorted(parts, key=lambda part: part.use is Use.SPREAD):
        for key in part.keys:
            if part.use is Use.COMPANY and not key.grows:
                base += key.counts[key.slots]
            else:
                uses.append(part.use)
                keys.append(key)
    return uses, keys, base


def _is_apart(use: Use, key: DomainCounts, may_fit: BoolColumn) -> bool:
    """Tell whether every row has a domain of its own; rows without one are as good, but where domains are counted."""
    rows_of = np.bincount(key.slots[may_fit])
    return int(rows_of[0 if use is Use.SPREAD else 1 :].max(initial=0)) <= 1


def _domains(keys: list[DomainCounts]) -> tuple[IntColumn, IntColumn, BoolColumn, IntColumn]:
    """Number each key's domains anew, from 0; returns slot, in_domain, present and added_at."""
    found = [numbered(key.slots) for key in keys]
    width = max(len(values) for _, values in found) + 1
    in_domain = np.zeros((len(keys), width), dtype=np.int64)
    present = np.zeros((len(keys), width), dtype=np.bool_)
    for j, (key, (_, values)) in enumerate(zip(keys, found, strict=True)):
        in_domain[j, : len(values)] = key.counts[values]
        if key.present is not None:
            present[j, : len(values)] = key.present[values]
    slot = np.array([numbers for numbers, _ in found], dtype=np.int64)
    added_at = np.where(np.array([key.counts_on for key in keys]), slot, width - 1)
    return slot, in_domain, present, added_at


def _on_rows(
    keys: list[DomainCounts], is_apart: BoolColumn, may_fit: BoolColumn
) -> tuple[IntColumn, IntColumn, IntColumn]:
    """Return own, and growth and offset of the keys whose domains are single rows (by key and row)."""
    own = np.zeros(len(may_fit), dtype=np.int64)
    growth, offset = np.zeros((2, len(keys), len(may_fit)), dtype=np.int64)
    apart = [(j, key) for j, key in enumerate(keys) if is_apart[j]]
    for j, key in apart:
        growth[j] = np.where(key.counts_on, key.grows, 0)
    for _, key in [(j, key) for j, key in apart if key.grows][:1]:
        # As many pods as would make the first key's counts: others that count the same pods then have no offset.
        own = np.where(key.counts_on & may_fit, key.counts[key.slots] // key.grows, 0)
        own -= own.min()
    for j, key in apart:
        offset[j] = key.counts[key.slots] - growth[j] * own
    return own, growth, offset


def _lowest(
    uses: list[Use], keys: list[DomainCounts], in_domain: IntColumn, present: BoolColumn
) -> tuple[IntColumn, IntColumn]:
    lowest, n_lowest = np.zeros(len(keys), dtype=np.int64), np.full(len(keys), _NEVER)
    for j, (use, key) in enumerate(zip(uses, keys, strict=True)):
        if use is Use.SKEW and not key.is_floored:
            counts = in_domain[j][present[j]]
            lowest[j] = counts.min(initial=NO_DOMAIN)
            n_lowest[j] = np.count_nonzero(counts == lowest[j]) or _NEVER
    return lowest, n_lowest
