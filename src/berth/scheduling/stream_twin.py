"""The mixed stream in NumPy: equal to `berth.scheduling.stream_kernels`, for where Numba is not installed.

A decision scans the column of its shape; a placement computes its row for all shapes at once.
"""

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import IntColumn
from berth.framework.rules import RuleKind
from berth.plugins.pod_topology_spread.logarithm import log
from berth.scheduling.stream_columns import Columns, Counts, Output, Rules
from berth.scheduling.ties import TieBreaker

Floats = NDArray[np.float64]
_ROWS_AT_A_TIME = 256


class Twin:
    """Decides for live shapes over their columns."""

    def __init__(self, rules: Rules, columns: Columns, counts: Counts) -> None:
        self._rules = rules
        self._columns = columns
        self._counts = counts
        self._closed = int(np.iinfo(columns.base.dtype).min)
        self._in_order = np.arange(len(columns.base), dtype=np.int64)
        self._kinds = [RuleKind(kind) for kind in rules.kinds.tolist()]
        self._weights = [np.maximum(shares.sum(axis=0), 1.0) for shares in rules.shares]
        self._at = [columns_of[columns_of >= 0] for columns_of in rules.columns]
        self._asked = [asked[: len(at)] for asked, at in zip(rules.asked, self._at, strict=True)]
        for q, kind in enumerate(self._kinds):
            if kind is RuleKind.BALANCED_GAIN:
                self._asked[q] = np.hstack((self._asked[q], np.zeros((len(self._at[q]), 1))))
        self._shares = [shares[: len(at)] for shares, at in zip(rules.shares, self._at, strict=True)]

    def build(self) -> None:
        """Compute all bases."""
        n_rows = len(self._columns.base)
        for first in range(0, n_rows, _ROWS_AT_A_TIME):
            rows = slice(first, min(n_rows, first + _ROWS_AT_A_TIME))
            self._columns.base[rows] = self._rescored(rows)

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
            best = total.max()
            row = ties.take((total == best).nonzero()[0], self._in_order)
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
        closing = (before != self._closed) & (after == self._closed)
        columns.base[row] = after
        if not closing.any():
            return False
        columns.n_feasible[closing] -= 1
        for e, extreme in enumerate(columns.extremes):
            held = extreme[kind] & closing
            columns.n_extreme[e, held] -= 1
            columns.is_stale[held & (columns.n_extreme[e] == 0)] = True
        return bool(columns.is_stale.any())

    def _rescored(self, rows: slice) -> NDArray[np.signedinteger]:
        """Compute the base of rows for all shapes."""
        rules, columns = self._rules, self._columns
        used, allocatable, fixed = (
            columns.used[rows],
            columns.allocatable[rows],
            columns.fixed[columns.kind[rows]],
        )
        fits = (rules.needed <= (allocatable - used)[..., None]).all(axis=1)
        fits &= fixed != self._closed
        total = fixed.astype(np.float64)
        for q, (kind, at) in enumerate(zip(self._kinds, self._at, strict=True)):
            if len(at):
                score = self._score(q, kind, used[:, at, None], allocatable[:, at, None])
                score *= rules.weights[q]
                total += score
        total[~fits] = self._closed
        return total.astype(fixed.dtype)

    def _score(self, q: int, kind: RuleKind, used: Floats, offered: Floats) -> Floats:
        """Score rows for all shapes: float64[n_rows, n_shapes] of float64[n_rows, n_terms, 1]."""
        asked, top = self._asked[q], float(self._rules.maxima[q])
        has = offered > 0
        requested = asked + used
        has_all = bool(has.all())
        offered_or_one = offered if has_all else np.where(has, offered, 1.0)
        if kind in (RuleKind.LEAST_ALLOCATED, RuleKind.MOST_ALLOCATED):
            if kind is RuleKind.LEAST_ALLOCATED:
                amount = np.subtract(offered, requested, out=requested)
                np.maximum(amount, 0.0, out=amount)
            else:
                amount = np.minimum(requested, offered, out=requested)
            amount *= top
            amount /= offered_or_one
            np.floor(amount, out=amount)
            shares, weights = self._shares[q], self._weights[q]
            if not has_all:
                shares = shares * has
                weights = np.maximum(shares.sum(axis=1), 1.0)
            amount *= shares
            mean = amount.sum(axis=1)
            mean /= weights
            return np.floor(mean, out=mean)
        if kind is RuleKind.BALANCED_GAIN:
            requested /= offered_or_one
            # The last shape is none at all: how even the shares are before.
            even = _evenness(requested, top)
            half = float(int(top) // 2)
            gain = even[:, :-1] - even[:, -1:]
            if not has_all:
                gain = np.where(has.all(axis=1), gain, 0.0)
            gain += half
            gain *= 0.5
            np.floor(gain, out=gain)
            gain += half
            return gain
        if kind is RuleKind.BALANCED_SHARES:
            share = np.where(has, requested / offered_or_one, 1.0)
            score = np.floor((1.0 - np.abs(share[:, 0] - share[:, 1])) * top)
            return np.where((share < 1).all(axis=1), score, 0.0)
        amount = requested if kind is RuleKind.MOST_REQUESTED else offered - requested
        each = np.where(has & (requested <= offered), np.floor(amount * top / offered_or_one), 0.0)
        return np.floor(each.sum(axis=1) * 0.5)

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


def _evenness(shares: Floats, top: float) -> Floats:
    """Score how alike the two shares are."""
    np.minimum(shares, 1.0, out=shares)
    difference = shares[:, 0] - shares[:, 1]
    np.abs(difference, out=difference)
    difference *= -0.5
    difference += 1.0
    difference *= top
    return np.floor(difference, out=difference)
