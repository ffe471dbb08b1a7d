"""What filters that look at pods would say of a row, while pods are taken off it and put back. Knows no priorities.

A pod that goes counts as gone and one that comes as there, whether it is terminating or not: upstream's AddPod and RemovePod
of PreFilter extensions. Filters that had nothing to say of the pod at first (PreFilter's Skip) are not asked.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from berth.cluster.cluster import Incoming
from berth.cluster.log import Changes, PodChange
from berth.framework.plugin import FITS, FilterPlugin
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.preemption.outcome import Nomination

Failure = tuple[int, int]
"""The index of the first filter that a row fails, and that filter's code."""


class Rehearsal:
    """The filters of an evaluation that look at more than resources, with states of their own.

    Attributes
    ----------
    filters : tuple of int
        Their indices in the profile.
    waiting : dict of row to nominations
        The pods that count as there in a first round of asking; a second one goes without them.
    """

    def __init__(
        self, evaluation: Evaluation, pod: Incoming, waiting: Mapping[int, Sequence[Nomination]]
    ) -> None:
        self._profile, self._cluster, self._pod = evaluation.profile, evaluation.cluster, pod
        self.waiting = waiting
        parts = zip(
            evaluation.profile.filters, evaluation.filter_states, evaluation.busy_filters, strict=True
        )
        self.filters = tuple(
            i
            for i, (f, state, busy) in enumerate(parts)
            if busy and f.plugin.reads_pods and f.plugin.resource_rule(state) is None
        )
        self._states: dict[int, Any] | None = None

    def is_moved_by(self, other: Incoming) -> bool:
        """Tell whether a pod may change what any of the filters says."""
        return any(self._plugin(i).moved_by(state, other) for i, state in self._prepared().items())

    def lift(self, pods: Sequence[int], row: int) -> None:
        """Take pods off the row."""
        self._prepared()
        changes = [self._change(pod, row, -1) for pod in pods]
        for pod in pods:
            self._cluster.lift(pod)
        self._mend(changes, row)

    def lower(self, pods: Sequence[int], row: int) -> None:
        """Put pods back on the row."""
        for pod in pods:
            self._cluster.lower(pod, row)
        self._mend([self._change(pod, row, 1) for pod in pods], row)

    def failure(self, row: int, fails_at: int | None = None) -> Failure | None:
        """Ask the filters: first with the pods that wait for room on the row, then without them.

        Parameters
        ----------
        fails_at : int or None
            The index of another filter that the row fails anyway: those after it are not asked, and nothing without the
            pods that wait.
        """
        waiting = self.waiting.get(row)
        if not waiting or not self._prepared():
            return self._ask(row, fails_at)
        there = [self._cluster.assume(n.pod, row, name=n.pod.name, uid=n.pod.uid) for n in waiting]
        self._mend([self._change(pod, row, 1) for pod in there], row)
        found = self._ask(row, fails_at)
        gone = [self._change(pod, row, -1) for pod in there]
        for pod in reversed(there):
            self._cluster.forget(pod)
        self._mend(gone, row)
        return found if found is not None or fails_at is not None else self._ask(row, None)

    def reasons(self, failure: Failure) -> tuple[str, ...]:
        """Return the reasons of a failure."""
        i, code = failure
        return self._plugin(i).reasons(self._prepared()[i], code)

    def is_beyond_help(self, failure: Failure, row: int) -> bool:
        """Tell whether no removal of pods would mend a failure."""
        i, code = failure
        rows = np.array([row], dtype=np.intp)
        return bool(self._plugin(i).beyond_help(self._prepared()[i], np.array([code]), rows)[0])

    def _ask(self, row: int, fails_at: int | None) -> Failure | None:
        rows = np.array([row], dtype=np.intp)
        for i, state in self._prepared().items():
            if fails_at is not None and i > fails_at:
                break
            code = int(self._plugin(i).filter(state, rows)[0])
            if code != FITS:
                return i, code
        return None

    def _prepared(self) -> dict[int, Any]:
        """Return the states of the filters that are asked, by index; made when they are first needed."""
        if self._states is None:
            made = {i: self._plugin(i).prepare(self._pod, self._cluster) for i in self.filters}
            self._states = {i: state for i, state in made.items() if not self._plugin(i).is_idle(state)}
        return self._states

    def _mend(self, pods: Iterable[PodChange], row: int) -> None:
        changes = Changes(np.array([row], dtype=np.intp), list(pods))
        states = self._prepared()
        for i, state in states.items():
            if self._plugin(i).mend(state, changes) is None:
                states[i] = self._plugin(i).prepare(self._pod, self._cluster)

    def _change(self, pod: int, row: int, sign: int) -> PodChange:
        column = self._cluster.pods.column
        return PodChange(
            row=row,
            pod=pod,
            namespace_id=int(column("namespace_id")[pod]),
            spec_id=int(column("spec_id")[pod]),
            labels_id=int(column("labels_id")[pod]),
            terminating=False,
            sign=sign,
        )

    def _plugin(self, i: int) -> FilterPlugin[Any]:
        return self._profile.filters[i].plugin
