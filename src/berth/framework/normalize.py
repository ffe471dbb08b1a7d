"""Normalisations that several plugins share."""

from typing import NamedTuple

import numpy as np

from berth.cluster.arrays import IntColumn


class Scaling(NamedTuple):
    """What `scale_to_maximum` is asked for."""

    maximum: int
    reverse: bool


def scale_to_maximum(scores: IntColumn, scaling: Scaling) -> IntColumn:
    """Scale scores so that the highest becomes the maximum; reversed, the highest becomes 0.

    Upstream's ``NormalizeReduce`` (1.10 to 1.17): integer division; where all are 0 they stay 0, or all become the
    maximum if reversed.
    """
    maximum, reverse = scaling
    highest = int(scores.max(initial=0))
    if highest == 0:
        return np.full_like(scores, maximum if reverse else 0)
    scaled = maximum * scores // highest
    return maximum - scaled if reverse else scaled


def scale_one(score: int, highest: int, scaling: Scaling) -> int:
    """Scale one score, given the highest of all, or 0 if that is less."""
    scaled = scaling.maximum * score // highest if highest else 0
    return scaling.maximum - scaled if scaling.reverse else scaled
