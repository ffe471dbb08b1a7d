"""Rules of resources applied to all nodes at once, in floats: equal to what the plugins say in integers, in half the time.

Floats hold the whole numbers exactly (`berth.scheduling.amounts`), and the quotient of two such numbers never rounds up to
the next integer: it is further from it than floats are apart. Shares are divided in the plugins' own order of floats.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, BoolColumn, FloatColumn, IntColumn, Rows
from berth.framework.rules import Rule, RuleKind
from berth.scheduling.amounts import MAX_EXACT, Amounts, Floats
from berth.scheduling.look_kernels import LOOK

MAX_SCORE = 127
MAX_WEIGHT = 1 << 32
BLOCK = 8_192
"""So many rows are computed at a time: what is computed meanwhile then stays in the processor's cache."""

_N_SCRATCH = 4


class Place(NamedTuple):
    """Some rows of a column, and what the pod adds to it.

    Attributes
    ----------
    used, offered, free : float64[n]
    all_offer : bool
        Whether none offers nothing.
    """

    used: FloatColumn
    offered: FloatColumn
    free: FloatColumn
    all_offer: bool
    asked: float
    weight: float


class Bound(NamedTuple):
    """A rule, and the columns of `Amounts` that its terms speak of."""

    rule: Rule
    columns: list[int]


def bind(rule: Rule, amounts: Amounts) -> Bound | None:
    """Find a rule's columns; None where floats would not be exact."""
    if not 0 <= rule.maximum <= MAX_SCORE:
        return None
    columns = []
    for term in rule.terms:
        if not (0 <= term.asked < MAX_EXACT and -MAX_WEIGHT < term.weight < MAX_WEIGHT):
            return None
        columns.append(amounts.column(term.counts_silent, term.resource_id))
    return Bound(rule, columns) if amounts.is_exact else None


def fit(amounts: Amounts, bound: Bound, fits: BoolColumn, rows: Rows = ALL_ROWS) -> None:
    """Take rows on which something asked is not free out of ``fits`` (bool[n], of the rows)."""
    needs, columns = bound.rule.terms, bound.columns
    kernels = LOOK.kernels_for(0)
    if kernels is not None and isinstance(rows, slice):
        numbers = [(column, term.asked) for column, term in zip(columns, needs, strict=True)]
        kernels.fit(np.array(numbers, dtype=np.float64), amounts.free, fits)
        return
    for term, column in zip(needs, columns, strict=True):
        fits &= amounts.free[column, rows] >= term.asked


class Scores:
    """What rules say of every row, and their weighted total.

    Attributes
    ----------
    by_rule : int16[n_rules, n_rows]
        In the order of the rules.
    total : int64[n_rows]
    """

    def __init__(self, amounts: Amounts, rules: Sequence[tuple[int, Bound]]) -> None:
        self._rules = tuple(rules)
        n_rows = amounts.free.shape[1]
        self.by_rule = np.empty((len(rules), n_rows), dtype=np.int16)
        self.total: IntColumn = np.empty(n_rows, dtype=np.int64)
        kernels = LOOK.kernels_for(0)
        if kernels is not None:
            kernels.apply(*self._numbers(), amounts.used, amounts.offered, self.by_rule, self.total)
            return
        for start in range(0, n_rows, BLOCK):
            block = slice(start, min(n_rows, start + BLOCK))
            self._apply(amounts, block, self.by_rule[:, block], self.total[block])

    def mend(self, amounts: Amounts, rows: NDArray[np.intp]) -> None:
        """Compute rows anew."""
        for start in range(0, len(rows), BLOCK):
            some = rows[start : start + BLOCK]
            by_rule, total = np.empty((len(self._rules), len(some)), np.int16), np.empty(len(some), np.int64)
            self._apply(amounts, some, by_rule, total)
            self.by_rule[:, some], self.total[some] = by_rule, total

    def _numbers(self) -> tuple[Floats, Floats]:
        """Return rules and terms as `berth.scheduling.look_kernels` takes them."""
        rules = [(rule.kind, weight, rule.maximum, len(columns)) for weight, (rule, columns) in self._rules]
        terms = [
            (column, term.asked, term.weight)
            for _, (rule, columns) in self._rules
            for column, term in zip(columns, rule.terms, strict=True)
        ]
        return np.array(rules, dtype=np.float64), np.array(terms, dtype=np.float64).reshape(-1, 3)

    def _apply(
        self,
        amounts: Amounts,
        rows: Rows,
        by_rule: NDArray[np.int16],
        total: IntColumn,
    ) -> None:
        scratch = amounts.scratch(_N_SCRATCH, len(total))
        sums = scratch[-1]
        sums[:] = 0
        for q, (weight, bound) in enumerate(self._rules):
            score = _score(bound.rule, _places(amounts, bound, rows), scratch)
            np.copyto(by_rule[q], score, casting="unsafe")
            if weight != 1:
                score *= weight
            sums += score
        np.copyto(total, sums, casting="unsafe")


