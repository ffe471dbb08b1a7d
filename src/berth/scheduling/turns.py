"""Pods of the queue, decided in their order: many at once where they are alone with one another, else one at a time.

The cluster counts a pod from its decision on. A pod that others may have to make room for ends a turn: the next pods are
decided when its nomination is known.

Source: 1.36, ``schedule_one.go`` (``SchedulePod``, ``evaluateNominatedNode``, ``PostFilter``).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

import numpy as np

from berth.cluster.arrays import NONE, BoolColumn
from berth.cluster.cluster import Cluster, Incoming
from berth.framework.profile import Profile
from berth.scheduling.decide import failed
from berth.scheduling.evaluation import NO_NODES, Evaluation, Unschedulable
from berth.scheduling.evaluations import Evaluations
from berth.scheduling.pending import place_all
from berth.scheduling.preemption import Nomination, NotPreempted, Preemption, preempt
from berth.scheduling.preemption.dry_run import DryRun
from berth.scheduling.preemption.victims import lower_pods
from berth.scheduling.queueing import Nominator, QueuedPod
from berth.scheduling.queueing.hints import DEFAULT_SCHEDULER
from berth.scheduling.ties import TieBreaker


@dataclass(frozen=True, slots=True)
class Placed:
    """A pod found a node.

    Attributes
    ----------
    row : int
        The node's.
    assumed : int
        The id under which the cluster counts the pod there.
    """

    queued: QueuedPod
    row: int
    assumed: int


@dataclass(frozen=True, slots=True)
class Turned:
    """No node takes a pod, or its decision has met an error.

    Attributes
    ----------
    message : str
        In upstream's words, those of preemption included.
    rejected_by : frozenset of str
        The filters behind it; empty for an error, and where there are no nodes at all.
    is_error : bool
        Whether the decision itself has failed.
    preemption : Preemption or None
        Who has to make room for it.
    nominated_node : str or None
        The node that it is nominated for from now on, empty for none; None: it stays as it was.
    """

    queued: QueuedPod
    message: str
    rejected_by: frozenset[str] = frozenset()
    is_error: bool = False
    preemption: Preemption | None = None
    nominated_node: str | None = ""


@dataclass(slots=True)
class Turn:
    """What was decided of the first pods.

    Attributes
    ----------
    n : int
        Of how many.
    """

    n: int
    placed: list[Placed] = field(default_factory=list)
    turned: list[Turned] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Known:
    """Why a shape found no node, and the cluster's version when it did."""

    version: int
    turned: Turned


