"""Many pods of one shape at once, with the very decisions of placing them one at a time.

While pods of one shape are placed, most of what was evaluated does not move. What hangs on a row's own placements alone
(resources, host ports) is computed ahead, for whole columns or for runs of placements on a row; what hangs on counts per
class of rows (spreading) is looked up in a table of classes; the rest is constant but for its normalisation, which is done
again when the last feasible row with the highest or lowest raw score closes.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from berth.cluster.arrays import ALL_ROWS, BoolColumn, IntColumn, Rows
from berth.framework.plugin import FITS, BatchKind, Classed
from berth.scheduling.decide import Decision, decide, failed
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.ties import TieBreaker

CLOSED = -(1 << 60)
"""The total of a row that is not feasible: below all others, and still so after every score is added."""

_N_WHOLE_LEVELS = 8
_RUN_LENGTH = 32


def place(evaluation: Evaluation, n: int, ties: TieBreaker, assume: Callable[[int], None]) -> list[Decision]:
    """Decide for ``n`` pods of one shape, one after another, each seeing those before it.

    Parameters
    ----------
    assume : callable
        Is told the row of every pod that found a node and counts it there in the cluster.
    """
    decisions: list[Decision] = []
    if n > 1:
        evaluation.mend()
        if failed(evaluation) is None:
            batch = Batch.of(evaluation)
            if batch is not None:
                decisions = batch.run(n, ties)
                for decision in decisions:
                    assume(decision.row)  # type: ignore[arg-type]
    while len(decisions) < n:
        decision = decide(evaluation, ties)
        if decision.row is None:
            # Nothing was assumed: the pods that are left meet the same cluster.
            decisions += [replace(decision) for _ in range(n - len(decisions))]
            break
        assume(decision.row)
        decisions.append(decision)
    return decisions


@dataclass(slots=True)
class Ahead:
    """What LOCAL plugins say of rows as if so many more pods were there: an array each, alike in length."""

    fits: BoolColumn
    total: IntColumn
    scores: list[IntColumn]


class LocalScores:
    """LOCAL plugins' answers after k placements on a row: whole columns for the first few k, runs on a row after that."""

    def __init__(self, evaluation: Evaluation, filters: list[int], scores: list[int]) -> None:
        self._evaluation = evaluation
        self._filters = filters
        self.scores = scores
        self._levels: list[Ahead] = []
        self._runs: dict[int, tuple[int, Ahead]] = {}

    def level(self, k: int) -> Ahead:
        """Return the answers for all rows after ``k`` placements on each."""
        while len(self._levels) <= k:
            self._levels.append(self._compute(ALL_ROWS, len(self._levels)))
        return self._levels[k]

    def at(self, row: int, k: int) -> tuple[Ahead, int]:
        """Return the answers for one row after ``k`` placements on it, and the index at which they stand."""
        if k < _N_WHOLE_LEVELS:
            return self.level(k), row
        start, run = self._runs.get(row, (0, None))
        if run is None or not start <= k < start + _RUN_LENGTH:
            start = k
            run = self._compute(np.full(_RUN_LENGTH, row), np.arange(k, k + _RUN_LENGTH))
            self._runs[row] = start, run
        return run, k - start

    def _compute(self, rows: Rows, placed: IntColumn | int) -> Ahead:
        e = self._evaluation
        size = len(e.fits[rows])
        fits = np.ones(size, dtype=np.bool_)
        for i in self._filters:
            fits &= e.profile.filters[i].plugin.filter(e.filter_states[i], rows, placed) == FITS
        total = np.zeros(size, dtype=np.int64)
        scores = []
        for i in self.scores:
            score = e.profile.scores[i].plugin.score(e.score_states[i], rows, placed)
            total += e.profile.scores[i].weight * score
            scores.append(score)
        return Ahead(fits, total, scores)


