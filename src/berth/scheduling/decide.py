"""One pod's decision."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import IntColumn
from berth.scheduling.choice import best_of
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.ties import TieBreaker


@dataclass(frozen=True, slots=True)
class Decision:
    """Where a pod goes, or why nowhere.

    Attributes
    ----------
    row : int or None
        The chosen node's row.
    score : int
        The weighted total of the chosen node.
    scores : dict of priority name to int
        Its scores, unweighted.
    n_feasible : int
        How many nodes passed all filters.
    reason : str or None
        The release's FitError text, or the text of a filter's error.
    """

    row: int | None
    score: int | None = None
    scores: dict[str, int] = field(default_factory=dict)
    n_feasible: int = 0
    reason: str | None = None


def decide(evaluation: Evaluation, ties: TieBreaker) -> Decision:
    """Take the best node for the evaluation's shape, as the cluster is now. Assumes nothing."""
    evaluation.mend()
    failure = failed(evaluation)
    if failure is not None:
        return failure
    best = best_of(evaluation)
    row = ties.take(best.tied, evaluation.cluster.nodes.rank)
    scores = zip(evaluation.profile.scores, best.scores_of(evaluation, row), strict=True)
    return Decision(
        row=row,
        score=best.score,
        scores={weighted.name: score for weighted, score in scores},
        n_feasible=best.n_feasible,
    )


def weigh(evaluation: Evaluation, rows: NDArray[np.intp]) -> tuple[list[IntColumn], IntColumn]:
    """Return each priority's scores of the feasible rows, unweighted, and their weighted totals (int64[n])."""
    return evaluation.normalized(rows), evaluation.weigh(rows)[1]


def failed(evaluation: Evaluation) -> Decision | None:
    """Return the decision that there is no node, or that a filter met an error; None if some node fits."""
    error = evaluation.error()
    if error is not None:
        return Decision(None, reason=error)
    if not evaluation.fits.any():
        return Decision(None, reason=str(evaluation.unschedulable()))
    for i, weighted in enumerate(evaluation.profile.scores):
        if evaluation.skipped_scores[i]:
            continue
        error = weighted.plugin.error(evaluation.score_states[i])
        if error is not None:
            return Decision(None, reason=error)
    return None
