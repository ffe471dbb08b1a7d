"""Which nodes could take the pod if less important pods went, and which would have to go.

Resources are judged for all nodes at once. The filters that look at the pods in other ways are asked node by node, and only
where a pod that moves their answers could go, or where others wait for room.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from berth.cluster.arrays import ALL_ROWS, BoolColumn, IntColumn
from berth.cluster.cluster import Incoming
from berth.cluster.pods import PodIds
from berth.framework.plugin import FITS
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.preemption.keeping import Keeping
from berth.scheduling.preemption.outcome import NO_VICTIMS, NOT_HELPFUL, Nomination
from berth.scheduling.preemption.rehearsal import Failure, Rehearsal
from berth.scheduling.preemption.resources import Amounts, Resources
from berth.scheduling.preemption.victims import Victims, lower_pods


@dataclass(frozen=True, slots=True)
class Verdicts:
    """The first filter that each row fails (int64[n_rows]; the number of filters where it fails none), and its code."""

    first: IntColumn
    codes: IntColumn


@dataclass(slots=True)
class Outcome:
    """What came of the dry run.

    Attributes
    ----------
    goes : bool[n]
        Which of the ``victims`` would go.
    segments : intp[n_candidates]
        The segments of ``victims`` whose rows could take the pod.
    reasons : dict of reason to int
        On how many nodes each reason was found against it, those included that were not tried.
    errors : list of str
        What filters met; nodes with an error are no candidates.
    """

    victims: Victims
    goes: BoolColumn
    segments: NDArray[np.intp]
    reasons: dict[str, int] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)

    def row(self, segment: int) -> int:
        """Return a segment's row."""
        return int(self.victims.rows[segment])

    def going(self, segment: int) -> PodIds:
        """Return the pods of a segment that would go, the most important one first."""
        ids: PodIds = self.victims.ids[self._places(segment)]
        return ids

    def n_violations(self, segment: int) -> int:
        """Return how many of them a budget would rather keep."""
        return int(self.victims.violates[self._places(segment)].sum())

    def _places(self, segment: int) -> NDArray[np.intp]:
        victims, start = self.victims, int(self.victims.starts[segment])
        places = victims.turns[start : start + int(victims.counts[segment])]
        places = places[self.goes[places]]
        return places[np.lexsort((victims.started[places], -victims.priority[places]))]


