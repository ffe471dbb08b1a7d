"""NodeLoadForecastPriority: a node whose load is about to fall is better for a new pod, worse for one that leaves."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, FloatColumn, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.framework.plugin import BatchKind, ScorePlugin


def load_forecast_score(delta: FloatColumn, maximum: int, *, removing: bool = False) -> IntColumn:
    """Score a forecast change of load: ``floor(m/2 - m/2 × delta)``, with a plus for removals.

    Parameters
    ----------
    delta : float64[n]
        The change as a share of what the node offers, -1 to 1; 0 where it is not known.
    """
    half = maximum / 2
    score: IntColumn = np.floor(half + half * delta if removing else half - half * delta).astype(np.int64)
    return score


@dataclass(frozen=True, slots=True)
class NodeLoadForecast(ScorePlugin[Cluster]):
    """Scores the forecast that the cluster's `load_delta` holds."""

    maximum: int

    name = "NodeLoadForecastPriority"
    reads_pods = False

    def prepare(self, pod: Incoming, cluster: Cluster) -> Cluster:
        return cluster

    def score(self, state: Cluster, rows: Rows = ALL_ROWS, placed: IntColumn | int = 0) -> IntColumn:
        return load_forecast_score(state.load_delta[rows], self.maximum)

    def batch(self, state: Cluster, feasible: NDArray[np.bool_]) -> BatchKind:
        return BatchKind.CONSTANT
