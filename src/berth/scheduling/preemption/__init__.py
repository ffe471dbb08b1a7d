"""Preemption: which pods have to go so that one of a higher priority finds a place.

Source: 1.36, ``framework/preemption`` and ``plugins/defaultpreemption``. It is for profiles of 1.36. Upstream stops trying
when it has found enough nodes, beginning anywhere; here every node is tried, and of those that are equally good the first
by name is taken.
"""

from collections.abc import Iterable, Sequence

import numpy as np

from berth.cluster.arrays import NONE
from berth.cluster.cluster import Cluster, Incoming
from berth.scheduling.evaluation import Evaluation
from berth.scheduling.preemption.choice import best
from berth.scheduling.preemption.dry_run import DryRun, Outcome
from berth.scheduling.preemption.outcome import (
    NEVER,
    TERMINATING,
    Nomination,
    NotPreempted,
    Preemption,
    failure,
    no_candidate,
)
from berth.scheduling.preemption.victims import lower_pods

__all__ = ["Nomination", "NotPreempted", "Outcome", "Preemption", "best", "preempt", "try_every_node"]


def preempt(
    pod: Incoming,
    evaluation: Evaluation,
    nominations: Sequence[Nomination] = (),
    nominated_node: str = "",
) -> Preemption | NotPreempted:
    """Decide who makes room for a pod that no node takes. Nothing is changed in the end.

    Parameters
    ----------
    evaluation : Evaluation
        Of the pod's shape; it is mended.
    nominations : sequence of Nomination
        All pods that are promised room on a node, whatever their priorities; the pod itself may be among them.
    nominated_node : str
        The node that the pod itself was promised room on.

    Raises
    ------
    ValueError
        There is a node that takes the pod, those considered that wait for room on it.
    """
    outcome = try_every_node(pod, evaluation, nominations, nominated_node)
    if isinstance(outcome, NotPreempted):
        return outcome
    cluster, segments = evaluation.cluster, best(outcome)
    rank = cluster.nodes.rank[outcome.victims.rows[segments]]
    segment = int(segments[rank.argmin()])
    row, victims = outcome.row(segment), outcome.going(segment)
    cleared: tuple[Nomination, ...] = ()
    # Upstream does nothing more where all victims are on their way already.
    if not cluster.pods.column("terminating")[victims].all():
        name, priority = cluster.nodes.names[row], pod.info.priority
        cleared = tuple(n for n in nominations if n.node_name == name and n.pod.info.priority < priority)
    return Preemption(row, tuple(victims.tolist()), outcome.n_violations(segment), cleared)


def try_every_node(
    pod: Incoming,
    evaluation: Evaluation,
    nominations: Sequence[Nomination] = (),
    nominated_node: str = "",
) -> Outcome | NotPreempted:
    """Return all that could be done; parameters and errors as for `preempt`."""
    evaluation.mend()
    cluster = evaluation.cluster
    dry_run = DryRun(evaluation, pod, _waiting(pod, nominations, cluster))
    if dry_run.fits.any():
        raise ValueError(f"{pod.namespace}/{pod.name}: there is a node that takes the pod")
    if pod.info.spec.preemption_policy == "Never":
        return NotPreempted(NEVER)
    row = cluster.nodes.row(nominated_node) if nominated_node else NONE
    if row != NONE and dry_run.open_rows[row] and _is_on_its_way(pod, row, cluster):
        return NotPreempted(TERMINATING)
    outcome = dry_run.run()
    if len(outcome.segments):
        return outcome
    if outcome.errors:
        return failure(outcome.errors)
    return no_candidate(len(cluster.nodes), outcome.reasons)


def _is_on_its_way(pod: Incoming, row: int, cluster: Cluster) -> bool:
    """Tell whether a less important pod on a row is terminating for the sake of another pod."""
    lower = lower_pods(cluster, pod.info.priority, np.arange(cluster.nodes.n_rows) == row)
    column = cluster.pods.column
    return bool((column("terminating")[lower] & column("preempted")[lower]).any())


def _waiting(
    pod: Incoming, nominations: Iterable[Nomination], cluster: Cluster
) -> dict[int, list[Nomination]]:
    """Return by row the other pods that the pod must not take the room of: those that are not less important."""
    waiting: dict[int, list[Nomination]] = {}
    for nomination in nominations:
        other, row = nomination.pod, cluster.nodes.row(nomination.node_name)
        if row != NONE and other.info.priority >= pod.info.priority and _identity(other) != _identity(pod):
            waiting.setdefault(row, []).append(nomination)
    return waiting


def _identity(pod: Incoming) -> tuple[str, str, str]:
    return pod.namespace, pod.name, pod.uid
