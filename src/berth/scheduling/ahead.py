"""What scores say while a batch goes on: local ones computed ahead, constant ones normalised again when they must be."""

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, BoolColumn, IntColumn, Rows
from berth.framework.plugin import FITS
from berth.scheduling.board import CLOSED, Int32s
from berth.scheduling.evaluation import Evaluation, zeros

RUN_LENGTH = 256
_RUN_COST = 4_000
"""What a call costs, in rows that could be computed meanwhile."""

_SHARE_OF_LEVEL = 8
"""One of so many positions is enough for a whole level."""


class LocalScores:
    """LOCAL plugins' answers after k placements on a row: whole columns while many rows need them, else runs on rows.

    Attributes
    ----------
    parts : list of int
        The scores that take part, by their place in the profile.
    levels : int32[n_levels, m]
        Weighted totals by position, `CLOSED` where the pod does not fit.
    run_start, run_at : int32[m]; runs : int32[n_runs, RUN_LENGTH]
        As in `berth.scheduling.board.Board`.
    """

    def __init__(self, evaluation: Evaluation, filters: list[int], parts: list[int], rows: IntColumn) -> None:
        self._evaluation = evaluation
        self._filters = filters
        self.parts = parts
        self._rows = rows
        self._every_row: Rows = rows
        if len(rows) == len(evaluation.fits) and (rows[1:] > rows[:-1]).all():
            self._every_row = ALL_ROWS
        self._levels = np.empty((4, len(rows)), dtype=np.int32)
        self._n_levels = 0
        self._level_scores: list[list[Int32s]] = []
        self._runs = np.empty((16, RUN_LENGTH), dtype=np.int32)
        self._n_runs = 0
        self._run_scores: list[tuple[int, list[Int32s]]] = []
        self._runs_of: dict[int, list[int]] = {}
        self._spent = 0
        self.run_start: Int32s = np.zeros(len(rows), dtype=np.int32)
        self.run_at: Int32s = np.full(len(rows), -1, dtype=np.int32)
        self._add_level()

    @property
    def levels(self) -> Int32s:
        """The levels that there are."""
        return self._levels[: self._n_levels]

    @property
    def runs(self) -> Int32s:
        """The runs that there are, one at least."""
        return self._runs[: max(1, self._n_runs)]

    def provide(self, position: int, k: int, placed: Int32s) -> None:
        """See to it that a position's answer after ``k`` placements is there.

        Parameters
        ----------
        placed : int32[m]
            The placements on every position: a whole level is computed where many are about to need it, or when as much
            has been spent on runs as levels in their place would have cost.
        """
        is_next = k == self._n_levels
        if is_next and (
            np.count_nonzero(placed >= k - 1) * _SHARE_OF_LEVEL >= len(placed)
            or self._spent >= (_RUN_COST + len(self._rows)) * self._use_of_runs(placed)
        ):
            self._spent = 0
            self._add_level()
        else:
            self._spent += _RUN_COST + RUN_LENGTH
            self._add_run(position, k)

    def scores_at(self, positions: Int32s, placed: IntColumn) -> list[IntColumn]:
        """Return the scores of each part, unweighted, of positions after so many placements."""
        found = [np.empty(len(positions), dtype=np.int64) for _ in self.parts]
        for level, scores in enumerate(self._level_scores):
            at = np.flatnonzero(placed == level)
            for column, score in zip(found, scores, strict=True):
                column[at] = score[positions[at]]
        for i in np.flatnonzero(placed >= self._n_levels).tolist():
            k = int(placed[i])
            for run in self._runs_of[int(positions[i])]:
                start, scores = self._run_scores[run]
                if start <= k < start + RUN_LENGTH:
                    for column, score in zip(found, scores, strict=True):
                        column[i] = score[k - start]
        return found

    def _use_of_runs(self, placed: Int32s) -> float:
        """Return how many placements a run has served on average: where it is long, rows take many pods in a row."""
        served = (placed - self.run_start)[self.run_at >= 0]
        return max(1.0, float(served.mean())) if len(served) else 1.0

    def _add_level(self) -> None:
        if self._n_levels == len(self._levels):
            self._levels = np.concatenate([self._levels, np.empty_like(self._levels)])
        total, scores = self._compute(self._every_row, self._n_levels)
        self._levels[self._n_levels] = total
        self._level_scores.append(scores)
        self._n_levels += 1

    def _add_run(self, position: int, k: int) -> None:
        if self._n_runs == len(self._runs):
            self._runs = np.concatenate([self._runs, np.empty_like(self._runs)])
        rows = np.full(RUN_LENGTH, self._rows[position])
        total, scores = self._compute(rows, np.arange(k, k + RUN_LENGTH))
        self._runs[self._n_runs] = total
        self._run_scores.append((k, scores))
        self._runs_of.setdefault(position, []).append(self._n_runs)
        self.run_start[position], self.run_at[position] = k, self._n_runs
        self._n_runs += 1

    def _compute(self, rows: Rows, placed: IntColumn | int) -> tuple[IntColumn, list[Int32s]]:
        e = self._evaluation
        size = len(e.fits[rows])
        fits = np.ones(size, dtype=np.bool_)
        for i in self._filters:
            fits &= e.profile.filters[i].plugin.filter(e.filter_states[i], rows, placed) == FITS
        total = np.zeros(size, dtype=np.int64)
        scores = []
        for i in self.parts:
            score = e.profile.scores[i].plugin.score(e.score_states[i], rows, placed)
            total += e.profile.scores[i].weight * score
            scores.append(score.astype(np.int32))
        total[~fits] = CLOSED
        return total, scores


