"""What a mixed stream takes over from a shape's evaluation: narrow columns, rules, and what tells shapes that interact."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import BoolColumn, IdColumn, IntColumn
from berth.cluster.cluster import Incoming
from berth.framework.plugin import FITS, BatchKind, FilterPlugin, Plugin, ScorePlugin, SpreadCounts
from berth.framework.rules import Rule, Term
from berth.scheduling.batch import MAX_SCORE
from berth.scheduling.decide import failed
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.row_kinds import RowKinds
from berth.scheduling.running import MAX_TOTAL


@dataclass(slots=True)
class Normalized:
    """A constant score whose normalisation may come out otherwise when rows close; ``raw`` is by kind of row."""

    weight: int
    plugin: ScorePlugin[Any]
    state: Any
    raw: IntColumn


@dataclass(slots=True)
class LiveShape:
    """A shape that takes part.

    Attributes
    ----------
    fits : bool[n_rows]
        The feasible rows at the start: the evaluation's own; packed into bits (uint8) for as long as it is only kept.
    may_fit : bool[n_kinds]
        The kinds of rows that pass all filters that do not move.
    counted : (int32[n], int16[n])
        Where it spreads, the rows that hold counted pods at the start, and how many.
    eligible : bool[n_kinds]
        Where it spreads, the kinds of rows whose pods count for their domain.
    needs : tuple of Term
        What has to be free on a row.
    scores : dict of index to (weight, Rule)
        Scores that are rules of resources, by their place in the profile.
    even : int
        The weighted total of constant scores that are alike on all feasible rows.
    uneven : list of Normalized
        Those that do.
    total_of_weights : int
        Of all scores.
    watching : list of (plugin, state)
        What other shapes' pods may move.
    heeds_affinity : bool
        Whether pods with affinity of their own may move anything besides: what they may is not looked into.
    """

    pod: Incoming
    fits: NDArray[Any]
    may_fit: BoolColumn
    total_of_weights: int
    needs: tuple[Term, ...] = ()
    scores: dict[int, tuple[int, Rule]] = field(default_factory=dict)
    even: int = 0
    uneven: list[Normalized] = field(default_factory=list)
    watching: list[tuple[Plugin[Any], Any]] = field(default_factory=list)
    heeds_affinity: bool = False
    spread: SpreadCounts | None = None
    spread_weight: int = 0
    eligible: BoolColumn | None = None
    counted: tuple[IdColumn, NDArray[np.int16]] | None = None

    def is_moved_by(self, others: Iterable[Incoming]) -> bool:
        """Tell whether pods of other shapes move answers that are taken not to move."""
        for other in others:
            if self.heeds_affinity and other.info.has_affinity:
                return True
            for plugin, state in self.watching:
                if plugin.moved_by(state, other):
                    return True
        return False

    def over(self, domain: IdColumn) -> "LiveShape | None":
        """Return the shape if it spreads over the same domains, holding on to the column given."""
        assert self.spread is not None
        if self.spread.domain is None or not np.array_equal(domain, self.spread.domain):
            return None
        self.spread = replace(self.spread, domain=domain)
        return self

    def terms(self) -> Iterable[Term]:
        """Iterate over the terms of all rules."""
        yield from self.needs
        for _, rule in self.scores.values():
            yield from rule.terms

    def fixed(self, is_open: BoolColumn, kinds: RowKinds, closed: int) -> IntColumn:
        """Return the weighted total of constant scores by kind of row (int64[n_kinds]), ``closed`` where one is."""
        at = np.flatnonzero(is_open)
        total = np.full(len(is_open), closed, dtype=np.int64)
        total[at] = self.even
        for one in self.uneven:
            total[at] += one.weight * one.plugin.normalize(one.state, one.raw[at], kinds.first[at])
        return total


def live_shape(evaluation: Evaluation, kinds: RowKinds) -> LiveShape | None:
    """Make a shape take part; None where one of its plugins can't, or the decision may fail otherwise than for room.

    What does not move is told apart by ``kinds``.
    """
    e = evaluation
    e.mend()
    if e.error() is not None:
        return None
    total_of_weights = sum(abs(weighted.weight) for weighted in e.profile.scores)
    if total_of_weights * MAX_SCORE >= MAX_TOTAL or (e.fits.any() and failed(e) is not None):
        return None
    shape = LiveShape(e.pod, e.fits, e.asked().copy(), total_of_weights)
    if not _take_filters(shape, e):
        return None
    shape.may_fit = kinds.add(shape.may_fit)
    return shape if _take_scores(shape, e, kinds) else None


def _take_filters(shape: LiveShape, e: Evaluation) -> bool:
    for i, named in enumerate(e.profile.filters):
        plugin = named.plugin
        if e.skipped_filters[i]:
            shape.heeds_affinity |= plugin.reads_pods
            continue
        state = e.filter_states[i]
        if plugin.reads_pods:
            shape.watching.append((plugin, state))
        # One that is made of others may hold both what moves and what does not.
        if not all(_take_filter(shape, part, its_state) for part, its_state in plugin.parts_of(state)):
            return False
    return True


def _take_filter(shape: LiveShape, plugin: FilterPlugin[Any], state: Any) -> bool:
    kind = plugin.batch(state, shape.fits)
    if kind is BatchKind.LOCAL:
        rule = plugin.resource_rule(state)
        if rule is None:
            return False
        shape.needs += rule.terms
    elif kind is not BatchKind.CONSTANT:
        return False
    elif not plugin.is_idle(state):
        passes = plugin.passes(state)
        shape.may_fit &= plugin.filter(state) == FITS if passes is None else passes
    return True


def _take_scores(shape: LiveShape, e: Evaluation, kinds: RowKinds) -> bool:
    for i, weighted in enumerate(e.profile.scores):
        plugin, weight = weighted.plugin, weighted.weight
        if e.skipped_scores[i]:
            shape.heeds_affinity |= plugin.reads_pods
            continue
        state = e.score_states[i]
        spread = plugin.spread(state)
        if spread is not None and shape.spread is None:
            shape.eligible, shape.spread_weight = kinds.add(spread.eligible), weight
            # Small from here on: there is no need for the columns.
            at = np.flatnonzero(spread.per_row)
            shape.counted = at.astype(np.int32), spread.per_row[at].astype(np.int16)
            shape.spread = replace(
                spread, per_row=spread.per_row[:0].copy(), eligible=spread.eligible[:0].copy()
            )
            continue
        kind = plugin.batch(state, e.fits)
        if kind is BatchKind.LOCAL:
            rule = plugin.resource_rule(state)
            if rule is None or len({t.resource_id for t in rule.terms}) < len(rule.terms):
                return False
            if rule.terms and weight:
                shape.scores[i] = weight, rule
            elif weight:
                # It asks for none of the resources: alike on all rows.
                shape.even += weight * int(plugin.score(state, np.flatnonzero(e.fits)[:1]).max(initial=0))
            continue
        if kind is not BatchKind.CONSTANT:
            return False
        if plugin.reads_pods:
            shape.watching.append((plugin, state))
        if weight and e.busy_scores[i]:
            _take_constant(shape, Normalized(weight, plugin, state, e.raw[i]), kinds)
    return True


def _take_constant(shape: LiveShape, one: Normalized, kinds: RowKinds) -> None:
    """Add a constant score to the even or the uneven ones."""
    rows = np.flatnonzero(shape.fits)
    if not len(rows):
        return
    raw = one.raw[rows]
    if raw.min() == raw.max():
        scores = one.plugin.normalize(one.state, raw, rows)
        if scores.min() == scores.max():
            shape.even += one.weight * int(scores[0])
            return
    one.raw = kinds.add(one.raw)
    shape.uneven.append(one)
