"""Many pods of one shape at once, with the very decisions of placing them one at a time.

While pods of one shape are placed, most of what was evaluated does not move. What hangs on a row's own placements alone
(resources, host ports) is computed ahead, for whole columns or for runs of placements on a row; what hangs on counts per
class of rows (spreading) is looked up in a table of classes; the rest is constant but for its normalisation, which is done
again when the last feasible row with the highest or lowest raw score closes.

The run itself (`berth.scheduling.running`) stops when something has to be computed by plugins, and is taken up again with
it.
"""

from collections.abc import Callable, Sequence

import numpy as np

from berth.cluster.arrays import IdColumn, IntColumn
from berth.framework.plugin import BatchKind, Classed
from berth.scheduling.ahead import ConstantScores, LocalScores
from berth.scheduling.board import CLOSED, LEVEL, N_DONE, PENDING, Board, NoClasses, new_board
from berth.scheduling.decide import Decision, decide, failed
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.placements import Placements, joined, no_placements
from berth.scheduling.running import MAX_TOTAL, placed_before, run_board
from berth.scheduling.ties import TieBreaker

MAX_SCORE = 100


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
        board = run_board(self._board(n, ties), self._part, self._weight, n, ties, self._supply)
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
        local, constant = self._local, self._constant
        board = new_board(self._part, self._rows, local.levels, n, ties.counter)
        return board._replace(
            value=board.value + constant.total, constant=constant.total,
            run_start=local.run_start, run_at=local.run_at, runs=local.runs,
            kinds=constant.kinds, histogram=constant.histogram,
        )  # fmt: skip

    def _supply(self, board: Board, status: int) -> Board:
        """Compute what a run has stopped for."""
        if status == LEVEL:
            position = int(board.state[PENDING])
            self._local.provide(position, int(board.placed[position]), board.placed)
            return board._replace(levels=self._local.levels, runs=self._local.runs)
        is_open = board.value > CLOSED
        before = board.constant.copy()
        self._constant.normalize(is_open, int(board.state[N_DONE]))
        board.value[is_open] += (self._constant.total - before)[is_open]
        return board

    def _replay(self, chosen: IdColumn, class_score: IdColumn) -> dict[str, IntColumn]:
        """Return the unweighted scores of what was chosen, by priority."""
        columns = [*self._local.scores_at(chosen, placed_before(chosen)), *self._constant.scores_at(chosen)]
        columns += [class_score.astype(np.int64) for _ in self._classed]
        parts = [*self._local.parts, *self._constant.parts, *self._classed]
        names = self._evaluation.profile.scores
        return {names[i].name: columns[j] for j, i in sorted(enumerate(parts), key=lambda pair: pair[1])}


def _of_kind(kinds: Sequence[BatchKind | Classed], wanted: BatchKind) -> list[int]:
    return [i for i, kind in enumerate(kinds) if kind is wanted]
