"""Rules of resources applied to all nodes at once, in floats: equal to what the plugins say in integers, in half the time.

Floats hold the whole numbers exactly (`berth.scheduling.amounts`), and the quotient of two such numbers never rounds up to
the next integer: it is further from it than floats are apart. Shares are divided in the plugins' own order of floats.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from berth.cluster.arrays import ALL_ROWS, BoolColumn, FloatColumn, IntColumn, Rows
from berth.framework.rules import Rule, RuleKind, Term
from berth.scheduling.amounts import Amounts, Floats, is_small

MAX_SCORE = 127
MAX_WEIGHT = 1 << 32
BLOCK = 8_192
"""So many rows are computed at a time: what is computed meanwhile then stays in the processor's cache."""

_N_SCRATCH = 3


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


def can_apply(rule: Rule) -> bool:
    """Tell whether floats are exact for a rule, as long as they are for the amounts."""
    return 0 <= rule.maximum <= MAX_SCORE and all(
        is_small(term.asked) and abs(term.weight) < MAX_WEIGHT for term in rule.terms
    )


def fit(amounts: Amounts, needs: Sequence[Term], fits: BoolColumn, rows: Rows = ALL_ROWS) -> None:
    """Take rows on which something asked is not free out of ``fits`` (bool[n], of the rows)."""
    for term, column in zip(needs, amounts.columns(needs), strict=True):
        fits &= amounts.free[column, rows] >= term.asked


def total(amounts: Amounts, scores: Sequence[tuple[int, Rule]], rows: Rows = ALL_ROWS) -> IntColumn:
    """Return the weighted total of scores, given with their weights (int64[n])."""
    columns = [amounts.columns(rule.terms) for _, rule in scores]
    n = amounts.free.shape[1] if isinstance(rows, slice) else len(rows)
    found = np.empty(n, dtype=np.int64)
    for start in range(0, n, BLOCK):
        block = slice(start, min(n, start + BLOCK))
        scratch = amounts.scratch(_N_SCRATCH + 1, block.stop - start)
        here, sums = block if isinstance(rows, slice) else rows[block], scratch[-1]
        sums[:] = 0
        for (weight, rule), at in zip(scores, columns, strict=True):
            score = _score(rule, _places(amounts, rule, at, here), scratch)
            if weight != 1:
                score *= weight
            sums += score
        np.copyto(found[block], sums, casting="unsafe")
    return found


def score(amounts: Amounts, rule: Rule, rows: Rows = ALL_ROWS) -> IntColumn:
    """Return a rule's score of rows (int64[n])."""
    return total(amounts, [(1, rule)], rows)


def _places(amounts: Amounts, rule: Rule, columns: Sequence[int], rows: Rows) -> list[Place]:
    return [
        Place(
            amounts.used[column, rows],
            amounts.offered[column, rows],
            amounts.free[column, rows],
            amounts.all_offer(column),
            float(term.asked),
            float(term.weight),
        )
        for term, column in zip(rule.terms, columns, strict=True)
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
