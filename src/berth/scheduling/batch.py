"""Many pods of one shape at once, with the very decisions of placing them one at a time.

While pods of one shape are placed, most of what was evaluated does not move. What hangs on a row's own placements alone
(resources, host ports) is computed ahead, for whole columns or for runs of placements on a row; what hangs on counts per
class of rows (spreading) is looked up in a table of classes; the rest is constant but for its normalisation, which is done
again when the last feasible row with the highest or lowest raw score closes.

The run itself is a kernel, compiled (`berth.scheduling.kernel`) or in Python (`berth.scheduling.twin`). It stops when
something has to be computed by plugins, and is taken up again with it.
"""

from collections.abc import Callable, Sequence

import numpy as np

from berth.cluster.arrays import IdColumn, IntColumn
from berth.framework.plugin import BatchKind, Classed
from berth.scheduling.ahead import ConstantScores, LocalScores
from berth.scheduling.batch_kernels import BATCH, PARTS, BatchKernels
from berth.scheduling.board import (
    CLOSED,
    COUNTER,
    CROWDED,
    DONE,
    LEVEL,
    N_DONE,
    PENDING,
    STALE,
    Board,
    NoClasses,
)
from berth.scheduling.decide import Decision, decide, failed
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.kernel import SHIFT
from berth.scheduling.placements import Placements, joined, no_placements
from berth.scheduling.ties import TieBreaker
from berth.scheduling.twin import Buckets, by_buckets, scan

MAX_TREE_BYTES = 64 << 20
"""The memory that trees may take; with more classes the rest of the batch runs in Python, which needs none."""
MAX_SCORE = 100
MAX_TOTAL = 1 << 29
"""Totals are 32-bit, with room for `CLOSED` below them: heavier weights are decided one at a time, in 64 bits."""

_N_WORTH_BUCKETS = 16


def place(evaluation: Evaluation, n: int, ties: TieBreaker, assume: Callable[[int], None]) -> list[Decision]:
    """Decide for ``n`` pods of one shape, one after another, each seeing those before it.

    Parameters
    ----------
    assume : callable
        Is told the row of every pod that found a node and counts it there in the cluster.
    """

    def assume_all(rows: IdColumn) -> None:
        for row in rows.tolist():
            assume(row)

    return place_columns(evaluation, n, ties, assume_all).decisions()


def place_columns(
    evaluation: Evaluation, n: int, ties: TieBreaker, assume: Callable[[IdColumn], object] | None = None
) -> Placements:
    """Decide for ``n`` pods of one shape; the outcome as columns.

    Parameters
    ----------
    assume : callable
        Is told the rows (int32[m]) of pods that found a node and counts them there in the cluster; by default
        `Cluster.assume_all` does.
    """

    def assume_in_cluster(rows: IdColumn) -> object:
        return evaluation.cluster.assume_all(evaluation.pod, rows)

    assume = assume or assume_in_cluster
    placements = no_placements()
    if n > 1:
        evaluation.mend()
        if failed(evaluation) is None:
            batch = Batch.of(evaluation)
            if batch is not None:
                placements = batch.run(n, ties)
                assume(placements.row)
    decisions: list[Decision] = []
    failure = None
    while len(placements.row) + len(decisions) < n:
        decision = decide(evaluation, ties)
        if decision.row is None:
            # Nothing was assumed: the pods that are left meet the same cluster.
            failure = decision
            break
        assume(np.array([decision.row], dtype=np.int32))
        decisions.append(decision)
    if not decisions and failure is None:
        return placements
    return joined(placements, decisions, failure, n - len(placements.row) - len(decisions))


