"""What a look at a shape does to all rows at once, as loops to be compiled.

Rules of resources (`berth.scheduling.ruled` does the same in NumPy); scaling, and choosing (`berth.scheduling.choice`).

A rule is a row of numbers: its kind, its weight, its highest score, and how many of the terms, which follow one another in
the rules' order, are its own. A term is a row as well: its column, what the pod adds, and its weight in the score.
"""

from collections.abc import Callable
from math import floor
from typing import Any, NamedTuple

import numpy as np

from berth.scheduling.compiled import Group

_BLOCK = 1_024
_MAX_EXACT = 1 << 53
_LEAST = -(1 << 62)


def fit(needs: Any, free: Any, fits: Any) -> None:
    """Take rows out of ``fits`` (bool[n_rows]) where one of the needs (float64[n, 2]: column, amount) is not free."""
    for t in range(needs.shape[0]):
        there, asked = free[int(needs[t, 0])], needs[t, 1]
        for i in range(fits.shape[0]):
            fits[i] &= there[i] >= asked


def apply(rules: Any, terms: Any, used: Any, offered: Any, by_rule: Any, total: Any) -> None:
    """Compute each rule's score and the weighted total of every row.

    Parameters
    ----------
    rules, terms : float64[n_rules, 4], float64[n_terms, 3]
        As above.
    used, offered : float64[n_columns, n_rows]
        Whole numbers, at least 0, below 2^46.
    by_rule, total : int16[n_rules, n_rows], int64[n_rows]
        Are filled in.
    """
    n_rows = total.shape[0]
    score, other, weights = np.empty(_BLOCK), np.empty(_BLOCK), np.empty(_BLOCK)
    for start in range(0, n_rows, _BLOCK):
        n = min(_BLOCK, n_rows - start)
        total[start : start + n] = 0
        first = 0
        for q in range(rules.shape[0]):
            kind, weight, top, n_terms = int(rules[q, 0]), rules[q, 1], rules[q, 2], int(rules[q, 3])
            own = terms[first : first + n_terms]
            first += n_terms
            if n_terms == 0:
                score[:] = 0
            elif kind in (1, 2):
                _mean_allocated(kind == 2, top, own, used, offered, start, n, score, weights)
            elif kind == 3:
                _balanced_gain(top, own, used, offered, start, n, score, other)
            elif kind in (4, 5):
                _mean_requested(kind == 5, top, own, used, offered, start, n, score)
            else:
                _balanced_shares(top, own, used, offered, start, n, score)
            its_scores = by_rule[q, start : start + n]
            its_total = total[start : start + n]
            for i in range(n):
                its_scores[i] = np.int16(score[i])
                its_total[i] += np.int64(score[i] * weight)


def _mean_allocated(
    most: bool, top: float, terms: Any, used: Any, offered: Any, start: int, n: int, score: Any, weights: Any
) -> None:
    score[:] = 0
    weights[:] = 0
    for t in range(terms.shape[0]):
        asked, share = terms[t, 1], terms[t, 2]
        its_used, its_offered = used[int(terms[t, 0]), start:], offered[int(terms[t, 0]), start:]
        for i in range(n):
            of = its_offered[i]
            requested = its_used[i] + asked
            amount = min(requested, of) if most else max(of - requested, 0.0)
            counts = share if of > 0 else 0.0
            score[i] += floor(amount * top / max(of, 1.0)) * counts
            weights[i] += counts
    for i in range(n):
        score[i] = floor(score[i] / max(weights[i], 1.0))


def _mean_requested(
    most: bool, top: float, terms: Any, used: Any, offered: Any, start: int, n: int, score: Any
) -> None:
    score[:] = 0
    for t in range(terms.shape[0]):
        asked = terms[t, 1]
        its_used, its_offered = used[int(terms[t, 0]), start:], offered[int(terms[t, 0]), start:]
        for i in range(n):
            of = its_offered[i]
            requested = its_used[i] + asked
            amount = requested if most else of - requested
            score[i] += floor((amount if requested <= of else 0.0) * top / max(of, 1.0))
    for i in range(n):
        score[i] = floor(score[i] * 0.5)