class DryRun:
    """One pod's dry run over an evaluation of its shape.

    Attributes
    ----------
    open_rows : bool[n_rows]
        The nodes that fail a filter in a way that the removal of pods could mend.
    fits : bool[n_rows]
        Those that fail none: where there is one, nothing has to be preempted.
    """

    def __init__(
        self, evaluation: Evaluation, pod: Incoming, waiting: Mapping[int, Sequence[Nomination]]
    ) -> None:
        self._evaluation, self._cluster, self._pod = evaluation, evaluation.cluster, pod
        self._n_filters = len(evaluation.profile.filters)
        self._rehearsal = Rehearsal(evaluation, pod, waiting)
        self._resources = Resources(evaluation, waiting)
        self.open_rows, self.fits = self._base()

    def run(self) -> Outcome:
        """Try every open row."""
        cluster, rehearsal = self._cluster, self._rehearsal
        lower = lower_pods(cluster, self._pod.info.priority, self.open_rows)
        at = cluster.pods.node_row
        has_lower = np.bincount(at[lower], minlength=cluster.nodes.n_rows) > 0
        gone = self._resources.held(lower)
        moving = self._moving(lower)
        moved = np.zeros_like(has_lower)
        moved[[*moving, *rehearsal.waiting]] = bool(rehearsal.filters)
        verdicts = self._verdicts(gone, moved)
        tried = self.open_rows & has_lower
        fits = tried & (verdicts.first == self._n_filters)
        victims = Victims.of(cluster, lower[fits[at[lower]]])
        keeping = Keeping(
            victims, self._resources.room(gone, victims.rows), self._resources.needs(victims.ids)
        )
        keeping.in_bulk(np.flatnonzero(~moved[victims.rows]))
        failed: dict[int, Failure] = {}
        for segment in np.flatnonzero(moved[victims.rows]).tolist():
            row = int(victims.rows[segment])
            failure = self._keep_one_by_one(keeping, segment, moving.get(row, []))
            if failure is not None:
                failed[row] = failure
        outcome = self._outcome(keeping, failed)
        if not len(outcome.segments):
            self._explain(outcome, verdicts, tried, moving, moved, failed)
        return outcome

    # -- what a row fails --------------------------------------------------------------------------------------------

    def _base(self) -> tuple[BoolColumn, BoolColumn]:
        """Judge all rows as they are; return those that may be mended, and those that fit."""
        rehearsal, evaluation = self._rehearsal, self._evaluation
        moved = np.zeros(self._cluster.nodes.n_rows, dtype=np.bool_)
        moved[list(rehearsal.waiting)] = True
        verdicts = self._verdicts({}, moved)
        fits = evaluation.asked() & (verdicts.first == self._n_filters)
        open_rows = evaluation.asked() & ~fits
        for i in np.unique(verdicts.first[open_rows]).tolist():
            rows = np.flatnonzero(open_rows & (verdicts.first == i))
            plugin, state = evaluation.profile.filters[i].plugin, evaluation.filter_states[i]
            open_rows[rows[plugin.beyond_help(state, verdicts.codes[rows], rows)]] = False
        for row in rehearsal.waiting if rehearsal.filters else ():
            first = int(verdicts.first[row])
            failure = rehearsal.failure(row, first if first < self._n_filters else None)
            if failure is not None and evaluation.asked()[row]:
                fits[row] = False
                open_rows[row] = not rehearsal.is_beyond_help(failure, row)
        return open_rows, fits

    def _verdicts(self, gone: Amounts, moved: BoolColumn) -> Verdicts:
        """Judge all rows with amounts gone, and those there that others wait for.

        What the filters of the rehearsal say of the ``moved`` rows is left out.
        """
        evaluation, n_rows = self._evaluation, self._cluster.nodes.n_rows
        verdicts = Verdicts(
            np.full(n_rows, self._n_filters, dtype=np.int64), np.zeros(n_rows, dtype=np.int64)
        )
        for i in reversed(range(self._n_filters)):
            if not evaluation.busy_filters[i]:
                continue
            codes, plugin = evaluation.codes[i], evaluation.profile.filters[i].plugin
            if i in self._resources.filters:
                with self._resources.without(gone):
                    codes = plugin.filter(evaluation.filter_states[i], ALL_ROWS)
            fails = codes != FITS
            if i in self._rehearsal.filters:
                fails &= ~moved
            verdicts.first[fails] = i
            verdicts.codes[fails] = codes[fails]
        return verdicts

    def _explain(
        self,
        outcome: Outcome,
        verdicts: Verdicts,
        tried: BoolColumn,
        moving: Mapping[int, list[int]],
        moved: BoolColumn,
        failed: dict[int, Failure],
    ) -> None:
        """Count the reasons, and note the errors, of all nodes."""
        counts = outcome.reasons
        n_not_tried = len(self._cluster.nodes) - int(self.open_rows.sum())
        n_without_victims = int((self.open_rows & ~tried).sum())
        for reason, n in ((NOT_HELPFUL, n_not_tried), (NO_VICTIMS, n_without_victims)):
            if n:
                counts[reason] = n
        failing = tried & (verdicts.first < self._n_filters)
        for row in np.flatnonzero(failing & moved).tolist():
            with self._lifted(moving.get(row, []), row):
                failure = self._rehearsal.failure(row, int(verdicts.first[row]))
            if failure is not None:
                failed[row] = failure
                failing[row] = False
        rows = np.flatnonzero(failing)
        pairs, times = np.unique(
            np.stack([verdicts.first[rows], verdicts.codes[rows]]), axis=1, return_counts=True
        )
        for i, code, n in zip(*pairs.tolist(), times.tolist(), strict=True):
            self._note(outcome, (i, code), self._evaluation.reasons(i, code), n)
        for failure in failed.values():
            self._note(outcome, failure, self._rehearsal.reasons(failure), 1)

    def _note(self, outcome: Outcome, failure: Failure, reasons: tuple[str, ...], n: int) -> None:
        i, code = failure
        if code < FITS:
            outcome.errors.append(
                f'running "{self._evaluation.profile.filters[i].name}" filter plugin: {reasons[0]}'
            )
            return
        for reason in reasons:
            outcome.reasons[reason] = outcome.reasons.get(reason, 0) + n

    # -- who goes ----------------------------------------------------------------------------------------------------

    def _moving(self, lower: PodIds) -> dict[int, list[int]]:
        """Return, by row, the pods that move what the filters of the rehearsal say."""
        moving: dict[int, list[int]] = {}
        if not self._rehearsal.filters or not len(lower):
            return moving
        cluster = self._cluster
        column = cluster.pods.column
        shapes = column("namespace_id")[lower].astype(np.int64)
        shapes = shapes * cluster.label_sets.n_rows + column("labels_id")[lower]
        shapes = shapes * len(cluster.specs) + column("spec_id")[lower]
        distinct, inverse = np.unique(shapes, return_inverse=True)
        labels = cluster.label_sets.all()
        moves = np.zeros(len(distinct), dtype=np.bool_)
        for number, shape in enumerate(distinct.tolist()):
            rest, spec_id = divmod(shape, len(cluster.specs))
            namespace_id, labels_id = divmod(rest, cluster.label_sets.n_rows)
            other = Incoming(
                name="",
                namespace=cluster.namespaces.items[namespace_id],
                labels=labels[labels_id],
                info=cluster.specs[spec_id],
                controller=None,
                namespace_id=namespace_id,
                labels_id=labels_id,
                spec_id=spec_id,
                owners_id=-1,
            )
            moves[number] = self._rehearsal.is_moved_by(other)
        for pod in lower[moves[inverse]].tolist():
            moving.setdefault(int(cluster.pods.node_row[pod]), []).append(pod)
        return moving

    def _keep_one_by_one(self, keeping: "Keeping", segment: int, moving: list[int]) -> Failure | None:
        """Keep as many pods of a row as can be; return why the pod does not fit even without all of them, if so."""
        rehearsal, row = self._rehearsal, int(keeping.victims.rows[segment])
        movers = set(moving)
        with self._lifted(moving, row) as lifted:
            failure = rehearsal.failure(row)
            if failure is not None:
                return failure

            def accepts(pod: int) -> bool:
                if pod not in movers:
                    return True
                rehearsal.lower([pod], row)
                if rehearsal.failure(row) is not None:
                    rehearsal.lift([pod], row)
                    return False
                lifted.remove(pod)
                return True

            keeping.in_turn(segment, accepts)
        return None

    @contextmanager
    def _lifted(self, pods: Sequence[int], row: int) -> Iterator[list[int]]:
        """Lift pods; those that are still in the list in the end are put back."""
        lifted = list(pods)
        self._rehearsal.lift(lifted, row)
        try:
            yield lifted
        finally:
            self._rehearsal.lower(lifted, row)

    def _outcome(self, keeping: "Keeping", failed: Mapping[int, Failure]) -> Outcome:
        victims, goes = keeping.victims, keeping.goes
        if not len(victims.ids):
            return Outcome(victims, goes, np.empty(0, dtype=np.intp))
        fits = ~np.isin(victims.rows, list(failed))
        needs_victims = np.logical_or.reduceat(goes, victims.starts)
        outcome = Outcome(victims, goes, np.flatnonzero(fits & needs_victims))
        names = self._cluster.nodes.names
        outcome.errors += [
            f'expected at least one victim pod on node "{names[row]}"'
            for row in victims.rows[fits & ~needs_victims].tolist()
        ]
        return outcome