class Batch:
    """A run of placements of one shape. Works on columns of its own: the cluster is not changed."""

    def __init__(
        self,
        evaluation: Evaluation,
        filters: list[int],
        local: list[int],
        constant: list[int],
        classed: tuple[int, Classed] | None,
    ) -> None:
        self._evaluation = evaluation
        rank = evaluation.cluster.nodes.rank
        rows = np.flatnonzero(evaluation.fits)
        if not (rank[rows][1:] > rank[rows][:-1]).all():
            rows = rows[np.argsort(rank[rows])]
        self._rows = rows
        self._local = LocalScores(evaluation, filters, local, rows)
        self._constant = ConstantScores(evaluation, constant, rows)
        self._classed = [classed[0]] if classed else []
        self._part: Classed = classed[1] if classed else NoClasses(np.zeros(len(evaluation.fits), np.int64))
        self._weight = evaluation.profile.scores[classed[0]].weight if classed else 0
        classes, slot = np.unique(self._part.class_of(rows), return_inverse=True)
        self._slot = slot.astype(np.int32)
        n_slots = len(classes) + 8 if classed else 1
        self._classes = np.zeros(n_slots, dtype=np.int64)
        self._classes[: len(classes)] = classes
        self._sizes = np.bincount(slot, minlength=n_slots).astype(np.int32)
        blocks = max(1, (len(rows) + (1 << SHIFT) - 1) >> SHIFT)
        self._tree_width = 2 << (blocks - 1).bit_length()

    @classmethod
    def of(cls, evaluation: Evaluation) -> "Batch | None":
        """Prepare a batch; None if a plugin can only take part one pod at a time. At least one row must be feasible."""
        e = evaluation
        filters = [
            f.plugin.batch(state, e.fits) for f, state in zip(e.profile.filters, e.filter_states, strict=True)
        ]
        if not set(filters) <= {BatchKind.LOCAL, BatchKind.CONSTANT}:
            return None
        scores = [
            s.plugin.batch(state, e.fits) for s, state in zip(e.profile.scores, e.score_states, strict=True)
        ]
        if sum(score.weight for score in e.profile.scores) * MAX_SCORE >= MAX_TOTAL:
            return None
        classed = [(i, kind) for i, kind in enumerate(scores) if not isinstance(kind, BatchKind)]
        if BatchKind.SERIAL in scores or len(classed) > 1:
            return None
        return cls(
            e,
            _of_kind(filters, BatchKind.LOCAL),
            _of_kind(scores, BatchKind.LOCAL),
            _of_kind(scores, BatchKind.CONSTANT),
            classed[0] if classed else None,
        )

    def run(self, n: int, ties: TieBreaker) -> Placements:
        """Place up to ``n`` pods; fewer if no row is feasible any more."""
        can_compile = ties.rule != "random" and isinstance(self._part, PARTS)
        kernels = BATCH.kernels_for(n) if can_compile else None
        board = self._board(n, ties)
        if kernels is not None:
            board = self._compiled(kernels, board, n, ties)
        board = self._in_python(board, n, ties)
        done = int(board.state[N_DONE])
        chosen = board.chosen[:done].copy()
        class_score = board.class_score[:done].copy()
        return Placements(
            self._rows[chosen].astype(np.int32),
            board.total[:done],
            board.n_feasible[:done],
            lambda: self._replay(chosen, class_score),
        )

    def _board(self, n: int, ties: TieBreaker) -> Board:
        m, local, constant = len(self._rows), self._local, self._constant
        no_trees = np.empty((0, 0), dtype=np.int32)
        return Board(
            rows=self._rows, value=local.levels[0] + constant.total, slot=self._slot,
            placed=np.zeros(m, np.int32), constant=constant.total,
            levels=local.levels, run_start=local.run_start, run_at=local.run_at, runs=local.runs,
            kinds=constant.kinds, histogram=constant.histogram,
            classes=self._classes, sizes=self._sizes, best=no_trees, ties=no_trees,
            state=np.array([0, m, ties.counter, -1]),
            chosen=np.empty(n, np.int32), total=np.empty(n, np.int64),
            n_feasible=np.empty(n, np.int32), class_score=np.empty(n, np.int32),
        )  # fmt: skip

    def _compiled(self, kernels: BatchKernels, board: Board, n: int, ties: TieBreaker) -> Board:
        """Run compiled, as long as the trees have room."""
        status = STALE
        board = self._with_trees(board)
        while status != DONE and len(board.best):
            if status == STALE:
                kernels.build(board.slot, board.value, len(board.classes), board.best, board.ties)
            status = kernels.run(board, self._part, self._weight, n, ties.rule == "round-robin")
            before, board = board, self._continued(board, status)
            if len(board.classes) > len(before.classes):
                board, status = self._with_trees(board), STALE
        ties.counter = int(board.state[COUNTER])
        return board

    def _with_trees(self, board: Board) -> Board:
        """Give a board trees for its slots, not built yet; none at all if they took too much memory."""
        n_slots = len(board.classes)
        if n_slots * self._tree_width * 8 > MAX_TREE_BYTES:
            n_slots = 0
        best = np.empty((n_slots, self._tree_width if n_slots else 0), dtype=np.int32)
        return board._replace(best=best, ties=np.empty_like(best))

    def _in_python(self, board: Board, n: int, ties: TieBreaker) -> Board:
        if self._classed or n < _N_WORTH_BUCKETS:
            status = -1
            while status != DONE:
                status = scan(board, self._part, self._weight, n, ties)
                board = self._continued(board, status)
            return board
        status = STALE
        buckets = None
        while status != DONE and board.state[N_DONE] < n:
            if status == STALE or buckets is None:
                buckets = Buckets(board.value)
            status = by_buckets(board, buckets, n, ties)
            board = self._continued(board, status)
        return board

    def _continued(self, board: Board, status: int) -> Board:
        """Compute what a run has stopped for."""
        if status == LEVEL:
            position = int(board.state[PENDING])
            self._local.provide(position, int(board.placed[position]), board.placed)
            return board._replace(levels=self._local.levels, runs=self._local.runs)
        if status == STALE:
            is_open = board.value > CLOSED
            before = board.constant.copy()
            self._constant.normalize(is_open, int(board.state[N_DONE]))
            board.value[is_open] += (self._constant.total - before)[is_open]
        if status == CROWDED:
            more = np.zeros_like(board.classes)
            return board._replace(
                classes=np.concatenate([board.classes, more]),
                sizes=np.concatenate([board.sizes, more.astype(np.int32)]),
            )
        return board

    def _replay(self, chosen: IdColumn, class_score: IdColumn) -> dict[str, IntColumn]:
        """Return the unweighted scores of what was chosen, by priority."""
        order = np.argsort(chosen, kind="stable")
        first = np.searchsorted(chosen[order], chosen[order])
        placed = np.empty(len(chosen), dtype=np.int64)
        placed[order] = np.arange(len(chosen)) - first
        columns = [*self._local.scores_at(chosen, placed), *self._constant.scores_at(chosen)]
        columns += [class_score.astype(np.int64) for _ in self._classed]
        parts = [*self._local.parts, *self._constant.parts, *self._classed]
        names = self._evaluation.profile.scores
        return {names[i].name: columns[j] for j, i in sorted(enumerate(parts), key=lambda pair: pair[1])}


def _of_kind(kinds: Sequence[BatchKind | Classed], wanted: BatchKind) -> list[int]:
    return [i for i, kind in enumerate(kinds) if kind is wanted]
