"""Puts the columns of a mixed stream together and drives the loops over them, compiled or not."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import BoolColumn
from berth.cluster.cluster import Cluster, Incoming
from berth.framework.rules import Term
from berth.scheduling.row_kinds import RowKinds
from berth.scheduling.stream_columns import Columns, Counts, Output, Rules, Tree
from berth.scheduling.stream_kernels import OVERFLOWN, StreamKernels
from berth.scheduling.stream_shapes import LiveShape
from berth.scheduling.stream_twin import Twin
from berth.scheduling.ties import TieBreaker

MAX_EXACT = 1 << 53
MAX_LANE_CELLS = 64 << 20
"""How many lanes times tree nodes are kept at most, of 6 bytes each."""
_INT16_TOP = 32_767
_ROWS_AT_A_TIME = 2048


class CantHold(Exception):
    """The columns would be inexact or too large."""


class StreamEngine:
    """Live shapes over the nodes of a cluster. The cluster is not changed.

    Parameters
    ----------
    live : mapping of index to LiveShape
        Those that take part, in the order in which they are numbered.
    kinds : RowKinds
        The rows that are alike in all that does not move for them.
    pods : sequence of Incoming
        All shapes of the stream, those that take part first.
    kernels : StreamKernels or None
        The compiled loops; without them the twin runs.
    """

    def __init__(
        self,
        cluster: Cluster,
        live: Mapping[int, LiveShape],
        kinds: RowKinds,
        pods: Sequence[Incoming],
        kernels: StreamKernels | None,
    ) -> None:
        self._shapes = list(live.values())
        self._kinds = kinds
        rank = cluster.nodes.rank
        rows = np.argsort(rank)
        self._rows = rows[cluster.nodes.alive[rows]]
        self._at = np.full(cluster.nodes.n_rows, -1, dtype=np.int64)
        self._at[self._rows] = np.arange(len(self._rows))
        weights = max(shape.total_of_weights for shape in self._shapes)
        self._dtype: Any = np.int16 if weights * 100 < _INT16_TOP else np.int32
        self._closed = int(np.iinfo(self._dtype).min)
        self._kernels = kernels
        keys = list(dict.fromkeys(_key(term) for shape in self._shapes for term in shape.terms()))
        self._rules = self._make_rules(keys, pods)
        self._columns = self._make_columns(cluster, keys)
        self._counts = self._make_counts(pods)
        if kernels is not None:
            kernels.rescore_all(self._closed, self._rules, self._columns)
            self._plant(1)
            self._rewindow(kernels)
        else:
            self._twin = Twin(self._rules, self._columns, self._counts)
        self._is_overflown = False
        self._columns.n_feasible[:] = (self._columns.base != self._closed).sum(axis=0)

    def run(self, order: NDArray[np.int32], first: int, last: int, ties: TieBreaker, output: Output) -> int:
        """Decide for pods of ``order[first:last]``; return where it stopped: `settle` then, and go on."""
        if self._kernels is not None and ties.rule != "random":
            turn = ties.counter if ties.rule == "round-robin" else -1
            at, _, status = self._kernels.run(
                order, first, last, turn, self._closed, self._rules, self._columns, self._counts, self._tree, output
            )  # fmt: skip
            ties.counter += int((output.row[first:at] >= 0).sum())
            self._is_overflown = status == OVERFLOWN
        else:
            at, _ = self._twin_now().run(order, first, last, ties, output)
        placed = output.row[first:at]
        placed[placed >= 0] = self._rows[placed[placed >= 0]]
        return int(at)

    def placed(self, row: int, shape: int) -> None:
        """Count a pod of any shape of the stream on a row of the cluster; `settle` then."""
        at = int(self._at[row])
        if self._kernels is not None:
            status = self._kernels.place(
                at, shape, self._closed, self._rules, self._columns, self._counts, self._tree
            )
            self._is_overflown = status == OVERFLOWN
        else:
            self._twin.place(at, shape)

    def settle(self) -> None:
        """Do what the last placement has left to do.

        Raises
        ------
        CantHold
            There are too many classes of rows for the memory.
        """
        if self._is_overflown and self._kernels is not None:
            self._is_overflown = False
            self._rewindow(self._kernels)
        self._normalize_stale()

    def _twin_now(self) -> Twin:
        if self._kernels is not None:
            # The random rule draws in Python; the tree is not looked at any more.
            self._kernels = None
            self._twin = Twin(self._rules, self._columns, self._counts)
        return self._twin

    # -- columns -----------------------------------------------------------------------------------------------------

    def _make_rules(self, keys: list[tuple[bool, int]], pods: Sequence[Incoming]) -> Rules:
        shapes, number = self._shapes, {key: k for k, key in enumerate(keys)}
        places = sorted({place for shape in shapes for place in shape.scores})
        n_terms = max(1, len(keys))
        n_shapes, n_rules = len(shapes), len(places)
        rules = Rules(
            needed=np.full((len(keys), n_shapes), -np.inf),
            kinds=np.zeros(n_rules, dtype=np.int64),
            maxima=np.zeros(n_rules),
            weights=np.zeros((n_rules, n_shapes)),
            columns=np.full((n_rules, n_terms), -1, dtype=np.int64),
            asked=np.zeros((n_rules, n_terms, n_shapes)),
            shares=np.zeros((n_rules, n_terms, n_shapes)),
            held=np.array([[_held(pod, key) for key in keys] for pod in pods], dtype=np.float64).reshape(
                len(pods), len(keys)
            ),
        )
        for s, shape in enumerate(shapes):
            for term in shape.needs:
                k = number[_key(term)]
                rules.needed[k, s] = max(rules.needed[k, s], term.asked)
            for q, place in enumerate(places):
                if place not in shape.scores:
                    continue
                weight, rule = shape.scores[place]
                rules.kinds[q], rules.maxima[q], rules.weights[q, s] = rule.kind, rule.maximum, weight
                for term in rule.terms:
                    k = number[_key(term)]
                    j = _slot(rules.columns[q], k)
                    rules.asked[q, j, s], rules.shares[q, j, s] = term.asked, term.weight
        return rules

    def _make_columns(self, cluster: Cluster, keys: list[tuple[bool, int]]) -> Columns:
        rows, n_shapes = self._rows, len(self._shapes)
        size = (len(rows), len(keys))
        used, allocatable = np.zeros(size), np.zeros(size)
        for k, (counts_silent, resource_id) in enumerate(keys):
            column = cluster.requested.of(resource_id)
            if counts_silent:
                column = (cluster.nonzero_milli_cpu, cluster.nonzero_memory)[resource_id]
            offered = cluster.nodes.allocatable.of(resource_id)
            if max(int(np.abs(column).max(initial=0)), int(offered.max(initial=0))) * 128 >= MAX_EXACT:
                raise AssertionError("there are as many places as columns")
            used[:, k], allocatable[:, k] = column[rows], offered[rows]
        n_extremes = 2 * max(len(shape.uneven) for shape in self._shapes)
        layout: Any = "F" if self._kernels is None else "C"
        columns = Columns(
            used=used,
            allocatable=allocatable,
            kind=self._kinds.of_row[rows],
            base=np.empty((len(rows), n_shapes), dtype=self._dtype, order=layout),
            fixed=np.empty((len(self._kinds.first), n_shapes), dtype=self._dtype),
            n_feasible=np.zeros(n_shapes, dtype=np.int64),
            extremes=np.zeros((n_extremes, len(self._kinds.first), n_shapes), dtype=np.bool_),
            n_extreme=np.zeros((n_extremes, n_shapes), dtype=np.int64),
            is_stale=np.zeros(n_shapes, dtype=np.bool_),
        )
        for s, shape in enumerate(self._shapes):
            shape.may_fit = self._kinds.now(shape.may_fit)
            for one in shape.uneven:
                one.raw = self._kinds.now(one.raw)
            fits = np.unpackbits(shape.fits, count=len(self._at)).view(np.bool_)
            self._fix(columns, s, fits[rows])
            shape.fits = shape.fits[:0]
        return columns

    def _fix(self, columns: Columns, s: int, is_open: BoolColumn) -> None:
        """Normalise a shape's constant scores over its open rows."""
        shape = self._shapes[s]
        if not shape.uneven:
            columns.fixed[:, s] = np.where(shape.may_fit, shape.even, self._closed)
            return
        n_open = np.bincount(columns.kind[is_open], minlength=len(columns.fixed))
        columns.fixed[:, s] = shape.fixed(n_open > 0, self._kinds, self._closed)
        for i, one in enumerate(shape.uneven):
            raw = one.raw[n_open > 0]
            for e, extreme in ((2 * i, raw.max(initial=0)), (2 * i + 1, raw.min(initial=0))):
                columns.extremes[e, :, s] = holds = one.raw == extreme
                columns.n_extreme[e, s] = n_open[holds].sum()

    def _make_counts(self, pods: Sequence[Incoming]) -> Counts:
        shapes, rows = self._shapes, self._rows
        n_rows, n_shapes = len(rows), len(shapes)
        spreads = [shape.spread for shape in shapes]
        if not any(spreads):
            n_rows = 0
        domain = next((one.domain for one in spreads if one and one.domain is not None), None)
        slots = np.zeros(len(rows), dtype=np.int32) if domain is None else domain[rows]
        found, domains = np.unique(slots, return_inverse=True)
        counts = Counts(
            n_domains=len(found),
            domain=domains.astype(np.int64),
            is_named=found > 0,
            pods=np.zeros((n_rows, n_shapes), dtype=np.int16),
            eligible=np.zeros((len(self._kinds.first) if n_rows else 0, n_shapes), dtype=np.bool_),
            per_domain=np.zeros((len(found), n_shapes), dtype=np.int64),
            lowest=np.zeros(n_shapes, dtype=np.int64),
            adds=np.zeros((len(pods) if n_rows else 0, n_shapes), dtype=np.bool_),
            weights=np.zeros(n_shapes, dtype=np.int64),
            maxima=np.zeros(n_shapes, dtype=np.int64),
            host_skew=np.zeros(n_shapes, dtype=np.int64),
            domain_skew=np.zeros(n_shapes, dtype=np.int64),
        )
        for s, (shape, one) in enumerate(zip(shapes, spreads, strict=True)):
            if one is None or shape.eligible is None or shape.counted is None:
                continue
            counted_on, n_counted = shape.counted
            at = self._at[counted_on]
            counts.pods[at[at >= 0], s] = n_counted[at >= 0]
            counts.eligible[:, s] = self._kinds.now(shape.eligible)
            eligible = counts.eligible[self._columns.kind, s]
            counts.per_domain[:, s] = np.bincount(
                domains[eligible], weights=counts.pods[eligible, s], minlength=len(found)
            )
            counts.adds[:, s] = [one.counts(pod) for pod in pods]
            counts.weights[s], counts.maxima[s] = shape.spread_weight, one.maximum
            counts.host_skew[s], counts.domain_skew[s] = one.host_skew, one.domain_skew
            shape.spread = None
        return counts

    # -- the tree ----------------------------------------------------------------------------------------------------

    def _plant(self, n_heights: int) -> None:
        n_lanes = self._counts.n_domains * n_heights * len(self._shapes)
        if n_lanes * (len(self._rows) // 15 + 1) > MAX_LANE_CELLS:
            raise CantHold
        self._n_heights = n_heights
        # The old one goes first: both at once would take twice the memory.
        self._tree = Tree.empty(1, 1, self._dtype)
        self._tree = Tree.empty(len(self._rows), n_lanes, self._dtype)

    def _rewindow(self, kernels: StreamKernels) -> None:
        """Give every count of an open row a lane."""
        if len(self._counts.adds):
            top = np.iinfo(np.int16).max
            lowest = np.full(len(self._shapes), top, dtype=np.int16)
            highest = np.full(len(self._shapes), -1, dtype=np.int16)
            # In parts, for what is made of them is as large as they are.
            for first in range(0, len(self._rows), _ROWS_AT_A_TIME):
                rows = slice(first, first + _ROWS_AT_A_TIME)
                pods, is_open = self._counts.pods[rows], self._columns.base[rows] != self._closed
                np.minimum(lowest, np.where(is_open, pods, top).min(axis=0), out=lowest)
                np.maximum(highest, np.where(is_open, pods, -1).max(axis=0), out=highest)
            self._counts.lowest[:] = np.where(highest < 0, 0, lowest)
            span = int((highest - self._counts.lowest).max()) + 1
            # One more than is needed, or the next pod comes back here.
            if span >= self._n_heights or span + 2 < self._n_heights // 2:
                self._plant(span + 1)
        kernels.grow(self._closed, self._columns, self._counts, self._tree)

    def _normalize_stale(self) -> None:
        columns = self._columns
        if not columns.is_stale.any():
            return
        for s in np.flatnonzero(columns.is_stale).tolist():
            columns.is_stale[s] = False
            here = columns.base[:, s] != self._closed
            if not here.any():
                continue
            before = columns.fixed[:, s].copy()
            self._fix(columns, s, here)
            columns.base[here, s] += (columns.fixed[:, s] - before)[columns.kind[here]]
        if self._kernels is not None:
            self._kernels.grow(self._closed, self._columns, self._counts, self._tree)


def _key(term: Term) -> tuple[bool, int]:
    return term.counts_silent, term.resource_id


def _held(pod: Incoming, key: tuple[bool, int]) -> int:
    counts_silent, resource_id = key
    return pod.info.nonzero[resource_id] if counts_silent else pod.info.held.get(resource_id, 0)


def _slot(columns: NDArray[np.int64], k: int) -> int:
    """Return where a column stands in a rule, putting it there if it is not yet."""
    for j, known in enumerate(columns.tolist()):
        if known in (k, -1):
            columns[j] = k
            return j
    raise CantHold
