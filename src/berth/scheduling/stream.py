"""Pods of many shapes in any order, with the very decisions of placing them one at a time.

Shapes whose answers move with nothing but rows' resources and the counts of spreading take part: their totals stand side
by side, and a placement brings one row up to date for all of them. Pods of the other shapes are decided one at a time in
between.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.cluster.cluster import Cluster, Incoming
from berth.scheduling.decide import decide
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.row_kinds import RowKinds
from berth.scheduling.stream_columns import Output
from berth.scheduling.stream_engine import CantHold, StreamEngine
from berth.scheduling.stream_kernels import STREAM
from berth.scheduling.stream_shapes import LiveShape, live_shape
from berth.scheduling.ties import TieBreaker

MAX_CELLS = 32 << 20
"""How many (row, shape) pairs are kept at a time, of 5 to 16 bytes each."""


@dataclass(frozen=True, slots=True)
class StreamPlacements:
    """What was decided of each pod, in the order given; -1 where nothing fits (of ``n_feasible``: 0).

    Attributes
    ----------
    row, n_feasible : int32[n_pods]
        The node's row, and how many nodes were feasible.
    total : int64[n_pods]
        The node's weighted total.
    """

    row: NDArray[np.int32]
    total: NDArray[np.int64]
    n_feasible: NDArray[np.int32]


def place_stream(
    evaluations: Sequence[Evaluation],
    order: NDArray[np.int32],
    ties: TieBreaker,
) -> StreamPlacements:
    """Decide for pods of several shapes, one after another, each seeing those before it.

    The cluster is left as it was: whoever takes the placements assumes them.

    Parameters
    ----------
    evaluations : sequence of Evaluation
        One for each shape, all of one profile and cluster.
    order : int32[n_pods]
        The index of each pod's shape.
    """
    n = len(order)
    output = Output(np.full(n, -1, dtype=np.int32), np.full(n, -1), np.zeros(n, dtype=np.int32))
    if n and len(evaluations):
        cluster = evaluations[int(order[0])].cluster
        if len(cluster.nodes):
            with _assumed(cluster) as assume:
                _Stream(cluster, evaluations, order, ties, output, assume).run()
    return StreamPlacements(*output)


class _Assumed:
    """Pods that the cluster counts for the time being."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.ids: list[int] = []

    def pod(self, pod: Incoming, row: int) -> None:
        self.ids.append(self._cluster.assume(pod, row))


@contextmanager
def _assumed(cluster: Cluster) -> Iterator[_Assumed]:
    assumed = _Assumed(cluster)
    try:
        yield assumed
    finally:
        for pod in reversed(assumed.ids):
            cluster.forget(pod)


class _Stream:
    """A stream under way, cut into chunks that fit into memory, and these at every pod that goes alone."""

    def __init__(
        self,
        cluster: Cluster,
        evaluations: Sequence[Evaluation],
        order: NDArray[np.int32],
        ties: TieBreaker,
        output: Output,
        assume: _Assumed,
    ) -> None:
        self._cluster = cluster
        self._evaluations = evaluations
        self._order = order
        self._ties = ties
        self._output = output
        self._assume = assume
        self._kernels = STREAM.kernels_for(len(order))
        self._max_live = max(1, MAX_CELLS // max(1, cluster.nodes.n_rows))
        self._barred: set[int] = set()
        self._pods: dict[int, Incoming] = {}
        self._alone: dict[int, Evaluation] = {}
        self._n_synced = 0

    def run(self) -> None:
        """Decide for all pods."""
        start = 0
        while start < len(self._order):
            start = self._chunk(start, self._end_of_chunk(start))
            if start < len(self._order):
                self._sync(start)

    def _end_of_chunk(self, start: int) -> int:
        """Return where the first pod comes that would be of one shape too many."""
        found, first = np.unique(self._order[start:], return_index=True)
        if len(found) <= self._max_live:
            return len(self._order)
        return start + int(np.sort(first)[self._max_live])

    def _chunk(self, start: int, stop: int) -> int:
        """Decide for a run of pods; return how far it came, which is further than ``start``."""
        ids = np.unique(self._order[start:stop]).tolist()
        kinds = RowKinds(self._cluster.nodes.n_rows)
        live = self._live(ids, kinds)
        numbers = [*live, *(i for i in ids if i not in live)]
        spreading = {i for i, shape in live.items() if shape.spread is not None}
        try:
            pods = self._pods_of(numbers)
            engine = StreamEngine(self._cluster, live, kinds, pods, self._kernels) if live else None
        except CantHold:
            self._barred |= spreading or set(live)
            return start
        local = np.full(max(ids) + 1, -1, dtype=np.int32)
        local[list(live)] = np.arange(len(live), dtype=np.int32)
        order = local[self._order[start:stop]]
        del live
        output = self._output.after(start)
        alone = (start + np.flatnonzero(order < 0)).tolist()
        at = start
        for cut in (*alone, stop):
            try:
                while at < cut and engine is not None:
                    at = start + engine.run(order, at - start, cut - start, self._ties, output)
                    engine.settle()
                if cut < stop:
                    row, at = self._one(cut), cut + 1
                    if engine is not None and row >= 0:
                        engine.placed(row, numbers.index(int(self._order[cut])))
                        engine.settle()
            except CantHold:
                self._barred |= spreading
                return at
        return stop

    def _pods_of(self, ids: Sequence[int]) -> list[Incoming]:
        return [self._pods[i] for i in ids]

    def _live(self, ids: Sequence[int], kinds: RowKinds) -> dict[int, LiveShape]:
        """Find out which shapes take part."""
        live: dict[int, LiveShape] = {}
        domain = None
        # One block: small arrays between those of evaluations that come and go would keep the memory from being reused.
        fits = np.empty((len(ids), -(-self._cluster.nodes.n_rows // 8)), dtype=np.uint8)
        for i, its_fits in zip(ids, fits, strict=True):
            evaluation = self._alone.get(i) or self._evaluations[i]
            self._pods[i] = evaluation.pod
            shape = None if i in self._barred else live_shape(evaluation, kinds)
            if shape is not None and shape.spread is not None and shape.spread.domain is not None:
                # All that spread have to do so over the same domains.
                if domain is None:
                    domain = shape.spread.domain
                shape = shape.over(domain)
            if shape is None:
                self._alone[i] = evaluation
            else:
                its_fits[:] = np.packbits(shape.fits)
                shape.fits = its_fits
                live[i] = shape
        for i, shape in list(live.items()):
            if shape.is_moved_by(self._pods[other] for other in ids if other != i):
                del live[i]
                self._alone[i] = self._evaluations[i]
            # It holds on to columns.
            shape.watching = []
        return live

    def _sync(self, stop: int) -> None:
        """Have the cluster count what was decided before ``stop``."""
        rows = self._output.row[self._n_synced : stop].tolist()
        for i, row in enumerate(rows, self._n_synced):
            if row >= 0:
                self._assume.pod(self._pods[int(self._order[i])], row)
        self._n_synced = stop

    def _one(self, at: int) -> int:
        """Decide for a pod that goes alone; return its row, or -1."""
        self._sync(at)
        decision = decide(self._alone[int(self._order[at])], self._ties)
        self._output.n_feasible[at] = decision.n_feasible
        if decision.row is None:
            return -1
        self._output.row[at] = decision.row
        self._output.total[at] = decision.score or 0
        return decision.row
