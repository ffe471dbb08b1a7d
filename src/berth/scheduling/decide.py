"""One pod's decision."""

from dataclasses import dataclass, field

import numpy as np

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
    rows = np.flatnonzero(evaluation.fits)
    normalized, total = evaluation.weigh(rows)
    best = total.max()
    tied = np.flatnonzero(total == best)
    row = ties.take(rows[tied], evaluation.cluster.nodes.rank)
    at = int(np.searchsorted(rows, row))
    scores = evaluation.scores_of(row)
    for i, column in normalized.items():
        scores[i] = int(column[at])
    return Decision(
        row=row,
        score=int(best),
        scores={weighted.name: one for weighted, one in zip(evaluation.profile.scores, scores, strict=True)},
        n_feasible=len(rows),
    )


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