class ConstantScores:
    """CONSTANT plugins' scores: normalised over the feasible rows, and again when that may come out otherwise.

    Attributes
    ----------
    total : int32[m]
        Weighted, by position.
    kinds, histogram, extremes : int32 arrays
        As in `berth.scheduling.board.Board`.
    """

    def __init__(
        self, evaluation: Evaluation, parts: list[int], rows: NDArray[np.intp], feasible: BoolColumn
    ) -> None:
        self._evaluation = evaluation
        self._rows = rows
        self.parts = parts
        found = [
            np.unique(evaluation.raw[i][rows], return_inverse=True)
            for i in parts
            if evaluation.busy_scores[i]
        ]
        busy = [i for i in parts if evaluation.busy_scores[i]]
        differing = [
            (i, values, kinds) for i, (values, kinds) in zip(busy, found, strict=True) if len(values) > 1
        ]
        width = max([len(values) for _, values, _ in differing], default=1)
        self._differing = {i: j for j, (i, _, _) in enumerate(differing)}
        self.kinds = np.array([kinds for _, _, kinds in differing], dtype=np.int32).reshape(-1, len(rows))
        self.histogram = np.array(
            [np.bincount(kinds[feasible], minlength=width) for _, _, kinds in differing], dtype=np.int32
        ).reshape(-1, width)
        self.extremes: Int32s = np.zeros((len(differing), 2), dtype=np.int32)
        self.total: Int32s = np.zeros(len(rows), dtype=np.int32)
        self._since: list[int] = []
        self._found: list[tuple[Int32s, list[IntColumn]]] = []
        self._known: dict[bytes, tuple[Int32s, list[IntColumn]]] = {}
        self.normalize(0)

    def normalize(self, n_done: int) -> None:
        """Normalise between the lowest and highest kinds in the histogram; this holds from the decision ``n_done`` on.

        Rows that are not feasible are scored, too, as long as their kinds lie between these: they may be later on.
        """
        for j, counts in enumerate(self.histogram):
            there = np.flatnonzero(counts)
            self.extremes[j] = there[0], there[-1]
        key = self.extremes.tobytes()
        if key not in self._known:
            self._known[key] = self._normalized()
        self.total[:] = self._known[key][0]
        self._since.append(n_done)
        self._found.append(self._known[key])

    def _normalized(self) -> tuple[Int32s, list[IntColumn]]:
        e = self._evaluation
        total, columns = np.zeros_like(self.total), []
        for i in self.parts:
            if not e.busy_scores[i]:
                columns.append(zeros(len(total)))
                continue
            among = np.ones(len(total), dtype=np.bool_)
            if i in self._differing:
                j = self._differing[i]
                among = (self.kinds[j] >= self.extremes[j, 0]) & (self.kinds[j] <= self.extremes[j, 1])
            rows = self._rows[among]
            column = np.zeros(len(total), dtype=np.int64)
            column[among] = e.profile.scores[i].plugin.normalize(e.score_states[i], e.raw[i][rows], rows)
            total += (e.profile.scores[i].weight * column).astype(np.int32)
            columns.append(column)
        return total, columns

    def scores_at(self, positions: Int32s) -> list[IntColumn]:
        """Return the scores of each part, unweighted, of the positions that were chosen, in their order."""
        found = [np.empty(len(positions), dtype=np.int64) for _ in self.parts]
        ends = [*self._since[1:], len(positions)]
        for start, end, (_, columns) in zip(self._since, ends, self._found, strict=True):
            for column, values in zip(found, columns, strict=True):
                column[start:end] = values[positions[start:end]]
        return found