class ConstantScores:
    """CONSTANT plugins' scores: normalised over the feasible rows, and again when that may come out otherwise."""

    def __init__(self, evaluation: Evaluation, scores: list[int], feasible: BoolColumn) -> None:
        self._evaluation = evaluation
        self.scores = scores
        self._counts = [
            dict(
                zip(
                    *(a.tolist() for a in np.unique(evaluation.raw[i][feasible], return_counts=True)),
                    strict=True,
                )
            )
            for i in scores
        ]
        self.total: IntColumn
        self.columns: list[IntColumn]
        self.normalize(feasible)

    def normalize(self, feasible: BoolColumn) -> None:
        """Compute the scores of all rows that are feasible."""
        e, rows = self._evaluation, np.flatnonzero(feasible)
        self.total = np.zeros(len(feasible), dtype=np.int64)
        self.columns = []
        for i in self.scores:
            column = np.zeros(len(feasible), dtype=np.int64)
            column[rows] = e.profile.scores[i].plugin.normalize(e.score_states[i], e.raw[i][rows], rows)
            self.total += e.profile.scores[i].weight * column
            self.columns.append(column)

    def close(self, row: int) -> bool:
        """Leave a row out; tell whether the scores have to be normalised again."""
        stale = False
        for i, counts in zip(self.scores, self._counts, strict=True):
            value = int(self._evaluation.raw[i][row])
            counts[value] -= 1
            if not counts[value]:
                stale |= value in (max(counts), min(counts))
                del counts[value]
        return stale


class Batch:
    """A run of placements of one shape. Works on columns of its own: the cluster is not changed."""

    def __init__(
        self,
        evaluation: Evaluation,
        local: LocalScores,
        constant: ConstantScores,
        classed: dict[int, Classed],
    ) -> None:
        self._evaluation = evaluation
        self._local = local
        self._constant = constant
        self._classed = [(evaluation.profile.scores[i].weight, part) for i, part in classed.items()]
        self._score_order = np.argsort([*local.scores, *constant.scores, *classed]).tolist()
        self._fits = evaluation.fits.copy()
        self._n_feasible = int(self._fits.sum())
        self._placed = [0] * len(self._fits)
        self._base = np.where(self._fits, local.level(0).total + constant.total, CLOSED)

    @classmethod
    def of(cls, evaluation: Evaluation) -> "Batch | None":
        """Prepare a batch; None if a plugin can only take part one pod at a time. At least one row must be feasible."""
        e = evaluation
        filters = [
            f.plugin.batch(state, e.fits) for f, state in zip(e.profile.filters, e.filter_states, strict=True)
        ]
        scores = [
            s.plugin.batch(state, e.fits) for s, state in zip(e.profile.scores, e.score_states, strict=True)
        ]
        classed = {i: kind for i, kind in enumerate(scores) if not isinstance(kind, BatchKind)}
        if BatchKind.SERIAL in scores or not set(filters) <= {BatchKind.LOCAL, BatchKind.CONSTANT}:
            return None
        local = LocalScores(e, _of_kind(filters, BatchKind.LOCAL), _of_kind(scores, BatchKind.LOCAL))
        constant = ConstantScores(e, _of_kind(scores, BatchKind.CONSTANT), e.fits)
        return cls(e, local, constant, classed)

    def run(self, n: int, ties: TieBreaker) -> list[Decision]:
        """Place up to ``n`` pods; fewer if no row is feasible any more."""
        rank = self._evaluation.cluster.nodes.rank
        decisions: list[Decision] = []
        while len(decisions) < n and self._n_feasible:
            total = self._base
            tables = [part.table() for _, part in self._classed]
            for (weight, part), table in zip(self._classed, tables, strict=True):
                total = total + (weight * table)[part.class_of]
            best = total.max()
            row = ties.take((total == best).nonzero()[0], rank)
            decisions.append(Decision(row, int(best), self._scores_of(row, tables), self._n_feasible))
            self._count(row)
        return decisions

    def _count(self, row: int) -> None:
        self._placed[row] += 1
        for _, part in self._classed:
            part.place(row)
        ahead, at = self._local.at(row, self._placed[row])
        if ahead.fits[at]:
            self._base[row] = ahead.total[at] + self._constant.total[row]
            return
        self._fits[row] = False
        self._n_feasible -= 1
        self._base[row] = CLOSED
        for _, part in self._classed:
            part.close(row)
        if self._constant.close(row) and self._n_feasible:
            before = self._constant.total
            self._constant.normalize(self._fits)
            self._base[self._fits] += (self._constant.total - before)[self._fits]

    def _scores_of(self, row: int, tables: list[IntColumn]) -> dict[str, int]:
        ahead, at = self._local.at(row, self._placed[row])
        values = [int(column[at]) for column in ahead.scores]
        values += [int(column[row]) for column in self._constant.columns]
        values += [int(t[part.class_of[row]]) for t, (_, part) in zip(tables, self._classed, strict=True)]
        names = self._evaluation.profile.scores
        return {names[i].name: values[j] for i, j in enumerate(self._score_order)}


def _of_kind(kinds: Sequence[BatchKind | Classed], wanted: BatchKind) -> list[int]:
    return [i for i, kind in enumerate(kinds) if kind is wanted]
