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

from berth.cluster.arrays import BoolColumn, IdColumn, IntColumn
from berth.framework.plugin import FITS, BatchKind, Classed
from berth.scheduling.ahead import ConstantScores, LocalScores
from berth.scheduling.board import CLOSED, LEVEL, N_DONE, PENDING, Board, Layout, NoClasses, new_board
from berth.scheduling.decide import Decision, decide, failed
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.joint import SCORES, JointClasses
from berth.scheduling.placements import Placements, joined, no_placements, of_decisions
from berth.scheduling.running import MAX_TOTAL, placed_before, run_board
from berth.scheduling.ties import TieBreaker

MAX_SCORE = 100

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
        self._layout = Layout.of(self._part, rows)
        self._weights = np.zeros(self._layout.n_scores, dtype=np.int64)
        for i, at in self._scored_by.items():
            self._weights[at] = evaluation.profile.scores[i].weight
        constant = _of_kind(scores, BatchKind.CONSTANT)
        self._constant = ConstantScores(evaluation, constant, rows, self._layout.feasible[self._layout.slot])

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
        board = run_board(self._board(n, ties), self._part, self._weights, n, ties, self._supply)
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
        local, constant = self._local, self._constant
        board = new_board(self._layout, self._rows, local.levels, n, ties.counter)
        return board._replace(
            value=board.value + constant.total, constant=constant.total,
            run_start=local.run_start, run_at=local.run_at, runs=local.runs,
            kinds=constant.kinds, histogram=constant.histogram, extremes=constant.extremes,
        )  # fmt: skip

    def _supply(self, board: Board, status: int) -> Board:
        """Compute what a run has stopped for."""
        if status == LEVEL:
            position = int(board.state[PENDING])
            self._local.provide(position, int(board.placed[position]), board.placed)
            return board._replace(levels=self._local.levels, runs=self._local.runs)
        is_open = board.value > CLOSED
        before = board.constant.copy()
        self._constant.normalize(int(board.state[N_DONE]))
        board.value[is_open] += (self._constant.total - before)[is_open]
        return board

    def _replay(self, chosen: IdColumn, class_score: IdColumn) -> dict[str, IntColumn]:
        """Return the unweighted scores of what was chosen, by priority."""
        columns = [*self._local.scores_at(chosen, placed_before(chosen)), *self._constant.scores_at(chosen)]
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
