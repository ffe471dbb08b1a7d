"""What a profile makes of one shape of pods over all nodes, kept and mended row by row."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, BoolColumn, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.framework.plugin import FITS, Plugin
from berth.framework.prefilter import EVERY_NODE, PreFiltered, prefilter
from berth.framework.profile import Profile
from berth.scheduling import ruled
from berth.scheduling.amounts import Amounts
from berth.scheduling.basic_checks import refuse_claims
from berth.scheduling.ruled import MAX_WEIGHT, Bound, Scores
from berth.scheduling.side import Side

NO_NODES = "no nodes available to schedule pods"


@dataclass(frozen=True, slots=True)
class Unschedulable:
    """No node fits; ``str()`` is the release's FitError text.

    Attributes
    ----------
    reasons : dict of reason to int
        How many nodes each reason concerns: of the first filter that each node fails, or of all if the profile says so.
    rejection : tuple of str
        Why the pod was turned away before any node was looked at, if it was (1.36).
    rejected_by : frozenset of str
        The filters behind it all (1.36's ``UnschedulablePlugins``): only what helps one of them helps the pod.
    """

    n_nodes: int
    reasons: dict[str, int]
    rejection: tuple[str, ...] = ()
    rejected_by: frozenset[str] = field(default=frozenset(), compare=False)

    def __str__(self) -> str:
        if self.rejection:
            return f"0/{self.n_nodes} nodes are available: {', '.join(self.rejection)}."
        parts = sorted(f"{count} {reason}" for reason, count in self.reasons.items())
        return f"0/{self.n_nodes} nodes are available: {', '.join(parts)}."


@lru_cache(maxsize=8)
def zeros(n: int) -> IntColumn:
    """Return a column of zeros that nobody may write to."""
    column = np.zeros(n, dtype=np.int64)
    column.flags.writeable = False
    return column


class Evaluation:
    """Verdicts and raw scores of one shape for every row, with the version of the cluster that they hold for.

    What can be told apart without columns is: rules of resources are applied to all rows at once, whichever plugins give
    them, and a plugin's own column is computed when somebody asks for it.

    Attributes
    ----------
    fits : bool[n_rows]
        Where all filters let the shape pass.
    before : PreFiltered
        What the filters say before any node is looked at.
    dropped : bool[n_rows] or None
        The nodes that the profile leaves out before any filter is asked.
    """

    def __init__(self, profile: Profile, pod: Incoming, cluster: Cluster) -> None:
        self.profile = profile
        self.pod = pod
        self.cluster = cluster
        self.before: PreFiltered = EVERY_NODE
        self.dropped: BoolColumn | None = None
        self.fits: BoolColumn
        self.version = -1
        self._filters: Side
        self._scores: Side
        self._rules: dict[int, Bound] = {}
        self._scores_of_rules: Scores | None = None
        self.evaluate()

    @property
    def filter_states(self) -> Sequence[Any]:
        """What each filter has prepared."""
        return self._filters.states

    @property
    def score_states(self) -> Sequence[Any]:
        """What each score has prepared."""
        return self._scores.states

    @property
    def busy_filters(self) -> list[bool]:
        """Which filters have anything to say of the shape; the others share one column of zeros."""
        return self._filters.busy

    @property
    def busy_scores(self) -> list[bool]:
        """Which scores do, likewise."""
        return self._scores.busy

    @property
    def skipped_filters(self) -> list[bool]:
        """Which filters skip the shape (`Plugin.skips`): constant, as long as nothing comes that they heed."""
        return self._filters.skipped

    @property
    def skipped_scores(self) -> list[bool]:
        """Which scores do, likewise."""
        return self._scores.skipped

    @property
    def codes(self) -> Sequence[IntColumn]:
        """The verdicts of each filter (int64[n_rows]), computed when they are first asked for."""
        return self._filters.columns

    @property
    def raw(self) -> Sequence[IntColumn]:
        """The raw scores of each priority (int64[n_rows]), likewise."""
        return self._scores.columns

    def evaluate(self) -> None:
        """Look at everything anew."""
        profile, pod, cluster = self.profile, self.pod, self.cluster
        filters = [f.plugin for f in profile.filters]
        scores = [s.plugin for s in profile.scores]

        def nothing() -> IntColumn:
            return zeros(cluster.nodes.n_rows)

        self._filters = Side(
            filters, pod, cluster, lambda i, state, rows: filters[i].filter(state, rows), nothing
        )
        self._scores = Side(
            scores, pod, cluster, lambda i, state, rows: scores[i].score(state, rows), nothing
        )
        self.before = self._prefilter()
        self.dropped = self._drop()
        self._combine(ALL_ROWS)
        self._find_rules()
        self._scores_of_rules = None
        self.version = cluster.log.version

    def mend(self) -> None:
        """Bring the evaluation up to the cluster's version, by the touched rows if the log still knows them."""
        log = self.cluster.log
        if self.version == log.version:
            return
        changes = log.since(self.version)
        if changes is None:
            self.evaluate()
            return
        touched = np.zeros(self.cluster.nodes.n_rows, dtype=np.bool_)
        for _, rows in self._filters.mend(changes):
            touched[rows] = True
        for _ in self._scores.mend(changes):
            pass
        before, self.before = self.before, self._prefilter()
        moved = self.before != before
        if changes.nodes and self.dropped is not None:
            self.dropped, moved = self._drop(), True
        self._combine(ALL_ROWS if moved else np.flatnonzero(touched))
        rules = self._rules
        self._find_rules()
        if self._scores_of_rules is not None:
            if self._rules == rules:
                self._scores_of_rules.mend(Amounts.of(self.cluster), changes.rows)
            else:
                self._scores_of_rules = None
        self.version = log.version

    def weigh(self, rows: NDArray[np.intp]) -> tuple[dict[int, IntColumn], IntColumn]:
        """Return scores of feasible rows: those that had to be normalized, unweighted, and weighted totals (int64[n] each).

        The first are by the priorities' places in the profile; `scores_of` knows the others.
        """
        normalized: dict[int, IntColumn] = {}
        total = self.total_of_rules().take(rows)
        for i in self.to_normalize():
            s = self.profile.scores[i]
            column = s.plugin.normalize(self.score_states[i], self.raw[i].take(rows), rows)
            normalized[i] = column
            total += column if s.weight == 1 else s.weight * column
        return normalized, total

    def total_of_rules(self) -> IntColumn:
        """Return the weighted total of the scores that are rules of resources (int64[n_rows], not to be written to)."""
        if not self._rules:
            return zeros(self.cluster.nodes.n_rows)
        if self._scores_of_rules is None:
            weighted = [(self.profile.scores[i].weight, rule) for i, rule in self._rules.items()]
            self._scores_of_rules = Scores(Amounts.of(self.cluster), weighted)
        return self._scores_of_rules.total

    def to_normalize(self) -> list[int]:
        """Return the places in the profile of all other scores that have anything to say."""
        return [i for i, busy in enumerate(self.busy_scores) if busy and i not in self._rules]

    def scores_of(self, row: int) -> list[int]:
        """Return a row's scores by the priorities that were not normalized by `weigh`, 0 for those that were."""
        found = [0] * len(self.profile.scores)
        if self._scores_of_rules is not None:
            for i, score in zip(self._rules, self._scores_of_rules.by_rule[:, row].tolist(), strict=True):
                found[i] = score
        return found

    def normalized(self, rows: NDArray[np.intp]) -> list[IntColumn]:
        """Return each priority's scores of the feasible rows, unweighted, in the profile's order."""
        columns, _ = self.weigh(rows)
        if self._scores_of_rules is not None:
            for i, scores in zip(self._rules, self._scores_of_rules.by_rule, strict=True):
                columns[i] = scores.take(rows).astype(np.int64)
        nothing = zeros(len(rows))
        return [columns.get(i, nothing) for i in range(len(self.profile.scores))]

    def first_failures(self) -> IntColumn:
        """Return for every row the index of the first filter that it fails, the number of filters where it fits."""
        n_filters = len(self.codes)
        first = np.full(self.cluster.nodes.n_rows, n_filters, dtype=np.int64)
        for i in reversed(range(n_filters)):
            first[self.codes[i] != FITS] = i
        return first

    def failing(self) -> list[BoolColumn]:
        """Return for every filter the rows whose failure gives a reason: where none before it has failed, or all."""
        if self.profile.always_check_all:
            return [codes != FITS for codes in self.codes]
        first = self.first_failures()
        return [first == i for i in range(len(self.codes))]

    def error(self) -> str | None:
        """Return the text of the first error, of the filters or that a node meets on its way through them."""
        refused = refuse_claims(self.pod, self.cluster) if self.profile.checks_claims else None
        error = refused or self.before.error
        if error is not None:
            return error
        if self.dropped is not None and not (self.cluster.nodes.alive & ~self.dropped).any():
            return NO_NODES
        if not self._may_fail():
            return None
        failing = self.failing()
        asked = self.asked()
        for row in np.argsort(self.cluster.nodes.rank):
            if not asked[row]:
                continue
            for i, found in enumerate(self.codes):
                if failing[i][row] and found[row] < 0:
                    return self.reasons(i, int(found[row]))[0]
        return None

    def asked(self) -> BoolColumn:
        """Tell which rows the filters are asked about (bool[n_rows])."""
        asked = self.before.asked(self.cluster.nodes)
        return asked if self.dropped is None else asked & ~self.dropped

    def reasons(self, i: int, code: int) -> tuple[str, ...]:
        """Return the reasons behind a code of the profile's filter ``i``."""
        return self.profile.filters[i].plugin.reasons(self.filter_states[i], code)

    def unschedulable(self) -> Unschedulable:
        """Count the reasons why no node fits."""
        counts: dict[str, int] = {}
        n_nodes = len(self.cluster.nodes)
        if self.dropped is not None:
            n_nodes -= int((self.cluster.nodes.alive & self.dropped).sum())
        if self.before.rejection:
            return Unschedulable(n_nodes, counts, self.before.rejection, frozenset(self.before.rejected_by))
        asked = self.asked()
        n_left_out = n_nodes - int(asked.sum())
        if n_left_out:
            counts[self.before.left_out] = n_left_out
        failing = self.failing()
        rejected_by = set(self.before.restricted_by)
        for i, codes in enumerate(self.codes):
            found, times = np.unique(codes[asked & failing[i]], return_counts=True)
            if len(found):
                rejected_by.add(self.profile.filters[i].name)
            for code, n in zip(found.tolist(), times.tolist(), strict=True):
                for reason in self.profile.reported(self.reasons(i, code)):
                    counts[reason] = counts.get(reason, 0) + n
        return Unschedulable(n_nodes, counts, rejected_by=frozenset(rejected_by))

    def _may_fail(self) -> bool:
        """Tell whether a row meets an error of a filter; where no codes are needed there are none."""
        codes = self._filters.columns
        known = [codes[i] for i, busy in enumerate(self.busy_filters) if busy and codes.has(i)]
        return any(int(column.min(initial=0)) < 0 for column in known)

    def _prefilter(self) -> PreFiltered:
        return prefilter(
            (f.name, f.plugin, self.filter_states[i])
            for i, (f, skipped) in enumerate(zip(self.profile.filters, self.skipped_filters, strict=True))
            if not skipped
        )

    def _drop(self) -> BoolColumn | None:
        plugin = self.profile.drops
        if plugin is None:
            return None
        dropped: BoolColumn = plugin.filter(plugin.prepare(self.pod, self.cluster), ALL_ROWS) != FITS
        return dropped

    def _combine(self, rows: Rows) -> None:
        """Find out which of the rows fit."""
        asked = self.asked()
        fits = asked.copy() if isinstance(rows, slice) else asked[rows]
        amounts = Amounts.of(self.cluster)
        for i, (f, busy) in enumerate(zip(self.profile.filters, self.busy_filters, strict=True)):
            if not busy:
                continue
            for part, state in f.plugin.parts_of(self.filter_states[i]):
                rule = _exact_rule(part, state, amounts)
                if rule is not None:
                    ruled.fit(amounts, rule, fits, rows)
                    continue
                passes = part.passes(state, rows)
                if passes is None:
                    passes = (self.codes[i][rows] if part is f.plugin else part.filter(state, rows)) == FITS
                fits &= passes
        if isinstance(rows, slice):
            self.fits = fits
        else:
            self.fits[rows] = fits

    def _find_rules(self) -> None:
        amounts = Amounts.of(self.cluster)
        self._rules = {}
        for i, (s, busy) in enumerate(zip(self.profile.scores, self.busy_scores, strict=True)):
            rule = _exact_rule(s.plugin, self.score_states[i], amounts) if busy else None
            if rule is not None and abs(s.weight) < MAX_WEIGHT:
                self._rules[i] = rule


def _exact_rule(plugin: Plugin[Any], state: Any, amounts: Amounts) -> Bound | None:
    """Return a plugin's rule of resources if it has one that can be applied in floats."""
    rule = plugin.resource_rule(state)
    return None if rule is None else ruled.bind(rule, amounts)
