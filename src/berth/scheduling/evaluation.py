"""What a profile makes of one shape of pods over all nodes, kept and mended row by row."""

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, BoolColumn, IntColumn, Rows
from berth.cluster.cluster import Cluster, Incoming
from berth.framework.plugin import FITS
from berth.framework.prefilter import EVERY_NODE, PreFiltered, prefilter
from berth.framework.profile import Profile
from berth.scheduling.basic_checks import refuse_claims

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

    Attributes
    ----------
    busy_filters, busy_scores : list of bool
        Which plugins have anything to say of the shape; what the others say is one column of zeros that they share.
    before : PreFiltered
        What the filters say before any node is looked at.
    dropped : bool[n_rows] or None
        The nodes that the profile leaves out before any filter is asked.
    """

    def __init__(self, profile: Profile, pod: Incoming, cluster: Cluster) -> None:
        self.profile = profile
        self.pod = pod
        self.cluster = cluster
        self.filter_states: list[Any] = []
        self.score_states: list[Any] = []
        self.busy_filters: list[bool] = []
        self.busy_scores: list[bool] = []
        self.codes: list[IntColumn] = []
        self.raw: list[IntColumn] = []
        self.before: PreFiltered = EVERY_NODE
        self.dropped: BoolColumn | None = None
        self.fits: BoolColumn
        self.version = -1
        self.evaluate()

    def evaluate(self) -> None:
        """Compute everything anew."""
        pod, cluster = self.pod, self.cluster
        self.filter_states = [f.plugin.prepare(pod, cluster) for f in self.profile.filters]
        self.score_states = [s.plugin.prepare(pod, cluster) for s in self.profile.scores]
        self.busy_filters = [
            not f.plugin.is_idle(state)
            for f, state in zip(self.profile.filters, self.filter_states, strict=True)
        ]
        self.busy_scores = [
            not s.plugin.is_idle(state)
            for s, state in zip(self.profile.scores, self.score_states, strict=True)
        ]
        nothing = zeros(cluster.nodes.n_rows)
        self.codes = [
            f.plugin.filter(state, ALL_ROWS) if busy else nothing
            for f, state, busy in zip(
                self.profile.filters, self.filter_states, self.busy_filters, strict=True
            )
        ]
        self.raw = [
            s.plugin.score(state, ALL_ROWS) if busy else nothing
            for s, state, busy in zip(self.profile.scores, self.score_states, self.busy_scores, strict=True)
        ]
        self.before = self._prefilter()
        self.dropped = self._drop()
        self._combine(ALL_ROWS)
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
        for i, f in enumerate(self.profile.filters):
            rows = f.plugin.mend(self.filter_states[i], changes)
            if rows is None:
                self.filter_states[i] = f.plugin.prepare(self.pod, self.cluster)
                rows = ALL_ROWS
            was_busy, busy = self.busy_filters[i], not f.plugin.is_idle(self.filter_states[i])
            self.busy_filters[i] = busy
            if busy != was_busy:
                rows = ALL_ROWS
                self.codes[i] = zeros(len(touched)) if was_busy else zeros(len(touched)).copy()
            if busy:
                self.codes[i][rows] = f.plugin.filter(self.filter_states[i], rows)
            if busy or was_busy:
                touched[rows] = True
        for i, s in enumerate(self.profile.scores):
            rows = s.plugin.mend(self.score_states[i], changes)
            if rows is None:
                self.score_states[i] = s.plugin.prepare(self.pod, self.cluster)
                rows = ALL_ROWS
            was_busy, busy = self.busy_scores[i], not s.plugin.is_idle(self.score_states[i])
            self.busy_scores[i] = busy
            if busy != was_busy:
                rows = ALL_ROWS
                self.raw[i] = zeros(len(touched)) if was_busy else zeros(len(touched)).copy()
            if busy:
                self.raw[i][rows] = s.plugin.score(self.score_states[i], rows)
        before, self.before = self.before, self._prefilter()
        moved = self.before != before
        if changes.nodes and self.dropped is not None:
            self.dropped, moved = self._drop(), True
        self._combine(ALL_ROWS if moved else np.flatnonzero(touched))
        self.version = log.version

    def normalized(self, rows: NDArray[np.intp]) -> list[IntColumn]:
        """Return each priority's scores of the feasible rows, unweighted, in the profile's order."""
        return [
            s.plugin.normalize(state, raw[rows], rows) if busy else zeros(len(rows))
            for s, state, raw, busy in zip(
                self.profile.scores, self.score_states, self.raw, self.busy_scores, strict=True
            )
        ]

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
        if not any(
            busy and int(codes.min(initial=0)) < 0
            for busy, codes in zip(self.busy_filters, self.codes, strict=True)
        ):
            return None
        failing = self.failing()
        asked = self.asked()
        for row in np.argsort(self.cluster.nodes.rank):
            if not asked[row]:
                continue
            for i, codes in enumerate(self.codes):
                if failing[i][row] and codes[row] < 0:
                    return self.reasons(i, int(codes[row]))[0]
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

    def _prefilter(self) -> PreFiltered:
        named = zip(self.profile.filters, self.filter_states, strict=True)
        return prefilter((f.name, f.plugin, state) for f, state in named)

    def _drop(self) -> BoolColumn | None:
        plugin = self.profile.drops
        if plugin is None:
            return None
        dropped: BoolColumn = plugin.filter(plugin.prepare(self.pod, self.cluster), ALL_ROWS) != FITS
        return dropped

    def _combine(self, rows: Rows) -> None:
        asked = self.asked()
        if isinstance(rows, slice):
            self.fits = asked.copy()
        else:
            self.fits[rows] = asked[rows]
        for busy, codes in zip(self.busy_filters, self.codes, strict=True):
            if busy:
                self.fits[rows] &= codes[rows] == FITS