def _balanced_gain(
    top: float, terms: Any, used: Any, offered: Any, start: int, n: int, score: Any, other: Any
) -> None:
    half = floor(top * 0.5)
    a, b, asked_a, asked_b = int(terms[0, 0]), int(terms[1, 0]), terms[0, 1], terms[1, 1]
    used_a, of_a, used_b, of_b = used[a, start:], offered[a, start:], used[b, start:], offered[b, start:]
    for i in range(n):
        by_a, by_b = max(of_a[i], 1.0), max(of_b[i], 1.0)
        before = min(used_a[i] / by_a, 1.0) - min(used_b[i] / by_b, 1.0)
        after = min((used_a[i] + asked_a) / by_a, 1.0) - min((used_b[i] + asked_b) / by_b, 1.0)
        gain = floor((1.0 - abs(after / 2)) * top) - floor((1.0 - abs(before / 2)) * top)
        # A resource alone is as even as can be.
        other[i] = gain if of_a[i] > 0 and of_b[i] > 0 else 0.0
    for i in range(n):
        score[i] = half + floor((half + other[i]) * 0.5)


def _balanced_shares(top: float, terms: Any, used: Any, offered: Any, start: int, n: int, score: Any) -> None:
    a, b, asked_a, asked_b = int(terms[0, 0]), int(terms[1, 0]), terms[0, 1], terms[1, 1]
    used_a, of_a, used_b, of_b = used[a, start:], offered[a, start:], used[b, start:], offered[b, start:]
    for i in range(n):
        share_a = (used_a[i] + asked_a) / of_a[i] if of_a[i] > 0 else 1.0
        share_b = (used_b[i] + asked_b) / of_b[i] if of_b[i] > 0 else 1.0
        even = floor((1.0 - abs(share_a - share_b)) * top)
        score[i] = even if share_a < 1 and share_b < 1 else 0.0


def add_scaled(raw: Any, fits: Any, weight: int, maximum: int, reverse: bool, total: Any) -> int:
    """Add weighted scores, scaled as `berth.framework.normalize.scale_to_maximum` does; return the highest raw one, or 0.

    Parameters
    ----------
    raw, fits : int64[n_rows], bool[n_rows]
        The raw scores, and which rows are feasible: what the others get is of no meaning.
    total : int64[n_rows]
        Is added to.
    """
    highest, lowest = 0, 0
    for i in range(len(raw)):
        score = raw[i] if fits[i] else 0
        highest = max(highest, score)
        lowest = min(lowest, score)
    if highest == 0:
        for i in range(len(raw)):
            total[i] += weight * maximum if reverse else 0
    elif lowest < 0 or float(highest) * maximum >= _MAX_EXACT:
        for i in range(len(raw)):
            scaled = maximum * raw[i] // highest
            total[i] += weight * (maximum - scaled if reverse else scaled)
    else:
        for i in range(len(raw)):
            # The quotient of whole numbers that floats hold exactly never rounds up to the next one.
            scaled = floor(float(maximum * raw[i]) / highest)
            total[i] += weight * (maximum - scaled if reverse else scaled)
    return int(highest)


def choose(total: Any, fits: Any, tied: Any) -> Any:
    """Find the feasible rows with the highest total: fill in ``tied`` (intp[n_rows]), return (total, how many, feasible)."""
    best, n_feasible, n_tied = _LEAST, 0, 0
    for i in range(len(total)):
        best = max(best, total[i] if fits[i] else _LEAST)
        n_feasible += fits[i]
    for i in range(len(total)):
        if fits[i] and total[i] == best:
            tied[n_tied] = i
            n_tied += 1
    return int(best), n_tied, int(n_feasible)


class LookKernels(NamedTuple):
    """The functions of this module."""

    fit: Callable[..., None]
    apply: Callable[..., None]
    add_scaled: Callable[..., int]
    choose: Callable[..., tuple[int, int, int]]


LOOK = Group("look", LookKernels(fit, apply, add_scaled, choose), n_worth_loading=1)
"""A look takes well below a millisecond in NumPy: never worth loading Numba by itself, only ahead of time."""
