"""Normalisations that several plugins share."""

import numpy as np

from berth.cluster.arrays import IntColumn


def scale_to_maximum(scores: IntColumn, maximum: int, *, reverse: bool) -> IntColumn:
    """Scale scores so that the highest becomes ``maximum``; reversed, the highest becomes 0.

    Upstream's ``NormalizeReduce`` (1.10 to 1.17): integer division; where all are 0 they stay 0, or all become the
    maximum if reversed.
    """
    highest = int(scores.max(initial=0))
    if highest == 0:
        return np.full_like(scores, maximum if reverse else 0)
    scaled = maximum * scores // highest
    return maximum - scaled if reverse else scaled
