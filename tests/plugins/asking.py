"""Ask a plugin about a pod on a cluster, node by node in the order of rows."""

from typing import Any

import numpy as np

from berth.cluster.cluster import Cluster
from berth.framework.plugin import BatchKind, FilterPlugin, Plugin, ScorePlugin
from berth.objects.pods import Pod


def reasons(plugin: FilterPlugin[Any], cluster: Cluster, pod: Pod) -> list[tuple[str, ...]]:
    """The reasons why each node is refused, none where it fits."""
    state = plugin.prepare(cluster.incoming(pod), cluster)
    codes = plugin.filter(state)
    some = np.arange(len(codes))[::2]
    assert codes[some].tolist() == plugin.filter(state, some).tolist()
    return [plugin.reasons(state, code) for code in codes.tolist()]


def fits(plugin: FilterPlugin[Any], cluster: Cluster, pod: Pod) -> list[bool]:
    return [not refused for refused in reasons(plugin, cluster, pod)]


def raw_scores(plugin: ScorePlugin[Any], cluster: Cluster, pod: Pod) -> list[int]:
    state = plugin.prepare(cluster.incoming(pod), cluster)
    column = plugin.score(state)
    some = np.arange(len(column))[1::2]
    assert column[some].tolist() == plugin.score(state, some).tolist()
    return list(column.tolist())


def scores(plugin: ScorePlugin[Any], cluster: Cluster, pod: Pod, *names: str) -> list[int]:
    """The normalised scores of the named nodes as the feasible ones; of all nodes without names."""
    rows = np.array([cluster.nodes.row(name) for name in names or cluster.nodes.names], dtype=np.intp)
    state = plugin.prepare(cluster.incoming(pod), cluster)
    return list(plugin.normalize(state, plugin.score(state, rows), rows).tolist())


def batch(plugin: Plugin[Any], cluster: Cluster, pod: Pod) -> BatchKind:
    state = plugin.prepare(cluster.incoming(pod), cluster)
    return plugin.batch(state, np.ones(cluster.nodes.n_rows, dtype=np.bool_))
