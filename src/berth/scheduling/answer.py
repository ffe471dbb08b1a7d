"""Everything that a release has to say of one pod: every predicate on every node, every priority, and the verdict."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, IntColumn
from berth.cluster.cluster import Cluster, Incoming
from berth.framework.plugin import FITS, FilterPlugin
from berth.framework.prefilter import PreFiltered, prefilter
from berth.releases.release import Options, Release
from berth.scheduling.evaluation import Unschedulable

Reasons = dict[str, list[str]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """One predicate's codes for every row, with what is needed to say them in words."""

    plugin: FilterPlugin[Any]
    state: Any
    codes: IntColumn

    def reasons(self, row: int) -> list[str]:
        """Return the reasons of a row."""
        return list(self.plugin.reasons(self.state, int(self.codes[row])))

    def error(self, rows: NDArray[np.intp]) -> str | None:
        """Return the first error among rows, if any."""
        failing = rows[self.codes[rows] < 0]
        return self.reasons(int(failing[0]))[0] if len(failing) else None

    def failed(self, rows: NDArray[np.intp], names: list[str]) -> Reasons:
        """Return the reasons of those rows that fail, by the node's name."""
        return {names[row]: self.reasons(row) for row in rows[self.codes[rows] != FITS].tolist()}


def answer(release: Release, cluster: Cluster, pod: Incoming, options: Options) -> dict[str, Any]:
    """Answer as the oracle protocol wants it: ``predicates``, ``feasible``, ``failed``, ``message``, ``priorities``, …

    ``error`` is there instead of the verdict where the release itself fails to decide.
    """
    names = cluster.nodes.names
    rows = np.flatnonzero(cluster.nodes.alive)
    verdicts = {name: _ask(make(options), pod, cluster) for name, make in release.filters.items()}
    answered: dict[str, Any] = {
        "predicates": {name: _in_words(name, verdict, cluster, rows) for name, verdict in verdicts.items()}
    }
    on = release.default_filters(options)
    asked = {name: verdict for name, verdict in verdicts.items() if name in on}
    before = prefilter((name, verdict.plugin, verdict.state) for name, verdict in asked.items())
    if before.error is not None:
        return answered | {"error": before.error}
    left, failed = _left(before, cluster, rows)
    all_asked = left
    for verdict in asked.values():
        judged = all_asked if options.always_check_all else left
        error = verdict.error(judged)
        if error is not None:
            return answered | {"error": error}
        for name, reasons in verdict.failed(judged, names).items():
            failed.setdefault(name, []).extend(reasons)
        left = left[verdict.codes[left] == FITS]
    answered |= {"feasible": sorted(names[row] for row in left.tolist()), "failed": failed}
    if not len(left):
        return answered | {"message": _message(len(rows), failed, before)}
    return answered | _scores(release, cluster, pod, options, left)


def _ask(plugin: FilterPlugin[Any], pod: Incoming, cluster: Cluster) -> Verdict:
    state = plugin.prepare(pod, cluster)
    return Verdict(plugin, state, plugin.filter(state, ALL_ROWS))


def _in_words(
    name: str, verdict: Verdict, cluster: Cluster, rows: NDArray[np.intp]
) -> Reasons | dict[str, str]:
    before = prefilter([(name, verdict.plugin, verdict.state)])
    left, failed = _left(before, cluster, rows)
    error = before.error or verdict.error(left)
    return {"error": error} if error is not None else failed | verdict.failed(left, cluster.nodes.names)


def _left(before: PreFiltered, cluster: Cluster, rows: NDArray[np.intp]) -> tuple[NDArray[np.intp], Reasons]:
    """Return the rows that are to be asked, and the reasons of the others."""
    asked = before.asked(cluster.nodes)[rows]
    reasons = before.rejection or (before.left_out,)
    names = cluster.nodes.names
    return rows[asked], {names[row]: list(reasons) for row in rows[~asked].tolist()}


def _message(n_nodes: int, failed: Reasons, before: PreFiltered) -> str:
    counts: dict[str, int] = {}
    for reasons in failed.values():
        for reason in reasons:
            counts[reason] = counts.get(reason, 0) + 1
    return str(Unschedulable(n_nodes, counts, before.rejection))


def _scores(
    release: Release, cluster: Cluster, pod: Incoming, options: Options, rows: NDArray[np.intp]
) -> dict[str, Any]:
    names = [cluster.nodes.names[row] for row in rows.tolist()]
    weights = release.default_scores(options)
    total = np.zeros(len(rows), dtype=np.int64)
    priorities: dict[str, Any] = {}
    for name, make in release.scores.items():
        plugin = make(options)
        if plugin is None:
            continue
        state = plugin.prepare(pod, cluster)
        error = plugin.error(state)
        if error is not None:
            priorities[name] = {"error": error}
            if name in weights:
                return {"error": error}
            continue
        column = plugin.normalize(state, plugin.score(state, rows), rows)
        total += weights.get(name, 0) * column
        priorities[name] = dict(zip(names, column.tolist(), strict=True))
    best = total == total.max()
    return {
        "priorities": priorities,
        "weighted": dict(zip(names, total.tolist(), strict=True)),
        "best": sorted(name for name, is_best in zip(names, best.tolist(), strict=True) if is_best),
    }
