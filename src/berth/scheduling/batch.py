"""Many pods of one shape at once, with the very decisions of placing them one at a time.

While pods of one shape are placed, most of what was evaluated does not move. What hangs on a row's own placements alone
(resources, host ports) is computed ahead, for whole columns or for runs of placements on a row; what hangs on counts per
class of rows (spreading) is looked up in a table of classes; the rest is constant but for its normalisation, which is done
again when the last feasible row with the highest or lowest raw score closes.

The run itself is a kernel, compiled (`berth.scheduling.kernel`) or in Python (`berth.scheduling.twin`). It stops when
something has to be computed by plugins, and is taken up again with it.
"""

from collections.abc import Callable, Sequence
from typing import TypeAlias

import numpy as np

from berth.cluster.arrays import BoolColumn, IdColumn, IntColumn, numbered
from berth.framework.plugin import FITS, SHUT, BatchKind, Classed
from berth.scheduling.ahead import ConstantScores, LocalScores
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
from berth.scheduling.compiled import PARTS, Kernels, kernels_for
from berth.scheduling.decide import Decision, decide, failed
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.joint import SCORES, JointClasses
from berth.scheduling.kernel import SHIFT
from berth.scheduling.placements import Placements, joined, no_placements, of_decisions
from berth.scheduling.ties import TieBreaker
from berth.scheduling.twin import Buckets, by_buckets, scan

MAX_TREE_BYTES = 64 << 20
"""The memory that trees may take; with more classes the rest of the batch runs in Python, which needs none."""
MAX_SCORE = 100
MAX_TOTAL = 1 << 29
"""Totals are 32-bit, with room for `CLOSED` below them: heavier weights are decided one at a time, in 64 bits."""

_N_WORTH_BUCKETS = 16

