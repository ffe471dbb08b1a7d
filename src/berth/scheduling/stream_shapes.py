"""What a mixed stream takes over from a shape's evaluation: narrow columns, rules, and what tells shapes that interact."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import IdColumn, IntColumn
from berth.cluster.cluster import Incoming
from berth.framework.plugin import BatchKind, Plugin, ScorePlugin, SpreadCounts
from berth.framework.rules import Rule, Term
from berth.scheduling.decide import failed
from berth.scheduling.evaluation import Evaluation


@dataclass(slots=True)
class Normalized:
    """A constant score whose normalisation may come out otherwise when rows close."""

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
        The feasible rows at the start: the evaluation's own, to be copied.
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
    """

    pod: Incoming
    fits: NDArray[np.bool_]
    needs: tuple[Term, ...]
    scores: dict[int, tuple[int, Rule]]
    even: int
    uneven: list[Normalized]
    total_of_weights: int
    watching: list[tuple[Plugin[Any], Any]]
    spread: SpreadCounts | None = None
    spread_weight: int = 0

    def moved_by(self, other: Incoming) -> bool:
        """Tell whether a pod of another shape moves answers that are taken not to move."""
        return any(plugin.moved_by(state, other) for plugin, state in self.watching)

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

    def fixed(self, is_open: NDArray[np.bool_], closed: int) -> IntColumn:
        """Return the weighted total of constant scores (int64[n_rows]), ``closed`` where a row is."""
        rows = np.flatnonzero(is_open)
        total = np.full(len(is_open), closed, dtype=np.int64)
        total[rows] = self.even
        for one in self.uneven:
            total[rows] += one.weight * one.plugin.normalize(one.state, one.raw[rows], rows)
        return total


def live_shape(evaluation: Evaluation) -> LiveShape | None:
    """Make a shape take part; None where one of its plugins can't, or the decision may fail otherwise than for room."""
    e = evaluation
    e.mend()
    if e.error() is not None:
        return None
    shape = LiveShape(
        pod=e.pod,
        fits=e.fits,
        needs=(),
        scores={},
        even=0,
        uneven=[],
        total_of_weights=sum(abs(weighted.weight) for weighted in e.profile.scores),
        watching=[],
    )
    if e.fits.any() and failed(e) is not None:
        return None
    return shape if _take_filters(shape, e) and _take_scores(shape, e) else None


def _take_filters(shape: LiveShape, e: Evaluation) -> bool:
    for i, named in enumerate(e.profile.filters):
        plugin = named.plugin
        if e.skipped_filters[i] and not plugin.reads_pods:
            continue
        state = e.filter_states[i]
        kind = plugin.batch(state, e.fits)
        if kind is BatchKind.LOCAL:
            rule = plugin.resource_rule(state)
            if rule is None:
                return False
            shape.needs += rule.terms
        elif kind is not BatchKind.CONSTANT:
            return False
        if plugin.reads_pods:
            shape.watching.append((plugin, state))
    return True


def _take_scores(shape: LiveShape, e: Evaluation) -> bool:
    rows = np.flatnonzero(e.fits)
    for i, weighted in enumerate(e.profile.scores):
        plugin, weight = weighted.plugin, weighted.weight
        if e.skipped_scores[i] and not plugin.reads_pods:
            continue
        state = e.score_states[i]
        spread = plugin.spread(state)
        if spread is not None and shape.spread is None:
            narrow = replace(spread, per_row=spread.per_row.astype(np.int16))
            shape.spread, shape.spread_weight = narrow, weight
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
                shape.even += weight * int(plugin.score(state).max(initial=0))
            continue
        if kind is not BatchKind.CONSTANT:
            return False
        if plugin.reads_pods:
            shape.watching.append((plugin, state))
        if not weight or not len(rows) or not e.busy_scores[i]:
            continue
        raw = e.raw[i]
        taken = raw.take(rows)
        scores = plugin.normalize(state, taken, rows)
        if taken.min() == taken.max() and scores.min() == scores.max():
            shape.even += weight * int(scores[0])
        else:
            shape.uneven.append(Normalized(weight, plugin, state, raw.copy()))
    return True