def _places(amounts: Amounts, bound: Bound, rows: Rows) -> list[Place]:
    return [
        Place(
            amounts.used[column, rows],
            amounts.offered[column, rows],
            amounts.free[column, rows],
            amounts.all_offer(column),
            float(term.asked),
            float(term.weight),
        )
        for term, column in zip(bound.rule.terms, bound.columns, strict=True)
    ]


def _score(rule: Rule, places: Sequence[Place], scratch: Floats) -> FloatColumn:
    """Score rows, in the first rows of ``scratch`` (float64[3, n])."""
    if not places:
        scratch[0] = 0
        return scratch[0]
    top = float(rule.maximum)
    match rule.kind:
        case RuleKind.LEAST_ALLOCATED | RuleKind.MOST_ALLOCATED:
            return _mean_allocated(places, top, rule.kind is RuleKind.MOST_ALLOCATED, scratch)
        case RuleKind.BALANCED_GAIN:
            return _balanced_gain(places, top, scratch)
        case RuleKind.LEAST_REQUESTED | RuleKind.MOST_REQUESTED:
            return _mean_requested(places, top, rule.kind is RuleKind.MOST_REQUESTED, scratch)
        case RuleKind.BALANCED_SHARES:
            return _balanced_shares(places, top, scratch)
        case RuleKind.FITS:
            raise AssertionError("no score")


def _mean_allocated(places: Sequence[Place], top: float, most: bool, scratch: Floats) -> FloatColumn:
    sums, amount, weights = scratch[:3]
    common, varies = 0.0, any(not place.all_offer for place in places)
    for j, place in enumerate(places):
        score = amount if j else sums
        if most:
            np.add(place.used, place.asked, out=score)
            np.minimum(score, place.offered, out=score)
        else:
            np.subtract(place.free, place.asked, out=score)
            np.maximum(score, 0.0, out=score)
        score *= top
        score /= _divisor(place)
        np.floor(score, out=score)
        if place.weight != 1:
            score *= place.weight
        if varies:
            counts = place.offered > 0
            score *= counts
            weights[:] = counts * place.weight + (weights if j else 0.0)
        common += place.weight
        if j:
            sums += score
    if varies:
        sums /= np.maximum(weights, 1.0)
    else:
        sums /= common
    return np.floor(sums, out=sums)


def _mean_requested(places: Sequence[Place], top: float, most: bool, scratch: Floats) -> FloatColumn:
    sums, amount = scratch[:2]
    for j, place in enumerate(places):
        score = amount if j else sums
        if most:
            np.add(place.used, place.asked, out=score)
            score *= score <= place.offered
        else:
            np.subtract(place.free, place.asked, out=score)
            np.maximum(score, 0.0, out=score)
        score *= top
        # Without anything offered both are 0.
        score /= _divisor(place)
        np.floor(score, out=score)
        if j:
            sums += score
    sums *= 0.5
    return np.floor(sums, out=sums)


def _balanced_shares(places: Sequence[Place], top: float, scratch: Floats) -> FloatColumn:
    shares = scratch[:2]
    for place, share in zip(places, shares, strict=True):
        np.add(place.used, place.asked, out=share)
        np.divide(share, _divisor(place), out=share)
        if not place.all_offer:
            share[place.offered == 0] = 1.0
    full = np.maximum(shares[0], shares[1], out=scratch[2]) >= 1
    score: FloatColumn = shares[0]
    score -= shares[1]
    np.abs(score, out=score)
    np.subtract(1.0, score, out=score)
    score *= top
    np.floor(score, out=score)
    score[full] = 0
    return score


def _balanced_gain(places: Sequence[Place], top: float, scratch: Floats) -> FloatColumn:
    half = top // 2
    after = _evenness(places, top, scratch[0], scratch[1], with_pod=True)
    before = _evenness(places, top, scratch[2], scratch[1], with_pod=False)
    after -= before
    # Half of (half + gain), rounded down, on top of half.
    after += half
    after *= 0.5
    np.floor(after, out=after)
    after += half
    return after


def _evenness(
    places: Sequence[Place], top: float, score: FloatColumn, other: FloatColumn, *, with_pod: bool
) -> FloatColumn:
    for place, share in zip(places, (score, other), strict=True):
        used = np.add(place.used, place.asked, out=share) if with_pod else place.used
        np.divide(used, _divisor(place), out=share)
        np.minimum(share, 1.0, out=share)
    score -= other
    score /= 2
    np.abs(score, out=score)
    np.subtract(1.0, score, out=score)
    score *= top
    np.floor(score, out=score)
    if not all(place.all_offer for place in places):
        # A resource alone is as even as can be.
        score[(places[0].offered == 0) | (places[1].offered == 0)] = top
    return score


def _divisor(place: Place) -> FloatColumn:
    """Return what is offered, or 1 where that is nothing."""
    return place.offered if place.all_offer else np.maximum(place.offered, 1.0)