Kinds: TypeAlias = Sequence[BatchKind]
ClassedPart: TypeAlias = tuple[Classed, dict[int, int]]
"""All that is classed as one, and which of its scores is which one of the profile."""


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

    What can be decided as a batch is; a plugin may want a pod placed alone first.

    Parameters
    ----------
    assume : callable
        Is told the rows (int32[m]) of pods that found a node and counts them there in the cluster; by default
        `Cluster.assume_all` does.
    """

    def assume_in_cluster(rows: IdColumn) -> object:
        return evaluation.cluster.assume_all(evaluation.pod, rows)

    assume = assume or assume_in_cluster
    batches = [no_placements()]
    decisions: list[Decision] = []
    left, may_batch = n, True
    while left:
        if may_batch and left > 1:
            evaluation.mend()
            batch = Batch.of(evaluation) if failed(evaluation) is None else BatchKind.FIRST
            may_batch = batch is BatchKind.FIRST
            if isinstance(batch, Batch):
                batches += [of_decisions(decisions), batch.run(left, ties)]
                assume(batches[-1].row)
                left -= len(batches[-1])
                decisions = []
                continue
        decision = decide(evaluation, ties)
        if decision.row is None:
            # Nothing was assumed: the pods that are left meet the same cluster.
            return joined([*batches, of_decisions(decisions)], decision, left)
        assume(np.array([decision.row], dtype=np.int32))
        decisions.append(decision)
        left -= 1
    return joined([*batches, of_decisions(decisions)])


class Batch:
    """A run of placements of one shape. Works on columns of its own: the cluster is not changed."""

    def __init__(
        self, evaluation: Evaluation, filters: Kinds, scores: Kinds, may_fit: BoolColumn, classed: ClassedPart
    ) -> None:
        self._evaluation = evaluation
        rank = evaluation.cluster.nodes.rank
        rows = np.flatnonzero(may_fit)
        if not (rank[rows][1:] > rank[rows][:-1]).all():
            rows = rows[np.argsort(rank[rows])]
        self._rows = rows
        self._part, self._scored_by = classed
        local_filters = _of_kind(filters, BatchKind.LOCAL)
        self._local = LocalScores(evaluation, local_filters, _of_kind(scores, BatchKind.LOCAL), rows)
        slot, classes = numbered(self._part.class_of(rows))
        self._slot = slot.astype(np.int32)
        n_slots = len(classes) + 8 if not isinstance(self._part, NoClasses) else 1
        self._classes = np.zeros(n_slots, dtype=np.int64)
        self._classes[: len(classes)] = classes
        self._sizes = np.bincount(slot, minlength=n_slots).astype(np.int32)
        self._feasible = np.zeros(n_slots, dtype=np.bool_)
        table = self._part.table(classes, self._sizes[: len(classes)])
        self._feasible[: len(classes)] = table[0] != SHUT
        self._weights = np.zeros(len(table), dtype=np.int64)
        for i, at in self._scored_by.items():
            self._weights[at] = evaluation.profile.scores[i].weight
        constant = _of_kind(scores, BatchKind.CONSTANT)
        self._constant = ConstantScores(evaluation, constant, rows, self._feasible[slot])
        blocks = max(1, (len(rows) + (1 << SHIFT) - 1) >> SHIFT)
        self._tree_width = 2 << (blocks - 1).bit_length()

    @classmethod
    def of(cls, evaluation: Evaluation) -> "Batch | BatchKind":
        """Prepare a batch, or tell how plugins move that can take part one pod at a time only: FIRST or SERIAL.

        At least one row must be feasible.
        """
        e = evaluation
        filters = [
            f.plugin.batch(state, e.fits) for f, state in zip(e.profile.filters, e.filter_states, strict=True)
        ]
        scores = [
            s.plugin.batch(state, e.fits) for s, state in zip(e.profile.scores, e.score_states, strict=True)
        ]
        kinds = {*filters, *scores}
        if sum(score.weight for score in e.profile.scores) * MAX_SCORE >= MAX_TOTAL:
            return BatchKind.SERIAL
        if BatchKind.SERIAL in kinds:
            return BatchKind.SERIAL
        if BatchKind.FIRST in kinds:
            return BatchKind.FIRST
        may_fit = _may_fit(e, filters)
        classed = _classed_part(e, filters, scores, may_fit)
        return BatchKind.SERIAL if classed is None else cls(e, filters, scores, may_fit, classed)

    def run(self, n: int, ties: TieBreaker) -> Placements:
        """Place up to ``n`` pods; fewer if no row is feasible any more."""
        can_compile = ties.rule != "random" and isinstance(self._part, PARTS)
        kernels = kernels_for(n) if can_compile else None
        board = self._board(n, ties)
        if kernels is not None:
            board = self._compiled(kernels, board, n, ties)
        board = self._in_python(board, n, ties)
        done = int(board.state[N_DONE])
        chosen = board.chosen[:done].copy()
        class_score = board.class_score[:, :done].copy()
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
            kinds=constant.kinds, histogram=constant.histogram, extremes=constant.extremes,
            classes=self._classes, sizes=self._sizes, feasible=self._feasible, best=no_trees, ties=no_trees,
            state=np.array([0, m, ties.counter, -1]),
            chosen=np.empty(n, np.int32), total=np.empty(n, np.int64),
            n_feasible=np.empty(n, np.int32), class_score=np.empty((len(self._weights), n), np.int32),
        )  # fmt: skip

    def _compiled(self, kernels: Kernels, board: Board, n: int, ties: TieBreaker) -> Board:
        """Run compiled, as long as the trees have room."""
        status = STALE
        board = self._with_trees(board)
        while status != DONE and len(board.best):
            if status == STALE:
                kernels.build(board.slot, board.value, len(board.classes), board.best, board.ties)
            status = kernels.run(board, self._part, self._weights, n, ties.rule == "round-robin")
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
        if not isinstance(self._part, NoClasses) or n < _N_WORTH_BUCKETS:
            status = -1
            while status != DONE:
                status = scan(board, self._part, self._weights, n, ties)
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
            self._constant.normalize(int(board.state[N_DONE]))
            board.value[is_open] += (self._constant.total - before)[is_open]
        if status == CROWDED:
            more = np.zeros_like(board.classes)
            return board._replace(
                classes=np.concatenate([board.classes, more]),
                sizes=np.concatenate([board.sizes, more.astype(np.int32)]),
                feasible=np.concatenate([board.feasible, more.astype(np.bool_)]),
            )
        return board

    def _replay(self, chosen: IdColumn, class_score: IdColumn) -> dict[str, IntColumn]:
        """Return the unweighted scores of what was chosen, by priority."""
        order = np.argsort(chosen, kind="stable")
        first = np.searchsorted(chosen[order], chosen[order])
        placed = np.empty(len(chosen), dtype=np.int64)
        placed[order] = np.arange(len(chosen)) - first
        columns = [*self._local.scores_at(chosen, placed), *self._constant.scores_at(chosen)]
        columns += [class_score[at].astype(np.int64) for at in self._scored_by.values()]
        parts = [*self._local.parts, *self._constant.parts, *self._scored_by]
        names = self._evaluation.profile.scores
        return {names[i].name: columns[j] for j, i in sorted(enumerate(parts), key=lambda pair: pair[1])}


def _of_kind(kinds: Kinds, wanted: BatchKind) -> list[int]:
    return [i for i, kind in enumerate(kinds) if kind is wanted]


def _may_fit(e: Evaluation, filters: Kinds) -> BoolColumn:
    """Tell on which rows the pod may fit at some time of a batch (bool[n_rows])."""
    if BatchKind.CLASSED not in filters:
        return e.fits
    may_fit = e.asked()
    for i, kind in enumerate(filters):
        if kind is BatchKind.CLASSED:
            may_fit = may_fit & e.profile.filters[i].plugin.may_fit(e.filter_states[i], e.codes[i])
        elif e.busy_filters[i]:
            may_fit = may_fit & (e.codes[i] == FITS)
    return may_fit


def _classed_part(e: Evaluation, filters: Kinds, scores: Kinds, may_fit: BoolColumn) -> ClassedPart | None:
    """Return what is classed as one part; None if it can't be put together."""
    of_filters, of_scores = _of_kind(filters, BatchKind.CLASSED), _of_kind(scores, BatchKind.CLASSED)
    if not of_filters and not of_scores:
        return NoClasses(np.zeros(len(may_fit), np.int64)), {}
    if not of_filters and len(of_scores) == 1:
        (i,) = of_scores
        alone = e.profile.scores[i].plugin.classes(e.score_states[i], may_fit)
        if alone is not None:
            return alone, {i: 0}
    counted = [e.profile.filters[i].plugin.counted(e.filter_states[i]) for i in of_filters]
    scored = [e.profile.scores[i].plugin.counted(e.score_states[i]) for i in of_scores]
    parts = [part for part in (*counted, *scored) if part is not None]
    uses = [part.use for part in scored if part is not None]
    if len(parts) < len(of_filters) + len(of_scores) or len(set(uses)) < len(uses):
        return None
    return JointClasses.of(parts, may_fit), {
        i: SCORES.index(use) for i, use in zip(of_scores, uses, strict=True)
    }