class Turns:
    """Decides for pods by the profiles that they name.

    Parameters
    ----------
    nominator : Nominator
        The queue's.
    moves_more : callable
        Tells whether a pod that is placed changes more of the cluster than what its node holds: it is a turn of its own.
    """

    def __init__(
        self,
        cluster: Cluster,
        profiles: Mapping[str, Profile],
        nominator: Nominator,
        ties: TieBreaker | None = None,
        moves_more: Callable[[Incoming], bool] = lambda pod: False,
    ) -> None:
        self._cluster = cluster
        self._evaluations = {name: Evaluations(profile, cluster) for name, profile in profiles.items()}
        self._nominator = nominator
        self._ties = ties or TieBreaker()
        self._moves_more = moves_more
        self._known: dict[tuple[str, tuple[int, ...]], _Known] = {}
        self._beyond_preemption: set[tuple[str, tuple[int, ...]]] = set()

    def decide(self, pods: Sequence[QueuedPod]) -> Iterator[Turn]:
        """Decide for all, turn by turn; what a turn says has to be told to the queue before the next one is taken."""
        self._beyond_preemption.clear()
        done = 0
        while done < len(pods):
            turn = self._next(pods[done:])
            done += turn.n
            yield turn

    def _next(self, pods: Sequence[QueuedPod]) -> Turn:
        name = scheduler_of(pods[0].pod)
        alike = list(
            takewhile(lambda each: scheduler_of(each.pod) == name and not self._is_alone(each), pods)
        )
        if not alike:
            return self._turn_of(pods[0])
        return self._together(alike, self._evaluations[name])

    def place(self, queued: QueuedPod, row: int) -> Placed:
        """Count a pod on a row that somebody else has chosen."""
        return Placed(queued, row, int(self._assume(queued.pod, row)))

    def _is_alone(self, queued: QueuedPod) -> bool:
        """Tell whether a pod was promised a node, has to leave others the room that was promised to them, or moves more."""
        pod = queued.pod
        if self._moves_more(pod):
            return True
        if not len(self._nominator):
            return False
        return bool(self._nominator.node_of(pod.uid) or self._nominator.beside(pod, self._cluster.nodes.row))

    # -- many --------------------------------------------------------------------------------------------------------

    def _together(self, pods: Sequence[QueuedPod], evaluations: Evaluations) -> Turn:
        at: dict[tuple[int, ...], int] = {}
        order = np.array([at.setdefault(each.pod.shape, len(at)) for each in pods], dtype=np.int32)
        first = {shape: each.pod for shape, each in zip(order.tolist(), pods, strict=True)}
        shapes = [first[i] for i in range(len(at))]
        outcome = place_all(evaluations, shapes, order, self._ties)
        rows, ids = outcome.row.tolist(), outcome.pod.tolist()
        n = self._n_until_preemption(pods, rows)
        for i in reversed(range(n, len(pods))):
            if rows[i] != NONE:
                # Room may have to be made for a pod before these: they are decided after it.
                self._cluster.forget(ids[i])
                self._ties.counter -= 1
        turn = Turn(n)
        for i in range(n):
            if rows[i] != NONE:
                turn.placed.append(Placed(pods[i], rows[i], ids[i]))
        for i in range(n):
            if rows[i] == NONE:
                one = self._turn_of(pods[i])
                turn.placed += one.placed
                turn.turned += one.turned
        return turn

    def _n_until_preemption(self, pods: Sequence[QueuedPod], rows: Sequence[int]) -> int:
        """Return how many pods come up to and with the first one without a node that others could make room for."""
        could: dict[int, bool] = {}
        everywhere = np.ones(self._cluster.nodes.n_rows, dtype=np.bool_)
        for i, row in enumerate(rows):
            priority = pods[i].priority
            if row != NONE or self._is_beyond_preemption(pods[i].pod):
                continue
            if priority not in could:
                could[priority] = bool(len(lower_pods(self._cluster, priority, everywhere)))
            if could[priority]:
                return i + 1
        return len(rows)

    def _is_beyond_preemption(self, pod: Incoming) -> bool:
        """Tell whether nobody can make room for a pod: what has been placed since that was found out changes nothing."""
        never = pod.info.spec.preemption_policy == "Never"
        return never or (scheduler_of(pod), pod.shape) in self._beyond_preemption

    # -- one ---------------------------------------------------------------------------------------------------------

    def _turn_of(self, queued: QueuedPod) -> Turn:
        key = (scheduler_of(queued.pod), queued.pod.shape)
        known = self._known.get(key)
        if known is not None and known.version == self._cluster.log.version and not len(self._nominator):
            t = known.turned
            return Turn(
                1, turned=[Turned(queued, t.message, t.rejected_by, t.is_error, None, t.nominated_node)]
            )
        outcome = self._one(queued)
        if isinstance(outcome, Placed):
            return Turn(1, placed=[outcome])
        if len(self._known) > _MOST_KNOWN:
            self._known.clear()
        if outcome.preemption is None and not len(self._nominator):
            self._known[key] = _Known(self._cluster.log.version, outcome)
        return Turn(1, turned=[outcome])

    def _one(self, queued: QueuedPod) -> Placed | Turned:
        pod, cluster = queued.pod, self._cluster
        if not len(cluster.nodes):
            return Turned(queued, NO_NODES)
        evaluation = self._evaluations[scheduler_of(pod)].of(pod)
        evaluation.mend()
        failure = failed(evaluation)
        if failure is not None and (evaluation.error() is not None or evaluation.fits.any()):
            return Turned(queued, failure.reason or "", is_error=True)
        fits = self._fits_beside(evaluation, pod)
        if fits.any():
            row = self._choose(evaluation, fits, cluster.nodes.row(self._nominator.node_of(pod.uid)))
            return Placed(queued, row, self._assume(pod, row))
        return self._preempt(queued, evaluation)

    def _choose(self, evaluation: Evaluation, fits: BoolColumn, promised: int) -> int:
        """Return the row that was promised to the pod if it fits there, else the best one."""
        if promised != NONE and fits[promised]:
            return promised
        rows = np.flatnonzero(fits)
        _, total = evaluation.weigh(rows)
        return self._ties.take(rows[total == total.max()], self._cluster.nodes.rank)

    def _fits_beside(self, evaluation: Evaluation, pod: Incoming) -> BoolColumn:
        """Tell where a pod fits with and without those that were promised room there (bool[n_rows])."""
        if not len(self._nominator):
            return evaluation.fits
        beside = self._nominator.beside(pod, self._cluster.nodes.row)
        if not beside:
            return evaluation.fits
        names = self._cluster.nodes.names
        waiting = {row: [Nomination(other, names[row]) for other in others] for row, others in beside.items()}
        return DryRun(evaluation, pod, waiting).fits

    def _preempt(self, queued: QueuedPod, evaluation: Evaluation) -> Turned:
        pod, nominator = queued.pod, self._nominator
        why = self._why(evaluation, pod)
        nominations = [Nomination(each.pod, each.node) for each in nominator]
        outcome = preempt(pod, evaluation, nominations, nominator.node_of(pod.uid))
        if isinstance(outcome, NotPreempted):
            self._beyond_preemption.add((scheduler_of(pod), pod.shape))
            nominated = "" if outcome.clears_nomination else None
            return Turned(queued, f"{why} {outcome}", why.rejected_by, nominated_node=nominated)
        name = self._cluster.nodes.names[outcome.row]
        return Turned(queued, str(why), why.rejected_by, preemption=outcome, nominated_node=name)

    def _why(self, evaluation: Evaluation, pod: Incoming) -> Unschedulable:
        """Return why no node takes a pod; the pods that were promised room count as there."""
        cluster = self._cluster
        beside = self._nominator.beside(pod, cluster.nodes.row) if len(self._nominator) else {}
        if not evaluation.fits.any():
            return evaluation.unschedulable()
        there = [self._assume(other, row) for row, others in beside.items() for other in others]
        evaluation.mend()
        why = evaluation.unschedulable()
        for assumed in reversed(there):
            cluster.forget(assumed)
        evaluation.mend()
        return why

    def _assume(self, pod: Incoming, row: int) -> int:
        return int(self._cluster.assume(pod, row, uid=pod.uid))


_MOST_KNOWN = 4096


def scheduler_of(pod: Incoming) -> str:
    """Return the name of the scheduler that a pod is for."""
    return pod.info.spec.scheduler_name or DEFAULT_SCHEDULER
