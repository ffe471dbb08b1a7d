"""Which of the nodes that could take the pod is the best: where the least is lost.

Source: 1.36, ``framework/preemption/preemption.go``, ``pickOneNodeForPreemption``.
"""

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import IntColumn
from berth.scheduling.preemption.dry_run import Outcome

OFFSET = 1 << 31
"""Makes priorities 0 or more, so that fewer pods of a negative one are not the greater loss."""


def losses(outcome: Outcome) -> tuple[IntColumn, ...]:
    """Return what each segment loses, by criterion, the first one first: the less, the better (int64[n_segments] each).

    Violated budgets; the highest priority among the victims; the sum of their priorities; how many they are; and, the
    other way round, when the earliest of those of the highest priority started.
    """
    victims, goes = outcome.victims, outcome.goes
    lowest = np.iinfo(np.int64).min
    highest = np.maximum.reduceat(np.where(goes, victims.priority, lowest), victims.starts)
    foremost = goes & (victims.priority == np.repeat(highest, victims.counts))
    latest = np.where(foremost, victims.started, np.iinfo(np.int64).max)
    return (
        np.add.reduceat((goes & victims.violates).astype(np.int64), victims.starts),
        highest,
        np.add.reduceat(np.where(goes, victims.priority + OFFSET, 0), victims.starts),
        np.add.reduceat(goes.astype(np.int64), victims.starts),
        -np.minimum.reduceat(latest, victims.starts),
    )


def best(outcome: Outcome) -> NDArray[np.intp]:
    """Return the segments that lose least, all of them where they tie; there has to be a candidate."""
    left = outcome.segments
    for loss in losses(outcome):
        left = left[loss[left] == loss[left].min()]
    return left
