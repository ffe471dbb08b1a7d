"""Everything that a release has to say of one pod: every predicate on every node, every priority, and the verdict."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, IntColumn
from berth.cluster.cluster import Cluster, Incoming
from berth.framework.plugin import FITS, FilterPlugin, ScorePlugin
from berth.framework.prefilter import EVERY_NODE, PreFiltered, prefilter
from berth.releases.release import Options, Release
from berth.scheduling.basic_checks import refuse_claims
from berth.scheduling.evaluation import NO_NODES, Unschedulable

Reasons = dict[str, list[str]]


class Verdict:
    """One predicate's codes for every row, with what is needed to say them in words."""

    def __init__(self, plugin: FilterPlugin[Any], pod: Incoming, cluster: Cluster) -> None:
        self.plugin = plugin
        self.state = plugin.prepare(pod, cluster)
        self._words: dict[int, tuple[str, ...]] = {}
        self.codes: list[int] = plugin.filter(self.state, ALL_ROWS).tolist()

    def reasons(self, row: int) -> tuple[str, ...]:
        """Return the reasons of a row that does not fit."""
        code = self.codes[row]
        words = self._words.get(code)
        if words is None:
            words = self._words[code] = self.plugin.reasons(self.state, code)
        return words

    def failing(self, rows: list[int]) -> list[int]:
        """Return those of the rows that do not fit."""
        codes = self.codes
        return [row for row in rows if codes[row] != FITS]

    def error(self, rows: list[int]) -> str | None:
        """Return the first error among rows, if any."""
        return next((self.reasons(row)[0] for row in rows if self.codes[row] < 0), None)


def answer(release: Release, cluster: Cluster, pod: Incoming, options: Options) -> dict[str, Any]:
    """Answer as the oracle protocol wants it: ``predicates``, ``feasible``, ``failed``, ``message``, ``priorities``, …

    ``error`` is there instead of the verdict where the release itself fails to decide.

    Raises
    ------
    InputError
        The options are none that the release takes.
    """
    scores = {name: plugin for name, make in release.scores.items() if (plugin := make(options)) is not None}
    names = cluster.nodes.names
    rows = _candidates(release, cluster, pod)
    verdicts = {name: Verdict(make(options), pod, cluster) for name, make in release.filters.items()}
    answered: dict[str, Any] = {
        "predicates": {name: _in_words(name, verdict, cluster, rows) for name, verdict in verdicts.items()}
    }
    error = refuse_claims(pod, cluster) if release.checks_claims else None
    if not rows and not release.refuses_empty:
        return answered | {"message": NO_NODES}
    if not rows:
        error = error or NO_NODES
    if error is not None:
        return answered | {"error": error}
    on = release.default_filters(options)
    asked = {name: verdict for name, verdict in verdicts.items() if name in on}
    before = prefilter((name, verdict.plugin, verdict.state) for name, verdict in asked.items())
    if before.error is not None:
        return answered | {"error": before.error}
    left, failed = _left(before, cluster, rows)
    for verdict in asked.values():
        error = verdict.error(left)
        if error is not None:
            return answered | {"error": error}
        failing = verdict.failing(left)
        for row in failing:
            failed.setdefault(row, []).extend(release.reported(verdict.reasons(row)))
        if failing and not release.asks_all:
            left = [row for row in left if row not in failed]
    fitting = [row for row in rows if row not in failed]
    answered["feasible"] = sorted(names[row] for row in fitting)
    answered["failed"] = {names[row]: reasons for row, reasons in failed.items()}
    if not fitting:
        return answered | {"message": _message(len(rows), answered["failed"], before)}
    weights = release.default_scores(options)
    left_rows = np.array(fitting, dtype=np.intp)
    lone = release.scores_lone_node
    return answered | _scores(scores, weights, cluster, pod, left_rows, scores_lone_node=lone)


def _candidates(release: Release, cluster: Cluster, pod: Incoming) -> list[int]:
    """Return the rows of the nodes that the release looks at."""
    rows: list[int] = np.flatnonzero(cluster.nodes.alive).tolist()
    if release.drops is None:
        return rows
    dropped = set(Verdict(release.drops, pod, cluster).failing(rows))
    return [row for row in rows if row not in dropped]


def _in_words(name: str, verdict: Verdict, cluster: Cluster, rows: list[int]) -> Reasons | dict[str, str]:
    before = prefilter([(name, verdict.plugin, verdict.state)])
    left, failed = _left(before, cluster, rows)
    error = before.error or verdict.error(left)
    if error is not None:
        return {"error": error}
    failed |= {row: list(verdict.reasons(row)) for row in verdict.failing(left)}
    return {cluster.nodes.names[row]: reasons for row, reasons in failed.items()}


def _left(before: PreFiltered, cluster: Cluster, rows: list[int]) -> tuple[list[int], dict[int, list[str]]]:
    """Return the rows that are to be asked, and the reasons of the others."""
    if before is EVERY_NODE:
        return rows, {}
    asked = before.asked(cluster.nodes).tolist()
    reasons = before.rejection or (before.left_out,)
    return [row for row in rows if asked[row]], {row: list(reasons) for row in rows if not asked[row]}


def _message(n_nodes: int, failed: Reasons, before: PreFiltered) -> str:
    counts: dict[str, int] = {}
    for reasons in failed.values():
        for reason in reasons:
            counts[reason] = counts.get(reason, 0) + 1
    return str(Unschedulable(n_nodes, counts, before.rejection))


def _scores(
    scores: dict[str, ScorePlugin[Any]],
    weights: dict[str, int],
    cluster: Cluster,
    pod: Incoming,
    rows: NDArray[np.intp],
    *,
    scores_lone_node: bool,
) -> dict[str, Any]:
    names = [cluster.nodes.names[row] for row in rows.tolist()]
    total = np.zeros(len(rows), dtype=np.int64)
    priorities: dict[str, Any] = {}
    columns: dict[ScorePlugin[Any], IntColumn | str] = {}
    error: str | None = None
    for name, plugin in scores.items():
        if plugin not in columns:
            columns[plugin] = _score(plugin, pod, cluster, rows)
        column = columns[plugin]
        if isinstance(column, str):
            priorities[name] = {"error": column}
            error = error or (column if name in weights else None)
            continue
        if name in weights:
            total += weights[name] * column
        priorities[name] = dict(zip(names, column.tolist(), strict=True))
    if error is not None:
        # The only node is taken without a look at its score.
        lone = len(names) == 1 and not scores_lone_node
        return {"priorities": priorities, "best": names} if lone else {"error": error}
    totals: list[int] = total.tolist()
    highest = max(totals)
    return {
        "priorities": priorities,
        "weighted": dict(zip(names, totals, strict=True)),
        "best": sorted(name for name, amount in zip(names, totals, strict=True) if amount == highest),
    }


def _score(
    plugin: ScorePlugin[Any], pod: Incoming, cluster: Cluster, rows: NDArray[np.intp]
) -> IntColumn | str:
    """Return the scores of rows, or the text of an error."""
    state = plugin.prepare(pod, cluster)
    error = plugin.error(state)
    return error if error is not None else plugin.normalize(state, plugin.score(state, rows), rows)
