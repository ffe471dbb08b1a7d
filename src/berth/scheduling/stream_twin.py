"""The mixed stream in NumPy: equal to `berth.scheduling.stream_kernels`, for where Numba is not installed.

A decision scans the column of its shape; a placement computes its row for all shapes at once.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import BoolColumn, IntColumn
from berth.framework.rules import RuleKind
from berth.plugins.pod_topology_spread.logarithm import log
from berth.scheduling.stream_columns import Columns, Counts, Output, Rules
from berth.scheduling.ties import TieBreaker

Floats = NDArray[np.float64]
_ROWS_AT_A_TIME = 256


class Twin:
    """Decides for live shapes over their columns; computes all bases first."""

    def __init__(self, rules: Rules, columns: Columns, counts: Counts) -> None:
        self._rules = rules
        self._columns = columns
        self._counts = counts
        self._closed = int(np.iinfo(columns.base.dtype).min)
        # By column: what is done is little, so what counts is how many calls it takes.
        self._used, self._offered = columns.used.T[..., None], columns.allocatable.T[..., None]
        self._needed = rules.needed[:, None]
        self._scores = [_Score(rules, q, columns.allocatable) for q in range(len(rules.kinds))]
        n_rows = len(columns.base)
        for first in range(0, n_rows, _ROWS_AT_A_TIME):
            rows = slice(first, min(n_rows, first + _ROWS_AT_A_TIME))
            columns.base[rows] = self._rescored(rows)
        self._n_closed: list[int] = (columns.base == self._closed).sum(axis=1).tolist()

    def run(
        self, order: NDArray[np.int32], first: int, last: int, ties: TieBreaker, output: Output
    ) -> tuple[int, bool]:
        """Decide for the pods of ``order[first:last]``; return where it stopped, and whether to normalise again."""
        columns, counts = self._columns, self._counts
        for i, s in enumerate(order[first:last].tolist(), first):
            output.n_feasible[i] = n_feasible = int(columns.n_feasible[s])
            if not n_feasible:
                continue
            total = columns.base[:, s]
            if counts.weights[s]:
                total = self._with_spread(s, n_feasible)
            best = total[total.argmax()]
            tied = (total == best).nonzero()[0]
            row = int(tied[ties.index(len(tied))])
            output.row[i] = row
            output.total[i] = best
            if self.place(row, s):
                return i + 1, True
        return last, False

    def place(self, row: int, shape: int) -> bool:
        """Count a pod of a shape on a row; tell whether scores have to be normalised again."""
        columns, counts = self._columns, self._counts
        columns.used[row] += self._rules.held[shape]
        kind, before = columns.kind[row], columns.base[row]
        after = self._rescored(slice(row, row + 1))[0]
        if len(counts.adds):
            adds = counts.adds[shape]
            counts.pods[row] += adds
            counts.per_domain[counts.domain[row]] += adds & counts.eligible[kind]
        is_closed = after == self._closed
        n_closed = int(np.count_nonzero(is_closed))
        if n_closed == self._n_closed[row]:
            columns.base[row] = after
            return False
        self._n_closed[row] = n_closed
        closing = is_closed & (before != self._closed)
        columns.base[row] = after
        columns.n_feasible[closing] -= 1
        for e, extreme in enumerate(columns.extremes):
            held = extreme[kind] & closing
            columns.n_extreme[e, held] -= 1
            columns.is_stale[held & (columns.n_extreme[e] == 0)] = True
        return bool(columns.is_stale.any())

    def _rescored(self, rows: slice) -> NDArray[np.signedinteger]:
        """Compute the base of rows for all shapes."""
        fixed = self._columns.fixed[self._columns.kind[rows]]
        used, offered = self._used[:, rows], self._offered[:, rows]
        free = offered - used
        fits = fixed != self._closed
        fits &= np.logical_and.reduce(self._needed <= free)
        total = fixed.astype(np.float64)
        for score in self._scores:
            score.add_to(total, used, offered, free)
        return np.where(fits, total, self._closed).astype(fixed.dtype)

    def _with_spread(self, s: int, n_feasible: int) -> IntColumn:
        """Return the shape's totals over all rows, with its score of spreading."""
        columns, counts = self._columns, self._counts
        is_open = columns.base[:, s] != self._closed
        pods = counts.pods[:, s].astype(np.int64)
        width = int(pods.max()) + 1
        lane = counts.domain * width + pods
        live = np.bincount(lane[is_open], minlength=counts.n_domains * width).reshape(-1, width) > 0
        score = np.zeros(live.shape)
        if counts.host_skew[s] > 0:
            score += np.arange(width) * log(float(n_feasible + 2)) + float(counts.host_skew[s] - 1)
        if counts.domain_skew[s] > 0:
            by_domain = log(float(int(live.any(axis=1).sum()) + 2))
            of_domain = counts.per_domain[:, s] * by_domain + float(counts.domain_skew[s] - 1)
            score += np.where(counts.is_named, of_domain, 0.0)[:, None]
        whole = np.trunc(score)
        rounded = (whole + (score - whole >= 0.5)).astype(np.int64)
        highest, lowest = int(rounded[live].max()), int(rounded[live].min())
        top = int(counts.maxima[s])
        flipped = top * (highest + lowest - rounded) // highest if highest > 0 else np.full_like(rounded, top)
        total: IntColumn = columns.base[:, s] + (counts.weights[s] * flipped).ravel()[lane]
        total[~is_open] = self._closed
        return total


