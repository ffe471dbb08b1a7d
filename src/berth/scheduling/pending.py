"""Pods of any shapes, decided in the order in which they wait: the one way in for whoever has many.

Runs of equal pods are placed as batches, pods that change from one to the next as a stream; both decide as one at a time.
Where hardly any shape comes again, and where they are few, one at a time it is.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import NONE, IdColumn, IntColumn
from berth.cluster.cluster import Incoming
from berth.cluster.pods import PodIds
from berth.scheduling.batch import place_columns
from berth.scheduling.decide import decide
from berth.scheduling.evaluations import Evaluations
from berth.scheduling.stream import place_stream
from berth.scheduling.stream_kernels import STREAM
from berth.scheduling.ties import TieBreaker

LONG_RUN, LONG_RUN_COMPILED = 40, 200
"""From this mean length of runs on, batches take less time than a stream (measured): what it takes to begin a batch is
as much as so many decisions of a stream."""
FEW, N_ALIKE = 10, 3
"""Fewer pods than this, and so many more for each shape, are decided one by one in less time than it takes to begin a batch
or a stream, measured."""

Assume = Callable[[int, IntColumn, IdColumn], PodIds]
Way = Callable[["PlacedPods", IntColumn, TieBreaker, Assume], None]


@dataclass(frozen=True, slots=True)
class PlacedPods:
    """What was decided of each pod, in the order given.

    Attributes
    ----------
    row : int32[n_pods]
        The node's row; -1 where nothing fits.
    total : int64[n_pods]
        Its weighted total; -1 where nothing fits.
    n_feasible : int32[n_pods]
        How many nodes were feasible.
    pod : intp[n_pods]
        The pod's id in the cluster, which counts it now; -1 where nothing fits.
    """

    row: IdColumn
    total: IntColumn
    n_feasible: IdColumn
    pod: PodIds
    _evaluations: Evaluations
    _pods: Sequence[Incoming]
    _order: NDArray[np.int32]

    def scores(self) -> dict[str, IntColumn]:
        """Return the unweighted scores of the chosen nodes by priority (int64[n_pods] each; 0 where nothing fits).

        All is decided once more, one at a time: it takes as long as that. The cluster is left as it was.

        Raises
        ------
        RuntimeError
            The cluster has changed since.
        """
        cluster, placed = self._evaluations.cluster, np.flatnonzero(self.row >= 0).tolist()
        names = [score.name for score in self._evaluations.profile.scores]
        columns = np.zeros((len(names), len(self.row)), dtype=np.int64)
        values = {i: cluster.pods.get(int(self.pod[i])) for i in placed}
        # In this order pods get the ids back that they had.
        for i in reversed(placed):
            cluster.remove_pod(int(self.pod[i]))
        is_as_then = True
        for i in placed:
            is_as_then = is_as_then and self._score(i, columns[:, i])
            cluster.add_pod(values[i])
        if not is_as_then:
            raise RuntimeError("the cluster has changed since the pods were placed")
        return dict(zip(names, columns, strict=True))

    def _score(self, i: int, scores: IntColumn) -> bool:
        """Find the scores of a pod's node; tell whether they make the total that they made."""
        evaluation = self._evaluations.of(self._pods[int(self._order[i])])
        evaluation.mend()
        rows = np.flatnonzero(evaluation.fits)
        normalized, total = evaluation.weigh(rows)
        at = np.searchsorted(rows, self.row[i])
        if len(rows) != self.n_feasible[i] or at == len(rows) or rows[at] != self.row[i]:
            return False
        scores[:] = evaluation.scores_of(int(rows[at]))
        for k, column in normalized.items():
            scores[k] = column[at]
        return bool(total[at] == self.total[i])


