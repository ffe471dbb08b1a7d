"""The best of the feasible rows: the highest weighted total, and who shares it. Takes none of them yet."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import IntColumn
from berth.framework.normalize import scale_one
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.look_kernels import LOOK, LookKernels


@dataclass(slots=True)
class Best:
    """The best rows, and what tells their scores.

    Attributes
    ----------
    tied : intp[n]
        The rows that share the highest total, in ascending order; at least one.
    rows : intp[n_feasible] or None
        All feasible rows, where they had to be told.
    normalized : dict of int to int64[n_feasible]
        Scores of the feasible rows by the priorities' places in the profile.
    highest : dict of int to int
        The highest raw score, of priorities that were scaled by it instead.
    """

    score: int = 0
    tied: NDArray[np.intp] = field(default_factory=lambda: np.empty(0, dtype=np.intp))
    n_feasible: int = 0
    rows: NDArray[np.intp] | None = None
    normalized: dict[int, IntColumn] = field(default_factory=dict)
    highest: dict[int, int] = field(default_factory=dict)

    def scores_of(self, evaluation: Evaluation, row: int) -> list[int]:
        """Return the unweighted scores of one of the rows, in the profile's order."""
        scores = evaluation.scores_of(row)
        for i, highest in self.highest.items():
            scaling = evaluation.profile.scores[i].plugin.scaling
            assert scaling is not None
            scores[i] = scale_one(int(evaluation.raw[i][row]), highest, scaling)
        if self.rows is not None:
            at = int(np.searchsorted(self.rows, row))
            for i, column in self.normalized.items():
                scores[i] = int(column[at])
        return scores


def best_of(evaluation: Evaluation) -> Best:
    """Find the best rows of an evaluation that is up to date and has feasible ones."""
    kernels = LOOK.kernels_for(0)
    if kernels is not None:
        return _compiled(evaluation, kernels)
    rows = np.flatnonzero(evaluation.fits)
    normalized, total = evaluation.weigh(rows)
    score = total.max()
    return Best(int(score), rows[np.flatnonzero(total == score)], len(rows), rows, normalized)


def _compiled(evaluation: Evaluation, kernels: LookKernels) -> Best:
    """Do so with all rows at a time; only what is normalized in another way than by scaling is told for feasible ones."""
    best, fits, total = Best(), evaluation.fits, evaluation.total_of_rules().copy()
    for i in evaluation.to_normalize():
        weighted = evaluation.profile.scores[i]
        raw, scaling = evaluation.raw[i], weighted.plugin.scaling
        if scaling is not None:
            best.highest[i] = kernels.add_scaled(raw, fits, weighted.weight, *scaling, total)
            continue
        if best.rows is None:
            best.rows = np.flatnonzero(fits)
        column = weighted.plugin.normalize(evaluation.score_states[i], raw.take(best.rows), best.rows)
        best.normalized[i] = column
        total[best.rows] += weighted.weight * column
    tied = np.empty(len(total), dtype=np.intp)
    best.score, n_tied, best.n_feasible = kernels.choose(total, fits, tied)
    best.tied = tied[:n_tied]
    return best