class _Score:
    """A score by a rule of resources, for all shapes.

    Amounts are float64[n_terms, n_rows, n_shapes], or one of them alone for all rows or shapes.
    """

    def __init__(self, rules: Rules, q: int, allocatable: Floats) -> None:
        at = rules.columns[q][rules.columns[q] >= 0]
        n = len(at)
        self._kind, self._top = RuleKind(int(rules.kinds[q])), float(rules.maxima[q])
        in_a_row = n > 0 and bool((np.diff(at) == 1).all())
        self._at: Any = slice(int(at[0]), int(at[0]) + n) if in_a_row else at
        self._has_all = bool((allocatable[:, at] > 0).all())
        self._asked, self._shares = rules.asked[q, :n, None], rules.shares[q, :n, None]
        self._is_plain = bool((self._shares == 1).all())
        self._of_shares = np.maximum(self._shares.sum(axis=0), 1.0)
        weights = rules.weights[q]
        self._weights = None if (weights == 1).all() else weights
        if self._kind is RuleKind.BALANCED_GAIN:
            # The last shape is none at all: how even the shares are before.
            self._asked = np.concatenate((self._asked, np.zeros((n, 1, 1))), axis=2)
        elif self._kind is RuleKind.LEAST_ALLOCATED:
            self._asked = self._asked * self._top

    def add_to(self, total: Floats, used: Floats, offered: Floats, free: Floats) -> None:
        """Add the weighted scores of rows to their totals (float64[n_rows, n_shapes])."""
        if not len(self._asked):
            return
        used, offered, free = used[self._at], offered[self._at], free[self._at]
        has = None if self._has_all else offered > 0
        or_one = offered if has is None else np.where(has, offered, 1.0)
        if self._kind is RuleKind.LEAST_ALLOCATED:
            amount = free * self._top - self._asked
            score = self._mean(np.maximum(amount, 0.0, out=amount), or_one, has)
        elif self._kind is RuleKind.MOST_ALLOCATED:
            amount = np.minimum(used + self._asked, offered)
            amount *= self._top
            score = self._mean(amount, or_one, has)
        elif self._kind is RuleKind.BALANCED_GAIN:
            score = self._gain(used, or_one, has)
        elif self._kind is RuleKind.BALANCED_SHARES:
            share = (used + self._asked) / or_one
            if has is not None:
                share = np.where(has, share, 1.0)
            score = np.floor((1.0 - np.abs(share[0] - share[1])) * self._top)
            score = np.where((share < 1).all(axis=0), score, 0.0)
        else:
            requested = used + self._asked
            amount = requested if self._kind is RuleKind.MOST_REQUESTED else offered - requested
            each = np.where(requested <= offered, np.floor(amount * self._top / or_one), 0.0)
            if has is not None:
                each *= has
            score = np.floor(each.sum(axis=0) * 0.5)
        if self._weights is not None:
            score *= self._weights
        total += score

    def _mean(self, amount: Floats, offered: Floats, has: BoolColumn | None) -> Floats:
        """Return the weighted mean of whole scores, of the resources that a row has."""
        amount /= offered
        np.floor(amount, out=amount)
        weights = self._of_shares
        if has is not None:
            shares = self._shares * has
            weights = np.maximum(shares.sum(axis=0), 1.0)
            amount *= shares
        elif not self._is_plain:
            amount *= self._shares
        mean = amount[0]
        for each in amount[1:]:
            mean += each
        mean /= weights
        return np.floor(mean, out=mean)

    def _gain(self, used: Floats, offered: Floats, has: BoolColumn | None) -> Floats:
        """Score how much more alike the two shares are with the pod than without."""
        share = self._asked + used
        share /= offered
        np.minimum(share, 1.0, out=share)
        even = share[0]
        even -= share[1]
        np.abs(even, out=even)
        even *= -0.5
        even += 1.0
        even *= self._top
        np.floor(even, out=even)
        half = float(int(self._top) // 2)
        # The gain and a half of the best, halved and put on a half: halves are whole, so that may be done first.
        before = even[:, -1:] - 3 * half
        gain = even[:, :-1]
        gain -= before
        if has is not None:
            gain = np.where(has.all(axis=0), gain, 3 * half)
        gain *= 0.5
        return np.floor(gain, out=gain)