def place_all(
    evaluations: Evaluations,
    pods: Sequence[Incoming],
    order: NDArray[np.int32],
    ties: TieBreaker,
    assume: Assume | None = None,
) -> PlacedPods:
    """Decide for pods of several shapes, one after another, each seeing those before it; the cluster counts them.

    Parameters
    ----------
    pods : sequence of Incoming
        One of each shape.
    order : int32[n_pods]
        The index of each pod's shape.
    assume : callable
        Is told a shape, which pods of that shape found a node (indices in ``order``) and the nodes' rows (int32[m]);
        counts them in the cluster and returns their ids. By default `Cluster.assume_all` does.
    """

    def assume_all(shape: int, at: IntColumn, rows: IdColumn) -> PodIds:
        return evaluations.cluster.assume_all(pods[shape], rows)

    n = len(order)
    starts = np.flatnonzero(np.diff(order, prepend=-1))
    placed = PlacedPods(
        row=np.full(n, NONE, dtype=np.int32),
        total=np.full(n, -1, dtype=np.int64),
        n_feasible=np.zeros(n, dtype=np.int32),
        pod=np.full(n, NONE, dtype=np.intp),
        _evaluations=evaluations,
        _pods=pods,
        _order=order,
    )
    _way(order, starts)(placed, starts, ties, assume or assume_all)
    return placed


def _way(order: NDArray[np.int32], starts: IntColumn) -> Way:
    """Choose how pods are decided quickest: one by one, as a stream if shapes come back, and soon, or as batches."""
    n, n_shapes = len(order), len(np.unique(order))
    if n < FEW + N_ALIKE * n_shapes:
        return _one_by_one
    long_run = LONG_RUN if STREAM.kernels_for(n) is None else LONG_RUN_COMPILED
    return _in_a_stream if len(starts) >= 2 * n_shapes and n < long_run * len(starts) else _in_runs


def _in_runs(placed: PlacedPods, starts: IntColumn, ties: TieBreaker, assume: Assume) -> None:
    """Place each run of equal pods as a batch."""
    for start, stop in pairwise([*starts.tolist(), len(placed.row)]):
        shape = int(placed._order[start])
        ids: list[PodIds] = []

        def assume_some(
            rows: IdColumn, shape: int = shape, start: int = start, ids: list[PodIds] = ids
        ) -> None:
            first = start + sum(map(len, ids))
            ids.append(assume(shape, np.arange(first, first + len(rows)), rows))

        outcome = place_columns(placed._evaluations.of(placed._pods[shape]), stop - start, ties, assume_some)
        here = slice(start, start + len(outcome.row))
        placed.row[here], placed.total[here] = outcome.row, outcome.total
        placed.n_feasible[here] = outcome.n_feasible
        placed.pod[here] = np.concatenate(ids) if ids else ()


def _in_a_stream(placed: PlacedPods, starts: IntColumn, ties: TieBreaker, assume: Assume) -> None:
    """Place all as a stream."""
    order = placed._order
    outcome = place_stream(placed._evaluations.each(placed._pods), order, ties)
    placed.row[:], placed.total[:], placed.n_feasible[:] = outcome.row, outcome.total, outcome.n_feasible
    by_shape = np.argsort(np.where(outcome.row >= 0, order, NONE), kind="stable")
    by_shape = by_shape[np.count_nonzero(outcome.row < 0) :]
    shapes, first = np.unique(order[by_shape], return_index=True)
    for shape, at in zip(shapes.tolist(), np.split(by_shape, first)[1:], strict=True):
        placed.pod[at] = assume(shape, at, outcome.row[at])


def _one_by_one(placed: PlacedPods, starts: IntColumn, ties: TieBreaker, assume: Assume) -> None:
    """Place each pod by itself."""
    evaluations = placed._evaluations.each(placed._pods)
    for i, shape in enumerate(placed._order.tolist()):
        decision = decide(evaluations[shape], ties)
        if decision.row is None:
            continue
        placed.row[i], placed.total[i] = decision.row, decision.score or 0
        placed.n_feasible[i] = decision.n_feasible
        placed.pod[i] = assume(shape, np.array([i]), np.array([decision.row], dtype=np.int32))[0]
