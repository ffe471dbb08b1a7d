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


class Twin:
    """Decides for live shapes over their columns."""

    def __init__(self, rules: Rules, columns: Columns, counts: Counts) -> None:
        self._rules = rules
        self._columns = columns
        self._counts = counts
        self._closed = int(np.iinfo(columns.base.dtype).min)
        self._in_order = np.arange(len(columns.base), dtype=np.int64)
        self._kinds = [RuleKind(kind) for kind in rules.kinds.tolist()]

    def build(self) -> None:
        """Compute all bases."""
        for row in range(len(self._columns.base)):
            self._columns.base[row] = self.rescored(row)

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
        before = columns.base[row]
        after = self.rescored(row)
        if len(counts.adds):
            adds = counts.adds[shape]
            counts.pods[row] += adds
            counts.per_domain[counts.domain[row]] += adds & counts.eligible[row]
        closing = (before != self._closed) & (after == self._closed)
        columns.base[row] = after
        if not closing.any():
            return False
        columns.n_feasible[closing] -= 1
        for e, extreme in enumerate(columns.extremes):
            held = extreme[row] & closing
            columns.n_extreme[e, held] -= 1
            columns.is_stale[held & (columns.n_extreme[e] == 0)] = True
        return bool(columns.is_stale.any())

    def rescored(self, row: int) -> NDArray[np.signedinteger]:
        """Compute a row's base for all shapes."""
        rules, columns = self._rules, self._columns
        used, allocatable = columns.used[row], columns.allocatable[row]
        fixed = columns.fixed[row]
        fits = (rules.needed <= (allocatable - used)[:, None]).all(axis=0) & (fixed != self._closed)
        total = np.zeros(len(fixed))
        for q, kind in enumerate(self._kinds):
            at = rules.columns[q]
            at = at[at >= 0]
            if len(at):
                total += rules.weights[q] * self._score(q, kind, used[at], allocatable[at])
        return np.where(fits, fixed + total.astype(fixed.dtype), self._closed)

    def _score(self, q: int, kind: RuleKind, used: Floats, offered: Floats) -> Floats:
        rules = self._rules
        asked = rules.asked[q, : len(used)]
        top = float(rules.maxima[q])
        if kind in (RuleKind.LEAST_ALLOCATED, RuleKind.MOST_ALLOCATED):
            has = offered != 0
            offered, shares = offered[has, None], rules.shares[q, : len(used)][has]
            requested = asked[has] + used[has, None]
            if kind is RuleKind.LEAST_ALLOCATED:
                amount = np.maximum(offered - requested, 0.0)
            else:
                amount = np.minimum(requested, offered)
            scores = (np.floor(amount * top / offered) * shares).sum(axis=0)
            return np.floor(scores / np.maximum(shares.sum(axis=0), 1.0))
        if kind is RuleKind.BALANCED_GAIN:
            return _balanced_gain(asked, used, offered, top)
        requested = asked + used[:, None]
        if kind is RuleKind.BALANCED_SHARES:
            share = np.ones_like(requested)
            np.divide(requested, offered[:, None], out=share, where=offered[:, None] != 0)
            score = np.floor((1.0 - np.abs(share[0] - share[1])) * top)
            return np.where((share < 1).all(axis=0), score, 0.0)
        amount = requested if kind is RuleKind.MOST_REQUESTED else offered[:, None] - requested
        each = np.zeros_like(requested)
        usable = (offered[:, None] > 0) & (requested <= offered[:, None])
        np.divide(amount * top, offered[:, None], out=each, where=usable)
        return np.floor(np.floor(each).sum(axis=0) * 0.5)

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


def _balanced_gain(asked: Floats, used: Floats, offered: Floats, top: float) -> Floats:
    half = float(int(top) // 2)
    if not offered.all():
        return np.full(asked.shape[1], half + np.floor(half * 0.5))
    before = np.minimum(used / offered, 1.0)
    after = np.minimum((asked + used[:, None]) / offered[:, None], 1.0)
    was = np.floor((1.0 - abs((before[0] - before[1]) / 2)) * top)
    gain = np.floor((1.0 - np.abs((after[0] - after[1]) / 2)) * top) - was
    return half + np.floor((half + gain) * 0.5)
